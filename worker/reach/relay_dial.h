/* relay_dial.h: a TCP connection to a relay in the making: its name, then its address. Nothing
 * here waits. Internal to worker/reach. */
#ifndef RV_WORKER_REACH_RELAY_DIAL_H
#define RV_WORKER_REACH_RELAY_DIAL_H

#include "worker/reach/relay_names.h"

/* Shared by all dials of a worker. */
struct relay_dial_shared {
	struct relay_names *names;
	char coordinator[NET_ADDR_BYTES]; /* host of the invite */
	/* Fills in the numeric address of the coordinator as this program reaches it: a relay at the
	 * coordinator's own name is there. Returns false until it is known. */
	bool (*coordinator_at)(void *ctx, struct address *out);
	void *ctx;
};

enum { RELAY_DIAL_ANY = REACH_FAMILIES }; /* family */

struct relay_dial_to {
	const char *addr;    /* of the document */
	uint16_t port;       /* 0: that of `addr` */
	int family;          /* enum reach_family, or RELAY_DIAL_ANY */
	int turn;            /* ANY: 0: the address that the system prefers, 1: of the other family, if there is one, ... */
	uint16_t local_port; /* 0: any */
};

enum relay_dial_state { RELAY_DIAL_NONE, RELAY_DIAL_NAMING, RELAY_DIAL_CONNECTING, RELAY_DIAL_OPEN, RELAY_DIAL_FAILED };
struct relay_dial {
	enum relay_dial_state state;
	uint32_t serial; /* of the dials of this struct */
	int fd;          /* CONNECTING, OPEN; else -1 */
	int family, turn;
	uint16_t local_port;
	struct address at; /* numeric from CONNECTING on */
	char why[128];     /* FAILED */
};

/* Begins to dial; `d` is new, or relay_dial_end() was called. */
void relay_dial_begin(struct relay_dial *d, const struct relay_dial_shared *shared, int64_t now_us,
					  const struct relay_dial_to *to);
/* Goes on: asks for the name, or finishes a connection that is ready. */
void relay_dial_step(struct relay_dial *d, const struct relay_dial_shared *shared, int64_t now_us, bool is_ready);
void relay_dial_end(struct relay_dial *d); /* closes; with a local port by RST, so that it is free at once */

#endif
