/* bytes.c: bounded cursors over little-endian bytes. */
#include "base/bytes.h"

#include "base/assert.h"

#include <string.h>

struct rv_reader rv_reader_of(const void *data, size_t n) {
	static const uint8_t nothing[1] = {0};
	RV_ASSERT(data || n == 0);
	const uint8_t *at = data ? data : nothing; /* NULL + 0 is undefined in C17 */
	return (struct rv_reader){.at = at, .end = at + n};
}

size_t rv_reader_left(const struct rv_reader *r) {
	return r->failed ? 0 : (size_t)(r->end - r->at);
}

bool rv_reader_ok(const struct rv_reader *r) {
	return !r->failed;
}

bool rv_reader_done(const struct rv_reader *r) {
	return !r->failed && r->at == r->end;
}

const uint8_t *rv_read_span(struct rv_reader *r, size_t n) {
	if (r->failed || n > (size_t)(r->end - r->at)) {
		r->failed = true;
		return NULL;
	}
	const uint8_t *span = r->at;
	r->at += n;
	return span;
}

static uint64_t read_le(struct rv_reader *r, size_t n) {
	const uint8_t *p = rv_read_span(r, n);
	if (!p)
		return 0;
	uint64_t v = 0;
	for (size_t i = n; i-- > 0;)
		v = v << 8 | p[i];
	return v;
}

uint8_t rv_read_u8(struct rv_reader *r) {
	return (uint8_t)read_le(r, 1);
}

uint16_t rv_read_u16(struct rv_reader *r) {
	return (uint16_t)read_le(r, 2);
}

uint32_t rv_read_u32(struct rv_reader *r) {
	return (uint32_t)read_le(r, 4);
}

uint64_t rv_read_u64(struct rv_reader *r) {
	return read_le(r, 8);
}

float rv_read_f32(struct rv_reader *r) {
	uint32_t bits = rv_read_u32(r);
	float v;
	memcpy(&v, &bits, sizeof v);
	return v;
}

double rv_read_f64(struct rv_reader *r) {
	uint64_t bits = rv_read_u64(r);
	double v;
	memcpy(&v, &bits, sizeof v);
	return v;
}

void rv_read_copy(struct rv_reader *r, void *out, size_t n) {
	const uint8_t *p = rv_read_span(r, n);
	if (n == 0)
		return;
	if (p)
		memcpy(out, p, n);
	else
		memset(out, 0, n);
}

static bool is_control(uint8_t c) {
	return c < 0x20 || c == 0x7f;
}

void rv_read_str(struct rv_reader *r, char *out, size_t cap) {
	RV_ASSERT(cap > 0);
	out[0] = '\0';
	size_t n = rv_read_u16(r);
	if (n >= cap)
		r->failed = true;
	const uint8_t *p = rv_read_span(r, n);
	if (!p)
		return;
	for (size_t i = 0; i < n; i++) {
		if (is_control(p[i])) {
			r->failed = true;
			return;
		}
	}
	memcpy(out, p, n);
	out[n] = '\0';
}

struct rv_writer rv_writer_of(void *data, size_t cap) {
	RV_ASSERT(data || cap == 0);
	uint8_t *begin = data;
	return (struct rv_writer){.begin = begin, .at = begin, .end = begin ? begin + cap : begin};
}

size_t rv_writer_len(const struct rv_writer *w) {
	return w->begin ? (size_t)(w->at - w->begin) : 0;
}

void rv_write_bytes(struct rv_writer *w, const void *data, size_t n) {
	if (n == 0)
		return;
	if (w->failed || !w->at || n > (size_t)(w->end - w->at)) {
		w->failed = true;
		return;
	}
	memcpy(w->at, data, n);
	w->at += n;
}

static void write_le(struct rv_writer *w, uint64_t v, size_t n) {
	uint8_t b[8];
	for (size_t i = 0; i < n; i++)
		b[i] = (uint8_t)(v >> 8 * i);
	rv_write_bytes(w, b, n);
}

void rv_write_u8(struct rv_writer *w, uint8_t v) {
	write_le(w, v, 1);
}

void rv_write_u16(struct rv_writer *w, uint16_t v) {
	write_le(w, v, 2);
}

void rv_write_u32(struct rv_writer *w, uint32_t v) {
	write_le(w, v, 4);
}

void rv_write_u64(struct rv_writer *w, uint64_t v) {
	write_le(w, v, 8);
}

void rv_write_str(struct rv_writer *w, const char *s) {
	size_t n = strlen(s);
	if (n > UINT16_MAX) {
		w->failed = true;
		return;
	}
	rv_write_u16(w, (uint16_t)n);
	rv_write_bytes(w, s, n);
}
