/* wire.h: what passes between a worker and a relay (docs/protocol.md, "Relay"): one TCP port, three
 * kinds of connections, told apart by their first byte.
 *
 * A *station* is TLS 1.3 with both certificates (net/tls.h), then frames: type u8, body length u16,
 * body. The worker pins the relay's key, which the signed document names; the relay knows the
 * worker by its key, and admits it by its member ticket in HELLO. Both sides refuse a frame that is
 * not exactly as below, and close.
 *
 * A *data connection* begins with a plain preamble with the token of a RING. The relay answers one
 * byte, RELAY_GO, when the token of the other end was shown as well; from then on it forwards bytes
 * both ways: TLS between the two workers. A token that is wrong, used or too old: it closes.
 *
 * A *reflection* begins with the same preamble, with the reflection token of the worker's station,
 * or any 16 bytes. The relay answers one SEEN frame, which repeats them: a worker that connects
 * from the port on which it listens learns how its router maps that port. With the token of a
 * station it stays open, which keeps the router's mapping, until the station ends or a newer
 * reflection of the same family and port replaces it; else the relay closes. Neither side sends
 * more on it. A relay may have a *second port*, which takes reflections only: a router that maps
 * the worker's port to another one there has a mapping that depends on the destination (RFC 4787
 * section 4.1).
 *
 * An *opening* (CALL with WAY_OPEN_V4 or WAY_OPEN_V6, answered by OPEN at both ends) has both ends
 * of a pair dial each other's mapping at one moment: a TCP simultaneous open (RFC 9293 section
 * 3.5).
 *
 * No I/O, no allocation. Integers are little-endian. */
#ifndef RV_NET_RELAY_WIRE_H
#define RV_NET_RELAY_WIRE_H

#include "base/err.h"
#include "net/address.h"
#include "net/limits.h"
#include "net/serving_cert.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RELAY_VERSION = 1,
	RELAY_DEFAULT_PORT = 7435,
	RELAY_HEAD_BYTES = 3,
	RELAY_PREAMBLE_BYTES = 8 + 1 + NET_TOKEN_BYTES, /* "RVLRELAY", kind, token */
	RELAY_GO = 1                                    /* the byte after which a data connection is the peer's */
};

enum relay_frame_type {
	/* worker -> relay */
	RELAY_HELLO = 1, /* first; answered by SEEN */
	RELAY_PING,      /* answered by PONG with the same number */
	RELAY_CALL,      /* answered by RING or OPEN, or by REFUSED */
	RELAY_LEAVE,     /* the worker goes; the relay closes */
	/* relay -> worker */
	RELAY_SEEN = 16,
	RELAY_PONG,
	RELAY_RING, /* to both ends of a call: of WAY_FORWARD, */
	RELAY_REFUSED,
	RELAY_OPEN, /* and of the other ways */
	RELAY_PROOF /* after a reflection at the main port, and again while it is open */
};

/* How the two ends of a call shall meet. */
enum relay_way {
	WAY_OPEN_V4 = 1, /* both dial the other's IPv4 mapping at one moment */
	WAY_OPEN_V6,     /* IPv6, through firewalls that admit answers only */
	WAY_FORWARD      /* both connect to the relay, which forwards */
};

/* The ends of a call for which the reason of a refusal holds; a set. */
enum relay_ends { RELAY_CALLER = 1, RELAY_CALLED = 2 };

/* Why a call is refused. */
enum relay_refusal {
	RELAY_REFUSE_TICKET = 1, /* the pair ticket is not the run key's for these two and this round */
	RELAY_REFUSE_STALE,      /* it is more than NET_RELAY_ROUNDS_BEHIND behind: ask the coordinator for another */
	RELAY_REFUSE_ABSENT,     /* the peer has no station here */
	RELAY_REFUSE_BANNED,     /* the operator banned one of the two */
	RELAY_REFUSE_BUDGET,     /* one of the two, or all together, spent the bytes of the day */
	RELAY_REFUSE_RATE,       /* too many calls of this member, or openings of one of the two */
	RELAY_REFUSE_FULL,       /* the relay forwards as many links as it can */
	RELAY_REFUSE_UNMAPPED,   /* the relay sees no reflection of one of the two in this family */
	RELAY_REFUSE_DEPENDENT,  /* both mappings depend on the destination: dialing them opens nothing */
	RELAY_REFUSALS
};

struct relay_hello {
	uint32_t version; /* RELAY_VERSION of the sender; another one is refused */
	uint8_t run_id[NET_RUN_ID_BYTES];
	uint32_t member;
	uint8_t ticket[NET_SIG_BYTES]; /* the serving key's for (member, key of the TLS certificate): net/identity.h */
	struct serving_cert cert;      /* that serving key's; serial 0 and zeros: the root key serves the run itself */
};
struct relay_call {
	uint32_t peer;
	uint8_t way; /* enum relay_way */
	uint64_t term, round;
	uint8_t ticket[NET_SIG_BYTES]; /* pair_ticket_sign() */
};
struct relay_seen {
	struct address at;              /* numeric; port 1..65535 */
	uint8_t nonce[NET_TOKEN_BYTES]; /* of the reflection; on a station its reflection token */
	uint16_t second_port;           /* of the same host, for reflections only; 0: none */
};
struct relay_ring {
	uint32_t peer;
	uint8_t token[NET_TOKEN_BYTES];
};
struct relay_refused {
	uint32_t peer;
	uint8_t way;      /* of the call: enum relay_way */
	uint8_t reason;   /* enum relay_refusal */
	uint8_t whose;    /* set of enum relay_ends for which the reason holds; 0: of the call as such */
	uint32_t wait_ms; /* before another such call can succeed; 0: not known */
};
struct relay_open {
	uint32_t peer;
	uint32_t delay_us; /* from the arrival of this frame until both dial; <= NET_RELAY_OPEN_DELAY_MS */
	struct address at; /* the peer's mapping, numeric: dial it from the port on which this worker listens */
};
struct relay_proof {
	struct address at;                /* from which the relay sees this member's reflection */
	uint64_t unix_s;                  /* now */
	uint8_t signature[NET_SIG_BYTES]; /* seen_sign() by the relay's key (net/identity.h) */
};

struct relay_frame {
	uint8_t type; /* enum relay_frame_type */
	union {
		struct relay_hello hello;
		uint64_t number; /* PING, PONG */
		struct relay_call call;
		struct relay_seen seen;
		struct relay_ring ring;
		struct relay_refused refused;
		struct relay_open open;
		struct relay_proof proof;
	};
};

/* Writes head and body, at most NET_MAX_RELAY_FRAME_BYTES, which `out` has. Returns their
 * length. */
size_t relay_frame_encode(const struct relay_frame *m, uint8_t out[NET_MAX_RELAY_FRAME_BYTES]);
/* Decodes the frame at the start of n bytes. *used: its length; 0: more bytes are needed.
 * RV_E_INVALID names the field: an unknown type, a body of another length than the type's, a value
 * that the sender may not send. RV_E_PROTOCOL: a HELLO of another version. */
enum rv_err relay_frame_decode(const void *p, size_t n, struct relay_frame *out, size_t *used, struct rv_errtext *et);
/* Returns "the peer is not connected to this relay", ... for people. */
const char *relay_refusal_text(uint8_t reason);
/* Returns "budget", ... for counters; "unknown". */
const char *relay_refusal_name(uint8_t reason);

enum relay_preamble_kind { RELAY_REFLECT = 1, RELAY_DATA };
struct relay_preamble {
	uint8_t kind; /* enum relay_preamble_kind */
	uint8_t token[NET_TOKEN_BYTES];
};
void relay_preamble_encode(const struct relay_preamble *m, uint8_t out[RELAY_PREAMBLE_BYTES]);
/* Reads a preamble. RV_E_INVALID: another magic or kind. */
enum rv_err relay_preamble_decode(const uint8_t in[RELAY_PREAMBLE_BYTES], struct relay_preamble *out,
								  struct rv_errtext *et);

#endif
