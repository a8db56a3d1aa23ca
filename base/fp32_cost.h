/* fp32_cost.h: the cost of dtype = fp32 on a GPU, for the person who may choose another. */
#ifndef RV_BASE_FP32_COST_H
#define RV_BASE_FP32_COST_H

#include "base/run_config.h"

/* Returns the time of a training step relative to bf16 on an H100, rounded, at least 1: an estimate
 * from the model's size and context, not a measurement. 1 also for an impossible model. */
int fp32_cost_factor(const struct run_config *c);

enum { FP32_COST_TEXT_BYTES = 160 };
/* Writes a clause with the reason and the estimate. */
void fp32_cost_text(const struct run_config *c, char out[FP32_COST_TEXT_BYTES]);

#endif
