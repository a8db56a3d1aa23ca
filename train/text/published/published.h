/* published.h: reads a published text (manifest.h) from a directory.
 *
 * Opening reads the manifest and the topmost index page, in the same time and memory for any
 * size; beside them it keeps a bit for each shard. A shard is checked with its index page, and
 * that with the manifest, when a token of it is first read: nothing is returned that is not the
 * manifest's. Shards may be missing where somebody gets them when they are read
 * (published_on_missing). */
#ifndef RV_TRAIN_TEXT_PUBLISHED_PUBLISHED_H
#define RV_TRAIN_TEXT_PUBLISHED_PUBLISHED_H

#include "train/text/published/manifest.h"

struct published; /* read-only after open and published_on_missing: any number of threads */

/* Opens DIR. RV_E_NOTFOUND, RV_E_INVALID, RV_E_RANGE, RV_E_UNSUPPORTED, RV_E_CORRUPT (the topmost
 * index page), RV_E_IO, RV_E_NOMEM. */
enum rv_err published_open(const char *dir, struct published **out, struct rv_errtext *et);
void published_close(struct published *p); /* NULL is fine */
const struct manifest *published_manifest(const struct published *p);

/* Gets a shard, and the index pages that it is checked with, into the directory: those that are
 * missing or damaged. */
struct published_missing {
	/* Blocks until they are there. Its fault is what published_read returns. Called by any thread
	 * that reads, and again if the shard is damaged. NULL: nobody gets anything. */
	enum rv_err (*get)(void *ctx, uint64_t shard, struct rv_errtext *et);
	void *ctx;
};
/* Sets who gets missing shards, before anything is read. */
void published_on_missing(struct published *p, const struct published_missing *m);
/* Reads tokens [begin, begin + n), asserted to exist, each checked to be below the vocabulary.
 * RV_E_CORRUPT names the shard or page that is damaged, RV_E_NOTFOUND one that is missing;
 * RV_E_IO. */
enum rv_err published_read(const struct published *p, uint64_t begin, size_t n, int32_t *out, struct rv_errtext *et);

/* The same, without waiting for anybody who gets shards: those that are missing are a fault. */
enum rv_err published_read_present(const struct published *p, uint64_t begin, size_t n, int32_t *out,
								   struct rv_errtext *et);

/* Check a shard, a page and the tokenizer's file, whether they were checked before or not. Return
 * what published_read returns. */
enum rv_err published_check_shard(const struct published *p, uint64_t shard, struct rv_errtext *et);
enum rv_err published_check_page(const struct published *p, int level, uint64_t i, struct rv_errtext *et);
enum rv_err published_check_tokenizer(const struct published *p, struct rv_errtext *et);

#endif
