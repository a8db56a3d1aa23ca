/* cost.h: how much longer a step takes with savings, by a model of compute, bandwidth and the links
 * of several devices. It serves to choose among what fits, and to tell people what to expect;
 * nothing is measured. */
#ifndef RV_TRAIN_MEMORY_COST_H
#define RV_TRAIN_MEMORY_COST_H

#include "train/memory/plan.h"

/* Returns the bytes that one of several devices sends in a step, and receives as well: at most, as
 * layers that a device still holds are not gathered again. 0 for one device. */
double memory_link_bytes(const struct memory_request *q, size_t n_params);
/* Returns how much longer a step takes than without savings, as a share: 0.25 is a quarter. */
double memory_cost(const struct memory_request *q, size_t n_params);

#endif
