/* test_worker_text_thread.c: a published text comes from real servers that are slow, cut, lie, ask
 * for pauses or vanish, and is read while it comes, with a cache of two shards too. Every token
 * that is read is the text's. */
#include "tests/common/check.h"
#include "tests/common/deadline.h"
#include "tests/common/scratch.h"
#include "tests/worker/hostile_mirror.h"
#include "tests/worker/text_fixture.h"
#include "train/text/published/published.h"
#include "worker/text/text_mirror.h"
#include "worker/text/text_thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHARDS = 5, URLS = 4, PATIENCE_S = 120 /* only a hang takes so long */ };

static char from[256], dir[256];
static struct manifest text;
static struct rv_hash data_hash;
static struct hostile_mirror mirror;
static struct rv_errtext why;
static const char *hosts; /* that were agreed to; NULL: none */

static int start_mirror(void **state) {
	(void)state;
	scratch_make_in_memory(from, sizeof from);
	text_fixture_make(from, SHARDS, &text, &data_hash);
	hostile_start(&mirror, from, NULL);
	return 0;
}

static int stop_mirror(void **state) {
	(void)state;
	hostile_stop(&mirror);
	scratch_remove(from);
	return 0;
}

static int make_dir(void **state) {
	(void)state;
	scratch_make_in_memory(dir, sizeof dir);
	atomic_store(&mirror.requests, 0);
	atomic_store(&mirror.shards, 0);
	atomic_store(&mirror.landed, 0);
	hosts = NULL;
	return 0;
}

static int remove_dir(void **state) {
	(void)state;
	scratch_remove(dir);
	return 0;
}

static bool give_up_soon(void *ctx, const char *what, uint64_t done, uint64_t total) {
	int *ticks = ctx;
	(void)what;
	(void)done;
	(void)total;
	return (*ticks)-- > 0;
}

/* Opens the text with mirrors of these tempers; "" ends the list. */
static enum rv_err open_text(const char *const tempers[URLS], uint64_t shards, struct text **out) {
	char urls[URLS][128];
	const char *list[URLS];
	static int ticks;
	struct text_config cfg = {.dir = dir,
							  .data_hash = data_hash,
							  .quota_bytes = shards * TEXT_FIXTURE_SHARD_BYTES,
							  .mirrors = list,
							  .hosts = hosts,
							  .met = ADDRESS_LOOPBACK,
							  .tries = 1,
							  .progress = give_up_soon,
							  .ctx = &ticks};
	ticks = 600;
	for (int i = 0; i < URLS && tempers[i]; i++) {
		hostile_url(&mirror, tempers[i], urls[i]);
		list[cfg.n_mirrors++] = urls[i];
	}
	return text_open(&cfg, out, &why);
}

static struct text *opened(const char *const tempers[URLS], uint64_t shards) {
	struct text *t;
	if (open_text(tempers, shards, &t) != RV_OK)
		fail_msg("%s", why.text);
	return t;
}

static struct published *reader(struct text *t) {
	struct published *p;
	assert_ok(published_open(text_dir(t), &p, &et));
	published_on_missing(p, &(struct published_missing){.get = text_get, .ctx = t});
	return p;
}

/* Reads some tokens of every shard, in an order that goes to and fro. */
static void read_all(const struct published *p) {
	enum { N = 1000 };
	static const uint64_t at[] = {0, 4, 2, 0, 1, 3, 4, 0};
	int32_t tokens[N];
	for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
		const uint64_t begin = at[i] * TEXT_FIXTURE_SHARD_TOKENS + i * 100000;
		const enum rv_err e = published_read(p, begin, N, tokens, &why);
		if (e != RV_OK)
			fail_msg("%s", why.text);
		for (uint64_t k = 0; k < N; k++)
			assert_int_equal(tokens[k], text_fixture_token(begin + k));
	}
}

static void show_notices(struct text *t) {
	char notice[TEXT_NOTICE_BYTES];
	while (text_notice(t, notice))
		print_message("  %s\n", notice);
}

static void a_text_is_read_while_it_comes(void **state) {
	struct text *t = opened((const char *const[URLS]){"ok"}, SHARDS);
	struct published *p = reader(t);
	(void)state;
	read_all(p);
	const struct text_stats s = text_stats(t);
	/* Shards and their page. */
	assert_int_equal(s.bytes[TEXT_MIRROR], SHARDS * TEXT_FIXTURE_SHARD_BYTES + SHARDS * 32);
	assert_int_equal(s.wasted_bytes, 0);
	assert_int_equal(s.cached_bytes, SHARDS * TEXT_FIXTURE_SHARD_BYTES);
	assert_true(s.stall_us > 0);
	published_close(p);
	text_close(t);
	/* A later start needs no network. */
	atomic_store(&mirror.requests, 0);
	t = opened((const char *const[URLS]){"gone-all"}, SHARDS);
	p = reader(t);
	read_all(p);
	assert_int_equal(atomic_load(&mirror.requests), 0);
	published_close(p);
	text_close(t);
}

static bool is_here(int shard) {
	char path[600];
	snprintf(path, sizeof path, "%s/shard-%06d.bin", dir, shard);
	return access(path, R_OK) == 0;
}

static void what_is_wanted_comes_ahead(void **state) {
	struct text *t = opened((const char *const[URLS]){"ok"}, SHARDS);
	(void)state;
	text_want(t, (uint64_t[]){3, 1}, 2);
	for (struct deadline d = deadline_in(PATIENCE_S, "two shards");
		 text_stats(t).cached_bytes < 2 * TEXT_FIXTURE_SHARD_BYTES || !is_here(3);)
		deadline_pause(&d);
	assert_int_equal(text_stats(t).stall_us, 0);
	text_close(t);
}

static void wait_for_later(struct text *t) {
	for (struct deadline d = deadline_in(PATIENCE_S, "what is wanted later"); !text_has_later(t);)
		deadline_pause(&d);
}

/* What an evaluation reads comes behind what training reads, nobody waits for it, and it is
 * kept. */
static void what_is_wanted_later_comes_behind_and_stays(void **state) {
	struct text *t = opened((const char *const[URLS]){"ok"}, SHARDS);
	(void)state;
	assert_true(text_has_later(t)); /* nothing is wanted */
	text_want(t, (uint64_t[]){0}, 1);
	text_want_later(t, (uint64_t[]){1, 4}, 2);
	wait_for_later(t);
	assert_true(is_here(1) && is_here(4));
	assert_int_equal(text_stats(t).stall_us, 0);
	text_want_later(t, NULL, 0);
	assert_true(text_has_later(t));
	text_want_later(t, (uint64_t[]){1, 4}, 2);
	wait_for_later(t);
	text_close(t);
	/* In a cache of three shards: one that is read, one that will be, one for later. */
	scratch_empty(dir);
	t = opened((const char *const[URLS]){"ok"}, 3);
	text_want_later(t, (uint64_t[]){4}, 1);
	for (uint64_t i = 0; i < 4; i++) {
		text_want(t, &i, 1);
		assert_ok(text_get(t, i, &et));
		wait_for_later(t);
		assert_true(is_here(4));
	}
	text_close(t);
}

/* A source that never answers, and a cache without room for it all. */
static void an_evaluation_waits_for_what_cannot_come_ahead(void **state) {
	struct text *t = opened((const char *const[URLS]){"hang"}, 3);
	(void)state;
	text_want_later(t, (uint64_t[]){4}, 1);
	assert_false(text_has_later(t));
	text_want_later(t, (uint64_t[]){2, 3, 4}, 3); /* and the one that is read */
	wait_for_later(t);
	assert_false(is_here(4));
	text_close(t);
}

/* A bad mirror beside a good one: all is read, and nothing wrong. */
static void read_beside(const char *temper, uint64_t shards) {
	struct text *t = opened((const char *const[URLS]){temper, "ok"}, shards);
	struct published *p = reader(t);
	read_all(p);
	const struct text_stats s = text_stats(t);
	print_message("%s: %d requests, %llu bytes kept, %llu wasted, %u lies\n", temper, atomic_load(&mirror.requests),
				  (unsigned long long)s.bytes[TEXT_MIRROR], (unsigned long long)s.wasted_bytes, s.lies);
	show_notices(t);
	published_close(p);
	text_close(t);
}

static void bad_mirrors_do_no_harm(void **state) {
	static const char *const tempers[] = {"whole", "busy", "cut",     "gone", "hang",  "lie",
										  "short", "long", "shifted", "loop", "error", "redirect"};
	(void)state;
	for (size_t i = 0; i < sizeof tempers / sizeof tempers[0]; i++) {
		scratch_empty(dir);
		read_beside(tempers[i], SHARDS);
	}
}

/* A mirror leads workers to no host that their owner has not agreed to. */
static void redirects_stay_at_hosts_that_were_agreed_to(void **state) {
	(void)state;
	read_beside("abroad", SHARDS);
	assert_int_equal(atomic_load(&mirror.landed), 0);
	scratch_empty(dir);
	hosts = "elsewhere.example, localhost";
	struct text *t = opened((const char *const[URLS]){"abroad"}, SHARDS);
	struct published *p = reader(t);
	read_all(p);
	assert_true(atomic_load(&mirror.landed) >= SHARDS);
	published_close(p);
	text_close(t);
}

/* Its refusal is what is told, and not that its name could not be found: nobody asked for it. */
static void the_name_of_another_host_is_not_looked_up(void **state) {
	char notice[TEXT_NOTICE_BYTES] = "";
	(void)state;
	struct text *t = opened((const char *const[URLS]){"nowhere"}, SHARDS);
	text_want(t, (uint64_t[]){0}, 1);
	for (struct deadline d = deadline_in(PATIENCE_S, "a notice"); !strstr(notice, "nowhere");)
		if (!text_notice(t, notice))
			deadline_pause(&d);
	assert_non_null(strstr(notice, "leads to a host that nobody here has agreed to"));
	text_close(t);
}

/* Writes a manifest with 16 mirrors at one host, which lack everything. */
static void name_sixteen(const struct hostile_mirror *many) {
	struct manifest m = text;
	scratch_empty(dir);
	for (m.n_mirrors = 0; m.n_mirrors < MANIFEST_MIRRORS; m.n_mirrors++)
		(void)snprintf(m.mirrors[m.n_mirrors], sizeof m.mirrors[0], "http://127.0.0.1:%u/gone-all/%d",
					   many->server.port, (int)m.n_mirrors);
	assert_ok(manifest_write(dir, &m, &et));
}

/* Mirrors of a manifest are no part of its hash: they are asked where people agreed to it, and a
 * host is one source. */
static void mirrors_of_a_manifest_are_asked_at_agreed_hosts_only(void **state) {
	enum { LOOKS = 20 };
	struct hostile_mirror many;
	(void)state;
	hostile_start(&many, from, NULL);
	name_sixteen(&many);
	read_beside("busy", SHARDS);
	assert_int_equal(atomic_load(&many.requests), 0);
	name_sixteen(&many);
	hosts = "127.0.0.1";
	struct text *t = opened((const char *const[URLS]){"hang"}, SHARDS);
	text_want(t, (uint64_t[]){0, 1, 2, 3, 4}, SHARDS);
	for (struct deadline d = deadline_in(PATIENCE_S, "a request"); atomic_load(&many.requests) == 0;)
		deadline_pause(&d);
	struct deadline more = deadline_in(PATIENCE_S, "some more requests");
	for (int i = 0; i < LOOKS; i++)
		deadline_pause(&more);
	assert_true(atomic_load(&many.requests) <= 12); /* pauses of 0.5, 1, 2 ... s; one mirror, not 16 */
	text_close(t);
	hostile_stop(&many);
}

static void a_cache_of_two_shards_is_enough(void **state) {
	(void)state;
	read_beside("ok", 2);
	int shards = 0;
	for (int i = 0; i < SHARDS; i++) {
		char path[600];
		snprintf(path, sizeof path, "%s/shard-%06d.bin", dir, i);
		shards += access(path, F_OK) == 0;
	}
	assert_true(shards <= 2);
}

/* Mirrors that are alone, and work in the end. */
static void odd_mirrors_are_enough(void **state) {
	static const char *const tempers[] = {"whole", "busy", "cut", "redirect"};
	(void)state;
	for (size_t i = 0; i < sizeof tempers / sizeof tempers[0]; i++) {
		scratch_empty(dir);
		struct text *t = opened((const char *const[URLS]){tempers[i]}, SHARDS);
		struct published *p = reader(t);
		read_all(p);
		assert_int_equal(text_stats(t).lies, 0);
		published_close(p);
		text_close(t);
	}
}

static void liars_are_named(void **state) {
	struct text *t = opened((const char *const[URLS]){"lie"}, SHARDS);
	char notice[TEXT_NOTICE_BYTES] = "";
	(void)state;
	text_want(t, (uint64_t[]){0}, 1);
	for (struct deadline d = deadline_in(PATIENCE_S, "a lie"); text_stats(t).lies == 0;)
		deadline_pause(&d);
	assert_int_equal(text_stats(t).lies, 1);
	assert_true(text_notice(t, notice));
	assert_non_null(strstr(notice, "/lie gave wrong bytes of shard-000000.bin"));
	text_close(t);
}

static bool always(void *ctx) {
	(void)ctx;
	return true;
}

static void a_wait_can_be_stopped(void **state) {
	struct text *t = opened((const char *const[URLS]){"hang"}, SHARDS);
	(void)state;
	text_set_stops(t, always, NULL);
	assert_int_equal(text_get(t, 0, &why), RV_E_CANCELLED);
	text_close(t);
}

static void no_source_is_an_error_that_says_why(void **state) {
	struct text *t;
	(void)state;
	assert_int_equal(open_text((const char *const[URLS]){NULL}, SHARDS, &t), RV_E_NOTFOUND);
	assert_non_null(strstr(why.text, "there is no mirror"));
	assert_int_equal(open_text((const char *const[URLS]){"lie-all", "gone-all"}, SHARDS, &t), RV_E_NOTFOUND);
	assert_non_null(strstr(why.text, "status 404"));
	/* The first lies, the second does not. */
	assert_int_equal(open_text((const char *const[URLS]){"lie-all", "ok"}, SHARDS, &t), RV_OK);
	text_close(t);
}

/* A stranger's manifest does not make a worker connect to its own machine or its LAN. */
static void private_addresses_are_refused(void **state) {
	char url[128];
	const char *list[] = {url};
	struct text *t;
	const struct text_config cfg = {.dir = dir,
									.data_hash = data_hash,
									.quota_bytes = UINT64_MAX,
									.mirrors = list,
									.n_mirrors = 1,
									.met = ADDRESS_PUBLIC,
									.tries = 1};
	(void)state;
	hostile_url(&mirror, "ok", url);
	assert_int_equal(text_open(&cfg, &t, &why), RV_E_NOTFOUND);
	assert_non_null(strstr(why.text, "at a private address"));
	assert_int_equal(atomic_load(&mirror.requests), 0);
}

static void urls_are_checked(void **state) {
	struct text_keys none = {.region = "us-east-1"}, own = {.region = "eu-1", .endpoint = "http://127.0.0.1:9"};
	struct text_mirror m;
	(void)state;
	assert_ok(text_mirror_parse("https://a.example/b/", &none, &m, &et));
	assert_string_equal(m.url, "https://a.example/b");
	assert_true(!m.is_store && !m.is_signed && !m.is_own);
	assert_ok(text_mirror_parse("s3://texts/a/b", &none, &m, &et));
	assert_string_equal(m.url, "https://s3.us-east-1.amazonaws.com/texts/a/b");
	assert_true(m.is_store && !m.is_signed && !m.is_own);
	snprintf(none.id, sizeof none.id, "id");
	snprintf(none.secret, sizeof none.secret, "secret");
	assert_ok(text_mirror_parse("s3://texts/a/b", &none, &m, &et));
	assert_false(m.is_signed); /* to a store that nobody named */
	snprintf(own.id, sizeof own.id, "id");
	snprintf(own.secret, sizeof own.secret, "secret");
	assert_ok(text_mirror_parse("s3://texts/a/b", &own, &m, &et));
	assert_string_equal(m.url, "http://127.0.0.1:9/texts/a/b");
	assert_true(m.is_store && m.is_signed && m.is_own);
	static const char *const bad[] = {
		"ftp://a/b", "file:///etc/passwd", "https://a/b?c", "https://a/b#c", "https://a b", "s3://", "s3://a@b/c", "",
		"http://",   "https:///a"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(text_mirror_parse(bad[i], &none, &m, &why), RV_E_INVALID);
}

static void content_ranges_are_read(void **state) {
	static const char *const bad[] = {"",
									  "bytes",
									  "bytes 1-2",
									  "bytes 2-1/9",
									  "bytes 1-9/9",
									  "x",
									  "bytes */9",
									  "bytes 1-2/9x",
									  "bytes 1-2/1.5",
									  "bytes 1-2/ 9",
									  "bytes -1-2/9",
									  "bytes 1-2222222222222222222222/9"};
	uint64_t first, last, total;
	(void)state;
	assert_true(text_content_range("bytes 0-0/1", &first, &last, &total) && first == 0 && last == 0 && total == 1);
	assert_true(text_content_range("bytes 5-900/*", &first, &last, &total) && first == 5 && last == 900 &&
				total == UINT64_MAX);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (text_content_range(bad[i], &first, &last, &total))
			fail_msg("\"%s\" is taken", bad[i]);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_text_is_read_while_it_comes, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(what_is_wanted_comes_ahead, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(what_is_wanted_later_comes_behind_and_stays, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(an_evaluation_waits_for_what_cannot_come_ahead, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(bad_mirrors_do_no_harm, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(redirects_stay_at_hosts_that_were_agreed_to, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(the_name_of_another_host_is_not_looked_up, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(mirrors_of_a_manifest_are_asked_at_agreed_hosts_only, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(a_cache_of_two_shards_is_enough, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(odd_mirrors_are_enough, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(liars_are_named, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(a_wait_can_be_stopped, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(no_source_is_an_error_that_says_why, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(private_addresses_are_refused, make_dir, remove_dir),
		cmocka_unit_test(urls_are_checked),
		cmocka_unit_test(content_ranges_are_read),
	};
	return cmocka_run_group_tests(tests, start_mirror, stop_mirror);
}
