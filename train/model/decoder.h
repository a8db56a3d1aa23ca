/* decoder.h: the common part of decoder-only transformers with a norm before each half of a block:
 * plan of the activations, forward, backward, recomputation and decoding.
 *
 *   x_0 = embedding[token] (+ position[p])
 *   y_l = x_l + out(attention(qkv(norm_1(x_l))));   x_{l+1} = y_l + narrow(mlp(wide(norm_2(y_l))))
 *   logits = norm(x_L) classifier^T
 *
 * Such a family is a table of its tensors' roles and of its MLP between wide and narrow, with the
 * functions below as model_ops; other families have their own. */
#ifndef RV_TRAIN_MODEL_DECODER_H
#define RV_TRAIN_MODEL_DECODER_H

#include "train/model/model.h"

/* Index of a tensor that the family lacks. */
enum { DECODER_NONE = -1 };

/* Indices of two tensors; bias may be DECODER_NONE. */
struct decoder_part {
	int weight, bias;
};

/* An MLP: wide maps C channels to fan * F, the nonlinearity these to F, narrow F to C. */
struct decoder_mlp {
	int fan;
	/* Computes hidden (n, F) from x (n, C), and pre (n, fan * F) = wide(x) for backward. */
	void (*widen)(struct model *m, act_t *hidden, act_t *pre, const act_t *x, const float *w, const float *bias, int n);
	/* Computes hidden from pre, to the bit of widen if model_options.recompute says that it is not
	 * kept. */
	void (*activate)(struct model *m, act_t *hidden, const act_t *pre, int n);
	/* Computes dpre from dy (n, C), the gradient of narrow's output. dhidden (n, F) is scratch,
	 * NULL if fan is 1. */
	void (*widen_backward)(struct model *m, act_t *dpre, act_t *dhidden, const act_t *dy, const float *narrow,
						   const act_t *pre, int n);
};

struct decoder_spec {
	enum { DECODER_LAYERNORM, DECODER_RMSNORM } norm; /* the first has eps 1e-5 and biases */
	bool rotary;                                      /* positions by rotation of q and k (model_shape.rope) */
	const struct decoder_mlp *mlp;
	/* Indices of tensors, from the layout's first; */
	int embedding, positions;
	int first_block, block_tensors;
	/* Indices from a block's first; qkv and wide: the first tensor of a packed matrix; */
	struct decoder_part norm_1, qkv, out, norm_2, wide, narrow;
	/* and from the first behind the blocks. The classifier of a tied model is the embedding. */
	struct decoder_part norm_last;
	int classifier;
};

/* model->plan. Rows are the N tokens. Activations for a block's backward pass exist for each of
 * `kept` layers (all, or one that all share), layer l's at l * (size of a layer), dense for the
 * batch. */
struct decoder_plan {
	const struct decoder_spec *spec;
	int kept, streams;             /* streams of x: L + 1, or one */
	int kept_hidden, kept_norms;   /* `kept`, or one */
	act_t *x;                      /* (streams, N, C) residual stream entering each block, and leaving the last */
	act_t *y;                      /* (kept, N, C) residual stream between attention and MLP */
	act_t *norm_1, *norm_2;        /* (kept_norms, N, C) */
	act_t *qkv;                    /* (kept, N, (heads + 2 kv_heads) head_dim), rotated */
	act_t *att;                    /* (kept, N, C) */
	act_t *pre;                    /* (kept, N, fan F) */
	act_t *hidden;                 /* (kept_hidden, N, F) */
	float *stats_1, *stats_2;      /* (kept, 2, N) of the norms: mean and 1/std, or 1/rms */
	float *lse;                    /* (kept, B, heads, T) */
	act_t *last;                   /* (N, C) input of the classifier */
	float *stats_last;             /* (2, N) */
	act_t *branch;                 /* (N, C) output of a projection, before it joins the residual stream */
	act_t *dx, *dbranch, *dhidden; /* (N, C), (N, C), (N, F) gradients; NULL in a forward-only model */
	enum gradient_mode mode;       /* of the running backward pass */
	act_t *dwide;                  /* (N, widest of fan F and qkv's channels) gradient of pre, then of qkv */
	float *rope;                   /* (context, head_dim / 2, 2), rope_table.h; NULL if not rotary */
};

/* Implement model_ops; plan and widest_linear with the family's spec. */
void decoder_plan(struct model *m, struct model_arena *arena, int batch, const struct decoder_spec *spec);
int decoder_widest_linear(const struct model_shape *s, const struct decoder_spec *spec);
bool decoder_reads_fp32(const struct model_layout *l, int tensor, const struct decoder_spec *spec);
void decoder_forward(struct model *m, const float *params, const int32_t *tokens, int b, int t);
void decoder_loss(struct model *m, const float *params, const int32_t *targets, float *losses);
void decoder_backward(struct model *m, const float *params, float *grads, const int32_t *tokens, const int32_t *targets,
					  float grad_scale, float *losses, enum gradient_mode mode);
void decoder_logits(struct model *m, const float *params, int first, int n_rows, float *host_out);
void decoder_decode(struct model *m, const float *params, const int32_t *tokens, int first, int n, float *host_out);

/* Return tensors of a layout: matrices decay, vectors do not. */
struct model_tensor decoder_matrix(int rows, int cols, float std);
struct model_tensor decoder_vector(int rows, enum model_init init);
/* Adds t under a printf name; decoder_add_vocab pads an embedding's or classifier's rows to
 * model_padded_vocab. */
__attribute__((format(printf, 3, 4))) void decoder_add(struct model_layout *l, struct model_tensor t, const char *fmt,
													   ...);
/* Adds the blocks, one after the other. */
void decoder_add_blocks(struct model_layout *l, const struct model_shape *s,
						void (*block)(const struct model_shape *s, struct model_layout *out, int layer));
void decoder_add_vocab(struct model_layout *l, const struct model_shape *s, const char *name);
/* Return the standard deviations of initial matrices; that of projections into the residual stream
 * is smaller, so that its variance does not grow with depth (Radford et al. 2019, section 2.3). */
float decoder_std(const struct model_shape *s);
float decoder_residual_std(const struct model_shape *s);

#endif
