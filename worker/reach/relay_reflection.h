/* relay_reflection.h: a reflection: a plain connection from the mesh's port to a relay, which
 * answers from where it is seen, and which stays open, so that the router keeps its mapping.
 * Internal to worker/reach. */
#ifndef RV_WORKER_REACH_RELAY_REFLECTION_H
#define RV_WORKER_REACH_RELAY_REFLECTION_H

#include "worker/reach/relay_dial.h"

#include <poll.h>

struct relay_reflection_owner {
	void *ctx;
	void (*seen)(void *ctx, const struct reach_reflection *which, const struct address *at);
	void (*lost)(void *ctx, const struct reach_reflection *which); /* it is ended */
};

struct relay_reflection {
	const struct relay_reflection_owner *owner;
	const struct relay_dial_shared *shared;
	struct reach_reflection which;
	struct relay_dial dial;
	uint8_t token[NET_TOKEN_BYTES];
	bool is_shown, is_seen; /* the token was sent; the relay has answered */
	int64_t until_us;       /* not seen: time to give up */
	uint8_t in[NET_MAX_RELAY_FRAME_BYTES];
	size_t n_in;
};

void relay_reflection_begin(struct relay_reflection *f, int64_t now_us, const struct relay_dial_to *to,
							const uint8_t token[NET_TOKEN_BYTES]);
void relay_reflection_end(struct relay_reflection *f);
bool relay_reflection_pollfd(const struct relay_reflection *f, struct pollfd *out);
void relay_reflection_handle(struct relay_reflection *f, int64_t now_us, short revents);
int64_t relay_reflection_deadline_us(const struct relay_reflection *f, int64_t now_us);

#endif
