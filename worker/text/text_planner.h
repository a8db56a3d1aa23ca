/* text_planner.h: which files of a published text to fetch, in which order, and what becomes of
 * those that came: a state machine without I/O, locks or clock, above text_core.h. Files are kept
 * by its owner's store (text_cache.h; the simulator's).
 *
 * First come the files that somebody waits for, then the shard that came last (it is being read),
 * then what will be read, as many shards as the quota holds. */
#ifndef RV_WORKER_TEXT_TEXT_PLANNER_H
#define RV_WORKER_TEXT_TEXT_PLANNER_H

#include "base/err.h"
#include "worker/text/text_core.h"
#include "worker/text/text_file.h"
#include "worker/text/text_shelf.h"

/* The store, as text_cache.h says of each; and what the planner reports. */
struct text_planner_ops {
	void *ctx;
	bool (*lacks)(void *ctx, uint64_t shard, struct text_file *next);
	bool (*lacks_page)(void *ctx, int level, uint64_t i, struct text_file *next);
	void (*prefer)(void *ctx, const uint64_t *shards, int n);
	void (*verify)(void *ctx, uint64_t shard);
	uint64_t (*bytes_of)(void *ctx, const struct text_file *f);
	enum rv_err (*begin)(void *ctx, const struct text_file *f, uint8_t *held, bool *waits, struct rv_errtext *et);
	enum rv_err (*write)(void *ctx, const struct text_file *f, uint32_t range, const void *bytes, size_t n,
						 uint64_t check, struct rv_errtext *et);
	enum rv_err (*finish)(void *ctx, const struct text_file *f, struct rv_errtext *et);
	void (*leave)(void *ctx, const struct text_file *f);
	void (*lied)(void *ctx, int source, const struct text_file *f); /* it gave wrong bytes of the file */
	void (*refused)(void *ctx, const char *why);                    /* the disk does not take text */
};

struct text_planner {
	struct text_planner_ops ops;
	struct text_core *core; /* borrowed */
	uint8_t *held;          /* (ranges_max) scratch, borrowed */
	int most;               /* shards that the quota holds, at most TEXT_SHELF_WANTED */
	int n_needs;
	struct text_need needs[TEXT_FILES_MAX]; /* as the core has them */
	int64_t disk_until_us;                  /* nothing is begun before: the disk failed; 0: it works */
	bool has_recent;
	uint64_t recent; /* the shard that was waited for last: somebody reads it now */
	bool is_stale;   /* files came or went since the last plan */
};

/* Makes a planner. `quota_shards`: how many shards the quota holds. */
void text_planner_init(struct text_planner *p, const struct text_planner_ops *ops, struct text_core *core,
					   uint8_t *held, uint64_t quota_shards);

/* A file that somebody waits for. */
struct text_wait {
	struct text_file file;
	bool is_suspect; /* a shard that was there and could not be read: to be checked */
	bool is_there;   /* out */
};
/* Decides anew what to fetch: waits[0..n_waits) first, then the shards of `wanted` in their order.
 * Sets is_there of those that need not wait. */
void text_planner_plan(struct text_planner *p, int64_t now_us, struct text_wait *waits, int n_waits,
					   const uint64_t *wanted, int n_wanted);
/* Returns true if text_planner_plan is due: files came or went, or the disk is to be tried
 * again. */
bool text_planner_is_due(const struct text_planner *p, int64_t now_us);

/* Takes the next range of a request, of the hash `check`: writes it, and checks the file that it
 * completes. */
struct text_arrival text_planner_arrived(struct text_planner *p, int64_t now_us, uint32_t ask, const void *bytes,
										 size_t n, uint64_t check);

#endif
