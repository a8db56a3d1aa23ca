/* What `rivulet eval` says is what the run's own evaluation says, and on any text what the
 * definition says. */
#include "tests/lab/lab_fixture.h"

#include "base/file.h"
#include "lab/model/evaluation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CONTEXT = 16, SHORT_TOKENS = 6 * CONTEXT };

static struct lab_fixture f;
static struct loaded_model *m;
static double own_loss, own_short_loss;

static int setup(void **state) {
	(void)state;
	lab_fixture_init(&f);
	struct lab_run *r = lab_fixture_finished(&f);
	assert_int_equal(lab_run_eval(r, &own_loss, NULL), RV_OK);
	r->cfg.eval_tokens = SHORT_TOKENS;
	assert_int_equal(lab_run_eval(r, &own_short_loss, NULL), RV_OK);
	m = lab_fixture_reload(&f, r, 3);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	loaded_model_close(m);
	lab_fixture_release(&f);
	return 0;
}

static void test_held_out_text(void **state) {
	(void)state;
	struct evaluation v;
	assert_true(m->of_a_run);
	assert_int_equal(evaluation_heldout(m, f.data, 0, NULL, NULL, &v, NULL), RV_OK);
	assert_true(fabs(evaluation_loss(&v) - own_loss) < 1e-5);
	assert_int_equal(v.tokens, dataset_heldout_sequences(f.data) * CONTEXT);
	assert_int_equal(v.bytes, v.tokens); /* tokens are bytes */
	assert_true(fabs(evaluation_bits_per_byte(&v) - own_loss / M_LN2) < 1e-5);
	assert_int_equal(evaluation_heldout(m, f.data, SHORT_TOKENS, NULL, NULL, &v, NULL), RV_OK);
	assert_int_equal(v.tokens, SHORT_TOKENS);
	assert_true(fabs(evaluation_loss(&v) - own_short_loss) < 1e-5);
}

/* Each token after the first from the window it is scored in, one forward pass each. */
static double by_definition(const uint32_t *tokens, size_t n, size_t stride) {
	double sum = 0;
	size_t scored = 1;
	for (size_t begin = 0; scored < n; begin += stride) {
		size_t end = begin + CONTEXT < n - 1 ? begin + CONTEXT : n - 1;
		int32_t in[CONTEXT], out[CONTEXT];
		float losses[CONTEXT];
		for (size_t i = begin; i < end; i++) {
			in[i - begin] = (int32_t)tokens[i];
			out[i - begin] = (int32_t)tokens[i + 1];
		}
		model_forward(m->model, m->params, in, 1, (int)(end - begin));
		model_loss(m->model, m->params, out, losses);
		for (; scored <= end; scored++)
			sum += (double)losses[scored - 1 - begin];
	}
	return sum;
}

static void test_any_text(void **state) {
	(void)state;
	char path[300];
	uint8_t *text;
	size_t bytes;
	uint32_t tokens[200];
	snprintf(path, sizeof path, "%s/text", f.dir);
	assert_int_equal(rv_file_read(path, 1 << 24, &text, &bytes, NULL), RV_OK);
	for (size_t i = 0; i < 200; i++)
		tokens[i] = text[i];
	free(text);
	static const size_t lengths[] = {2, 3, 15, 16, 17, 18, 33, 64, 65, 199, 200};
	static const int strides[] = {1, 5, 15, 16};
	for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
		for (size_t s = 0; s < sizeof strides / sizeof strides[0]; s++) {
			struct evaluation v;
			size_t n = lengths[l];
			assert_int_equal(evaluation_text(m, tokens, n, strides[s], NULL, NULL, &v, NULL), RV_OK);
			assert_int_equal(v.tokens, n - 1);
			assert_int_equal(v.bytes, n - 1);
			double want = by_definition(tokens, n, (size_t)strides[s]);
			if (fabs(v.loss_sum - want) > 1e-4 * (double)n)
				fail_msg("%zu tokens, stride %d: %.6f, by definition %.6f", n, strides[s], v.loss_sum, want);
		}
}

static bool stop_at_once(void *ctx, uint64_t done, uint64_t all) {
	(void)ctx;
	assert_true(done <= all);
	return false;
}

static void test_refusals(void **state) {
	(void)state;
	struct evaluation v;
	struct rv_errtext et = {0};
	const uint32_t tokens[40] = {0};
	assert_fault(evaluation_text(m, tokens, 1, 16, NULL, NULL, &v, &et), RV_E_RANGE, &et, "at least 2");
	assert_int_equal(evaluation_text(m, tokens, 40, 16, stop_at_once, NULL, &v, &et), RV_E_CANCELLED);
	assert_int_equal(evaluation_heldout(m, f.data, 0, stop_at_once, NULL, &v, &et), RV_E_CANCELLED);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_held_out_text),
		cmocka_unit_test(test_any_text),
		cmocka_unit_test(test_refusals),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
