/* Every kind of file is told apart, and its facts are those of its reader. */
#include "tests/lab/worker_dir.h"
#include "tests/train/train_fixture.h"

#include "base/file.h"
#include "base/hex.h"
#include "base/json_lines.h"
#include "coordinator/backup/backup_file.h"
#include "coordinator/store/schema.h"
#include "coordinator/store/sqlite.h"
#include "lab/commands/commands.h"
#include "lab/inspect/inspect.h"
#include "train/files/gguf.h"
#include "train/metrics.h"
#include "train/text/tokenizer/shard.h"
#include "worker/session/trace.h"
#include "worker/state/state_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct fixture_run run;
static char dir[300];
static struct rv_errtext et;

static struct weights_source source(void) {
	return (struct weights_source){.cfg = &run.cfg,
								   .layout = &replica_model(run.replica)->layout,
								   .params = replica_theta(run.replica),
								   .origin = {.round = 5}};
}

static int setup(void **state) {
	(void)state;
	fixture_run_init(&run, NULL, "ref");
	snprintf(dir, sizeof dir, "%s/model", run.dir);
	struct weights_source w = source();
	w.max_file_bytes = 20000;
	return weights_save_directory(dir, &w, &et) == RV_OK ? 0 : -1;
}

static int teardown(void **state) {
	(void)state;
	scratch_remove(dir);
	fixture_run_release(&run);
	return 0;
}

/* The facts of dir/name; checks the kind. */
static json_t *facts_of(const char *name, const char *kind) {
	char path[400];
	json_t *facts;
	snprintf(path, sizeof path, "%s%s%s", name[0] == '/' ? "" : dir, name[0] && name[0] != '/' ? "/" : "", name);
	if (inspect_path(path, &facts, &et) != RV_OK)
		fail_msg("%s", et.text);
	assert_string_equal(json_string_value(json_object_get(facts, "kind")), kind);
	return facts;
}

static json_int_t number(const json_t *facts, const char *key) {
	assert_true(json_is_integer(json_object_get(facts, key)));
	return json_integer_value(json_object_get(facts, key));
}

static const char *string(const json_t *facts, const char *key) {
	assert_true(json_is_string(json_object_get(facts, key)));
	return json_string_value(json_object_get(facts, key));
}

static void test_model_directory(void **state) {
	(void)state;
	const struct model_layout *l = &replica_model(run.replica)->layout;
	struct rv_hash h = weights_hash(replica_theta(run.replica), l->n_params);
	char hex[2 * RV_HASH_BYTES + 1];
	rv_hex_encode(h.b, RV_HASH_BYTES, hex);
	json_t *facts = facts_of("", "model directory");
	assert_string_equal(string(facts, "init-hash"), hex);
	assert_int_equal(number(facts, "files"), 3);
	assert_int_equal(number(facts, "round"), 5);
	assert_int_equal(number(facts, "tensor_count"), l->n_tensors);
	assert_int_equal(number(json_object_get(facts, "model"), "n_embd"), 16);
	assert_int_equal(number(json_object_get(facts, "tokenizer"), "vocab"), 256);
	json_decref(facts);
}

static void test_files_of_a_model(void **state) {
	(void)state;
	json_t *facts = facts_of("config.json", "model configuration");
	assert_string_equal(string(json_object_get(facts, "model"), "family"), "gpt2");
	json_decref(facts);
	facts = facts_of("model.safetensors.index.json", "index of safetensors files");
	assert_int_equal(number(facts, "files"), 3);
	json_decref(facts);
	facts = facts_of("model-00001-of-00003.safetensors", "safetensors");
	json_t *first = json_array_get(json_object_get(facts, "tensors"), 0);
	assert_string_equal(string(first, "name"), "transformer.wte.weight");
	assert_string_equal(string(first, "dtype"), "F32");
	assert_string_equal(string(json_object_get(facts, "metadata"), "format"), "pt");
	assert_non_null(strstr(string(facts, "not_usable"), "has no tensor")); /* a part of a model is no model */
	json_decref(facts);
	facts = facts_of("tokenizer.json", "tokenizer");
	assert_string_equal(string(facts, "sort"), "huggingface");
	assert_int_equal(strlen(string(facts, "tokenizer-hash")), 2 * RV_HASH_BYTES);
	json_decref(facts);
}

static void test_gguf(void **state) {
	(void)state;
	char path[400];
	struct weights_source w = source();
	snprintf(path, sizeof path, "%s/m.gguf", dir);
	assert_int_equal(gguf_save(path, &w, WEIGHTS_BF16, &et), RV_OK);
	json_t *facts = facts_of("m.gguf", "gguf"), *metadata = json_object_get(facts, "metadata");
	assert_string_equal(string(metadata, "general.architecture"), "gpt2");
	assert_int_equal(number(json_object_get(metadata, "tokenizer.ggml.tokens"), "length"), 256);
	assert_int_equal(number(facts, "tensor_count"), w.layout->n_tensors);
	json_decref(facts);
	assert_int_equal(truncate(path, 5000), 0);
	assert_fault(inspect_path(path, &facts, &et), RV_E_CORRUPT, &et, "m.gguf");
}

static void test_tokens(void **state) {
	(void)state;
	char path[400];
	const uint32_t ids[] = {7, 300, 12, 5};
	struct shard_writer s;
	snprintf(path, sizeof path, "%s/t.bin", dir);
	assert_int_equal(shard_writer_begin(&s, path, 512, &et), RV_OK);
	assert_int_equal(shard_writer_append(&s, ids, 4, &et), RV_OK);
	assert_int_equal(shard_writer_commit(&s, &et), RV_OK);
	json_t *facts = facts_of("t.bin", "token shard");
	assert_int_equal(number(facts, "magic"), SHARD_MAGIC_U16);
	assert_int_equal(number(facts, "tokens"), 4);
	assert_int_equal(number(facts, "least_id"), 5);
	assert_int_equal(number(facts, "largest_id"), 300);
	json_decref(facts);
	const uint8_t plain[] = {1, 0, 255, 255};
	fixture_write(dir, "p.bin", plain, sizeof plain, path, sizeof path);
	facts = facts_of("p.bin", "token shard");
	assert_true(json_is_null(json_object_get(facts, "header")));
	assert_int_equal(number(facts, "largest_id"), 65535);
	json_decref(facts);
}

static void test_metrics(void **state) {
	(void)state;
	char path[400];
	struct rv_json_lines *m;
	snprintf(path, sizeof path, "%s/" METRICS_FILE, dir);
	assert_int_equal(rv_json_lines_open(path, false, &m, &et), RV_OK);
	const struct metrics_run line = {.name = "r",
									 .role = "lab",
									 .method = "ddp",
									 .codec = "fp32",
									 .outer = "none",
									 .workers = 4,
									 .n_params = 99,
									 .device = "cpu",
									 .data = "sha256:00"};
	assert_int_equal(metrics_write_run(m, &line, &et), RV_OK);
	rv_json_lines_close(m);
	json_t *facts = facts_of(METRICS_FILE, "metrics");
	assert_string_equal(string(facts, "method"), "ddp");
	assert_int_equal(number(facts, "parameters"), 99);
	assert_string_equal(string(facts, "data"), "sha256:00");
	assert_string_equal(string(facts, "program"), "rivulet " RV_VERSION);
	json_decref(facts);
	static const char early[] = "{\"kind\":\"run\",\"name\":\"r\",\"method\":\"ddp\",\"data\":\"\"}\n";
	fixture_write(dir, METRICS_FILE, (const uint8_t *)early, sizeof early - 1, path, sizeof path);
	facts = facts_of(METRICS_FILE, "metrics");
	assert_null(json_object_get(facts, "program"));
	assert_null(json_object_get(facts, "data"));
	json_decref(facts);
}

static void test_worker(void **state) {
	(void)state;
	struct worker_dir w;
	char path[400];
	worker_dir_init(&w, "");
	worker_dir_play(&w, 9, 0);
	worker_dir_save_replica(&w, 9);
	json_t *facts = facts_of(w.dir, "worker's directory");
	assert_string_equal(string(facts, "rounds_to_export"), "0-9");
	assert_int_equal(number(facts, "member"), 3);
	assert_string_equal(string(facts, "name"), "anna");
	assert_int_equal(json_array_size(json_object_get(facts, "snapshots")), 2);
	assert_int_equal(number(facts, "log_entries"), 9);
	char *text = json_dumps(facts, 0);
	assert_null(strstr(text, "U2VjcmV0"));
	free(text);
	json_decref(facts);
	const struct {
		const char *file, *sort;
		int round;
	} files[] = {{"snapshot-8.rvs", "snapshot", 8}, {"log-3.rvl", "log entry", 3}, {"replica.rvp", "replica", 9}};
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", w.dir, files[i].file);
		facts = facts_of(path, "state file");
		assert_string_equal(string(facts, "sort"), files[i].sort);
		assert_int_equal(number(facts, "round"), files[i].round);
		assert_int_equal(number(facts, "version"), STATE_VERSION);
		assert_null(json_object_get(facts, "remark"));
		json_decref(facts);
	}
	worker_dir_damage(&w, "snapshot-8.rvs", 9); /* a bit of its version: 257 or more */
	snprintf(path, sizeof path, "%s/snapshot-8.rvs", w.dir);
	facts = facts_of(path, "state file");
	assert_true(number(facts, "version") > STATE_VERSION);
	assert_non_null(strstr(string(facts, "remark"), "a newer version: this program reads version 1; use the release"));
	json_decref(facts);
	worker_dir_release(&w);
}

static void test_a_worker_without_a_name(void **state) {
	(void)state;
	static const char member[] =
		"member = 3\nticket = " WORKER_DIR_TICKET "\nname = \"\"\n"; /* as a worker writes it */
	struct worker_dir w;
	char path[400];
	worker_dir_init(&w, "");
	fixture_write(w.dir, "member.conf", (const uint8_t *)member, sizeof member - 1, path, sizeof path);
	json_t *facts = facts_of(w.dir, "worker's directory");
	assert_string_equal(string(facts, "name"), "(none)");
	json_decref(facts);
	worker_dir_release(&w);
}

/* Writes the store of a new run, and a backup of it, which is the store and its seal. */
static void write_store(char store[400], char backup[400]) {
	static const uint8_t run_id[NET_RUN_ID_BYTES] = {1};
	const struct run_keys keys = {.cert = {.serial = 1}};
	struct rv_file_writer w;
	uint8_t *bytes;
	size_t n;
	snprintf(store, 400, "%s/store.db", dir);
	snprintf(backup, 400, "%s/run.backup", dir);
	assert_int_equal(sqlite_store_create(store, run_id, "rounds = 3\n", &et), RV_OK);
	assert_int_equal(rv_file_read(store, 1 << 20, &bytes, &n, &et), RV_OK);
	assert_int_equal(rv_file_writer_begin(&w, backup, 0600, &et), RV_OK);
	assert_int_equal(rv_file_writer_write(&w, bytes, n, &et), RV_OK);
	assert_int_equal(backup_file_seal(&w, &keys, &et), RV_OK);
	assert_int_equal(rv_file_writer_commit(&w, &et), RV_OK);
	free(bytes);
}

static void test_a_store_and_its_backup(void **state) {
	(void)state;
	char store[400], backup[400];
	json_t *facts;
	write_store(store, backup);
	facts = facts_of("store.db", "coordinator's store");
	assert_non_null(strstr(string(facts, "sort"), "store of a run"));
	assert_int_equal(number(facts, "version"), STORE_SCHEMA_VERSION);
	assert_non_null(strstr(string(facts, "next"), "rivulet-coordinator status --dir "));
	json_decref(facts);
	facts = facts_of("run.backup", "coordinator's store");
	assert_non_null(strstr(string(facts, "sort"), "backup of a run"));
	assert_non_null(strstr(string(facts, "next"), "rivulet-coordinator restore "));
	assert_null(json_object_get(facts, "remark"));
	char *text = json_dumps(facts, 0);
	assert_null(strstr(text, "736563726574")); /* "secret" */
	free(text);
	json_decref(facts);
	FILE *f = fopen(store, "r+b");
	assert_true(f && fseek(f, 63, SEEK_SET) == 0 && fputc(STORE_SCHEMA_VERSION + 1, f) != EOF && fclose(f) == 0);
	facts = facts_of("store.db", "coordinator's store");
	assert_non_null(strstr(string(facts, "remark"), "a newer version: this program reads version 1"));
	json_decref(facts);
	f = fopen(store, "r+b");
	assert_true(f && fseek(f, 68, SEEK_SET) == 0 && fputc(1, f) != EOF && fclose(f) == 0);
	assert_fault(inspect_path(store, &facts, &et), RV_E_INVALID, &et, "not a store or a backup of rivulet-coordinator");
	assert_int_equal(truncate(store, 50), 0);
	assert_fault(inspect_path(store, &facts, &et), RV_E_CORRUPT, &et, "cut short");
}

static void write_text(const char *name, const char *text, char path[400]) {
	fixture_write(dir, name, (const uint8_t *)text, strlen(text), path, 400);
}

static void test_configurations(void **state) {
	(void)state;
	char path[400];
	json_t *facts, *chosen;
	write_text("run.conf", "# of the lab\nmethod = ddp\nn-layer = 2\nlr = 0.5\nworkers = 4\n", path);
	facts = facts_of("run.conf", "run's configuration");
	chosen = json_object_get(facts, "other_than_default");
	assert_int_equal(json_object_size(chosen), 3); /* four workers are the default */
	assert_string_equal(string(chosen, "method"), "ddp");
	assert_string_equal(string(chosen, "lr"), "0.5");
	assert_int_equal(number(json_object_get(facts, "model"), "n_layer"), 2);
	assert_null(json_object_get(facts, "not_usable"));
	json_decref(facts);
	write_text("run.conf", "rounds = 2\nfragments = 3\n", path);
	facts = facts_of("run.conf", "run's configuration");
	assert_non_null(strstr(string(facts, "not_usable"), "would never be"));
	json_decref(facts);
	write_text("run.conf", "rounds = 2\npreset = micro\n", path); /* as new-run takes it */
	facts = facts_of("run.conf", "run's configuration");
	assert_int_equal(number(json_object_get(facts, "model"), "n_layer"), 6);
	json_decref(facts);
	write_text("run.conf", "n-layers = 2\n", path);
	assert_fault(inspect_path(path, &facts, &et), RV_E_INVALID, &et, "run.conf:1");
}

/* A config.json does not make a model: scripts look at the exit status. */
static void test_a_model_without_weights_is_a_fault(void **state) {
	(void)state;
	char path[400], place[350];
	json_t *facts;
	static const char config[] = "{\"model_type\":\"gpt2\"}";
	snprintf(place, sizeof place, "%s/without", run.dir);
	assert_int_equal(mkdir(place, 0700), 0);
	fixture_write(place, "config.json", (const uint8_t *)config, sizeof config - 1, path, sizeof path);
	assert_fault(inspect_path(place, &facts, &et), RV_E_NOTFOUND, &et, "holds neither");
	facts = facts_of(path, "model configuration");
	json_decref(facts);
	scratch_remove(place);
}

/* Directories of the coordinator and of sweeps, and what is in them. */
static void test_directories(void **state) {
	(void)state;
	char path[400], place[350];
	json_t *facts;
	snprintf(place, sizeof place, "%s/c", run.dir);
	assert_int_equal(mkdir(place, 0700), 0);
	fixture_write(place, "store.db", (const uint8_t *)"12345", 5, path, sizeof path);
	fixture_write(place, "listen", (const uint8_t *)"127.0.0.1:7\n", 12, path, sizeof path);
	fixture_write(place, "run.key", (const uint8_t *)"secret", 6, path, sizeof path);
	assert_fault(inspect_path(path, &facts, &et), RV_E_INVALID, &et, "holds a secret");
	fixture_write(place, "worker.conf", (const uint8_t *)"max-up = 1\n", 11, path, sizeof path);
	assert_fault(inspect_path(path, &facts, &et), RV_E_INVALID, &et, "belongs to a worker");
	facts = facts_of(place, "coordinator's directory");
	assert_int_equal(number(facts, "store_bytes"), 5);
	assert_string_equal(string(facts, "last_reached_at"), "127.0.0.1:7");
	assert_non_null(strstr(string(facts, "next"), "rivulet-coordinator status --dir "));
	json_decref(facts);
	scratch_remove(place);
	assert_int_equal(mkdir(place, 0700), 0);
	static const char summary[] = "id,state,method\r\na,done,diloco\r\nb,diverged,ddp\r\nc,done,ddp\r\n";
	fixture_write(place, "summary.csv", (const uint8_t *)summary, sizeof summary - 1, path, sizeof path);
	facts = facts_of(place, "sweep's directory");
	assert_int_equal(number(json_object_get(facts, "cells"), "done"), 2);
	assert_int_equal(number(json_object_get(facts, "cells"), "diverged"), 1);
	json_decref(facts);
	static const char cell[] = "{\"id\":\"x\",\"axes\":{\"lr\":\"1\"},\"options\":{}}";
	fixture_write(place, "sweep.json", (const uint8_t *)cell, sizeof cell - 1, path, sizeof path);
	facts = facts_of(path, "cell of a sweep");
	assert_string_equal(string(json_object_get(facts, "axes"), "lr"), "1");
	json_decref(facts);
	scratch_remove(place);
}

static void test_trace(void **state) {
	(void)state;
	struct rv_json_lines *t;
	char path[400];
	const struct trace_started start = {.member = 4, .boot = 9, .threads = 2, .dtype = "fp32"};
	snprintf(path, sizeof path, "%s/" TRACE_FILE, dir);
	assert_int_equal(rv_json_lines_open(path, true, &t, &et), RV_OK);
	assert_int_equal(rv_json_lines_write(t, trace_start(&start), &et), RV_OK);
	rv_json_lines_close(t);
	json_t *facts = facts_of(TRACE_FILE, "worker's trace");
	assert_int_equal(number(facts, "member"), 4);
	assert_int_equal(number(facts, "starts"), 1);
	json_decref(facts);
}

static void test_what_is_nothing(void **state) {
	(void)state;
	char path[400];
	json_t *facts;
	assert_fault(inspect_path("/nonexistent/x", &facts, &et), RV_E_NOTFOUND, &et, "/nonexistent/x");
	assert_fault(inspect_path("/dev/null", &facts, &et), RV_E_INVALID, &et, "neither a file nor a directory");
	assert_fault(inspect_path("/proc", &facts, &et), RV_E_INVALID, &et, "neither a model's directory");
	fixture_write(dir, "x.json", (const uint8_t *)"{\"a\":1}", 7, path, sizeof path);
	assert_fault(inspect_path(path, &facts, &et), RV_E_INVALID, &et, "neither a model's config.json nor");
	fixture_write(dir, "x", (const uint8_t *)"hello world", 11, path, sizeof path);
	assert_fault(inspect_path(path, &facts, &et), RV_E_INVALID, &et, "text is read by `rivulet train --data`");
	fixture_write(dir, "empty", (const uint8_t *)"", 0, path, sizeof path);
	assert_int_not_equal(inspect_path(path, &facts, &et), RV_OK);
	assert_null(facts);
}

/* Those that can be named are looked at wherever they stand. */
static void test_several_of_which_some_are_nothing(void **state) {
	(void)state;
	const struct rv_args args = {.at = {"/nonexistent/x", dir, "/nonexistent/y"}, .n = 3};
	assert_fault(inspect_command.run(NULL, &args, &et), RV_E_NOTFOUND, &et, "2 of 3 could not be inspected");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(test_model_directory),
		TEST(test_files_of_a_model),
		TEST(test_gguf),
		TEST(test_tokens),
		TEST(test_metrics),
		TEST(test_worker),
		TEST(test_a_worker_without_a_name),
		TEST(test_a_store_and_its_backup),
		TEST(test_what_is_nothing),
		TEST(test_configurations),
		TEST(test_directories),
		TEST(test_a_model_without_weights_is_a_fault),
		TEST(test_trace),
		TEST(test_several_of_which_some_are_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
