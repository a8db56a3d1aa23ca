/* ref_embed.c: token and position embeddings. */
#include "kernels/host_memory.h"
#include "kernels/ref/ref.h"

void ref_embed_forward(struct backend *be, act_t *out, const int32_t *tokens, const float *wte, const float *wpe, int b,
					   int t, int c) {
	(void)be;
	float *y = act_f32(out);
	for (int n = 0; n < b * t; n++)
		for (int i = 0; i < c; i++) {
			float position = wpe ? wpe[(size_t)(n % t) * c + i] : 0;
			y[(size_t)n * c + i] = wte[(size_t)tokens[n] * c + i] + position;
		}
}

void ref_embed_backward(struct backend *be, float *dwte, float *dwpe, const int32_t *tokens, const act_t *dout, int b,
						int t, int c) {
	(void)be;
	const float *dy = act_f32c(dout);
	for (int n = 0; n < b * t; n++)
		for (int i = 0; i < c; i++) {
			dwte[(size_t)tokens[n] * c + i] += dy[(size_t)n * c + i];
			if (dwpe)
				dwpe[(size_t)(n % t) * c + i] += dy[(size_t)n * c + i];
		}
}
