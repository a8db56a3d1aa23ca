/* token_content.c: SHA-256 over tokens. */
#include "train/text/token_content.h"

#include "base/hex.h"

#include <sodium/crypto_hash_sha256.h>
#include <stdio.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tokens are hashed as they lie in memory");

/* Adds tokens to the hash: of text one byte each, else four. */
static enum rv_err add_tokens(const struct token_source *s, uint64_t begin, size_t n, crypto_hash_sha256_state *h,
							  struct rv_errtext *et) {
	int32_t tokens[DATA_BLOCK];
	uint8_t bytes[DATA_BLOCK];
	RV_TRY(token_source_read(s, begin, n, tokens, et));
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)tokens[i];
	if (token_source_is_text(s))
		crypto_hash_sha256_update(h, bytes, n);
	else
		crypto_hash_sha256_update(h, (const uint8_t *)tokens, n * sizeof *tokens);
	return RV_OK;
}

static enum rv_err add_all(const struct token_source *s, crypto_hash_sha256_state *h, struct rv_errtext *et) {
	for (uint64_t at = 0; at < s->n_tokens; at += DATA_BLOCK) {
		const uint64_t left = s->n_tokens - at;
		RV_TRY(add_tokens(s, at, left < DATA_BLOCK ? (size_t)left : DATA_BLOCK, h, et));
	}
	return RV_OK;
}

static enum rv_err add_sample(const struct token_source *s, crypto_hash_sha256_state *h, struct rv_errtext *et) {
	const uint64_t blocks = s->n_tokens / DATA_BLOCK;
	char size[24];
	crypto_hash_sha256_update(h, (const uint8_t *)size,
							  (size_t)snprintf(size, sizeof size, "%llu", (unsigned long long)s->n_tokens));
	for (uint64_t i = 0; i < DATA_CONTENT_BLOCKS; i++)
		RV_TRY(add_tokens(s, i * blocks / DATA_CONTENT_BLOCKS * DATA_BLOCK, DATA_BLOCK, h, et));
	return RV_OK;
}

enum rv_err token_content(const struct token_source *s, char out[sizeof((struct data_content *)0)->text],
						  struct rv_errtext *et) {
	const bool whole = s->n_tokens <= DATA_CONTENT_MAX_TOKENS;
	uint8_t hash[crypto_hash_sha256_BYTES];
	char hex[2 * sizeof hash + 1];
	crypto_hash_sha256_state h;
	crypto_hash_sha256_init(&h);
	RV_TRY(whole ? add_all(s, &h, et) : add_sample(s, &h, et));
	crypto_hash_sha256_final(&h, hash);
	rv_hex_encode(hash, sizeof hash, hex);
	snprintf(out, sizeof((struct data_content *)0)->text, "%s:%s", whole ? "sha256" : "sample", hex);
	return RV_OK;
}
