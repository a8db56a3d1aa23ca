/* donor.h: serves the run's state to peers, slice by slice, when a link has nothing more urgent to carry.
 *
 * Each FETCH is answered, in order, by the slices of what was asked for, or by one NONE. What a peer may have waiting
 * is bounded: more is a breach of the protocol. The bytes come from a donor_source: the worker's state store
 * (worker/transfer/donor_store.h), or the simulator's disk.
 *
 * Giving is limited (decisions 0016 and 0027): to max_donate; for each member to its budget (worker/transfer/donor_budget.h);
 * and while an all-reduce is sending, to a tenth of what it sends for a snapshot, and to as much as it sends for log
 * entries, for a member that gets them more slowly than the run makes them never catches up. Who waits longest is next.
 * No I/O, no clock, no allocation. */
#ifndef RV_WORKER_TRANSFER_DONOR_H
#define RV_WORKER_TRANSFER_DONOR_H

#include "net/mesh/peers.h"
#include "worker/transfer/donor_budget.h"
#include "worker/transfer/fetch_core.h"

enum {
	DONOR_MAX_WAITING = FETCH_WINDOW_MAX, /* FETCHes of one peer not answered yet */
	DONOR_SLICE_BYTES = 1 << 14           /* a TLS record; at 1 Mbit/s control waits 0.13 s for it */
};

struct donor_source {
	void *ctx;
	/* false: what is asked for costs more than may be spent now (ready_us() says when not). */
	bool (*may_look)(void *ctx, int64_t now_us, const struct frame_fetch *what);
	int64_t (*ready_us)(void *ctx);
	/* All of out->of: fills in encoding, total and data, which is valid until the next call. false: it is not here. */
	bool (*find)(void *ctx, int64_t now_us, struct frame_piece *out);
	void (*idle)(void *ctx); /* nobody waits for anything */
};

struct donor_config {
	uint64_t run_tag;
	uint32_t slice_bytes; /* at most DONOR_SLICE_BYTES; 0: that */
	int64_t max_donate;   /* bytes per second on the line; 0: no cap */
	struct donor_budget budget;
	struct donor_source source;
};

struct donor; /* opaque: donor_size() bytes, the caller's memory */
size_t donor_size(void);
struct donor *donor_init(void *memory, const struct donor_config *cfg);

/* RV_E_INVALID (malformed), RV_E_PROTOCOL (too many waiting). */
enum rv_err donor_receive(struct donor *d, uint32_t member, const struct frame_header *h, const uint8_t *body,
						  struct rv_errtext *et);
/* The next answer for `member`, whose link can take it; borrows until the next call. */
bool donor_send(struct donor *d, int64_t now_us, uint32_t member, struct peers_message *out);
/* The run's open round; and our part of an all-reduce is under way: chunks are missing or owed. */
void donor_set_round(struct donor *d, uint64_t round, bool reducing);
/* It has sent that many bytes of a vector. */
void donor_reduce_sent(struct donor *d, int64_t now_us, size_t bytes);
void donor_link_down(struct donor *d, uint32_t member);
int64_t donor_deadline_us(struct donor *d, int64_t now_us); /* when donor_send may say yes again */
uint64_t donor_bytes(const struct donor *d);                /* sent since the start, frames included */
/* The set of members whose budget is used up, until a quarter of it is back. */
uint64_t donor_limited(const struct donor *d);
/* The set of members that have asked for something since their link came up. */
uint64_t donor_askers(const struct donor *d);
bool donor_busy(const struct donor *d); /* something is waiting */

#endif
