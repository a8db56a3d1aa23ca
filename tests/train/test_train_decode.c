/* test_train_decode.c: text one piece at a time over a cache gives the logits of the whole at once,
 * for every family, on every backend, however the tokens are split. */
#include "tests/train/model_fixture.h"

#include <math.h>

#define TOLERANCE 2e-5 /* of the largest logit: sums in another order */

static const struct model_options one = {.max_batch = 1, .forward_only = true};

/* Splits of CASE_CONTEXT tokens, and one that stops early. */
static const int splits[][CASE_CONTEXT + 1] = {{7}, {1, 1, 1, 1, 1, 1, 1}, {4, 3}, {1, 5, 1}, {3, 1, 2, 1}, {2, 2}};

static void begin(struct model *m) {
	struct rv_errtext et = {0};
	assert_int_equal(model_decode_begin(m, &et), RV_OK);
	assert_int_equal(m->decoded, 0);
}

static void assert_near(const char *what, const float *got, const float *want) {
	double worst = 0, largest = 1e-12;
	for (int i = 0; i < CASE_VOCAB; i++) {
		worst = fmax(worst, fabs((double)got[i] - want[i]));
		largest = fmax(largest, fabs(want[i]));
		assert_true(isfinite(got[i]));
	}
	if (!(worst <= TOLERANCE * largest))
		fail_msg("%s: logits differ by %.3g of %.3g", what, worst, largest);
}

static void check_case(struct backend *be, const struct model_case *c) {
	struct model *m = fixture_model(be, c, &one);
	struct model_batch b = model_batch_random();
	float *params = fixture_block(be, m->layout.n_params), all[CASE_CONTEXT * CASE_VOCAB], got[CASE_VOCAB];
	fixture_randomise(m, params);
	model_forward(m, params, b.tokens, 1, CASE_CONTEXT);
	m->ops->logits(m, params, 0, CASE_CONTEXT, all);
	for (size_t s = 0; s < sizeof splits / sizeof splits[0]; s++) {
		begin(m);
		for (int i = 0; splits[s][i] > 0; i++) {
			model_decode(m, params, b.tokens + m->decoded, splits[s][i], got);
			assert_near(c->what, got, all + (m->decoded - 1) * CASE_VOCAB);
		}
	}
	be->ops->free(be, params);
	model_free(m);
}

static void test_any_split_gives_the_logits_of_the_whole(void **state) {
	(void)state;
	struct model_case cases[MODEL_CASES_MAX];
	int n = model_cases(cases);
	for (int i = 0; backend_registry[i]; i++) {
		struct backend *be = fixture_backend(backend_registry[i]->name);
		for (int k = 0; k < n; k++)
			check_case(be, &cases[k]);
		backend_close(be);
	}
}

/* A second text does not see the first. */
static void test_beginning_again_forgets(void **state) {
	(void)state;
	struct model_case cases[MODEL_CASES_MAX];
	int n = model_cases(cases);
	struct backend *be = fixture_backend("cpu");
	for (int k = 0; k < n; k++) {
		struct model *m = fixture_model(be, &cases[k], &one);
		struct model_batch b = model_batch_random();
		float *params = fixture_block(be, m->layout.n_params), fresh[CASE_VOCAB], after[CASE_VOCAB];
		fixture_randomise(m, params);
		begin(m);
		model_decode(m, params, b.tokens, 2, fresh);
		begin(m);
		model_decode(m, params, b.tokens + CASE_CONTEXT, CASE_CONTEXT, after);
		begin(m);
		model_decode(m, params, b.tokens, 2, after);
		assert_memory_equal(fresh, after, sizeof fresh);
		be->ops->free(be, params);
		model_free(m);
	}
	backend_close(be);
}

/* A model that trains can decode between its steps. */
static void test_a_model_that_trains_decodes_too(void **state) {
	(void)state;
	struct model_case cases[MODEL_CASES_MAX];
	int n = model_cases(cases);
	struct backend *be = fixture_backend("cpu");
	for (int k = 0; k < n; k++) {
		struct model *m = fixture_model(be, &cases[k], &(struct model_options){.max_batch = CASE_BATCH});
		struct model *lean = fixture_model(be, &cases[k], &one);
		struct model_batch b = model_batch_random();
		float *params = fixture_block(be, m->layout.n_params), got[CASE_VOCAB], want[CASE_VOCAB];
		fixture_randomise(m, params);
		begin(m);
		begin(lean);
		model_decode(m, params, b.tokens, 3, got);
		model_decode(lean, params, b.tokens, 3, want);
		assert_memory_equal(got, want, sizeof got);
		assert_int_equal(m->b, 0); /* the last forward is forgotten */
		be->ops->free(be, params);
		model_free(m);
		model_free(lean);
	}
	backend_close(be);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_split_gives_the_logits_of_the_whole),
		cmocka_unit_test(test_beginning_again_forgets),
		cmocka_unit_test(test_a_model_that_trains_decodes_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
