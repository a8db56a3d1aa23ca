/* state.h: the mesh's memory, shared by its source files; internal to net/.
 *
 *   peers.c        life, file descriptors, time
 *   io.c     pipes <-> links
 *   pace.c   the pull of messages: what goes out next, and how much may be on its way
 *   greet.c  which peers may come in: HELLO both ways, and which link of a pair stays
 *   dial.c   the members and their addresses (book.c), dialing and redialing
 *   offer.c  routes that the owner finds: when it is asked for one, and what comes of it
 *   table.c  the members by number
 *   punch.c  routes that both ends dial at one moment
 *   rest.c   what a link that pauses keeps of what it knows
 *   watch.c  which links still deliver; the network changes
 *
 * A link ends in two steps, so that no caller's link is freed: link_kill() marks it wherever the
 * fault is found; peers_reap() closes it, calls the owner and frees it, when no callback is
 * running. */
#ifndef RV_NET_MESH_STATE_H
#define RV_NET_MESH_STATE_H

#include "base/gcra.h"
#include "base/rng.h"
#include "net/address.h"
#include "net/mesh/book.h"
#include "net/mesh/link.h"
#include "net/mesh/rate.h"

enum {
	PEERS_RX_BYTES = 1 << 17,
	PEERS_PUNCH_US = 1500 * 1000 /* one attempt: two packets, as TCP repeats the first after 1 s */
};
/* If the owner names none: on links that lose packets without a queue, unless they are slow; on all
 * others. */
#define PEERS_CONGESTION_LOSSY "bbr"
#define PEERS_CONGESTION       "cubic"

/* One member of the run. */
struct peer {
	uint32_t member;
	int64_t used_us;      /* time when it was last wanted, or linked */
	struct peer *dropped; /* next one that was dropped before it (table.c) */
	bool was_wanted;      /* before the document that is being followed */
	bool known, wanted;   /* known: its key was given by a roster at least once */
	uint8_t key[NET_KEY_BYTES];
	struct book book;     /* its addresses */
	struct link *link;    /* open, or dead and not yet reaped */
	struct link *dialing; /* outgoing to one of them, not yet open; becomes `link` */
	struct link *calling; /* outgoing by a route that the owner offered, not yet open; becomes `link` */
	struct route offer;   /* that waits for its moment, offer.begin_us */
	bool offered;         /* there is one */
	struct punch {
		struct address at;            /* where the other end is expected, */
		int64_t offered_us, until_us; /* from and until */
		int64_t paid_us;              /* up to which the punches so far are paid for */
	} punch;
	int64_t ask_us, upgrade_us;             /* time to ask the owner for a route; without a relay */
	int64_t ask_pause_us, upgrade_pause_us; /* pause after the next time */
	bool next_way;                          /* the next time belongs to the search before */
	int64_t next_dial_us;
	int64_t pause_us;       /* pause after the next pass over its addresses */
	uint64_t boot;          /* boot of its process, from the latest roster with one; 0: not known */
	bool doubted;           /* its link may be dead: one more is dialed beside it */
	bool hurries;           /* news since then, that waits for hurry_us and the end of `dialing` */
	int64_t hurry_us;       /* time before which news of it hurries no dial */
	bool missed;            /* on_link_down was called, and neither a new link nor a refusal came since */
	int64_t missed_us;      /* time of that call */
	int64_t alone_us;       /* time since which it is wanted and there is no link */
	enum path_kind refused; /* path of its last link, if this worker ended it for what came on it */
};

/* The flow of all links together, and so how much may be on its way. */
struct pace {
	struct pace_flow flow;
	size_t window, waiting;
	uint64_t delivered; /* bytes since the start */
	struct congestion_line losses;
	int n_busy; /* links with bytes on the way */
	bool is_slow;
	int64_t fed_us;   /* time when the last slice of bulk began, on any link */
	int64_t begun_us; /* time when bulk began after a pause */
	int64_t again_us; /* time to try again; INT64_MAX: nothing waits */
};

struct peers {
	struct peers_config cfg;
	struct pipe_ops net;
	const struct stream_ops *stream;
	void *stream_shared;
	struct rv_rng rng;
	int64_t now_us;
	struct banned banned;
	int depth;   /* callbacks or loops over links under way: no reaping */
	bool paused; /* peers_pause */
	int listen_fd;
	uint16_t port;
	int64_t accept_again_us; /* next accept after file descriptors ran out */
	uint64_t run_tag;
	enum address_reach met;   /* narrower addresses are not dialed */
	bool keeps_paths;         /* no direct link replaces a relayed one that delivers */
	int64_t asks_us;          /* time up to which the questions to the owner so far are paid for */
	int64_t dials_us;         /* time up to which the dials so far are paid for */
	int64_t watched_us;       /* time of the last look at the links */
	int64_t trouble_until_us; /* end of the window in which `troubles` were reported */
	int troubles;
	struct link *links[PEERS_MAX_LINKS]; /* NULL: free */
	int n_slots;                         /* number of `links`, from the first, that were ever in use */
	struct peer *members[NET_MAX_PEERS]; /* by ascending number; each allocated alone */
	int n_members;
	struct peer *dropped;                /* no longer in `members`, to be freed when no caller may hold them */
	struct peers_traffic total, relayed; /* relayed: the part of `total` over relays */
	struct rate up, down;
	int up_turn, down_turn; /* index in `links` that is served first */
	struct pace pace;
	char congestion[16];
	uint8_t rx[PEERS_RX_BYTES];
};

/* peers.c */
void peers_trouble(struct peers *p, const struct link *l, enum rv_err why, const char *text);
/* Closes dead links. Does nothing while p->depth > 0. */
void peers_reap(struct peers *p);
/* Takes over a new pipe as a link. Returns NULL without room or memory: the pipe is closed and the
 * trouble reported. */
struct link *peers_add_link(struct peers *p, int fd, enum frame_role role, enum path_kind path);
/* Sets the options of a connected pipe. */
void peers_tune(struct peers *p, int fd);
/* Moves the bytes and frames that `l` has counted to the mesh's totals. */
void peers_count(struct peers *p, struct link *l);

/* io.c */
void peers_accept(struct peers *p);
void peers_service(struct peers *p, struct link *l, short revents);
void peers_flush(struct peers *p, struct link *l);
/* Sends pending bytes; returns true if the pipe took them all. */
bool peers_drain(struct peers *p, struct link *l);
/* Encrypts one frame of the owner's. Returns false if it cannot, or the link is no longer open. */
bool peers_put(struct link *l, const struct peers_message *m);
/* Encrypts the frame's first slice; peers_put_slice, while link_is_cut(), the next. */
bool peers_put_sliced(struct link *l, const struct peers_message *m, size_t bytes);
bool peers_put_slice(struct link *l, size_t bytes);
/* Returns the limit of a link's receive buffer in bytes; 0: none. */
int peers_receive_bytes(const struct peers *p);

/* pace.c */
/* Sends all that may be sent now, on all links. */
void peers_pump_links(struct peers *p);
int64_t peers_pace_deadline_us(const struct peers *p);

/* greet.c */
enum rv_err peers_on_secured(void *ctx, struct link *l, struct rv_errtext *et);
enum rv_err peers_on_frame(void *ctx, struct link *l, const struct frame_header *h, const uint8_t *body,
						   struct rv_errtext *et);
/* Returns true if this worker's key is lower than `key`: its outgoing link is the one that
 * stays. */
bool peers_self_is_lower(const struct peers *p, const uint8_t key[NET_KEY_BYTES]);

/* table.c */
/* Returns the member with this number; NULL: the mesh does not know it. Valid while p->depth does
 * not fall to 0. */
struct peer *peers_find(const struct peers *p, uint32_t member);
/* Returns it, new if need be. NULL: no memory, or all places are of members that are wanted or
 * linked. */
struct peer *peers_add(struct peers *p, uint32_t member);
/* Ends links to guests, the ones that were silent for longest, until there is room for `n` more
 * members, or there is no guest. Asserts that no callback is running. */
void peers_make_room(struct peers *p, int n);
void peers_free_dropped(struct peers *p);
void peers_free_members(struct peers *p);

/* dial.c */
bool peers_is_banned(const struct peers *p, uint32_t member);
void peers_dial_due(struct peers *p);
int64_t peers_dial_deadline_us(const struct peers *p);
/* Ends a dial to the member at that address, which failed: the next one follows, or a pause. */
void peers_dial_failed(struct peers *p, struct peer *peer, const struct address *at, enum rv_err why, const char *text);
/* Plans the next dial after the open link `l` to the member was lost. */
void peers_dial_again(struct peers *p, struct peer *peer, const struct link *l);
/* Plans the next dial beside a relayed link. */
void peers_probe_later(struct peers *p, struct peer *peer);
/* Dials the member by that route, which the budget pays for. Returns NULL if that failed at once:
 * reported as trouble, with `why` and its text. */
struct link *peers_dial_route(struct peers *p, const struct peer *peer, const struct route *to, enum rv_err *why,
							  struct rv_errtext *et);
/* Returns the time at which the budget allows the next dial. */
int64_t peers_dial_budget_us(const struct peers *p);
/* Returns 0.75 to 1.25 of `us`: workers that lost the same peer do not come back in step. */
int64_t peers_jittered(struct peers *p, int64_t us);
/* Lets the member be dialed at once, as if no dial had failed. */
void peers_dial_soon(struct peers *p, struct peer *peer);

/* offer.c */
/* Dials by the routes whose moment has come, and asks the owner for others. */
void peers_offers_due(struct peers *p);
int64_t peers_offers_deadline_us(const struct peers *p);
/* Plans when the owner is first asked for a route to a member that is wanted and has no link. */
void peers_ask_soon(struct peers *p, struct peer *peer);
/* Plans when the owner is asked for another route, after a link by such a route has ended. */
void peers_ask_again(struct peers *p, struct peer *peer, int64_t lived_us);
/* Plans the next question after a punch that ended, or ends, at `from_us`. */
void peers_ask_next_way(struct peer *peer, int64_t from_us);
/* Plan when the owner is asked for a route without a relay: later, or at once. */
void peers_upgrade_later(struct peers *p, struct peer *peer);
void peers_upgrade_soon(const struct peers *p, struct peer *peer);

/* punch.c */
/* Takes a punch, as peers_offer_route. */
bool peers_offer_punch(struct peers *p, struct peer *peer, const struct route *route);
/* Makes way for a punch whose moment has come. Returns false if it has to wait for a link's end. */
bool peers_may_punch(struct peers *p, struct peer *peer);
/* Finds out if a connection that just came is that of a punch, and who begins TLS. */
void peers_admit_punched(struct peers *p, struct link *l);
/* Begins TLS on such a connection, if nothing came by its turn_us. */
void peers_turn_due(struct peers *p, struct link *l);
/* Returns true if the connection came in time for a punch with the member, from its host. */
bool peers_is_punched(const struct link *l, const struct peer *peer);

/* rest.c */
/* Lets a link whose counts are fresh rest if it pauses; ends a rest that has lasted too long. */
void peers_rest(struct peers *p, struct link *l);
/* Ends the link's rest, once its first bulk has gone out. */
void peers_wake(struct peers *p, struct link *l);
int64_t peers_rest_deadline_us(const struct peers *p, const struct link *l);
/* Notes that a slice of bulk begins on the link. */
void peers_note_bulk(struct peers *p, struct link *l);
/* Returns the bytes of all links that may be on the way this soon after a pause. */
size_t peers_opening_window(struct peers *p);

/* watch.c */
/* Sends a NUDGE on an open link on which nothing waits: if the other end has lost it, or the line
 * is cut, this finds out. */
void peers_nudge(struct peers *p, struct link *l);
/* Returns true if something came on this open link a moment ago. */
bool peers_is_fresh(const struct peers *p, const struct link *l);
/* Counts every link as alive if this program did not run for long (stopped, suspended): what came
 * meanwhile is still unread. Call it before peers_watch. */
void peers_forgive_own_absence(struct peers *p);
/* Checks an open link whose counts are fresh: drops it if it was silent for too long, and ends a
 * dial beside it if it is alive. */
void peers_watch(struct peers *p, struct link *l);
/* Returns true if a second link to this member should be dialed beside the one that is open. */
bool peers_doubts(const struct peers *p, const struct peer *peer);
int64_t peers_watch_deadline_us(const struct peers *p, const struct link *l);

#endif
