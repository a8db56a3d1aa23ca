/* cost.h: how much longer a step takes with savings, by a model of compute and bandwidth. It is for
 * choosing among what fits, and for telling people what to expect; nothing is measured. */
#ifndef RV_TRAIN_MEMORY_COST_H
#define RV_TRAIN_MEMORY_COST_H

#include "train/memory/plan.h"

/* Returns the seconds of one step over q->run's sequences of a model of `n_params`, on one device,
 * with q->savings. */
double memory_step_seconds(const struct memory_request *q, size_t n_params);
/* Returns how much longer a step takes than without savings, as a share: 0.25 is a quarter. */
double memory_cost(const struct memory_request *q, size_t n_params);

#endif
