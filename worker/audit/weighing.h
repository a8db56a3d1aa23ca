/* weighing.h: what one member's contribution did to a round: the mean with and without it, the
 * outer step with each, and the held-out losses after them. The formula of `rivulet replay
 * --without` (lab/worker_files/replay_without.h), from contributions that members keep and have
 * committed to: so it measures what they sent, whatever their traces say. */
#ifndef RV_WORKER_AUDIT_WEIGHING_H
#define RV_WORKER_AUDIT_WEIGHING_H

#include "outer/global.h"
#include "worker/audit/auditor.h"

/* Checks that rounds of this run can be averaged without one of their contributions.
 * RV_E_UNSUPPORTED. */
enum rv_err weighing_check_run(const struct run_config *run, struct rv_errtext *et);

/* Merges the contributions to a chunk again, as their owner had to, less that of `left_out`
 * (NET_NO_MEMBER: of none), and encodes the mean: `mean` of the bytes that the codec needs.
 * RV_E_NOTFOUND: nothing is left; RV_E_NOMEM; what merge_chunk returns. */
enum rv_err weighing_merge(const struct global_config *g, const struct auditor_case *c, uint32_t left_out,
						   uint8_t *mean, struct rv_errtext *et);

/* A round that is weighed. */
struct weighing {
	const struct global_config *g;
	uint64_t round;
	uint32_t member;              /* the one in doubt */
	const struct rv_hash *leaves; /* of the chunks of the committed mean */
	uint8_t *without;             /* the encoded mean without it: chunking_total_bytes */
};
/* Fills in a chunk of `without`. RV_E_CORRUPT: the committed mean of it is not that of the
 * contributions; the faults of weighing_merge. */
enum rv_err weighing_take(const struct weighing *w, const struct auditor_case *c, struct rv_errtext *et);

/* Makes the outer step of `g` with each mean: of `committed`, which has that digest, on `g` itself;
 * of `without` on `spare`, another state of this configuration, which becomes a copy first. The
 * faults of global_apply. */
enum rv_err weighing_step(struct global_state *g, struct global_state *spare, const uint8_t *committed,
						  const struct rv_hash *digest, const uint8_t *without, struct rv_errtext *et);

/* A difference counts if it is more than two standard errors and than this share of the loss:
 * honest contributions differ a little, too (decision 0118). */
#define WEIGHING_LEAST_SHARE 0.005

enum weighing_verdict { WEIGHING_NO_DIFFERENCE, WEIGHING_BETTER_WITH, WEIGHING_BETTER_WITHOUT };
/* Held-out losses of the two, nats per token. */
struct weighed {
	double with, without;
	double difference, error; /* with - without, its mean over the sequences and the standard error of that */
	uint64_t sequences;
	enum weighing_verdict verdict;
};
/* Compares the losses of n sequences, at least 2. */
struct weighed weighing_compare(const double *with, const double *without, uint64_t n);
const char *weighing_verdict_name(enum weighing_verdict v); /* "better without" */

/* Returns the bytes that weighing so many rounds takes beside training: two shared states and the
 * vector that one begins with, two means of each round, one chunk of each of n participants. */
size_t weighing_bytes(const struct global_config *g, int rounds, int n);

#endif
