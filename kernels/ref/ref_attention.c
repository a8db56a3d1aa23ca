/* ref_attention.c: causal scaled-dot-product attention (Vaswani et al. 2017, section 3.2.1) with
 * grouped key and value heads (Ainslie et al. 2023): query head h reads key/value head h / (heads /
 * kv_heads). */
#include "kernels/host_memory.h"
#include "kernels/ref/ref.h"

#include <math.h>

/* Return where a head's vector begins in qkv, for batch row b and token t. */
static size_t q_at(struct attention_shape s, int b, int t, int h) {
	size_t width = (size_t)(s.heads + 2 * s.kv_heads) * s.head_dim;
	return ((size_t)b * s.t + t) * width + (size_t)h * s.head_dim;
}

static size_t k_at(struct attention_shape s, int b, int t, int kv) {
	return q_at(s, b, t, s.heads + kv);
}

static size_t v_at(struct attention_shape s, int b, int t, int kv) {
	return q_at(s, b, t, s.heads + s.kv_heads + kv);
}

static size_t out_at(struct attention_shape s, int b, int t, int h) {
	return (((size_t)b * s.t + t) * s.heads + h) * s.head_dim;
}

static size_t lse_at(struct attention_shape s, int b, int t, int h) {
	return ((size_t)b * s.heads + h) * s.t + t;
}

static double dot(const float *a, const float *b, int n) {
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += (double)a[i] * (double)b[i];
	return sum;
}

/* Computes score[j] = q_t . k_j / sqrt(head_dim) for j <= t. */
static void scores(double *score, const float *qkv, struct attention_shape s, int b, int t, int h) {
	int kv = h / (s.heads / s.kv_heads);
	for (int j = 0; j <= t; j++)
		score[j] = dot(qkv + q_at(s, b, t, h), qkv + k_at(s, b, j, kv), s.head_dim) / sqrt(s.head_dim);
}

double ref_attend(float *out, double *p, const float *q, const float *k, const float *v, size_t ld, int last, int hd) {
	double largest = -INFINITY, sum = 0;
	for (int j = 0; j <= last; j++) {
		p[j] = dot(q, k + (size_t)j * ld, hd) / sqrt(hd);
		largest = p[j] > largest ? p[j] : largest;
	}
	for (int j = 0; j <= last; j++)
		sum += p[j] = exp(p[j] - largest);
	for (int d = 0; d < hd; d++) {
		double y = 0;
		for (int j = 0; j <= last; j++)
			y += p[j] / sum * (double)v[(size_t)j * ld + d];
		out[d] = (float)y;
	}
	return largest + log(sum);
}

static void forward_row(float *out, float *lse, double *p, const float *qkv, struct attention_shape s, int b, int t,
						int h) {
	int kv = h / (s.heads / s.kv_heads);
	size_t ld = q_at(s, 0, 1, 0);
	lse[lse_at(s, b, t, h)] = (float)ref_attend(out + out_at(s, b, t, h), p, qkv + q_at(s, b, t, h),
												qkv + k_at(s, b, 0, kv), qkv + v_at(s, b, 0, kv), ld, t, s.head_dim);
}

void ref_attention_forward(struct backend *be, act_t *out, float *lse, const act_t *qkv, struct attention_shape s) {
	double *p = ref_scratch(be, (size_t)s.t);
	for (int b = 0; b < s.b; b++)
		for (int h = 0; h < s.heads; h++)
			for (int t = 0; t < s.t; t++)
				forward_row(act_f32(out), lse, p, act_f32c(qkv), s, b, t, h);
}

struct backward_args {
	float *dqkv;
	const float *dout, *qkv, *out, *lse;
	double *p, *dk, *dv, *dq; /* (T), (T, head_dim) twice, (head_dim) */
};

/* Computes dS_j = p_j (dout . v_j - dout . out); dq += dS_j k_j, dk_j += dS_j q, dv_j += p_j dout,
 * all scores scaled. */
static void backward_row(const struct backward_args *a, struct attention_shape s, int b, int t, int h) {
	int kv = h / (s.heads / s.kv_heads), hd = s.head_dim;
	const float *dout = a->dout + out_at(s, b, t, h), *q = a->qkv + q_at(s, b, t, h);
	double shared = dot(dout, a->out + out_at(s, b, t, h), hd);
	scores(a->p, a->qkv, s, b, t, h);
	for (int d = 0; d < hd; d++)
		a->dq[d] = 0;
	for (int j = 0; j <= t; j++) {
		const float *k = a->qkv + k_at(s, b, j, kv), *v = a->qkv + v_at(s, b, j, kv);
		double p = exp(a->p[j] - (double)a->lse[lse_at(s, b, t, h)]);
		double ds = p * (dot(dout, v, hd) - shared) / sqrt(hd);
		for (int d = 0; d < hd; d++) {
			a->dq[d] += ds * (double)k[d];
			a->dk[(size_t)j * hd + d] += ds * (double)q[d];
			a->dv[(size_t)j * hd + d] += p * (double)dout[d];
		}
	}
	for (int d = 0; d < hd; d++)
		a->dqkv[q_at(s, b, t, h) + d] = (float)a->dq[d];
}

static void backward_kv_head(const struct backward_args *a, struct attention_shape s, int b, int kv) {
	int group = s.heads / s.kv_heads, hd = s.head_dim;
	for (size_t i = 0; i < (size_t)s.t * hd; i++)
		a->dk[i] = a->dv[i] = 0;
	for (int h = kv * group; h < (kv + 1) * group; h++)
		for (int t = 0; t < s.t; t++)
			backward_row(a, s, b, t, h);
	for (int t = 0; t < s.t; t++)
		for (int d = 0; d < hd; d++) {
			a->dqkv[k_at(s, b, t, kv) + d] = (float)a->dk[(size_t)t * hd + d];
			a->dqkv[v_at(s, b, t, kv) + d] = (float)a->dv[(size_t)t * hd + d];
		}
}

void ref_attention_backward(struct backend *be, act_t *dqkv, const act_t *dout, const act_t *qkv, const act_t *out,
							const float *lse, struct attention_shape s) {
	size_t t = (size_t)s.t, hd = (size_t)s.head_dim;
	double *p = ref_scratch(be, t + 2 * t * hd + hd);
	struct backward_args a = {.dqkv = act_f32(dqkv),
							  .dout = act_f32c(dout),
							  .qkv = act_f32c(qkv),
							  .out = act_f32c(out),
							  .lse = lse,
							  .p = p,
							  .dk = p + t,
							  .dv = p + t + t * hd,
							  .dq = p + t + 2 * t * hd};
	for (int b = 0; b < s.b; b++)
		for (int kv = 0; kv < s.kv_heads; kv++)
			backward_kv_head(&a, s, b, kv);
}
