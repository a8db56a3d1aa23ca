/* decoder_layout.c: adds tensors for families of decoder.h. */
#include "train/model/decoder.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* Returns GPT-2's 0.02 at its 768 channels, and for narrower models in proportion to
 * 1/sqrt(channels), like their fan-in: with 0.02 a model of 128 channels spends hundreds of steps
 * learning pairs of bytes only. */
float decoder_std(const struct model_shape *s) {
	return 0.02f * sqrtf(768.0f / (float)s->n_embd);
}

float decoder_residual_std(const struct model_shape *s) {
	return decoder_std(s) / sqrtf(2.0f * (float)s->n_layer);
}

struct model_tensor decoder_matrix(int rows, int cols, float std) {
	return (struct model_tensor){.rows = rows, .cols = cols, .init = MODEL_INIT_NORMAL, .std = std, .decay = true};
}

struct model_tensor decoder_vector(int rows, enum model_init init) {
	return (struct model_tensor){.rows = rows, .cols = 1, .init = init, .decay = false};
}

void decoder_add(struct model_layout *l, struct model_tensor t, const char *fmt, ...) {
	va_list args;
	va_start(args, fmt);
	vsnprintf(t.name, sizeof t.name, fmt, args);
	va_end(args);
	model_add_tensor(l, &t, t.rows);
}

void decoder_add_vocab(struct model_layout *l, const struct model_shape *s, const char *name) {
	struct model_tensor t = decoder_matrix(s->vocab, s->n_embd, decoder_std(s));
	snprintf(t.name, sizeof t.name, "%s", name);
	model_add_tensor(l, &t, model_padded_vocab(s));
}

void decoder_add_blocks(struct model_layout *l, const struct model_shape *s,
						void (*block)(const struct model_shape *s, struct model_layout *out, int layer)) {
	l->layers = (struct fragment_layers){.begin = l->n_params, .n = s->n_layer};
	for (int layer = 0; layer < s->n_layer; layer++)
		block(s, l, layer);
	l->layers.layer_elems = (l->n_params - l->layers.begin) / (size_t)s->n_layer;
}
