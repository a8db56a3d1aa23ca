/* piece_cache.c: multiply-and-fold hashing of four words. */
#include "train/text/tokenizer/piece_cache.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/* Number of entries; few in the fuzzers, which replace entries and make many encoders. */
#ifndef PIECE_CACHE_ENTRIES
#define PIECE_CACHE_ENTRIES (1 << 16)
#endif

_Static_assert(sizeof(struct piece_entry) == 64, "an entry is one cache line");

struct piece_cache {
	struct piece_entry at[PIECE_CACHE_ENTRIES];
};

enum rv_err piece_cache_new(struct piece_cache **out, struct rv_errtext *et) {
	*out = aligned_alloc(64, sizeof **out);
	if (!*out)
		return rv_fail(et, RV_E_NOMEM, "no memory for a piece cache of %zu bytes", sizeof **out);
	memset(*out, 0, sizeof **out);
	return RV_OK;
}

void piece_cache_free(struct piece_cache *c) {
	free(c);
}

struct piece_key piece_key_of(const uint8_t *piece, size_t n) {
	RV_ASSERT(n <= PIECE_CACHE_MAX_BYTES);
	struct piece_key key = {{0}};
	memcpy(key.word, piece, n);
	((uint8_t *)key.word)[PIECE_CACHE_MAX_BYTES] = (uint8_t)n;
	return key;
}

static uint64_t fold(uint64_t a, uint64_t b) {
	unsigned __int128 p = (unsigned __int128)a * b;
	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static size_t slot_of(const struct piece_key *key) {
	uint64_t h = fold(key->word[0] ^ 0x9e3779b97f4a7c15u, key->word[1] ^ 0xbf58476d1ce4e5b9u);
	h ^= fold(key->word[2] ^ 0x94d049bb133111ebu, key->word[3] ^ 0xd6e8feb86659fd93u);
	return (h ^ h >> 32) % PIECE_CACHE_ENTRIES;
}

const struct piece_entry *piece_cache_find(const struct piece_cache *c, const struct piece_key *key) {
	const struct piece_entry *e = &c->at[slot_of(key)];
	return e->n > 0 && memcmp(&e->key, key, sizeof *key) == 0 ? e : NULL;
}

void piece_cache_put(struct piece_cache *c, const struct piece_key *key, const uint32_t *ids, size_t n) {
	if (n == 0 || n > PIECE_CACHE_MAX_IDS)
		return;
	struct piece_entry *e = &c->at[slot_of(key)];
	e->key = *key;
	e->n = (uint32_t)n;
	memcpy(e->ids, ids, n * sizeof *ids);
}
