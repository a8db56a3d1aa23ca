/* test_train_model.c: layout, initial weights, bounds, and finite differences through the whole model. */
#include "tests/worker/train_fixture.h"

#include "base/hash.h"
#include "base/hex.h"
#include "base/rng.h"
#include "worker/train/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct model_shape tiny = {
	.n_layer = 2, .n_head = 2, .n_embd = 12, .vocab = 31, .context = 7, .tied = true, .norm_eps = 1e-5f};
enum { BATCH = 3, TOKENS = BATCH * 7 };

static struct backend *open_backend(const char *name) {
	struct backend_options opt = {.threads = 2, .compute = DTYPE_F32, .isa = "auto"};
	struct rv_errtext et = {0};
	struct backend *be;
	if (backend_open(name, &opt, &be, &et) != RV_OK)
		fail_msg("%s", et.text);
	return be;
}

static struct model *new_model(struct backend *be, const struct model_shape *s, int max_batch) {
	struct rv_errtext et = {0};
	struct model *m;
	if (model_new("gpt2", s, &(struct model_options){.max_batch = max_batch}, be, &m, &et) != RV_OK)
		fail_msg("%s", et.text);
	return m;
}

static float *alloc_params(struct backend *be, size_t n) {
	struct rv_errtext et = {0};
	void *p;
	assert_int_equal(be->ops->alloc(be, n * sizeof(float), &p, &et), RV_OK);
	return p;
}

static void test_layout_is_dense_aligned_and_named(void **state) {
	(void)state;
	struct backend *be = open_backend("ref");
	struct model *m = new_model(be, &tiny, 1);
	const struct model_layout *l = &m->layout;
	assert_int_equal(l->n_tensors, 2 + 12 * tiny.n_layer + 2);
	size_t end = 0;
	for (int i = 0; i < l->n_tensors; i++) {
		const struct model_tensor *t = &l->tensors[i];
		assert_int_equal(t->offset % MODEL_ALIGN_ELEMS, 0);
		assert_true(t->offset >= end && t->offset - end < (i == 1 ? 64u * 12 : MODEL_ALIGN_ELEMS));
		assert_int_equal(t->elems, t->rows * t->cols);
		assert_int_equal(t->decay, t->cols > 1); /* matrices and embeddings; not norms, not biases */
		end = t->offset + t->elems;
	}
	assert_int_equal(model_find_tensor(l, "wte.weight")->rows, tiny.vocab);
	assert_int_equal(model_find_tensor(l, "wpe.weight")->offset, 64 * tiny.n_embd);
	assert_int_equal(model_find_tensor(l, "h.1.mlp.c_proj.weight")->cols, 4 * tiny.n_embd);
	assert_null(model_find_tensor(l, "h.2.ln_1.weight"));
	model_free(m);
	backend_close(be);
}

static void test_spans_cover_the_block_and_follow_the_tensors(void **state) {
	(void)state;
	struct backend *be = open_backend("ref");
	struct model *m = new_model(be, &tiny, 1);
	size_t at = 0;
	for (int i = 0; i < m->n_spans; i++) {
		assert_int_equal(m->spans[i].begin, at);
		assert_true(m->spans[i].end > at);
		assert_true(i == 0 || m->spans[i].decay != m->spans[i - 1].decay);
		at = m->spans[i].end;
		for (int k = 0; k < m->layout.n_tensors; k++) {
			const struct model_tensor *t = &m->layout.tensors[k];
			if (t->offset >= m->spans[i].begin && t->offset < m->spans[i].end)
				assert_int_equal(t->decay, m->spans[i].decay);
		}
	}
	assert_int_equal(at, m->layout.n_params);
	model_free(m);
	backend_close(be);
}

static void hash_initial(struct model *m, uint64_t seed, char hex[65]) {
	size_t n = m->layout.n_params;
	float *params = alloc_params(m->be, n);
	model_init_params(m, params, seed);
	struct rv_hash h = rv_hash_of(params, n * sizeof *params);
	rv_hex_encode(h.b, RV_HASH_BYTES, hex);
	m->be->ops->free(m->be, params);
}

/* theta0 is part of a run: it must be these bits on every machine, compiler and backend. */
static void test_initial_weights_are_golden(void **state) {
	(void)state;
	char hex[65], other[65];
	for (int i = 0; backend_registry[i]; i++) {
		struct backend *be = open_backend(backend_registry[i]->name);
		struct model *m = new_model(be, &tiny, 1);
		hash_initial(m, 12345, hex);
		assert_string_equal(hex, "6f7e54107c4dffe6b8c851d95c6467c74250b43c710d4182d9d64f98d56535dc");
		hash_initial(m, 12346, other);
		assert_string_not_equal(hex, other);
		model_free(m);
		backend_close(be);
	}
}

static void test_initial_weights_have_the_spread_they_should(void **state) {
	(void)state;
	struct model_shape s = {
		.n_layer = 2, .n_head = 4, .n_embd = 64, .vocab = 256, .context = 32, .tied = true, .norm_eps = 1e-5f};
	struct backend *be = open_backend("ref");
	struct model *m = new_model(be, &s, 1);
	float *params = alloc_params(be, m->layout.n_params);
	model_init_params(m, params, 1);
	for (int i = 0; i < m->layout.n_tensors; i++) {
		const struct model_tensor *t = &m->layout.tensors[i];
		bool residual = strstr(t->name, "c_proj.weight") != NULL;
		double sum = 0, squares = 0, want_mean = strstr(t->name, "ln_") && strstr(t->name, "weight") ? 1 : 0;
		double full = 0.02 * sqrt(768.0 / 64), want_std = t->cols == 1 ? 0 : residual ? full / 2 : full;
		for (size_t k = 0; k < t->elems; k++) {
			sum += params[t->offset + k];
			squares += (params[t->offset + k] - want_mean) * (params[t->offset + k] - want_mean);
		}
		assert_true(fabs(sum / (double)t->elems - want_mean) < 0.006);
		assert_true(fabs(sqrt(squares / (double)t->elems) - want_std) <= 0.05 * want_std);
	}
	be->ops->free(be, params);
	model_free(m);
	backend_close(be);
}

struct batch {
	int32_t tokens[TOKENS], targets[TOKENS];
	float losses[TOKENS];
};

static struct batch random_batch(void) {
	struct batch b;
	struct rv_rng rng = rv_rng_of(5, 5);
	for (int i = 0; i < TOKENS; i++) {
		b.tokens[i] = (int32_t)rv_rng_below(&rng, (uint64_t)tiny.vocab);
		b.targets[i] = i == 4 ? -1 : (int32_t)rv_rng_below(&rng, (uint64_t)tiny.vocab);
	}
	return b;
}

/* Weights large enough that every part of the model matters. */
static void randomise(struct model *m, float *params) {
	struct rv_rng rng = rv_rng_of(6, 6);
	for (int i = 0; i < m->layout.n_tensors; i++) {
		const struct model_tensor *t = &m->layout.tensors[i];
		for (size_t k = 0; k < t->elems; k++)
			params[t->offset + k] = (float)((t->init == MODEL_INIT_ONE ? 1 : 0) + 0.2 * rv_rng_normal(&rng));
	}
}

static double total_loss(struct model *m, const float *params, struct batch *b) {
	model_forward(m, params, b->tokens, BATCH, tiny.context);
	model_loss(m, params, b->targets, b->losses);
	double sum = 0;
	for (int i = 0; i < TOKENS; i++)
		sum += b->losses[i];
	return sum;
}

/* For every tensor: the derivative along a random direction of it, by a central difference and by the gradient. */
static void check_finite_differences(const char *backend) {
	enum { DIRECTION_STEP_INVERSE = 256 };
	const double h = 1.0 / DIRECTION_STEP_INVERSE, tolerance = 4e-3;
	struct backend *be = open_backend(backend);
	struct model *m = new_model(be, &tiny, BATCH);
	size_t n = m->layout.n_params;
	float *params = alloc_params(be, n), *grads = alloc_params(be, n), *moved = alloc_params(be, n);
	struct batch b = random_batch();
	randomise(m, params);
	model_forward(m, params, b.tokens, BATCH, tiny.context);
	model_backward(m, params, grads, b.tokens, b.targets, 1, b.losses);
	for (int i = 0; i < m->layout.n_tensors; i++) {
		const struct model_tensor *t = &m->layout.tensors[i];
		double side[2], along = 0, norm = 0;
		for (size_t k = 0; k < t->elems; k++)
			norm += (double)grads[t->offset + k] * grads[t->offset + k];
		norm = sqrt(norm) + 1e-30;
		for (int s = 0; s < 2; s++) {
			memcpy(moved, params, n * sizeof *moved);
			struct rv_rng rng = rv_rng_of(77, (uint64_t)i);
			along = 0;
			for (size_t k = 0; k < t->elems; k++) { /* mostly along the gradient, so that the difference is large */
				double g = grads[t->offset + k] / norm;
				double d = g + 0.3 * rv_rng_normal(&rng) / sqrt((double)t->elems);
				moved[t->offset + k] += (float)((s ? h : -h) * d);
				along += d * grads[t->offset + k];
			}
			side[s] = total_loss(m, moved, &b);
		}
		double difference = (side[1] - side[0]) / (2 * h);
		if (!(fabs(difference - along) <= tolerance * fmax(fabs(along), 0.1)))
			fail_msg("%s, %s: difference %.6g, gradient %.6g", backend, t->name, difference, along);
	}
	be->ops->free(be, params);
	be->ops->free(be, grads);
	be->ops->free(be, moved);
	model_free(m);
	backend_close(be);
}

static void test_gradients_match_finite_differences(void **state) {
	(void)state;
	for (int i = 0; backend_registry[i]; i++)
		check_finite_differences(backend_registry[i]->name);
}

/* A model planned for a large batch computes a small one exactly as a model planned for it. */
static void test_smaller_batches_and_contexts_than_planned(void **state) {
	(void)state;
	struct backend *be = open_backend("ref");
	struct model *large = new_model(be, &tiny, BATCH);
	float *params = alloc_params(be, large->layout.n_params);
	model_init_params(large, params, 1);
	struct batch b = random_batch();
	float whole[3 * 31], part[3 * 31];
	model_forward(large, params, b.tokens, BATCH, tiny.context);
	model_logits(large, params, 0, 3, whole);
	model_forward(large, params, b.tokens, 1, 3); /* causal: the first three positions do not see the rest */
	model_logits(large, params, 0, 3, part);
	assert_memory_equal(whole, part, sizeof whole);
	be->ops->free(be, params);
	model_free(large);
	backend_close(be);
}

static void test_impossible_models_are_refused(void **state) {
	(void)state;
	struct backend *be = open_backend("ref");
	struct rv_errtext et = {0};
	struct model *m;
	struct model_shape s = tiny;
	assert_fault(model_new("gpt3", &s, &(struct model_options){.max_batch = 1}, be, &m, &et), RV_E_NOTFOUND, &et,
				 "gpt2");
	assert_null(m);
	s.n_head = 5;
	assert_fault(model_new("gpt2", &s, &(struct model_options){.max_batch = 1}, be, &m, &et), RV_E_RANGE, &et,
				 "5 heads");
	s = tiny;
	s.n_layer = 0;
	assert_fault(model_new("gpt2", &s, &(struct model_options){.max_batch = 1}, be, &m, &et), RV_E_RANGE, &et,
				 "0 layers");
	s = tiny;
	assert_fault(model_new("gpt2", &s, &(struct model_options){.max_batch = 0}, be, &m, &et), RV_E_RANGE, &et,
				 "batch of 0");
	assert_fault(model_new("gpt2", &s, &(struct model_options){.max_batch = 1 << 30}, be, &m, &et), RV_E_RANGE, &et,
				 "batch of 1073741824");
	backend_close(be);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout_is_dense_aligned_and_named),
		cmocka_unit_test(test_spans_cover_the_block_and_follow_the_tensors),
		cmocka_unit_test(test_initial_weights_are_golden),
		cmocka_unit_test(test_initial_weights_have_the_spread_they_should),
		cmocka_unit_test(test_gradients_match_finite_differences),
		cmocka_unit_test(test_smaller_batches_and_contexts_than_planned),
		cmocka_unit_test(test_impossible_models_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
