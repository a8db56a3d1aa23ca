/* safetensors.c: reads safetensors files, untrusted. */
#include "train/files/safetensors.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/json_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	/* Limits of the header's JSON: a tensor is an object with two arrays and some 14 values. */
	MAX_CONTAINERS = 3 * SAFETENSORS_TENSORS_MAX + 16,
	MAX_VALUES = 16 * SAFETENSORS_TENSORS_MAX + 65536,
	READ_BYTES = 1 << 17, /* buffer of numbers that are converted */
};

struct safetensors {
	int fd;
	char *path;
	json_t *header;                     /* owns all names */
	struct safetensors_tensor *tensors; /* ascending by `begin` */
	int n_tensors;
	uint64_t data_offset, data_bytes;
};

static uint64_t dtype_size(const char *dtype) {
	static const struct {
		const char *name;
		uint64_t bytes;
	} known[] = {{"F64", 8}, {"F32", 4}, {"F16", 2},  {"BF16", 2}, {"I64", 8}, {"I32", 4}, {"I16", 2},
				 {"I8", 1},  {"U8", 1},  {"BOOL", 1}, {"U64", 8},  {"U32", 4}, {"U16", 2}};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (strcmp(known[i].name, dtype) == 0)
			return known[i].bytes;
	return 0;
}

static enum rv_err read_at(const struct safetensors *s, void *out, size_t n, uint64_t offset, struct rv_errtext *et) {
	const ssize_t got = rv_read_at(s->fd, out, n, offset);
	if (got < 0)
		return rv_fail_errno(et, errno, "cannot read %s", s->path);
	return (size_t)got == n ? RV_OK
							: rv_fail(et, RV_E_CORRUPT, "%s: ends at byte %" PRIu64, s->path, offset + (uint64_t)got);
}

static enum rv_err parse_shape(const struct safetensors *s, json_t *shape, struct safetensors_tensor *t,
							   struct rv_errtext *et) {
	size_t n = json_array_size(shape);
	if (!json_is_array(shape) || n > SAFETENSORS_DIMS_MAX)
		return rv_fail(et, RV_E_CORRUPT, "%s: tensor '%.60s' has no shape of at most %d dimensions", s->path, t->name,
					   SAFETENSORS_DIMS_MAX);
	t->n_dims = (int)n;
	for (size_t i = 0; i < n; i++) {
		json_t *d = json_array_get(shape, i);
		if (!json_is_integer(d) || json_integer_value(d) < 0)
			return rv_fail(et, RV_E_CORRUPT, "%s: tensor '%.60s': dimension %zu is not a size", s->path, t->name, i);
		t->dims[i] = (uint64_t)json_integer_value(d);
	}
	return RV_OK;
}

/* Reads the byte range, which must match shape and dtype and lie in the file. */
static enum rv_err parse_range(const struct safetensors *s, json_t *offsets, struct safetensors_tensor *t,
							   struct rv_errtext *et) {
	json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
	if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
		json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin))
		return rv_fail(et, RV_E_CORRUPT, "%s: tensor '%.60s': data_offsets are not a begin and an end", s->path,
					   t->name);
	if ((uint64_t)json_integer_value(end) > s->data_bytes)
		return rv_fail(et, RV_E_CORRUPT,
					   "%s: too short: %" PRIu64 " bytes of data, and tensor '%.60s' ends at %" PRIu64
					   "; was it copied or fetched only in part?",
					   s->path, s->data_bytes, t->name, (uint64_t)json_integer_value(end));
	t->begin = (uint64_t)json_integer_value(begin);
	t->end = (uint64_t)json_integer_value(end);
	uint64_t bytes = dtype_size(t->dtype);
	for (int i = 0; i < t->n_dims; i++)
		if (__builtin_mul_overflow(bytes, t->dims[i], &bytes))
			bytes = UINT64_MAX;
	if (bytes != t->end - t->begin)
		return rv_fail(et, RV_E_CORRUPT, "%s: tensor '%.60s': %" PRIu64 " bytes do not fit its shape and dtype %.8s",
					   s->path, t->name, t->end - t->begin, t->dtype);
	return RV_OK;
}

static enum rv_err parse_tensor(const struct safetensors *s, const char *name, json_t *entry,
								struct safetensors_tensor *t, struct rv_errtext *et) {
	t->name = name;
	t->dtype = json_string_value(json_object_get(entry, "dtype"));
	if (!t->dtype || dtype_size(t->dtype) == 0)
		return rv_fail(et, RV_E_CORRUPT, "%s: tensor '%.60s' has no known dtype", s->path, name);
	RV_TRY(parse_shape(s, json_object_get(entry, "shape"), t, et));
	return parse_range(s, json_object_get(entry, "data_offsets"), t, et);
}

static int by_begin(const void *a, const void *b) {
	const struct safetensors_tensor *x = a, *y = b;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

static enum rv_err check_cover(const struct safetensors *s, struct rv_errtext *et) {
	uint64_t at = 0;
	for (int i = 0; i < s->n_tensors; i++) {
		if (s->tensors[i].begin != at)
			return rv_fail(et, RV_E_CORRUPT,
						   "%s: tensor '%.60s' begins at byte %" PRIu64 ", the one before ends at %" PRIu64, s->path,
						   s->tensors[i].name, s->tensors[i].begin, at);
		at = s->tensors[i].end;
	}
	if (at != s->data_bytes)
		return rv_fail(et, RV_E_CORRUPT, "%s: %" PRIu64 " bytes of data, its tensors end at %" PRIu64, s->path,
					   s->data_bytes, at);
	return RV_OK;
}

static enum rv_err parse_header(struct safetensors *s, struct rv_errtext *et) {
	size_t n = json_object_size(s->header);
	if (!json_is_object(s->header) || n > SAFETENSORS_TENSORS_MAX)
		return rv_fail(et, RV_E_CORRUPT, "%s: the header is not an object of at most %d tensors", s->path,
					   SAFETENSORS_TENSORS_MAX);
	s->tensors = calloc(n + 1, sizeof *s->tensors);
	if (!s->tensors)
		return rv_fail(et, RV_E_NOMEM, "%s: no memory for %zu tensors", s->path, n);
	const char *name;
	json_t *entry;
	json_object_foreach(s->header, name, entry) {
		if (strcmp(name, SAFETENSORS_METADATA_KEY) == 0)
			continue;
		RV_TRY(parse_tensor(s, name, entry, &s->tensors[s->n_tensors], et));
		s->n_tensors++;
	}
	qsort(s->tensors, (size_t)s->n_tensors, sizeof *s->tensors, by_begin);
	return check_cover(s, et);
}

static enum rv_err parse_json(struct safetensors *s, uint64_t header_bytes, struct rv_errtext *et) {
	char *text = malloc(header_bytes + 1);
	if (!text)
		return rv_fail(et, RV_E_NOMEM, "%s: no memory for its header", s->path);
	enum rv_err e = read_at(s, text, header_bytes, SAFETENSORS_LENGTH_BYTES, et);
	if (e == RV_OK && rv_json_check_limits((uint8_t *)text, header_bytes, MAX_CONTAINERS, MAX_VALUES, et) != RV_OK)
		e = rv_fail_context(et, RV_E_CORRUPT, "%s: header", s->path);
	json_error_t why;
	if (e == RV_OK && !(s->header = json_loadb(text, header_bytes, JSON_REJECT_DUPLICATES, &why)))
		e = rv_fail(et, RV_E_CORRUPT, "%s: header: %s (byte %d of it)", s->path, why.text, why.position);
	free(text);
	return e;
}

static enum rv_err read_header(struct safetensors *s, struct rv_errtext *et) {
	struct stat st;
	if (fstat(s->fd, &st) != 0)
		return rv_fail_errno(et, errno, "cannot stat %s", s->path);
	uint8_t length[SAFETENSORS_LENGTH_BYTES];
	uint64_t file_bytes = (uint64_t)st.st_size;
	if (!S_ISREG(st.st_mode) || file_bytes < SAFETENSORS_LENGTH_BYTES)
		return rv_fail(et, RV_E_CORRUPT, "%s: not a safetensors file", s->path);
	RV_TRY(read_at(s, length, sizeof length, 0, et));
	if (memcmp(length, "GGUF", 4) == 0)
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "%s: a GGUF file, which Rivulet writes and does not read: give what it was exported from: the "
					   "directory of the run or of the worker, a Hugging Face directory, or a safetensors file",
					   s->path);
	struct rv_reader r = rv_reader_of(length, sizeof length);
	uint64_t header_bytes = rv_read_u64(&r);
	if (header_bytes > SAFETENSORS_HEADER_MAX || header_bytes > file_bytes - SAFETENSORS_LENGTH_BYTES)
		return rv_fail(et, RV_E_CORRUPT, "%s: not a safetensors file (header of %" PRIu64 " bytes, at most %d)",
					   s->path, header_bytes, SAFETENSORS_HEADER_MAX);
	s->data_offset = SAFETENSORS_LENGTH_BYTES + header_bytes;
	s->data_bytes = file_bytes - s->data_offset;
	return parse_json(s, header_bytes, et);
}

enum rv_err safetensors_open(const char *path, struct safetensors **out, struct rv_errtext *et) {
	*out = NULL;
	struct safetensors *s = calloc(1, sizeof *s);
	if (!s || !(s->path = strdup(path))) {
		free(s);
		return rv_fail(et, RV_E_NOMEM, "no memory to open %s", path);
	}
	enum rv_err e = RV_OK;
	s->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (s->fd < 0)
		e = rv_fail_errno(et, errno, "cannot open %s", path);
	if (e == RV_OK)
		e = read_header(s, et);
	if (e == RV_OK)
		e = parse_header(s, et);
	if (e != RV_OK) {
		safetensors_close(s);
		return e;
	}
	*out = s;
	return RV_OK;
}

void safetensors_close(struct safetensors *s) {
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	json_decref(s->header);
	free(s->tensors);
	free(s->path);
	free(s);
}

int safetensors_count(const struct safetensors *s) {
	return s->n_tensors;
}

const struct safetensors_tensor *safetensors_at(const struct safetensors *s, int i) {
	return &s->tensors[i];
}

bool safetensors_has(const struct safetensors *s, const char *name) {
	return json_object_get(s->header, name) != NULL;
}

const json_t *safetensors_all_metadata(const struct safetensors *s) {
	return json_object_get(s->header, SAFETENSORS_METADATA_KEY);
}

const char *safetensors_metadata(const struct safetensors *s, const char *key) {
	return json_string_value(json_object_get(safetensors_all_metadata(s), key));
}

uint64_t safetensors_elems(const struct safetensors_tensor *t) {
	return (t->end - t->begin) / dtype_size(t->dtype);
}

static enum rv_err check_finite(const struct safetensors *s, const struct safetensors_tensor *t, uint64_t first,
								size_t n, const float *values, struct rv_errtext *et) {
	for (size_t i = 0; i < n; i++)
		if (!isfinite(values[i]))
			return rv_fail(et, RV_E_CORRUPT, "%s: tensor '%.60s': value %" PRIu64 " is %g", s->path, t->name, first + i,
						   (double)values[i]);
	return RV_OK;
}

enum rv_err safetensors_read_f32(const struct safetensors *s, const struct safetensors_tensor *t, uint64_t first,
								 size_t n, float *out, struct rv_errtext *et) {
	enum weights_format format;
	if (!weights_format_find(t->dtype, &format))
		return rv_fail(et, RV_E_UNSUPPORTED, "%s: tensor '%.60s' is %s; weights are read from F32, BF16 and F16",
					   s->path, t->name, t->dtype);
	RV_ASSERT(first <= safetensors_elems(t) && n <= safetensors_elems(t) - first);
	size_t bytes = weights_format_bytes(format), piece = READ_BYTES / bytes;
	uint64_t at = s->data_offset + t->begin + first * bytes;
	if (format == WEIGHTS_F32) {
		RV_TRY(read_at(s, out, n * bytes, at, et));
		return check_finite(s, t, first, n, out, et);
	}
	uint8_t buffer[READ_BYTES];
	for (size_t done = 0; done < n; done += piece) {
		size_t k = n - done < piece ? n - done : piece;
		RV_TRY(read_at(s, buffer, k * bytes, at + done * bytes, et));
		weights_decode(format, buffer, k, out + done);
		RV_TRY(check_finite(s, t, first + done, k, out + done, et));
	}
	return RV_OK;
}
