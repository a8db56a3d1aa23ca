/* fields.h: the shared parts of control.h's encodings: the head of a message and the checks of
 * texts. Internal to net/. */
#ifndef RV_NET_CONTROL_FIELDS_H
#define RV_NET_CONTROL_FIELDS_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* The first four bytes of a message: "RVjq", "RVja", "RVrp", "RVnt", "RVdc", "RVpq",
 * "RVpa", "RVpb", "RVtq", "RVta". */
enum control_tag {
	CONTROL_TAG_JOIN_REQUEST = 0x716a5652,
	CONTROL_TAG_JOIN_REPLY = 0x616a5652,
	CONTROL_TAG_REPORT = 0x70725652,
	CONTROL_TAG_NOTICE = 0x746e5652,
	CONTROL_TAG_DOCUMENT = 0x63645652,
	CONTROL_TAG_PAIR_REQUEST = 0x71705652,
	CONTROL_TAG_PAIR_REPLY = 0x61705652,
	CONTROL_TAG_PROBES = 0x62705652,
	CONTROL_TAG_EVIDENCE = 0x76655652,
	CONTROL_TAG_REACH_REQUEST = 0x71745652,
	CONTROL_TAG_REACH_REPLY = 0x61745652
};

/* Writes tag and version, 8 bytes. */
void control_write_head(struct rv_writer *w, enum control_tag tag, uint32_t version);
/* Reads them. RV_E_INVALID: the tag differs. `what`: the message's name, for the text. */
enum rv_err control_read_head(struct rv_reader *r, enum control_tag tag, const char *what, uint32_t *version,
							  struct rv_errtext *et);
/* Reads them; RV_E_PROTOCOL: this program does not speak the version. */
enum rv_err control_read_head_spoken(struct rv_reader *r, enum control_tag tag, const char *what, uint32_t *version,
									 struct rv_errtext *et);

/* Checks "host:port" (address_parse) with a host, and a port other than 0. RV_E_INVALID. */
enum rv_err control_check_addr(const char *addr, struct rv_errtext *et);
/* Checks the next member number of the list `name`: it is above the one before (NULL: it is the
 * first), and not NET_NO_MEMBER. RV_E_INVALID. */
enum rv_err control_check_next(const uint32_t *before, uint32_t member, const char *what, const char *name,
							   struct rv_errtext *et);

/* Reads a bool, 0 or 1 on the wire; anything else fails the reader. */
bool control_read_bool(struct rv_reader *r);

/* Ends a decoder: RV_E_INVALID unless every byte was there and every byte was consumed. */
enum rv_err control_read_end(const struct rv_reader *r, const char *what, struct rv_errtext *et);

#endif
