/* index_pages.h: the hashes of a published text's shards, as a tree of pages.
 *
 * A page is up to 1024 hashes of 32 bytes, nothing else. Pages of level 0 hold the BLAKE2b-256 of
 * the shards' files, those of a level above the hashes of the pages below. The manifest has the
 * hash of the one page of the topmost level, the root. A shard is therefore checked with one page
 * of each level, at most three, whatever the size of the text. */
#ifndef RV_TRAIN_TEXT_PUBLISHED_INDEX_PAGES_H
#define RV_TRAIN_TEXT_PUBLISHED_INDEX_PAGES_H

#include "train/text/published/manifest.h"

enum { INDEX_FAN = 1024, INDEX_LEVELS = 3, INDEX_PAGE_BYTES = INDEX_FAN * RV_HASH_BYTES };

struct index_shape {
	int levels;               /* 1..INDEX_LEVELS */
	uint64_t n[INDEX_LEVELS]; /* pages of each level; of the topmost 1 */
	uint64_t n_shards;
};
struct index_shape index_shape_of(const struct manifest *m);
/* Returns how many hashes page i of a level holds. */
size_t index_page_hashes(const struct index_shape *s, int level, uint64_t i);
/* Writes the name of a page's file. */
void index_page_name(int level, uint64_t i, char out[static 32]);

struct index_page {
	struct rv_hash hash[INDEX_FAN];
	size_t n;
};
/* Takes the bytes of a page, which must have `n_hashes` hashes, and the hash of all of it. `name`
 * is for error texts. RV_E_CORRUPT. */
enum rv_err index_page_check(const char *name, const uint8_t *bytes, size_t n, size_t n_hashes,
							 const struct rv_hash *expected, struct index_page *out, struct rv_errtext *et);

/* Reads page i of a level from a directory, and those above it, each checked with the one above and
 * the topmost with the root. RV_E_CORRUPT names the damaged page; RV_E_NOTFOUND, RV_E_IO. */
enum rv_err index_page_read(const char *dir, const struct manifest *m, int level, uint64_t i, struct index_page *out,
							struct rv_errtext *et);
/* Reads the hash of a shard. Returns what index_page_read returns. */
enum rv_err index_shard_hash(const char *dir, const struct manifest *m, uint64_t shard, struct rv_hash *out,
							 struct rv_errtext *et);

/* Writes all pages of a directory and sets m->root; `hash` gives the hash of a shard, called in
 * order. Memory: a page, and a hash for each page. RV_E_FULL, RV_E_IO, RV_E_NOMEM, and what `hash`
 * returns. */
enum rv_err index_pages_write(const char *dir, struct manifest *m,
							  enum rv_err (*hash)(void *ctx, uint64_t shard, struct rv_hash *out,
												  struct rv_errtext *et),
							  void *ctx, struct rv_errtext *et);

#endif
