/* peers_link.h: one link of the mesh, without its socket: TLS, HELLO and frames over byte buffers. Internal to net/. */
#ifndef RV_NET_PEERS_LINK_H
#define RV_NET_PEERS_LINK_H

#include "net/frame.h"
#include "net/peers.h"
#include "net/tls_stream.h"

#define PEERS_ALPN "rivulet/1"
enum {
	LINK_GREETING_MAX_BYTES = 1 << 15, /* what a peer may send before its HELLO is accepted, TLS included */
	LINK_NOBODY = -1,
	LINK_LABEL_BYTES = 192
};

enum link_state {
	LINK_CONNECTING, /* TCP, ours */
	LINK_TLS,        /* handshake */
	LINK_GREETING,   /* TLS is up, our HELLO is out, theirs is awaited */
	LINK_OPEN,
	LINK_DEAD /* to be closed and freed as soon as nobody stands on it */
};

struct link {
	struct tls_stream tls;
	int fd;
	enum link_state state;
	enum frame_role role;       /* ours */
	int member;                 /* whom we dialed, or who it proved to be; LINK_NOBODY */
	uint8_t key[NET_KEY_BYTES]; /* from LINK_GREETING on */
	uint64_t run_tag;
	char label[LINK_LABEL_BYTES]; /* for texts: "member 3 at 10.0.0.1:7440", "connection from 10.0.0.1:40123" */
	char remote[NET_ADDR_BYTES];  /* host only: for the share of one host in the pending ones */

	int64_t deadline_us; /* CONNECTING .. GREETING: give up */
	int64_t opened_us;   /* OPEN */
	bool was_open;
	int64_t last_rx_us;                              /* OPEN: a whole frame, or a good part of one */
	size_t part_rx;                                  /* OPEN: bytes since then */
	uint64_t greeting_rx;                            /* bytes fed before OPEN */
	struct peers_traffic traffic, counted, credited; /* counted: in the mesh's books; credited: in its member's */
	bool bulk_pending;                               /* the pending bytes hold bulk: under a cap they wait for tokens */
	uint64_t acked;                                  /* by the other side, when last looked */
	int64_t acked_us;                                /* since when it is that */
	int poll_slot;                                   /* in the owner's fds; -1 */

	uint8_t head[FRAME_HEADER_BYTES]; /* incoming frame: header, then body */
	size_t head_got;
	struct frame_header header;
	uint8_t *body;
	size_t body_cap, body_got;

	/* LINK_DEAD */
	bool fatal, quiet; /* quiet: not worth a word (a duplicate) */
	enum rv_err why;
	struct rv_errtext reason;
	bool say_bye;
};

struct link_handler {
	void *ctx;
	/* TLS is up, l->key is the peer's. */
	enum rv_err (*secured)(void *ctx, struct link *l, struct rv_errtext *et);
	/* One whole frame, HELLO and BYE too. May mark the link dead. */
	enum rv_err (*frame)(void *ctx, struct link *l, const struct frame_header *h, const uint8_t *body,
						 struct rv_errtext *et);
};

/* In LINK_CONNECTING as dialer, LINK_TLS as listener; owns fd from now on, also on failure. RV_E_NOMEM. */
enum rv_err link_new(const struct tls_stream_kind *kind, int fd, enum frame_role role, uint64_t run_tag,
					 struct link **out, struct rv_errtext *et);
void link_free(struct link *l); /* closes the socket; NULL is fine */

/* Ciphertext from the socket; calls the handler for what it completes. A fault ends the link. */
enum rv_err link_receive(struct link *l, const uint8_t *data, size_t n, const struct link_handler *handler,
						 struct rv_errtext *et);
/* TCP is up: LINK_TLS, the first flight is pending. */
enum rv_err link_start_tls(struct link *l, struct rv_errtext *et);
/* Encrypts one frame whole. Its header's body_bytes is the sum of its parts (asserted). */
enum rv_err link_put(struct link *l, const struct peers_message *m, struct rv_errtext *et);
/* What HELLO signs on this connection; `signer` is the role of the side that signs. */
bool link_hello_signed(const struct link *l, const uint8_t run_id[NET_RUN_ID_BYTES], enum frame_role signer,
					   uint8_t out[FRAME_HELLO_SIGNED_BYTES]);

/* Marks it dead; the first reason stays. */
void link_kill(struct link *l, bool fatal, enum rv_err why, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* BYE with the reason and close_notify into the pending bytes, where the state allows it. */
void link_put_bye(struct link *l, const char *text);

#endif
