/* link.h: one link of the mesh, without its pipe: TLS, HELLO and frames over byte buffers. Internal
 * to net/. */
#ifndef RV_NET_MESH_LINK_H
#define RV_NET_MESH_LINK_H

#include "net/mesh/congestion.h"
#include "net/mesh/frame.h"
#include "net/mesh/pace_window.h"
#include "net/mesh/peers.h"
#include "net/mesh/stream.h"

enum {
	LINK_GREETING_MAX_BYTES = 1 << 15, /* what a peer may send before its HELLO is accepted, TLS included */
	LINK_LABEL_BYTES = 192
};

enum link_state {
	LINK_CONNECTING, /* TCP connect of a side that dialed, or its wait at a relay */
	LINK_TLS,        /* handshake */
	LINK_GREETING,   /* TLS is up, this side's HELLO is out, the other's is awaited */
	LINK_OPEN,
	LINK_DEAD /* closed and freed by peers_reap, when no callback is running */
};

struct link {
	const struct stream_ops *kind;
	struct stream stream;
	int fd; /* the pipe */
	enum link_state state;
	enum frame_role role;       /* this side's; of a pair that both dialed: the lower key is FRAME_DIALER */
	enum path_kind path;        /* how it came about: an open one */
	struct route route;         /* not PATH_ACCEPTED: the way that was dialed */
	uint8_t candidate;          /* PATH_DIALED: enum candidate_kind of the address */
	short connect_events;       /* CONNECTING: the poll events that the pipe waits for */
	int64_t begun_us;           /* time when it was dialed or accepted */
	uint32_t member;            /* member that was dialed, or that the peer proved to be; NET_NO_MEMBER */
	uint8_t key[NET_KEY_BYTES]; /* peer's key, from LINK_GREETING on */
	uint64_t run_tag;
	char label[LINK_LABEL_BYTES]; /* for texts: "member 3 at 10.0.0.1:7440", "connection from 10.0.0.1:40123" */
	bool inbound;                 /* it came to the listener */
	struct address from;          /* inbound: the other side's address */
	char site[NET_ADDR_BYTES];    /* inbound: what limits count it by (address_site) */
	bool known_site;              /* inbound: a member has stated an address of that site */
	int64_t turn_us;              /* time to become the TLS client if nothing came (punch.c); 0: never */

	int64_t deadline_us; /* CONNECTING .. GREETING: time to give up */
	int64_t opened_us;   /* OPEN: time when it opened */
	bool was_open;
	bool refused;                 /* OPEN: it ends for what came on it, which breaks a rule */
	bool dialed_beside;           /* OPEN: the other side dialed, and was refused in favour of this link */
	int64_t last_rx_us;           /* OPEN: time of the last whole frame, or PEERS_PART_BYTES of one */
	size_t part_rx;               /* OPEN: bytes since then */
	int64_t alive_us;             /* OPEN: last time when bytes came, or were delivered, or none had to be */
	uint64_t greeting_rx;         /* bytes fed before OPEN */
	struct peers_traffic traffic; /* that is not in the mesh's totals yet */
	bool bulk_pending;            /* the pending bytes hold bulk: under a cap they wait for tokens */
	int poll_slot;                /* index in the owner's fds; -1: none */

	struct pace_flow flow;  /* of this link alone */
	size_t window, waiting; /* bytes that may be on the way; bytes that are */
	struct congestion congestion;
	bool is_slow;         /* its own line or the other side's, as far as is known */
	bool rests;           /* no bulk goes out: what its path carries is kept (rest.c) */
	bool is_lossy;        /* its congestion control is a lossy link's */
	int64_t least_rtt_us; /* shortest recent round trip; 0: not known yet */
	bool wrote;           /* bytes went to the pipe since the last look */
	int64_t fed_us;       /* time when the last slice of bulk began */
	bool is_passed;       /* nothing more goes out on it in this pull */
	uint64_t delivered;   /* most bytes that the other side was seen to have */
	int64_t delivered_us; /* time when that grew, or nothing waited */

	uint8_t head[FRAME_HEADER_BYTES]; /* incoming frame: header, then body */
	size_t head_got;
	struct frame_header header;
	uint8_t *body;
	size_t body_cap, body_got;

	size_t whole_got; /* of an incoming frame whose slices are not all here; they lie in `body` */
	struct frame_header whole;
	struct frame_header cut; /* outgoing frame that is being sent in slices */
	uint8_t *cut_body;
	size_t cut_cap, cut_at; /* cut_at: bytes sent so far; cut.body_bytes: nothing left */

	/* LINK_DEAD */
	bool fatal, quiet; /* quiet: not reported (a duplicate) */
	bool deliberate;   /* one of the two sides ended it for a reason that is not the route's */
	enum rv_err why;
	struct rv_errtext reason;
	bool say_bye;
};

struct link_handler {
	void *ctx;
	/* Called when TLS is up; l->key is the peer's. */
	enum rv_err (*secured)(void *ctx, struct link *l, struct rv_errtext *et);
	/* Takes a whole frame, HELLO and BYE too. May mark the link dead. */
	enum rv_err (*frame)(void *ctx, struct link *l, const struct frame_header *h, const uint8_t *body,
						 struct rv_errtext *et);
};

/* Makes a link over the pipe `fd`, which it only remembers: LINK_TLS if it was accepted, else
 * LINK_CONNECTING. RV_E_NOMEM. */
enum rv_err link_new(const struct stream_ops *kind, void *shared, int fd, enum frame_role role, enum path_kind path,
					 uint64_t run_tag, struct link **out, struct rv_errtext *et);
void link_free(struct link *l); /* NULL is fine */

/* Takes ciphertext from the pipe; calls the handler for each frame that it completes. A fault ends
 * the link. */
enum rv_err link_receive(struct link *l, const uint8_t *data, size_t n, const struct link_handler *handler,
						 struct rv_errtext *et);
/* Starts TLS once TCP is up: LINK_TLS, with the first flight of a client pending. A fault ends the
 * link. */
enum rv_err link_start_tls(struct link *l, struct rv_errtext *et);
/* Encrypts one frame whole. Its header's body_bytes is the sum of its parts (asserted).
 * RV_E_CLOSED: the link is over. */
enum rv_err link_put(struct link *l, const struct peers_message *m, struct rv_errtext *et);
/* Makes a link that was accepted, and on which nothing came, the dialer, which starts TLS. A fault
 * ends the link. */
enum rv_err link_become_dialer(struct link *l, void *shared, struct rv_errtext *et);
/* ---- slices (net/mesh/slice.c): between those of one frame only PING and BYE may go ---- */
/* Takes a copy of a frame of bulk, to be sent by link_put_slice. Asserts that none is left.
 * RV_E_NOMEM. */
enum rv_err link_cut(struct link *l, const struct peers_message *m, struct rv_errtext *et);
/* Returns true if some of it is left. */
bool link_is_cut(const struct link *l);
/* Encrypts about `bytes` more of it: all that is left if that is little more. */
enum rv_err link_put_slice(struct link *l, size_t bytes, struct rv_errtext *et);
/* Returns why l->header, a slice or a frame between slices, must not come here; NULL: it may. */
const char *link_slice_misplaced(const struct link *l);
/* Return the offset in l->body of the body of l->header, and the bytes that l->body must have. */
size_t link_body_at(const struct link *l);
size_t link_body_room(const struct link *l);
/* Joins l->header and its body, which are here, to what came before. Returns true for a whole frame
 * or the last slice of one; then l->header becomes the whole's. */
bool link_slice_joined(struct link *l);

/* Makes the bytes that HELLO signs on this connection; `signer`: the role of the side that signs.
 * False: TLS gives no exporter value. */
bool link_hello_signed(const struct link *l, const uint8_t run_id[NET_RUN_ID_BYTES], enum frame_role signer,
					   uint8_t out[FRAME_HELLO_SIGNED_BYTES]);

/* Marks the link dead; the first reason stays. link_end: it is no fault of the way that the link
 * takes. */
void link_end(struct link *l, bool fatal, enum rv_err why, const char *text);
void link_kill(struct link *l, bool fatal, enum rv_err why, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Appends BYE with the reason, and close_notify, to the pending bytes, if the state allows it. */
void link_put_bye(struct link *l, const char *text);

#endif
