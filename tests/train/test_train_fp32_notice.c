/* test_train_fp32_notice.c: fp32 on a GPU is logged once with its cost and what changes it; nothing
 * else is. */
#include "tests/train/train_fixture.h"

#include "train/fp32_notice.h"

#include <stdio.h>
#include <string.h>

enum { EVENT_BYTES = 2048 };

static void notice(const char *backend, const char *dtype, char said[EVENT_BYTES]) {
	const struct device_choice device = {.backend = backend, .n = 1};
	struct run_config cfg = fixture_config();
	FILE *f = tmpfile();
	struct rv_events *ev;
	assert_non_null(f);
	const struct rv_events_config c = {.out = f, .json = true, .level = RV_INFO};
	assert_int_equal(rv_events_new(&c, &ev, NULL), RV_OK);
	(void)rv_options_set(run_config_options, &cfg, "dtype", dtype, NULL);
	fp32_notice(ev, &cfg, &device, "This is what changes it");
	rv_events_free(ev);
	rewind(f);
	said[fread(said, 1, EVENT_BYTES - 1, f)] = '\0';
	(void)fclose(f);
}

static void test_fp32_on_a_gpu(void **state) {
	(void)state;
	char said[EVENT_BYTES];
	notice("cuda", "fp32", said);
	assert_non_null(strstr(said, "\"event\":\"fp32_on_gpu\""));
	assert_non_null(strstr(said, "\"times_slower\":"));
	assert_non_null(strstr(said, "This is what changes it"));
	assert_null(strstr(strchr(said, '\n') + 1, "fp32")); /* one line */
}

static void test_nothing_else(void **state) {
	(void)state;
	static const char *const cases[][2] = {{"cuda", "bf16"}, {"cuda", "auto"}, {"cpu", "fp32"}, {"ref", "fp32"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char said[EVENT_BYTES];
		notice(cases[i][0], cases[i][1], said);
		assert_string_equal(said, "");
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fp32_on_a_gpu),
		cmocka_unit_test(test_nothing_else),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
