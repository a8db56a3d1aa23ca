/* bpe_train.c: holds words as runs of tokens in one array; a merge visits only the words that
 * contain its pair, and changes only the counts of the adjacent pairs. */
#include "train/text/tokenizer/bpe_train.h"

#include "train/text/tokenizer/byte_level.h"
#include "train/text/tokenizer/pair_counts.h"
#include "train/text/tokenizer/pair_table.h"

#include <stdlib.h>
#include <string.h>

struct word {
	size_t offset; /* into the tokens */
	uint32_t n;
	int64_t count;
};

struct training {
	struct trained_bpe *out;
	struct word *words;
	uint32_t *tokens;
	struct pair_counts pairs;
	uint32_t n_tokens; /* number of tokens so far */
	struct rv_errtext *et;
};

/* Adds the 256 bytes in the order of their byte-level characters: printable ones first. */
static enum rv_err put_bytes(struct training *t, uint32_t id_of_byte[256]) {
	for (uint32_t c = 0; t->n_tokens < 256; c++) {
		int found = byte_level_byte(c);
		if (found < 0)
			continue;
		uint8_t byte = (uint8_t)found;
		id_of_byte[byte] = t->n_tokens;
		RV_TRY(vocab_put(&t->out->vocab, t->n_tokens++, &byte, 1, true, t->et));
	}
	return RV_OK;
}

static enum rv_err make_words(struct training *t, const struct piece_counts *pieces, const uint32_t id_of_byte[256]) {
	t->words = malloc((pieces->n + 1) * sizeof *t->words);
	t->tokens = malloc((pieces->bytes.n + 1) * sizeof *t->tokens);
	if (!t->words || !t->tokens)
		return rv_fail(t->et, RV_E_NOMEM, "no memory for %zu different pieces", pieces->n);
	for (size_t i = 0; i < pieces->bytes.n; i++)
		t->tokens[i] = id_of_byte[pieces->bytes.bytes[i]];
	for (uint32_t i = 0; i < pieces->n; i++) {
		const struct counted_piece *p = &pieces->at[i];
		t->words[i] = (struct word){.offset = p->offset, .n = p->n, .count = (int64_t)p->count};
		for (uint32_t k = 0; k + 1 < p->n; k++) {
			const uint32_t *at = t->tokens + p->offset + k;
			RV_TRY(pair_counts_add(&t->pairs, pair_key(at[0], at[1]), (int64_t)p->count, i, t->et));
		}
	}
	return pair_counts_offer(&t->pairs, t->et);
}

/* Finds or makes the merged token: another merge may have made the same bytes. */
static enum rv_err name_merged(struct training *t, uint32_t left, uint32_t right, uint32_t *id) {
	uint8_t bytes[2 * PIECE_COUNTS_MAX_BYTES];
	size_t n_left, n_right;
	const uint8_t *a = vocab_bytes(&t->out->vocab, left, &n_left), *b = vocab_bytes(&t->out->vocab, right, &n_right);
	memcpy(bytes, a, n_left);
	memcpy(bytes + n_left, b, n_right);
	*id = vocab_find(&t->out->vocab, bytes, n_left + n_right);
	if (*id != VOCAB_NONE)
		return RV_OK;
	*id = t->n_tokens++;
	return vocab_put(&t->out->vocab, *id, bytes, n_left + n_right, true, t->et);
}

/* Updates the counts of a pair beside a merge: `gone` disappears, `made` appears. */
static enum rv_err replace_pair(struct training *t, uint64_t gone, uint64_t made, uint32_t word) {
	int64_t count = t->words[word].count;
	RV_TRY(pair_counts_add(&t->pairs, gone, -count, word, t->et));
	return pair_counts_add(&t->pairs, made, count, word, t->et);
}

static enum rv_err merge_in_word(struct training *t, uint32_t left, uint32_t right, uint32_t into, uint32_t word) {
	struct word *w = &t->words[word];
	uint32_t *at = t->tokens + w->offset, kept = 0;
	for (uint32_t i = 0; i < w->n; i++) {
		bool here = at[i] == left && i + 1 < w->n && at[i + 1] == right;
		if (here) {
			if (kept > 0)
				RV_TRY(replace_pair(t, pair_key(at[kept - 1], left), pair_key(at[kept - 1], into), word));
			if (i + 2 < w->n)
				RV_TRY(replace_pair(t, pair_key(right, at[i + 2]), pair_key(into, at[i + 2]), word));
			i++;
		}
		at[kept++] = here ? into : at[i];
	}
	w->n = kept;
	return RV_OK;
}

static enum rv_err note_merge(struct trained_bpe *out, uint32_t left, uint32_t right, struct rv_errtext *et) {
	struct bpe_merge *grown = list_grow(out->merges, &out->cap_merges, out->n_merges, 1, sizeof *grown, et);
	if (!grown)
		return RV_E_NOMEM;
	out->merges = grown;
	out->merges[out->n_merges++] = (struct bpe_merge){left, right};
	return RV_OK;
}

static enum rv_err merge_pair(struct training *t, const struct pair_count *pair) {
	uint32_t left = (uint32_t)(pair->key >> 32), right = (uint32_t)pair->key, into;
	RV_TRY(name_merged(t, left, right, &into));
	RV_TRY(note_merge(t->out, left, right, t->et));
	for (uint32_t i = 0; i < pair->n_words; i++)
		RV_TRY(merge_in_word(t, left, right, into, pair->words[i]));
	return pair_counts_offer(&t->pairs, t->et);
}

static enum rv_err merge_all(struct training *t, bpe_train_progress *progress, void *ctx) {
	enum { MERGES_PER_TICK = 64 };
	uint32_t wanted = t->out->vocab.n_ids;
	while (t->n_tokens < wanted) {
		struct pair_count best;
		if (progress && t->out->n_merges % MERGES_PER_TICK == 0 && !progress(ctx, t->n_tokens, wanted))
			return rv_fail(t->et, RV_E_CANCELLED, "stopped at %u of %u tokens", t->n_tokens, wanted);
		if (!pair_counts_take(&t->pairs, &best))
			return rv_fail(t->et, RV_E_RANGE,
						   "the text has pairs for a vocabulary of %u tokens, not of %u: more text, or a "
						   "smaller vocabulary",
						   t->n_tokens, wanted);
		enum rv_err e = merge_pair(t, &best);
		free(best.words);
		RV_TRY(e);
	}
	return RV_OK;
}

enum rv_err bpe_train(const struct piece_counts *pieces, uint32_t n_tokens, bpe_train_progress *progress, void *ctx,
					  struct trained_bpe *out, struct rv_errtext *et) {
	uint32_t id_of_byte[256];
	struct training t = {.out = out, .et = et};
	*out = (struct trained_bpe){0};
	if (n_tokens < BPE_TRAIN_MIN_TOKENS || n_tokens > VOCAB_MAX_TOKENS)
		return rv_fail(et, RV_E_RANGE, "a vocabulary of %u tokens: must have %d to %d", n_tokens, BPE_TRAIN_MIN_TOKENS,
					   VOCAB_MAX_TOKENS);
	enum rv_err e = vocab_init(&out->vocab, n_tokens, et);
	if (e == RV_OK)
		e = put_bytes(&t, id_of_byte);
	if (e == RV_OK)
		e = make_words(&t, pieces, id_of_byte);
	if (e == RV_OK)
		e = merge_all(&t, progress, ctx);
	free(t.words);
	free(t.tokens);
	pair_counts_release(&t.pairs);
	if (e != RV_OK)
		trained_bpe_release(out);
	return e;
}

void trained_bpe_release(struct trained_bpe *t) {
	vocab_release(&t->vocab);
	free(t->merges);
	*t = (struct trained_bpe){0};
}
