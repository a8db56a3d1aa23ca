/* vocab.h: the tokens of a vocabulary: bytes by id, and id by bytes.
 *
 * Files choose ids and bytes, so every limit is checked here, and the hash is keyed afresh each time: no file can be
 * made to collide.
 */
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
	uint32_t n;    /* 0: no token has this id */
};

struct vocab {
	struct byte_list bytes;
	struct vocab_token *tokens; /* (n_ids) */
	uint32_t n_ids;             /* all ids are below */
	uint32_t *slots;            /* open addressing: id, or VOCAB_NONE */
	uint32_t n_slots;           /* a power of two, at least twice the ids */
	uint8_t hash_key[16];
};

/* For at most `max_tokens` ids. RV_E_RANGE (naming the limit), RV_E_NOMEM. */
enum rv_err vocab_init(struct vocab *v, size_t max_tokens, struct rv_errtext *et);
void vocab_release(struct vocab *v);

/* Enters a token. `searchable`: vocab_find() finds it (tokens that are not text are not). RV_E_RANGE: the id or the
 * length is beyond its limit; RV_E_INVALID: the id is taken, the token is empty or there already. */
enum rv_err vocab_put(struct vocab *v, uint32_t id, const uint8_t *bytes, size_t n, bool searchable,
					  struct rv_errtext *et);
/* The id of these bytes, or VOCAB_NONE. */
uint32_t vocab_find(const struct vocab *v, const uint8_t *bytes, size_t n);
/* The bytes of a token, or NULL when no token has this id. */
const uint8_t *vocab_bytes(const struct vocab *v, uint32_t id, size_t *n);
/* RV_E_INVALID naming the first id under `below` (at most n_ids) that no token has. */
enum rv_err vocab_check_no_holes(const struct vocab *v, uint32_t below, struct rv_errtext *et);

/* A token for an error text: printable ASCII as it is, the rest as \xNN, cut with "..." when it is long. */
enum { VOCAB_QUOTE_BYTES = 64 };
const char *vocab_quote(const uint8_t *bytes, size_t n, char out[static VOCAB_QUOTE_BYTES]);

#endif
