/* test_train_model.c: what holds for every family: layout, initial weights, finite differences
 * through the whole model, learning, recomputation, models that only go forward. A new family is
 * tested here by being registered. */
#include "base/presets.h"
#include "tests/train/model_fixture.h"

#include "base/hash.h"
#include "base/hex.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef void case_fn(struct backend *be, const struct model_case *c);

static void on_every_case(const char *backend, case_fn *fn) {
	struct model_case cases[MODEL_CASES_MAX];
	int n = model_cases(cases);
	struct backend *be = fixture_backend(backend);
	for (int i = 0; i < n; i++)
		fn(be, &cases[i]);
	backend_close(be);
}

static void on_every_backend(case_fn *fn) {
	for (int i = 0; backend_registry[i]; i++)
		on_every_case(backend_registry[i]->name, fn);
}

static struct model *trainable(struct backend *be, const struct model_case *c) {
	return fixture_model(be, c, &(struct model_options){.max_batch = CASE_BATCH});
}

/* ---- layout ---- */

static void check_layout(struct backend *be, const struct model_case *c) {
	struct model *m = trainable(be, c);
	const struct model_layout *l = &m->layout;
	size_t end = 0, padded = (size_t)(model_padded_vocab(&c->shape) * c->shape.n_embd);
	for (int i = 0; i < l->n_tensors; i++) {
		const struct model_tensor *t = &l->tensors[i];
		assert_int_equal(t->offset % MODEL_ALIGN_ELEMS, 0);
		bool after_vocab = i > 0 && t[-1].rows == CASE_VOCAB;
		assert_true(t->offset >= end && t->offset - end < (after_vocab ? padded : MODEL_ALIGN_ELEMS));
		assert_int_equal(t->elems, t->rows * t->cols);
		assert_int_equal(t->decay, t->cols > 1); /* matrices and embeddings; not norms, not biases */
		assert_true(strlen(t->name) + 1 < MODEL_NAME_BYTES);
		assert_ptr_equal(model_find_tensor(l, t->name), t); /* no name twice */
		end = t->offset + t->elems;
	}
	assert_true(l->n_params >= end);
	assert_null(model_find_tensor(l, "no such tensor"));
	model_free(m);
}

static void test_layouts_are_dense_aligned_and_named(void **state) {
	(void)state;
	on_every_case("ref", check_layout);
}

static void check_spans(struct backend *be, const struct model_case *c) {
	struct model *m = trainable(be, c);
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
}

static void test_spans_cover_the_block_and_follow_the_tensors(void **state) {
	(void)state;
	on_every_case("ref", check_spans);
}

/* ---- initial weights ---- */

/* theta0 is part of a run: it must be these bits on every machine, compiler and backend. */
static const struct golden_init {
	const char *family;
	int n_embd;
	const char *hash;
} golden_inits[] = {
	{"gpt2", 12, "6f7e54107c4dffe6b8c851d95c6467c74250b43c710d4182d9d64f98d56535dc"},
	{"llama", 16, "e556329524b32bb38922d18690b59817ba219997fd673883d26cbcdcccd3d1fb"},
};

static const struct golden_init *golden_of(const char *family) {
	static const struct golden_init none = {NULL, 16, "none yet: add the family's"};
	for (size_t i = 0; i < sizeof golden_inits / sizeof golden_inits[0]; i++)
		if (strcmp(golden_inits[i].family, family) == 0)
			return &golden_inits[i];
	return &none;
}

static void hash_initial(struct model *m, uint64_t seed, char hex[65]) {
	size_t n = m->layout.n_params;
	float *params = fixture_block(m->be, n);
	model_init_params(m, params, seed);
	struct rv_hash h = rv_hash_of(params, n * sizeof *params);
	rv_hex_encode(h.b, RV_HASH_BYTES, hex);
	m->be->ops->free(m->be, params);
}

static void check_golden_init(struct backend *be, const char *family) {
	const struct golden_init *golden = golden_of(family);
	const struct model_case c = {.family = family,
								 .shape = {.n_layer = 2,
										   .n_head = 2,
										   .n_embd = golden->n_embd,
										   .vocab = 31,
										   .context = 7,
										   .tied = true,
										   .norm_eps = 1e-5f,
										   .rope = {.theta = 10000}}};
	struct model *m = trainable(be, &c);
	char hex[65], other[65];
	hash_initial(m, 12345, hex);
	assert_string_equal(hex, golden->hash);
	hash_initial(m, 12346, other);
	assert_string_not_equal(hex, other);
	model_free(m);
}

static void test_initial_weights_are_golden(void **state) {
	(void)state;
	for (int i = 0; backend_registry[i]; i++) {
		struct backend *be = fixture_backend(backend_registry[i]->name);
		for (int f = 0; model_registry[f]; f++)
			check_golden_init(be, model_registry[f]->name);
		backend_close(be);
	}
}

/* Of norms: 1. Of biases: 0. Of matrices: 0.02 at 768 channels, less into the residual stream. */
static void check_spread(struct backend *be, const struct model_case *plain) {
	struct model_case c = *plain;
	c.shape.n_embd = 64;
	c.shape.vocab = 256;
	struct model *m = trainable(be, &c);
	float *params = fixture_block(be, m->layout.n_params);
	model_init_params(m, params, 1);
	for (int i = 0; i < m->layout.n_tensors; i++) {
		const struct model_tensor *t = &m->layout.tensors[i];
		bool residual = strstr(t->name, "c_proj.weight") || strstr(t->name, "o_proj") || strstr(t->name, "down_proj");
		double full = 0.02 * sqrt(768.0 / 64), want_std = t->cols == 1 ? 0 : residual ? full / 2 : full;
		double sum = 0, squares = 0, want_mean = t->init == MODEL_INIT_ONE ? 1 : 0;
		for (size_t k = 0; k < t->elems; k++) {
			sum += params[t->offset + k];
			squares += (params[t->offset + k] - want_mean) * (params[t->offset + k] - want_mean);
		}
		double n = (double)t->elems; /* within five standard errors */
		assert_true(fabs(sum / n - want_mean) <= 5 * want_std / sqrt(n));
		assert_true(fabs(sqrt(squares / n) - want_std) <= 5 * want_std / sqrt(2 * n));
	}
	be->ops->free(be, params);
	model_free(m);
}

static void test_initial_weights_have_the_spread_they_should(void **state) {
	(void)state;
	on_every_case("ref", check_spread);
}

/* ---- gradients ---- */

static double total_loss(struct model *m, const float *params, struct model_batch *b) {
	model_forward(m, params, b->tokens, CASE_BATCH, CASE_CONTEXT);
	model_loss(m, params, b->targets, b->losses);
	double sum = 0;
	for (int i = 0; i < CASE_TOKENS; i++)
		sum += b->losses[i];
	return sum;
}

/* Computes the gradient in memory that held something else before. */
static void gradient(struct model *m, const float *params, float *grads, struct model_batch *b) {
	m->be->ops->add_scaled(m->be, grads, 0, 1, params, NULL, m->layout.n_params);
	model_forward(m, params, b->tokens, CASE_BATCH, CASE_CONTEXT);
	model_backward(m, params, grads, b->tokens, b->targets, 1, b->losses, GRADIENT_WRITE);
}

struct direction {
	float *moved;
	double difference, gradient;
};

/* The loss along a random direction of one tensor (mostly along its gradient, so that the
 * difference is large): by a central difference, and by the gradient. */
static void probe_tensor(struct model *m, const float *params, const float *grads, int i, struct model_batch *b,
						 struct direction *d) {
	const double h = 1.0 / 256;
	const struct model_tensor *t = &m->layout.tensors[i];
	double side[2], norm = 1e-30;
	for (size_t k = 0; k < t->elems; k++)
		norm += (double)grads[t->offset + k] * grads[t->offset + k];
	norm = sqrt(norm);
	for (int s = 0; s < 2; s++) {
		memcpy(d->moved, params, m->layout.n_params * sizeof *d->moved);
		struct rv_rng rng = rv_rng_of(77, (uint64_t)i);
		d->gradient = 0;
		for (size_t k = 0; k < t->elems; k++) {
			double g = grads[t->offset + k];
			double along = g / norm + 0.3 * rv_rng_normal(&rng) / sqrt((double)t->elems);
			d->moved[t->offset + k] += (float)((s ? h : -h) * along);
			d->gradient += along * g;
		}
		side[s] = total_loss(m, d->moved, b);
	}
	d->difference = (side[1] - side[0]) / (2 * h);
}

static void check_finite_differences(struct backend *be, const struct model_case *c) {
	const double tolerance = 4e-3;
	struct model *m = trainable(be, c);
	size_t n = m->layout.n_params;
	float *params = fixture_block(be, n), *grads = fixture_block(be, n);
	struct direction d = {.moved = fixture_block(be, n)};
	struct model_batch b = model_batch_random();
	fixture_randomise(m, params);
	gradient(m, params, grads, &b);
	for (int i = 0; i < m->layout.n_tensors; i++) {
		probe_tensor(m, params, grads, i, &b, &d);
		if (!(fabs(d.difference - d.gradient) <= tolerance * fmax(fabs(d.gradient), 0.1)))
			fail_msg("%s on %s, %s: difference %.6g, gradient %.6g", c->what, be->ops->name, m->layout.tensors[i].name,
					 d.difference, d.gradient);
	}
	be->ops->free(be, params);
	be->ops->free(be, grads);
	be->ops->free(be, d.moved);
	model_free(m);
}

static void test_gradients_match_finite_differences(void **state) {
	(void)state;
	on_every_backend(check_finite_differences);
}

/* On `cpu`, GELU computed from what is stored has the bits of a product's own, which stores these
 * sums. */
static bool has_same_bits(const struct backend *be, enum recompute r) {
	return r == RECOMPUTE_BLOCK || strcmp(be->ops->name, "cpu") == 0;
}

static void check_recompute_of(struct backend *be, const struct model_case *c, enum recompute less, enum recompute r) {
	struct model *all = fixture_model(be, c, &(struct model_options){.max_batch = CASE_BATCH, .recompute = less});
	struct model *again = fixture_model(be, c, &(struct model_options){.max_batch = CASE_BATCH, .recompute = r});
	size_t n = all->layout.n_params;
	float *params = fixture_block(be, n), *grads = fixture_block(be, n), *same = fixture_block(be, n);
	struct model_batch b = model_batch_random(), b2 = b;
	fixture_randomise(all, params);
	gradient(all, params, grads, &b);
	gradient(again, params, same, &b2);
	if (has_same_bits(be, r) && has_same_bits(be, less)) {
		assert_memory_equal(grads, same, n * sizeof *grads);
		assert_memory_equal(b.losses, b2.losses, sizeof b.losses);
	}
	for (size_t i = 0; i < n; i++)
		assert_true(fabsf(grads[i] - same[i]) <= 1e-5f * (1 + fabsf(grads[i])));
	assert_true(again->memory_bytes < all->memory_bytes || c->shape.n_layer == 1);
	be->ops->free(be, params);
	be->ops->free(be, grads);
	be->ops->free(be, same);
	model_free(all);
	model_free(again);
}

static void check_recompute(struct backend *be, const struct model_case *c) {
	check_recompute_of(be, c, RECOMPUTE_NONE, RECOMPUTE_BLOCK);
	for (enum recompute r = RECOMPUTE_GELU; r <= RECOMPUTE_BLOCK; r++)
		check_recompute_of(be, c, r - 1, r);
}

static void test_recomputed_gradients_have_the_same_bits(void **state) {
	(void)state;
	on_every_backend(check_recompute);
}

static void check_forward_only(struct backend *be, const struct model_case *c) {
	struct model *full = trainable(be, c);
	struct model *lean = fixture_model(be, c, &(struct model_options){.max_batch = CASE_BATCH, .forward_only = true});
	float *params = fixture_block(be, full->layout.n_params);
	float logits[2][CASE_TOKENS * CASE_VOCAB];
	struct model_batch b = model_batch_random(), b2 = b;
	fixture_randomise(full, params);
	total_loss(full, params, &b);
	total_loss(lean, params, &b2);
	assert_memory_equal(b.losses, b2.losses, sizeof b.losses);
	full->ops->logits(full, params, 0, CASE_TOKENS, logits[0]);
	lean->ops->logits(lean, params, 0, CASE_TOKENS, logits[1]);
	assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
	assert_true(lean->memory_bytes < full->memory_bytes);
	be->ops->free(be, params);
	model_free(full);
	model_free(lean);
}

static void test_models_that_only_go_forward_compute_the_same(void **state) {
	(void)state;
	on_every_backend(check_forward_only);
}

/* Plain gradient descent on one batch. */
static void check_learning(struct backend *be, const struct model_case *c) {
	enum { STEPS = 30 };
	struct model *m = trainable(be, c);
	size_t n = m->layout.n_params;
	float *params = fixture_block(be, n), *grads = fixture_block(be, n);
	struct model_batch b = model_batch_random();
	model_init_params(m, params, 3);
	double first = total_loss(m, params, &b);
	for (int i = 0; i < STEPS; i++) {
		gradient(m, params, grads, &b);
		for (size_t k = 0; k < n; k++)
			params[k] -= 0.02f * grads[k];
	}
	double last = total_loss(m, params, &b);
	if (!(last < 0.5 * first))
		fail_msg("%s: loss %.3f -> %.3f", c->what, first, last);
	be->ops->free(be, params);
	be->ops->free(be, grads);
	model_free(m);
}

static void test_every_family_learns(void **state) {
	(void)state;
	on_every_case("cpu", check_learning);
}

/* A model planned for a large batch computes a small one exactly as a model planned for it. */
static void check_small_batches(struct backend *be, const struct model_case *c) {
	struct model *large = trainable(be, c);
	float *params = fixture_block(be, large->layout.n_params);
	fixture_randomise(large, params);
	struct model_batch b = model_batch_random();
	float whole[3 * CASE_VOCAB], part[3 * CASE_VOCAB];
	model_forward(large, params, b.tokens, CASE_BATCH, CASE_CONTEXT);
	large->ops->logits(large, params, 0, 3, whole);
	model_forward(large, params, b.tokens, 1, 3); /* causal: the first three positions do not see the rest */
	large->ops->logits(large, params, 0, 3, part);
	assert_memory_equal(whole, part, sizeof whole);
	be->ops->free(be, params);
	model_free(large);
}

static void test_smaller_batches_and_contexts_than_planned(void **state) {
	(void)state;
	on_every_case("ref", check_small_batches);
}

/* ---- refusals ---- */

static void refuse(const struct model_ops *family, struct model_shape s, int max_batch, enum rv_err want,
				   const char *needle) {
	struct backend *be = fixture_backend("ref");
	struct rv_errtext et = {0};
	struct model *m;
	assert_fault(model_new(family, &s, &(struct model_options){.max_batch = max_batch}, be, &m, &et), want, &et,
				 needle);
	assert_null(m);
	backend_close(be);
}

static void test_impossible_models_are_refused(void **state) {
	(void)state;
	struct model_case cases[MODEL_CASES_MAX];
	model_cases(cases);
	const struct model_shape plain = cases[0].shape;
	struct rv_errtext et = {0};
	const struct model_ops *none;
	assert_fault(model_family_find("gpt3", &none, &et), RV_E_NOTFOUND, &et, "gpt2");
	for (int i = 0; model_registry[i]; i++) {
		const struct model_ops *family = model_registry[i];
		struct model_shape s = plain;
		s.n_head = 5;
		refuse(family, s, 1, RV_E_RANGE, "5 heads");
		s = plain;
		s.n_layer = 0;
		refuse(family, s, 1, RV_E_RANGE, "0 layers");
		s = plain;
		s.n_inner = -1;
		refuse(family, s, 1, RV_E_RANGE, "-1 inner");
		refuse(family, plain, 0, RV_E_RANGE, "batch of 0");
		refuse(family, plain, 1 << 30, RV_E_RANGE, "batch of 1073741824");
	}
}

static void test_what_gpt2_has_not_is_refused(void **state) {
	(void)state;
	struct model_case cases[MODEL_CASES_MAX];
	model_cases(cases);
	struct model_shape s = cases[0].shape;
	s.tied = false;
	refuse(&model_gpt2, s, 1, RV_E_RANGE, "tied = false");
	s = cases[0].shape;
	s.norm_eps = 1e-6f;
	refuse(&model_gpt2, s, 1, RV_E_RANGE, "norm-eps = 1e-06: must be 1e-05");
	s = cases[0].shape;
	s.n_kv_head = 2;
	refuse(&model_gpt2, s, 1, RV_E_RANGE, "n-kv-head = 2");
	s = cases[0].shape;
	s.n_inner = 32;
	refuse(&model_gpt2, s, 1, RV_E_RANGE, "must be 4 n-embd = 64");
}

static void check_extent(const struct run_config *c) {
	const struct model_ops *family = model_family(c);
	const struct model_shape shape = model_shape_of(c);
	struct model_extent e;
	struct model_layout l;
	assert_int_equal(model_extent_of(c, &e, NULL), RV_OK);
	assert_int_equal(model_layout_init(&l, family, &shape, NULL, NULL), RV_OK);
	assert_int_equal(e.n_params, l.n_params);
	assert_int_equal(e.layers_begin, l.layers.begin);
	assert_int_equal(e.layer_elems, l.layers.layer_elems);
	model_layout_release(&l);
}

/* Who makes a run computes what its workers will lay out: of every preset, and of shapes whose
 * tensors have gaps. */
static void test_extents_are_the_layouts(void **state) {
	static const char *const odd[] = {
		"n-layer = 3\nn-head = 3\nn-embd = 15\nvocab = 300\ncontext = 7\n",
		"n-layer = 1\nn-head = 1\nn-embd = 9\nvocab = 257\ncontext = 1\n",
		"model = llama\nn-layer = 2\nn-head = 6\nn-kv-head = 2\nn-embd = 48\nvocab = 300\ntied = no\n",
		"model = llama\nn-layer = 5\nn-head = 4\nn-embd = 16\nn-inner = 33\ntied = yes\n",
	};
	struct run_config c;
	(void)state;
	for (const struct rv_preset *p = model_presets; p->name; p++) {
		assert_int_equal(run_config_parse(&c, p->name, p->text, NULL), RV_OK);
		check_extent(&c);
	}
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
		assert_int_equal(run_config_parse(&c, "odd", odd[i], NULL), RV_OK);
		check_extent(&c);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_extents_are_the_layouts),
		cmocka_unit_test(test_layouts_are_dense_aligned_and_named),
		cmocka_unit_test(test_spans_cover_the_block_and_follow_the_tensors),
		cmocka_unit_test(test_initial_weights_are_golden),
		cmocka_unit_test(test_initial_weights_have_the_spread_they_should),
		cmocka_unit_test(test_gradients_match_finite_differences),
		cmocka_unit_test(test_recomputed_gradients_have_the_same_bits),
		cmocka_unit_test(test_models_that_only_go_forward_compute_the_same),
		cmocka_unit_test(test_every_family_learns),
		cmocka_unit_test(test_smaller_batches_and_contexts_than_planned),
		cmocka_unit_test(test_impossible_models_are_refused),
		cmocka_unit_test(test_what_gpt2_has_not_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
