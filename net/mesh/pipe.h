/* pipe.h: what carries a link's bytes, below its stream (net/mesh/stream.h): connections of one
 * kind of network.
 *
 * There are two networks: the system's sockets (socket_pipe.c), and the simulator's
 * (tests/sim/sim_pipe.c), where time is virtual. A pipe and a listener are numbers, valid until
 * close. No function waits or reads a clock: the owner of the mesh finds out which numbers are
 * ready, as with poll(2), and hands that to peers_handle with the time. */
#ifndef RV_NET_MESH_PIPE_H
#define RV_NET_MESH_PIPE_H

#include "net/address.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One way to try to reach a member. */
enum route_kind {
	ROUTE_DIRECT, /* its address */
	/* Its address, from this mesh's own port, at a moment at which it dials too: what each sends
	 * opens the way through its own router for what the other sends. */
	ROUTE_PUNCH,
	ROUTE_RELAY /* a relay, which forwards between two that show the tokens of one call */
};

struct route {
	enum route_kind kind;
	struct address at;   /* the member's; of ROUTE_RELAY the relay's */
	uint16_t local_port; /* ROUTE_PUNCH: port to dial from; 0: the mesh's own */
	int64_t begin_us;    /* ROUTE_PUNCH: moment to dial at; 0: at once. The mesh waits for it, not the pipe */
	uint8_t token[NET_TOKEN_BYTES]; /* ROUTE_RELAY */
};

/* Facts about a connection; zero: not known. */
struct pipe_info {
	size_t waiting;       /* bytes written that are not sent yet, or on their way */
	uint64_t delivered;   /* bytes that the other side has acknowledged, selectively too, since the start */
	int64_t least_rtt_us; /* shortest recent round trip; 0: not known yet */
	int64_t rtt_us;       /* the round trip now, smoothed */
	uint64_t sent;        /* bytes sent since the start, each as often as it was sent */
	uint64_t resent;      /* the part of them that was sent before, and held to be lost */
	uint64_t doubled;     /* about the part of that which the other side got twice: it was late, not lost */
};

/* `receive_bytes`: the size of the receive buffer, also of accepted connections; 0: the network's
 * choice. It is given this early because TCP settles the window's scale when it connects. */
struct pipe_ops {
	void *ctx;
	/* Listens on `listen_on`: "host:port", numeric or "" for every address; port 0: any. Fills
	 * *port. RV_E_BUSY, RV_E_INVALID, RV_E_IO. */
	enum rv_err (*listen)(void *ctx, const char *listen_on, int receive_bytes, int *listener, uint16_t *port,
						  struct rv_errtext *et);
	/* Returns a connection from the queue, or -1 with errno (EAGAIN: there is none). */
	int (*accept)(void *ctx, int listener, struct address *from);
	/* Starts to connect; the pipe waits for POLLOUT then. RV_E_UNSUPPORTED: the host is a name, not
	 * a number; RV_E_NOTFOUND: refused; RV_E_BUSY (ROUTE_PUNCH): the other side's packet came
	 * first, so its connection is the listener's; RV_E_IO. */
	enum rv_err (*connect)(void *ctx, const struct route *to, int receive_bytes, int *pipe, struct rv_errtext *et);
	/* Goes on connecting, once the pipe is ready for `*events`, the poll(2) events that it waits
	 * for. RV_OK: it is connected; RV_E_BUSY: not yet, and *events says what it waits for now (the
	 * relay's byte, which comes when the other side is there too); RV_E_NOTFOUND (refused: nobody
	 * listens there); RV_E_CLOSED (the relay ended the call); RV_E_IO. */
	enum rv_err (*connected)(void *ctx, int pipe, const struct route *to, short *events, struct rv_errtext *et);
	/* Read and write as recv(2) and send(2): return bytes, 0 at the end of the input, or -1 with
	 * errno (EAGAIN: not now). */
	ssize_t (*read)(void *ctx, int pipe, void *out, size_t cap);
	ssize_t (*write)(void *ctx, int pipe, const void *data, size_t n);
	void (*info)(void *ctx, int pipe, struct pipe_info *out);
	/* Sets the options of a connected pipe: no delay, few unsent bytes in the network's buffers,
	 * keepalive. */
	void (*tune)(void *ctx, int pipe);
	/* Sets the congestion control, at any time; "" leaves the network's. `used` gets the one in
	 * use. */
	void (*control_congestion)(void *ctx, int pipe, const char *congestion, char used[16]);
	/* Returns true if this machine no longer has the pipe's local address: nothing will come or go
	 * there. */
	bool (*is_stranded)(void *ctx, int pipe);
	/* Makes close end the connection at once, unsent bytes and all: its two addresses are free for
	 * another one then. Two that punch have no others. */
	void (*end_at_close)(void *ctx, int pipe);
	void (*close)(void *ctx, int pipe); /* a listener, too */
};

/* The system's TCP sockets: non-blocking, close-on-exec; `ctx` is NULL. */
extern const struct pipe_ops socket_pipe;

#endif
