/* layout.c: see layout.h. */
#include "net/control/layout.h"

#include "base/assert.h"

#include <stdbool.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they lie in memory");

static uint32_t read_count(const uint8_t *at, size_t bytes) {
	uint16_t n = 0;
	RV_ASSERT(bytes <= sizeof n);
	memcpy(&n, at, bytes);
	return n;
}

static void write_field(const struct layout *f, const uint8_t *from, struct rv_writer *w) {
	static const uint8_t zeros[8];
	const uint8_t *at = from + f->at;
	RV_ASSERT(f->kind != LAYOUT_COUNT || read_count(at, f->bytes) <= f->most);
	RV_ASSERT(f->kind != LAYOUT_ZEROS || f->bytes <= sizeof zeros);
	if (f->kind == LAYOUT_TEXT)
		rv_write_str(w, (const char *)at);
	else if (f->kind == LAYOUT_LIST)
		for (uint32_t i = 0, n = read_count(from + f->count_at, f->count_bytes); i < n; i++)
			layout_write(f->each, at + i * f->bytes, w);
	else
		rv_write_bytes(w, f->kind == LAYOUT_ZEROS ? zeros : at, f->bytes);
}

void layout_write(const struct layout *fields, const void *from, struct rv_writer *w) {
	for (const struct layout *f = fields; f->kind != LAYOUT_END; f++)
		write_field(f, from, w);
}

static enum rv_err read_zeros(struct rv_reader *r, size_t n, const char *what, struct rv_errtext *et) {
	while (n-- > 0)
		if (rv_read_u8(r) != 0)
			return rv_fail(et, RV_E_INVALID, "%s: padding is not zero", what);
	return RV_OK;
}

static enum rv_err read_field(const struct layout *f, struct rv_reader *r, uint8_t *to, const char *what,
							  struct rv_errtext *et) {
	uint8_t *at = to + f->at;
	if (f->kind == LAYOUT_ZEROS)
		return read_zeros(r, f->bytes, what, et);
	if (f->kind == LAYOUT_LIST) {
		for (uint32_t i = 0, n = read_count(to + f->count_at, f->count_bytes); i < n; i++)
			RV_TRY(layout_read(f->each, r, at + i * f->bytes, what, et));
		return RV_OK;
	}
	if (f->kind == LAYOUT_TEXT)
		rv_read_str(r, (char *)at, f->bytes);
	else
		rv_read_copy(r, at, f->bytes);
	if (f->kind == LAYOUT_BOOL && *at > 1) {
		r->failed = true;
		*at = 0;
	}
	if (f->kind == LAYOUT_COUNT && read_count(at, f->bytes) > f->most)
		return rv_fail(et, RV_E_INVALID, "%s: %s = %u, at most %u", what, f->name, read_count(at, f->bytes), f->most);
	return RV_OK;
}

enum rv_err layout_read(const struct layout *fields, struct rv_reader *r, void *to, const char *what,
						struct rv_errtext *et) {
	for (const struct layout *f = fields; f->kind != LAYOUT_END; f++)
		RV_TRY(read_field(f, r, to, what, et));
	return RV_OK;
}
