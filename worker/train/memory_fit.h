/* memory_fit.h: whether a plan fits a device, and what would. */
#ifndef RV_WORKER_TRAIN_MEMORY_FIT_H
#define RV_WORKER_TRAIN_MEMORY_FIT_H

#include "worker/train/memory_plan.h"

/* free_bytes: of the device that has least (device_free_bytes); SIZE_MAX: not to be looked at, the host swaps or says
 * so itself. RV_E_NOMEM: the text has the plan, what is short, and the first change that would fit, if one does: what
 * memory_plan_make refuses otherwise. */
enum rv_err memory_fit(const struct memory_request *q, size_t free_bytes, struct rv_errtext *et);

#endif
