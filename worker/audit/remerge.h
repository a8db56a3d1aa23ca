/* remerge.h: what an auditor makes of the contributions, or sums, that it has fetched: what their
 * owner had to make of them. */
#ifndef RV_WORKER_AUDIT_REMERGE_H
#define RV_WORKER_AUDIT_REMERGE_H

#include "outer/global.h"
#include "worker/audit/auditor.h"

/* Sets *out to the leaf (base/merkle.h) of the mean, or of the row's sum. RV_E_NOMEM, and what
 * merging returns (outer/merge.h). */
enum rv_err remerge_leaf(const struct global_config *g, const struct auditor_case *c, struct rv_hash *out);

/* Returns true if no contributions of those of whom the case has none (data NULL) give the
 * committed mean, encoded (outer/merge_reach.h); false if some might, or that cannot
 * be found out. */
bool remerge_is_beyond(const struct global_config *g, const struct auditor_case *c, const uint8_t *mean);

#endif
