/* fp32_cost.c: see fp32_cost.h. */
#include "base/fp32_cost.h"

#include "base/model_shape.h"

#include <math.h>
#include <stdio.h>

/* Operations per second, in units of 10^12. Products in fp32: three quarters of the 67 in NVIDIA's
 * data sheet for no tensor cores; attention in fp32, whose kernel gives a row to a warp: an
 * estimate for GPT-2 124M, 16 x 1024 tokens; both in bf16: 37 % of the data sheet's 989, as
 * expected of the same model. Estimates, not measurements (docs/cuda.md). */
#define PRODUCTS_FP32  50.0
#define ATTENTION_FP32 1.1
#define ALL_BF16       366.0

int fp32_cost_factor(const struct run_config *c) {
	struct model_extent extent;
	if (model_extent_of(c, &extent, NULL) != RV_OK)
		return 1;
	/* Operations per token, forward and backward; attention's triangle is half of a square. */
	const double products = 6.0 * (double)extent.n_params;
	const double attention = 7.0 * (double)c->context * (double)c->n_embd * (double)c->n_layer;
	const double fp32 = products / PRODUCTS_FP32 + attention / ATTENTION_FP32, bf16 = (products + attention) / ALL_BF16;
	return (int)lround(fmax(1, fp32 / bf16));
}

void fp32_cost_text(const struct run_config *c, char out[FP32_COST_TEXT_BYTES]) {
	(void)snprintf(out, FP32_COST_TEXT_BYTES,
				   "a GPU multiplies fp32 without its tensor cores: a step takes about %d times as long as with bf16 "
				   "(estimated for an H100)",
				   fp32_cost_factor(c));
}
