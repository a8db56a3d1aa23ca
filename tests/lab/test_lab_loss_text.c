/* Losses and perplexities as people read them, insane ones included. */
#include "tests/lab/lab_fixture.h"

#include "lab/run/loss_text.h"

#include <math.h>

static void test_losses(void **state) {
	(void)state;
	assert_string_equal(loss_text(1.23456).text, "1.2346");
	assert_string_equal(loss_text(-0.5).text, "-0.5000");
	assert_string_equal(loss_text(9999.5).text, "9999.5000");
	assert_string_equal(loss_text(3.14159e12).text, "3.142e+12");
	assert_string_equal(loss_text(1e300).text, "1e+300");
	assert_string_equal(loss_text(NAN).text, "not finite");
	assert_string_equal(loss_text(-INFINITY).text, "not finite");
}

static void test_perplexities(void **state) {
	(void)state;
	assert_string_equal(perplexity_text(0).text, "1.000");
	assert_string_equal(perplexity_text(1.2345).text, "3.437");
	assert_string_equal(perplexity_text(95).text, "1.8e+41");
	assert_string_equal(perplexity_text(1e4).text, "infinite");
	assert_string_equal(perplexity_text(INFINITY).text, "infinite");
	assert_string_equal(perplexity_text(NAN).text, "not finite");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_perplexities),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
