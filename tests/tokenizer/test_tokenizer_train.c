/* Training: what the definition gives, whatever the order of the text; files that load. */
#include "tests/tokenizer/tokenizer_fixture.h"

#include "base/rng.h"
#include "train/text/tokenizer/pair_table.h"
#include "train/text/tokenizer/trainer.h"

#include <stdlib.h>
#include <string.h>

static void count_words(struct piece_counts *c, const char *const *words, const uint64_t *times, size_t n) {
	*c = (struct piece_counts){0};
	for (size_t i = 0; i < n; i++)
		assert_ok(piece_counts_add(c, (const uint8_t *)words[i], strlen(words[i]), times[i], &et));
}

static void assert_token(const struct trained_bpe *t, uint32_t id, const char *wanted) {
	size_t n;
	const uint8_t *bytes = vocab_bytes(&t->vocab, id, &n);
	assert_non_null(bytes);
	assert_int_equal(n, strlen(wanted));
	assert_memory_equal(bytes, wanted, n);
}

/* Counts by hand: es 9, st 9, we 8, lo 7, ow 7; es before st, as e is before s. */
static void the_textbook_example(void **state) {
	(void)state;
	static const char *const words[] = {"low", "lower", "newest", "widest"};
	static const uint64_t times[] = {5, 2, 6, 3};
	struct piece_counts c;
	struct trained_bpe t;
	count_words(&c, words, times, 4);
	assert_ok(bpe_train(&c, 256 + 5, NULL, NULL, &t, &et));
	assert_token(&t, 256, "es");
	assert_token(&t, 257, "est");
	assert_token(&t, 258, "lo");
	assert_token(&t, 259, "low");
	assert_token(&t, 260, "ew"); /* 6, as ne and west */
	trained_bpe_release(&t);
	piece_counts_release(&c);
}

static void runs_of_one_letter_overlap(void **state) {
	(void)state;
	static const char *const words[] = {"aaaaa", "aaab"};
	static const uint64_t times[] = {2, 1};
	struct piece_counts c;
	struct trained_bpe t;
	count_words(&c, words, times, 2);
	assert_ok(bpe_train(&c, 258, NULL, NULL, &t, &et));
	assert_token(&t, 256, "aa"); /* aa.aa.a twice, aa.a.b: aa+aa 2, aa+a 3, a+b 1 */
	assert_token(&t, 257, "aaa");
	trained_bpe_release(&t);
	piece_counts_release(&c);
}

/* The definition: count all pairs afresh before every merge. */
struct slow_word {
	uint32_t ids[16], n;
	uint64_t times;
};

static uint64_t slow_count(const struct slow_word *words, size_t n, uint32_t left, uint32_t right) {
	uint64_t sum = 0;
	for (size_t w = 0; w < n; w++)
		for (uint32_t i = 0; i + 1 < words[w].n; i++)
			sum += words[w].ids[i] == left && words[w].ids[i + 1] == right ? words[w].times : 0;
	return sum;
}

static uint64_t slow_best(const struct slow_word *words, size_t n, uint64_t *key) {
	uint64_t best = 0;
	*key = UINT64_MAX;
	for (size_t w = 0; w < n; w++)
		for (uint32_t i = 0; i + 1 < words[w].n; i++) {
			uint64_t k = pair_key(words[w].ids[i], words[w].ids[i + 1]);
			uint64_t count = slow_count(words, n, words[w].ids[i], words[w].ids[i + 1]);
			if (count > best || (count == best && k < *key)) {
				best = count;
				*key = k;
			}
		}
	return best;
}

static void slow_merge(struct slow_word *w, uint64_t key, uint32_t into) {
	uint32_t kept = 0;
	for (uint32_t i = 0; i < w->n; i++) {
		bool here = i + 1 < w->n && pair_key(w->ids[i], w->ids[i + 1]) == key;
		w->ids[kept++] = here ? into : w->ids[i];
		i += here;
	}
	w->n = kept;
}

/* Letters a to d are 64 to 67: '!' (33) is token 0. Ends early where two merges make the same
 * token: there the definition leaves a choice. */
static void it_is_the_definition(void **state) {
	(void)state;
	enum { WORDS = 20, MERGES = 12 };
	struct rv_rng rng = rv_rng_of(5, 0);
	for (int round = 0; round < 60; round++) {
		struct piece_counts c = {0};
		struct slow_word slow[WORDS];
		struct trained_bpe t;
		for (size_t w = 0; w < WORDS; w++) {
			uint8_t letters[16];
			slow[w] = (struct slow_word){.n = 2 + (uint32_t)rv_rng_below(&rng, 14), .times = 1 + rv_rng_below(&rng, 9)};
			for (uint32_t i = 0; i < slow[w].n; i++) {
				letters[i] = (uint8_t)('a' + rv_rng_below(&rng, 4));
				slow[w].ids[i] = (uint32_t)(letters[i] - '!');
			}
			assert_ok(piece_counts_add(&c, letters, slow[w].n, slow[w].times, &et));
		}
		assert_ok(bpe_train(&c, 256 + MERGES, NULL, NULL, &t, &et));
		for (uint32_t m = 0; m < t.n_merges && t.n_merges == MERGES; m++) {
			uint64_t key;
			assert_true(slow_best(slow, WORDS, &key) > 0);
			assert_int_equal(pair_key(t.merges[m].left, t.merges[m].right), key);
			for (size_t w = 0; w < WORDS; w++)
				slow_merge(&slow[w], key, 256 + m);
		}
		trained_bpe_release(&t);
		piece_counts_release(&c);
	}
}

static char *train_in_parts(size_t part, bool backwards) {
	struct piece_counts all = {0};
	size_t n = strlen(fixture_text), parts = (n + part - 1) / part;
	char *json;
	for (size_t i = 0; i < parts; i++) {
		struct piece_counter *c;
		size_t at = (backwards ? parts - 1 - i : i) * part;
		assert_ok(piece_counter_new(&c, &et));
		assert_ok(piece_counter_add(c, (const uint8_t *)fixture_text + at, n - at < part ? n - at : part, &et));
		assert_ok(piece_counts_merge(&all, piece_counter_counts(c), &et));
		piece_counter_free(c);
	}
	assert_ok(trainer_make_json(&all, 320, NULL, NULL, &json, &et));
	piece_counts_release(&all);
	return json;
}

static void order_and_parts_do_not_matter(void **state) {
	(void)state;
	char *forwards = train_in_parts(100, false), *backwards = train_in_parts(100, true);
	assert_string_equal(forwards, backwards);
	free(forwards);
	free(backwards);
}

static void what_is_written_loads(void **state) {
	(void)state;
	struct tokenizer *t;
	struct encoder *e;
	fixture_tokenizer(400, &t, &e);
	assert_int_equal(tokenizer_vocab(t), 400);
	size_t n = strlen(fixture_text);
	assert_true(2 * assert_round_trip(t, e, fixture_text, n) < n);
	encoder_free(e);
	tokenizer_free(t);
}

static bool stop_at_once(void *ctx, uint32_t tokens, uint32_t wanted) {
	(void)ctx;
	(void)tokens;
	(void)wanted;
	return false;
}

static void limits_are_named(void **state) {
	(void)state;
	struct piece_counts c = {0};
	struct rv_errtext why = {0};
	char *json;
	assert_ok(piece_counts_add(&c, (const uint8_t *)"abc", 3, 1, &et));
	assert_int_equal(trainer_make_json(&c, 256, NULL, NULL, &json, &why), RV_E_RANGE);
	assert_non_null(strstr(why.text, "257"));
	assert_int_equal(trainer_make_json(&c, 300, NULL, NULL, &json, &why), RV_E_RANGE);
	assert_non_null(strstr(why.text, "258 tokens, not of 299"));
	assert_int_equal(trainer_make_json(&c, 259, stop_at_once, NULL, &json, &why), RV_E_CANCELLED);
	assert_ok(trainer_make_json(&c, 257, NULL, NULL, &json, &et));
	free(json);
	piece_counts_release(&c);
}

static void long_pieces_are_counted_in_parts(void **state) {
	(void)state;
	uint8_t piece[2 * PIECE_COUNTS_MAX_BYTES + 5];
	struct piece_counts c = {0};
	memset(piece, 'a', sizeof piece);
	assert_ok(piece_counts_add(&c, piece, sizeof piece, 3, &et));
	assert_int_equal(c.n, 2);
	assert_int_equal(c.at[0].n, PIECE_COUNTS_MAX_BYTES);
	assert_int_equal(c.at[0].count, 6);
	assert_int_equal(c.at[1].n, 5);
	piece_counts_release(&c);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_textbook_example),
		cmocka_unit_test(runs_of_one_letter_overlap),
		cmocka_unit_test(it_is_the_definition),
		cmocka_unit_test(order_and_parts_do_not_matter),
		cmocka_unit_test(what_is_written_loads),
		cmocka_unit_test(limits_are_named),
		cmocka_unit_test(long_pieces_are_counted_in_parts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
