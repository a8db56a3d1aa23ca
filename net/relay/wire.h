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
 * A *reflection* begins with the same preamble, with 16 bytes of the worker's choice in place of a
 * token. The relay answers one SEEN frame, which repeats them, and closes: a worker that connects
 * from the port on which it listens learns how its router maps that port.
 *
 * No I/O, no allocation. Integers are little-endian. */
#ifndef RV_NET_RELAY_WIRE_H
#define RV_NET_RELAY_WIRE_H

#include "base/err.h"
#include "net/address.h"
#include "net/limits.h"

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
	RELAY_CALL,      /* answered by RING, or by REFUSED */
	RELAY_LEAVE,     /* the worker goes; the relay closes */
	/* relay -> worker */
	RELAY_SEEN = 16,
	RELAY_PONG,
	RELAY_RING, /* to both ends of a call */
	RELAY_REFUSED
};

/* Which end of a call a RING goes to. */
enum relay_role { RELAY_CALLER = 1, RELAY_CALLED };

/* Why a call is refused. */
enum relay_refusal {
	RELAY_REFUSE_TICKET = 1, /* the pair ticket is not the run key's for these two and this round */
	RELAY_REFUSE_STALE,      /* it is more than NET_RELAY_ROUNDS_BEHIND behind: ask the coordinator for another */
	RELAY_REFUSE_ABSENT,     /* the peer has no station here */
	RELAY_REFUSE_BANNED,     /* the operator banned one of the two */
	RELAY_REFUSE_BUDGET,     /* one of the two has sent its bytes of the day */
	RELAY_REFUSE_RATE,       /* too many calls of this member */
	RELAY_REFUSE_FULL,       /* the relay forwards as many links as it can */
	RELAY_REFUSALS
};

struct relay_hello {
	uint32_t version; /* RELAY_VERSION of the sender; another one is refused */
	uint8_t run_id[NET_RUN_ID_BYTES];
	uint32_t member;
	uint8_t ticket[NET_SIG_BYTES]; /* the run key's for (member, key of the TLS certificate): net/identity.h */
	uint16_t listen_port;          /* where the worker listens for peers, for people; 0: nowhere */
};
struct relay_call {
	uint32_t peer;
	uint64_t term, round;
	uint8_t ticket[NET_SIG_BYTES]; /* pair_ticket_sign() */
};
struct relay_seen {
	struct address at;              /* numeric; port 1..65535 */
	uint8_t nonce[NET_TOKEN_BYTES]; /* of the reflection; zero on a station */
};
struct relay_ring {
	uint32_t peer;
	uint8_t role; /* enum relay_role */
	uint8_t token[NET_TOKEN_BYTES];
};
struct relay_refused {
	uint32_t peer;
	uint8_t reason;   /* enum relay_refusal */
	uint32_t wait_ms; /* before another call of the same peer can succeed; 0: not known */
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
	};
};

/* Writes head and body, at most NET_MAX_RELAY_FRAME_BYTES, which `out` has. Returns their
 * length. */
size_t relay_frame_encode(const struct relay_frame *m, uint8_t out[NET_MAX_RELAY_FRAME_BYTES]);
/* Decodes the frame at the start of n bytes. *used: its length; 0: more bytes are needed.
 * RV_E_INVALID names the field: an unknown type, a body of another length than the type's, a value
 * that the sender may not send. RV_E_PROTOCOL: a HELLO of another version. */
enum rv_err relay_frame_decode(const void *p, size_t n, struct relay_frame *out, size_t *used, struct rv_errtext *et);
/* Returns true for the types that a worker sends to a relay. */
bool relay_frame_of_worker(uint8_t type);
/* Returns "its bytes of the day are sent", ... for people. */
const char *relay_refusal_text(uint8_t reason);
/* Returns "budget", ... for counters; "unknown". */
const char *relay_refusal_name(uint8_t reason);

enum relay_preamble_kind { RELAY_REFLECT = 1, RELAY_DATA };
struct relay_preamble {
	uint8_t kind; /* enum relay_preamble_kind */
	uint8_t token[NET_TOKEN_BYTES];
};
void relay_preamble_encode(const struct relay_preamble *m, uint8_t out[RELAY_PREAMBLE_BYTES]);
/* RV_E_INVALID: another magic or kind. */
enum rv_err relay_preamble_decode(const uint8_t in[RELAY_PREAMBLE_BYTES], struct relay_preamble *out,
								  struct rv_errtext *et);

#endif
