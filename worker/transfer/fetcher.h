/* fetcher.h: gets the run's state from peers: the fetch core (worker/transfer/fetch_core.h) between
 * the mesh and the platform, which puts files together.
 *
 * Pieces are checked as they arrive, and kept by the operations in fetcher_ops: the worker's put
 * them together on the storage thread (worker/transfer/fetch_store.h), the simulator's on its disk.
 * From half of FETCHER_PUTS_MAX pieces on their way there, nothing is requested; a piece beyond
 * FETCHER_PUTS_MAX is discarded and requested again. A file fetched ahead stays unfinished until it
 * is waited for: a log entry is written after the snapshot before it has been installed, for that
 * makes room for another history.
 *
 * No I/O, no clock, no allocation. One thread; the owner's callbacks run inside fetcher_*. */
#ifndef RV_WORKER_TRANSFER_FETCHER_H
#define RV_WORKER_TRANSFER_FETCHER_H

#include "net/mesh/peers.h"
#include "worker/state/blob.h"
#include "worker/transfer/fetch_core.h"

enum { FETCHER_PUTS_MAX = 128 };

/* ---- the platform's operations ---- */

enum fetcher_step {
	FETCHER_OPEN,     /* looks for the file, or an earlier process's part of it. The first step */
	FETCHER_MANIFEST, /* keeps `data`: state_manifest_hashes() of them */
	FETCHER_PIECE,    /* keeps `data`: piece `index`, `bytes` in `encoding` */
	FETCHER_FINISH    /* makes a durable file of it, or keeps it in memory if the disk refuses it */
};

struct fetcher_job {
	enum fetcher_step step;
	uint32_t index;
	uint8_t encoding; /* enum frame_encoding */
	size_t bytes;
	const void *data; /* borrowed until post returns */
	/* The answer. */
	enum rv_err err; /* fault of this worker's disk or memory */
	const char *text;
	/* OPEN. NULL: nothing is there. Else the manifest, and per piece a byte, not 0: held. All
	 * checked. */
	const struct rv_hash *manifest;
	const uint8_t *held;
	bool own;        /* OPEN: the whole file is on this worker's disk */
	bool incomplete; /* FINISH: a piece could not be kept, or the job was not carried out */
};

/* A complete file. */
struct fetched {
	struct state_id id;
	void *snapshot;            /* SNAPSHOT: of the platform's type; the owner's now */
	struct blob *log;          /* LOG: one reference to the bare reduced bytes, the owner's */
	struct rv_errtext warning; /* reason why it is not durable; empty: it is */
};

/* The platform does a file's jobs, and answers them through fetcher_on_done(), in the order in
 * which they were posted; those of a dropped file too. */
struct fetcher_ops {
	void *ctx;
	/* Returns memory for the fetch core, the platform's; NULL: there is none. */
	void *(*memory)(void *ctx, size_t bytes);
	/* Returns a file to be put together, whose OPEN is posted; NULL: no memory. */
	void *(*open)(void *ctx, const struct state_id *id);
	/* Posts a job. Returns false without memory. */
	bool (*post)(void *ctx, void *file, const struct fetcher_job *job);
	/* Hands over a finished file. */
	void (*take)(void *ctx, void *file, struct fetched *out);
	/* Ends a file that is no longer wanted; its waiting jobs may be skipped. */
	void (*drop)(void *ctx, void *file);
	/* Decodes as fetch_core_config.decode; NULL: all pieces are FRAME_RAW. */
	enum rv_err (*decode)(void *ctx, uint8_t encoding, const void *in, size_t in_bytes, void *out, size_t out_bytes,
						  struct rv_errtext *et);
};

/* ---- the fetcher ---- */

struct fetcher_owner {
	void *ctx;
	/* Takes a complete file: the one that is waited for, or (`late`) one that was no longer wanted
	 * when it was finished. */
	void (*on_file)(void *ctx, const struct fetched *what, bool late);
	/* Reports that this worker's disk or memory failed; the file is given up until it is wanted
	 * again. */
	void (*on_failed)(void *ctx, const struct state_id *id, enum rv_err e, const char *text);
	/* Reports that `member` gave bytes other than the committed ones. */
	void (*on_bad_donor)(void *ctx, uint32_t member, const struct state_id *id, const char *text);
};

struct fetcher_config {
	const struct global_config *global; /* borrowed */
	uint64_t run_tag;
	uint32_t self_member;
	int64_t stall_us; /* as in fetch_core_config */
	/* As in fetch_core_config; `ctx` is the owner's. */
	enum rv_err (*check_initial)(void *ctx, const struct rv_hash *manifest, struct rv_errtext *et);
	struct fetcher_ops ops;
	struct fetcher_owner owner;
};

struct fetcher; /* opaque: fetcher_size() bytes, the caller's memory */
size_t fetcher_size(void);
struct fetcher *fetcher_init(void *memory, const struct fetcher_config *cfg);
/* Drops the files. */
void fetcher_release(struct fetcher *f);

/* Waits for ids[0]; ids[1] (if any) is needed next. Parts of either are kept; all other files are
 * given up, and their pieces on the way to the disk discarded. n == 0: nothing is wanted, and it
 * cannot fail. RV_E_NOMEM. */
enum rv_err fetcher_want(struct fetcher *f, int64_t now_us, const struct state_id *ids, int n, struct rv_errtext *et);
/* Sets which members may be asked. */
void fetcher_allow(struct fetcher *f, int64_t now_us, const struct member_set *members);
void fetcher_link_up(struct fetcher *f, int64_t now_us, uint32_t member);
void fetcher_link_down(struct fetcher *f, int64_t now_us, uint32_t member);
/* Takes a PIECE or NONE. RV_E_INVALID, RV_E_PROTOCOL: it is not the answer to the oldest
 * request. */
enum rv_err fetcher_receive(struct fetcher *f, int64_t now_us, uint32_t member, const struct frame_header *h,
							const uint8_t *body, struct rv_errtext *et);
/* Writes the next FETCH for `member`, borrowed until the next call. Returns false if there is none
 * now. */
bool fetcher_send(struct fetcher *f, int64_t now_us, uint32_t member, struct peers_message *out);
/* Takes the answer to fetcher_ops.open or post; the time is that of the latest call. */
void fetcher_on_done(struct fetcher *f, void *file, const struct fetcher_job *answer);
void fetcher_tick(struct fetcher *f, int64_t now_us);
int64_t fetcher_deadline_us(const struct fetcher *f);
/* Returns true if no reachable donor has the file that is waited for. */
bool fetcher_nowhere(const struct fetcher *f);
/* Writes the bytes held and in total of the file that is waited for; *total 0: none is. */
void fetcher_progress(const struct fetcher *f, uint64_t *done, uint64_t *total);

#endif
