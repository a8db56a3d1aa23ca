/* test_e2e_text.c: the run's text goes from member to member, over TLS: when the only mirror has
 * vanished, when a member lies, when one dies. The coordinator has lost its shards: what does not
 * come from members does not come. */
#include "ends.h"
#include "tests/common/check.h"
#include "tests/common/deadline.h"
#include "tests/common/scratch.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A shard is 8 blocks of 16,384 tokens of two bytes. A member's first step reads of most shards. */
enum { BLOCKS = 64, SHARD_BLOCKS = 8, SHARDS = BLOCKS / SHARD_BLOCKS, SHARD_BYTES = 1024 + SHARD_BLOCKS * 32768 };
#define RUN                                                                                                            \
	"n-layer = 1\nn-head = 2\nn-embd = 32\ncontext = 64\nbatch = 8\nsteps-per-round = 4\nrounds = 12\n"                \
	"snapshot-every = 10\n"

static const char *const alone[] = {"--threads", "1", "--eval-every", "0", NULL};
static const char *const slow[] = {"--max-donate", "1mbit", NULL}; /* all of the text in 17 s */

static void set_args(struct e2e *e, const char *const *args) {
	int n = 0;
	memset(e->worker_args, 0, sizeof e->worker_args);
	for (; args && args[n]; n++)
		e->worker_args[n] = args[n];
}

/* Workers started from now on come with a link alone. */
static void come_with_a_link(struct e2e *e) {
	e->says_little = true;
	set_args(e, alone);
}

static bool is_shard(const char *name) {
	const size_t n = strlen(name);
	return strncmp(name, "shard-", 6) == 0 && n > 4 && strcmp(name + n - 4, ".bin") == 0;
}

/* Calls `each` for every file of a directory; returns how many are whole shards. */
static int for_files(const char *dir, void (*each)(const char *path, const char *name, const char *to),
					 const char *to) {
	char path[2 * E2E_PATH];
	DIR *d = opendir(dir);
	int n = 0;
	for (struct dirent *at = d ? readdir(d) : NULL; at; at = readdir(d)) {
		(void)snprintf(path, sizeof path, "%s/%s", dir, at->d_name);
		n += is_shard(at->d_name);
		if (each && at->d_name[0] != '.')
			each(path, at->d_name, to);
	}
	if (d)
		(void)closedir(d);
	return n;
}

static void copy_to(const char *path, const char *name, const char *to) {
	size_t n;
	char *bytes = scratch_read(path, &n);
	scratch_write(to, name, bytes, n);
	free(bytes);
}

static void remove_shard(const char *path, const char *name, const char *to) {
	(void)to;
	if (is_shard(name))
		assert_int_equal(unlink(path), 0);
}

/* Opens a run whose coordinator has lost the shards. e->data is a whole copy of the text. */
static void open_run(struct e2e *e, const char *config, int n_workers, bool has_mirror, struct process *mirror) {
	char copy[E2E_PATH], manifest[E2E_PATH + 32], url[64];
	e2e_publish(e, BLOCKS, SHARD_BLOCKS, n_workers);
	e2e_path(e, "copy", copy);
	assert_int_equal(mkdir(copy, 0755), 0);
	assert_int_equal(for_files(e->data, copy_to, copy), SHARDS);
	if (has_mirror) {
		const char *const argv[] = {"rivulet", "data", "serve", copy, "--port", "0", NULL};
		*mirror = (struct process){0};
		e2e_path(e, "mirror.log", mirror->log);
		process_start(mirror, argv, &(struct process_setup){0});
		json_t *serving = e2e_wait_event(mirror, "serving", NULL, 0, NULL);
		(void)snprintf(url, sizeof url, "http://127.0.0.1:%d", (int)e2e_int(serving, "port"));
		json_decref(serving);
		(void)snprintf(manifest, sizeof manifest, "%s/manifest.json", e->data);
		json_t *m = json_load_file(manifest, 0, NULL);
		assert_non_null(m);
		assert_int_equal(json_object_set_new(m, "mirrors", json_pack("[s]", url)), 0);
		assert_int_equal(json_dump_file(m, manifest, JSON_INDENT(1)), 0);
		json_decref(m);
	}
	e2e_open_handed_out(e, config, n_workers);
	assert_int_equal(for_files(e->data, remove_shard, NULL), SHARDS);
	memcpy(e->data, copy, sizeof e->data);
}

/* Returns how many whole shards worker i has in its cache. */
static int shards_of(const struct e2e *e, int i) {
	char dir[E2E_PATH], data[E2E_PATH + 16], path[2 * E2E_PATH];
	int n = 0;
	e2e_worker_dir(e, i, dir);
	(void)snprintf(data, sizeof data, "%s/data", dir);
	DIR *d = opendir(data);
	for (struct dirent *at = d ? readdir(d) : NULL; at; at = readdir(d))
		if (at->d_name[0] != '.') {
			(void)snprintf(path, sizeof path, "%s/%s", data, at->d_name);
			n += for_files(path, NULL, NULL);
		}
	if (d)
		(void)closedir(d);
	return n;
}

static void wait_for_shards(const struct e2e *e, int i, int n) {
	for (struct deadline d = deadline_in(300, "shards in a cache"); shards_of(e, i) < n;)
		deadline_pause(&d);
}

static int64_t text_of(const json_t *status, int member, const char *key) {
	const json_t *m = json_array_get(json_object_get(status, "members"), (size_t)member);
	assert_int_equal(e2e_int(m, "member"), member);
	return e2e_int(json_object_get(m, "text"), key);
}

/* The member got all shards from others, and little of the coordinator: the index page. */
static void assert_from_members(struct e2e *e, int member) {
	json_t *status = e2e_status(e);
	assert_in_range(text_of(status, member, "member_bytes"), SHARDS * SHARD_BYTES, 4 * SHARDS * SHARD_BYTES);
	assert_int_equal(text_of(status, member, "mirror_bytes"), 0);
	assert_int_equal(text_of(status, member, "coordinator_bytes"), SHARDS * 32);
	json_decref(status);
}

/* Counts the notices of worker i's log that have this text. */
static int notices(const struct e2e *e, int i, const char *text) {
	json_t *event;
	long from = 0;
	int n = 0;
	while ((event = e2e_find_event(e->workers[i].log, "text_source", NULL, 0, &from)) != NULL) {
		n += strstr(e2e_text(event, "text"), text) != NULL;
		json_decref(event);
	}
	return n;
}

static void a_mirror_that_vanishes_is_not_missed(void **state) {
	static struct e2e e;
	struct process mirror;
	char chain[65], full[65];
	*state = &e;
	open_run(&e, RUN "min-workers = 2\n" E2E_PATIENT, 4, true, &mirror);
	come_with_a_link(&e);
	e2e_gate_at(&e, 0);
	e2e_start_gated_workers(&e, 2);
	wait_for_shards(&e, 0, SHARDS);
	wait_for_shards(&e, 1, SHARDS);
	process_kill(&mirror);
	e2e_start_worker(&e, 2, E2E_GATED, NULL);
	e2e_start_worker(&e, 3, E2E_GATED, NULL);
	wait_for_shards(&e, 2, SHARDS);
	wait_for_shards(&e, 3, SHARDS);
	e2e_open_gate(&e);
	e2e_assert_same_end(&e, (const int[]){0, 1, 2, 3}, 4, chain, full);
	assert_from_members(&e, 2);
	assert_from_members(&e, 3);
}

static void a_member_that_lies_is_named_and_left(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	open_run(&e, RUN "min-workers = 4\n" E2E_PATIENT, 4, false, NULL);
	set_args(&e, slow);
	e2e_start_worker(&e, 0, NULL, NULL);
	set_args(&e, NULL);
	e2e_start_worker(&e, 1, "rivulet-worker-liar", NULL);
	come_with_a_link(&e);
	e2e_start_worker(&e, 2, NULL, NULL);
	e2e_start_worker(&e, 3, NULL, NULL);
	e2e_assert_same_end(&e, (const int[]){0, 1, 2, 3}, 4, chain, full);
	assert_true(notices(&e, 2, "member 1 gave wrong bytes") > 0);
	for (int i = 2; i < 4; i++) {
		assert_int_equal(notices(&e, i, "gave wrong bytes"), notices(&e, i, "member 1 gave wrong bytes"));
		assert_from_members(&e, i);
	}
}

static void a_member_that_dies_is_left(void **state) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	open_run(&e, RUN "min-workers = 2\n" E2E_STEADY, 3, false, NULL);
	set_args(&e, slow);
	e2e_gate_at(&e, 0); /* two of them could end the run before the third has come */
	e2e_start_gated_workers(&e, 2);
	come_with_a_link(&e);
	e2e_start_worker(&e, 2, E2E_GATED, NULL);
	wait_for_shards(&e, 2, 2);
	process_signal(&e.workers[1], SIGKILL);
	process_assert_exit(&e.workers[1], 128 + SIGKILL);
	e2e_open_gate(&e);
	e2e_assert_same_end(&e, (const int[]){0, 2}, 2, chain, full);
	assert_from_members(&e, 2);
	assert_int_equal(notices(&e, 2, "gave wrong bytes"), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_mirror_that_vanishes_is_not_missed, e2e_teardown),
		cmocka_unit_test_teardown(a_member_that_lies_is_named_and_left, e2e_teardown),
		cmocka_unit_test_teardown(a_member_that_dies_is_left, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
