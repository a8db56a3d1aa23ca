/* Merging: both ways give what the definition gives; a long run costs no more per byte than it
 * must. */
#include "tests/common/scratch.h"
#include "tests/tokenizer/tokenizer_fixture.h"

#include "base/rng.h"
#include "train/text/tokenizer/bpe.h"

#include <stdlib.h>
#include <string.h>

enum { VOCAB = 400, LETTERS = 4 };

/* Random merges over a few letters, so that they compete and overlap. */
static void random_bpe(struct bpe *b, uint64_t seed) {
	struct rv_rng rng = rv_rng_of(seed, 0);
	*b = (struct bpe){0};
	assert_ok(vocab_init(&b->vocab, VOCAB, &et));
	assert_ok(pair_table_init(&b->pairs, VOCAB, &et));
	for (uint32_t id = 0; id < 256; id++)
		assert_ok(vocab_put(&b->vocab, id, &(uint8_t){(uint8_t)id}, 1, true, &et));
	for (uint32_t id = 256; id < VOCAB;) {
		uint32_t pair[2];
		uint8_t bytes[2 * VOCAB];
		size_t n = 0, len;
		for (int k = 0; k < 2; k++) {
			uint64_t pick = rv_rng_below(&rng, LETTERS + (id - 256));
			pair[k] = pick < LETTERS ? (uint32_t)('a' + pick) : (uint32_t)(256 + pick - LETTERS);
			const uint8_t *half = vocab_bytes(&b->vocab, pair[k], &len);
			if (n + len <= sizeof bytes)
				memcpy(bytes + n, half, len);
			n += len;
		}
		if (n > 12 || vocab_find(&b->vocab, bytes, n) != VOCAB_NONE)
			continue;
		assert_ok(vocab_put(&b->vocab, id, bytes, n, true, &et));
		assert_true(pair_table_put(&b->pairs, pair[0], pair[1], id - 256, id));
		id++;
	}
	assert_ok(bpe_find_bytes(b, &et));
}

/* The definition, word for word. */
static size_t merge_by_definition(const struct bpe *b, const uint8_t *piece, size_t n, uint32_t *ids) {
	for (size_t i = 0; i < n; i++)
		ids[i] = b->byte_token[piece[i]];
	for (;;) {
		size_t best = n;
		uint32_t rank = PAIR_NO_RANK;
		for (size_t i = 0; i + 1 < n; i++) {
			uint32_t r = pair_table_find(&b->pairs, ids[i], ids[i + 1])->rank;
			if (r < rank) {
				rank = r;
				best = i;
			}
		}
		if (best == n)
			return n;
		ids[best] = pair_table_find(&b->pairs, ids[best], ids[best + 1])->into;
		memmove(ids + best + 1, ids + best + 2, (n - best - 2) * sizeof *ids);
		n--;
	}
}

static void both_ways_are_the_definition(void **state) {
	(void)state;
	struct bpe_scratch scratch = {0};
	struct token_list out = {0};
	struct rv_rng rng = rv_rng_of(7, 1);
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct bpe b;
		random_bpe(&b, seed);
		for (int round = 0; round < 100; round++) {
			uint8_t piece[300];
			uint32_t wanted[300];
			size_t n = 1 + rv_rng_below(&rng, round % 2 ? sizeof piece : BPE_SHORT_BYTES);
			for (size_t i = 0; i < n; i++)
				piece[i] = (uint8_t)('a' + rv_rng_below(&rng, LETTERS));
			size_t n_wanted = merge_by_definition(&b, piece, n, wanted);
			out.n = 0;
			assert_ok(bpe_merge_long(&b, &scratch, piece, n, &out, &et));
			assert_int_equal(out.n, n_wanted);
			assert_memory_equal(out.ids, wanted, n_wanted * sizeof *wanted);
			if (n > BPE_SHORT_BYTES)
				continue;
			out.n = 0;
			assert_ok(bpe_merge_short(&b, piece, n, &out, &et));
			assert_int_equal(out.n, n_wanted);
			assert_memory_equal(out.ids, wanted, n_wanted * sizeof *wanted);
		}
		bpe_release(&b);
	}
	bpe_scratch_release(&scratch);
	token_list_release(&out);
}

/* Quadratic work on 4 MiB would take hours: that it ends is the test. */
static void a_long_piece_ends(void **state) {
	(void)state;
	enum { BYTES = 4 << 20 };
	struct bpe b;
	struct bpe_scratch scratch = {0};
	struct token_list out = {0};
	uint8_t *piece = malloc(BYTES);
	assert_non_null(piece);
	random_bpe(&b, 3);
	memset(piece, 'a', BYTES);
	assert_ok(bpe_encode(&b, &scratch, piece, BYTES, &out, &et));
	size_t bytes = 0, n;
	for (size_t i = 0; i < out.n; i++) {
		assert_non_null(vocab_bytes(&b.vocab, out.ids[i], &n));
		bytes += n;
	}
	assert_int_equal(bytes, BYTES);
	bpe_release(&b);
	bpe_scratch_release(&scratch);
	token_list_release(&out);
	free(piece);
}

static void a_byte_without_a_token_is_named(void **state) {
	(void)state;
	struct bpe b = {0};
	struct rv_errtext why = {0};
	assert_ok(vocab_init(&b.vocab, 256, &et));
	for (uint32_t id = 0; id < 256; id++)
		if (id != 0x41)
			assert_ok(vocab_put(&b.vocab, id, &(uint8_t){(uint8_t)id}, 1, true, &et));
	assert_int_equal(bpe_find_bytes(&b, &why), RV_E_INVALID);
	assert_non_null(strstr(why.text, "0x41"));
	bpe_release(&b);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ways_are_the_definition),
		cmocka_unit_test(a_long_piece_ends),
		cmocka_unit_test(a_byte_without_a_token_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
