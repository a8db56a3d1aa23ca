/* averaging.h: what joins the replicas of a round, for methods that average outer gradients: who
 * takes part, encoding, the mean as the owners of an all-reduce make it, and the treatment of a
 * worker that missed it.
 *
 * The calls and their order are those of real workers, so that the bits are the same. */
#ifndef RV_LAB_AVERAGING_H
#define RV_LAB_AVERAGING_H

#include "lab/methods/pace.h"
#include "lab/run/lab_run.h"

/* The idle options of methods without encoded outer gradients, for lab_method.idle: those of
 * encoding, merging and outer step; and error-feedback, which some such methods have. */
extern const struct method_idle idle_outer_loop, idle_feedback;

/* Trains all replicas to inner step `step`, cfg.parallel at a time. RV_E_CANCELLED, RV_E_RANGE
 * (diverged), ... */
enum rv_err averaging_train_to(struct lab_run *r, uint64_t step, struct rv_errtext *et);
/* Trains each replica as far as the round's pace allows. The same faults. */
enum rv_err averaging_train_paced(struct lab_run *r, const struct pace_round *pace, struct rv_errtext *et);
/* Encodes the outer gradient of each replica, of the part that the round exchanges, against its
 * reference; sets out->delta_* and codec_* from them. RV_E_RANGE: one is not finite. */
enum rv_err averaging_encode(struct lab_run *r, struct lab_round *out, struct rv_errtext *et);

/* Draws who takes part in round `round`: everybody, or (cfg.drop_sync > 0) each worker with
 * probability 1 - drop_sync, from (seed, round, worker), so that every call gives the same. If
 * nobody is drawn, worker round % k takes part. Returns how many take part. */
int averaging_participants(const struct lab_config *c, uint64_t round, bool takes_part[LAB_MAX_WORKERS]);

/* Merges the encoded outer gradients of those that take part into r->reduced by the run's rule, and
 * commits them. By tokens, a worker's weight counts all that its outer gradient contains, also the
 * part kept from rounds that it missed. RV_E_NOMEM, RV_E_RANGE. */
enum rv_err averaging_reduce(struct lab_run *r, const bool *takes_part, struct rv_errtext *et);

/* Contributions to a round in roster order. */
struct averaging_given {
	int n;
	const uint8_t *vectors[LAB_MAX_WORKERS]; /* by the run's codec */
	uint32_t weights[LAB_MAX_WORKERS];
	struct contribution_form forms[LAB_MAX_WORKERS]; /* in which each is sent */
};
/* Merges them, in this layout, into r->reduced, as attempt AVERAGING_ATTEMPT of r->mean_residual,
 * which the caller commits. The same faults. */
enum { AVERAGING_ATTEMPT = 1 };
enum rv_err averaging_reduce_given(struct lab_run *r, const struct merge_layout *layout,
								   const struct averaging_given *given, struct rv_errtext *et);

/* Makes the outer step of r->global's round, with r->reduced. The faults of global_apply. */
enum rv_err averaging_step(struct lab_run *r, struct rv_errtext *et);

/* Ops of methods that keep everything in r->global: k replicas, theta, its full hash, and the bytes
 * of one encoded outer gradient in the round under way. */
int averaging_replicas(int workers);
const float *averaging_theta(struct lab_run *r);
struct rv_hash averaging_state_hash(struct lab_run *r);
uint64_t averaging_payload_bytes(const struct lab_run *r);
/* Sets the fields of a method that keeps everything there. */
#define AVERAGING_METHOD                                                                                               \
	.averages = true, .n_replicas = averaging_replicas, .theta = averaging_theta, .state_hash = averaging_state_hash,  \
	.payload_bytes = averaging_payload_bytes
/* Returns the bytes that a participant of the round under way, which was reduced, sends in its
 * all-reduce, on average. */
uint64_t averaging_bytes(const struct lab_run *r, int participants);

#endif
