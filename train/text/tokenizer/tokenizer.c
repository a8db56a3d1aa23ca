/* tokenizer.c: recognises the kind of a file; special tokens; decoding. */
#include "train/text/tokenizer/tokenizer.h"

#include "base/file.h"
#include "train/text/tokenizer/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

static const struct tokenizer_kind *const kinds[] = {&tokenizer_kind_huggingface, &tokenizer_kind_tiktoken, NULL};

static void hash_source(struct tokenizer *t, const uint8_t *data, size_t n, const char *pattern) {
	struct rv_hasher h = rv_hasher_of("rivulet tokenizer");
	if (data)
		t->hash = rv_hash_of(data, n);
	rv_hash_update(&h, t->kind->name, strlen(t->kind->name) + 1);
	rv_hash_update(&h, t->hash.b, sizeof t->hash.b);
	rv_hash_update(&h, pattern, strlen(pattern) + 1);
	t->identity = rv_hash_final(&h);
}

static enum rv_err load_kind(const struct tokenizer_kind *kind, const char *where, const uint8_t *data, size_t n,
							 const char *pattern, struct tokenizer **out, struct rv_errtext *et) {
	struct rv_errtext why = {0};
	struct tokenizer *t = calloc(1, sizeof *t);
	if (!t)
		return rv_fail(et, RV_E_NOMEM, "tokenizer %s: no memory", where);
	t->kind = kind;
	hash_source(t, data, n, pattern);
	enum rv_err e = kind->load(t, data, n, pattern, &why);
	if (e == RV_OK)
		e = specials_sort(&t->specials, &why);
	if (e == RV_OK) {
		*out = t;
		return RV_OK;
	}
	tokenizer_free(t);
	return rv_fail(et, e, "tokenizer %s: %s", where, why.text);
}

enum rv_err tokenizer_load(const char *where, const uint8_t *data, size_t n, const char *pattern,
						   struct tokenizer **out, struct rv_errtext *et) {
	*out = NULL;
	if (n > TOKENIZER_MAX_FILE_BYTES)
		return rv_fail(et, RV_E_RANGE, "tokenizer %s: %zu bytes, the limit is %d", where, n, TOKENIZER_MAX_FILE_BYTES);
	for (int i = 0; kinds[i]; i++)
		if (kinds[i]->recognise(data, n))
			return load_kind(kinds[i], where, data, n, pattern, out, et);
	return rv_fail(
		et, RV_E_INVALID,
		"tokenizer %s: neither a tokenizer.json (begins with \"{\") nor a tiktoken file (lines of base64 and a "
		"rank); \"bytes\" needs no file",
		where);
}

enum rv_err tokenizer_open(const char *where, const char *pattern, struct tokenizer **out, struct rv_errtext *et) {
	*out = NULL;
	if (strcmp(where, tokenizer_kind_bytes.name) == 0)
		return load_kind(&tokenizer_kind_bytes, where, NULL, 0, pattern, out, et);
	uint8_t *data;
	size_t n;
	RV_TRY(rv_file_read(where, TOKENIZER_MAX_FILE_BYTES, &data, &n, et));
	enum rv_err e = tokenizer_load(where, data, n, pattern, out, et);
	free(data);
	return e;
}

void tokenizer_free(struct tokenizer *t) {
	if (!t)
		return;
	bpe_release(&t->bpe);
	pretokenizer_release(&t->pretokenizer);
	specials_release(&t->specials);
	free(t);
}

const char *tokenizer_kind(const struct tokenizer *t) {
	return t->kind->name;
}

uint32_t tokenizer_vocab(const struct tokenizer *t) {
	return t->bpe.vocab.n_ids;
}

const struct rv_hash *tokenizer_hash(const struct tokenizer *t) {
	return &t->hash;
}

struct rv_hash tokenizer_identity(const struct tokenizer *t) {
	return t->identity;
}

uint32_t tokenizer_special(const struct tokenizer *t, const char *text) {
	const struct special *s = specials_find(&t->specials, text, strlen(text));
	return s ? s->id : TOKENIZER_NO_TOKEN;
}

uint32_t tokenizer_end_of_text(const struct tokenizer *t) {
	uint32_t id = tokenizer_special(t, "<|endoftext|>");
	return id != TOKENIZER_NO_TOKEN ? id : tokenizer_special(t, "<|end_of_text|>");
}

bool tokenizer_normalizes(const struct tokenizer *t) {
	return t->nfc;
}

typedef enum rv_err encode_fn(struct encoder *e, const uint8_t *text, size_t n, enum specials specials,
							  struct token_list *out, struct rv_errtext *et);

/* Encodes each special token as itself and passes the text around them to `between`. */
static enum rv_err encode_around(struct encoder *e, const uint8_t *text, size_t n, struct special_filter filter,
								 encode_fn *between, struct token_list *out, struct rv_errtext *et) {
	enum specials specials = filter.with_special ? SPECIALS_RECOGNISED : SPECIALS_AS_TEXT;
	while (n > 0) {
		size_t before;
		const struct special *found = specials_next(&e->t->specials, text, n, filter, &before);
		RV_TRY(between(e, text, before, specials, out, et));
		if (!found)
			break;
		RV_TRY(token_list_append(out, &found->id, 1, et));
		text += before + found->n;
		n -= before + found->n;
	}
	return RV_OK;
}

static enum rv_err encode_words(struct encoder *e, const uint8_t *text, size_t n, enum specials specials,
								struct token_list *out, struct rv_errtext *et) {
	(void)specials;
	return e->t->kind->encode(e, text, n, out, et);
}

/* Encodes as the reference implementation does: tokens recognised in the given text first, then,
 * between them, those recognised in its NFC. */
static enum rv_err encode_normalized(struct encoder *e, const uint8_t *text, size_t n, enum specials specials,
									 struct token_list *out, struct rv_errtext *et) {
	const struct special_filter filter = {.with_special = specials == SPECIALS_RECOGNISED, .normalized = true};
	if (e->t->nfc) {
		RV_TRY(encoder_normalize(e, text, n, et));
		text = e->normal.bytes;
		n = e->normal.n;
	}
	return encode_around(e, text, n, filter, encode_words, out, et);
}

enum rv_err tokenizer_encode(struct encoder *e, const uint8_t *text, size_t n, enum specials specials,
							 struct token_list *out, struct rv_errtext *et) {
	const struct special_filter filter = {.with_special = specials == SPECIALS_RECOGNISED};
	if (n > TOKENIZER_MAX_TEXT_BYTES)
		return rv_fail(et, RV_E_RANGE, "a text of %zu bytes: the limit is %d; encode it in parts", n,
					   TOKENIZER_MAX_TEXT_BYTES);
	return encode_around(e, text, n, filter, encode_normalized, out, et);
}

enum rv_err tokenizer_decode(const struct tokenizer *t, const uint32_t *ids, size_t n, struct byte_list *out,
							 struct rv_errtext *et) {
	for (size_t i = 0; i < n; i++) {
		size_t len;
		const uint8_t *bytes = vocab_bytes(&t->bpe.vocab, ids[i], &len);
		if (!bytes)
			return rv_fail(et, RV_E_RANGE, "token %zu of %zu is %u: the vocabulary of %u has none with this id", i, n,
						   ids[i], tokenizer_vocab(t));
		RV_TRY(byte_list_append(out, bytes, len, et));
	}
	return RV_OK;
}

uint32_t tokenizer_token_bytes(const struct tokenizer *t, uint32_t id) {
	size_t n = 0;
	const uint8_t *bytes = vocab_bytes(&t->bpe.vocab, id, &n);
	const struct special *s = bytes ? specials_find(&t->specials, (const char *)bytes, n) : NULL;
	return bytes && !(s && s->id == id && !s->plain) ? (uint32_t)n : 0;
}
