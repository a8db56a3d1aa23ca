/* donor.h: serves the run's state, or its text, to peers, slice by slice, when a link has nothing
 * more urgent to carry.
 *
 * Each FETCH is answered, in order, by the slices of the requested data, or by one NONE. A peer
 * may have DONOR_MAX_WAITING requests waiting; more is a breach of the protocol. The bytes come
 * from a donor_source: the worker's state store (worker/transfer/donor_store.h), its files of the
 * text (worker/text/text_donor_store.h), or the simulator's disk.
 *
 * The donor's sending is limited (decisions 0016 and 0027): to the cap; for each member to its
 * budget (worker/transfer/donor_budget.h); and while an all-reduce is sending, to a tenth of what
 * it sends for snapshots, to another tenth for text, and to as much as it sends for log entries,
 * since a member that gets them more slowly than the run makes them never catches up. The member
 * that has waited longest is next. No I/O, no clock, no allocation. One thread. */
#ifndef RV_WORKER_TRANSFER_DONOR_H
#define RV_WORKER_TRANSFER_DONOR_H

#include "net/mesh/peers.h"
#include "net/mesh/rate.h"
#include "worker/transfer/donor_budget.h"
#include "worker/transfer/fetch_core.h"

enum {
	DONOR_MAX_WAITING = FETCH_WINDOW_MAX, /* unanswered FETCHes of one peer */
	DONOR_SLICE_BYTES = 1 << 14           /* a TLS record: 0.13 s at 1 Mbit/s */
};

struct donor_source {
	void *ctx;
	/* Returns false if looking up `what` costs more than may be spent now; ready_us() returns when
	 * it no longer does. */
	bool (*may_look)(void *ctx, int64_t now_us, const struct frame_fetch *what);
	int64_t (*ready_us)(void *ctx);
	/* Fills in encoding, total and data (valid until the next call) for all of out->of. Returns
	 * false if it is not here. */
	bool (*find)(void *ctx, int64_t now_us, struct frame_piece *out);
	void (*idle)(void *ctx); /* called when no request is waiting */
};

struct donor_config {
	uint64_t run_tag;
	uint32_t slice_bytes;       /* at most DONOR_SLICE_BYTES; 0: that */
	uint32_t least_bytes;       /* of a budget, for each answer that was looked up: also for a NONE */
	struct rate *cap;           /* of all donors of this worker together: borrowed; NULL: none */
	struct donor_budget budget; /* of each member, of all but inner states */
	struct donor_budget inner;  /* of each member, of inner states (FRAME_FETCH_INNER) */
	struct donor_source source;
};

struct donor; /* opaque: donor_size() bytes, the caller's memory */
size_t donor_size(void);
struct donor *donor_init(void *memory, const struct donor_config *cfg);

/* Takes a FETCH of `member`. RV_E_INVALID: malformed; RV_E_PROTOCOL: too many waiting; RV_E_FULL:
 * NET_MAX_PEERS others have asked and are linked still. */
enum rv_err donor_receive(struct donor *d, uint32_t member, const struct frame_header *h, const uint8_t *body,
						  struct rv_errtext *et);
/* Writes the next answer for `member`, whose link has room for it; *out is borrowed until the next
 * call. Returns false if there is none now. */
bool donor_send(struct donor *d, int64_t now_us, uint32_t member, struct peers_message *out);
/* Sets the run's open round. `reducing`: this worker's part of an all-reduce is under way. */
void donor_set_round(struct donor *d, uint64_t round, bool reducing);
/* Counts `bytes` of a vector that the all-reduce has sent. */
void donor_reduce_sent(struct donor *d, int64_t now_us, size_t bytes);
/* Drops what `member` waits for. */
void donor_link_down(struct donor *d, uint32_t member);
int64_t donor_deadline_us(struct donor *d, int64_t now_us); /* when donor_send may answer again */
uint64_t donor_bytes(const struct donor *d);                /* sent so far, frames included */
/* Returns the members whose budget is spent; one leaves them when a quarter is back. */
const struct member_set *donor_limited(const struct donor *d);
/* Returns the members that have sent a FETCH since their link came up. */
const struct member_set *donor_askers(const struct donor *d);
bool donor_busy(const struct donor *d); /* returns true if a request is waiting */

#endif
