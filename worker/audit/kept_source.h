/* kept_source.h: what this worker keeps for auditors, as a donor gives it. */
#ifndef RV_WORKER_AUDIT_KEPT_SOURCE_H
#define RV_WORKER_AUDIT_KEPT_SOURCE_H

#include "worker/audit/kept_contributions.h"
#include "worker/audit/kept_states.h"
#include "worker/audit/kept_sums.h"
#include "worker/transfer/donor.h"

struct kept_source {
	struct kept_contributions *contributions;
	struct kept_states *states; /* NULL: none are kept */
	struct kept_sums *sums;     /* the same */
};

/* Gives pieces of both: for donor_config.source. Borrows `k`. */
struct donor_source kept_source_of(struct kept_source *k);

#endif
