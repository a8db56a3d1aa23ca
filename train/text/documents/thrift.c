/* thrift.c: see thrift.h. */
#include "train/text/documents/thrift.h"

enum { VARINT_MAX_BYTES = 10 };

uint64_t thrift_varint(struct rv_reader *r) {
	uint64_t v = 0;
	for (int i = 0; i < VARINT_MAX_BYTES; i++) {
		uint8_t b = rv_read_u8(r);
		v |= (uint64_t)(b & 0x7f) << (7 * i);
		if ((b & 0x80) == 0)
			return v;
	}
	r->failed = true;
	return 0;
}

static int64_t zigzag(struct rv_reader *r) {
	uint64_t v = thrift_varint(r);
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

bool thrift_next(struct rv_reader *r, struct thrift_field *f) {
	uint8_t head = rv_read_u8(r);
	f->type = head & 0x0f;
	if (!rv_reader_ok(r) || f->type == THRIFT_STOP)
		return false;
	int64_t id = head >> 4 ? f->id + (head >> 4) : zigzag(r);
	if (f->type > THRIFT_STRUCT || id < 1 || id > INT16_MAX)
		r->failed = true;
	f->id = (int16_t)id;
	return rv_reader_ok(r);
}

static bool has_type(struct rv_reader *r, const struct thrift_field *f, enum thrift_type type) {
	if (f->type != type)
		r->failed = true;
	return rv_reader_ok(r);
}

int64_t thrift_integer(struct rv_reader *r, const struct thrift_field *f) {
	if (f->type == THRIFT_I8)
		return (int8_t)rv_read_u8(r);
	if (f->type < THRIFT_I16 || f->type > THRIFT_I64)
		r->failed = true;
	return rv_reader_ok(r) ? zigzag(r) : 0;
}

bool thrift_boolean(struct rv_reader *r, const struct thrift_field *f) {
	if (f->type != THRIFT_TRUE && f->type != THRIFT_FALSE)
		r->failed = true;
	return f->type == THRIFT_TRUE;
}

const uint8_t *thrift_binary(struct rv_reader *r, const struct thrift_field *f, size_t *n) {
	*n = 0;
	if (!has_type(r, f, THRIFT_BINARY))
		return NULL;
	uint64_t bytes = thrift_varint(r);
	if (bytes > rv_reader_left(r)) {
		r->failed = true;
		return NULL;
	}
	*n = (size_t)bytes;
	return rv_read_span(r, *n);
}

/* Every element takes a byte at least, so a count beyond the bytes left is malformed. */
static uint32_t list_head(struct rv_reader *r, uint8_t *element) {
	uint8_t head = rv_read_u8(r);
	uint64_t n = head >> 4 == 15 ? thrift_varint(r) : head >> 4;
	*element = head & 0x0f;
	if (n > rv_reader_left(r))
		r->failed = true;
	return rv_reader_ok(r) ? (uint32_t)n : 0;
}

uint32_t thrift_list(struct rv_reader *r, const struct thrift_field *f, enum thrift_type element,
					 struct thrift_field *each) {
	if (!has_type(r, f, THRIFT_LIST))
		return 0;
	*each = (struct thrift_field){0};
	uint32_t n = list_head(r, &each->type);
	return n == 0 || has_type(r, each, element) ? n : 0;
}

bool thrift_is_struct(struct rv_reader *r, const struct thrift_field *f) {
	return has_type(r, f, THRIFT_STRUCT);
}

static void skip(struct rv_reader *r, uint8_t type, int depth);

static void skip_struct(struct rv_reader *r, int depth) {
	struct thrift_field f = {0};
	while (thrift_next(r, &f))
		skip(r, f.type, depth + 1);
}

/* A boolean in a list takes a byte, though one that is a field takes none. */
static void skip_element(struct rv_reader *r, uint8_t type, int depth) {
	if (type == THRIFT_TRUE || type == THRIFT_FALSE)
		(void)rv_read_u8(r);
	else
		skip(r, type, depth + 1);
}

static void skip_list(struct rv_reader *r, int depth) {
	uint8_t element;
	uint32_t n = list_head(r, &element);
	for (uint32_t i = 0; i < n && rv_reader_ok(r); i++)
		skip_element(r, element, depth);
}

static void skip_map(struct rv_reader *r, int depth) {
	uint64_t n = thrift_varint(r);
	uint8_t types = n > 0 ? rv_read_u8(r) : 0;
	if (n > rv_reader_left(r))
		r->failed = true;
	for (uint64_t i = 0; i < n && rv_reader_ok(r); i++) {
		skip_element(r, types >> 4, depth);
		skip_element(r, types & 0x0f, depth);
	}
}

static void skip(struct rv_reader *r, uint8_t type, int depth) {
	size_t n;
	const struct thrift_field f = {.type = type};
	if (depth > THRIFT_MAX_DEPTH)
		r->failed = true;
	if (!rv_reader_ok(r) || type == THRIFT_TRUE || type == THRIFT_FALSE)
		return;
	if (type == THRIFT_STRUCT)
		skip_struct(r, depth);
	else if (type == THRIFT_LIST || type == THRIFT_SET)
		skip_list(r, depth);
	else if (type == THRIFT_MAP)
		skip_map(r, depth);
	else if (type == THRIFT_BINARY)
		(void)thrift_binary(r, &f, &n);
	else if (type == THRIFT_DOUBLE)
		(void)rv_read_u64(r);
	else
		(void)thrift_integer(r, &f);
}

void thrift_skip(struct rv_reader *r, const struct thrift_field *f) {
	skip(r, f->type, 0);
}
