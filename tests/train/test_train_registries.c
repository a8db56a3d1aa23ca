/* test_train_registries.c: the names that a run's configuration accepts are exactly those that a
 * worker can look up. */
#include "base/run_config.h"
#include "outer/codec.h"
#include "outer/merge.h"
#include "outer/optimizer.h"
#include "tests/common/check.h"
#include "train/inner.h"
#include "train/model/model.h"

#include <stdio.h>
#include <string.h>

enum { NAMES_BYTES = 256 };

static const char *choices_of(const char *option) {
	for (const struct rv_option *o = run_config_options; o->name; o++)
		if (strcmp(o->name, option) == 0)
			return o->choices;
	return NULL;
}

static void add(char *names, const char *name) {
	size_t n = strlen(names);
	snprintf(names + n, NAMES_BYTES - n, "%s%s", n ? "|" : "", name);
}

static void codecs(void **state) {
	(void)state;
	char names[NAMES_BYTES] = "";
	for (const struct codec *const *c = codec_registry; *c; c++)
		add(names, (*c)->name);
	assert_string_equal(choices_of("codec"), names);
}

static void outer_optimizers(void **state) {
	(void)state;
	char names[NAMES_BYTES] = "";
	for (const struct outer_optimizer *const *o = outer_registry; *o; o++)
		add(names, (*o)->name);
	assert_string_equal(choices_of("outer"), names);
}

static void merge_rules(void **state) {
	(void)state;
	char names[NAMES_BYTES] = "";
	for (const struct merge_ops *const *m = merge_registry; *m; m++)
		add(names, (*m)->name);
	assert_string_equal(choices_of("merge"), names);
}

/* `auto` comes first, so that a codec's place is one more. */
static void mean_codecs(void **state) {
	(void)state;
	char names[NAMES_BYTES] = "auto";
	for (const struct codec *const *c = codec_registry; *c; c++)
		add(names, (*c)->name);
	assert_string_equal(choices_of("mean-codec"), names);
}

static void inner_optimizers(void **state) {
	(void)state;
	char names[NAMES_BYTES] = "";
	for (int i = 0; inner_registry[i]; i++) {
		add(names, inner_registry[i]->name);
		assert_string_equal(inner_registry[i]->name, inner_facts[i].name);
	}
	assert_string_equal(choices_of("inner"), names);
}

static void model_families(void **state) {
	(void)state;
	char names[NAMES_BYTES] = "";
	for (int i = 0; model_registry[i]; i++) {
		add(names, model_registry[i]->name);
		assert_string_equal(model_registry[i]->name, model_facts[i].name);
	}
	assert_string_equal(choices_of("model"), names);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codecs),           cmocka_unit_test(mean_codecs),      cmocka_unit_test(merge_rules),
		cmocka_unit_test(outer_optimizers), cmocka_unit_test(inner_optimizers), cmocka_unit_test(model_families),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
