/* gguf.c: llama.cpp's names of tensors and shapes, one table entry per family. */
#include "train/files/gguf.h"

#include "train/files/gguf_tokenizer.h"
#include "train/files/gguf_writer.h"
#include "train/model/rope_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The values of general.file_type. */
static const uint32_t file_types[WEIGHTS_FORMATS] = {[WEIGHTS_F32] = 0, [WEIGHTS_F16] = 1, [WEIGHTS_BF16] = 32};

struct name_pair {
	const char *ours, *theirs;
	bool rotated; /* rows of heads that are rotated */
	bool always_fp32;
};

struct gguf_family {
	const char *name;         /* model_ops.name and general.architecture */
	const char *block_prefix; /* prefix of our names: "h." in "h.0.ln_1.weight" */
	const struct name_pair *outside, *in_block;
	const char *epsilon; /* key of norm_eps, within attention */
	/* Puts the family's own keys. NULL: none. */
	void (*put)(struct gguf_writer *g, const struct model_shape *s);
};

/* ---- families ---- */

static const struct name_pair gpt2_outside[] = {
	{.ours = "wte.weight", .theirs = "token_embd.weight"},
	{.ours = "wpe.weight", .theirs = "position_embd.weight", .always_fp32 = true},
	{.ours = "ln_f.weight", .theirs = "output_norm.weight"},
	{.ours = "ln_f.bias", .theirs = "output_norm.bias"},
	{.ours = NULL},
};

static const struct name_pair gpt2_in_block[] = {
	{.ours = "ln_1.weight", .theirs = "attn_norm.weight"},
	{.ours = "ln_1.bias", .theirs = "attn_norm.bias"},
	{.ours = "attn.c_attn.weight", .theirs = "attn_qkv.weight"},
	{.ours = "attn.c_attn.bias", .theirs = "attn_qkv.bias"},
	{.ours = "attn.c_proj.weight", .theirs = "attn_output.weight"},
	{.ours = "attn.c_proj.bias", .theirs = "attn_output.bias"},
	{.ours = "ln_2.weight", .theirs = "ffn_norm.weight"},
	{.ours = "ln_2.bias", .theirs = "ffn_norm.bias"},
	{.ours = "mlp.c_fc.weight", .theirs = "ffn_up.weight"},
	{.ours = "mlp.c_fc.bias", .theirs = "ffn_up.bias"},
	{.ours = "mlp.c_proj.weight", .theirs = "ffn_down.weight"},
	{.ours = "mlp.c_proj.bias", .theirs = "ffn_down.bias"},
	{.ours = NULL},
};

static const struct name_pair llama_outside[] = {
	{.ours = "model.embed_tokens.weight", .theirs = "token_embd.weight"},
	{.ours = "model.norm.weight", .theirs = "output_norm.weight"},
	{.ours = "lm_head.weight", .theirs = "output.weight"},
	{.ours = NULL},
};

static const struct name_pair llama_in_block[] = {
	{.ours = "input_layernorm.weight", .theirs = "attn_norm.weight"},
	{.ours = "self_attn.q_proj.weight", .theirs = "attn_q.weight", .rotated = true},
	{.ours = "self_attn.k_proj.weight", .theirs = "attn_k.weight", .rotated = true},
	{.ours = "self_attn.v_proj.weight", .theirs = "attn_v.weight"},
	{.ours = "self_attn.o_proj.weight", .theirs = "attn_output.weight"},
	{.ours = "post_attention_layernorm.weight", .theirs = "ffn_norm.weight"},
	{.ours = "mlp.gate_proj.weight", .theirs = "ffn_gate.weight"},
	{.ours = "mlp.up_proj.weight", .theirs = "ffn_up.weight"},
	{.ours = "mlp.down_proj.weight", .theirs = "ffn_down.weight"},
	{.ours = NULL},
};

static void put_llama(struct gguf_writer *g, const struct model_shape *s) {
	gguf_put_u32(g, "llama.attention.head_count_kv", (uint32_t)s->n_kv_head);
	gguf_put_u32(g, "llama.rope.dimension_count", (uint32_t)(s->n_embd / s->n_head));
	gguf_put_f32(g, "llama.rope.freq_base", (float)s->rope.theta);
	gguf_put_u32(g, "llama.vocab_size", (uint32_t)s->vocab);
	if (s->rope.scaling == ROPE_LINEAR) {
		gguf_put_string(g, "llama.rope.scaling.type", "linear");
		gguf_put_f32(g, "llama.rope.scaling.factor", (float)s->rope.factor);
	}
}

static const struct gguf_family families[] = {
	{"gpt2", "h.", gpt2_outside, gpt2_in_block, "layer_norm_epsilon", NULL},
	{"llama", "model.layers.", llama_outside, llama_in_block, "layer_norm_rms_epsilon", put_llama},
};

static const struct gguf_family *find_family(const char *name) {
	for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
		if (strcmp(families[i].name, name) == 0)
			return &families[i];
	return NULL;
}

/* ---- tensors ---- */

struct export {
	const struct weights_source *w;
	const struct gguf_family *family;
	struct model_shape shape;
	struct hf_origin origin;
	struct gguf_tensor *tensors; /* the layout's, then rope_freqs if there is one */
	bool *rotated;
	int n_tensors;
};

static const struct name_pair *find_pair(const struct name_pair *pairs, const char *ours) {
	for (; pairs->ours; pairs++)
		if (strcmp(pairs->ours, ours) == 0)
			return pairs;
	return NULL;
}

/* Returns the pair of our name, with llama.cpp's full name in `theirs`, or NULL. */
static const struct name_pair *translate(const struct gguf_family *f, const char *ours, char theirs[GGUF_NAME_BYTES]) {
	size_t prefix = strlen(f->block_prefix);
	const struct name_pair *p = NULL;
	if (strncmp(ours, f->block_prefix, prefix) != 0) {
		p = find_pair(f->outside, ours);
		snprintf(theirs, GGUF_NAME_BYTES, "%s", p ? p->theirs : "");
		return p;
	}
	char *rest;
	unsigned long block = strtoul(ours + prefix, &rest, 10);
	if (*rest == '.')
		p = find_pair(f->in_block, rest + 1);
	snprintf(theirs, GGUF_NAME_BYTES, "blk.%lu.%s", block, p ? p->theirs : "");
	return p;
}

static enum rv_err describe_tensors(struct export *x, enum weights_format format, struct rv_errtext *et) {
	const struct model_layout *layout = x->w->layout;
	for (int i = 0; i < layout->n_tensors; i++) {
		const struct model_tensor *t = &layout->tensors[i];
		struct gguf_tensor *to = &x->tensors[x->n_tensors];
		const struct name_pair *p = translate(x->family, t->name, to->name);
		if (!p)
			return rv_fail(et, RV_E_UNSUPPORTED, "tensor '%s' of family %s has no name in GGUF", t->name,
						   x->family->name);
		bool vector = t->cols == 1;
		to->rows = (size_t)t->rows;
		to->cols = vector ? 0 : (size_t)t->cols;
		to->format = vector || p->always_fp32 ? WEIGHTS_F32 : format;
		x->rotated[x->n_tensors++] = p->rotated;
	}
	if (x->shape.rope.scaling == ROPE_LLAMA3) {
		struct gguf_tensor *to = &x->tensors[x->n_tensors++];
		*to = (struct gguf_tensor){.rows = (size_t)(x->shape.n_embd / x->shape.n_head / 2), .format = WEIGHTS_F32};
		snprintf(to->name, sizeof to->name, "rope_freqs.weight");
	}
	return RV_OK;
}

/* Fills the divisors of each angle's frequency, as Llama 3 stretches it (Llama 3.1 model card). */
static void fill_rope_factors(const struct model_shape *s, float *out) {
	struct model_rope plain = s->rope;
	const int head_dim = s->n_embd / s->n_head;
	plain.scaling = ROPE_PLAIN;
	for (int i = 0; i < head_dim / 2; i++)
		out[i] = (float)(rope_table_frequency(&plain, head_dim, i) / rope_table_frequency(&s->rope, head_dim, i));
}

/* Returns our row of the file's row r: llama.cpp interleaves the two halves of a head. */
static size_t row_of_head(size_t r, size_t head_dim) {
	size_t in_head = r % head_dim;
	return r - in_head + in_head % 2 * (head_dim / 2) + in_head / 2;
}

static void fill_rows(const void *ctx, int i, size_t first, size_t n, float *out) {
	const struct export *x = ctx;
	if (i == x->w->layout->n_tensors) {
		fill_rope_factors(&x->shape, out);
		return;
	}
	const struct model_tensor *t = &x->w->layout->tensors[i];
	const float *values = x->w->params + t->offset;
	size_t head_dim = (size_t)(x->shape.n_embd / x->shape.n_head), cols = (size_t)t->cols;
	if (cols == 1) {
		memcpy(out, values, t->elems * sizeof *out);
		return;
	}
	for (size_t r = first; r < first + n; r++, out += cols) {
		size_t from = x->rotated[i] ? row_of_head(r, head_dim) : r;
		memcpy(out, values + from * cols, cols * sizeof *out);
	}
}

/* ---- the file ---- */

static void put_shape(struct gguf_writer *g, const struct gguf_family *f, const struct model_shape *s,
					  uint32_t positions) {
	const struct {
		const char *key;
		uint32_t value;
	} shared[] = {{"block_count", (uint32_t)s->n_layer},
				  {"context_length", positions},
				  {"embedding_length", (uint32_t)s->n_embd},
				  {"feed_forward_length", (uint32_t)s->n_inner},
				  {"attention.head_count", (uint32_t)s->n_head}};
	char key[GGUF_NAME_BYTES];
	for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++) {
		snprintf(key, sizeof key, "%s.%s", f->name, shared[i].key);
		gguf_put_u32(g, key, shared[i].value);
	}
	snprintf(key, sizeof key, "%s.attention.%s", f->name, f->epsilon);
	gguf_put_f32(g, key, s->norm_eps);
	if (f->put)
		f->put(g, s);
}

static void put_general(struct gguf_writer *g, const struct export *x, enum weights_format format) {
	char name[96];
	snprintf(name, sizeof name, "Rivulet %s, round %" PRIu64, x->family->name, x->w->origin.round);
	gguf_put_string(g, "general.architecture", x->family->name);
	gguf_put_string(g, "general.type", "model");
	gguf_put_string(g, "general.name", name);
	gguf_put_u32(g, "general.file_type", file_types[format]);
	gguf_put_u32(g, "general.alignment", GGUF_ALIGNMENT);
	put_shape(g, x->family, &x->shape, (uint32_t)hf_origin_positions(&x->origin, x->w->cfg));
}

static enum rv_err write_export(const char *path, struct export *x, enum weights_format format, struct rv_errtext *et) {
	struct gguf_writer g = {.n_pairs = 0};
	const struct weights_rows rows = {fill_rows, x};
	RV_TRY(describe_tensors(x, format, et));
	put_general(&g, x, format);
	enum rv_err e = gguf_put_tokenizer(&g, x->w->tokenizer_file, (uint32_t)x->shape.vocab, &x->origin, et);
	if (e == RV_OK)
		e = gguf_writer_write(&g, path, x->tensors, x->n_tensors, &rows, et);
	gguf_writer_release(&g);
	return e;
}

enum rv_err gguf_save(const char *path, const struct weights_source *w, enum weights_format format,
					  struct rv_errtext *et) {
	const struct model_ops *ops = model_family(w->cfg);
	struct export x = {.w = w, .family = find_family(ops->name), .shape = model_shape_of(w->cfg)};
	size_t n = (size_t)w->layout->n_tensors + 1;
	if (!x.family)
		return rv_fail(et, RV_E_UNSUPPORTED, "model family %s: not known to llama.cpp", ops->name);
	RV_TRY(ops->rules->resolve(&x.shape, et));
	x.tensors = calloc(n, sizeof *x.tensors);
	x.rotated = calloc(n, sizeof *x.rotated);
	hf_origin_open(&x.origin, w->origin_dir, w->cfg, w->tokenizer_file);
	enum rv_err e = x.tensors && x.rotated ? write_export(path, &x, format, et)
										   : rv_fail(et, RV_E_NOMEM, "no memory to describe %zu tensors", n);
	hf_origin_release(&x.origin);
	free(x.tensors);
	free(x.rotated);
	return e;
}
