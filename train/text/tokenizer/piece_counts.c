/* piece_counts.c: a keyed hash table that doubles. */
#include "train/text/tokenizer/piece_counts.h"

#include <sodium/crypto_shorthash.h>
#include <sodium/randombytes.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 1 << 12 };

/* Returns the slot that holds the piece, or the free one where it belongs. */
static size_t slot_of(const struct piece_counts *c, const uint8_t *piece, size_t n) {
	uint64_t hash;
	crypto_shorthash((uint8_t *)&hash, piece, n, c->hash_key);
	size_t at = hash & (c->n_slots - 1);
	for (; c->slots[at] != UINT32_MAX; at = (at + 1) & (c->n_slots - 1)) {
		const struct counted_piece *p = &c->at[c->slots[at]];
		if (p->n == n && memcmp(c->bytes.bytes + p->offset, piece, n) == 0)
			break;
	}
	return at;
}

static enum rv_err grow_slots(struct piece_counts *c, struct rv_errtext *et) {
	size_t n_slots = c->n_slots ? 2 * c->n_slots : FIRST_SLOTS;
	uint32_t *slots = malloc(n_slots * sizeof *slots);
	if (!slots)
		return rv_fail(et, RV_E_NOMEM, "no memory to count %zu pieces", n_slots / 2);
	if (c->n_slots == 0)
		randombytes_buf(c->hash_key, sizeof c->hash_key);
	memset(slots, 0xff, n_slots * sizeof *slots);
	free(c->slots);
	c->slots = slots;
	c->n_slots = n_slots;
	for (size_t i = 0; i < c->n; i++)
		c->slots[slot_of(c, c->bytes.bytes + c->at[i].offset, c->at[i].n)] = (uint32_t)i;
	return RV_OK;
}

static enum rv_err append(struct piece_counts *c, const uint8_t *piece, size_t n, struct rv_errtext *et) {
	if (c->n == PIECE_COUNTS_MAX)
		return rv_fail(et, RV_E_RANGE, "more than %d different pieces: train on a part of the text", PIECE_COUNTS_MAX);
	struct counted_piece *grown = list_grow(c->at, &c->cap, c->n, 1, sizeof *grown, et);
	if (!grown)
		return RV_E_NOMEM;
	c->at = grown;
	size_t offset = c->bytes.n;
	RV_TRY(byte_list_append(&c->bytes, piece, n, et));
	c->at[c->n++] = (struct counted_piece){.offset = offset, .n = (uint32_t)n};
	return RV_OK;
}

static enum rv_err add_one(struct piece_counts *c, const uint8_t *piece, size_t n, uint64_t times,
						   struct rv_errtext *et) {
	if (2 * (c->n + 1) > c->n_slots)
		RV_TRY(grow_slots(c, et));
	size_t slot = slot_of(c, piece, n);
	if (c->slots[slot] == UINT32_MAX) {
		RV_TRY(append(c, piece, n, et));
		c->slots[slot] = (uint32_t)(c->n - 1);
	}
	c->at[c->slots[slot]].count += times;
	return RV_OK;
}

enum rv_err piece_counts_add(struct piece_counts *c, const uint8_t *piece, size_t n, uint64_t times,
							 struct rv_errtext *et) {
	while (n > 0) {
		size_t part = n < PIECE_COUNTS_MAX_BYTES ? n : PIECE_COUNTS_MAX_BYTES;
		RV_TRY(add_one(c, piece, part, times, et));
		piece += part;
		n -= part;
	}
	return RV_OK;
}

enum rv_err piece_counts_merge(struct piece_counts *c, const struct piece_counts *other, struct rv_errtext *et) {
	for (size_t i = 0; i < other->n; i++) {
		const struct counted_piece *p = &other->at[i];
		RV_TRY(piece_counts_add(c, other->bytes.bytes + p->offset, p->n, p->count, et));
	}
	return RV_OK;
}

void piece_counts_release(struct piece_counts *c) {
	byte_list_release(&c->bytes);
	free(c->at);
	free(c->slots);
	*c = (struct piece_counts){0};
}
