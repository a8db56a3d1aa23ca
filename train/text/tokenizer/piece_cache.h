/* piece_cache.h: the tokens of recent pieces, since text repeats its words.
 *
 * The cache is direct-mapped, with a fixed number of entries of one cache line; a new entry
 * replaces the one in its slot. It changes the speed only. Each thread has its own. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_PIECE_CACHE_H
#define RV_TRAIN_TEXT_TOKENIZER_PIECE_CACHE_H

#include "train/text/tokenizer/buffers.h"

enum { PIECE_CACHE_KEY_WORDS = 4, PIECE_CACHE_MAX_BYTES = 31, PIECE_CACHE_MAX_IDS = 7 };

/* A piece padded with zeros, its length in the last byte. */
struct piece_key {
	uint64_t word[PIECE_CACHE_KEY_WORDS];
};

struct piece_entry {
	struct piece_key key;
	uint32_t ids[PIECE_CACHE_MAX_IDS];
	uint32_t n; /* 0: free */
};

struct piece_cache; /* 65,536 entries: 4 MiB */

/* Allocates an empty cache, which piece_cache_free frees. Returns RV_E_NOMEM. */
enum rv_err piece_cache_new(struct piece_cache **out, struct rv_errtext *et);
void piece_cache_free(struct piece_cache *c); /* NULL is fine */

/* Returns the key of a piece of at most PIECE_CACHE_MAX_BYTES bytes. */
struct piece_key piece_key_of(const uint8_t *piece, size_t n);
/* Returns the entry of the piece, valid until the next put, or NULL. */
const struct piece_entry *piece_cache_find(const struct piece_cache *c, const struct piece_key *key);
/* Stores the n tokens of a piece, or nothing if n > PIECE_CACHE_MAX_IDS. */
void piece_cache_put(struct piece_cache *c, const struct piece_key *key, const uint32_t *ids, size_t n);

#endif
