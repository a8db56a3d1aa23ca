/* fetcher.h: gets one state file from peers, piece by piece; goes on from another donor where the last one stopped.
 *
 * How long the file is follows from the run's configuration, so a donor cannot make us hold more. What arrives is not
 * trusted: the owner checks the whole file against a committed hash, and drops it when it does not match. One thread.
 */
#ifndef RV_WORKER_FETCHER_H
#define RV_WORKER_FETCHER_H

#include "net/peers.h"
#include "worker/blob.h"

enum { FETCHER_WINDOW = 4 }; /* pieces asked for ahead; less than DONOR_MAX_WAITING */

struct fetcher_owner {
	void *ctx;
	/* The whole file, one reference: the owner's. */
	void (*on_file)(void *ctx, uint8_t kind, uint64_t round, struct blob *file);
	/* This donor cannot deliver; what it has given is kept. */
	void (*on_failed)(void *ctx, uint8_t kind, uint64_t round, const char *why);
	void (*on_progress)(void *ctx);
};

struct fetcher;

enum rv_err fetcher_new(uint64_t run_tag, const struct fetcher_owner *owner, struct fetcher **out,
						struct rv_errtext *et);
void fetcher_free(struct fetcher *f); /* NULL is fine */
/* kind: FRAME_FETCH_BASE or FRAME_FETCH_LOG. The same file as before: goes on with this donor. RV_E_NOMEM. */
enum rv_err fetcher_start(struct fetcher *f, uint8_t kind, uint64_t round, uint64_t total_bytes, uint32_t donor,
						  struct rv_errtext *et);
void fetcher_cancel(struct fetcher *f); /* keeps what it has: fetcher_start may go on */
void fetcher_discard(struct fetcher *f);
/* PIECE or NONE. RV_E_INVALID, RV_E_PROTOCOL: not what was asked for. Late answers of a former donor are ignored. */
enum rv_err fetcher_receive(struct fetcher *f, uint32_t member, const struct frame_header *h, const uint8_t *body,
							struct rv_errtext *et);
bool fetcher_send(struct fetcher *f, uint32_t member, struct peers_message *out);
void fetcher_link_down(struct fetcher *f, uint32_t member, bool fatal);
/* For people: how much of how much. */
void fetcher_progress(const struct fetcher *f, uint64_t *done, uint64_t *total);

#endif
