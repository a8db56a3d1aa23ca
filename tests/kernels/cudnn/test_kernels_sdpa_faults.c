/* test_kernels_sdpa_faults.c: each row of the table of cuDNN's documented faults, at both of its
 * edges. */

#include "kernels/cuda/sdpa_faults.h"
#include "tests/common/check.h"

#include <string.h>

enum { AMPERE = 80, HOPPER = 90, BLACKWELL = 100, BLACKWELL_PC = 120 };

static const struct attention_shape usual = {.b = 16, .t = 1024, .heads = 12, .kv_heads = 12, .head_dim = 64};

static struct attention_shape of_tokens(int t) {
	struct attention_shape s = usual;
	s.t = t;
	return s;
}

static const char *ask(uint64_t version, int sm, bool backward, struct attention_shape shape) {
	const struct sdpa_question q = {.version = version, .sm = sm, .backward = backward, .shape = shape};
	return sdpa_fault(&q);
}

static bool refused(uint64_t version, int sm, bool backward, struct attention_shape shape) {
	return ask(version, sm, backward, shape) != NULL;
}

static void single_token(void **state) {
	(void)state;
	for (uint64_t v = SDPA_VERSION(9, 0, 0); v <= SDPA_VERSION(9, 30, 0); v += 100)
		for (int backward = 0; backward < 2; backward++) {
			assert_true(refused(v, HOPPER, backward, of_tokens(1)));
			assert_true(refused(v, HOPPER, backward, of_tokens(0)));
		}
	assert_false(refused(SDPA_VERSION(9, 19, 0), HOPPER, true, of_tokens(2)));
	assert_non_null(strstr(ask(SDPA_VERSION(9, 19, 0), HOPPER, true, of_tokens(1)), "single token"));
}

static void broken_releases(void **state) {
	(void)state;
	for (int backward = 0; backward < 2; backward++) {
		assert_false(refused(SDPA_VERSION(9, 9, 0), HOPPER, backward, usual));
		assert_true(refused(SDPA_VERSION(9, 10, 0), HOPPER, backward, usual));
		assert_true(refused(SDPA_VERSION(9, 10, 1), AMPERE, backward, usual));
		assert_false(refused(SDPA_VERSION(9, 10, 2), HOPPER, backward, usual));
	}
	assert_non_null(strstr(ask(SDPA_VERSION(9, 10, 1), HOPPER, false, usual), "9.10.2"));
}

static void partial_tiles_backward(void **state) {
	(void)state;
	assert_true(refused(SDPA_VERSION(9, 15, 0), HOPPER, true, of_tokens(1000)));
	assert_true(refused(SDPA_VERSION(9, 1, 0), AMPERE, true, of_tokens(64)));
	assert_false(refused(SDPA_VERSION(9, 15, 1), HOPPER, true, of_tokens(1000)));
	assert_false(refused(SDPA_VERSION(9, 15, 0), HOPPER, false, of_tokens(1000)));
	assert_false(refused(SDPA_VERSION(9, 15, 0), HOPPER, true, of_tokens(1024)));
	assert_false(refused(SDPA_VERSION(9, 15, 0), HOPPER, true, of_tokens(128)));
}

static void new_devices(void **state) {
	(void)state;
	for (int backward = 0; backward < 2; backward++) {
		assert_true(refused(SDPA_VERSION(9, 6, 0), BLACKWELL, backward, usual));
		assert_true(refused(SDPA_VERSION(9, 1, 0), BLACKWELL_PC, backward, usual));
		assert_false(refused(SDPA_VERSION(9, 7, 0), BLACKWELL_PC, backward, usual));
		assert_false(refused(SDPA_VERSION(9, 6, 0), HOPPER, backward, usual));
	}
}

static void many_sequences(void **state) {
	(void)state;
	struct attention_shape s = usual;
	s.b = 65535;
	assert_false(refused(SDPA_VERSION(9, 19, 0), HOPPER, true, s));
	s.b = 65536;
	assert_true(refused(SDPA_VERSION(9, 19, 0), HOPPER, true, s));
}

static void zeroed_sums(void **state) {
	(void)state;
	assert_true(sdpa_wants_zeroed_sums(SDPA_VERSION(9, 0, 0)));
	assert_true(sdpa_wants_zeroed_sums(SDPA_VERSION(9, 5, 1)));
	assert_false(sdpa_wants_zeroed_sums(SDPA_VERSION(9, 6, 0)));
	assert_false(sdpa_wants_zeroed_sums(SDPA_VERSION(9, 19, 0)));
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(single_token),           cmocka_unit_test(broken_releases),
									   cmocka_unit_test(partial_tiles_backward), cmocka_unit_test(new_devices),
									   cmocka_unit_test(many_sequences),         cmocka_unit_test(zeroed_sums)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
