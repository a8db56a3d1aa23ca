/* relay_connection.h: a station's connection: TLS with the relay's key pinned, and frames.
 * Internal to worker/reach. */
#ifndef RV_WORKER_REACH_RELAY_CONNECTION_H
#define RV_WORKER_REACH_RELAY_CONNECTION_H

#include "worker/reach/relay_dial.h"

#include <openssl/types.h>
#include <poll.h>

enum { RELAY_CONNECTION_OUT_BYTES = 32 * NET_MAX_RELAY_FRAME_BYTES };

struct relay_connection_owner {
	void *ctx;
	void (*secured)(void *ctx); /* the other side is the relay */
	/* Takes a frame. Returns false if that has ended the connection. */
	bool (*frame)(void *ctx, const struct relay_frame *m);
	void (*lost)(void *ctx, const char *why); /* it is ended */
};

struct relay_connection {
	struct relay_connection_owner owner;
	const struct relay_dial_shared *shared;
	SSL_CTX *tls; /* borrowed */
	uint8_t key[NET_KEY_BYTES];
	struct relay_dial dial;
	int failed_in_a_row;
	SSL *ssl;
	bool is_secured;
	short waits_for;
	uint8_t in[NET_MAX_RELAY_FRAME_BYTES], out[RELAY_CONNECTION_OUT_BYTES];
	size_t n_in, n_out;
};

void relay_connection_init(struct relay_connection *c, const struct relay_connection_owner *owner,
						   const struct relay_dial_shared *shared, SSL_CTX *tls);
/* Ends what there was, and connects. */
void relay_connection_begin(struct relay_connection *c, int64_t now_us, const struct relay_ref *to);
/* Closes the connection, after writing what the socket takes. */
void relay_connection_end(struct relay_connection *c);
/* Sends a frame, when it is secured. A relay that does not read gets no more; the next PING finds
 * out. */
void relay_connection_send(struct relay_connection *c, const struct relay_frame *m);

/* Fills in what it waits for. Returns false if there is no descriptor. */
bool relay_connection_pollfd(const struct relay_connection *c, struct pollfd *out);
void relay_connection_handle(struct relay_connection *c, int64_t now_us, short revents);
/* Writes what was sent. */
void relay_connection_flush(struct relay_connection *c);

#endif
