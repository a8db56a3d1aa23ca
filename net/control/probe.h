/* probe.h: what one member finds when it dials other workers for the coordinator: the encodings of
 * the requests in the reply to a report, and of the answers in the next reports
 * (docs/protocol.md). */
#ifndef RV_NET_CONTROL_PROBE_H
#define RV_NET_CONTROL_PROBE_H

#include "base/bytes.h"
#include "base/err.h"
#include "net/limits.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	PROBE_VERSION = 1,
	PROBE_MAX_ADDRS = 4, /* of one probe */
	PROBES_AT_ONCE = 4   /* of one member */
};

enum probe_result {
	PROBE_NOT_KNOWN,
	PROBE_OPEN,      /* a program answered that holds the expected key */
	PROBE_OTHER_KEY, /* something else answered */
	PROBE_REFUSED,   /* an RST, or an ICMP error */
	PROBE_SILENT,    /* nothing came within PROBE_US, net/mesh/probe.h */
	PROBE_UNABLE,    /* the prober has no way there, or does not dial such addresses */
	PROBE_RESULTS
};

/* How others reach a worker, as far as is known. */
enum reach_kind {
	REACH_NOT_KNOWN, /* nobody could test it */
	REACH_DIRECT,    /* others dial it */
	REACH_MAPPED,    /* others dial the port that its router maps for it */
	REACH_PUNCH,     /* nobody can dial it, but its router's mapping is independent: both ends dial at one moment */
	REACH_RELAY,     /* through a relay only, except for those that it dials itself */
	REACH_KINDS
};

/* Dial these addresses, once each, and say what answered. */
struct probe_addr {
	char addr[NET_ADDR_BYTES]; /* numeric, with a port */
};
struct probe {
	uint64_t id; /* not 0 */
	uint8_t key[NET_KEY_BYTES];
	uint8_t n; /* 1..PROBE_MAX_ADDRS */
	struct probe_addr addrs[PROBE_MAX_ADDRS];
};
/* In the reply to a report, repeated until a report has their results. */
struct probes {
	uint8_t n; /* 1..PROBES_AT_ONCE */
	struct probe list[PROBES_AT_ONCE];
};

/* The result of a probe. */
struct probed {
	uint64_t id; /* not 0 */
	uint8_t n;
	uint8_t results[PROBE_MAX_ADDRS]; /* enum probe_result, in the order of probe.addrs */
};
/* In a report: those that ended last, in any order. */
struct probed_list {
	uint8_t n;
	struct probed list[PROBES_AT_ONCE];
};

enum { PROBES_MAX_BYTES = 8 + 1 + PROBES_AT_ONCE * (8 + NET_KEY_BYTES + 1 + PROBE_MAX_ADDRS * (2 + NET_ADDR_BYTES)) };
void probes_encode(const struct probes *m, struct rv_writer *w);
/* RV_E_PROTOCOL: another PROBE_VERSION; RV_E_INVALID: another message, or a field is wrong. */
enum rv_err probes_decode(const void *p, size_t n, struct probes *out, struct rv_errtext *et);
/* Returns true if n bytes begin as probes: the reply to a report is a notice or probes. */
bool probes_are(const void *p, size_t n);

/* Part of a report. */
void probed_write(const struct probed_list *m, struct rv_writer *w);
enum rv_err probed_read(struct rv_reader *r, struct probed_list *out, struct rv_errtext *et);

/* Returns "direct", "mapped", ...: for fields of events and for status. */
const char *reach_name(uint8_t reach);

#endif
