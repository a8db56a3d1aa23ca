/* averaging.h: what joins the replicas of a round, for methods that average outer gradients: who takes part, encoding,
 * the mean as the owners of an all-reduce make it, and what becomes of a worker that missed it.
 *
 * The same calls in the same order as real workers make them, so that the bits are the same. */
#ifndef RV_LAB_AVERAGING_H
#define RV_LAB_AVERAGING_H

#include "lab/methods/pace.h"
#include "lab/run/lab_run.h"

/* For lab_method.idle of methods without encoded outer gradients: the options of encoding, merging and outer step; and
 * error-feedback, which some such methods have. */
extern const struct method_idle idle_outer_loop, idle_feedback;

/* Takes all replicas to that inner step, cfg.parallel at a time. RV_E_CANCELLED, RV_E_RANGE (diverged), ... */
enum rv_err averaging_train_to(struct lab_run *r, uint64_t step, struct rv_errtext *et);
/* Takes each to where the round's pace lets it come. The same faults. */
enum rv_err averaging_train_paced(struct lab_run *r, const struct pace_round *pace, struct rv_errtext *et);
/* Encodes the outer gradients of all, of what the round exchanges, against what they started from; out->delta_* from them. RV_E_RANGE: one is not finite. */
enum rv_err averaging_encode(struct lab_run *r, struct lab_round *out, struct rv_errtext *et);

/* Who takes part in round `round`: everybody, or (cfg.drop_sync > 0) each worker with probability 1 - drop_sync, drawn
 * from (seed, round, worker): the same whenever it is asked. When nobody is drawn, worker round % k takes part. Returns
 * how many. */
int averaging_participants(const struct lab_config *c, uint64_t round, bool takes_part[LAB_MAX_WORKERS]);

/* r->reduced = the encoded outer gradients of those that take part, merged by the run's rule: it is committed. By tokens, a worker's
 * weight counts all that its outer gradient contains: what it kept of rounds that it missed, too. RV_E_NOMEM,
 * RV_E_RANGE. */
enum rv_err averaging_reduce(struct lab_run *r, const bool *takes_part, struct rv_errtext *et);

/* The same of these n encoded vectors, in this order. */
enum rv_err averaging_reduce_vectors(struct lab_run *r, const uint8_t *const *vectors, const uint32_t *weights, int n,
									 struct rv_errtext *et);

/* Makes the outer step of r->global's round, with r->reduced. What global_apply refuses. */
enum rv_err averaging_step(struct lab_run *r, struct rv_errtext *et);

/* For the ops of methods that keep everything in r->global: k replicas, theta, its full hash, and the payload of one
 * encoded outer gradient in the round under way. */
int averaging_replicas(int workers);
const float *averaging_theta(struct lab_run *r);
struct rv_hash averaging_state_hash(struct lab_run *r);
uint64_t averaging_payload_bytes(const struct lab_run *r);
/* What each participant of the round under way sends in its all-reduce. */
uint64_t averaging_bytes(const struct lab_run *r, int participants);

#endif
