/* fetcher.h: gets the run's state from peers: the fetch core (worker/transfer/fetch_core.h) between the mesh and what
 * puts files together.
 *
 * Pieces are checked as they arrive, and kept by the operations in fetcher_ops: the worker's put them together on the
 * storage thread (worker/transfer/fetch_store.h), the simulator's on its disk. At most FETCHER_PUTS_MAX pieces are on
 * their way there; while those are too many, nothing is asked for, and what comes nevertheless is thrown away and asked
 * for again. What is fetched ahead waits unfinished: a log entry is written after the snapshot before it has been
 * installed, for that makes room for another history.
 *
 * No I/O, no clock, no allocation. One thread; the owner's callbacks run inside fetcher_*. */
#ifndef RV_WORKER_TRANSFER_FETCHER_H
#define RV_WORKER_TRANSFER_FETCHER_H

#include "net/mesh/peers.h"
#include "worker/state/blob.h"
#include "worker/transfer/fetch_core.h"

enum { FETCHER_PUTS_MAX = 128 };

/* ---- what puts files together ---- */

enum fetcher_step {
	FETCHER_OPEN,     /* looks for the file, or for what a former process had of it. The first step */
	FETCHER_MANIFEST, /* keeps `data`: state_manifest_hashes() of them */
	FETCHER_PIECE,    /* keeps `data`: piece `index` as `encoding` and `bytes` say */
	FETCHER_FINISH    /* makes a durable file of it, or keeps it in memory where the disk does not take it */
};

struct fetcher_job {
	enum fetcher_step step;
	uint32_t index;
	uint8_t encoding; /* enum frame_encoding */
	size_t bytes;
	const void *data; /* borrowed until post returns */
	/* The answer. */
	enum rv_err err; /* the own disk or memory does not take it */
	const char *text;
	/* OPEN: NULL: nothing is there. Else which pieces are held (1 byte each, not 0), all checked. */
	const struct rv_hash *manifest;
	const uint8_t *held;
	bool own;        /* OPEN: the whole file is on the own disk: nothing is to be put together */
	bool incomplete; /* FINISH: a piece could not be kept, or it was not carried out */
};

/* A file that is whole. */
struct fetched {
	struct state_id id;
	void *snapshot;            /* SNAPSHOT: the platform's, the owner's now */
	struct blob *log;          /* LOG: one reference to the bare reduced bytes, the owner's */
	struct rv_errtext warning; /* why it is not durable; empty: it is */
};

/* A file's jobs are done and answered, through fetcher_on_done(), in the order in which they were posted; those of a
 * file that was dropped are answered too. */
struct fetcher_ops {
	void *ctx;
	void *(*memory)(void *ctx, size_t bytes); /* for the fetch core, until the fetcher ends; NULL: there is none */
	/* Returns a file to be put together, whose OPEN is posted; NULL: no memory. */
	void *(*open)(void *ctx, const struct state_id *id);
	bool (*post)(void *ctx, void *file, const struct fetcher_job *job); /* false: no memory */
	void (*take)(void *ctx, void *file, struct fetched *out);           /* of a file that is finished; then drop */
	void (*drop)(void *ctx, void *file); /* it is not wanted any more: what waits is not worth its time */
	/* fetch_core_config's; NULL: all pieces are FRAME_RAW. */
	enum rv_err (*decode)(void *ctx, uint8_t encoding, const void *in, size_t in_bytes, void *out, size_t out_bytes,
						  struct rv_errtext *et);
};

/* ---- the fetcher ---- */

struct fetcher_owner {
	void *ctx;
	/* The file that is waited for is whole; or (`late`) it became so when nobody waited for it any more. */
	void (*on_file)(void *ctx, const struct fetched *what, bool late);
	/* Our own disk or memory: it is given up until it is wanted again. */
	void (*on_failed)(void *ctx, const struct state_id *id, enum rv_err e, const char *text);
	/* It gave bytes that are not those committed, and is left alone for a while. */
	void (*on_bad_donor)(void *ctx, uint32_t member, const struct state_id *id, const char *text);
};

struct fetcher_config {
	const struct global_config *global; /* borrowed */
	uint64_t run_tag;
	uint32_t self_member;
	int64_t stall_us;
	/* Of a snapshot of which nothing is expected (round 0 of a run that starts from given weights): RV_E_CORRUPT when
	 * these cannot be its hashes. `ctx` is the owner's. */
	enum rv_err (*check_initial)(void *ctx, const struct rv_hash *manifest, struct rv_errtext *et);
	struct fetcher_ops ops;
	struct fetcher_owner owner;
};

struct fetcher; /* opaque: fetcher_size() bytes, the caller's memory */
size_t fetcher_size(void);
struct fetcher *fetcher_init(void *memory, const struct fetcher_config *cfg);
/* Drops the files. */
void fetcher_release(struct fetcher *f);

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
/* The answer to fetcher_ops.open and post; the time is that of the latest call. */
void fetcher_on_done(struct fetcher *f, void *file, const struct fetcher_job *answer);
void fetcher_tick(struct fetcher *f, int64_t now_us);
int64_t fetcher_deadline_us(const struct fetcher *f);
/* Nobody who can be asked has the file that is waited for. */
bool fetcher_nowhere(const struct fetcher *f);
/* For people: of the file that is waited for; total 0: none is. */
void fetcher_progress(const struct fetcher *f, uint64_t *done, uint64_t *total);

#endif
