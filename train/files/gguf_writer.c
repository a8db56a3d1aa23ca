/* gguf_writer.c: numbers are little-endian; a string is its length (u64) and its bytes; a pair is
 * key, type, value. */
#include "train/files/gguf_writer.h"

#include "base/bytes.h"

#include <string.h>

enum { VERSION = 3 };

static const char magic[4] = {'G', 'G', 'U', 'F'};
static const uint32_t tensor_types[WEIGHTS_FORMATS] = {[WEIGHTS_F32] = 0, [WEIGHTS_F16] = 1, [WEIGHTS_BF16] = 30};

void gguf_writer_release(struct gguf_writer *g) {
	byte_list_release(&g->pairs);
	*g = (struct gguf_writer){.n_pairs = 0};
}

static void add(struct gguf_writer *g, const void *data, size_t n) {
	g->failed = g->failed || byte_list_append(&g->pairs, data, n, NULL) != RV_OK;
}

static void add_u32(struct gguf_writer *g, uint32_t v) {
	uint8_t bytes[4];
	struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
	rv_write_u32(&w, v);
	add(g, bytes, sizeof bytes);
}

static void add_u64(struct gguf_writer *g, uint64_t v) {
	uint8_t bytes[8];
	struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
	rv_write_u64(&w, v);
	add(g, bytes, sizeof bytes);
}

void gguf_add_string(struct gguf_writer *g, const char *text, size_t n) {
	add_u64(g, n);
	add(g, text, n);
}

void gguf_add_i32(struct gguf_writer *g, int32_t value) {
	add_u32(g, (uint32_t)value);
}

static void put_key(struct gguf_writer *g, const char *key, enum gguf_type type) {
	g->n_pairs++;
	gguf_add_string(g, key, strlen(key));
	add_u32(g, type);
}

void gguf_put_u32(struct gguf_writer *g, const char *key, uint32_t value) {
	put_key(g, key, GGUF_U32);
	add_u32(g, value);
}

void gguf_put_f32(struct gguf_writer *g, const char *key, float value) {
	uint32_t bits;
	memcpy(&bits, &value, sizeof bits);
	put_key(g, key, GGUF_F32);
	add_u32(g, bits);
}

void gguf_put_bool(struct gguf_writer *g, const char *key, bool value) {
	put_key(g, key, GGUF_BOOL);
	add(g, &(uint8_t){value}, 1);
}

void gguf_put_string(struct gguf_writer *g, const char *key, const char *value) {
	put_key(g, key, GGUF_STRING);
	gguf_add_string(g, value, strlen(value));
}

void gguf_put_array(struct gguf_writer *g, const char *key, enum gguf_type type, uint64_t n) {
	put_key(g, key, GGUF_ARRAY);
	add_u32(g, type);
	add_u64(g, n);
}

/* ---- the file ---- */

static uint64_t aligned(uint64_t n) {
	return (n + GGUF_ALIGNMENT - 1) / GGUF_ALIGNMENT * GGUF_ALIGNMENT;
}

static uint64_t tensor_bytes(const struct gguf_tensor *t) {
	return t->rows * (t->cols ? t->cols : 1) * weights_format_bytes(t->format);
}

/* Adds the table: dimensions by stride, the shortest first; offsets from the first tensor. */
static void add_table(struct gguf_writer *g, const struct gguf_tensor *tensors, int n) {
	uint64_t offset = 0;
	for (int i = 0; i < n; i++) {
		const struct gguf_tensor *t = &tensors[i];
		gguf_add_string(g, t->name, strlen(t->name));
		add_u32(g, t->cols ? 2 : 1);
		if (t->cols)
			add_u64(g, t->cols);
		add_u64(g, t->rows);
		add_u32(g, tensor_types[t->format]);
		add_u64(g, offset);
		offset += aligned(tensor_bytes(t));
	}
}

/* Writes zeros up to the next aligned byte after `n`. */
static enum rv_err pad(struct rv_file_writer *w, uint64_t n, struct rv_errtext *et) {
	static const uint8_t zeros[GGUF_ALIGNMENT];
	return rv_file_writer_write(w, zeros, (size_t)(aligned(n) - n), et);
}

static enum rv_err write_parts(const struct gguf_writer *g, struct rv_file_writer *w, const struct gguf_tensor *tensors,
							   int n_tensors, const struct weights_rows *rows, struct rv_errtext *et) {
	uint8_t header[24];
	struct rv_writer h = rv_writer_of(header, sizeof header);
	rv_write_bytes(&h, magic, sizeof magic);
	rv_write_u32(&h, VERSION);
	rv_write_u64(&h, (uint64_t)n_tensors);
	rv_write_u64(&h, g->n_pairs);
	RV_TRY(rv_file_writer_write(w, header, sizeof header, et));
	RV_TRY(rv_file_writer_write(w, g->pairs.bytes, g->pairs.n, et));
	RV_TRY(pad(w, sizeof header + g->pairs.n, et));
	for (int i = 0; i < n_tensors; i++) {
		const struct gguf_tensor *t = &tensors[i];
		size_t n = t->cols ? t->rows : 1, row = t->cols ? t->cols : t->rows;
		RV_TRY(weights_stream_write(w, rows, i, t->name, n, row, t->format, et));
		RV_TRY(pad(w, tensor_bytes(t), et));
	}
	return RV_OK;
}

enum rv_err gguf_writer_write(struct gguf_writer *g, const char *path, const struct gguf_tensor *tensors, int n_tensors,
							  const struct weights_rows *rows, struct rv_errtext *et) {
	struct rv_file_writer w;
	add_table(g, tensors, n_tensors);
	if (g->failed)
		return rv_fail(et, RV_E_NOMEM, "no memory for the header of %s", path);
	RV_TRY(rv_file_writer_begin(&w, path, 0644, et));
	return rv_file_writer_end(&w, write_parts(g, &w, tensors, n_tensors, rows, et), et);
}
