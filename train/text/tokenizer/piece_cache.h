/* piece_cache.h: the tokens of pieces seen lately. Text repeats its words: most pieces never reach the merging.
 *
 * Direct-mapped, a fixed number of entries of one cache line; a newcomer replaces who was there. It can only make
 * things faster, never different. Not thread-safe: one per thread.
 */
#ifndef RV_TRAIN_TEXT_TOKENIZER_PIECE_CACHE_H
#define RV_TRAIN_TEXT_TOKENIZER_PIECE_CACHE_H

#include "train/text/tokenizer/buffers.h"

enum { PIECE_CACHE_KEY_WORDS = 4, PIECE_CACHE_MAX_BYTES = 31, PIECE_CACHE_MAX_IDS = 7 };

/* The piece, padded with zeros, its length in the last byte. */
struct piece_key {
	uint64_t word[PIECE_CACHE_KEY_WORDS];
};

struct piece_entry {
	struct piece_key key;
	uint32_t ids[PIECE_CACHE_MAX_IDS];
	uint32_t n; /* 0: free */
};

struct piece_cache; /* 65,536 entries: 4 MiB */

/* RV_E_NOMEM. */
enum rv_err piece_cache_new(struct piece_cache **out, struct rv_errtext *et);
void piece_cache_free(struct piece_cache *c); /* NULL is fine */

/* `n` at most PIECE_CACHE_MAX_BYTES. */
struct piece_key piece_key_of(const uint8_t *piece, size_t n);
/* The entry of the piece, or NULL. Valid until the next put. */
const struct piece_entry *piece_cache_find(const struct piece_cache *c, const struct piece_key *key);
/* Pieces of more than PIECE_CACHE_MAX_IDS tokens are not kept. */
void piece_cache_put(struct piece_cache *c, const struct piece_key *key, const uint32_t *ids, size_t n);

#endif
