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
