/* overlapped.h: outer steps whose all-reduce runs while the next round is trained (Kale, Douillard, Donchev, Eager updates,
 * arXiv 2502.12996): round t steps with what is at hand, and the mean of round t comes one round later.
 *
 * Every worker i has outer weights and outer optimizer states of its own, and steps them with
 *     delayed  d_i = mean(t-1)
 *     eager    d_i = mean(t-1) + (own_i(t) - own_i(t-1)) / k
 * where own_i(t) is its outer gradient and mean(t) what the all-reduce gives, both 0 before the first round. So with eager
 * the mean of d_i over the workers is (1 - 1/k) mean(t-1) + mean(t) / k, the workers' weights differ by a k-th of one
 * outer gradient, and one worker alone is DiLoCo.
 *
 * The run's result is the mean of the workers' outer weights. */
#ifndef RV_LAB_OVERLAPPED_H
#define RV_LAB_OVERLAPPED_H

#include "lab/lab_run.h"

enum overlapped_step { OVERLAPPED_DELAYED, OVERLAPPED_EAGER };

enum rv_err overlapped_round(struct lab_run *r, enum overlapped_step how, struct lab_round *out, struct rv_errtext *et);
/* Vectors that lab_run keeps for it: mean(t-1), the result, and each worker's own(t-1), weights and states. */
int overlapped_extra(int workers, int n_states);
/* Each worker starts from theta0, and so does the result. */
void overlapped_start(struct lab_run *r);
const float *overlapped_reference(struct lab_run *r, int i);
const float *overlapped_theta(struct lab_run *r);
struct rv_hash overlapped_state_hash(struct lab_run *r);

#endif
