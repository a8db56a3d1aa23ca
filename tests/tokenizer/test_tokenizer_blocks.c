/* Blocks: together the whole text; cut where the tokens do not notice; the same on any number of
 * lanes. */
#include "tests/tokenizer/tokenizer_fixture.h"

#include "train/text/tokenizer/block_lanes.h"
#include "train/text/tokenizer/patterns.h"
#include "train/text/tokenizer/text_blocks.h"

#include <pthread.h>
#include <sodium/utils.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The bytes as ranks: what shows is where the pattern cuts... and a token for each two letters
 * makes cuts matter. */
static char *ranks_of_pairs(void) {
	enum { CAP = 256 * 16 + 26 * 26 * 16 };
	char *text = malloc(CAP), base64[8];
	size_t n = 0;
	assert_non_null(text);
	for (int i = 0; i < 256 + 26 * 27; i++) {
		int k = i - 256;
		uint8_t bytes[2] = {(uint8_t)i, 0};
		if (k >= 0) {
			bytes[0] = (uint8_t)(k / 27 == 26 ? ' ' : 'a' + k / 27);
			bytes[1] = (uint8_t)(k % 27 == 26 ? '\n' : 'a' + k % 27);
		}
		sodium_bin2base64(base64, sizeof base64, bytes, k >= 0 ? 2 : 1, sodium_base64_VARIANT_ORIGINAL);
		n += (size_t)snprintf(text + n, CAP - n, "%s %d\n", base64, i);
	}
	return text;
}

static void assert_same_tokens(struct encoder *e, const uint8_t *text, size_t n, size_t cut) {
	struct token_list whole = encode_text(e, text, n, SPECIALS_AS_TEXT);
	struct token_list parts = encode_text(e, text, cut, SPECIALS_AS_TEXT);
	assert_ok(tokenizer_encode(e, text + cut, n - cut, SPECIALS_AS_TEXT, &parts, &et));
	assert_int_equal(parts.n, whole.n);
	assert_memory_equal(parts.ids, whole.ids, whole.n * sizeof *whole.ids);
	token_list_release(&whole);
	token_list_release(&parts);
}

static void cuts_do_not_change_the_tokens(void **state) {
	(void)state;
	char *ranks = ranks_of_pairs();
	const uint8_t *text = (const uint8_t *)fixture_text;
	size_t n = strlen(fixture_text), cuts = 0;
	for (const struct known_pattern *k = known_patterns; k->name; k++) {
		struct tokenizer *t;
		struct encoder *e;
		assert_ok(tokenizer_load("pairs", (const uint8_t *)ranks, strlen(ranks), k->pattern, &t, &et));
		assert_ok(encoder_new(t, &e, &et));
		for (size_t nominal = 1; nominal < n; nominal++) {
			size_t cut = text_blocks_cut(text, n, nominal);
			assert_true(cut <= nominal);
			cuts += cut > 3;
			if (cut > 3) /* further back there is no good place */
				assert_same_tokens(e, text, n, cut);
		}
		encoder_free(e);
		tokenizer_free(t);
	}
	assert_true(cuts > n);
	free(ranks);
}

static void known_places(void **state) {
	(void)state;
	static const struct {
		const char *text;
		size_t nominal, cut;
	} cases[] = {
		{"ab cd", 4, 2},
		{"ab  cd", 5, 5},
		{"ab\ncd", 4, 3},
		{"ab\n\ncd", 5, 5},
		{"a. b\xe4\xbd\xa0", 5, 4}, /* no place: between characters */
		{"\xe4\xbd\xa0\n\xe5\xa5\xbd\xe3", 6, 4},
		{"\xe4\xbd\xa0\n\xe3\x80\x80x", 6, 4}, /* an ideographic space follows: the character's begin */
		{"\x80\x80\x80\x80\x80\x80", 4, 4},
		{"ab", 9, 2},
		{"ab", 0, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(text_blocks_cut((const uint8_t *)cases[i].text, strlen(cases[i].text), cases[i].nominal),
						 cases[i].cut);
}

struct sums {
	pthread_mutex_t mutex;
	uint64_t bytes, blocks, files;
};

static enum rv_err add_up(void *ctx, int lane, uint64_t index, const struct text_block *block, struct rv_errtext *et) {
	struct sums *s = ctx;
	(void)lane;
	(void)index;
	(void)et;
	pthread_mutex_lock(&s->mutex);
	s->bytes += block->n;
	s->blocks++;
	s->files += block->n_begins;
	pthread_mutex_unlock(&s->mutex);
	return RV_OK;
}

static enum rv_err refuse(void *ctx, int lane, uint64_t index, const struct text_block *block, struct rv_errtext *et) {
	(void)ctx;
	(void)lane;
	(void)block;
	return index >= 3 ? rv_fail(et, RV_E_RANGE, "block %d", (int)index) : RV_OK;
}

static void blocks_are_the_files(void **state) {
	(void)state;
	enum { BYTES = 5 * TEXT_BLOCK_BYTES + 17 };
	uint8_t *text = malloc(BYTES);
	assert_non_null(text);
	for (size_t i = 0; i < BYTES; i++)
		text[i] = (uint8_t)(i % 61 == 0 ? ' ' : 'a' + i % 7);
	struct mapped_file list[2] = {{.path = "a", .at = text, .bytes = BYTES},
								  {.path = "b", .at = text, .bytes = TEXT_BLOCK_BYTES}};
	uint64_t begin[2] = {0, BYTES};
	const struct data_files files = {.files = list, .begin = begin, .n_files = 2, .bytes = BYTES + TEXT_BLOCK_BYTES};
	struct text_blocks blocks;
	assert_ok(text_blocks_init(&blocks, &files, &et));
	assert_int_equal(blocks.n, 7);
	uint8_t *buffer = malloc(TEXT_BLOCK_BUFFER_BYTES);
	assert_non_null(buffer);
	size_t at = 0;
	for (uint64_t i = 0; i < 6; i++) {
		struct text_block b;
		assert_ok(text_blocks_get(&blocks, i, buffer, &b, &et));
		assert_int_equal(at, text_blocks_cut(text, BYTES, i * TEXT_BLOCK_BYTES)); /* as if it saw the whole text */
		assert_true(at + b.n <= BYTES);
		assert_memory_equal(b.at, text + at, b.n);
		assert_int_equal(b.n_begins, i == 0);
		assert_int_equal(text_blocks_bytes_before(&blocks, i), i * TEXT_BLOCK_BYTES);
		at += b.n;
	}
	assert_int_equal(at, BYTES);
	assert_int_equal(text_blocks_bytes_before(&blocks, 6), BYTES);
	assert_int_equal(text_blocks_bytes_before(&blocks, 7), files.bytes);
	free(buffer);
	for (int lanes = 1; lanes <= 9; lanes += 4) {
		struct sums s = {.mutex = PTHREAD_MUTEX_INITIALIZER};
		const struct block_source source = text_blocks_source(&blocks);
		struct block_lanes l = {.blocks = &source, .end = blocks.n, .lanes = lanes, .fn = add_up, .ctx = &s};
		assert_ok(block_lanes_run(&l, &et));
		assert_int_equal(s.bytes, files.bytes);
		assert_int_equal(s.blocks, 7);
		assert_int_equal(s.files, 2);
		struct rv_errtext why = {0};
		l.fn = refuse;
		assert_int_equal(block_lanes_run(&l, &why), RV_E_RANGE);
		assert_string_equal(why.text, "block 3");
	}
	text_blocks_release(&blocks);
	free(text);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts_do_not_change_the_tokens),
		cmocka_unit_test(known_places),
		cmocka_unit_test(blocks_are_the_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
