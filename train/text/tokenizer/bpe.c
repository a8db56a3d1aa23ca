/* bpe.c: merges short pieces in place, in an array of tokens and one of ranks. */
#include "train/text/tokenizer/bpe.h"

#include "base/assert.h"

#include <string.h>

enum rv_err bpe_find_bytes(struct bpe *b, struct rv_errtext *et) {
	for (int i = 0; i < 256; i++) {
		uint8_t byte = (uint8_t)i;
		b->byte_token[i] = vocab_find(&b->vocab, &byte, 1);
		if (b->byte_token[i] == VOCAB_NONE)
			return rv_fail(et, RV_E_INVALID,
						   "no token for the byte 0x%02x: a byte-level vocabulary needs one for each of the 256 bytes",
						   i);
	}
	return RV_OK;
}

void bpe_release(struct bpe *b) {
	vocab_release(&b->vocab);
	pair_table_release(&b->pairs);
}

static uint32_t rank_of(const struct bpe *b, uint32_t left, uint32_t right) {
	return pair_table_find(&b->pairs, left, right)->rank;
}

static size_t lowest(const uint32_t *ranks, size_t n) {
	size_t best = 0;
	for (size_t i = 1; i < n; i++)
		if (ranks[i] < ranks[best])
			best = i;
	return best;
}

enum rv_err bpe_merge_short(const struct bpe *b, const uint8_t *piece, size_t n, struct token_list *out,
							struct rv_errtext *et) {
	RV_ASSERT(n >= 1 && n <= BPE_SHORT_BYTES);
	uint32_t ids[BPE_SHORT_BYTES], ranks[BPE_SHORT_BYTES]; /* ranks[i] is that of the pair (i, i + 1) */
	for (size_t i = 0; i < n; i++)
		ids[i] = b->byte_token[piece[i]];
	for (size_t i = 0; i + 1 < n; i++)
		ranks[i] = rank_of(b, ids[i], ids[i + 1]);
	while (n > 1) {
		size_t at = lowest(ranks, n - 1);
		if (ranks[at] == PAIR_NO_RANK)
			break;
		ids[at] = pair_table_find(&b->pairs, ids[at], ids[at + 1])->into;
		n--;
		memmove(ids + at + 1, ids + at + 2, (n - at - 1) * sizeof *ids);
		if (at + 1 < n) {
			memmove(ranks + at + 1, ranks + at + 2, (n - at - 2) * sizeof *ranks);
			ranks[at] = rank_of(b, ids[at], ids[at + 1]);
		}
		if (at > 0)
			ranks[at - 1] = rank_of(b, ids[at - 1], ids[at]);
	}
	return token_list_append(out, ids, n, et);
}

enum rv_err bpe_encode(const struct bpe *b, struct bpe_scratch *s, const uint8_t *piece, size_t n,
					   struct token_list *out, struct rv_errtext *et) {
	if (n == 0)
		return RV_OK;
	if (b->whole_pieces_first && n <= VOCAB_MAX_TOKEN_BYTES) {
		uint32_t id = vocab_find(&b->vocab, piece, n);
		if (id != VOCAB_NONE)
			return token_list_append(out, &id, 1, et);
	}
	return n <= BPE_SHORT_BYTES ? bpe_merge_short(b, piece, n, out, et) : bpe_merge_long(b, s, piece, n, out, et);
}
