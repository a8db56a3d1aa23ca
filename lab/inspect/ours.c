/* ours.c: other files of Rivulet: configurations, a coordinator's directory, sweeps, traces. */
#include "lab/inspect/inspect.h"

#include "base/file.h"
#include "base/json_limits.h"
#include "base/option_value.h"
#include "lab/options/train_options.h"
#include "lab/report/clean_text.h"
#include "lab/worker_files/trace_read.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	LISTEN_BYTES_MAX = 512,
	CELL_BYTES_MAX = 64 << 10,
	CELL_CONTAINERS = 16,
	CELL_VALUES = 2048,
	SUMMARY_BYTES_MAX = 16 << 20,
	STATE_BYTES = 24
};

/* ---- run.conf ---- */

/* Returns the options that differ from their defaults. */
static json_t *chosen_options(const struct rv_option *table, const struct train_options *o) {
	struct train_options usual = {.run = {.seed = 0}};
	json_t *chosen = json_object();
	rv_options_defaults(table, &usual);
	for (; table->name; table++) {
		char value[RV_OPTION_TEXT_BYTES], other[RV_OPTION_TEXT_BYTES] = "";
		if (!rv_option_value_is_set(table, o))
			continue;
		rv_option_value_print(table, o, value);
		if (rv_option_value_is_set(table, &usual))
			rv_option_value_print(table, &usual, other);
		if (strcmp(value, other) != 0)
			json_object_set_new(chosen, table->name, json_string(value));
	}
	return chosen;
}

enum rv_err inspect_run_conf(const char *path, json_t *facts, struct rv_errtext *et) {
	struct rv_option table[TRAIN_OPTIONS_MAX];
	struct train_options o = {.run = {.seed = 0}};
	struct rv_errtext why = {0};
	train_options_table(table, TRAIN_OPTIONS_MAX);
	rv_options_defaults(table, &o);
	RV_TRY(rv_options_parse_file(table, model_presets, &o, path, et));
	inspect_put_model(facts, &o.run);
	if (global_check_run(&o.run, &why) != RV_OK)
		json_object_set_new(facts, "not_usable", json_string(why.text));
	json_object_set_new(facts, "other_than_default", chosen_options(table, &o));
	return RV_OK;
}

/* ---- a coordinator's directory ---- */

static void put_bytes_of(const char *dir, const char *file, const char *key, json_t *facts) {
	char path[PATH_MAX];
	struct stat st;
	if (snprintf(path, sizeof path, "%s/%s", dir, file) < (int)sizeof path && stat(path, &st) == 0)
		json_object_set_new(facts, key, json_integer(st.st_size));
}

static void put_listen(const char *dir, json_t *facts) {
	char path[PATH_MAX];
	uint8_t *text;
	size_t n;
	if (snprintf(path, sizeof path, "%s/listen", dir) >= (int)sizeof path ||
		rv_file_read(path, LISTEN_BYTES_MAX, &text, &n, NULL) != RV_OK)
		return;
	text[strcspn((char *)text, "\n")] = '\0';
	clean_text((char *)text);
	json_object_set_new(facts, "last_reached_at", json_string((const char *)text));
	free(text);
}

enum rv_err inspect_coordinator(const char *path, json_t *facts, struct rv_errtext *et) {
	(void)et;
	put_listen(path, facts);
	put_bytes_of(path, "store.db", "store_bytes", facts);
	put_bytes_of(path, "rounds.jsonl", "rounds_bytes", facts);
	json_object_set_new(facts, "next", json_sprintf("rivulet-coordinator status --dir %s", path));
	return RV_OK;
}

/* ---- sweeps ---- */

/* Writes the second of a line's values. */
static bool state_of_line(const char *line, char out[STATE_BYTES]) {
	const char *comma = strchr(line, ',');
	size_t n = comma ? strspn(comma + 1, "abcdefghijklmnopqrstuvwxyz") : 0;
	if (n == 0 || n >= STATE_BYTES)
		return false;
	snprintf(out, STATE_BYTES, "%.*s", (int)n, comma + 1);
	return true;
}

static json_t *count_states(char *text) {
	json_t *counts = json_object();
	char *rest = text;
	(void)strsep(&rest, "\n"); /* the header */
	for (char *line; (line = strsep(&rest, "\n"));) {
		char state[STATE_BYTES];
		if (state_of_line(line, state))
			json_object_set_new(counts, state, json_integer(json_integer_value(json_object_get(counts, state)) + 1));
	}
	return counts;
}

enum rv_err inspect_sweep(const char *path, json_t *facts, struct rv_errtext *et) {
	char file[PATH_MAX];
	uint8_t *text;
	size_t n;
	if (snprintf(file, sizeof file, "%s/" INSPECT_SWEEP_FILE, path) >= (int)sizeof file)
		return rv_fail(et, RV_E_RANGE, "%.100s...: longer than a path may be", path);
	RV_TRY(rv_file_read(file, SUMMARY_BYTES_MAX, &text, &n, et));
	json_object_set_new(facts, "cells", count_states((char *)text));
	json_object_set_new(facts, "next", json_sprintf("rivulet report %s", path));
	free(text);
	return RV_OK;
}

enum rv_err inspect_sweep_cell(const char *path, json_t *facts, struct rv_errtext *et) {
	static const char *const keys[] = {"id", "replicas_mode", "section", "axes", "options"};
	uint8_t *text;
	size_t n;
	RV_TRY(rv_file_read(path, CELL_BYTES_MAX, &text, &n, et));
	enum rv_err e = rv_json_check_limits(text, n, CELL_CONTAINERS, CELL_VALUES, et);
	json_t *all = e == RV_OK ? json_loadb((const char *)text, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
	free(text);
	if (!all)
		return rv_fail(et, RV_E_CORRUPT, "%s: not what a sweep writes", path);
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		json_t *value = json_object_get(all, keys[i]);
		if (value)
			json_object_set(facts, keys[i], value);
	}
	json_decref(all);
	return RV_OK;
}

/* ---- a worker's trace ---- */

enum rv_err inspect_trace(const char *path, json_t *facts, struct rv_errtext *et) {
	struct trace_record t;
	json_int_t starts = 0, applied = 0;
	RV_TRY(trace_read(path, &t, et));
	for (int i = 0; i < t.n; i++) {
		starts += t.events[i].kind == TRACE_START;
		applied += t.events[i].kind == TRACE_APPLY;
	}
	json_object_set_new(facts, "member", json_integer(t.member));
	json_object_set_new(facts, "threads", json_integer(t.threads));
	json_object_set_new(facts, "events", json_integer(t.n));
	json_object_set_new(facts, "starts", json_integer(starts));
	json_object_set_new(facts, "rounds_applied", json_integer(applied));
	trace_record_release(&t);
	return RV_OK;
}
