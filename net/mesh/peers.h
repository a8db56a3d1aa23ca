/* peers.h: the mesh: one TLS 1.3 link to every member that its owner names, kept up by itself.
 *
 * Event-driven, without threads, clocks or name lookups that block: the owner's loop asks for file
 * descriptors and a deadline, waits, and calls peers_handle(). Time is handed in (monotonic
 * microseconds).
 *
 *     n = peers_pollfds(p, fds, PEERS_MAX_FDS);  wait until fds are ready or peers_deadline_us(p);
 *     peers_handle(p, now_us, fds, n);
 *
 * Sending is a pull: a link that can take more calls next_message(); so there is no queue in the
 * mesh, and control is never behind more than one slice of bulk and what is on its way, of which
 * there is no more than the line needs to be full (net/mesh/pace_window.h). An owner with new
 * messages calls peers_pump().
 *
 * A link: TCP, TLS 1.3 with both certificates, ALPN "rivulet/1", then HELLO in both directions,
 * signed over the TLS exporter and the run id: a HELLO of another connection is worth nothing here.
 * Before HELLO is accepted only tiny frames are read; all of that has one deadline, however slowly
 * bytes arrive. Both sides dial; when two links of a pair meet, the one dialed by the lower key
 * stays. If neither reaches the other, the owner finds another route, which both take: a relay sees
 * ciphertext (net/mesh/offer.c). The lower key is the dialer and TLS client of such a link. A peer
 * that breaks a rule loses its own link only; the text names the rule.
 *
 * Not thread-safe. Callbacks run inside peers_handle, peers_pump, peers_allow and peers_ban; they
 * may call peers_allow, peers_ban and the getters, not peers_handle, peers_pump or peers_free. */
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
	PEERS_MAX_PENDING = 32, /* inbound connections before their HELLO */
	PEERS_MAX_LINKS = 2 * NET_MAX_PEERS + PEERS_MAX_PENDING,
	PEERS_MAX_FDS = PEERS_MAX_LINKS + 1,
	PEERS_PART_BYTES = 1 << 12
};

/* One outgoing frame. The body is part[0] then part[1] (either may be empty), together
 * header.body_bytes. The mesh consumes it before it calls the owner again: it may borrow from
 * anything that lives until then. */
struct peers_message {
	struct frame_header header; /* from frame_*_encode */
	const void *part[2];
	size_t part_bytes[2];
};

/* How this worker and a member meet. */
struct peers_way {
	enum path_kind path;
	/* Open, and not relayed: */
	bool ipv6;
	bool lan;          /* its address is not a public one */
	uint8_t candidate; /* PATH_DIALED: enum candidate_kind of the address that was dialed */
};

/* The lack of a member because of which the mesh asks its owner for a route. */
enum peers_need {
	PEERS_UNREACHED, /* a link: any route */
	PEERS_RELAYED    /* a link without a relay: ROUTE_PUNCH */
};

struct peers_owner {
	void *ctx;
	/* Gives the next frame for `member`, or returns false. The frame is sent, or the link goes
	 * down. */
	bool (*next_message)(void *ctx, uint32_t member, struct peers_message *out);
	/* Gives the next frame that must not wait for a cap on the upload: anything but SCATTER, GATHER
	 * and PIECE. NULL: the owner has none. */
	bool (*next_control)(void *ctx, uint32_t member, struct peers_message *out);
	/* Returns true if others wait for what `member` makes of the bulk that is for it now: that goes
	 * out before bulk for other members. NULL: this is so for none. */
	bool (*is_awaited)(void *ctx, uint32_t member);
	/* Returns the part that is left, from 0 to 1, of the bulk that is for `member`. The link with
	 * the most goes first among those of one urgency, so that all end together. NULL: they take
	 * turns. */
	double (*part_left)(void *ctx, uint32_t member);
	/* Takes a whole frame of a type other than HELLO and BYE, header valid. `body` (h->body_bytes)
	 * borrows until the return. A fault drops the link, fatal, with that text. */
	enum rv_err (*on_message)(void *ctx, uint32_t member, const struct frame_header *h, const uint8_t *body,
							  struct rv_errtext *et);
	/* Notes part of a frame that is not whole yet: PEERS_PART_BYTES since the last frame or part,
	 * so not a drip. `bulk`: as far as is known, of SCATTER or GATHER. On a slow line a frame takes
	 * long, but makes progress all the time. NULL: not wanted. */
	void (*on_part)(void *ctx, uint32_t member, bool bulk);
	/* Notes that a new link is open (an older one, if any, was reported down before). */
	void (*on_link_up)(void *ctx, uint32_t member);
	/* Notes that the link is gone; the mesh redials a wanted member by itself. `fatal`: the peer
	 * broke a rule, or no program listens at its address (also reported, once, when a redial after
	 * on_link_down finds that out). peers_was_own_end(why): this worker has ended it. */
	void (*on_link_down)(void *ctx, uint32_t member, bool fatal, enum rv_err why, const char *text);
	/* Logs what never became a link: refused keys, garbage, timeouts. At most 30 in 10 s. NULL: not
	 * wanted. */
	void (*on_trouble)(void *ctx, enum rv_err why, const char *text);
	/* Asks for another route to a wanted member: peers_offer_route, some time, at both ends.
	 * PEERS_UNREACHED: it has had no link for 1 s; asked again 0.2 s after a punch failed, so that
	 * the next way may be tried, else with pauses that double from 1 s to redial_max_us.
	 * PEERS_RELAYED: its link is a relayed one; asked 1 min later, then with pauses that double to
	 * 16 min, and not while paths are kept. Over all members 16 times at once and 4 a second. NULL:
	 * the owner knows none. */
	void (*on_unreached)(void *ctx, uint32_t member, enum peers_need need);
	/* Notes that a link by a route which was offered, or the attempt at it, is over. lived_us: how
	 * long it was open; -1: never. `failed`: not by a BYE of the other side, and not ended by this
	 * one in favour of another link, for a ban, or for a change of its own network: the route may
	 * be to blame. NULL: not wanted. */
	void (*on_route_end)(void *ctx, uint32_t member, const struct route *route, int64_t lived_us, bool failed);
};

struct peers_config {
	const struct identity *identity; /* borrowed */
	uint32_t self_member;
	uint8_t run_id[NET_RUN_ID_BYTES];
	/* Checks the tickets of members that are in no roster (net/identity.h); and self_member's
	 * ticket, from the join. peers_serve_by changes both. */
	uint8_t serving_key[NET_KEY_BYTES];
	uint8_t ticket[NET_SIG_BYTES];
	const char *listen; /* "0.0.0.0:7440", "[::]:0", ":7440"; NULL: dial only */
	struct peers_owner owner;
	/* 0: the default */
	int64_t connect_us;    /* TCP connect, 5 s; 2.9 s to an address that never answered */
	int64_t greeting_us;   /* from accept or connected to HELLO accepted, 10 s */
	int64_t redial_min_us; /* first pause after a failed dial, 100 ms; doubles, with jitter */
	int64_t redial_max_us; /* 15 s */
	int64_t courtesy_us;   /* time that the higher key waits for the lower one to dial, 250 ms; -1: none */
	int64_t guest_idle_us; /* time without a frame after which a link to an unwanted member is closed, 60 s */
	/* Time for which an open link may have bytes to deliver while none is acknowledged and none
	 * arrives, 5 s: after half of it a second link is dialed beside it, which needs no
	 * retransmission timer of TCP's; then the link is dropped. */
	int64_t silent_us;
	/* TCP congestion control; "" leaves the system's; NULL: what suits each link: "cubic", or "bbr"
	 * (net/mesh/congestion.h). One that the system lacks is not set. */
	const char *congestion;
	uint64_t rng_seed;               /* jitter */
	const struct pipe_ops *pipe;     /* copied; NULL: sockets */
	const struct stream_ops *stream; /* NULL: TLS */
	/* Caps in bytes per second on the line, over all links; 0: none (net/mesh/rate.h). Control does
	 * not wait for the upload cap, but is charged; so are handshakes. Bytes that the download cap
	 * leaves unread wait in the receive buffers, which are small, until TCP's window stops the
	 * sender: once, up to 50 ms of the rate (or 8 KiB) a link. */
	int64_t max_up, max_down;
};

/* Returns true if this side has ended a link for a reason of its own, by what on_link_down was
 * given: a pause, another cap, another address, its place, its own newer link. */
static inline bool peers_was_own_end(enum rv_err why) {
	return why == RV_E_CANCELLED || why == RV_E_FULL;
}

struct peers;

/* Listens at once. RV_E_BUSY (port taken), RV_E_INVALID (listen), RV_E_IO, RV_E_NOMEM. */
enum rv_err peers_new(const struct peers_config *cfg, struct peers **out, struct rv_errtext *et);
/* Sends BYE on every link (best effort, without blocking) and frees; no callbacks. NULL is fine. */
void peers_free(struct peers *p);
/* Checks that peers_new could listen there now; leaves nothing open. RV_E_BUSY (port taken),
 * RV_E_INVALID, RV_E_IO. */
enum rv_err peers_check_listen(const char *listen, struct rv_errtext *et);
uint16_t peers_port(const struct peers *p); /* port that it listens on; 0: none */

/* Sets the members to hold links with (self is skipped): dialed until they are linked. Replaces the
 * earlier set. Links to members that are no longer in it stay until they are idle. A member whose
 * key changed loses its link. At most NET_MAX_PEERS: any further ones are passed over, and so is
 * one for which there is no memory, until the next call. Guests (members that are not named, but
 * came by their ticket) make way, the most silent ones first: they lose their links. */
void peers_allow(struct peers *p, int64_t now_us, const struct member_ref *members, int n);
/* Sets the members that the operator removed; replaces the earlier ones. Closes their links, does
 * not dial them, and refuses their HELLO whatever their ticket says. Self is not banned. */
void peers_ban(struct peers *p, int64_t now_us, const struct banned *banned);
/* Pauses the mesh: closes every link with a BYE, wants nobody, closes what comes in at once, and
 * takes no route; or ends that: peers_allow then names the members anew. */
void peers_pause(struct peers *p, int64_t now_us, bool paused);
/* Takes the key that serves the run from now on, and the ticket that it signed for self_member.
 * Links that are open stay. */
void peers_serve_by(struct peers *p, const uint8_t serving_key[NET_KEY_BYTES], const uint8_t ticket[NET_SIG_BYTES]);
bool peers_linked(const struct peers *p, uint32_t member);
/* Changes the caps (peers_config), from now on. Another cap on the download has other receive
 * buffers, and so all links come about anew. The faults of peers_new: it no longer listens. */
enum rv_err peers_set_caps(struct peers *p, int64_t now_us, int64_t max_up, int64_t max_down, struct rv_errtext *et);
/* Writes the numbers of the members that the mesh knows, ascending; returns how many: those that
 * are wanted or linked, and some that were. */
int peers_list(const struct peers *p, uint32_t members[NET_MAX_PEERS]);
/* Returns how this worker and `member` meet. PATH_APART: wanted for some seconds without a link. */
enum path_kind peers_path(const struct peers *p, uint32_t member);
/* Returns the same with more about an open link, as reports say it: the path of a link that this
 * worker ended for what came on it, within a minute, if there is none now and the member has been
 * wanted since, as the same process. peers_way_byte: as report.paths carries it. */
struct peers_way peers_way(const struct peers *p, uint32_t member);
uint8_t peers_way_byte(struct peers_way way);
/* Returns how long after it was wanted, or the link before was lost, the open link came about. */
int64_t peers_met_after_us(const struct peers *p, uint32_t member);

/* ---- other routes (net/mesh/offer.c) ---- */

/* Takes a route for one attempt to reach `member`. Returns false, and does nothing, if the mesh
 * pauses, the member is not known or banned, its link delivers, or an attempt is under way; but a
 * relay takes the place of a punch that is not connected yet, and any newer route that of a relay
 * at which the other end does not come, or through which there is no link after 4 s. A punch, of
 * which there are 8 at once and one in 15 s for each member, is taken beside a relayed link too,
 * unless paths are kept. */
bool peers_offer_route(struct peers *p, int64_t now_us, uint32_t member, const struct route *route);
/* Members linked by a relay are dialed now and then, and a direct link replaces the relayed one;
 * while `keeps` (an attempt of an all-reduce is under way), only one that delivers nothing. */
void peers_keep_paths(struct peers *p, bool keeps);

/* ---- the network (net/mesh/watch.c) ---- */

/* Sets the narrowest addresses that may be dialed: the range of the coordinator's address, as this
 * program reaches it. At first any may be. */
void peers_set_reach(struct peers *p, enum address_reach met);
/* Call it when the network works again, or is another one. Drops links on a local address that this
 * machine no longer has, then dials every wanted member at once that is not linked, or whose link
 * delivers nothing. A link on which nothing is on its way gets a NUDGE: if the other end has lost
 * it, this finds out. */
void peers_hurry(struct peers *p, int64_t now_us);
/* Call it when this machine has slept, or the program did not run for long: as peers_hurry, and a
 * second link is dialed beside every one, since the other ends have given theirs up, as a rule. */
void peers_woke(struct peers *p, int64_t now_us);

/* Charges the caps for bytes that something else has sent and received over the same line: bulk of
 * the mesh then waits until they are paid for. */
void peers_charge(struct peers *p, uint64_t tx_bytes, uint64_t rx_bytes);

int peers_pollfds(struct peers *p, struct pollfd *fds, int cap);
/* Returns the time by which to call peers_handle; INT64_MAX: none. */
int64_t peers_deadline_us(const struct peers *p);
/* Reads, writes, accepts, dials and times out. fds as peers_pollfds filled them, with revents. */
void peers_handle(struct peers *p, int64_t now_us, const struct pollfd *fds, int n);
/* Calls next_message() for every link that can take more. peers_handle ends with it. */
void peers_pump(struct peers *p, int64_t now_us);

/* Bytes at the socket, TLS records and handshakes included, and frames, since the process
 * started. */
struct peers_traffic {
	uint64_t tx_bytes, rx_bytes;
	uint64_t tx_frames, rx_frames;
};
struct peers_traffic peers_total(const struct peers *p);
struct peers_traffic peers_relayed(const struct peers *p); /* the part of it over relayed links */
/* Returns the bytes that the other ends of all links have acknowledged since the process started:
 * what this worker's line has carried, without what waits in sockets and routers. */
uint64_t peers_delivered(const struct peers *p);

#endif
