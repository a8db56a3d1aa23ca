/* ref_attention_cached.c: attention of the newest tokens of one sequence over the keys and values
 * of all of them. */
#include "base/assert.h"
#include "kernels/host_memory.h"
#include "kernels/ref/ref.h"

#include <string.h>

void ref_attention_cached(struct backend *be, act_t *out, act_t *k, act_t *v, const act_t *qkv,
						  struct attention_shape s, int first) {
	RV_ASSERT(s.b == 1 && first >= 0 && s.kv_heads > 0 && s.heads % s.kv_heads == 0);
	size_t hd = (size_t)s.head_dim, q_width = hd * s.heads, kv_width = hd * s.kv_heads;
	double *p = ref_scratch(be, (size_t)first + s.t);
	for (int t = 0; t < s.t; t++) {
		const float *token = act_f32c(qkv) + (size_t)t * (q_width + 2 * kv_width);
		size_t row = ((size_t)first + t) * kv_width;
		memcpy(act_f32(k) + row, token + q_width, kv_width * sizeof(float));
		memcpy(act_f32(v) + row, token + q_width + kv_width, kv_width * sizeof(float));
		for (int h = 0; h < s.heads; h++) {
			size_t kv = (size_t)(h / (s.heads / s.kv_heads)) * hd, at = (size_t)h * hd;
			(void)ref_attend(act_f32(out) + (size_t)t * q_width + at, p, token + at, act_f32c(k) + kv, act_f32c(v) + kv,
							 kv_width, first + t, s.head_dim);
		}
	}
}
