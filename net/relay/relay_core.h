/* relay_core.h: what a relay decides: who may have a station, where its members are seen, which
 * calls are made, which tokens are good, and how much is forwarded for whom (docs/decisions/0038).
 *
 * Decoded messages and the time go in; actions come out. No I/O, no clock, no allocation: the
 * caller gives relay_core_size() bytes once. The shell is net/relay_server/.
 *
 * A connection is a number that relay_accept() returns. It is a stranger until it shows a member
 * ticket (a station) or a token (an end of a link); a stranger may be closed at any time. After
 * every function that takes a `struct relay_core *` the caller does all actions that
 * relay_next_action() returns, in order, before it calls another one: a number is given again
 * once its connection is closed. Members, calls, links and budgets are bounded by net/limits.h. */
#ifndef RV_NET_RELAY_RELAY_CORE_H
#define RV_NET_RELAY_RELAY_CORE_H

#include "net/banned.h"
#include "net/relay/wire.h"

enum {
	RELAY_REFLECTIONS = 4, /* of a member: two families, two ports */
	RELAY_CONNECTIONS = 1 + NET_RELAY_STRANGERS + (1 + RELAY_REFLECTIONS) * NET_RELAY_MEMBERS + 2 * NET_RELAY_LINKS,
	RELAY_TICK_MS = 100 /* relay_tick() at least this often: deadlines and the rate depend on it */
};

/* The ports of a relay. The second one takes reflections only. */
enum relay_port { RELAY_MAIN_PORT, RELAY_SECOND_PORT, RELAY_PORTS };

struct relay_config {
	uint8_t root[NET_KEY_BYTES];   /* the run's root key; who serves the run is learned from HELLOs */
	const struct identity *relay;  /* signs PROOFs; borrowed */
	uint16_t second_port;          /* 0: none */
	uint64_t bytes_per_day;        /* that a member may send and receive through this relay; 0: no bound */
	uint64_t bytes_per_day_of_all; /* of all links together; 0: no bound */
	uint64_t bytes_per_s;          /* of all links together; 0: no bound */
	void *ctx;
	void (*random)(void *ctx, void *out, size_t n); /* unpredictable bytes, for tokens */
	uint64_t (*unix_s)(void *ctx);                  /* seconds since 1970 UTC, for PROOFs */
	/* Returns the round trip time of a station's connection in microseconds, as TCP measures it. */
	uint32_t (*rtt_us)(void *ctx, int connection);
};

enum relay_action_type {
	RELAY_SEND = 1, /* `frame` to the station or reflection `connection` */
	RELAY_SPLICE,   /* RELAY_GO to `connection` and `other`, then forward between them */
	RELAY_CLOSE     /* close `connection`, once what was sent to it is on its way */
};
struct relay_action {
	uint8_t type; /* enum relay_action_type */
	int connection, other;
	struct relay_frame frame;
};

/* Counted since the start, for people. */
struct relay_totals {
	uint64_t bytes;                   /* forwarded, both ways */
	uint64_t calls;                   /* answered by RING */
	uint64_t openings;                /* calls answered by OPEN */
	uint64_t links;                   /* of these, joined */
	uint64_t refused[RELAY_REFUSALS]; /* calls, by enum relay_refusal */
	uint64_t reflections;
	uint64_t strangers_closed; /* for want of room, or of a ticket or token in time, or with a wrong one */
	uint32_t stations_now, links_now;
};

struct relay_core; /* opaque */
size_t relay_core_size(void);
/* Makes a relay in `memory` (relay_core_size() bytes, aligned for any type). */
struct relay_core *relay_core_init(void *memory, const struct relay_config *cfg, int64_t now_us);

/* Takes a connection from `from` to `port`, and returns its number; -1: this address has enough
 * strangers. */
int relay_accept(struct relay_core *r, int64_t now_us, const struct address *from, enum relay_port port);
/* Notes that a TLS handshake proved that the other side of `connection`, to the main port, holds
 * `key`. */
void relay_authenticated(struct relay_core *r, int connection, const uint8_t key[NET_KEY_BYTES]);
/* Takes a frame from an authenticated connection. */
void relay_take_frame(struct relay_core *r, int64_t now_us, int connection, const struct relay_frame *m);
/* Takes the preamble of a plain connection, once. A reflection that is not closed by it is kept:
 * nothing may come on it but its end, relay_closed(). */
void relay_take_preamble(struct relay_core *r, int64_t now_us, int connection, const struct relay_preamble *m);
/* Notes that `connection` is closed; there is no action for it. */
void relay_closed(struct relay_core *r, int connection);

/* Returns how many bytes may be read from this end of a link now, by the rate and both
 * members' budgets; 0: after the next tick. */
size_t relay_allowance(struct relay_core *r, int64_t now_us, int connection);
/* Counts bytes that were read from this end: they are of both ends' budgets, and of that of all. A
 * member whose budget is spent loses its links; if that of all is spent all are lost. */
void relay_forwarded(struct relay_core *r, int64_t now_us, int connection, size_t n);

/* Names this second port to stations and reflections from now on: the one at which its router lets
 * others in; 0: none. */
void relay_name_second(struct relay_core *r, uint16_t port);
/* Closes the stations and links of these members (a set of numbers), and refuses them until they
 * are not in the set of a later call. */
void relay_ban(struct relay_core *r, const struct banned *members);
/* Closes what has waited or been silent for too long. */
void relay_tick(struct relay_core *r, int64_t now_us);

/* Returns the next action; false: there is none. */
bool relay_next_action(struct relay_core *r, struct relay_action *out);
const struct relay_totals *relay_core_totals(const struct relay_core *r);

#endif
