/* reflection.h: two plain reflections (net/relay/wire.h), from the port on which the worker listens
 * to the main and the second port of one relay: how the router maps that port, before the worker is
 * a member and has a station.
 *
 * The connections stay open until reflection_close: so does the router's mapping. One thread;
 * nothing blocks. */
#ifndef RV_WORKER_JOIN_REFLECTION_H
#define RV_WORKER_JOIN_REFLECTION_H

#include "net/address.h"
#include "net/relay/wire.h"

#include <poll.h>
#include <stdbool.h>

enum { REFLECTION_PORTS = 2 };

struct reflection_line {
	int fd; /* -1: none */
	bool sent, ended;
	uint8_t in[NET_MAX_RELAY_FRAME_BYTES];
	size_t n_in;
	struct address seen; /* no host: no answer */
};

struct reflection {
	uint16_t local_port;
	struct address relay; /* numeric, main port */
	uint8_t nonce[NET_TOKEN_BYTES];
	struct reflection_line lines[REFLECTION_PORTS];
};

/* Connects to the main port of the relay; to the second one when the first has answered. */
void reflection_open(struct reflection *r, uint16_t local_port, const struct address *relay);
void reflection_close(struct reflection *r);
/* Returns true when both have ended, or cannot be had. */
bool reflection_ended(const struct reflection *r);

int reflection_pollfds(const struct reflection *r, struct pollfd fds[REFLECTION_PORTS]);
void reflection_handle(struct reflection *r, const struct pollfd *fds, int n);

#endif
