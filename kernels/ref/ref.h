/* ref.h: the reference backend: what each operation of backend.h means, in loops one can read, summed in double. One
 * thread, no tricks; the oracle of every other backend's tests. */
#ifndef RV_KERNELS_REF_REF_H
#define RV_KERNELS_REF_REF_H

#include "kernels/backend.h"

struct ref_backend {
	struct backend base;
	double *scratch; /* for rows of scores and logits; grows to the largest request */
	size_t scratch_n;
};

extern const struct backend_ops ref_ops;

/* n doubles, contents unspecified, valid until the next call. */
double *ref_scratch(struct backend *be, size_t n);

/* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks & Gimpel 2016, section 2), and its derivative. */
double ref_gelu(double x);
double ref_gelu_grad(double x);

void ref_embed_forward(struct backend *be, act_t *out, const int32_t *tokens, const float *wte, const float *wpe, int b,
					   int t, int c);
void ref_embed_backward(struct backend *be, float *dwte, float *dwpe, const int32_t *tokens, const act_t *dout, int b,
						int t, int c);
void ref_layernorm_forward(struct backend *be, act_t *out, float *mean, float *rstd, const act_t *x, const float *w,
						   const float *bias, int n, int c);
void ref_residual_layernorm_forward(struct backend *be, act_t *sum, act_t *out, float *mean, float *rstd,
									const act_t *a, const act_t *b, const float *w, const float *bias, int n, int c);
void ref_layernorm_backward(struct backend *be, act_t *dx, float *dw, float *dbias, const act_t *dout, const act_t *x,
							const float *w, const float *mean, const float *rstd, int n, int c);
void ref_linear_forward(struct backend *be, act_t *y, act_t *pre, const act_t *x, const float *w, const float *bias,
						struct linear_shape s, enum linear_epilogue ep);
void ref_linear_backward_input(struct backend *be, act_t *dx, const act_t *dy, const float *w, const act_t *pre,
							   struct linear_shape s, enum linear_epilogue ep);
void ref_linear_backward_weight(struct backend *be, float *dw, float *dbias, const act_t *dy, const act_t *x,
								struct linear_shape s);
void ref_attention_forward(struct backend *be, act_t *out, float *lse, const act_t *qkv, struct attention_shape s);
void ref_attention_backward(struct backend *be, act_t *dqkv, const act_t *dout, const act_t *qkv, const act_t *out,
							const float *lse, struct attention_shape s);
void ref_classifier(struct backend *be, float *losses, act_t *dx, float *dwte, const act_t *x, const float *wte,
					const int32_t *targets, int n, int c, int v, int vp, float grad_scale);
void ref_logits(struct backend *be, float *host_out, const act_t *x, const float *wte, int n, int c, int v);
double ref_sum_squares(struct backend *be, const float *x, size_t n);
void ref_adamw(struct backend *be, float *p, const float *g, float *m, float *v, const struct decay_span *spans,
			   int n_spans, const struct adamw_params *a);

#endif
