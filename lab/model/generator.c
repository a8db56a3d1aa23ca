/* generator.c: see generator.h. */
#include "lab/model/generator.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

struct generator {
	struct loaded_model *m; /* borrowed */
	struct sampler *sampler;
	struct rv_rng rng;
	int32_t *window; /* (context) tokens that are in the model's cache */
	int n, context;
	float *logits; /* (vocab) that follow them */
};

enum rv_err generator_new(struct loaded_model *m, const struct sampler_params *params, uint64_t seed,
						  struct generator **out, struct rv_errtext *et) {
	*out = NULL;
	int vocab = (int)m->cfg.vocab;
	struct generator *g = calloc(1, sizeof *g);
	if (!g)
		return rv_fail(et, RV_E_NOMEM, "no memory to write text");
	*g = (struct generator){.m = m, .rng = rv_rng_of(seed, 0), .context = (int)m->cfg.context};
	g->window = malloc((size_t)g->context * sizeof *g->window);
	g->logits = malloc((size_t)vocab * sizeof *g->logits);
	enum rv_err e = g->window && g->logits
						? sampler_new(params, vocab, &g->sampler, et)
						: rv_fail(et, RV_E_NOMEM, "no memory for a context of %d tokens", g->context);
	if (e == RV_OK)
		e = model_decode_begin(m->model, et);
	if (e != RV_OK) {
		generator_free(g);
		return e;
	}
	*out = g;
	return RV_OK;
}

void generator_free(struct generator *g) {
	if (!g)
		return;
	sampler_free(g->sampler);
	free(g->logits);
	free(g->window);
	free(g);
}

/* Makes room: the newest `keep` tokens of the window are read again from position 0. */
static void forget_all_but(struct generator *g, int keep) {
	memmove(g->window, g->window + g->n - keep, (size_t)keep * sizeof *g->window);
	g->n = keep;
	enum rv_err e = model_decode_begin(g->m->model, NULL);
	RV_ASSERT(e == RV_OK); /* the cache exists already */
	if (keep > 0)
		model_decode(g->m->model, g->m->params, g->window, keep, g->logits);
}

void generator_read(struct generator *g, const int32_t *tokens, size_t n) {
	RV_ASSERT(n >= 1);
	if (n > (size_t)g->context) {
		tokens += n - (size_t)g->context;
		n = (size_t)g->context;
	}
	if (g->n + (int)n > g->context) {
		/* Keeps half of the context, or less before a long text. */
		int kept = g->context / 2 < g->n ? g->context / 2 : g->n;
		forget_all_but(g, (int)n + kept <= g->context ? kept : 0);
	}
	memcpy(g->window + g->n, tokens, n * sizeof *tokens);
	g->n += (int)n;
	model_decode(g->m->model, g->m->params, tokens, (int)n, g->logits);
}

int32_t generator_next(struct generator *g) {
	RV_ASSERT(g->n > 0);
	int32_t token = sampler_next(g->sampler, g->logits, &g->rng);
	generator_read(g, &token, 1);
	return token;
}
