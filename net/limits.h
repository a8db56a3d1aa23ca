/* limits.h: every bound on what arrives from outside, in one place. */
#ifndef RV_NET_LIMITS_H
#define RV_NET_LIMITS_H

#include "base/chain.h"
#include "base/weights.h"

#include <stdint.h>

enum {
	/* Member numbers have no bound: each is given once, and NET_NO_MEMBER never. The bound is on
	 * the members that are present at once. */
	NET_MAX_HERE = 4096,                    /* members that the coordinator keeps in memory */
	NET_MAX_ROSTER = 1024,                  /* participants of one attempt */
	NET_MAX_ROW = 64,                       /* of them, in one row: all in one all-reduce, each linked with each */
	NET_MAX_ROWS = 32,                      /* of a roster */
	NET_MAX_COLUMN = 128,                   /* participants of other rows that a member's document names */
	NET_MAX_SECTIONS = 64,                  /* of the vector, of which one member owns the chunks in its row */
	NET_MAX_PART = 16,                      /* k of a member that contributes to every k-th chunk */
	NET_MAX_PEERS = 256,                    /* other members with which one worker deals at once */
	NET_MAX_BANNED = 1024,                  /* members that a document names as banned */
	NET_MAX_WEIGHT_SUM = RV_WEIGHT_SUM_MAX, /* of a roster */
	NET_MAX_RANGES = 4096,                  /* ownership map entries of one round document */
	NET_MAX_CHUNKS = 1 << 20,               /* of one vector */
	NET_MAX_FRAGMENTS = 64,            /* of it, exchanged in turn: round r exchanges fragment r mod their number */
	NET_MAX_CHUNK_BYTES = 1 << 19,     /* encoded: 65,536 fp32 values and their scales fit */
	NET_MAX_PIECE_BYTES = 1 << 19,     /* one piece of a state transfer: at least one chunk */
	NET_MAX_SLICE_BYTES = 1 << 15,     /* one frame of it: control waits for no more than that */
	NET_MANIFEST_PART_BYTES = 1 << 18, /* of the hashes of the pieces, what one FETCH asks for */
	NET_MAX_LOG_DIGESTS = 64,          /* committed rounds that a document lists */
	NET_MAX_KEPT_SNAPSHOTS = 4,        /* earlier snapshots that a document asks donors to keep */
	NET_MAX_SYNCING = 16,              /* members behind that a document names, to be dialed */
	NET_MAX_TEXT_FILES = 64,           /* of a run's text, that one question to a member names */
	NET_MAX_AUDITS = 8,                /* that a document orders of its receiver, and a report answers */
	NET_MAX_SCORES = 4,                /* audits of training, likewise */
	NET_MAX_SEALS = 2 * NET_MAX_ROW + NET_MAX_COLUMN, /* of means, that one member holds in an attempt */
	NET_MAX_PROOFS = 4,                               /* of equivocations, the latest ones, in a document */
	NET_MAX_LEASES = 16,                              /* pieces of text that a member holds (base/leases.h) */
	NET_MAX_RELAYS = 8,                               /* that a document lists */
	NET_MAX_CANDIDATES = 4,                           /* addresses of a member, in its report and in a document */
	NET_MAX_TERM = 1 << 20,                           /* rollbacks of a run */
	NET_MAX_DEADLINE_MS = 604800000,                  /* of one attempt of an all-reduce: a week */
	NET_MAX_CONFIG_BYTES = 16384,                     /* a run's configuration text */
	NET_MAX_DOCUMENT_BYTES = 196608,
	NET_MAX_REPORT_BYTES = 4672,
	NET_MAX_FRAME_UNAUTHENTICATED = 1024, /* a peer's frame body before its HELLO is accepted */
	NET_ADDR_BYTES = 128,                 /* "host:port", NUL included */
	NET_NAME_BYTES = 64,                  /* a worker's name for people */
	NET_KEY_BYTES = 32,
	NET_SIG_BYTES = 64,
	NET_TOKEN_BYTES = 16,
	/* A relay (net/relay/): frames of a station, its tables, and how long it waits. */
	NET_MAX_RELAY_FRAME_BYTES = 512, /* head included */
	NET_RELAY_MEMBERS = 256,         /* whose bytes of the day are counted, each with a station at most */
	NET_RELAY_LINKS = 512,           /* calls that wait, and pairs whose bytes are forwarded */
	NET_RELAY_STRANGERS = 256,       /* connections that have shown neither a ticket nor a token; the oldest goes */
	NET_RELAY_STRANGERS_PER_ADDRESS = 64, /* of these, of IPv6 per /64; the newest goes */
	NET_RELAY_GREETING_MS = 5000,         /* until a connection has shown a ticket or a token */
	NET_RELAY_TOKEN_MS = 10000,           /* until both ends of a call have shown their tokens */
	NET_RELAY_IDLE_MS = 60000,            /* without a byte, after which a link of a relay or a station is closed */
	NET_RELAY_BUFFER_BYTES = 1 << 16,     /* each way of a link */
	NET_RELAY_ROUNDS_BEHIND = 2,          /* of a pair ticket, behind the newest one that the relay has seen */
	NET_RELAY_CALLS_BURST = 128,          /* calls of a member at once: to every other one, twice */
	NET_RELAY_FRAMES_BURST = 256,         /* frames of a station at once; then NET_RELAY_FRAMES_PER_S */
	NET_RELAY_FRAMES_PER_S = 8,
	NET_RELAY_OPEN_DELAY_MS = 3000, /* until both ends of an opening dial: round trips up to 5 s */
	NET_RUN_ID_BYTES = RV_RUN_ID_BYTES
};

_Static_assert(NET_MAX_ROW + NET_MAX_COLUMN + NET_MAX_SYNCING <= NET_MAX_PEERS, "all that a document names");

/* The number that no member has. */
#define NET_NO_MEMBER UINT32_MAX

#endif
