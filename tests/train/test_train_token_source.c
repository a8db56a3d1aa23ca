/* test_train_token_source.c: files of every sort as one run of tokens; what is wrong with them is
 * named. */
#include "tests/train/train_fixture.h"

#include "train/text/token_source.h"
#include "train/text/tokenizer/tokenize_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TOKENS = 20000, VOCAB = 50257 };

struct fixture {
	char dir[256];
	int32_t tokens[TOKENS];
};

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof *f);
	assert_non_null(f);
	for (uint32_t i = 0; i < TOKENS; i++)
		f->tokens[i] = (int32_t)((uint64_t)i * 2654435761u % VOCAB);
	scratch_make(f->dir, sizeof f->dir);
	*state = f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	scratch_remove(f->dir);
	free(f);
	return 0;
}

static void in_dir(const struct fixture *f, const char *name, char path[300]) {
	snprintf(path, 300, "%s/%s", f->dir, name);
}

static void write_shard(const struct fixture *f, const char *name, uint32_t vocab, size_t from, size_t n) {
	char path[300];
	struct shard_writer w;
	in_dir(f, name, path);
	assert_int_equal(shard_writer_begin(&w, path, vocab, NULL), RV_OK);
	assert_int_equal(shard_writer_append(&w, (const uint32_t *)f->tokens + from, n, NULL), RV_OK);
	assert_int_equal(shard_writer_commit(&w, NULL), RV_OK);
}

static void write_headerless(const struct fixture *f, const char *name, size_t from, size_t n) {
	uint16_t *narrow = malloc(n * sizeof *narrow);
	char path[300];
	assert_non_null(narrow);
	for (size_t i = 0; i < n; i++)
		narrow[i] = (uint16_t)f->tokens[from + i];
	fixture_write(f->dir, name, (const uint8_t *)narrow, n * sizeof *narrow, path, sizeof path);
	free(narrow);
}

static void assert_tokens(const struct fixture *f, const char *name) {
	char path[300];
	struct token_source s;
	int32_t *got = malloc(sizeof f->tokens);
	assert_non_null(got);
	in_dir(f, name, path);
	assert_ok(token_source_open(&s, path, VOCAB, &et));
	assert_false(token_source_is_text(&s));
	assert_int_equal(s.n_tokens, TOKENS);
	assert_ok(token_source_read(&s, 0, TOKENS, got, &et));
	assert_memory_equal(got, f->tokens, sizeof f->tokens);
	for (size_t at = 0; at + 7 < TOKENS; at += 61) {
		assert_ok(token_source_read(&s, at, 7, got, &et));
		assert_memory_equal(got, f->tokens + at, 7 * sizeof *got);
	}
	token_source_release(&s);
	free(got);
}

static void assert_refused(const struct fixture *f, const char *name, enum rv_err wanted, const char *names) {
	char path[300];
	struct token_source s;
	struct rv_errtext et = {0};
	in_dir(f, name, path);
	assert_fault(token_source_open(&s, path, VOCAB, &et), wanted, &et, names);
	assert_null(s.files.files);
}

static void test_each_layout(void **state) {
	struct fixture *f = *state;
	write_shard(f, "narrow.bin", VOCAB, 0, TOKENS);
	write_shard(f, "wide", 1 << 20, 0, TOKENS); /* the magic will do */
	write_headerless(f, "plain.bin", 0, TOKENS);
	assert_tokens(f, "narrow.bin");
	assert_tokens(f, "wide");
	assert_tokens(f, "plain.bin");
}

/* All layouts together, with an empty shard and an empty file between. */
static void test_several_are_one(void **state) {
	struct fixture *f = *state;
	char path[300], empty[300];
	in_dir(f, "many", path);
	assert_int_equal(mkdir(path, 0700), 0);
	write_shard(f, "many/b.bin", VOCAB, 9999, 1);
	write_shard(f, "many/a.bin", 1 << 20, 0, 9999);
	write_shard(f, "many/bb.bin", VOCAB, 0, 0);
	write_headerless(f, "many/c.bin", 10000, 10000);
	fixture_write(path, "bbb.bin", (const uint8_t *)"", 0, empty, sizeof empty);
	assert_tokens(f, "many");
	assert_tokens(f, "many/*.bin");
	assert_tokens(f, "man?/[abc]*.bin");
	write_headerless(f, "many/odd.val", 0, 3); /* text, as far as names go */
	assert_refused(f, "many", RV_E_INVALID, "odd.val is text");
	assert_tokens(f, "many/*.bin");
	assert_refused(f, "many/*.none", RV_E_NOTFOUND, "matches this pattern");
	assert_refused(f, "man[y]", RV_E_NOTFOUND, "only directories");
}

static void test_a_name_with_a_star_is_a_name_first(void **state) {
	struct fixture *f = *state;
	write_shard(f, "star*.bin", VOCAB, 0, TOKENS);
	write_shard(f, "star2.bin", VOCAB, 0, 5);
	assert_tokens(f, "star*.bin");
}

static void test_malformed_shards_are_named(void **state) {
	struct fixture *f = *state;
	char path[300];
	write_shard(f, "cut.bin", VOCAB, 0, 1000);
	in_dir(f, "cut.bin", path);
	assert_int_equal(truncate(path, 2000), 0);
	assert_refused(f, "cut.bin", RV_E_INVALID, "cut.bin");
	fixture_write(f->dir, "odd.bin", (const uint8_t *)"abc", 3, path, sizeof path);
	assert_refused(f, "odd.bin", RV_E_INVALID, "whole number of 16-bit");
}

static void test_no_token_outside_the_vocabulary_gets_out(void **state) {
	struct fixture *f = *state;
	char path[300];
	struct token_source s;
	struct rv_errtext et = {0};
	int32_t got[100];
	f->tokens[150] = VOCAB;
	write_shard(f, "beyond.bin", VOCAB + 1, 0, TOKENS);
	f->tokens[150] = (int32_t)(150 * (uint64_t)2654435761u % VOCAB);
	in_dir(f, "beyond.bin", path);
	assert_int_equal(token_source_open(&s, path, VOCAB, &et), RV_OK);
	assert_int_equal(token_source_read(&s, 50, 100, got, &et), RV_OK);
	assert_fault(token_source_read(&s, 51, 100, got, &et), RV_E_RANGE, &et, "token 150 is 50257");
	assert_non_null(strstr(et.text, path));
	token_source_release(&s);
	assert_int_equal(token_source_open(&s, path, 0, &et), RV_OK);
	assert_int_equal(token_source_read(&s, 51, 100, got, &et), RV_OK);
	assert_int_equal(got[99], VOCAB);
	token_source_release(&s);
}

/* The pages past the new end are gone: touching them would be SIGBUS. */
static void test_a_file_cut_short_is_a_fault(void **state) {
	struct fixture *f = *state;
	char path[300];
	struct token_source s;
	struct rv_errtext et = {0};
	int32_t *got = malloc(sizeof f->tokens);
	assert_non_null(got);
	write_shard(f, "shrinks.bin", VOCAB, 0, TOKENS);
	in_dir(f, "shrinks.bin", path);
	assert_int_equal(token_source_open(&s, path, VOCAB, &et), RV_OK);
	assert_int_equal(truncate(path, 8192), 0);
	assert_int_equal(token_source_read(&s, 0, 100, got, &et), RV_OK);
	assert_memory_equal(got, f->tokens, 100 * sizeof *got);
	assert_fault(token_source_read(&s, TOKENS - 5, 5, got, &et), RV_E_IO, &et, "cut short");
	assert_fault(token_source_read(&s, 0, TOKENS, got, &et), RV_E_IO, &et, path);
	token_source_release(&s);
	free(got);
}

static void test_a_replaced_or_removed_file_stays_as_it_was(void **state) {
	struct fixture *f = *state;
	char path[300];
	struct token_source s;
	int32_t got[100];
	write_shard(f, "replaced.bin", VOCAB, 0, TOKENS);
	in_dir(f, "replaced.bin", path);
	assert_int_equal(token_source_open(&s, path, VOCAB, NULL), RV_OK);
	write_shard(f, "replaced.bin", VOCAB, 100, 200);
	assert_int_equal(token_source_read(&s, 0, 100, got, NULL), RV_OK);
	assert_memory_equal(got, f->tokens, sizeof got);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(token_source_read(&s, TOKENS - 100, 100, got, NULL), RV_OK);
	assert_memory_equal(got, f->tokens + TOKENS - 100, sizeof got);
	token_source_release(&s);
}

/* What `rivulet tokenize` writes beside the shards is not in the way; what it has not finished is
 * no data. */
static void test_a_directory_that_tokenize_made(void **state) {
	struct fixture *f = *state;
	char dir[300], path[300];
	struct tokenize_state made = {.shards = 2, .tokens = TOKENS, .done = false};
	in_dir(f, "made", dir);
	assert_int_equal(mkdir(dir, 0700), 0);
	write_shard(f, "made/tokens-000000.bin", VOCAB, 0, 12345);
	write_shard(f, "made/tokens-000001.bin", VOCAB, 12345, TOKENS - 12345);
	fixture_write(dir, "lock", (const uint8_t *)"123\n", 4, path, sizeof path);
	fixture_write(dir, "README", (const uint8_t *)"text", 4, path, sizeof path);
	assert_int_equal(tokenize_state_write(dir, &made, NULL), RV_OK);
	assert_refused(f, "made", RV_E_INVALID, "only partly");
	made.done = true;
	assert_int_equal(tokenize_state_write(dir, &made, NULL), RV_OK);
	assert_tokens(f, "made");
	in_dir(f, "made/tokens-000000.bin", path);
	assert_int_equal(unlink(path), 0);
	assert_refused(f, "made", RV_E_CORRUPT, "tokenize the text again");
}

static void test_bytes_need_256_tokens(void **state) {
	struct fixture *f = *state;
	char path[300];
	struct token_source s;
	struct rv_errtext et = {0};
	int32_t got[4];
	fixture_write(f->dir, "text", (const uint8_t *)"a\xff\n\0", 4, path, sizeof path);
	assert_fault(token_source_open(&s, path, 255, &et), RV_E_RANGE, &et, "256");
	assert_int_equal(token_source_open(&s, path, 256, &et), RV_OK);
	assert_true(token_source_is_text(&s));
	assert_int_equal(token_source_read(&s, 0, 4, got, &et), RV_OK);
	assert_int_equal(got[1], 0xff);
	assert_int_equal(got[3], 0);
	token_source_release(&s);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_layout),
		cmocka_unit_test(test_several_are_one),
		cmocka_unit_test(test_a_name_with_a_star_is_a_name_first),
		cmocka_unit_test(test_malformed_shards_are_named),
		cmocka_unit_test(test_no_token_outside_the_vocabulary_gets_out),
		cmocka_unit_test(test_a_file_cut_short_is_a_fault),
		cmocka_unit_test(test_a_replaced_or_removed_file_stays_as_it_was),
		cmocka_unit_test(test_a_directory_that_tokenize_made),
		cmocka_unit_test(test_bytes_need_256_tokens),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
