/* test_worker_text_cache.c: what is fetched is kept within the quota, in the order of need, goes on
 * after a crash with what is right, and nothing wrong gets a name. */
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "tests/worker/text_fixture.h"
#include "train/text/published/published.h"
#include "worker/text/text_cache.h"
#include "worker/text/text_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHARDS = 6, RANGES = 3 };

static char from[256], dir[256]; /* the published text; the cache */
static struct manifest text;
static struct rv_hash data_hash;
static struct rv_errtext why;

static int make_text(void **state) {
	(void)state;
	scratch_make_in_memory(from, sizeof from);
	text_fixture_make(from, SHARDS, &text, &data_hash);
	return 0;
}

static int remove_text(void **state) {
	(void)state;
	scratch_remove(from);
	return 0;
}

static int make_dir(void **state) {
	(void)state;
	scratch_make_in_memory(dir, sizeof dir);
	return 0;
}

static int remove_dir(void **state) {
	(void)state;
	scratch_remove(dir);
	return 0;
}

static struct text_cache *cache_open(uint64_t shards) {
	struct text_cache *c;
	assert_ok(text_cache_open(dir, &data_hash, shards * TEXT_FIXTURE_SHARD_BYTES, &c, &et));
	if (!text_cache_manifest(c)) {
		size_t n;
		uint8_t *bytes = text_fixture_read(from, MANIFEST_NAME, &n);
		assert_ok(text_cache_take_manifest(c, bytes, n, &et));
		free(bytes);
	}
	return c;
}

/* Writes some ranges of a file, and damages byte `flip` of it (negative: none). */
static void write_ranges(struct text_cache *c, const struct text_file *f, uint32_t first, uint32_t n, int flip) {
	char name[32];
	size_t size;
	text_file_name(f, name);
	uint8_t *bytes = text_fixture_read(from, name, &size);
	assert_int_equal(size, text_file_bytes(&text, f));
	if (flip >= 0)
		bytes[flip] ^= 1;
	for (uint32_t r = first; r < first + n; r++) {
		const uint8_t *at = bytes + (size_t)r * TEXT_RANGE_BYTES;
		const uint32_t part = text_core_range_bytes(size, r);
		assert_ok(text_cache_write(c, f, r, at, part, text_cache_check(at, part), &et));
	}
	free(bytes);
}

static enum rv_err get(struct text_cache *c, const struct text_file *f, int flip, bool *waits) {
	uint8_t held[RANGES];
	const enum rv_err e = text_cache_begin(c, f, held, waits, &why);
	if (e != RV_OK)
		return e;
	write_ranges(c, f, 0, text_core_ranges(text_file_bytes(&text, f)), flip);
	return text_cache_finish(c, f, &why);
}

/* Gets a shard, and the page above it first. Returns whether there was room. */
static bool get_shard(struct text_cache *c, uint64_t shard) {
	struct text_file f;
	bool waits = false;
	while (text_cache_lacks(c, shard, &f)) {
		const enum rv_err e = get(c, &f, -1, &waits);
		if (waits)
			return false;
		if (e != RV_OK)
			fail_msg("%s", why.text);
	}
	return true;
}

static bool has(struct text_cache *c, uint64_t shard) {
	struct text_file f;
	return !text_cache_lacks(c, shard, &f);
}

static void assert_readable(uint64_t shard) {
	struct published *p;
	int32_t tokens[64];
	const uint64_t at = (shard + 1) * TEXT_FIXTURE_SHARD_TOKENS - 64;
	assert_ok(published_open(dir, &p, &et));
	assert_ok(published_read(p, at, 64, tokens, &et));
	for (uint64_t i = 0; i < 64; i++)
		assert_int_equal(tokens[i], text_fixture_token(at + i));
	published_close(p);
}

static void what_comes_is_read(void **state) {
	struct text_cache *c = cache_open(SHARDS);
	struct text_file f;
	(void)state;
	assert_true(text_cache_lacks(c, 3, &f) && f.kind == TEXT_PAGE && f.level == 0 && f.i == 0);
	assert_true(get_shard(c, 3));
	assert_readable(3);
	assert_false(has(c, 2));
	assert_string_equal(text_cache_lacks_tokenizer(c), "tokenizer.json");
	assert_int_equal(text_cache_take_tokenizer(c, (const uint8_t *)"x", 1, &why), RV_E_CORRUPT);
	size_t n;
	uint8_t *bytes = text_fixture_read(from, "tokenizer.json", &n);
	assert_ok(text_cache_take_tokenizer(c, bytes, n, &et));
	free(bytes);
	assert_null(text_cache_lacks_tokenizer(c));
	text_cache_close(c);
}

static void the_manifest_must_be_the_runs(void **state) {
	struct text_cache *c;
	const struct rv_hash other = rv_hash_of("other", 5);
	size_t n;
	(void)state;
	assert_ok(text_cache_open(dir, &other, UINT64_MAX, &c, &et));
	uint8_t *bytes = text_fixture_read(from, MANIFEST_NAME, &n);
	assert_int_equal(text_cache_take_manifest(c, bytes, n, &why), RV_E_CORRUPT);
	assert_int_equal(text_cache_take_manifest(c, bytes, n - 3, &why), RV_E_INVALID);
	assert_null(text_cache_manifest(c));
	text_cache_close(c);
	assert_ok(text_cache_open(dir, &data_hash, TEXT_FIXTURE_SHARD_BYTES, &c, &et));
	assert_int_equal(text_cache_take_manifest(c, bytes, n, &why), RV_E_FULL);
	assert_non_null(strstr(why.text, "two must fit"));
	text_cache_close(c);
	free(bytes);
}

static void wrong_bytes_get_no_name(void **state) {
	struct text_cache *c = cache_open(SHARDS);
	struct text_file f;
	bool waits;
	(void)state;
	assert_true(text_cache_lacks(c, 0, &f));
	assert_int_equal(get(c, &f, 5, &waits), RV_E_CORRUPT);
	assert_true(text_cache_lacks(c, 0, &f) && f.kind == TEXT_PAGE);
	assert_int_equal(get(c, &f, -1, &waits), RV_OK);
	assert_true(text_cache_lacks(c, 0, &f) && f.kind == TEXT_SHARD);
	assert_int_equal(get(c, &f, 2000000, &waits), RV_E_CORRUPT);
	assert_true(text_cache_lacks(c, 0, &f) && f.kind == TEXT_SHARD);
	assert_int_equal(text_cache_used(c), 0);
	assert_int_equal(get(c, &f, -1, &waits), RV_OK);
	assert_readable(0);
	/* A page that goes bad on the disk is removed and got again, with what hangs on it in place. */
	char path[600];
	snprintf(path, sizeof path, "%s/index-0-000000.hashes", dir);
	scratch_flip(path, 40);
	assert_true(text_cache_lacks(c, 0, &f) && f.kind == TEXT_PAGE);
	assert_int_equal(get(c, &f, -1, &waits), RV_OK);
	assert_true(has(c, 0));
	text_cache_close(c);
}

static void a_later_process_goes_on(void **state) {
	struct text_cache *c = cache_open(SHARDS);
	const struct text_file f = {.kind = TEXT_SHARD, .i = 1};
	uint8_t held[RANGES];
	bool waits;
	char path[600];
	(void)state;
	assert_true(get_shard(c, 0)); /* and the page */
	assert_ok(text_cache_begin(c, &f, held, &waits, &et));
	assert_memory_equal(held, ((uint8_t[]){0, 0, 0}), RANGES);
	write_ranges(c, &f, 0, 1, -1);
	write_ranges(c, &f, 2, 1, -1);
	text_cache_close(c); /* as a crash would */
	snprintf(path, sizeof path, "%s/shard-000001.bin.part", dir);
	scratch_flip(path, (2 << 20) + 7); /* of the last range: not on the disk when the power went */
	c = cache_open(SHARDS);
	assert_true(has(c, 0) && !has(c, 1));
	assert_ok(text_cache_begin(c, &f, held, &waits, &et));
	assert_memory_equal(held, ((uint8_t[]){1, 0, 0}), RANGES);
	write_ranges(c, &f, 1, 2, -1);
	assert_ok(text_cache_finish(c, &f, &et));
	assert_readable(1);
	assert_int_equal(text_cache_used(c), 2 * TEXT_FIXTURE_SHARD_BYTES);
	text_cache_close(c);
}

static void parts_of_another_size_begin_anew(void **state) {
	struct text_cache *c = cache_open(SHARDS);
	const struct text_file f = {.kind = TEXT_SHARD, .i = 2};
	uint8_t held[RANGES] = {9, 9, 9};
	bool waits;
	(void)state;
	scratch_write(dir, "shard-000002.bin.part", "some bytes", 10);
	assert_ok(text_cache_begin(c, &f, held, &waits, &et));
	assert_memory_equal(held, ((uint8_t[]){0, 0, 0}), RANGES);
	text_cache_close(c);
}

static void the_quota_holds_what_is_needed_first(void **state) {
	struct text_cache *c = cache_open(2);
	(void)state;
	text_cache_prefer(c, (uint64_t[]){4, 1, 5, 0}, 4);
	assert_true(get_shard(c, 0));
	assert_true(get_shard(c, 5));
	assert_true(get_shard(c, 1)); /* in place of 0 */
	assert_true(!has(c, 0) && has(c, 5) && has(c, 1));
	assert_false(get_shard(c, 0)); /* needed after both */
	assert_true(get_shard(c, 4));
	assert_true(has(c, 4) && has(c, 1) && !has(c, 5));
	assert_true(text_cache_used(c) <= 2 * TEXT_FIXTURE_SHARD_BYTES);
	text_cache_prefer(c, (uint64_t[]){1, 5}, 2); /* 4 has been read */
	assert_true(get_shard(c, 5));
	assert_true(has(c, 1) && has(c, 5) && !has(c, 4));
	assert_readable(5);
	text_cache_close(c);
	/* A smaller quota next time. */
	c = cache_open(SHARDS);
	for (uint64_t i = 0; i < SHARDS; i++) {
		text_cache_prefer(c, &i, 1);
		assert_true(get_shard(c, i));
	}
	text_cache_close(c);
	c = cache_open(3);
	assert_int_equal(text_cache_used(c), 3 * TEXT_FIXTURE_SHARD_BYTES);
	text_cache_close(c);
}

static void a_damaged_shard_is_removed(void **state) {
	struct text_cache *c = cache_open(SHARDS);
	(void)state;
	char path[600];
	assert_true(get_shard(c, 2));
	text_cache_verify(c, 2);
	assert_true(has(c, 2));
	snprintf(path, sizeof path, "%s/shard-000002.bin", dir);
	scratch_flip(path, -1);
	text_cache_verify(c, 2);
	assert_false(has(c, 2));
	assert_int_equal(text_cache_used(c), 0);
	text_cache_close(c);
}

static void one_process_has_it(void **state) {
	struct text_cache *c = cache_open(2), *other;
	(void)state;
	assert_int_equal(text_cache_open(dir, &data_hash, UINT64_MAX, &other, &why), RV_E_BUSY);
	text_cache_close(c);
}

static void names_are_told_apart(void **state) {
	static const char *const others[] = {
		"shard-00001.bin",      "shard-000001.bin.tmp", "shard--00001.bin",           "x",
		"shard-9999999999.bin", "shard-000001.binx",    "shard-000001.bin.part.part", "manifest.json",
		"shard- 00001.bin",     "shard-0000001.bin"};
	uint64_t shard;
	bool is_part;
	(void)state;
	assert_true(text_file_parse_shard("shard-000017.bin", &shard, &is_part) && shard == 17 && !is_part);
	assert_true(text_file_parse_shard("shard-1234567.bin.part", &shard, &is_part) && shard == 1234567 && is_part);
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		if (text_file_parse_shard(others[i], &shard, &is_part))
			fail_msg("%s is taken for shard %llu", others[i], (unsigned long long)shard);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_comes_is_read, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(the_manifest_must_be_the_runs, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(wrong_bytes_get_no_name, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(a_later_process_goes_on, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(parts_of_another_size_begin_anew, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(the_quota_holds_what_is_needed_first, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(a_damaged_shard_is_removed, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(one_process_has_it, make_dir, remove_dir),
		cmocka_unit_test(names_are_told_apart),
	};
	return cmocka_run_group_tests(tests, make_text, remove_text);
}
