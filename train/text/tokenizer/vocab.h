/* vocab.h: the tokens of a vocabulary: bytes by id, and id by bytes.
 *
 * Ids and bytes come from untrusted files: vocab_put checks every limit, and each vocabulary hashes
 * with a random key, so that no file can force collisions. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_VOCAB_H
#define RV_TRAIN_TEXT_TOKENIZER_VOCAB_H

#include "base/err.h"
#include "train/text/tokenizer/buffers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VOCAB_MAX_TOKENS = 1 << 20, VOCAB_MAX_TOKEN_BYTES = 64 << 10 };
#define VOCAB_NONE UINT32_MAX

struct vocab_token {
	size_t offset; /* into `bytes` */
	uint32_t n;    /* bytes; 0: no token has this id */
};

struct vocab {
	struct byte_list bytes;
	struct vocab_token *tokens; /* (n_ids) */
	uint32_t n_ids;             /* ids are below this number */
	uint32_t *slots;            /* open addressing: id, or VOCAB_NONE */
	uint32_t n_slots;           /* a power of two, at least twice the ids */
	uint8_t hash_key[16];
};

/* Prepares an empty vocabulary of ids below `max_tokens`. Returns RV_E_RANGE if that exceeds
 * VOCAB_MAX_TOKENS, or RV_E_NOMEM. */
enum rv_err vocab_init(struct vocab *v, size_t max_tokens, struct rv_errtext *et);
void vocab_release(struct vocab *v);

/* Adds a token, whose bytes are copied. If `searchable`, vocab_find finds it (special tokens are
 * not text). Returns RV_E_RANGE if the id or length exceeds its limit, RV_E_INVALID if the id is
 * taken or the token is empty or a duplicate, RV_E_NOMEM. */
enum rv_err vocab_put(struct vocab *v, uint32_t id, const uint8_t *bytes, size_t n, bool searchable,
					  struct rv_errtext *et);
/* Returns the id of the searchable token bytes[0, n), or VOCAB_NONE. */
uint32_t vocab_find(const struct vocab *v, const uint8_t *bytes, size_t n);
/* Returns the bytes of a token (borrowed) and their number in *n, or NULL for an unused id. */
const uint8_t *vocab_bytes(const struct vocab *v, uint32_t id, size_t *n);
/* Returns RV_E_INVALID, naming the id, if an id under `below` (at most n_ids) has no token. */
enum rv_err vocab_check_no_holes(const struct vocab *v, uint32_t below, struct rv_errtext *et);

/* Writes a token for an error text into `out` and returns it: printable ASCII unchanged, other
 * bytes as \xNN, a long token cut with "...". */
enum { VOCAB_QUOTE_BYTES = 64 };
const char *vocab_quote(const uint8_t *bytes, size_t n, char out[static VOCAB_QUOTE_BYTES]);

#endif
