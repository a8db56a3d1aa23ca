/* fetcher.h: gets the run's state from peers: the fetch core (worker/transfer/fetch_core.h) between the mesh and the disk.
 *
 * Pieces are checked as they arrive, and put together on the storage thread (worker/state/state_assembly.h). A snapshot survives
 * a restart there, and what is in it is not fetched again. Memory: the core's, and at most FETCHER_PUTS_MAX pieces on
 * their way to the disk; while those are too many, nothing is asked for, and what comes nevertheless is thrown away and
 * asked for again. One thread; callbacks run inside fetcher_* and jobs_reap().
 */
#ifndef RV_WORKER_TRANSFER_FETCHER_H
#define RV_WORKER_TRANSFER_FETCHER_H

#include "base/jobs.h"
#include "net/mesh/peers.h"
#include "worker/state/state_assembly.h"
#include "worker/transfer/fetch_core.h"

enum { FETCHER_PUTS_MAX = 128 };

struct fetcher_owner {
	void *ctx;
	/* The file that is waited for is whole, and durable (or *warning says why not). SNAPSHOT: `snapshot` is the owner's now.
	 * LOG: one reference to the bare reduced bytes, the owner's. */
	void (*on_file)(void *ctx, const struct state_id *id, struct state_file *snapshot, struct blob *log,
					const char *warning);
	/* Our own disk or memory: it is given up until it is wanted again. */
	void (*on_failed)(void *ctx, const struct state_id *id, enum rv_err e, const char *text);
	/* It gave bytes that are not those committed, and is left alone for a while. */
	void (*on_bad_donor)(void *ctx, uint32_t member, const struct state_id *id, const char *text);
};

struct fetcher_config {
	const struct statestore *store; /* borrowed, as is `storage` */
	struct jobs *storage;
	uint64_t run_tag;
	uint32_t self_member;
	int64_t stall_us;
	/* Of a snapshot of which nothing is expected (round 0 of a run that starts from given weights): RV_E_CORRUPT when these
	 * cannot be its hashes. `ctx` is the owner's. */
	enum rv_err (*check_initial)(void *ctx, const struct rv_hash *manifest, struct rv_errtext *et);
	struct fetcher_owner owner;
};

struct fetcher;

/* RV_E_NOMEM. */
enum rv_err fetcher_new(const struct fetcher_config *cfg, struct fetcher **out, struct rv_errtext *et);
/* After the storage thread has ended. NULL is fine. */
void fetcher_free(struct fetcher *f);

/* ids[0] is waited for, ids[1] (if any) is the one needed next. What is known of either is kept, all else given up, and
 * what is on its way to the disk of it thrown away; n is 0: nothing is wanted. RV_E_NOMEM, but not where n is 0. */
enum rv_err fetcher_want(struct fetcher *f, int64_t now_us, const struct state_id *ids, int n, struct rv_errtext *et);
void fetcher_allow(struct fetcher *f, int64_t now_us, uint64_t members); /* who may be asked: a set */
void fetcher_link_up(struct fetcher *f, int64_t now_us, uint32_t member);
void fetcher_link_down(struct fetcher *f, int64_t now_us, uint32_t member);
/* PIECE or NONE. RV_E_INVALID, RV_E_PROTOCOL: not the answer to what was asked for. */
enum rv_err fetcher_receive(struct fetcher *f, int64_t now_us, uint32_t member, const struct frame_header *h,
							const uint8_t *body, struct rv_errtext *et);
bool fetcher_send(struct fetcher *f, int64_t now_us, uint32_t member, struct peers_message *out);
void fetcher_tick(struct fetcher *f, int64_t now_us);
int64_t fetcher_deadline_us(const struct fetcher *f);
/* Nobody who can be asked has the file that is waited for. */
bool fetcher_nowhere(const struct fetcher *f);
/* For people: of the file that is waited for; total 0: none is. */
void fetcher_progress(const struct fetcher *f, uint64_t *done, uint64_t *total);

#endif
