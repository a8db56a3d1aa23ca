/* inspect.c: `rivulet data inspect`: the manifest's facts, and the first documents as text. */
#include "lab/inspect/inspect.h"
#include "lab/data/data.h"
#include "train/text/published/published.h"
#include "train/text/tokenizer/tokenizer.h"
#include "train/text/tokenizer/utf8.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_TOKENS = 16384, SHOWN_BYTES = 600 /* of a document */ };

/* Returns a text of bytes that may be cut within a character. */
static json_t *text_of(const uint8_t *bytes, size_t n) {
	char *out = malloc(n + 1);
	size_t used = 0;
	for (size_t i = 0; out && i < n;) {
		size_t k = utf8_valid_prefix(bytes + i, n - i);
		memcpy(out + used, bytes + i, k);
		used += k;
		i += k;
		k = utf8_invalid_prefix(bytes + i, n - i);
		if (k > 0)
			out[used++] = '?';
		i += k;
	}
	json_t *text = out ? json_stringn(out, used) : NULL;
	free(out);
	return text;
}

static enum rv_err put_document(const struct tokenizer *t, const int32_t *ids, size_t n, json_t *list,
								struct rv_errtext *et) {
	struct byte_list bytes = {0};
	enum rv_err e = tokenizer_decode(t, (const uint32_t *)ids, n, &bytes, et);
	if (e == RV_OK)
		json_array_append_new(list, text_of(bytes.bytes, bytes.n < SHOWN_BYTES ? bytes.n : SHOWN_BYTES));
	byte_list_release(&bytes);
	return e;
}

/* Cuts the tokens at the separators; those of token files are one text. */
static enum rv_err put_documents(const struct published *p, const struct tokenizer *t, int64_t wanted, json_t *list,
								 struct rv_errtext *et) {
	const struct manifest *m = published_manifest(p);
	int32_t ids[FIRST_TOKENS];
	size_t n = m->n_tokens < FIRST_TOKENS ? (size_t)m->n_tokens : FIRST_TOKENS, from = 0;
	RV_TRY(published_read(p, 0, n, ids, et));
	const int64_t separator = m->separator >= 0 ? m->separator : (int64_t)tokenizer_end_of_text(t);
	for (size_t i = 0; i <= n && (int64_t)json_array_size(list) < wanted; i++) {
		if (i < n && ids[i] != separator)
			continue;
		if (i > from)
			RV_TRY(put_document(t, ids + from, i - from, list, et));
		from = i + 1;
	}
	return RV_OK;
}

static enum rv_err open_tokenizer(const char *dir, const struct manifest *m, struct tokenizer **out,
								  struct rv_errtext *et) {
	char path[PATH_MAX];
	(void)snprintf(path, sizeof path, "%s/%s", dir, m->tokenizer_file);
	return tokenizer_open(m->tokenizer_file[0] ? path : "bytes",
						  m->tokenizer_pattern[0] ? m->tokenizer_pattern : "auto", out, et);
}

static enum rv_err first_documents(const char *dir, int64_t wanted, json_t *list, struct rv_errtext *et) {
	struct published *p;
	struct tokenizer *t = NULL;
	RV_TRY(published_open(dir, &p, et));
	enum rv_err e = published_check_tokenizer(p, et);
	if (e == RV_OK)
		e = open_tokenizer(dir, published_manifest(p), &t, et);
	if (e == RV_OK)
		e = put_documents(p, t, wanted, list, et);
	tokenizer_free(t);
	published_close(p);
	return e;
}

static void print_documents(const json_t *list) {
	for (size_t i = 0; i < json_array_size(list); i++) {
		printf("\n---- document %zu ----\n", i + 1);
		for (const char *c = json_string_value(json_array_get(list, i)); c && *c; c++)
			putchar(((unsigned char)*c < 0x20 && *c != '\n' && *c != '\t') || *c == 0x7f ? '?' : *c);
		putchar('\n');
	}
}

enum rv_err data_inspect(const struct data_options *o, const char *dir, struct rv_errtext *et) {
	const bool is_table = isatty(STDOUT_FILENO);
	json_t *facts = json_pack("{ss ss}", "kind", "published text", "path", dir), *list = json_array();
	enum rv_err e = facts && list ? inspect_published(dir, facts, et) : rv_fail(et, RV_E_NOMEM, "no memory to inspect");
	if (e == RV_OK && o->documents > 0)
		e = first_documents(dir, o->documents, list, et);
	if (e == RV_OK && !is_table)
		json_object_set(facts, "documents", list);
	if (e == RV_OK)
		inspect_print(facts, is_table);
	if (e == RV_OK && is_table)
		print_documents(list);
	json_decref(facts);
	json_decref(list);
	return e;
}
