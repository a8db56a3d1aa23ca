/* handshake.h: a TLS handshake over a pipe, and nothing after it: whose key is at the other end.
 * Internal to net/ (probe.h, probe_answer.h). */
#ifndef RV_NET_MESH_HANDSHAKE_H
#define RV_NET_MESH_HANDSHAKE_H

#include "net/mesh/pipe.h"
#include "net/mesh/stream.h"

enum { HANDSHAKE_MAX_BYTES = 1 << 14 }; /* that the other end may send */

struct handshake {
	const struct pipe_ops *net;
	const struct stream_ops *kind;
	struct stream stream; /* may not move once it is open */
	int pipe;
	size_t got; /* bytes that came */
	short events;
	bool is_done;
};

/* Begins on a connected pipe, which it closes. After a fault it is closed. RV_E_NOMEM,
 * RV_E_PROTOCOL. */
enum rv_err handshake_open(struct handshake *h, const struct pipe_ops *net, const struct stream_ops *kind, void *shared,
						   int pipe, bool dialer, struct rv_errtext *et);
/* Goes on when the pipe is ready for h->events. RV_OK: it is complete, `key` is the other end's;
 * RV_E_BUSY: not yet; else it failed. */
enum rv_err handshake_step(struct handshake *h, uint8_t key[NET_KEY_BYTES], struct rv_errtext *et);
/* Closes the pipe; a complete handshake is ended properly, best effort. */
void handshake_close(struct handshake *h);

#endif
