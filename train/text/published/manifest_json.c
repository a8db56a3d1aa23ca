/* manifest_json.c: a table of the manifest's fields reads and prints its JSON. */
#include "train/text/published/manifest.h"

#include "base/file.h"
#include "base/hex.h"
#include "base/json_limits.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "rivulet data"
enum { MAX_CONTAINERS = 3, MAX_VALUES = 256, HEX_BYTES = 2 * RV_HASH_BYTES + 1 };

enum field_kind { FIELD_COUNT, FIELD_TEXT, FIELD_HASH, FIELD_LIST };

struct field {
	const char *name;
	enum field_kind kind;
	size_t at;      /* in struct manifest */
	size_t cap;     /* TEXT: of the array; LIST: of an item */
	size_t n_at;    /* LIST: of the number of items */
	int64_t n_most; /* LIST: items */
};

#define AT(f)  offsetof(struct manifest, f)
#define CAP(f) sizeof(((struct manifest *)0)->f)
#define COUNT(name, f)                                                                                                 \
	{ name, FIELD_COUNT, AT(f), 0, 0, 0 }
#define TEXT(name, f)                                                                                                  \
	{ name, FIELD_TEXT, AT(f), CAP(f), 0, 0 }
#define HASH(name, f)                                                                                                  \
	{ name, FIELD_HASH, AT(f), 0, 0, 0 }

static const struct field fields[] = {
	TEXT("description", description),
	COUNT("holdout_every", holdout_every),
	TEXT("license", license),
	{"mirrors", FIELD_LIST, AT(mirrors), CAP(mirrors[0]), AT(n_mirrors), MANIFEST_MIRRORS},
	HASH("root", root),
	COUNT("separator", separator),
	COUNT("shard_tokens", shard_tokens),
	COUNT("shards", n_shards),
	{"sources", FIELD_LIST, AT(sources), CAP(sources[0]), AT(n_named), MANIFEST_SOURCES},
	COUNT("sources_total", n_sources),
	TEXT("tokenizer_file", tokenizer_file),
	HASH("tokenizer_hash", tokenizer_hash),
	TEXT("tokenizer_pattern", tokenizer_pattern),
	COUNT("tokens", n_tokens),
	COUNT("vocab", vocab),
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

/* ---- reading ---- */

static enum rv_err take_text(const char *name, const json_t *v, char *out, size_t cap, struct rv_errtext *et) {
	const char *text = json_string_value(v);
	if (!text)
		return rv_fail(et, RV_E_INVALID, "'%s' is not a string", name);
	if (json_string_length(v) >= cap)
		return rv_fail(et, RV_E_RANGE, "'%s' has %zu bytes: at most %zu", name, json_string_length(v), cap - 1);
	memcpy(out, text, json_string_length(v) + 1);
	return RV_OK;
}

static enum rv_err take_list(const struct field *f, const json_t *v, struct manifest *m, struct rv_errtext *et) {
	char *items = (char *)m + f->at;
	size_t n = json_array_size(v);
	if (!json_is_array(v))
		return rv_fail(et, RV_E_INVALID, "'%s' is not a list", f->name);
	if (n > (size_t)f->n_most)
		return rv_fail(et, RV_E_RANGE, "'%s' has %zu items: at most %" PRId64, f->name, n, f->n_most);
	for (size_t i = 0; i < n; i++)
		RV_TRY(take_text(f->name, json_array_get(v, i), items + i * f->cap, f->cap, et));
	*(int64_t *)(void *)((char *)m + f->n_at) = (int64_t)n;
	return RV_OK;
}

static enum rv_err take_hash(const char *name, const json_t *v, struct rv_hash *out, struct rv_errtext *et) {
	const char *hex = json_string_value(v);
	if (!hex || strlen(hex) != HEX_BYTES - 1 || !rv_hex_decode(hex, out->b, sizeof out->b))
		return rv_fail(et, RV_E_INVALID, "'%s' is not a hash of %d hex digits", name, HEX_BYTES - 1);
	return RV_OK;
}

static enum rv_err take_field(const struct field *f, const json_t *v, struct manifest *m, struct rv_errtext *et) {
	void *at = (char *)m + f->at;
	if (!v)
		return rv_fail(et, RV_E_INVALID, "'%s' is missing", f->name);
	switch (f->kind) {
	case FIELD_TEXT:
		return take_text(f->name, v, at, f->cap, et);
	case FIELD_HASH:
		return take_hash(f->name, v, at, et);
	case FIELD_LIST:
		return take_list(f, v, m, et);
	default:
		if (!json_is_integer(v))
			return rv_fail(et, RV_E_INVALID, "'%s' is not a whole number", f->name);
		*(int64_t *)at = json_integer_value(v);
		return RV_OK;
	}
}

static bool is_known(const char *name) {
	for (size_t i = 0; i < FIELDS; i++)
		if (strcmp(fields[i].name, name) == 0)
			return true;
	return strcmp(name, "format") == 0 || strcmp(name, "version") == 0;
}

static enum rv_err take_root(json_t *root, struct manifest *m, struct rv_errtext *et) {
	const char *format = json_string_value(json_object_get(root, "format")), *name;
	const json_t *version = json_object_get(root, "version");
	json_t *v;
	*m = (struct manifest){0};
	if (!format || strcmp(format, FORMAT) != 0 || !json_is_integer(version))
		return rv_fail(et, RV_E_INVALID, "no manifest of a published text: `rivulet data publish` writes one");
	if (json_integer_value(version) != MANIFEST_VERSION)
		return rv_fail(et, RV_E_UNSUPPORTED, "version %" PRId64 ", this program reads version %d: use a newer Rivulet",
					   (int64_t)json_integer_value(version), MANIFEST_VERSION);
	json_object_foreach(root, name, v) if (!is_known(name)) return rv_fail(
		et, RV_E_INVALID, "unknown key '%.64s': a manifest of version %d has none such", name, MANIFEST_VERSION);
	for (size_t i = 0; i < FIELDS; i++)
		RV_TRY(take_field(&fields[i], json_object_get(root, fields[i].name), m, et));
	return manifest_check(m, et);
}

static enum rv_err parse(const uint8_t *text, size_t n, struct manifest *m, struct rv_errtext *et) {
	json_error_t why;
	if (n > MANIFEST_MAX_BYTES)
		return rv_fail(et, RV_E_RANGE, "%zu bytes: at most %d", n, MANIFEST_MAX_BYTES);
	RV_TRY(rv_json_check_limits(text, n, MAX_CONTAINERS, MAX_VALUES, et));
	json_t *root = json_loadb((const char *)text, n, JSON_REJECT_DUPLICATES, &why);
	if (!root)
		return rv_fail(et, RV_E_INVALID, "line %d: %s", why.line, why.text);
	enum rv_err e = take_root(root, m, et);
	json_decref(root);
	return e;
}

enum rv_err manifest_parse(const char *where, const uint8_t *text, size_t n, struct manifest *m,
						   struct rv_errtext *et) {
	enum rv_err e = parse(text, n, m, et);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%.160s", where);
}

/* ---- printing ---- */

static json_t *list_of(const struct field *f, const struct manifest *m) {
	json_t *list = json_array();
	const char *items = (const char *)m + f->at;
	const int64_t n = *(const int64_t *)(const void *)((const char *)m + f->n_at);
	for (int64_t i = 0; i < n; i++)
		json_array_append_new(list, json_string(items + (size_t)i * f->cap));
	return list;
}

static json_t *value_of(const struct field *f, const struct manifest *m) {
	const void *at = (const char *)m + f->at;
	char hex[HEX_BYTES];
	switch (f->kind) {
	case FIELD_TEXT:
		return json_string(at);
	case FIELD_HASH:
		rv_hex_encode(((const struct rv_hash *)at)->b, RV_HASH_BYTES, hex);
		return json_string(hex);
	case FIELD_LIST:
		return list_of(f, m);
	default:
		return json_integer(*(const int64_t *)at);
	}
}

static enum rv_err print(const struct manifest *m, bool has_mirrors, size_t flags, char **out, struct rv_errtext *et) {
	json_t *root = json_pack("{ss si}", "format", FORMAT, "version", MANIFEST_VERSION);
	bool ok = root != NULL;
	for (size_t i = 0; ok && i < FIELDS; i++)
		if (has_mirrors || fields[i].at != AT(mirrors))
			ok = json_object_set_new(root, fields[i].name, value_of(&fields[i], m)) == 0;
	*out = ok ? json_dumps(root, JSON_SORT_KEYS | flags) : NULL;
	json_decref(root);
	return *out ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory for a manifest");
}

enum rv_err manifest_print(const struct manifest *m, char **out, struct rv_errtext *et) {
	return print(m, true, JSON_INDENT(1), out, et);
}

enum rv_err manifest_hash(const struct manifest *m, struct rv_hash *out, struct rv_errtext *et) {
	char *text;
	RV_TRY(print(m, false, JSON_COMPACT, &text, et));
	*out = rv_hash_of(text, strlen(text));
	free(text);
	return RV_OK;
}

/* ---- files ---- */

static void path_of(const char *dir, char path[static PATH_MAX]) {
	(void)snprintf(path, PATH_MAX, "%s/" MANIFEST_NAME, dir);
}

enum rv_err manifest_read(const char *dir, struct manifest *m, struct rv_errtext *et) {
	char path[PATH_MAX];
	uint8_t *text;
	size_t n;
	path_of(dir, path);
	RV_TRY(rv_file_read(path, MANIFEST_MAX_BYTES, &text, &n, et));
	enum rv_err e = manifest_parse(path, text, n, m, et);
	free(text);
	return e;
}

enum rv_err manifest_write(const char *dir, const struct manifest *m, struct rv_errtext *et) {
	char path[PATH_MAX], *text;
	path_of(dir, path);
	RV_TRY(manifest_check(m, et));
	RV_TRY(manifest_print(m, &text, et));
	enum rv_err e = rv_file_write_atomic(path, text, strlen(text), 0644, et);
	free(text);
	return e;
}

bool manifest_recognise(const char *dir) {
	char path[PATH_MAX];
	uint8_t *text;
	size_t n;
	path_of(dir, path);
	if (rv_file_read(path, MANIFEST_MAX_BYTES, &text, &n, NULL) != RV_OK)
		return false;
	bool is_ours = strstr((const char *)text, "\"" FORMAT "\"") != NULL;
	free(text);
	return is_ours;
}
