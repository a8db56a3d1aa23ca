/* What a coordinator hands out of the run's text, to whom, and how much at once. Real processes
 * over mutual TLS. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "tests/coordinator/coordinator_process.h"
#include "train/text/published/published.h"

enum { TEXT_BYTES = 2500000, REPLY_BYTES = 5 << 20 }; /* two shards, of 4 and 0.8 MB */
static char out[65536];

#define RUN(...) coordinator_command(out, sizeof out, (const char *const[]){__VA_ARGS__, NULL})

struct scene {
	struct coordinator c;
	char dir[SCRATCH_PATH]; /* scratch: text.txt */
};

/* A fetch that is under way. */
struct fetch {
	int status;
	size_t n;
	uint8_t *body; /* (REPLY_BYTES) */
	bool done;
};

static void make_text(struct scene *s) {
	char *bytes = malloc(TEXT_BYTES);
	scratch_make(s->dir, sizeof s->dir);
	for (int i = 0; i < TEXT_BYTES; i++)
		bytes[i] = (char)(i % 61 == 60 ? '\n' : 'a' + (i * 7 + i / 61) % 26);
	scratch_write(s->dir, "text.txt", bytes, TEXT_BYTES);
	free(bytes);
}

static int set_up(void **state) {
	struct scene *s = calloc(1, sizeof *s);
	char config[SCRATCH_PATH + 64];
	*state = s;
	make_text(s);
	(void)snprintf(config, sizeof config, "rounds = 10\nmin-workers = 2\ndata = %s/text.txt\n", s->dir);
	coordinator_make(&s->c, config);
	return 0;
}

static int tear_down(void **state) {
	struct scene *s = *state;
	char text[E2E_PATH + 16];
	(void)snprintf(text, sizeof text, "%s/text", s->c.dir);
	if (access(text, F_OK) == 0)
		scratch_remove(text);
	coordinator_remove(&s->c);
	scratch_remove(s->dir);
	free(s);
	return 0;
}

static void start_again(struct coordinator *c, const char *option) {
	assert_int_equal(coordinator_stop(c), 0);
	c->e.coordinator_option = option;
	coordinator_start(c);
}

static void join(struct client *k, struct coordinator *c, uint32_t who) {
	struct invite in;
	coordinator_invite(c, &in);
	client_init(k, c, who, NULL);
	assert_int_equal(client_join(k, c, &in, NULL), 200);
}

static void on_done(void *ctx, const struct http_reply *r) {
	struct fetch *f = ctx;
	f->done = true;
	f->status = r->status;
	f->n = r->body_bytes;
	assert_true(f->n <= REPLY_BYTES);
	memcpy(f->body, r->body, f->n);
}

static void start(struct fetch *f, struct client *k, const char *path, uint64_t begin, uint64_t n) {
	const struct http_request rq = {.path = path,
									.max_reply_bytes = REPLY_BYTES,
									.timeout_ms = 120000,
									.range_begin = begin,
									.range_bytes = n,
									.done = on_done,
									.ctx = f};
	f->body = f->body ? f->body : malloc(REPLY_BYTES);
	f->done = false;
	assert_ok(http_client_start(k->http, &rq, NULL, &et));
}

static void await(struct fetch *f, struct client *k) {
	while (!f->done)
		assert_ok(http_client_poll(k->http, NULL, 0, 1000000, &et));
}

static void get(struct fetch *f, struct client *k, const char *path, uint64_t begin, uint64_t n) {
	start(f, k, path, begin, n);
	await(f, k);
}

/* Compares a reply with bytes of a file of the text. */
static void assert_is(const struct scene *s, const struct fetch *f, const char *name, size_t begin) {
	char path[E2E_PATH + 64];
	size_t n;
	(void)snprintf(path, sizeof path, "%s/text/%s", s->c.dir, name);
	char *file = scratch_read(path, &n);
	assert_non_null(file);
	assert_true(begin + f->n <= n);
	assert_memory_equal(f->body, file + begin, f->n);
	free(file);
}

static void test_members_fetch_files_and_ranges(void **state) {
	struct scene *s = *state;
	struct client k;
	struct fetch f = {0};
	join(&k, &s->c, 1);
	get(&f, &k, "/v1/text/manifest.json", 0, 0);
	assert_int_equal(f.status, 200);
	assert_is(s, &f, "manifest.json", 0);
	get(&f, &k, "/v1/text/index-0-000000.hashes", 0, 0);
	assert_int_equal(f.status, 200);
	assert_int_equal(f.n, 2 * RV_HASH_BYTES);
	get(&f, &k, "/v1/text/shard-000000.bin", 0, 0);
	assert_int_equal(f.status, 200);
	assert_int_equal(f.n, 1024 + 2 * (2 << 20));
	assert_is(s, &f, "shard-000000.bin", 0);
	get(&f, &k, "/v1/text/shard-000001.bin", 100000, 300000);
	assert_int_equal(f.status, 206);
	assert_int_equal(f.n, 300000);
	assert_is(s, &f, "shard-000001.bin", 100000);
	get(&f, &k, "/v1/text/shard-000001.bin", 800000, 300000);
	assert_int_equal(f.status, 206);
	assert_is(s, &f, "shard-000001.bin", 800000);
	assert_true(f.n > 0 && f.n < 300000); /* to the end of the file */
	get(&f, &k, "/v1/text/shard-000001.bin", 90000000, 1);
	assert_int_equal(f.status, 416);
	static const char *const none[] = {"/v1/text/",
									   "/v1/text/shard-000002.bin",
									   "/v1/text/lock",
									   "/v1/text/../run.key",
									   "/v1/text/%2e%2e%2frun.key",
									   "/v1/text/shard-0000000.bin",
									   "/v1/text",
									   "/v1/text/tokenizer.json"};
	for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
		get(&f, &k, none[i], 0, 0);
		if (f.status != 404)
			fail_msg("%s: %d", none[i], f.status);
	}
	free(f.body);
	client_release(&k);
}

static void test_others_fetch_nothing(void **state) {
	struct scene *s = *state;
	struct client stranger, k;
	struct fetch f = {0};
	client_init(&stranger, &s->c, 7, NULL);
	get(&f, &stranger, "/v1/text/manifest.json", 0, 0);
	assert_int_equal(f.status, 403);
	join(&k, &s->c, 1);
	get(&f, &k, "/v1/text/manifest.json", 0, 0);
	assert_int_equal(f.status, 200);
	assert_int_equal(RUN("ban", "--dir", s->c.dir, "0"), 0);
	get(&f, &k, "/v1/text/manifest.json", 0, 0);
	assert_int_equal(f.status, 403);
	free(f.body);
	client_release(&k);
	client_release(&stranger);
}

/* One byte of a shard is another: not a byte of it leaves, and the operator is told once. */
static void test_a_damaged_shard_is_not_served(void **state) {
	struct scene *s = *state;
	struct client k;
	struct fetch f = {0};
	char path[E2E_PATH + 64];
	join(&k, &s->c, 1);
	(void)snprintf(path, sizeof path, "%s/text/shard-000000.bin", s->c.dir);
	scratch_flip(path, 2000000);
	for (int i = 0; i < 2; i++) {
		get(&f, &k, "/v1/text/shard-000000.bin", 0, 100);
		assert_int_equal(f.status, 500);
	}
	get(&f, &k, "/v1/text/shard-000001.bin", 0, 100);
	assert_int_equal(f.status, 206);
	long from = 0;
	json_decref(e2e_wait_event(&s->c.e.coordinator, "text_damaged", NULL, 0, &from));
	assert_null(e2e_find_event(s->c.e.coordinator.log, "text_damaged", NULL, 0, &from));
	free(f.body);
	client_release(&k);
}

/* At a low rate, somebody's megabytes do not keep another's kilobyte waiting, and nobody gets more
 * places than others. */
static void test_members_take_turns(void **state) {
	struct scene *s = *state;
	struct client greedy, modest;
	struct fetch big = {0}, more = {0}, third = {0}, small = {0};
	start_again(&s->c, "--text-up=200kbit"); /* the first one takes 80 s */
	join(&greedy, &s->c, 1);
	join(&modest, &s->c, 2);
	start(&big, &greedy, "/v1/text/shard-000000.bin", 0, 2000000);
	start(&more, &greedy, "/v1/text/shard-000001.bin", 0, 500000);
	do /* until both are under way */
		get(&third, &greedy, "/v1/text/manifest.json", 0, 0);
	while (third.status == 200);
	assert_int_equal(third.status, 503);
	get(&small, &modest, "/v1/text/manifest.json", 0, 0);
	assert_int_equal(small.status, 200);
	assert_false(big.done || more.done);
	client_release(&greedy);
	client_release(&modest);
	free(big.body);
	free(more.body);
	free(third.body);
	free(small.body);
}

/* A client that goes away in the middle leaves its place. */
static void test_who_breaks_off_leaves_its_place(void **state) {
	struct scene *s = *state;
	struct client k;
	struct fetch f = {0};
	start_again(&s->c, "--text-up=1mbit");
	join(&k, &s->c, 1);
	for (int i = 0; i < 4; i++) {
		start(&f, &k, "/v1/text/shard-000000.bin", 0, 0);
		for (int turn = 0; turn < 5; turn++)
			assert_ok(http_client_poll(k.http, NULL, 0, 100000, &et));
		assert_false(f.done);
		client_release(&k);
		client_init(&k, &s->c, 1, NULL);
	}
	do
		get(&f, &k, "/v1/text/manifest.json", 0, 0);
	while (f.status == 503); /* until the coordinator has seen the ends */
	assert_int_equal(f.status, 200);
	free(f.body);
	client_release(&k);
}

/* A run that is restored elsewhere finds a text that has a place of its own; one that was published
 * in its directory is named once, and kept then. */
static void test_a_restored_run_finds_its_text(void **state) {
	struct scene *s = *state;
	struct client k;
	struct fetch f = {0};
	char backup[SCRATCH_PATH + 16], away[SCRATCH_PATH + 16], from[E2E_PATH + 16], option[SCRATCH_PATH + 32];
	join(&k, &s->c, 1);
	client_release(&k);
	(void)snprintf(backup, sizeof backup, "%s/backup", s->dir);
	(void)snprintf(away, sizeof away, "%s/away", s->dir);
	(void)snprintf(from, sizeof from, "%s/text", s->c.dir);
	(void)snprintf(option, sizeof option, "--text=%s", away);
	assert_int_equal(RUN("backup", "--dir", s->c.dir, backup), 0);
	assert_int_equal(coordinator_stop(&s->c), 0);
	assert_int_equal(rename(from, away), 0);
	coordinator_start(&s->c);
	json_decref(e2e_wait_event(&s->c.e.coordinator, "text_missing", NULL, 0, NULL));
	client_init(&k, &s->c, 1, NULL);
	get(&f, &k, "/v1/text/manifest.json", 0, 0);
	assert_int_equal(f.status, 404);
	client_release(&k);
	start_again(&s->c, option);
	assert_int_equal(RUN("backup", "--dir", s->c.dir, backup), 0);
	assert_int_equal(coordinator_stop(&s->c), 0);
	s->c.e.coordinator_option = NULL;
	assert_int_equal(RUN("restore", "--dir", s->c.dir, "--force", backup), 0);
	coordinator_start(&s->c);
	client_init(&k, &s->c, 1, NULL);
	get(&f, &k, "/v1/text/manifest.json", 0, 0);
	assert_int_equal(f.status, 200);
	free(f.body);
	client_release(&k);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_members_fetch_files_and_ranges, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_others_fetch_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_damaged_shard_is_not_served, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_members_take_turns, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_who_breaks_off_leaves_its_place, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_restored_run_finds_its_text, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
