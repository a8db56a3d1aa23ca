/* state.h: the mesh's memory, shared by its source files; internal to net/.
 *
 *   peers.c        life, file descriptors, time
 *   io.c     pipes <-> links
 *   pace.c   the pull of messages: what goes out next, and how much may be on its way
 *   greet.c  which peers may come in: HELLO both ways, and which link of a pair stays
 *   dial.c   the address book, dialing and redialing, and how often that may be
 *   watch.c  which links still deliver; the network changes
 *
 * A link ends in two steps, so that no caller's link is freed: link_kill() marks it wherever the
 * fault is found; peers_reap() closes it, calls the owner and frees it, when no callback is
 * running. */
#ifndef RV_NET_MESH_STATE_H
#define RV_NET_MESH_STATE_H

#include "base/rng.h"
#include "net/address.h"
#include "net/mesh/link.h"
#include "net/mesh/rate.h"

enum { PEERS_RX_BYTES = 1 << 17 };
#define PEERS_CONGESTION "bbr" /* if the owner names none, and the line is not slow */

/* One member of the run; the index is its number. */
struct peer {
	bool known, wanted; /* known: its key was given by a roster at least once */
	uint8_t key[NET_KEY_BYTES];
	struct address addr;
	struct link *link;    /* open, or dead and not yet reaped */
	struct link *dialing; /* outgoing, not yet open; becomes `link` */
	int64_t next_dial_us;
	int64_t pause_us;  /* pause after the next failed dial */
	bool reached;      /* a dial to `addr` has come as far as its key: a refusal there means that it is gone */
	uint64_t boot;     /* boot of its process, from the latest roster with one; 0: not known */
	bool doubted;      /* its link may be dead: one more is dialed beside it */
	int64_t hurry_us;  /* time before which a new address hurries no dial */
	bool missed;       /* on_link_down was called, and neither a new link nor a refusal came since */
	int64_t missed_us; /* time of that call */
	int64_t alone_us;  /* time since which it is wanted and there is no link */
};

/* The flow of all links together, and so how much may be on its way. */
struct pace {
	struct pace_flow flow;
	size_t window, waiting;
	uint64_t delivered; /* bytes since the start */
	bool is_slow;
	int64_t again_us; /* time to try again; INT64_MAX: nothing waits */
};

struct peers {
	struct peers_config cfg;
	struct pipe_ops net;
	const struct stream_ops *stream;
	void *stream_shared;
	struct rv_rng rng;
	int64_t now_us;
	uint64_t banned; /* set of member numbers */
	int depth;       /* callbacks or loops over links under way: no reaping */
	int listen_fd;
	uint16_t port;
	int64_t accept_again_us; /* next accept after file descriptors ran out */
	uint64_t run_tag;
	enum address_reach met;   /* narrower addresses are not dialed */
	int64_t dials_us;         /* time up to which the dials so far are paid for */
	int64_t watched_us;       /* time of the last look at the links */
	int64_t trouble_until_us; /* end of the window in which `troubles` were reported */
	int troubles;
	struct link *links[PEERS_MAX_LINKS]; /* NULL: free */
	int n_slots;                         /* number of `links`, from the first, that were ever in use */
	struct peer members[NET_MAX_MEMBERS];
	struct peers_traffic total;
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
struct link *peers_add_link(struct peers *p, int fd, enum frame_role role);
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

/* dial.c */
void peers_dial_due(struct peers *p);
int64_t peers_dial_deadline_us(const struct peers *p);
/* Ends a dial to `m` that failed. */
void peers_dial_failed(struct peers *p, uint32_t m, enum rv_err why, const char *text);
/* Plans the next dial to `m` after an open link to it was lost. */
void peers_dial_again(struct peers *p, uint32_t m, int64_t lived_us);
/* Lets `m` be dialed at once, as if no dial had failed. */
void peers_dial_soon(struct peers *p, uint32_t m);

/* watch.c */
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
