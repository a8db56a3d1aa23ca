/* parquet_footer.c: see parquet_footer.h. Numbers of fields and enums are those of
 * parquet.thrift. */
#include "train/text/documents/parquet_footer.h"

#include "base/bytes.h"
#include "train/text/documents/thrift.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TAIL_BYTES = 8, /* length of the footer, "PAR1" */
	TYPE_BYTE_ARRAY = 6,
	TYPE_GROUP = -1,
	CONVERTED_UTF8 = 0,
	CONVERTED_JSON = 19,
	LOGICAL_STRING = 1, /* fields of the union */
	LOGICAL_JSON = 12,
	REPEAT_OPTIONAL = 1,
	REPEAT_REPEATED = 2,
	PATH_BYTES = 512
};

struct element {
	int64_t type, repetition, children;
	bool is_text;
	const uint8_t *name;
	size_t name_bytes;
};

/* The walk over the schema, which lists groups before what they hold. */
struct walk {
	const char *column;
	uint32_t left[THRIFT_MAX_DEPTH]; /* elements to come of each open group */
	size_t path_bytes[THRIFT_MAX_DEPTH];
	uint8_t defined[THRIFT_MAX_DEPTH];
	bool repeated[THRIFT_MAX_DEPTH];
	int depth;
	char path[PATH_BYTES], others[200]; /* of the element; columns that could be it, for the text */
	uint32_t leaf;                      /* number of the next column */
	bool is_found;
	uint32_t found; /* its number */
	uint8_t most_defined;
};

static enum rv_err invalid(const struct mapped_file *file, const char *what, struct rv_errtext *et) {
	return rv_fail(et, RV_E_INVALID, "%.200s: its Parquet footer %s: the file is damaged or not Parquet", file->path,
				   what);
}

/* ---- the schema ---- */

/* LogicalType is a union: the number of its one field is the kind. */
static bool logical_is_text(struct rv_reader *r, const struct thrift_field *f) {
	struct thrift_field kind = {0};
	bool is_text = false;
	if (!thrift_is_struct(r, f))
		return false;
	while (thrift_next(r, &kind)) {
		is_text = kind.id == LOGICAL_STRING || kind.id == LOGICAL_JSON;
		thrift_skip(r, &kind);
	}
	return is_text;
}

static bool converted_is_text(int64_t kind) {
	return kind == CONVERTED_UTF8 || kind == CONVERTED_JSON;
}

static struct element read_element(struct rv_reader *r) {
	struct element e = {.type = TYPE_GROUP};
	struct thrift_field f = {0};
	while (thrift_next(r, &f)) {
		if (f.id == 1)
			e.type = thrift_integer(r, &f);
		else if (f.id == 3)
			e.repetition = thrift_integer(r, &f);
		else if (f.id == 4)
			e.name = thrift_binary(r, &f, &e.name_bytes);
		else if (f.id == 5)
			e.children = thrift_integer(r, &f);
		else if (f.id == 6)
			e.is_text |= converted_is_text(thrift_integer(r, &f));
		else if (f.id == 10)
			e.is_text |= logical_is_text(r, &f);
		else
			thrift_skip(r, &f);
	}
	return e;
}

/* Writes the element's path: that of its group, a dot, its name. */
static bool extend_path(struct walk *w, const struct element *e) {
	size_t at = w->path_bytes[w->depth];
	if (e->name == NULL || memchr(e->name, '\0', e->name_bytes) != NULL || at + 2 + e->name_bytes > sizeof w->path)
		return false;
	if (at > 0)
		w->path[at++] = '.';
	memcpy(w->path + at, e->name, e->name_bytes);
	w->path[at + e->name_bytes] = '\0';
	return true;
}

static void note_other(struct walk *w) {
	size_t used = strlen(w->others);
	(void)snprintf(w->others + used, sizeof w->others - used, "%s%s", used > 0 ? ", " : "", w->path);
}

static enum rv_err take_column(struct walk *w, const struct mapped_file *file, const struct element *e, uint8_t defined,
							   bool repeated, struct rv_errtext *et) {
	bool is_text = e->type == TYPE_BYTE_ARRAY && e->is_text;
	bool is_wanted = strcmp(w->path, w->column) == 0;
	if (is_text && !repeated)
		note_other(w);
	w->leaf++;
	if (!is_wanted)
		return RV_OK;
	if (repeated)
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "%.200s: the column '%s' is within a list: choose one that holds a text a row", file->path,
					   w->column);
	if (!is_text)
		return rv_fail(et, RV_E_UNSUPPORTED, "%.200s: the column '%s' does not hold strings: name another one",
					   file->path, w->column);
	w->is_found = true;
	w->found = w->leaf - 1;
	w->most_defined = defined;
	return RV_OK;
}

static void open_group(struct walk *w, uint32_t children, uint8_t defined, bool repeated) {
	w->depth++;
	w->left[w->depth] = children;
	w->path_bytes[w->depth] = strlen(w->path);
	w->defined[w->depth] = defined;
	w->repeated[w->depth] = repeated;
}

static enum rv_err take_element(struct walk *w, const struct mapped_file *file, const struct element *e,
								struct rv_errtext *et) {
	while (w->depth > 0 && w->left[w->depth] == 0)
		w->depth--;
	if (w->left[w->depth] == 0 || !extend_path(w, e))
		return invalid(file, "has a malformed schema", et);
	w->left[w->depth]--;
	uint8_t defined = (uint8_t)(w->defined[w->depth] + (e->repetition != 0));
	bool repeated = w->repeated[w->depth] || e->repetition == REPEAT_REPEATED;
	if (e->type != TYPE_GROUP)
		return take_column(w, file, e, defined, repeated, et);
	if (e->children < 0 || e->children > PARQUET_MAX_COLUMNS || w->depth + 1 >= THRIFT_MAX_DEPTH)
		return invalid(file, "has a schema that is nested too deep or too large", et);
	open_group(w, (uint32_t)e->children, defined, repeated);
	return RV_OK;
}

static enum rv_err read_schema(struct rv_reader *r, const struct thrift_field *f, struct walk *w,
							   const struct mapped_file *file, struct rv_errtext *et) {
	struct thrift_field each;
	uint32_t n = thrift_list(r, f, THRIFT_STRUCT, &each);
	if (n < 1 || n > PARQUET_MAX_COLUMNS)
		return invalid(file, "has no schema, or one of more than 4096 columns", et);
	const struct element root = read_element(r);
	w->left[0] = root.children > 0 && root.children < n ? (uint32_t)root.children : 0;
	for (uint32_t i = 1; i < n && rv_reader_ok(r); i++) {
		const struct element e = read_element(r);
		if (rv_reader_ok(r))
			RV_TRY(take_element(w, file, &e, et));
	}
	if (!rv_reader_ok(r))
		return invalid(file, "has a malformed schema", et);
	if (!w->is_found)
		return rv_fail(et, RV_E_NOTFOUND, "%.200s has no column '%s'; columns of strings: %s", file->path, w->column,
					   w->others[0] != '\0' ? w->others : "none");
	return w->most_defined <= PARQUET_MAX_LEVEL ? RV_OK : invalid(file, "has a schema that is nested too deep", et);
}

/* ---- the row groups ---- */

struct chunk_facts {
	int64_t codec, n_values, bytes, data_at, dictionary_at;
	bool is_elsewhere, is_encrypted, is_whole;
};

static void read_chunk_meta(struct rv_reader *r, struct chunk_facts *c) {
	struct thrift_field f = {0};
	while (thrift_next(r, &f)) {
		if (f.id == 4)
			c->codec = thrift_integer(r, &f);
		else if (f.id == 5)
			c->n_values = thrift_integer(r, &f);
		else if (f.id == 7)
			c->bytes = thrift_integer(r, &f);
		else if (f.id == 9)
			c->data_at = thrift_integer(r, &f);
		else if (f.id == 11)
			c->dictionary_at = thrift_integer(r, &f);
		else
			thrift_skip(r, &f);
	}
	c->is_whole = rv_reader_ok(r);
}

static struct chunk_facts read_chunk(struct rv_reader *r) {
	struct chunk_facts c = {0};
	struct thrift_field f = {0};
	while (thrift_next(r, &f)) {
		if (f.id == 3 && thrift_is_struct(r, &f)) {
			read_chunk_meta(r, &c);
			continue;
		}
		c.is_elsewhere |= f.id == 1;
		c.is_encrypted |= f.id == 8;
		thrift_skip(r, &f);
	}
	return c;
}

static enum rv_err check_codec(const struct mapped_file *file, int64_t codec, struct rv_errtext *et) {
	static const char *const refused[] = {
		[PARQUET_LZO] = "LZO", [PARQUET_BROTLI] = "Brotli", [PARQUET_LZ4_HADOOP] = "Hadoop's LZ4"};
	if (codec < 0 || codec > PARQUET_LZ4)
		return invalid(file, "names a compression that is not known", et);
	if (codec == PARQUET_LZO || codec == PARQUET_BROTLI || codec == PARQUET_LZ4_HADOOP)
		return rv_fail(
			et, RV_E_UNSUPPORTED,
			"%.200s: its pages are compressed by %s; plain, snappy, gzip, zstd and LZ4 (raw) are read. Write it "
			"again: pyarrow.parquet.write_table(pyarrow.parquet.read_table(FILE), OUT, compression='zstd')",
			file->path, refused[codec]);
	return RV_OK;
}

static enum rv_err take_chunk(struct parquet_chunk *out, const struct chunk_facts *c, const struct mapped_file *file,
							  struct rv_errtext *et) {
	if (c->is_elsewhere || c->is_encrypted)
		return rv_fail(et, RV_E_UNSUPPORTED, "%.200s: its column is %s", file->path,
					   c->is_encrypted ? "encrypted" : "in another file");
	if (!c->is_whole)
		return invalid(file, "does not say where the column is", et);
	RV_TRY(check_codec(file, c->codec, et));
	if (c->n_values == 0) /* it has no pages, and may have no place */
		return RV_OK;
	int64_t at = c->dictionary_at > 0 && c->dictionary_at < c->data_at ? c->dictionary_at : c->data_at;
	if (at < 4 || c->bytes < 0 || c->n_values < 0 || (uint64_t)at > file->bytes ||
		(uint64_t)c->bytes > file->bytes - (uint64_t)at)
		return invalid(file, "names a column outside the file", et);
	*out = (struct parquet_chunk){
		.at = (uint64_t)at, .bytes = (uint64_t)c->bytes, .n_values = (uint64_t)c->n_values, .codec = (uint8_t)c->codec};
	return RV_OK;
}

/* Reads the columns of a row group, of which one is wanted. */
static enum rv_err read_columns(struct rv_reader *r, const struct thrift_field *f, const struct walk *w,
								const struct mapped_file *file, struct parquet_chunk *out, struct rv_errtext *et) {
	struct thrift_field each;
	uint32_t n = thrift_list(r, f, THRIFT_STRUCT, &each);
	if (n != w->leaf)
		return invalid(file, "has a row group with another number of columns than its schema", et);
	for (uint32_t i = 0; i < n; i++) {
		const struct chunk_facts c = read_chunk(r);
		if (i == w->found && rv_reader_ok(r))
			RV_TRY(take_chunk(out, &c, file, et));
	}
	return RV_OK;
}

static enum rv_err read_group(struct rv_reader *r, const struct walk *w, const struct mapped_file *file,
							  struct parquet_chunk *out, struct rv_errtext *et) {
	struct thrift_field f = {0};
	bool has_columns = false;
	while (thrift_next(r, &f)) {
		if (f.id != 1) {
			thrift_skip(r, &f);
			continue;
		}
		has_columns = true;
		RV_TRY(read_columns(r, &f, w, file, out, et));
	}
	return has_columns && rv_reader_ok(r) ? RV_OK : invalid(file, "has a malformed row group", et);
}

static enum rv_err read_groups(struct parquet_footer *out, struct rv_reader *r, const struct thrift_field *f,
							   const struct walk *w, const struct mapped_file *file, struct rv_errtext *et) {
	struct thrift_field each;
	uint32_t n = thrift_list(r, f, THRIFT_STRUCT, &each);
	if (w->column[0] == '\0' || out->chunks != NULL || n > PARQUET_MAX_GROUPS || !rv_reader_ok(r))
		return invalid(file, "has malformed row groups", et);
	out->chunks = calloc((size_t)n + 1, sizeof *out->chunks);
	if (out->chunks == NULL)
		return rv_fail(et, RV_E_NOMEM, "%.200s: no memory for %u row groups", file->path, n);
	for (; out->n_groups < n; out->n_groups++)
		RV_TRY(read_group(r, w, file, &out->chunks[out->n_groups], et));
	return RV_OK;
}

/* ---- the file ---- */

static enum rv_err read_metadata(struct parquet_footer *out, struct rv_reader *r, struct walk *w,
								 const struct mapped_file *file, struct rv_errtext *et) {
	struct thrift_field f = {0};
	while (thrift_next(r, &f)) {
		if (f.id == 2 && !w->is_found)
			RV_TRY(read_schema(r, &f, w, file, et));
		else if (f.id == 3)
			out->n_rows = (uint64_t)thrift_integer(r, &f);
		else if (f.id == 4 && w->is_found)
			RV_TRY(read_groups(out, r, &f, w, file, et));
		else if (f.id == 8)
			return rv_fail(et, RV_E_UNSUPPORTED, "%.200s is encrypted", file->path);
		else
			thrift_skip(r, &f);
	}
	if (!rv_reader_ok(r) || out->chunks == NULL)
		return invalid(file, "ends too early", et);
	out->most_defined = w->most_defined;
	return RV_OK;
}

static enum rv_err load(const struct mapped_file *file, uint8_t **out, size_t *n, struct rv_errtext *et) {
	uint8_t tail[TAIL_BYTES];
	if (file->bytes < 4 + TAIL_BYTES)
		return invalid(file, "is missing: it is too short", et);
	RV_TRY(mapped_file_read(file, file->bytes - TAIL_BYTES, TAIL_BYTES, tail, et));
	struct rv_reader r = rv_reader_of(tail, sizeof tail);
	*n = rv_read_u32(&r);
	if (memcmp(tail + 4, "PARE", 4) == 0)
		return rv_fail(et, RV_E_UNSUPPORTED, "%.200s: its footer is encrypted", file->path);
	if (memcmp(tail + 4, "PAR1", 4) != 0 || *n > file->bytes - 4 - TAIL_BYTES || *n > PARQUET_MAX_FOOTER_BYTES)
		return invalid(file, "is not at its end (cut off while it was copied?)", et);
	*out = malloc(*n + 1);
	if (*out == NULL)
		return rv_fail(et, RV_E_NOMEM, "%.200s: no memory for its footer of %zu bytes", file->path, *n);
	return mapped_file_read(file, file->bytes - TAIL_BYTES - *n, *n, *out, et);
}

enum rv_err parquet_footer_read(struct parquet_footer *f, const struct mapped_file *file, const char *column,
								struct rv_errtext *et) {
	struct walk w = {.column = column};
	uint8_t *bytes = NULL;
	size_t n = 0;
	*f = (struct parquet_footer){0};
	enum rv_err e = load(file, &bytes, &n, et);
	if (e == RV_OK) {
		struct rv_reader r = rv_reader_of(bytes, n);
		e = read_metadata(f, &r, &w, file, et);
	}
	free(bytes);
	if (e != RV_OK)
		parquet_footer_release(f);
	return e;
}

void parquet_footer_release(struct parquet_footer *f) {
	free(f->chunks);
	*f = (struct parquet_footer){0};
}
