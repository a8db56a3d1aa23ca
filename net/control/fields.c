/* fields.c: heads and texts of the control messages. */
#include "net/control/fields.h"

#include "net/address.h"
#include "net/control/control.h"

#include <string.h>

void control_write_head(struct rv_writer *w, enum control_tag tag, uint32_t version) {
	rv_write_u32(w, (uint32_t)tag);
	rv_write_u32(w, version);
}

enum rv_err control_read_head(struct rv_reader *r, enum control_tag tag, const char *what, uint32_t *version,
							  struct rv_errtext *et) {
	uint32_t got = rv_read_u32(r);
	*version = rv_read_u32(r);
	if (!rv_reader_ok(r))
		return rv_fail(et, RV_E_INVALID, "%s: shorter than its head of 8 bytes", what);
	if (got != (uint32_t)tag)
		return rv_fail(et, RV_E_INVALID, "%s: tag %08x, must be %08x", what, got, (unsigned)tag);
	return RV_OK;
}

enum rv_err control_read_head_spoken(struct rv_reader *r, enum control_tag tag, const char *what, uint32_t *version,
									 struct rv_errtext *et) {
	RV_TRY(control_read_head(r, tag, what, version, et));
	if (control_version_common(*version, *version) == 0)
		return rv_fail(et, RV_E_PROTOCOL,
					   "%s: version %u of the protocol; rivulet %s speaks %d to %u: update the older one", what,
					   *version, RV_VERSION, (int)CONTROL_VERSION_MIN, control_version());
	return RV_OK;
}

uint32_t control_version_common(uint32_t lowest, uint32_t highest) {
	uint32_t own = control_version(), best = highest < own ? highest : own;
	return best >= lowest && best >= CONTROL_VERSION_MIN ? best : 0;
}

enum rv_err control_check_addr(const char *addr, struct rv_errtext *et) {
	struct address a;
	RV_TRY(address_parse(addr, &a, et));
	if (a.host[0] == '\0')
		return rv_fail(et, RV_E_INVALID, "address \"%s\": the host is empty", addr);
	if (a.port == 0)
		return rv_fail(et, RV_E_INVALID, "address \"%s\": port 0, must be 1 to 65535", addr);
	return RV_OK;
}

/* Returns the length of the well-formed sequence at `p` (NUL-terminated text); 0: there is none. */
static size_t utf8_sequence(const uint8_t *p) {
	if (p[0] < 0x80)
		return 1;
	size_t n = p[0] >= 0xc2 && p[0] <= 0xdf ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4 : 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
	bool surrogate = p[0] == 0xed && p[1] > 0x9f;
	bool too_large = p[0] == 0xf4 && p[1] > 0x8f;
	return overlong || surrogate || too_large ? 0 : n;
}

const char *control_utf8_invalid(const char *text) {
	const uint8_t *p = (const uint8_t *)text;
	while (*p != 0) {
		size_t n = utf8_sequence(p);
		if (n == 0)
			return "not well-formed UTF-8";
		p += n;
	}
	return NULL;
}

static uint32_t code_point(const uint8_t *p, size_t n) {
	static const uint8_t first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t c = p[0] & first_bits[n];
	for (size_t i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

static bool is_control(uint32_t c) {
	bool c1 = c >= 0x80 && c <= 0x9f, direction = c == 0x61c || c == 0x200e || c == 0x200f;
	return c1 || direction || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

const char *control_name_invalid(const char *text) {
	const char *why = control_utf8_invalid(text);
	if (why != NULL)
		return why;
	for (const uint8_t *p = (const uint8_t *)text; *p != 0; p += utf8_sequence(p))
		if (is_control(code_point(p, utf8_sequence(p))))
			return "a control character, or one that changes the direction of writing";
	return NULL;
}

enum rv_err control_check_next(const uint32_t *before, uint32_t member, const char *what, const char *name,
							   struct rv_errtext *et) {
	if (member == NET_NO_MEMBER)
		return rv_fail(et, RV_E_INVALID, "%s: %s: member %u is the number of none", what, name, member);
	if (before != NULL && member <= *before)
		return rv_fail(et, RV_E_INVALID, "%s: %s: member %u after %u: must ascend", what, name, member, *before);
	return RV_OK;
}

bool control_read_bool(struct rv_reader *r) {
	uint8_t v = rv_read_u8(r);
	if (v > 1)
		r->failed = true;
	return v == 1;
}

enum rv_err control_read_end(const struct rv_reader *r, const char *what, struct rv_errtext *et) {
	if (!rv_reader_ok(r))
		return rv_fail(et, RV_E_INVALID, "%s: cut short, or a text too long or with control characters", what);
	if (!rv_reader_done(r))
		return rv_fail(et, RV_E_INVALID, "%s: %zu bytes after its end", what, rv_reader_left(r));
	return RV_OK;
}
