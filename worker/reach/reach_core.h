/* reach_core.h: how a worker gets to members that nobody can dial: its station at a relay, and
 * calls through it (docs/glossary.md; the relay's side is net/relay/).
 *
 * The document lists relays in the operator's order. The worker has its station at one, the first
 * that answers; when it fails, the next one, after pauses that double. Members meet where both have
 * a station: one whose peer is at a relay earlier in the list goes there too. When the mesh asks
 * for a route (peers_owner.on_unreached), the core asks the coordinator for a pair ticket, then the
 * relay for a call; the relay's RING, at both ends, becomes a route for the mesh.
 *
 * A relay can do little more to a worker than not to answer: it is asked for nothing but calls, its
 * frames are bounded in size and number (a station whose relay sends what was not asked for is
 * closed, and tried again half a minute later), and a RING makes the worker dial that relay, within
 * the mesh's budget.
 *
 * No I/O, no clock, no allocation: what happens goes in with its time, operations come out. One
 * thread; operations may not call back. */
#ifndef RV_WORKER_REACH_REACH_CORE_H
#define RV_WORKER_REACH_REACH_CORE_H

#include "net/control/control.h"
#include "net/relay/wire.h"

enum reach_says_type {
	REACH_SAYS_UP,     /* the station at `relay` is up; `text`: the address that the relay sees */
	REACH_SAYS_DOWN,   /* it is lost, or did not come up; `text`: why. Once until the next REACH_SAYS_UP */
	REACH_SAYS_REFUSED /* the relay refuses a call of `peer`; `text`: why */
};
struct reach_event {
	enum reach_says_type type;
	const struct relay_ref *relay;
	uint32_t peer;
	const char *text;
};

struct reach_ops {
	void *ctx;
	/* Connects to `to`, pinning its key, after closing what was connected before. Ends in
	 * reach_core_connected or reach_core_lost. */
	void (*connect)(void *ctx, const struct relay_ref *to);
	void (*close)(void *ctx);
	void (*send)(void *ctx, const struct relay_frame *m);
	/* Asks the coordinator for pair tickets. Ends in one reach_core_tickets. */
	void (*ask_tickets)(void *ctx, uint64_t peers);
	/* Hands the mesh a route to `peer` for one attempt. */
	void (*offer)(void *ctx, uint32_t peer, const uint8_t token[NET_TOKEN_BYTES]);
	void (*tell)(void *ctx, const struct reach_event *e);
};

struct reach_config {
	struct reach_ops ops;
	struct relay_hello hello; /* what the station shows */
	uint64_t seed;            /* of the jitter */
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

/* Follows a document's relays, and where its members have their stations. */
void reach_core_follow(struct reach_core *r, int64_t now_us, const struct document *d);
/* Asks for a route to `member`: peers_owner.on_unreached. */
void reach_core_want(struct reach_core *r, int64_t now_us, uint32_t member);
/* Takes the coordinator's answer; NULL: it gave none. */
void reach_core_tickets(struct reach_core *r, int64_t now_us, const struct pair_reply *reply);

/* The connection is secured, and the other side is the relay. */
void reach_core_connected(struct reach_core *r, int64_t now_us);
/* Takes a frame. A fault: it must not come now, or never from a relay; the core has closed
 * the connection. */
enum rv_err reach_core_frame(struct reach_core *r, int64_t now_us, const struct relay_frame *m, struct rv_errtext *et);
/* The connection ended, or did not come about. */
void reach_core_lost(struct reach_core *r, int64_t now_us, const char *why);
/* The network works again, or is another one: connects at once, or has the station proven. */
void reach_core_hurry(struct reach_core *r, int64_t now_us);

void reach_core_tick(struct reach_core *r, int64_t now_us);
int64_t reach_core_deadline_us(const struct reach_core *r); /* INT64_MAX: none */
/* Returns the place of the station's relay in the document's list, counted from 1; 0: none. */
uint8_t reach_core_relay(const struct reach_core *r);
enum reach_state reach_core_state(const struct reach_core *r);

#endif
