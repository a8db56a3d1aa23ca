/* pair_table.h: pairs of adjacent tokens, with the rank and the result of their merge. Hashed with
 * a random key, like vocab.h. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_PAIR_TABLE_H
#define RV_TRAIN_TEXT_TOKENIZER_PAIR_TABLE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAIR_NO_RANK UINT32_MAX
enum { PAIR_TABLE_MAX = 16 << 20 };

struct pair_slot {
	uint64_t key;        /* left id << 32 | right id; UINT64_MAX: free */
	uint32_t rank, into; /* a pair of lower rank merges first */
};

struct pair_table {
	struct pair_slot *slots; /* open addressing */
	uint64_t mask, seed;
	size_t n;
};

/* Prepares a table for `max_pairs`. Returns RV_E_RANGE above PAIR_TABLE_MAX, or RV_E_NOMEM. */
enum rv_err pair_table_init(struct pair_table *t, size_t max_pairs, struct rv_errtext *et);
void pair_table_release(struct pair_table *t);
/* Adds a pair, of at most max_pairs (asserted). Returns false if it is there. */
bool pair_table_put(struct pair_table *t, uint32_t left, uint32_t right, uint32_t rank, uint32_t into);

static inline uint64_t pair_key(uint32_t left, uint32_t right) {
	return (uint64_t)left << 32 | right;
}

/* Hashes the seeded key with the finalizer of MurmurHash3 (Appleby, public domain). */
static inline uint64_t pair_hash(const struct pair_table *t, uint64_t key) {
	uint64_t h = key ^ t->seed;
	h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
	h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
	return h ^ h >> 33;
}

/* Returns the pair's slot, or a free one (rank PAIR_NO_RANK). */
static inline const struct pair_slot *pair_table_find(const struct pair_table *t, uint32_t left, uint32_t right) {
	uint64_t key = pair_key(left, right);
	uint64_t at = pair_hash(t, key) & t->mask;
	while (t->slots[at].key != key && t->slots[at].key != UINT64_MAX)
		at = (at + 1) & t->mask;
	return &t->slots[at];
}

#endif
