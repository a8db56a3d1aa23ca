/* remerge.h: what an auditor makes of the contributions, or sums, that it has fetched: what their
 * owner had to make of them. */
#ifndef RV_WORKER_AUDIT_REMERGE_H
#define RV_WORKER_AUDIT_REMERGE_H

#include "outer/global.h"
#include "worker/audit/auditor.h"

/* Sets *out to the leaf (base/merkle.h) of the mean, or of the row's sum. RV_E_NOMEM, and what
 * merging returns (outer/merge.h). */
enum rv_err remerge_leaf(const struct global_config *g, const struct auditor_case *c, struct rv_hash *out);

#endif
