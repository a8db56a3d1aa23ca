/* fields.h: what the encodings of control.h share: the head of a message and the checks of texts. Internal to
 * net/. */
#ifndef RV_NET_CONTROL_FIELDS_H
#define RV_NET_CONTROL_FIELDS_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* The first four bytes of a message: "RVjq", "RVja", "RVrp", "RVnt", "RVdc". */
enum control_tag {
	CONTROL_TAG_JOIN_REQUEST = 0x716a5652,
	CONTROL_TAG_JOIN_REPLY = 0x616a5652,
	CONTROL_TAG_REPORT = 0x70725652,
	CONTROL_TAG_NOTICE = 0x746e5652,
	CONTROL_TAG_DOCUMENT = 0x63645652
};

/* Tag and version, 8 bytes. */
void control_write_head(struct rv_writer *w, enum control_tag tag, uint32_t version);
/* RV_E_INVALID when the tag differs. */
enum rv_err control_read_head(struct rv_reader *r, enum control_tag tag, const char *what, uint32_t *version,
							  struct rv_errtext *et);
/* The same, and RV_E_PROTOCOL unless the version is one that this program speaks. */
enum rv_err control_read_head_spoken(struct rv_reader *r, enum control_tag tag, const char *what, uint32_t *version,
									 struct rv_errtext *et);

/* NULL, or the violated condition. "host:port": host is a name, an IPv4 address or a bracketed IPv6 address; port is
 * 1..65535. With `host_optional` also ":port". */
const char *control_addr_invalid(const char *addr, bool host_optional);
/* NULL, or the violated condition: well-formed UTF-8 (RFC 3629). */
const char *control_utf8_invalid(const char *text);

/* The same of a text that people see in terminals and pages: that, and none of the characters that change what stands
 * around them: C1 controls (U+0080 to U+009F, 8-bit escape sequences), line separators, controls of the direction of
 * writing (Unicode UAX 9). */
const char *control_name_invalid(const char *text);

/* A bool is 0 or 1 on the wire; anything else fails the reader. */
bool control_read_bool(struct rv_reader *r);

/* The common end of a decoder: every byte was there and every byte was consumed. RV_E_INVALID. */
enum rv_err control_read_end(const struct rv_reader *r, const char *what, struct rv_errtext *et);

#endif
