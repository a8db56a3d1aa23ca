/* test_base_fp32_cost.c: the estimate of what fp32 costs on a GPU, where the review has numbers,
 * and its text. */

#include "base/fp32_cost.h"
#include "tests/common/check.h"

#include <stdio.h>
#include <string.h>

static struct run_config gpt2_124m(void) {
	struct run_config c;
	run_config_defaults(&c);
	c.n_layer = c.n_head = 12;
	c.n_embd = 768;
	c.vocab = 50257;
	c.context = 1024;
	return c;
}

/* 1.2 to 1.5 s instead of 36 ms. */
static void test_as_reviewed(void **state) {
	(void)state;
	struct run_config c = gpt2_124m();
	const int factor = fp32_cost_factor(&c);
	assert_in_range(factor, 30, 42);
	c.context = 128; /* products alone: the ratio of the data sheet, or so */
	assert_in_range(fp32_cost_factor(&c), 7, 15);
	c.context = 4096;
	assert_true(fp32_cost_factor(&c) > factor);
}

static void test_a_model_that_cannot_be(void **state) {
	(void)state;
	struct run_config c = gpt2_124m();
	c.n_head = 5;
	assert_int_equal(fp32_cost_factor(&c), 1);
}

static void test_text(void **state) {
	(void)state;
	const struct run_config c = gpt2_124m();
	char text[FP32_COST_TEXT_BYTES], times[32];
	fp32_cost_text(&c, text);
	(void)snprintf(times, sizeof times, "about %d times", fp32_cost_factor(&c));
	assert_non_null(strstr(text, times));
	assert_non_null(strstr(text, "tensor cores"));
	assert_true(strlen(text) < sizeof text - 1 && text[strlen(text) - 1] == ')'); /* not cut */
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_reviewed),
		cmocka_unit_test(test_a_model_that_cannot_be),
		cmocka_unit_test(test_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
