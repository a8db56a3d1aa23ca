/* ref_rope.c: rotary position embedding (Su et al. 2021, arXiv 2104.09864, equation 34), pairs half
 * a head apart. */
#include "base/assert.h"
#include "kernels/host_memory.h"
#include "kernels/ref/ref.h"

/* Rotates one head of one token; `angles` (head_dim/2, 2): cos, sin. The inverse of a rotation has
 * the opposite sine. */
static void rotate(float *x, const float *angles, int head_dim, bool inverse) {
	int half = head_dim / 2;
	for (int i = 0; i < half; i++) {
		double x1 = (double)x[i], x2 = (double)x[i + half];
		double cosine = (double)angles[2 * i], sine = (double)angles[2 * i + 1];
		if (inverse)
			sine = -sine;
		x[i] = (float)(x1 * cosine - x2 * sine);
		x[i + half] = (float)(x2 * cosine + x1 * sine);
	}
}

void ref_rope(struct backend *be, act_t *qkv, const float *table, struct attention_shape s, int first, bool inverse) {
	(void)be;
	RV_ASSERT(s.head_dim % 2 == 0 && first >= 0);
	size_t width = (size_t)(s.heads + 2 * s.kv_heads) * s.head_dim;
	for (int n = 0; n < s.b * s.t; n++) {
		const float *angles = table + (size_t)(first + n % s.t) * s.head_dim;
		for (int h = 0; h < s.heads + s.kv_heads; h++) /* q, then k */
			rotate(act_f32(qkv) + (size_t)n * width + (size_t)h * s.head_dim, angles, s.head_dim, inverse);
	}
}
