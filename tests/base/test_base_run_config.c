/* test_base_run_config.c: the defaults, the bounds of every field, what spans fields, and the
 * canonical text. */

#include "base/presets.h"
#include "base/run_audits.h"
#include "base/run_config.h"
#include "base/run_config_idle.h"
#include "tests/common/check.h"

#include <stdio.h>
#include <string.h>

static void assert_fault(enum rv_err got, enum rv_err want, const struct rv_errtext *et, const char *needle) {
	assert_string_equal(rv_err_name(got), rv_err_name(want));
	if (!strstr(et->text, needle))
		fail_msg("\"%s\" does not say \"%s\"", et->text, needle);
}

static void test_defaults_are_valid_and_the_demo(void **state) {
	(void)state;
	struct run_config c;
	run_config_defaults(&c);
	assert_ok(run_config_validate(&c, &et));
	assert_int_equal(c.model, MODEL_gpt2);
	assert_int_equal(c.steps_per_round, 30);
	assert_true(c.rounds >= 30);
	assert_int_equal(c.codec, CODEC_int8);
	assert_int_equal(c.dtype, RUN_DTYPE_AUTO); /* bf16 where it is fast: fp32 costs a GPU most of its speed */
	assert_int_equal(c.outer, OUTER_nesterov);
	assert_int_equal(c.late, RUN_LATE_KEEP);
}

/* What suits the optimizer, unless the user says something: which 0 is, too. */
static void test_outer_defaults_follow_the_optimizer(void **state) {
	(void)state;
	static const struct {
		enum outer_choice outer;
		double lr, momentum;
	} want[] = {{OUTER_nesterov, 0.9, 0.6}, {OUTER_sgd, 1, 0.9},      {OUTER_average, 1, 0.9},
				{OUTER_adam, 0.005, 0.9},   {OUTER_yogi, 0.005, 0.9}, {OUTER_adagrad, 0.03, 0.9}};
	struct run_config c;
	struct rv_errtext et = {0};
	run_config_defaults(&c);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		c.outer = want[i].outer;
		c.outer_lr = c.outer_momentum = RUN_CONFIG_AUTO;
		assert_true(run_config_outer_lr(&c) == want[i].lr && run_config_outer_momentum(&c) == want[i].momentum);
		c.outer_lr = c.outer_momentum = 0;
		assert_true(run_config_outer_lr(&c) == 0 && run_config_outer_momentum(&c) == 0);
	}
	c.outer_lr = -0.5;
	assert_int_equal(run_config_validate(&c, &et), RV_E_RANGE);
	assert_non_null(strstr(et.text, "outer-lr = -0.5: must be at least 0, or -1"));
}

/* Names that earlier versions had are unknown, like any other. */
static void test_removed_names_are_unknown(void **state) {
	(void)state;
	static const char *const removed[][2] = {
		{"codec = int2\n", "did you mean int8?"},
		{"codec = e3m0\n", "codec = e3m0"},
		{"codec = q6sigma\n", "codec = q6sigma"},
		{"codec = topk64_fp32\n", "must be one of int8|int16|fp32|int4|topk32"},
		{"mean-codec = int2\n", "did you mean"},
		{"rounding = stochastic\n", "rounding: unknown option"},
	};
	struct run_config c;
	for (size_t i = 0; i < sizeof removed / sizeof *removed; i++) {
		struct rv_errtext et = {0};
		assert_fault(run_config_parse(&c, "run.conf", removed[i][0], &et), RV_E_INVALID, &et, removed[i][1]);
	}
}

/* A rule that leaves out the extremes needs rounds of which something is left. */
static void test_trimming_takes_workers(void **state) {
	(void)state;
	struct run_config c;
	struct idle_text room;
	struct rv_errtext et = {0};
	static const struct {
		const char *text, *says;
	} refused[] = {
		{"merge = trimmed\n", "min-workers = 1: needs at least 3 workers"},
		{"merge = trimmed\nmin-workers = 2\ntrim-share = 0.5\n", "needs at least 3 workers"},
		{"merge = trimmed\nmin-workers = 9\ntrim-share = 0.6\n", "trim-share"},
		{"merge = trimed\n", "did you mean trimmed?"},
	};
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		assert_int_not_equal(run_config_parse(&c, "run.conf", refused[i].text, &et), RV_OK);
		assert_non_null(strstr(et.text, refused[i].says));
	}
	assert_int_equal(run_config_parse(&c, "run.conf", "merge = trimmed\nmin-workers = 3\n", &et), RV_OK);
	assert_int_equal(c.merge, MERGE_trimmed);
	assert_string_equal(run_config_idle(&c, "outer-clip", &room), "merge = clipped, centered or agreed");
	assert_null(run_config_idle(&c, "trim-share", &room));
	run_config_defaults(&c);
	assert_int_equal(c.merge, MERGE_clipped);
	assert_string_equal(run_config_idle(&c, "trim-share", &room), "merge = trimmed");
	assert_int_equal(run_config_parse(&c, "run.conf", "merge = agreed\nprobation = 4\n", &et), RV_OK);
}

/* The text of a run says what will happen, whatever later versions take for suitable. */
static void test_resolved_is_what_auto_meant(void **state) {
	(void)state;
	static const char *const codecs[][2] = {
		{"int8", "int8"}, {"int16", "int16"}, {"fp32", "fp32"}, {"int4", "int4"}, {"topk64", "int8"}};
	struct run_config c, again;
	for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
		run_config_defaults(&c);
		(void)rv_options_set(run_config_options, &c, "codec", codecs[i][0], NULL);
		c.outer = OUTER_adam;
		run_config_resolve(&c);
		assert_true(c.outer_lr == 0.005 && c.outer_momentum == 0.9);
		assert_string_equal(codec_facts[run_config_mean_codec(&c)].name, codecs[i][1]);
		again = c;
		run_config_resolve(&again);
		assert_memory_equal(&again, &c, sizeof c);
		c.mean_codec = MEAN_CODEC_fp32;
		c.outer_lr = 0;
		run_config_resolve(&c);
		assert_int_equal(c.mean_codec, MEAN_CODEC_fp32);
		assert_true(c.outer_lr == 0);
	}
}

static void test_canonical_text_parses_back_to_the_same_run(void **state) {
	(void)state;
	struct run_config c, parsed;
	run_config_defaults(&c);
	c.lr = 1.0 / 3;
	c.seed = 9007199254740991;
	c.weight_by_tokens = true;
	char text[8192], again[8192];
	assert_true(rv_options_print(run_config_options, &c, text, sizeof text) < sizeof text);
	assert_ok(run_config_parse(&parsed, "run.conf", text, &et));
	assert_true(parsed.lr == c.lr);
	assert_int_equal(parsed.seed, c.seed);
	rv_options_print(run_config_options, &parsed, again, sizeof again);
	assert_string_equal(text, again);
}

/* Every number of the table refuses what is just outside its bounds, with its name and the
 * bound. */
static void test_every_number_is_bounded(void **state) {
	(void)state;
	int n = 0;
	for (const struct rv_option *o = run_config_options; o->name; o++) {
		if (o->type != RV_OPT_INT && o->type != RV_OPT_DOUBLE && o->type != RV_OPT_DURATION_MS)
			continue;
		assert_true(o->min < o->max);
		struct run_config c;
		char line[128];
		bool real = o->type == RV_OPT_DOUBLE;
		const double outside[] = {o->max + (real ? 1 : 2), o->min - 1};
		for (int i = 0; i < 2; i++) {
			struct rv_errtext et = {0};
			snprintf(line, sizeof line, "%s = %.17g\n", o->name, outside[i]);
			enum rv_err e = run_config_parse(&c, "run.conf", line, &et);
			if (e == RV_OK || !strstr(et.text, o->name))
				fail_msg("%s: accepted, or not named: \"%s\"", line, et.text);
		}
		n++;
	}
	assert_true(n >= 25);
}

/* Each with the next step. */
static void test_what_late_updates_do_not_go_with(void **state) {
	(void)state;
	static const struct {
		const char *text, *needle;
	} bad[] = {
		{"updates = eager\n", "give 1 / the number of workers"},
		{"updates = eager\neager-share = 0.5\nouter = adam\n",
		 "outer = nesterov, sgd or average, or updates = delayed"},
		{"updates = delayed\noverlap-steps = 3\n", "leave overlap-steps at 0"},
		{"updates = delayed\nlate = discard\n", "with late = discard"},
		{"updates = delayed\nfragments = 2\n", "updates = delayed with fragments"},
		{"updates = eager\neager-share = 1\nmix = 0.5\n", "updates = eager with mix"},
		{"updates = eager\neager-share = 1\nround-ms = 5s\n", "round-ms"},
	};
	static const char *const good[] = {"updates = delayed\nouter = adam\n", "updates = eager\neager-share = 0.25\n",
									   "updates = eager\neager-share = 1\nouter = sgd\nerror-feedback = 0.9\n"};
	struct run_config c;
	struct rv_errtext et = {0};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_int_not_equal(run_config_parse(&c, "run.conf", bad[i].text, &et), RV_OK);
		if (!strstr(et.text, bad[i].needle))
			fail_msg("\"%s\" does not say \"%s\"", et.text, bad[i].needle);
	}
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		assert_int_equal(run_config_parse(&c, "run.conf", good[i], &et), RV_OK);
		assert_true(run_config_is_late(&c));
		assert_int_equal(run_config_overlap(&c), c.steps_per_round);
	}
	run_config_defaults(&c);
	assert_false(run_config_is_late(&c));
	c.overlap_steps = 3;
	assert_int_equal(run_config_overlap(&c), 3);
}

static void test_what_spans_fields(void **state) {
	(void)state;
	static const struct {
		const char *text, *needle;
	} bad[] = {
		{"n-embd = 100\nn-head = 3\n", "not a multiple of n-head"},
		{"batch = 8192\ncontext = 8192\n", "lower batch"},
		{"batch = 4096\ncontext = 256\nn-embd = 16384\n", "lower batch"},
		{"chunk-elems = 1000\n", "multiple of 256"},
		{"n-layer = 2\nfragments = 4\n", "at most n-layer + 1 = 3"},
		{"n-layer = 4\nfragments = 4\nrounds = 3\n", "so 1 of them would never be exchanged"},
		{"rope-scaling = llama3\nrope-low-freq = 4\nrope-high-freq = 1\n", "rope-low-freq"},
		{"n-head = 4\nn-kv-head = 3\n", "not a multiple of n-kv-head"},
		{"batch = 4096\ncontext = 256\nn-inner = 65536\n", "lower batch"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct run_config c, before;
		memset(&c, 7, sizeof c);
		before = c;
		struct rv_errtext et = {0};
		assert_fault(run_config_parse(&c, "run.conf", bad[i].text, &et), RV_E_RANGE, &et, bad[i].needle);
		assert_non_null(strstr(et.text, "run.conf"));
		assert_memory_equal(&c, &before, sizeof c);
	}
}

static void test_unknown_and_malformed_lines(void **state) {
	(void)state;
	struct run_config c;
	struct rv_errtext et = {0};
	assert_fault(run_config_parse(&c, "run.conf", "n-layers = 3\n", &et), RV_E_INVALID, &et, "n-layer");
	assert_fault(run_config_parse(&c, "run.conf", "late = perhaps\n", &et), RV_E_INVALID, &et, "late");
	assert_fault(run_config_parse(&c, "run.conf", "lr = nan\n", &et), RV_E_INVALID, &et, "lr");
	assert_fault(run_config_parse(&c, "run.conf", "init-hash = 12ab\n", &et), RV_E_INVALID, &et, "init-hash");
	assert_fault(run_config_parse(&c, "run.conf", "tokenizer-hash = x\n", &et), RV_E_INVALID, &et, "64 hex digits");
	assert_fault(run_config_parse(&c, "run.conf", "data-hash = 12\n", &et), RV_E_INVALID, &et,
				 "data-hash = 12: must be");
#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"
	assert_fault(run_config_parse(&c, "run.conf", "data-shards = 7\ndata-hash = " HASH, &et), RV_E_INVALID, &et,
				 "leave data-shards out");
	assert_fault(run_config_parse(&c, "run.conf", "data-from = all\n", &et), RV_E_INVALID, &et, "published|own");
	assert_fault(run_config_parse(&c, "run.conf", "rounds = 3\nrounds = 4\n", &et), RV_E_INVALID, &et, "rounds");
}

/* By the table: an option of the group "Model" that is added later must be taken too. */
static void test_taking_the_model_takes_its_whole_group(void **state) {
	(void)state;
	struct run_config c, from;
	run_config_defaults(&c);
	run_config_defaults(&from);
	for (const struct rv_option *o = run_config_options; o->name; o++) {
		char value[32];
		const char *last = o->choices ? strrchr(o->choices, '|') : NULL;
		const char *text = o->type == RV_OPT_BOOL ? "no" : last ? last + 1 : o->choices;
		if (o->type == RV_OPT_STRING)
			continue;
		if (!text) {
			snprintf(value, sizeof value, "%.17g", o->type == RV_OPT_DOUBLE ? o->max / 2 : o->max);
			text = value;
		}
		assert_int_equal(rv_options_set(run_config_options, &from, o->name, text, NULL), RV_OK);
	}
	run_config_take_model(&c, &from);
	char taken[16384], all[16384];
	rv_options_print(run_config_options, &c, taken, sizeof taken);
	rv_options_print(run_config_options, &from, all, sizeof all);
	for (const struct rv_option *o = run_config_options; o->name; o++) {
		char name[64];
		snprintf(name, sizeof name, "%s = ", o->name);
		const char *line = strstr(taken, name), *other = strstr(all, name);
		assert_true(line && other);
		size_t n = strcspn(other, "\n");
		bool same = strcspn(line, "\n") == n && strncmp(line, other, n) == 0;
		if (strcmp(o->group, "Model") == 0 && !same)
			fail_msg("%s is not taken", o->name);
	}
}

static void test_every_preset_is_a_run(void **state) {
	(void)state;
	for (const struct rv_preset *p = run_presets; p->name; p++) {
		struct run_config c;
		struct rv_errtext et = {0};
		if (run_config_parse(&c, p->name, p->text, &et) != RV_OK)
			fail_msg("%s", et.text);
	}
}

/* What it checks finds something, once the run has a text. */
static void test_strangers_can_be_audited(void **state) {
	(void)state;
	const struct rv_preset *preset;
	struct run_config c;
	assert_int_equal(rv_preset_find(run_presets, "strangers", &preset, NULL), RV_OK);
	assert_int_equal(run_config_parse(&c, preset->name, preset->text, NULL), RV_OK);
	assert_true(c.audit_chunks > 0 && c.audit_training > 0 && c.audit_rollback);
	assert_int_equal(run_audits_check(&c, true, NULL), RV_OK);
	assert_true(c.probation > 0 && c.ownership == OWNERSHIP_EQUAL);
	assert_int_equal(c.slow_members, SLOW_SKIP); /* else one slow line makes all wait */
	c.audit_repeat = 0.25;
	struct rv_errtext et;
	assert_int_equal(run_audits_check(&c, true, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "slow-members = wait"));
	c.slow_members = SLOW_WAIT;
	assert_int_equal(run_audits_check(&c, true, NULL), RV_OK);
}

/* It can be named beside every model. */
static void test_strangers_go_with_every_model(void **state) {
	(void)state;
	const struct rv_preset *strangers;
	assert_int_equal(rv_preset_find(run_presets, "strangers", &strangers, NULL), RV_OK);
	for (const struct rv_preset *p = model_presets; p->name; p++)
		assert_int_equal(rv_presets_agree(p, strangers, NULL), RV_OK);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults_are_valid_and_the_demo),
		cmocka_unit_test(test_outer_defaults_follow_the_optimizer),
		cmocka_unit_test(test_removed_names_are_unknown),
		cmocka_unit_test(test_trimming_takes_workers),
		cmocka_unit_test(test_resolved_is_what_auto_meant),
		cmocka_unit_test(test_canonical_text_parses_back_to_the_same_run),
		cmocka_unit_test(test_every_number_is_bounded),
		cmocka_unit_test(test_what_spans_fields),
		cmocka_unit_test(test_what_late_updates_do_not_go_with),
		cmocka_unit_test(test_unknown_and_malformed_lines),
		cmocka_unit_test(test_every_preset_is_a_run),
		cmocka_unit_test(test_strangers_can_be_audited),
		cmocka_unit_test(test_strangers_go_with_every_model),
		cmocka_unit_test(test_taking_the_model_takes_its_whole_group),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
