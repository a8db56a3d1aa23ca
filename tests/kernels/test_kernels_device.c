/* test_kernels_device.c: what --device may say, and what becomes of it where there is no GPU. */

#include "kernels/device.h"
#include "kernels/plugin.h"
#include "kernels/plugins.h"
#include "tests/common/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void refused(const char *text, enum rv_err want, const char *needle) {
	struct device_choice c;
	struct rv_errtext et = {0};
	assert_int_equal(device_parse(text, &c, &et), want);
	if (!strstr(et.text, needle))
		fail_msg("\"%s\" does not name %s", et.text, needle);
}

static void test_words(void **state) {
	(void)state;
	struct device_choice c;
	assert_int_equal(device_parse("auto", &c, NULL), RV_OK);
	assert_true(c.automatic && c.n == 1);
	assert_int_equal(device_parse("cpu", &c, NULL), RV_OK);
	assert_true(!c.automatic && c.n == 1 && strcmp(c.backend, "cpu") == 0);
	assert_int_equal(device_parse("cpu:3", &c, NULL), RV_OK);
	assert_true(c.n == 3 && c.index[2] == 2);
	assert_int_equal(device_parse("cuda", &c, NULL), RV_OK);
	assert_true(c.n == 1 && c.index[0] == 0 && strcmp(c.backend, "cuda") == 0);
	assert_int_equal(device_parse("cuda:2,0", &c, NULL), RV_OK);
	assert_true(c.n == 2 && c.index[0] == 2 && c.index[1] == 0);
	assert_int_equal(device_parse("ref", &c, NULL), RV_OK);
}

static void test_words_that_cannot_be(void **state) {
	(void)state;
	static const char *const bad[] = {"",      "gpu",    "CUDA",    "cpu:",    "cpu:x",    "cpu:2x",
									  "cuda:", "cuda:,", "cuda:1,", "cuda:-1", "cuda:0;1", "cuda:0,x"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		refused(bad[i], RV_E_INVALID, "must be auto");
	refused("cpu:0", RV_E_RANGE, "1 to 16");
	refused("cpu:17", RV_E_RANGE, "1 to 16");
	refused("cuda:1,1", RV_E_INVALID, "twice");
	refused("cuda:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", RV_E_RANGE, "at most 16");
}

/* The environment names a plugin that is not there: as on a machine without one. */
static void test_without_a_gpu(void **state) {
	(void)state;
	struct device_choice c;
	struct rv_errtext et = {0};
	assert_int_equal(device_choose("auto", &c, &et), RV_OK);
	assert_string_equal(c.backend, "cpu");
	assert_non_null(strstr(c.why_not_gpu, "/nonexistent/plugin.so"));
	assert_int_equal(device_choose("cuda:1", &c, &et), RV_E_NOTFOUND);
	assert_non_null(strstr(et.text, "/nonexistent/plugin.so"));
	assert_non_null(strstr(et.text, "--device cpu"));
	assert_int_equal(device_choose("cpu", &c, &et), RV_OK);
	assert_string_equal(c.why_not_gpu, "");
	assert_true(device_free_bytes(&c) == SIZE_MAX);
}

static void test_processors_are_divided(void **state) {
	(void)state;
	struct device_choice c;
	struct backend *be;
	const struct backend_options opt = {.threads = 5, .isa = "auto"};
	assert_int_equal(device_choose("cpu:2", &c, NULL), RV_OK);
	assert_int_equal(device_open(&c, 1, &opt, &be, NULL), RV_OK);
	assert_in_range(be->threads, 1, 2);
	backend_close(be);
}

static void a_kind_names_how_many_and_not_which(void **state) {
	static const char *const texts[][2] = {{"cpu", "cpu"},     {"cpu:1", "cpu"},         {"cpu:3", "cpu:3"},
										   {"cuda:2", "cuda"}, {"cuda:5,2", "cuda:0,1"}, {"cuda:0,1", "cuda:0,1"},
										   {"ref", "ref"}};
	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct device_choice c;
		char kind[DEVICE_TEXT_BYTES];
		assert_int_equal(device_parse(texts[i][0], &c, NULL), RV_OK);
		device_kind(&c, kind);
		assert_string_equal(kind, texts[i][1]);
	}
}
/* All that depends on the kind of a GPU follows from its line in the registry. */
static void every_plugin_is_known_without_being_loaded(void **state) {
	(void)state;
	const struct step_bounds s = {.b = 1, .t = 8, .c = 32, .widest = 128, .v = 256, .vp = 256, .losses = 8};
	for (int i = 0; plugin_entries[i]; i++) {
		const struct plugin_entry *entry = plugin_entries[i];
		char text[DEVICE_TEXT_BYTES];
		struct device_choice c;
		struct step_memory m;
		snprintf(text, sizeof text, "%s:1,0", entry->name);
		assert_int_equal(device_parse(text, &c, NULL), RV_OK);
		assert_true(strcmp(c.backend, entry->name) == 0 && c.n == 2 && device_is_gpu(&c));
		assert_string_equal(device_maker(&c), entry->maker);
		assert_true(backend_faster_dtype(entry->name, "auto") == DTYPE_BF16);
		assert_int_equal(backend_step_memory(entry->name, DTYPE_BF16, &s, &m, NULL), RV_OK);
		assert_true(m.n > 0);
		assert_true(entry->file && entry->environment && entry->driver && entry->reads);
	}
	for (int i = 0; backend_registry[i]; i++)
		assert_false(backend_is_gpu(backend_registry[i]->name));
}

static void a_backend_without_a_plugin_has_none(void **state) {
	(void)state;
	const struct backend_plugin *p;
	struct rv_errtext et = {0};
	assert_int_equal(plugin_load("cpu", &p, &et), RV_E_NOTFOUND);
	assert_non_null(strstr(et.text, "\"cpu\" comes with no plugin"));
	assert_null(p);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_words_that_cannot_be),
		cmocka_unit_test(test_without_a_gpu),
		cmocka_unit_test(test_processors_are_divided),
		cmocka_unit_test(a_kind_names_how_many_and_not_which),
		cmocka_unit_test(every_plugin_is_known_without_being_loaded),
		cmocka_unit_test(a_backend_without_a_plugin_has_none),
	};
	(void)setenv("RIVULET_CUDA_PLUGIN", "/nonexistent/plugin.so", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
