/* json_documents.c: see json_documents.h. */
#include "train/text/documents/json_documents.h"

#include "train/text/documents/documents.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 1 << 16, KEY_BYTES = 128 };

struct json_documents {
	struct byte_stream *bytes;
	const char *path, *field;
	uint8_t *held; /* (cap) bytes [from, to) are read and not given out */
	size_t from, to, cap;
	bool at_end;
	uint64_t line; /* number of the present one, from 1 */
	json_t *root;  /* of the present one */
};

enum rv_err json_documents_open(struct byte_stream *bytes, const char *path, const char *field,
								struct json_documents **out, struct rv_errtext *et) {
	struct json_documents *d = calloc(1, sizeof *d);
	uint8_t *held = malloc(FIRST_BYTES);
	if (d == NULL || held == NULL) {
		free(d);
		free(held);
		return rv_fail(et, RV_E_NOMEM, "%.200s: no memory to read its lines", path);
	}
	*d = (struct json_documents){.bytes = bytes, .path = path, .field = field, .held = held, .cap = FIRST_BYTES};
	*out = d;
	return RV_OK;
}

void json_documents_close(struct json_documents *d) {
	if (d == NULL)
		return;
	json_decref(d->root);
	free(d->held);
	free(d);
}

/* ---- lines ---- */

static enum rv_err make_room(struct json_documents *d, struct rv_errtext *et) {
	memmove(d->held, d->held + d->from, d->to - d->from);
	d->to -= d->from;
	d->from = 0;
	if (d->to < d->cap)
		return RV_OK;
	if (d->cap >= DOCUMENTS_LINE_BYTES)
		return rv_fail(et, RV_E_UNSUPPORTED, "%.200s, line %llu: longer than %d bytes", d->path,
					   (unsigned long long)d->line, DOCUMENTS_LINE_BYTES);
	uint8_t *held = realloc(d->held, 2 * d->cap);
	if (held == NULL)
		return rv_fail(et, RV_E_NOMEM, "%.200s, line %llu: no memory for it", d->path, (unsigned long long)d->line);
	d->held = held;
	d->cap *= 2;
	return RV_OK;
}

/* Gives the next line without its end; *at is NULL after the last. */
static enum rv_err next_line(struct json_documents *d, const char **at, size_t *n, struct rv_errtext *et) {
	size_t searched = 0, got = 0;
	d->line++;
	for (;;) {
		const uint8_t *from = d->held + d->from, *end = memchr(from + searched, '\n', d->to - d->from - searched);
		searched = d->to - d->from;
		if (end != NULL || d->at_end) {
			*n = end != NULL ? (size_t)(end - from) : searched;
			*at = *n > 0 || end != NULL ? (const char *)from : NULL;
			d->from += *n + (end != NULL);
			return RV_OK;
		}
		RV_TRY(make_room(d, et));
		RV_TRY(byte_stream_read(d->bytes, d->held + d->to, d->cap - d->to, &got, et));
		d->to += got;
		d->at_end = got == 0;
	}
}

static bool is_blank(const char *line, size_t n) {
	while (n > 0 && strchr(" \t\r", line[n - 1]) != NULL && line[n - 1] != '\0')
		n--;
	return n == 0;
}

/* ---- fields ---- */

/* Returns what `field` names: of an object within an object after each dot, unless the whole is the
 * name of a field. */
static const json_t *find(const json_t *root, const char *field) {
	const json_t *whole = json_object_get(root, field);
	while (whole == NULL && root != NULL) {
		char key[KEY_BYTES];
		size_t n = strcspn(field, ".");
		if (n >= sizeof key)
			return NULL;
		memcpy(key, field, n);
		key[n] = '\0';
		root = json_object_get(root, key);
		if (field[n] == '\0')
			return root;
		field += n + 1;
	}
	return whole;
}

static enum rv_err refuse(const struct json_documents *d, const char *what, struct rv_errtext *et) {
	return rv_fail(et, RV_E_INVALID, "%.200s, line %llu: %s", d->path, (unsigned long long)d->line, what);
}

/* A null is no document, as in Parquet. */
static enum rv_err take_field(struct json_documents *d, const json_t **out, struct rv_errtext *et) {
	if (!json_is_object(d->root))
		return refuse(d, "not a JSON object", et);
	*out = find(d->root, d->field);
	if (*out == NULL)
		return rv_fail(et, RV_E_INVALID,
					   "%.200s, line %llu: it has no field '%s'; its first field is '%s': name the one "
					   "with the text",
					   d->path, (unsigned long long)d->line, d->field,
					   json_object_size(d->root) > 0 ? json_object_iter_key(json_object_iter(d->root)) : "");
	if (json_is_string(*out) || json_is_null(*out))
		return RV_OK;
	return rv_fail(et, RV_E_INVALID, "%.200s, line %llu: field '%s' is not a string", d->path,
				   (unsigned long long)d->line, d->field);
}

enum rv_err json_documents_next(struct json_documents *d, const uint8_t **at, size_t *n, struct rv_errtext *et) {
	const json_t *text = NULL;
	while (!json_is_string(text)) {
		const char *line;
		json_error_t why;
		RV_TRY(next_line(d, &line, n, et));
		json_decref(d->root);
		d->root = NULL;
		*at = NULL;
		if (line == NULL)
			return RV_OK;
		if (is_blank(line, *n))
			continue;
		d->root = json_loadb(line, *n, JSON_ALLOW_NUL, &why);
		if (d->root == NULL)
			return refuse(d, why.text, et);
		RV_TRY(take_field(d, &text, et));
	}
	*at = (const uint8_t *)json_string_value(text);
	*n = json_string_length(text);
	return RV_OK;
}
