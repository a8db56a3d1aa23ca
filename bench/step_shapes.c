/* step_shapes.c: see step_shapes.h. */
#include "bench/step_shapes.h"

#include <stddef.h>

const struct step_shape step_shapes[N_STEP_SHAPES] = {
	{.letter = 'a',
	 .name = "GPT-2 124M, B4 T64 V50304",
	 .layers = 12,
	 .heads = 12,
	 .channels = 768,
	 .vocab = 50304,
	 .context = 64,
	 .batch = 4,
	 .steps = 1,
	 .torch_fp32 = {1.7, 0},
	 .torch_bf16 = {1.7, 0},
	 .llmc_fp32 = {5, 0},
	 .llmc_bf16 = {8, 0},
	 .rss = 0.65},
	{.letter = 'b',
	 .name = "6 layers x 384, B8 T256 V256",
	 .layers = 6,
	 .heads = 6,
	 .channels = 384,
	 .vocab = 256,
	 .context = 256,
	 .batch = 8,
	 .steps = 2,
	 .torch_fp32 = {1.6, 0},
	 .torch_bf16 = {1.7, 0},
	 .llmc_fp32 = {8, 0},
	 .llmc_bf16 = {13, 0},
	 .rss = 0.55},
	{.letter = 'c',
	 .name = "4 layers x 128, B16 T128 V256",
	 .layers = 4,
	 .heads = 4,
	 .channels = 128,
	 .vocab = 256,
	 .context = 128,
	 .batch = 16,
	 .steps = 10,
	 .torch_fp32 = {1.7, 0},
	 .torch_bf16 = {2.1, 0},
	 .llmc_fp32 = {7.5, 0},
	 .llmc_bf16 = {12, 0},
	 .rss = 0.35},
};

const struct step_shape *step_shape_of(char letter) {
	for (int i = 0; i < N_STEP_SHAPES; i++)
		if (step_shapes[i].letter == letter)
			return &step_shapes[i];
	return NULL;
}
