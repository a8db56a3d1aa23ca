/* fp32_cost.h: what dtype = fp32 costs where a GPU computes, for the person who may choose another. */
#ifndef RV_BASE_FP32_COST_H
#define RV_BASE_FP32_COST_H

#include "base/run_config.h"

/* Returns how many times as long as with bf16 a training step takes on an H100, rounded, at least 1: an estimate from the
 * model's size and context, not a measurement. 1 also where there is no such model. */
int fp32_cost_factor(const struct run_config *c);

enum { FP32_COST_TEXT_BYTES = 160 };
/* Writes a clause that says why, and the estimate. */
void fp32_cost_text(const struct run_config *c, char out[FP32_COST_TEXT_BYTES]);

#endif
