/* model_fixture.c: see model_fixture.h. */
#include "tests/train/model_fixture.h"

#include "base/rng.h"

#include <stdio.h>
#include <string.h>

static const struct model_shape plain = {.n_layer = 2,
										 .n_head = 4,
										 .n_embd = 16,
										 .n_inner = 0,
										 .vocab = CASE_VOCAB,
										 .context = CASE_CONTEXT,
										 .tied = true,
										 .norm_eps = 1e-5f,
										 .rope = {.theta = 10000}};

static struct model_case *add(struct model_case *cases, int *n, const char *family, const char *what) {
	struct model_case *c = &cases[(*n)++];
	*c = (struct model_case){.family = family, .shape = plain};
	snprintf(c->what, sizeof c->what, "%s, %s", family, what);
	return c;
}

int model_cases(struct model_case out[static MODEL_CASES_MAX]) {
	int n = 0;
	for (int i = 0; model_registry[i]; i++) {
		assert_true(n < MODEL_CASES_MAX / 2);
		add(out, &n, model_registry[i]->name, "plain");
	}
	struct model_case *c = add(out, &n, "gpt2", "channels that are no multiple of 16");
	c->shape.n_head = 2;
	c->shape.n_embd = 12;
	c = add(out, &n, "llama", "grouped, untied, llama3");
	c->shape.n_kv_head = 2;
	c->shape.n_inner = 24;
	c->shape.tied = false;
	c->shape.rope = (struct model_rope){100, ROPE_LLAMA3, 8, 0.3, 2, 16};
	c = add(out, &n, "llama", "one head of keys, linear");
	c->shape.n_kv_head = 1;
	c->shape.n_inner = 40;
	c->shape.norm_eps = 1e-2f;
	c->shape.rope = (struct model_rope){.theta = 50, .scaling = ROPE_LINEAR, .factor = 3};
	return n;
}

struct model_batch model_batch_random(void) {
	struct model_batch b;
	struct rv_rng rng = rv_rng_of(5, 5);
	for (int i = 0; i < CASE_TOKENS; i++) {
		b.tokens[i] = (int32_t)rv_rng_below(&rng, CASE_VOCAB);
		b.targets[i] = i == 4 ? -1 : (int32_t)rv_rng_below(&rng, CASE_VOCAB);
		b.losses[i] = 0;
	}
	return b;
}

struct backend *fixture_backend(const char *name) {
	struct backend_options opt = {.threads = 2, .compute = DTYPE_F32, .isa = "auto"};
	struct rv_errtext et = {0};
	struct backend *be;
	if (backend_open(name, &opt, &be, &et) != RV_OK)
		fail_msg("%s", et.text);
	return be;
}

struct model *fixture_model(struct backend *be, const struct model_case *c, const struct model_options *options) {
	struct rv_errtext et = {0};
	const struct model_ops *family = NULL;
	struct model *m;
	assert_int_equal(model_family_find(c->family, &family, &et), RV_OK);
	if (model_new(family, &c->shape, options, be, &m, &et) != RV_OK)
		fail_msg("%s: %s", c->what, et.text);
	return m;
}

float *fixture_block(struct backend *be, size_t n) {
	struct rv_errtext et = {0};
	void *p;
	assert_int_equal(be->ops->alloc(be, n * sizeof(float), &p, &et), RV_OK);
	return p;
}

void fixture_randomise(const struct model *m, float *params) {
	struct rv_rng rng = rv_rng_of(6, 6);
	for (int i = 0; i < m->layout.n_tensors; i++) {
		const struct model_tensor *t = &m->layout.tensors[i];
		for (size_t k = 0; k < t->elems; k++)
			params[t->offset + k] = (float)((t->init == MODEL_INIT_ONE ? 1 : 0) + 0.2 * rv_rng_normal(&rng));
	}
}
