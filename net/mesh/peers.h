/* peers.h: the mesh: one TLS 1.3 link to every other member, kept up by itself.
 *
 * Event-driven, without threads, clocks or name lookups that block: the owner's loop asks for file descriptors and a
 * deadline, waits, and calls peers_handle(). Time is handed in (monotonic microseconds).
 *
 *     n = peers_pollfds(p, fds, PEERS_MAX_FDS);  wait until fds are ready or peers_deadline_us(p);
 *     peers_handle(p, now_us, fds, n);
 *
 * Sending is a pull: a link that can take more calls next_message(); so there is no queue in the mesh, and control is
 * never behind more than one slice of bulk and what is on its way, of which there is no more than the line needs to be
 * full (net/mesh/pace_window.h). When the owner has new things to say it calls peers_pump().
 *
 * A link: TCP, TLS 1.3 with both certificates, ALPN "rivulet/2" or "rivulet/1", then HELLO in both directions, signed
 * over the TLS exporter and the run id: a HELLO of another connection is worth nothing here. Before HELLO is accepted
 * only tiny frames are read; the whole way there has one deadline, however slowly bytes drip. Both sides dial; when two
 * links of a pair meet, the one dialed by the lower key stays. A peer that breaks a rule loses its own link and nothing
 * else is harmed; the text says which rule.
 *
 * Not thread-safe. Callbacks run inside peers_handle, peers_pump, peers_allow and peers_drop; they may call
 * peers_allow, peers_drop and the getters, not peers_handle, peers_pump or peers_free.
 */
#ifndef RV_NET_MESH_PEERS_H
#define RV_NET_MESH_PEERS_H

#include "base/err.h"
#include "net/address_reach.h"
#include "net/control/control.h"
#include "net/identity.h"
#include "net/mesh/frame.h"
#include "net/mesh/pipe.h"
#include "net/mesh/stream.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PEERS_MAX_PENDING = 32, /* inbound connections that have not said HELLO yet */
	PEERS_MAX_LINKS = 2 * NET_MAX_MEMBERS + PEERS_MAX_PENDING,
	PEERS_MAX_FDS = PEERS_MAX_LINKS + 1,
	PEERS_PART_BYTES = 1 << 12
};

/* One outgoing frame. The body is part[0] then part[1] (either may be empty), together header.body_bytes. Consumed
 * before next_message returns to the loop: it may borrow from anything that lives until the next call into the owner.
 */
struct peers_message {
	struct frame_header header; /* from frame_*_encode */
	const void *part[2];
	size_t part_bytes[2];
};

struct peers_owner {
	void *ctx;
	/* The next frame for `member`, or false. What is given is sent, or the link goes down. */
	bool (*next_message)(void *ctx, uint32_t member, struct peers_message *out);
	/* The same, but only what must not wait for a cap on the upload: anything but SCATTER, GATHER and PIECE. NULL: the
	 * owner has no such thing. */
	bool (*next_control)(void *ctx, uint32_t member, struct peers_message *out);
	/* One whole frame of a type other than HELLO and BYE, header valid. `body` (header->body_bytes) borrows until the
	 * return. A fault drops the link, fatal, with that text. */
	enum rv_err (*on_message)(void *ctx, uint32_t member, const struct frame_header *h, const uint8_t *body,
							  struct rv_errtext *et);
	/* Part of a frame that is not whole yet came: PEERS_PART_BYTES since the last frame or part, so not a drip. `bulk`:
	 * it is of SCATTER or GATHER, as far as can be told. On a slow line a frame takes long, but is progress all the
	 * time.
	 * NULL: not wanted. */
	void (*on_part)(void *ctx, uint32_t member, bool bulk);
	/* A new link is open (an older one, if any, was reported down before). */
	void (*on_link_up)(void *ctx, uint32_t member);
	/* The link is gone; the mesh redials a wanted member by itself. fatal: the peer broke a rule, or nobody listens at
	 * its address (also reported, once, when a redial after on_link_down finds that out). */
	void (*on_link_down)(void *ctx, uint32_t member, bool fatal, enum rv_err why, const char *text);
	/* For the log: something that never became a link: refused keys, garbage, timeouts. At most 30
	 * in 10 s. NULL: not wanted. */
	void (*on_trouble)(void *ctx, enum rv_err why, const char *text);
};

struct peers_config {
	const struct identity *identity; /* borrowed */
	uint32_t self_member;
	uint8_t run_id[NET_RUN_ID_BYTES];
	uint8_t run_key[NET_KEY_BYTES]; /* checks the tickets of members that are in no roster (net/identity.h) */
	uint8_t ticket[NET_SIG_BYTES];  /* our own, from the join */
	const char *listen;             /* "0.0.0.0:7440", "[::]:0", ":7440"; NULL: dial only */
	struct peers_owner owner;
	/* 0: the default */
	int64_t connect_us;    /* TCP connect, 5 s */
	int64_t greeting_us;   /* from accept or connected to HELLO accepted, 10 s */
	int64_t redial_min_us; /* first pause after a failed dial, 100 ms; doubles, with jitter */
	int64_t redial_max_us; /* 15 s */
	int64_t courtesy_us;   /* the higher key waits so long for the lower one to dial; default 250 ms, -1: none */
	int64_t guest_idle_us; /* a link to a member that is not wanted is closed after so long without a frame, 60 s */
	/* An open link that has bytes to deliver, while none is acknowledged and none arrives: after half of this a second
	 * link is dialed beside it, which needs no retransmission timer of TCP's; after all of it the link is dropped. 5 s */
	int64_t silent_us;
	const char
		*congestion;   /* TCP congestion control; "" leaves the system's; NULL: "bbr", "cubic" while the line is slow */
	uint64_t rng_seed; /* jitter */
	const struct pipe_ops *pipe;     /* copied; NULL: sockets */
	const struct stream_ops *stream; /* NULL: TLS */
	/* Caps in bytes per second on the line, over all links; 0: none (net/mesh/rate.h). Control does not wait for the upload
	 * cap, but is charged; so are handshakes. What the download cap leaves unread waits in the receive buffers, which
	 * are made small, until TCP's window stops the sender: once, up to 50 ms of the rate (or 8 KiB) for each link. */
	int64_t max_up, max_down;
};

struct peers;

/* Listens at once. RV_E_BUSY (port taken), RV_E_INVALID (listen), RV_E_IO, RV_E_NOMEM. */
enum rv_err peers_new(const struct peers_config *cfg, struct peers **out, struct rv_errtext *et);
/* Says BYE on every link (best effort, without blocking) and frees; no callbacks. NULL is fine. */
void peers_free(struct peers *p);
/* Whether peers_new could listen there now; nothing stays open. RV_E_BUSY (port taken), RV_E_INVALID, RV_E_IO. */
enum rv_err peers_check_listen(const char *listen, struct rv_errtext *et);
uint16_t peers_port(const struct peers *p); /* where it listens; 0: it does not */

/* The members to hold links with (self is skipped): dialed until they are linked. Replaces the earlier set. Links to
 * members that are not in it any more stay until they are idle. A member whose key changed loses its link. */
void peers_allow(struct peers *p, int64_t now_us, const struct member_ref *members, int n);
/* The members that the operator removed, a set of member numbers; replaces the earlier set. Their links are closed,
 * they are not dialed, and a HELLO of theirs is refused whatever their ticket says. */
void peers_ban(struct peers *p, int64_t now_us, uint64_t banned);
/* Closes the link to `member`, if any, telling it `text`; on_link_down is called. It may be dialed again. */
void peers_drop(struct peers *p, uint32_t member, bool fatal, enum rv_err why, const char *text);
bool peers_linked(const struct peers *p, uint32_t member);

/* ---- what is known of the network (net/mesh/watch.c) ---- */

/* Sets how narrow the addresses are that may be dialed: the range of the coordinator's address, as this program
 * reaches it. At first any may be. */
void peers_set_reach(struct peers *p, enum address_reach met);
/* The network works again, or is another one: dials every wanted member that is not linked, or whose link delivers
 * nothing, at once. Links on a local address that this machine no longer has are dropped before. */
void peers_hurry(struct peers *p, int64_t now_us);

int peers_pollfds(struct peers *p, struct pollfd *fds, int cap);
/* Never later than it; INT64_MAX: none. */
int64_t peers_deadline_us(const struct peers *p);
/* Reads, writes, accepts, dials and times out. fds as peers_pollfds filled them, with revents. */
void peers_handle(struct peers *p, int64_t now_us, const struct pollfd *fds, int n);
/* Asks next_message() for every link that can take more. peers_handle ends with it. */
void peers_pump(struct peers *p, int64_t now_us);

/* Bytes at the socket: TLS records and handshakes included, of this process' life. */
struct peers_traffic {
	uint64_t tx_bytes, rx_bytes;
	uint64_t tx_frames, rx_frames;
};
struct peers_traffic peers_total(const struct peers *p);
struct peers_traffic peers_traffic_of(const struct peers *p, uint32_t member);
/* "bbr", ...: what the kernel says the latest link uses; "" before the first. */
const char *peers_congestion(const struct peers *p);

#endif
