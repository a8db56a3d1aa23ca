/* Token files: there and back in both widths, byte by byte as llm.c has them; what is wrong is
 * named. */
#include "tests/common/scratch.h"
#include "tests/tokenizer/tokenizer_fixture.h"

#include "train/text/tokenizer/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[80];

static int setup(void **state) {
	(void)state;
	char dir[64];
	scratch_make(dir, sizeof dir);
	snprintf(path, sizeof path, "%s/shard", dir);
	return 0;
}

static void put(const void *bytes, size_t n) {
	assert_ok(rv_file_write_atomic(path, bytes, n, 0600, &et));
}

static void round_trip(uint32_t vocab, int token_bytes, uint32_t magic, uint32_t version) {
	enum { TOKENS = 10001 };
	static uint32_t ids[TOKENS];
	static int32_t back[TOKENS];
	struct shard_writer w;
	struct shard s;
	for (uint32_t i = 0; i < TOKENS; i++)
		ids[i] = (uint32_t)((uint64_t)i * 2654435761u % vocab);
	assert_ok(shard_writer_begin(&w, path, vocab, &et));
	assert_ok(shard_writer_append(&w, ids, 1, &et));
	assert_ok(shard_writer_append(&w, ids + 1, 0, &et));
	assert_ok(shard_writer_append(&w, ids + 1, TOKENS - 1, &et));
	assert_ok(shard_writer_commit(&w, &et));
	assert_ok(shard_open(&s, path, &et));
	assert_int_equal(s.n_tokens, TOKENS);
	assert_int_equal(s.token_bytes, token_bytes);
	assert_ok(shard_read(&s, vocab, 0, TOKENS, back, &et));
	assert_memory_equal(back, ids, sizeof ids);
	assert_ok(shard_read(&s, vocab, TOKENS - 3, 3, back, &et));
	assert_memory_equal(back, ids + TOKENS - 3, 3 * sizeof *ids);
	uint32_t header[4];
	assert_ok(mapped_file_read(&s.map, 0, sizeof header, header, &et));
	assert_int_equal(header[0], magic);
	assert_int_equal(header[1], version);
	assert_int_equal(header[2], TOKENS);
	assert_int_equal(header[3], 0);
	assert_int_equal(s.map.bytes, 1024 + (size_t)token_bytes * TOKENS);
	shard_close(&s);
}

static void both_widths_round_trip(void **state) {
	(void)state;
	round_trip(50257, 2, 20240520, 1);
	round_trip(65536, 2, 20240520, 1);
	round_trip(65537, 4, 20240801, 7);
	round_trip(1 << 20, 4, 20240801, 7);
}

static void a_file_without_a_header_is_16_bit(void **state) {
	(void)state;
	static const uint8_t bytes[] = {1, 0, 2, 1, 0xff, 0xff};
	struct shard s;
	int32_t ids[3];
	put(bytes, sizeof bytes);
	assert_ok(shard_open(&s, path, &et));
	assert_int_equal(s.n_tokens, 3);
	assert_ok(shard_read(&s, SHARD_ANY_TOKEN, 0, 3, ids, &et));
	assert_int_equal(ids[0], 1);
	assert_int_equal(ids[1], 0x102);
	assert_int_equal(ids[2], 0xffff);
	shard_close(&s);
	put("", 0);
	assert_ok(shard_open(&s, path, &et));
	assert_int_equal(s.n_tokens, 0);
	assert_ok(shard_read(&s, SHARD_ANY_TOKEN, 0, 0, ids, &et));
	shard_close(&s);
}

static void assert_refused(const void *bytes, size_t n, const char *names) {
	struct shard s;
	struct rv_errtext why = {0};
	put(bytes, n);
	assert_int_equal(shard_open(&s, path, &why), RV_E_INVALID);
	if (!strstr(why.text, names) || !strstr(why.text, path))
		fail_msg("\"%s\" does not name \"%s\"", why.text, names);
}

static void wrong_files_are_named(void **state) {
	(void)state;
	uint32_t header[257] = {SHARD_MAGIC_U16, 2, 2};
	struct shard s;
	struct rv_errtext why = {0};
	assert_refused("abc", 3, "3 bytes are no whole number");
	assert_refused(header, sizeof header, "version 2: must be 1");
	header[1] = SHARD_VERSION_U16;
	header[2] = 3;
	assert_refused(header, sizeof header, "the header says 3 tokens of 2 bytes, but 4 bytes follow");
	header[2] = UINT32_MAX;
	assert_refused(header, sizeof header, "4294967295");
	header[0] = SHARD_MAGIC_U32;
	assert_refused(header, sizeof header, "version 1: must be 7");
	header[1] = SHARD_VERSION_U32;
	header[2] = 0x40000001; /* times four overflows 32 bits to 4 */
	assert_refused(header, sizeof header, "1073741825");
	header[2] = 1;
	put(header, sizeof header);
	assert_ok(shard_open(&s, path, &et));
	shard_close(&s);
	assert_int_equal(shard_open(&s, "/nonexistent", &why), RV_E_NOTFOUND);
	assert_int_equal(shard_open(&s, "/tmp", &why), RV_E_INVALID);
}

static void tokens_beyond_the_vocabulary_are_named(void **state) {
	(void)state;
	uint16_t ids[5000] = {0};
	int32_t back[5000];
	struct shard s;
	struct shard_writer w;
	struct rv_errtext why = {0};
	ids[4567] = 300;
	put(ids, sizeof ids);
	assert_ok(shard_open(&s, path, &et));
	assert_int_equal(shard_read(&s, 300, 0, 5000, back, &why), RV_E_RANGE);
	assert_non_null(strstr(why.text, "token 4567 is 300"));
	assert_ok(shard_read(&s, 301, 0, 5000, back, &et));
	shard_close(&s);
	assert_ok(shard_writer_begin(&w, path, 300, &et));
	assert_int_equal(shard_writer_append(&w, (const uint32_t[]){1, 300}, 2, &why), RV_E_RANGE);
	assert_non_null(strstr(why.text, "token 1 is 300"));
	shard_writer_abandon(&w);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_widths_round_trip),
		cmocka_unit_test(a_file_without_a_header_is_16_bit),
		cmocka_unit_test(wrong_files_are_named),
		cmocka_unit_test(tokens_beyond_the_vocabulary_are_named),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
