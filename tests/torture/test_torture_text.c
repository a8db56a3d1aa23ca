/* test_torture_text.c: a text is published, and comes into a worker's cache, while every call that
 * can fail fails in turn: nothing that is wrong gets a name, what ended well is there, and when
 * nothing fails any more the work ends in the bytes of one that was never disturbed. */
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "tests/torture/torture.h"
#include "tests/worker/text_fixture.h"
#include "train/text/publish/publish_text.h"
#include "train/text/published/published.h"
#include "worker/text/text_cache.h"
#include "worker/text/text_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIALS = 60, SHARDS = 3, RANGES = 3, FILES = SHARDS + 1, TEXT_BYTES = 60000, PUBLISHED_SHARDS = 4 };

/* Reads all of a published text, which must be right. */
static void assert_whole(const char *dir, uint64_t shards) {
	struct published *p;
	assert_ok(published_open(dir, &p, &et));
	assert_int_equal(published_manifest(p)->n_shards, shards);
	for (uint64_t i = 0; i < shards; i++)
		assert_ok(published_check_shard(p, i, &et));
	published_close(p);
}

/* ---- the cache ---- */

struct fetching {
	char from[256], dir[256];
	struct manifest text;
	struct rv_hash data_hash;
	uint8_t *manifest, *files[FILES]; /* the index page, then the shards */
	size_t manifest_bytes;
	bool came[SHARDS]; /* the cache said that it is whole */
};

static struct text_file file_of(int i) {
	return i == 0 ? (struct text_file){.kind = TEXT_PAGE}
				  : (struct text_file){.kind = TEXT_SHARD, .i = (uint64_t)i - 1};
}

static void open_text(struct fetching *s) {
	char name[32];
	size_t n;
	scratch_make_in_memory(s->from, sizeof s->from);
	text_fixture_make(s->from, SHARDS, &s->text, &s->data_hash);
	s->manifest = text_fixture_read(s->from, MANIFEST_NAME, &s->manifest_bytes);
	for (int i = 0; i < FILES; i++) {
		const struct text_file f = file_of(i);
		text_file_name(&f, name);
		s->files[i] = text_fixture_read(s->from, name, &n);
		assert_int_equal(n, text_file_bytes(&s->text, &f));
	}
}

static void close_text(struct fetching *s) {
	for (int i = 0; i < FILES; i++)
		free(s->files[i]);
	free(s->manifest);
	scratch_remove(s->from);
}

static enum rv_err fetch_file(struct fetching *s, struct text_cache *c, int i, struct rv_errtext *et) {
	const struct text_file f = file_of(i);
	const uint64_t size = text_file_bytes(&s->text, &f);
	uint8_t held[RANGES];
	bool waits;
	RV_TRY(text_cache_begin(c, &f, held, &waits, et));
	for (uint32_t r = 0; r < text_core_ranges(size); r++) {
		const uint8_t *at = s->files[i] + (size_t)r * TEXT_RANGE_BYTES;
		const uint32_t n = text_core_range_bytes(size, r);
		if (!held[r])
			RV_TRY(text_cache_write(c, &f, r, at, n, text_cache_check(at, n), et));
	}
	return text_cache_finish(c, &f, et);
}

/* Fetches what the cache lacks of every shard. */
static bool fetch_all(struct fetching *s, struct text_cache *c, struct rv_errtext *et) {
	struct text_file next;
	for (int i = 0; i < SHARDS; i++) {
		for (int tries = 0; tries < 3 && text_cache_lacks(c, (uint64_t)i, &next); tries++)
			(void)torture_ok(fetch_file(s, c, next.kind == TEXT_PAGE ? 0 : i + 1, et), et);
		s->came[i] = !text_cache_lacks(c, (uint64_t)i, &next);
	}
	return s->came[0] && s->came[1] && s->came[2];
}

static bool fetch(struct fetching *s) {
	struct rv_errtext et = {0};
	struct text_cache *c;
	bool all = false;
	if (!torture_ok(text_cache_open(s->dir, &s->data_hash, UINT64_MAX, &c, &et), &et))
		return false;
	if (text_cache_manifest(c) || torture_ok(text_cache_take_manifest(c, s->manifest, s->manifest_bytes, &et), &et))
		all = fetch_all(s, c, &et);
	text_cache_close(c);
	return all;
}

static void begin_fetching(void *ctx) {
	struct fetching *s = ctx;
	scratch_make_in_memory(s->dir, sizeof s->dir);
	memset(s->came, 0, sizeof s->came);
}

static void run_fetching(void *ctx) {
	(void)fetch(ctx);
}

static void check_fetching(void *ctx) {
	struct fetching *s = ctx;
	struct published *p;
	if (s->came[0] || s->came[1] || s->came[2]) {
		assert_ok(published_open(s->dir, &p, &et));
		for (uint64_t i = 0; i < SHARDS; i++)
			if (s->came[i])
				assert_ok(published_check_shard(p, i, &et));
		published_close(p);
	}
	assert_true(fetch(s));
	assert_whole(s->dir, SHARDS);
	scratch_remove(s->dir);
}

static void a_text_that_is_fetched(void **state) {
	(void)state;
	static struct fetching s;
	open_text(&s);
	torture(&(struct torture){"a text that is fetched", begin_fetching, run_fetching, check_fetching, &s, TRIALS});
	close_text(&s);
}

/* ---- publishing ---- */

struct publishing {
	char dir[256], out[300], text[300];
	struct manifest whole; /* of the first trial, in which nothing fails */
	bool has_whole, done;
};

static bool publish(struct publishing *s, struct manifest *m) {
	const char *const paths[] = {s->text};
	struct rv_errtext et = {0};
	uint64_t bytes;
	const struct publish_text p = {.paths = paths,
								   .n_paths = 1,
								   .choice = {.field = "text", .split = ""},
								   .tokenizer = "bytes",
								   .pattern = "auto",
								   .separator = "auto",
								   .out = s->out,
								   .threads = 1,
								   .shard_tokens = 16384,
								   .holdout_every = 2,
								   .license = "",
								   .description = "",
								   .mirrors = ""};
	return torture_ok(publish_text(&p, m, &bytes, &et), &et);
}

static void begin_publishing(void *ctx) {
	struct publishing *s = ctx;
	char text[TEXT_BYTES];
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = i % 7 == 6 ? ' ' : (char)('a' + i * 31 % 26);
	scratch_make_in_memory(s->dir, sizeof s->dir);
	scratch_write(s->dir, "text", text, sizeof text);
	(void)snprintf(s->text, sizeof s->text, "%s/text", s->dir);
	(void)snprintf(s->out, sizeof s->out, "%s/out", s->dir);
	s->done = false;
}

static void run_publishing(void *ctx) {
	struct publishing *s = ctx;
	struct manifest m;
	faults_of_all_threads(true);
	s->done = publish(s, &m);
	faults_of_all_threads(false);
}

/* A job whose last step failed has published: the next one says so. */
static void check_publishing(void *ctx) {
	struct publishing *s = ctx;
	struct manifest m;
	if (!s->done)
		(void)publish(s, &m);
	assert_whole(s->out, PUBLISHED_SHARDS);
	assert_ok(manifest_read(s->out, &m, &et));
	if (!s->has_whole)
		s->whole = m;
	s->has_whole = true;
	assert_true(rv_hash_equal(&m.root, &s->whole.root));
	assert_int_equal(m.n_tokens, TEXT_BYTES);
	scratch_remove(s->dir);
}

static void a_text_that_is_published(void **state) {
	(void)state;
	static struct publishing s;
	torture(
		&(struct torture){"a text that is published", begin_publishing, run_publishing, check_publishing, &s, TRIALS});
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_that_is_fetched),
		cmocka_unit_test(a_text_that_is_published),
	};
	faults_hook_jansson();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
