/* text_cache.h: the files of one published text that a worker has, in a directory that is laid out
 * as the published one with shards missing, so that the reader of published texts reads it.
 *
 * A file that is under way is NAME.part: its bytes, then a hash of 8 bytes for each range; 0: not
 * here yet. A later process goes on with the ranges whose hash is right, so nothing need be
 * durable. A whole file is checked against its index page, or the manifest, and written to the disk
 * before it gets its name: a file with a name was right when it got it.
 *
 * Shards, whole or not, take at most the quota; those needed last, as far as is known, go first.
 * Memory and the time to open depend on the quota, not on the text. One thread; blocks on the
 * disk. */
#ifndef RV_WORKER_TEXT_TEXT_CACHE_H
#define RV_WORKER_TEXT_TEXT_CACHE_H

#include "worker/text/text_file.h"

enum { TEXT_CACHE_PARTS = 64 /* files under way at once */ };

struct text_cache;

/* Opens or makes the directory, and takes its lock. A manifest or tokenizer that is damaged counts
 * as missing; shards beyond the quota are removed. RV_E_BUSY (another process has it), RV_E_FULL
 * (also as text_cache_take_manifest), RV_E_IO, RV_E_NOMEM. */
enum rv_err text_cache_open(const char *dir, const struct rv_hash *data_hash, uint64_t quota_bytes,
							struct text_cache **out, struct rv_errtext *et);
void text_cache_close(struct text_cache *c); /* NULL is fine */
const char *text_cache_dir(const struct text_cache *c);

/* ---- what comes first ---- */

/* Returns the manifest; NULL: it is not here yet. */
const struct manifest *text_cache_manifest(const struct text_cache *c);
/* Takes the text of manifest.json, whose mirrors may be any. RV_E_CORRUPT: it does not have the
 * data-hash; RV_E_FULL: the quota is smaller than two shards of several, or no disk space; what
 * manifest_parse returns; RV_E_IO. */
enum rv_err text_cache_take_manifest(struct text_cache *c, const uint8_t *text, size_t n, struct rv_errtext *et);
/* Returns the name of the tokenizer's file if it is not here yet; NULL: it is, or there is none. */
const char *text_cache_lacks_tokenizer(const struct text_cache *c);
/* Writes the tokenizer's file. RV_E_CORRUPT: it does not have the manifest's tokenizer_hash;
 * RV_E_FULL, RV_E_IO. */
enum rv_err text_cache_take_tokenizer(struct text_cache *c, const uint8_t *bytes, size_t n, struct rv_errtext *et);

/* ---- shards, with a manifest ---- */

/* Returns true, with the file to fetch next, if a shard cannot be read yet: an index page above it,
 * or the shard. A page that is damaged is removed. */
bool text_cache_lacks(struct text_cache *c, uint64_t shard, struct text_file *next);
bool text_cache_lacks_page(struct text_cache *c, int level, uint64_t i, struct text_file *next);
/* States which shards will be read, in the order of need: these are kept before others, the first
 * before the last. */
void text_cache_prefer(struct text_cache *c, const uint64_t *shards, int n);
/* Checks a shard that a reader could not read, and removes it if it is damaged. */
void text_cache_verify(struct text_cache *c, uint64_t shard);
/* Returns the bytes of all shards and parts of them. */
uint64_t text_cache_used(const struct text_cache *c);

/* ---- a file under way ---- */

/* Opens the part of a file that is lacked, and makes room for a shard. `held` gets a byte for each
 * range, not 0: here from before. RV_E_FULL: no disk space, or (*waits) all that the quota allows
 * is needed before this file; RV_E_IO. */
enum rv_err text_cache_begin(struct text_cache *c, const struct text_file *f, uint8_t *held, bool *waits,
							 struct rv_errtext *et);
/* Returns the hash of a range's bytes, as in parts; never 0. */
uint64_t text_cache_check(const void *bytes, size_t n);
/* Writes a range of a file that was begun. RV_E_FULL, RV_E_IO. */
enum rv_err text_cache_write(struct text_cache *c, const struct text_file *f, uint32_t range, const void *bytes,
							 size_t n, uint64_t check, struct rv_errtext *et);
/* Checks a file that has all its ranges. RV_OK: it is whole, and has its name; RV_E_CORRUPT: its
 * bytes are wrong, and gone; RV_E_NOTFOUND: an index page above it is damaged, and gone, and so is
 * the file; RV_E_FULL, RV_E_IO. After any of these it has to be begun again. */
enum rv_err text_cache_finish(struct text_cache *c, const struct text_file *f, struct rv_errtext *et);
/* Leaves a file that is no longer wanted; its part stays while there is room. */
void text_cache_leave(struct text_cache *c, const struct text_file *f);

#endif
