/* kind_huggingface.c: tokenizer.json: a byte-level BPE model, its merges, added tokens. */
#include "base/json_limits.h"
#include "train/text/tokenizer/byte_level.h"
#include "train/text/tokenizer/huggingface_steps.h"
#include "train/text/tokenizer/tokenizer_internal.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Limits: an array or object takes about 100 bytes of memory, another value or key about 50, so
 * that 64 MiB of text could otherwise take gigabytes. */
enum { MAX_CONTAINERS = 3 << 20, MAX_VALUES = 12 << 20 };

static bool recognise(const uint8_t *data, size_t n) {
	size_t i = 0;
	while (i < n && strchr(" \t\r\n", data[i]) && data[i])
		i++;
	return i < n && data[i] == '{';
}

/* The state of a load. */
struct loading {
	struct tokenizer *t;
	const json_t *root, *model, *vocab, *merges, *added;
	uint8_t *token; /* (2 * VOCAB_MAX_TOKEN_BYTES) for a merged token */
	struct rv_errtext *et;
};

static enum rv_err find_parts(struct loading *l) {
	l->model = json_object_get(l->root, "model");
	const char *type = json_string_value(json_object_get(l->model, "type"));
	if (!json_is_object(l->model) || (type && strcmp(type, "BPE") != 0))
		return rv_fail(l->et, RV_E_UNSUPPORTED, "the model's type is %.40s: only BPE", type ? type : "missing");
	l->vocab = json_object_get(l->model, "vocab");
	l->merges = json_object_get(l->model, "merges");
	l->added = json_object_get(l->root, "added_tokens");
	if (!json_is_object(l->vocab) || !json_is_array(l->merges))
		return rv_fail(l->et, RV_E_INVALID, "the model has no vocab (an object) or no merges (an array)");
	if (l->added && !json_is_array(l->added) && !json_is_null(l->added))
		return rv_fail(l->et, RV_E_INVALID, "added_tokens is not an array");
	return RV_OK;
}

/* Reports whether a setting is on: null, false and the empty string are "off". */
static bool is_on(const json_t *v) {
	return v && !json_is_null(v) && !json_is_false(v) && !(json_is_string(v) && json_string_length(v) == 0);
}

static enum rv_err read_settings(const struct loading *l) {
	static const char *const unsupported[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix",
											  "byte_fallback", NULL};
	for (int i = 0; unsupported[i]; i++)
		if (is_on(json_object_get(l->model, unsupported[i])))
			return rv_fail(l->et, RV_E_UNSUPPORTED, "the model has %s: not a plain byte-level BPE", unsupported[i]);
	return huggingface_read_normalizer(json_object_get(l->root, "normalizer"), &l->t->nfc, l->et);
}

/* Decodes a token's text to l->token + offset, at most VOCAB_MAX_TOKEN_BYTES. */
static enum rv_err token_bytes(const struct loading *l, const char *text, size_t n, size_t offset, size_t *out) {
	char quoted[VOCAB_QUOTE_BYTES];
	int64_t len = n <= VOCAB_MAX_TOKEN_BYTES ? byte_level_decode(text, n, l->token + offset) : -1;
	if (len < 0 && n > VOCAB_MAX_TOKEN_BYTES)
		return rv_fail(l->et, RV_E_RANGE, "token \"%s\" has %zu bytes of text; the limit is %d",
					   vocab_quote((const uint8_t *)text, n, quoted), n, VOCAB_MAX_TOKEN_BYTES);
	if (len < 0)
		return rv_fail(l->et, RV_E_INVALID, "token \"%s\" is not byte-level text",
					   vocab_quote((const uint8_t *)text, n, quoted));
	*out = (size_t)len;
	return RV_OK;
}

static const json_t *added_content(const struct loading *l, size_t i, json_int_t *id) {
	const json_t *a = json_array_get(l->added, i), *content = json_object_get(a, "content");
	const json_t *number = json_object_get(a, "id");
	*id = json_is_integer(number) ? json_integer_value(number) : -1;
	return json_is_string(content) ? content : NULL;
}

/* Refuses a token that is recognised in text after NFC but is not in NFC itself. */
static enum rv_err check_normal(const json_t *content, struct rv_errtext *et) {
	const uint8_t *text = (const uint8_t *)json_string_value(content);
	size_t n = json_string_length(content);
	struct byte_list normal = {0};
	enum rv_err e = nfc_append(text, n, &normal, et);
	if (e == RV_OK && (normal.n != n || memcmp(normal.bytes, text, n) != 0))
		e = rv_fail(et, RV_E_UNSUPPORTED, "added token %.80s is not in the normalizer's form", (const char *)text);
	byte_list_release(&normal);
	return e;
}

/* Adds an added token, which the vocabulary may contain too, with the same id. */
static enum rv_err add_special(struct loading *l, size_t i, size_t *n_new) {
	static const char *const unsupported[] = {"single_word", "lstrip", "rstrip", NULL};
	json_int_t id;
	const json_t *content = added_content(l, i, &id);
	if (!content || id < 0 || id >= VOCAB_MAX_TOKENS)
		return rv_fail(l->et, RV_E_INVALID, "added token %zu: needs content (a string) and id (0 to %d)", i,
					   VOCAB_MAX_TOKENS - 1);
	for (int k = 0; unsupported[k]; k++)
		if (is_on(json_object_get(json_array_get(l->added, i), unsupported[k])))
			return rv_fail(l->et, RV_E_UNSUPPORTED, "added token %.80s has %s: not supported",
						   json_string_value(content), unsupported[k]);
	const json_t *known = json_object_getn(l->vocab, json_string_value(content), json_string_length(content));
	if (known && json_integer_value(known) != id)
		return rv_fail(l->et, RV_E_INVALID,
					   "added token %.80s has id %" JSON_INTEGER_FORMAT " there and %" JSON_INTEGER_FORMAT
					   " in the vocabulary",
					   json_string_value(content), id, json_integer_value(known));
	*n_new += !known;
	struct special kind = {.id = (uint32_t)id};
	kind.plain = !json_is_true(json_object_get(json_array_get(l->added, i), "special"));
	const json_t *normalized = json_object_get(json_array_get(l->added, i), "normalized");
	kind.normalized = json_is_boolean(normalized) ? json_is_true(normalized) : kind.plain;
	if (kind.normalized && l->t->nfc)
		RV_TRY(check_normal(content, l->et));
	return specials_add(&l->t->specials, json_string_value(content), json_string_length(content), &kind, l->et);
}

static enum rv_err add_specials(struct loading *l, size_t *n_new) {
	*n_new = 0;
	if (json_array_size(l->added) > SPECIALS_MAX)
		return rv_fail(l->et, RV_E_RANGE, "%zu added tokens: the limit is %d", json_array_size(l->added), SPECIALS_MAX);
	for (size_t i = 0; i < json_array_size(l->added); i++)
		RV_TRY(add_special(l, i, n_new));
	return RV_OK;
}

static enum rv_err put_special(struct loading *l, const struct special *s) {
	bool in_vocab = json_object_getn(l->vocab, s->text, s->n) != NULL;
	return vocab_put(&l->t->bpe.vocab, s->id, (const uint8_t *)s->text, s->n, in_vocab, l->et);
}

static enum rv_err put_token(struct loading *l, const char *text, size_t n, const json_t *value) {
	char quoted[VOCAB_QUOTE_BYTES];
	json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
	size_t len;
	if (id < 0 || id >= VOCAB_MAX_TOKENS)
		return rv_fail(l->et, RV_E_RANGE, "token \"%s\": its id must be a number from 0 to %d",
					   vocab_quote((const uint8_t *)text, n, quoted), VOCAB_MAX_TOKENS - 1);
	RV_TRY(token_bytes(l, text, n, 0, &len));
	return vocab_put(&l->t->bpe.vocab, (uint32_t)id, l->token, len, true, l->et);
}

/* Adds special tokens first: the vocabulary has them as text, not as byte-level text. */
static enum rv_err put_tokens(struct loading *l) {
	struct tokenizer *t = l->t;
	json_t *vocab = (json_t *)(uintptr_t)l->vocab;
	for (size_t i = 0; i < t->specials.n; i++)
		RV_TRY(put_special(l, &t->specials.at[i]));
	for (void *it = json_object_iter(vocab); it; it = json_object_iter_next(vocab, it)) {
		const char *text = json_object_iter_key(it);
		size_t n = json_object_iter_key_len(it);
		if (!specials_find(&t->specials, text, n))
			RV_TRY(put_token(l, text, n, json_object_iter_value(it)));
	}
	RV_TRY(vocab_check_no_holes(&t->bpe.vocab, t->bpe.vocab.n_ids, l->et));
	return bpe_find_bytes(&t->bpe, l->et);
}

struct halves {
	const char *text[2];
	size_t n[2];
};

/* Splits a merge written as "a b" or ["a", "b"]. */
static bool split_merge(const json_t *merge, struct halves *h) {
	if (json_is_string(merge)) {
		const char *text = json_string_value(merge), *space = memchr(text, ' ', json_string_length(merge));
		if (!space)
			return false;
		*h = (struct halves){{text, space + 1},
							 {(size_t)(space - text), json_string_length(merge) - (space - text) - 1}};
		return true;
	}
	for (size_t i = 0; i < 2; i++) {
		const json_t *half = json_array_get(merge, i);
		if (json_array_size(merge) != 2 || !json_is_string(half))
			return false;
		h->text[i] = json_string_value(half);
		h->n[i] = json_string_length(half);
	}
	return true;
}

static enum rv_err put_merge(struct loading *l, size_t rank, const json_t *merge) {
	struct halves h;
	char quoted[VOCAB_QUOTE_BYTES];
	size_t len[2] = {0}, both = 0;
	uint32_t ids[2];
	if (!split_merge(merge, &h))
		return rv_fail(l->et, RV_E_INVALID, "merge %zu: must be \"LEFT RIGHT\" or [\"LEFT\", \"RIGHT\"]", rank);
	for (int i = 0; i < 2; i++) {
		RV_TRY(token_bytes(l, h.text[i], h.n[i], both, &len[i]));
		ids[i] = vocab_find(&l->t->bpe.vocab, l->token + both, len[i]);
		if (ids[i] == VOCAB_NONE)
			return rv_fail(l->et, RV_E_INVALID, "merge %zu names \"%s\", which is not in the vocabulary", rank,
						   vocab_quote((const uint8_t *)h.text[i], h.n[i], quoted));
		both += len[i];
	}
	uint32_t into = vocab_find(&l->t->bpe.vocab, l->token, both);
	if (into == VOCAB_NONE)
		return rv_fail(l->et, RV_E_INVALID, "merge %zu makes \"%s\", which is not in the vocabulary", rank,
					   vocab_quote(l->token, both, quoted));
	if (!pair_table_put(&l->t->bpe.pairs, ids[0], ids[1], (uint32_t)rank, into))
		return rv_fail(l->et, RV_E_INVALID, "merge %zu (into \"%s\") occurs twice", rank,
					   vocab_quote(l->token, both, quoted));
	return RV_OK;
}

static enum rv_err put_merges(struct loading *l) {
	RV_TRY(pair_table_init(&l->t->bpe.pairs, json_array_size(l->merges), l->et));
	for (size_t rank = 0; rank < json_array_size(l->merges); rank++)
		RV_TRY(put_merge(l, rank, json_array_get(l->merges, rank)));
	return RV_OK;
}

static enum rv_err load_parts(struct loading *l) {
	size_t n_new;
	RV_TRY(find_parts(l));
	RV_TRY(read_settings(l));
	RV_TRY(huggingface_add_steps(&l->t->pretokenizer, json_object_get(l->root, "pre_tokenizer"), l->et));
	RV_TRY(add_specials(l, &n_new));
	RV_TRY(specials_sort(&l->t->specials, l->et));
	RV_TRY(vocab_init(&l->t->bpe.vocab, json_object_size(l->vocab) + n_new, l->et));
	RV_TRY(put_tokens(l));
	l->t->bpe.whole_pieces_first = json_is_true(json_object_get(l->model, "ignore_merges"));
	return put_merges(l);
}

static enum rv_err load(struct tokenizer *t, const uint8_t *data, size_t n, const char *pattern,
						struct rv_errtext *et) {
	json_error_t error;
	(void)pattern; /* the file has its own pattern */
	RV_TRY(rv_json_check_limits(data, n, MAX_CONTAINERS, MAX_VALUES, et));
	json_t *root = json_loadb((const char *)data, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	if (!root)
		return rv_fail(et, RV_E_INVALID, "JSON, line %d column %d: %s", error.line, error.column, error.text);
	struct loading l = {.t = t, .root = root, .token = malloc((size_t)2 * VOCAB_MAX_TOKEN_BYTES), .et = et};
	enum rv_err e = l.token ? load_parts(&l) : rv_fail(et, RV_E_NOMEM, "no memory for a token");
	free(l.token);
	json_decref(root);
	return e;
}

const struct tokenizer_kind tokenizer_kind_huggingface = {
	.name = "huggingface",
	.recognise = recognise,
	.load = load,
	.encode = encoder_encode_bpe,
};
