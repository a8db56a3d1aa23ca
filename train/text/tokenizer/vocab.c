/* vocab.c: open addressing with a keyed hash (SipHash-2-4). */
#include "train/text/tokenizer/vocab.h"

#include <sodium/crypto_shorthash.h>
#include <sodium/randombytes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(crypto_shorthash_KEYBYTES == sizeof((struct vocab *)0)->hash_key, "SipHash takes a 16-byte key");

enum rv_err vocab_init(struct vocab *v, size_t max_tokens, struct rv_errtext *et) {
	*v = (struct vocab){0};
	if (max_tokens > VOCAB_MAX_TOKENS)
		return rv_fail(et, RV_E_RANGE, "%zu tokens: the limit is %d", max_tokens, VOCAB_MAX_TOKENS);
	uint32_t n_slots = 64;
	while (n_slots < 2 * max_tokens)
		n_slots *= 2;
	v->tokens = calloc(max_tokens + 1, sizeof *v->tokens);
	v->slots = malloc(n_slots * sizeof *v->slots);
	if (!v->tokens || !v->slots) {
		vocab_release(v);
		return rv_fail(et, RV_E_NOMEM, "no memory for a vocabulary of %zu tokens", max_tokens);
	}
	memset(v->slots, 0xff, n_slots * sizeof *v->slots);
	v->n_slots = n_slots;
	v->n_ids = (uint32_t)max_tokens;
	randombytes_buf(v->hash_key, sizeof v->hash_key);
	return RV_OK;
}

void vocab_release(struct vocab *v) {
	byte_list_release(&v->bytes);
	free(v->tokens);
	free(v->slots);
	*v = (struct vocab){0};
}

/* Returns the slot that holds these bytes, or the free one where they belong. */
static uint32_t slot_of(const struct vocab *v, const uint8_t *bytes, size_t n) {
	uint64_t hash;
	crypto_shorthash((uint8_t *)&hash, bytes, n, v->hash_key);
	for (uint32_t at = (uint32_t)hash & (v->n_slots - 1);; at = (at + 1) & (v->n_slots - 1)) {
		uint32_t id = v->slots[at];
		if (id == VOCAB_NONE)
			return at;
		const struct vocab_token *t = &v->tokens[id];
		if (t->n == n && memcmp(v->bytes.bytes + t->offset, bytes, n) == 0)
			return at;
	}
}

enum rv_err vocab_put(struct vocab *v, uint32_t id, const uint8_t *bytes, size_t n, bool searchable,
					  struct rv_errtext *et) {
	char quoted[VOCAB_QUOTE_BYTES];
	vocab_quote(bytes, n, quoted);
	if (id >= v->n_ids)
		return rv_fail(et, RV_E_RANGE, "token \"%s\" has id %u, which is not below %u: ids must have no holes", quoted,
					   id, v->n_ids);
	if (n == 0)
		return rv_fail(et, RV_E_INVALID, "token %u is empty", id);
	if (n > VOCAB_MAX_TOKEN_BYTES)
		return rv_fail(et, RV_E_RANGE, "token %u (\"%s\") has %zu bytes; the limit is %d", id, quoted, n,
					   VOCAB_MAX_TOKEN_BYTES);
	if (v->tokens[id].n > 0)
		return rv_fail(et, RV_E_INVALID, "id %u is given twice, the second time to \"%s\"", id, quoted);
	uint32_t slot = slot_of(v, bytes, n);
	if (v->slots[slot] != VOCAB_NONE)
		return rv_fail(et, RV_E_INVALID, "token \"%s\" occurs twice, as %u and as %u", quoted, v->slots[slot], id);
	size_t offset = v->bytes.n;
	RV_TRY(byte_list_append(&v->bytes, bytes, n, et));
	v->tokens[id] = (struct vocab_token){.offset = offset, .n = (uint32_t)n};
	if (searchable)
		v->slots[slot] = id;
	return RV_OK;
}

uint32_t vocab_find(const struct vocab *v, const uint8_t *bytes, size_t n) {
	return v->slots[slot_of(v, bytes, n)];
}

const uint8_t *vocab_bytes(const struct vocab *v, uint32_t id, size_t *n) {
	*n = id < v->n_ids ? v->tokens[id].n : 0;
	return *n > 0 ? v->bytes.bytes + v->tokens[id].offset : NULL;
}

enum rv_err vocab_check_no_holes(const struct vocab *v, uint32_t below, struct rv_errtext *et) {
	for (uint32_t id = 0; id < below; id++)
		if (v->tokens[id].n == 0)
			return rv_fail(et, RV_E_INVALID, "no token has id %u, though ids go up to %u", id, below - 1);
	return RV_OK;
}

const char *vocab_quote(const uint8_t *bytes, size_t n, char out[static VOCAB_QUOTE_BYTES]) {
	enum { LONGEST_PIECE = 8 }; /* length of "\x00..." with the NUL */
	size_t len = 0, i = 0;
	for (; i < n && len + LONGEST_PIECE < VOCAB_QUOTE_BYTES; i++) {
		bool plain = bytes[i] >= 0x20 && bytes[i] < 0x7f && bytes[i] != '"' && bytes[i] != '\\';
		len += (size_t)snprintf(out + len, VOCAB_QUOTE_BYTES - len, plain ? "%c" : "\\x%02x", bytes[i]);
	}
	(void)snprintf(out + len, VOCAB_QUOTE_BYTES - len, "%s", i < n ? "..." : "");
	return out;
}
