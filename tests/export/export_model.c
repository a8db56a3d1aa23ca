/* export_model.c: writes a small model of random weights in every form that Rivulet exports, with
 * the logits that our own forward pass gives for what was written and read back: export_model DIR
 * KEY=VALUE... (options of a run). Readers that know only the published layouts (check_export.py)
 * compare. A `vocab` above 256 gets a tokenizer of TRAINED tokens, trained on the spot.
 *
 *   DIR/hf, DIR/hf-bf16        Hugging Face directories, the second in several files
 *   DIR/{fp32,bf16,fp16}.gguf  for llama.cpp
 *   DIR/tokenizer.json         when there is one
 *   DIR/tokens.i32, DIR/{hf,hf-bf16}.logits   (context), (context, vocab) */
#include "base/assert.h"
#include "base/file.h"
#include "base/rng.h"
#include "train/files/gguf.h"
#include "train/files/weights.h"
#include "train/text/tokenizer/trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPLIT_BYTES = 20000, BYTE_TOKENS = 256, TRAINED = 280 };

static struct rv_errtext et;

static void must(enum rv_err e) {
	if (e == RV_OK)
		return;
	(void)fprintf(stderr, "export_model: %s\n", et.text);
	exit(1);
}

static struct run_config read_config(int n, char **pairs) {
	struct run_config c;
	run_config_defaults(&c);
	for (int i = 0; i < n; i++) {
		char *equals = strchr(pairs[i], '=');
		RV_ASSERT(equals);
		*equals = '\0';
		must(rv_options_set(run_config_options, &c, pairs[i], equals + 1, &et));
	}
	must(run_config_validate(&c, &et));
	return c;
}

/* Norms and biases too, which training starts at one and zero. */
static float *random_params(const struct model_layout *l) {
	struct rv_rng rng = rv_rng_of(11, 7);
	float *params = calloc(l->n_params, sizeof *params);
	RV_ASSERT(params);
	for (int i = 0; i < l->n_tensors; i++) {
		const struct model_tensor *t = &l->tensors[i];
		for (size_t k = 0; k < t->elems; k++)
			params[t->offset + k] = (float)(0.15 * rv_rng_normal(&rng)) + (t->init == MODEL_INIT_ONE ? 1.0f : 0.0f);
	}
	return params;
}

static void write_file(const char *dir, const char *name, const void *data, size_t n) {
	char path[512];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	must(rv_file_write_atomic(path, data, n, 0644, &et));
}

static void write_tokenizer(const char *dir) {
	static const char text[] = "the river runs into the sea, and the sea is not full: the rivers run and run again.";
	struct piece_counter *counter;
	char *json;
	must(piece_counter_new(&counter, &et));
	must(piece_counter_add(counter, (const uint8_t *)text, strlen(text), &et));
	must(trainer_make_json(piece_counter_counts(counter), TRAINED, NULL, NULL, &json, &et));
	write_file(dir, "tokenizer.json", json, strlen(json));
	free(json);
	piece_counter_free(counter);
}

/* What our forward pass makes of the exported weights. */
static void write_logits(struct model *m, const struct run_config *c, const char *dir, const char *export,
						 const int32_t *tokens) {
	char from[512], name[64];
	int t = m->shape.context;
	size_t n = (size_t)t * (size_t)m->shape.vocab;
	struct model_layout layout;
	float *params, *logits = malloc(n * sizeof *logits);
	RV_ASSERT(logits);
	snprintf(from, sizeof from, "%s/%s", dir, export);
	snprintf(name, sizeof name, "%s.logits", export);
	must(weights_load(from, c, &layout, &params, &et));
	model_forward(m, params, tokens, 1, t);
	m->ops->logits(m, params, 0, t, logits);
	write_file(dir, name, logits, n * sizeof *logits);
	model_layout_release(&layout);
	free(params);
	free(logits);
}

static void write_exports(const char *dir, struct weights_source w) {
	static const char *const names[] = {
		[WEIGHTS_F32] = "fp32.gguf", [WEIGHTS_BF16] = "bf16.gguf", [WEIGHTS_F16] = "fp16.gguf"};
	char path[512];
	snprintf(path, sizeof path, "%s/hf", dir);
	must(weights_save_directory(path, &w, &et));
	for (int f = 0; f < WEIGHTS_FORMATS; f++) {
		snprintf(path, sizeof path, "%s/%s", dir, names[f]);
		must(gguf_save(path, &w, (enum weights_format)f, &et));
	}
	w.dtype = DTYPE_BF16;
	w.max_file_bytes = SPLIT_BYTES;
	snprintf(path, sizeof path, "%s/hf-bf16", dir);
	must(weights_save_directory(path, &w, &et));
}

int main(int argc, char **argv) {
	if (argc < 2) {
		(void)fprintf(stderr, "usage: export_model DIR KEY=VALUE...\n");
		return 2;
	}
	const struct run_config c = read_config(argc - 2, argv + 2);
	const struct model_shape shape = model_shape_of(&c);
	const struct model_options options = {.max_batch = 1, .forward_only = true};
	const struct backend_options device = {.threads = 1, .compute = DTYPE_F32, .isa = "auto"};
	struct backend *be;
	struct model *m;
	must(backend_open("cpu", &device, &be, &et));
	must(model_new(model_family(&c), &shape, &options, be, &m, &et));
	float *params = random_params(&m->layout);
	struct weights_source w = {.cfg = &c, .layout = &m->layout, .params = params, .origin = {.round = 3, .step = 90}};
	char tokenizer[512];
	snprintf(tokenizer, sizeof tokenizer, "%s/tokenizer.json", argv[1]);
	if (c.vocab > BYTE_TOKENS) {
		write_tokenizer(argv[1]);
		w.tokenizer_file = tokenizer;
	}
	write_exports(argv[1], w);
	int32_t *tokens = malloc((size_t)c.context * sizeof *tokens);
	RV_ASSERT(tokens);
	for (int64_t i = 0; i < c.context; i++)
		tokens[i] = (int32_t)(i * 37 % c.vocab);
	write_file(argv[1], "tokens.i32", tokens, (size_t)c.context * sizeof *tokens);
	write_logits(m, &c, argv[1], "hf", tokens);
	write_logits(m, &c, argv[1], "hf-bf16", tokens);
	free(tokens);
	free(params);
	model_free(m);
	backend_close(be);
	return 0;
}
