/* ours.c: other files of Rivulet: configurations, a coordinator's directory, sweeps, traces. */
#include "lab/inspect/inspect.h"

#include "base/bytes.h"
#include "base/clean_text.h"
#include "base/file.h"
#include "base/json_limits.h"
#include "base/option_value.h"
#include "coordinator/backup/backup_file.h"
#include "coordinator/store/schema.h"
#include "lab/options/train_options.h"
#include "lab/worker_files/facts.h"
#include "lab/worker_files/trace_read.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
		char value[RV_OPTION_TEXT_BYTES];
		if (!rv_option_value_is_set(table, o) || rv_option_value_same(table, o, &usual))
			continue;
		rv_option_value_print(table, o, value);
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
	RV_TRY(rv_options_parse_file(table, run_presets, &o, path, et));
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

/* ---- a store, alone or in a backup ---- */

/* An SQLite file has its user_version and application_id, big-endian, at bytes 60 and 68
 * (sqlite.org/fileformat2.html, section 1.3); a backup ends with coordinator/backup/backup_file.h's
 * seal, whose secret key is not read. */
enum {
	SQLITE_HEADER_BYTES = 100,
	SQLITE_VERSION_AT = 60,
	SQLITE_APPLICATION_AT = 68,
	SEAL_END_BYTES = BACKUP_FILE_SEAL_BYTES - RUN_KEYS_BYTES
};

static uint32_t big_endian(const uint8_t *at) {
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static enum rv_err read_ends(const char *path, uint8_t head[SQLITE_HEADER_BYTES], uint8_t seal[SEAL_END_BYTES],
							 struct rv_errtext *et) {
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return rv_fail_errno(et, errno, "%s: cannot open for reading", path);
	const off_t end = lseek(fd, 0, SEEK_END);
	const bool ok = end >= SQLITE_HEADER_BYTES && rv_read_at(fd, head, SQLITE_HEADER_BYTES, 0) == SQLITE_HEADER_BYTES &&
					rv_read_at(fd, seal, SEAL_END_BYTES, (uint64_t)end - SEAL_END_BYTES) == SEAL_END_BYTES;
	(void)close(fd);
	return ok ? RV_OK : rv_fail(et, RV_E_CORRUPT, "%s: cut short, or it cannot be read", path);
}

enum rv_err inspect_store(const char *path, json_t *facts, struct rv_errtext *et) {
	uint8_t head[SQLITE_HEADER_BYTES], seal[SEAL_END_BYTES];
	RV_TRY(read_ends(path, head, seal, et));
	if (big_endian(head + SQLITE_APPLICATION_AT) != STORE_APPLICATION_ID)
		return rv_fail(et, RV_E_INVALID, "%s: an SQLite file, but not a store or a backup of rivulet-coordinator",
					   path);
	struct rv_reader r = rv_reader_of(seal, sizeof seal);
	const uint32_t sealed = rv_read_u32(&r);
	const bool backup =
		memcmp(rv_read_span(&r, BACKUP_FILE_MAGIC_BYTES), BACKUP_FILE_MAGIC, BACKUP_FILE_MAGIC_BYTES) == 0;
	facts_put(facts, "{ss}", "sort",
			  backup ? "backup of a run, with its secret key" : "store of a run: members, tokens and commits");
	facts_put_version(facts, big_endian(head + SQLITE_VERSION_AT), STORE_SCHEMA_VERSION);
	if (backup && sealed > BACKUP_FILE_VERSION)
		facts_put_version(facts, sealed, BACKUP_FILE_VERSION);
	json_object_set_new(facts, "next",
						backup ? json_sprintf("rivulet-coordinator restore %s --dir DIR", path)
							   : json_sprintf("rivulet-coordinator status --dir %.*s",
											  (int)(strrchr(path, '/') ? strrchr(path, '/') - path : 1),
											  strrchr(path, '/') ? path : "."));
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
	facts_put(facts, "{sI si si sI sI}", "member", (json_int_t)t.member, "threads", t.threads, "events", t.n, "starts",
			  starts, "rounds_applied", applied);
	trace_record_release(&t);
	return RV_OK;
}
