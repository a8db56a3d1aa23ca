/* gguf.c: a GGUF file up to its tensors: metadata and the tensor table. (ggml: docs/gguf.md) */
#include "lab/inspect/inspect.h"
#include "lab/worker_files/facts.h"

#include "base/bytes.h"
#include "train/text/tokenizer/mapped_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	VERSION_MIN = 2,
	VERSION_MAX = 3,
	MAX_PAIRS = 4096,
	MAX_TENSORS = 65536,
	MAX_DIMS = 4,
	MAX_DEPTH = 4,        /* arrays of arrays */
	MAX_TEXT_BYTES = 256, /* shown of a string */
	MAX_HEADER_BYTES = 256 << 20,
	MAX_SHOWN = 8, /* elements shown of an array */
};

enum value_type { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64, VALUE_TYPES };

/* Names of ggml_type; an unnamed type is shown by its number. */
static const char *const tensor_types[] = {
	[0] = "F32",   [1] = "F16",   [2] = "Q4_0",  [3] = "Q4_1",  [6] = "Q5_0",
	[7] = "Q5_1",  [8] = "Q8_0",  [10] = "Q2_K", [11] = "Q3_K", [12] = "Q4_K",
	[13] = "Q5_K", [14] = "Q6_K", [15] = "Q8_K", [28] = "F64",  [30] = "BF16",
};

/* Returns the text, or its longest prefix that is UTF-8. */
static json_t *text_of(const uint8_t *bytes, size_t n) {
	json_t *text = NULL;
	for (n = n < MAX_TEXT_BYTES ? n : MAX_TEXT_BYTES; !text; n--) {
		text = json_stringn((const char *)bytes, n); /* a character may have been cut */
		if (n == 0)
			break;
	}
	return text ? text : json_string("");
}

static json_t *read_string(struct rv_reader *r) {
	uint64_t n = rv_read_u64(r);
	const uint8_t *bytes = n <= rv_reader_left(r) ? rv_read_span(r, (size_t)n) : NULL;
	if (!bytes)
		r->failed = true;
	return bytes ? text_of(bytes, (size_t)n) : json_null();
}

static json_t *read_value(struct rv_reader *r, uint32_t type, int depth);

/* Returns "array of N", and its first elements. */
static json_t *read_array(struct rv_reader *r, int depth) {
	uint32_t type = rv_read_u32(r);
	uint64_t n = rv_read_u64(r);
	json_t *first = json_array();
	for (uint64_t i = 0; i < n && !r->failed; i++) {
		json_t *v = read_value(r, type, depth + 1);
		if (i < MAX_SHOWN)
			json_array_append_new(first, v);
		else
			json_decref(v);
	}
	return json_pack("{sI so}", "length", (json_int_t)n, "first", first);
}

static json_t *real_or_null(double v) {
	json_t *j = json_real(v);
	return j ? j : json_null();
}

static json_t *read_value(struct rv_reader *r, uint32_t type, int depth) {
	switch (type) {
	case U8:
		return json_integer(rv_read_u8(r));
	case I8:
		return json_integer((int8_t)rv_read_u8(r));
	case U16:
		return json_integer(rv_read_u16(r));
	case I16:
		return json_integer((int16_t)rv_read_u16(r));
	case U32:
		return json_integer(rv_read_u32(r));
	case I32:
		return json_integer((int32_t)rv_read_u32(r));
	case F32:
		return real_or_null((double)rv_read_f32(r));
	case BOOL:
		return json_boolean(rv_read_u8(r));
	case STRING:
		return read_string(r);
	case U64:
	case I64:
		return json_integer((json_int_t)rv_read_u64(r));
	case F64:
		return real_or_null(rv_read_f64(r));
	default:
		break;
	}
	if (type == ARRAY && depth < MAX_DEPTH)
		return read_array(r, depth);
	r->failed = true;
	return json_null();
}

static json_t *read_tensor(struct rv_reader *r, uint64_t *elems) {
	json_t *name = read_string(r);
	uint32_t n_dims = rv_read_u32(r);
	uint64_t dims[MAX_DIMS], n = 1;
	if (n_dims > MAX_DIMS)
		r->failed = true;
	for (uint32_t i = 0; i < n_dims && !r->failed; i++) {
		dims[n_dims - 1 - i] = rv_read_u64(r); /* stored with the fastest first; shown with the rows first */
		if (__builtin_mul_overflow(n, dims[n_dims - 1 - i], &n))
			r->failed = true;
	}
	uint32_t type = rv_read_u32(r);
	(void)rv_read_u64(r); /* its offset */
	*elems += n;
	const char *known = type < sizeof tensor_types / sizeof tensor_types[0] ? tensor_types[type] : NULL;
	json_t *dtype = known ? json_string(known) : json_sprintf("type %u", type);
	return json_pack("{so so so}", "name", name, "dtype", dtype, "shape",
					 inspect_shape(dims, r->failed ? 0 : (int)n_dims));
}

static enum rv_err read_metadata(struct rv_reader *r, uint64_t n_pairs, json_t *facts, struct rv_errtext *et) {
	json_t *metadata = json_object();
	for (uint64_t i = 0; i < n_pairs && !r->failed; i++) {
		json_t *key = read_string(r);
		uint32_t type = rv_read_u32(r);
		json_t *value = read_value(r, type, 0);
		if (json_is_string(key))
			json_object_set_new(metadata, json_string_value(key), value);
		else
			json_decref(value);
		json_decref(key);
	}
	json_object_set_new(facts, "metadata", metadata);
	return r->failed ? rv_fail(et, RV_E_CORRUPT, "its metadata end in the middle, or have a type that does not exist")
					 : RV_OK;
}

enum rv_err inspect_gguf_header(const uint8_t *bytes, size_t n, json_t *facts, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(bytes, n);
	const uint8_t *magic = rv_read_span(&r, 4);
	uint32_t version = rv_read_u32(&r);
	uint64_t n_tensors = rv_read_u64(&r), n_pairs = rv_read_u64(&r), elems = 0;
	if (!rv_reader_ok(&r) || memcmp(magic, "GGUF", 4) != 0)
		return rv_fail(et, RV_E_CORRUPT, "not a GGUF file");
	if (version < VERSION_MIN || version > VERSION_MAX)
		return rv_fail(et, RV_E_UNSUPPORTED, "version %u of GGUF; this program reads %d and %d", version, VERSION_MIN,
					   VERSION_MAX);
	if (n_tensors > MAX_TENSORS || n_pairs > MAX_PAIRS)
		return rv_fail(et, RV_E_CORRUPT, "%" PRIu64 " tensors and %" PRIu64 " pairs of metadata; at most %d and %d",
					   n_tensors, n_pairs, MAX_TENSORS, MAX_PAIRS);
	json_object_set_new(facts, "version", json_integer(version));
	RV_TRY(read_metadata(&r, n_pairs, facts, et));
	json_t *tensors = json_array();
	for (uint64_t i = 0; i < n_tensors && !r.failed; i++)
		json_array_append_new(tensors, read_tensor(&r, &elems));
	facts_put(facts, "{sI sI so}", "tensor_count", (json_int_t)n_tensors, "parameters", (json_int_t)elems, "tensors",
			  tensors);
	return r.failed ? rv_fail(et, RV_E_CORRUPT, "its table of tensors ends in the middle, or has a tensor of no size")
					: RV_OK;
}

/* Reads the first `n` bytes into a copy: a mapped file that is cut short meanwhile would kill the
 * process. */
static enum rv_err read_start(const char *path, const struct mapped_file *m, json_t *facts, struct rv_errtext *et) {
	size_t n = m->bytes < MAX_HEADER_BYTES ? m->bytes : MAX_HEADER_BYTES;
	uint8_t *bytes = malloc(n + 1);
	if (!bytes)
		return rv_fail(et, RV_E_NOMEM, "%s: no memory for %zu bytes of its header", path, n);
	enum rv_err e = mapped_file_read(m, 0, n, bytes, et);
	if (e == RV_OK) {
		e = inspect_gguf_header(bytes, n, facts, et);
		if (e != RV_OK)
			(void)rv_fail_context(et, e, "%s", path);
	}
	free(bytes);
	return e;
}

enum rv_err inspect_gguf(const char *path, json_t *facts, struct rv_errtext *et) {
	struct mapped_file m;
	RV_TRY(mapped_file_open(&m, path, et));
	enum rv_err e = read_start(path, &m, facts, et);
	mapped_file_close(&m);
	return e;
}
