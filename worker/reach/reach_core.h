/* reach_core.h: how a worker gets to members that nobody can dial: its stations at relays, the
 * mappings of its router, and calls (docs/glossary.md; the relay's side is net/relay/).
 *
 * Stations. The document lists relays in the operator's order; entries with one key are one relay
 * at several addresses. The worker has its *home* station at one, the first that answers; when it
 * fails, at the next one, after pauses that double. Two members meet at the relay that is the home
 * of one of them, the earlier one in the list: where the worker's own home is another one, it goes
 * there with a second, *guest* station, at one address of that relay after the other, without
 * pauses, beginning with the one that answered last; it is closed when nobody was called from it
 * for a minute. If a pair does not meet at one relay, it tries the next; a relay whose calls and
 * links come to nothing is left for the next one, too. The relay that the worker itself runs is its
 * last choice, and nobody learns that it is down: many routers let nobody out and in again.
 *
 * Mappings. From the port on which the mesh listens the worker keeps reflections open at the
 * relays of its stations, by IPv4 and IPv6, at the main and the second port: they keep the
 * router's mapping, and show whether it depends on the destination. The relay's PROOF makes the
 * mapping a candidate.
 *
 * Ways. When the mesh asks for a route (peers_owner.on_unreached), the core asks the coordinator
 * for a pair ticket and calls the peer: by an opening (IPv6, if both have it, then IPv4), and, if
 * that has brought no link when it should have, by the relay, which forwards. This is a race with
 * a head start (RFC 8305), not a queue: a pair that is forwarded tries an opening again soon, then
 * when the mesh asks, and when the worker's mapping has changed.
 *
 * A relay can do little to a worker: not answer; and name addresses in OPEN. The worker dials such
 * an address if it has the host of one of the peer's candidates in the document; of others few,
 * each with one attempt. A relay that sends what was not asked for, or too much, is bad as well as
 * one that connects nobody.
 *
 * No I/O, no clock, no allocation: what happens goes in with its time, operations come out. One
 * thread; operations may not call back. */
#ifndef RV_WORKER_REACH_REACH_CORE_H
#define RV_WORKER_REACH_REACH_CORE_H

#include "net/address_reach.h"
#include "net/control/control.h"
#include "net/mesh/pipe.h"
#include "net/relay/wire.h"

enum { REACH_STATIONS = 2 };
enum reach_family { REACH_V4, REACH_V6, REACH_FAMILIES };
enum reach_port { REACH_MAIN_PORT, REACH_SECOND_PORT, REACH_PORTS };

/* A reflection: of which station, by which family, at which port of its relay. */
struct reach_reflection {
	uint8_t station, family, port;
};
enum { REACH_REFLECTIONS = REACH_STATIONS * REACH_FAMILIES * REACH_PORTS };
/* Returns 0..REACH_REFLECTIONS-1. */
static inline int reach_reflection_index(const struct reach_reflection *w) {
	return (w->station * REACH_FAMILIES + w->family) * REACH_PORTS + w->port;
}

/* RFC 4787, section 4.1. */
enum reach_mapping_kind {
	REACH_MAPPING_UNKNOWN,     /* the relay has no second port, or it was not reached */
	REACH_MAPPING_INDEPENDENT, /* of the destination; without a router too */
	REACH_MAPPING_DEPENDENT    /* another public port for each destination (symmetric) */
};
struct reach_mapping {
	struct address at; /* port 0: none is known */
	uint8_t kind;      /* enum reach_mapping_kind */
};

/* A relay's word for where it sees this worker (net/identity.h, seen_sign). */
struct reach_proof {
	uint8_t relay; /* place in the document's list, counted from 1 */
	struct address at;
	uint64_t unix_s;
	uint8_t signature[NET_SIG_BYTES];
};

enum reach_says_type {
	REACH_SAYS_UP,      /* a station at `relay` is up; `text`: the address that the relay sees */
	REACH_SAYS_DOWN,    /* it is lost, or did not come up; `text`: why. Once until the next REACH_SAYS_UP */
	REACH_SAYS_REFUSED, /* the relay refuses a call of `peer`; `text`: why */
	REACH_SAYS_MAPPING, /* `mapping`, of `family`, is new or has changed */
	REACH_SAYS_OPENING, /* both ends dial each other's mapping; `text`: that of `peer` */
	REACH_SAYS_BAD      /* `relay` connects nobody, or breaks the rules: it is used last, for a time */
};
struct reach_event {
	enum reach_says_type type;
	const struct relay_ref *relay;
	bool is_guest; /* it is the relay of the guest station */
	uint32_t peer;
	const char *text;
	uint8_t family; /* enum reach_family */
	const struct reach_mapping *mapping;
};

struct reach_ops {
	void *ctx;
	/* Connects a station to `to`, pinning its key, after closing what it was connected to before.
	 * Ends in reach_core_connected or reach_core_lost. */
	void (*connect)(void *ctx, int station, const struct relay_ref *to);
	/* Closes it; what was sent is put on its way first. */
	void (*close)(void *ctx, int station);
	void (*send)(void *ctx, int station, const struct relay_frame *m);
	/* Connects to `port` of the relay at `to` (its key is not checked) by the family, from the
	 * mesh's port, and shows the token. Ends in reach_core_reflected, and that in
	 * reach_core_reflection_lost. */
	void (*reflect)(void *ctx, const struct reach_reflection *which, const struct relay_ref *to, uint16_t port,
					const uint8_t token[NET_TOKEN_BYTES]);
	void (*end_reflection)(void *ctx, const struct reach_reflection *which);
	/* Asks the coordinator for pair tickets for these members, at most NET_MAX_ROW, ascending. Ends
	 * in one reach_core_tickets. */
	void (*ask_tickets)(void *ctx, const uint32_t *peers, int n);
	/* Hands the mesh a route to `peer` for one attempt. ROUTE_RELAY: `at` is left to the caller,
	 * the relay of the station. Returns false if the mesh does not take it. */
	bool (*offer)(void *ctx, int station, uint32_t peer, const struct route *route);
	/* Returns how this worker and `peer` meet now. */
	enum path_kind (*path)(void *ctx, uint32_t peer);
	void (*tell)(void *ctx, const struct reach_event *e);
};

struct reach_config {
	struct reach_ops ops;
	struct relay_hello hello;   /* what a station shows */
	uint8_t key[NET_KEY_BYTES]; /* the worker's: a relay with this key is its own */
	uint64_t seed;              /* of the jitter */
};

enum reach_state {
	REACH_IDLE,       /* no relay, or waiting to try again */
	REACH_CONNECTING, /* TCP and TLS */
	REACH_GREETING,   /* HELLO is sent, SEEN awaited */
	REACH_UP
};

struct reach_core; /* opaque: reach_core_size() bytes, the caller's memory */
size_t reach_core_size(void);
struct reach_core *reach_core_init(void *memory, const struct reach_config *cfg);

/* Follows a document's relays, where its members have their homes, and their candidates. */
void reach_core_follow(struct reach_core *r, int64_t now_us, const struct document *d);
/* Sets the narrowest addresses that an OPEN may name: as peers_set_reach. At first any may be. */
void reach_core_set_reach(struct reach_core *r, enum address_reach met);
/* Takes what stations show from now on, and makes them anew. */
void reach_core_show(struct reach_core *r, int64_t now_us, const struct relay_hello *hello);
/* Asks for a route to `member`. `upgrades`: it is linked by a relay, and an opening is wanted. */
void reach_core_want(struct reach_core *r, int64_t now_us, uint32_t member, bool upgrades);
/* Notes that a link to `member` by a relay, or the attempt at it, is over:
 * peers_owner.on_route_end. Neither this nor reach_core_want offers a route: the mesh may call
 * them. */
void reach_core_relay_ended(struct reach_core *r, int64_t now_us, uint32_t member, int64_t lived_us, bool failed);
/* Takes the coordinator's answer; NULL: it gave none. */
void reach_core_tickets(struct reach_core *r, int64_t now_us, const struct pair_reply *reply);

/* The connection is secured, and the other side is the relay. */
void reach_core_connected(struct reach_core *r, int64_t now_us, int station);
/* Takes a frame. A fault: it must not come now, or never from a relay; the core has closed the
 * connection. */
enum rv_err reach_core_frame(struct reach_core *r, int64_t now_us, int station, const struct relay_frame *m,
							 struct rv_errtext *et);
/* The connection ended, or did not come about. */
void reach_core_lost(struct reach_core *r, int64_t now_us, int station, const char *why);
/* The reflection was answered by SEEN with this address, and with the token. It stays open. */
void reach_core_reflected(struct reach_core *r, int64_t now_us, const struct reach_reflection *which,
						  const struct address *at);
/* The reflection ended, or did not come about. */
void reach_core_reflection_lost(struct reach_core *r, int64_t now_us, const struct reach_reflection *which);
/* The network works again, or is another one: connects at once, has the stations proven, and
 * reflects again. */
void reach_core_hurry(struct reach_core *r, int64_t now_us);

void reach_core_tick(struct reach_core *r, int64_t now_us);
int64_t reach_core_deadline_us(const struct reach_core *r); /* INT64_MAX: none */
/* Returns the place of the home station's relay in the document's list, counted from 1; 0:
 * none. */
uint8_t reach_core_relay(const struct reach_core *r);
/* Returns the mapping as the relay of the home station sees it; borrowed. */
const struct reach_mapping *reach_core_mapping(const struct reach_core *r, enum reach_family family);
/* Returns the proof of a mapping at which others may be able to dial this worker, borrowed; NULL:
 * there is none. */
const struct reach_proof *reach_core_proof(const struct reach_core *r, enum reach_family family);

#endif
