/* safetensors_write.c: writes safetensors files. */
#include "train/files/safetensors.h"

#include "base/bytes.h"
#include "base/file.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_ALIGNMENT = 8 };

static uint64_t row_elems(const struct safetensors_tensor *t) {
	uint64_t n = 1;
	for (int i = 1; i < t->n_dims; i++)
		n *= t->dims[i];
	return n;
}

static uint64_t row_count(const struct safetensors_tensor *t) {
	return t->n_dims > 0 ? t->dims[0] : 1;
}

/* Returns a tensor's header entry, or NULL without memory. */
static json_t *tensor_entry(struct safetensors_tensor *t, enum weights_format format, uint64_t *at) {
	json_t *shape = json_array();
	bool failed = !shape;
	for (int i = 0; i < t->n_dims; i++)
		failed |= json_array_append_new(shape, json_integer((json_int_t)t->dims[i])) != 0;
	t->begin = *at;
	t->end = *at += row_count(t) * row_elems(t) * weights_format_bytes(format);
	if (failed) {
		json_decref(shape);
		return NULL;
	}
	return json_pack("{ss so s[II]}", "dtype", weights_format_name(format), "shape", shape, "data_offsets",
					 (json_int_t)t->begin, (json_int_t)t->end);
}

/* Fills the header. Returns false without memory, or if a text is not UTF-8. */
static bool fill_header(json_t *header, const struct safetensors_source *source) {
	json_t *meta = json_object();
	bool failed = false;
	for (int i = 0; i < source->n_meta; i++)
		failed |= json_object_set_new(meta, source->meta[i].key, json_string(source->meta[i].value)) != 0;
	failed |= json_object_set_new(header, SAFETENSORS_METADATA_KEY, meta) != 0;
	uint64_t at = 0;
	for (int i = 0; i < source->n_tensors; i++) {
		json_t *entry = tensor_entry(&source->tensors[i], source->format, &at);
		failed |= json_object_set_new(header, source->tensors[i].name, entry) != 0;
	}
	return !failed;
}

/* Returns the header, padded so that the data is aligned; NULL where fill_header fails. */
static char *header_text(const struct safetensors_source *source, size_t *out_bytes) {
	json_t *header = json_object();
	char *text = fill_header(header, source) ? json_dumps(header, JSON_COMPACT) : NULL;
	json_decref(header);
	if (!text)
		return NULL;
	size_t n = strlen(text), padded = (n + HEADER_ALIGNMENT - 1) / HEADER_ALIGNMENT * HEADER_ALIGNMENT;
	char *grown = realloc(text, padded + 1);
	if (!grown) {
		free(text);
		return NULL;
	}
	memset(grown + n, ' ', padded - n);
	*out_bytes = padded;
	return grown;
}

static enum rv_err write_parts(struct rv_file_writer *w, const struct safetensors_source *source, const char *header,
							   size_t header_bytes, struct rv_errtext *et) {
	uint8_t length[SAFETENSORS_LENGTH_BYTES];
	struct rv_writer lw = rv_writer_of(length, sizeof length);
	rv_write_u64(&lw, header_bytes);
	RV_TRY(rv_file_writer_write(w, length, sizeof length, et));
	RV_TRY(rv_file_writer_write(w, header, header_bytes, et));
	for (int i = 0; i < source->n_tensors; i++) {
		const struct safetensors_tensor *t = &source->tensors[i];
		RV_TRY(weights_stream_write(w, &source->rows, i, t->name, row_count(t), row_elems(t), source->format, et));
	}
	return RV_OK;
}

enum rv_err safetensors_write(const char *path, const struct safetensors_source *source, struct rv_errtext *et) {
	size_t header_bytes;
	char *header = header_text(source, &header_bytes);
	if (!header)
		return rv_fail(et, RV_E_NOMEM, "no memory for the header of %s, or a text in it is not UTF-8", path);
	struct rv_file_writer w;
	enum rv_err e = rv_file_writer_begin(&w, path, 0644, et);
	if (e == RV_OK)
		e = rv_file_writer_end(&w, write_parts(&w, source, header, header_bytes, et), et);
	free(header);
	return e;
}
