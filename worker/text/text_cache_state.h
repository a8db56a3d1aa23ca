/* text_cache_state.h: the state behind text_cache.h, shared by text_cache.c (the directory and its
 * shards) and text_cache_part.c (files under way). Internal to them. */
#ifndef RV_WORKER_TEXT_TEXT_CACHE_STATE_H
#define RV_WORKER_TEXT_TEXT_CACHE_STATE_H

#include "worker/text/text_cache.h"

#include <limits.h>

/* A shard, or a part of one, on the disk. */
struct text_entry {
	uint64_t shard, bytes;
	uint64_t used; /* a number that grows: the lowest goes first */
};

struct text_part {
	struct text_file file;
	int fd; /* negative: free */
	uint64_t bytes;
	uint32_t n_ranges;
};

struct text_cache {
	char *dir;
	int lock;
	struct rv_hash data_hash;
	uint64_t quota_bytes, used_bytes;
	bool has_manifest;
	struct manifest manifest;
	struct text_entry *entries; /* (n, room cap) ascending by shard */
	size_t n, cap;
	uint64_t clock;
	int n_wanted;
	uint64_t wanted[TEXT_CACHE_WANTED]; /* shards, in the order of need */
	struct text_part parts[TEXT_CACHE_PARTS];
};

/* Writes the path of a file, with `suffix` behind its name. */
void text_cache_path(const struct text_cache *c, const struct text_file *f, const char *suffix,
					 char path[static PATH_MAX]);
/* Returns the shard, whole or not; NULL: it is not here. */
struct text_entry *text_cache_entry(struct text_cache *c, uint64_t shard);
/* Adds a shard to the table. Returns false without memory. */
bool text_cache_insert(struct text_cache *c, uint64_t shard, uint64_t bytes, uint64_t used);
/* Removes a shard from the table, and its files. */
void text_cache_forget(struct text_cache *c, struct text_entry *e);
void text_cache_evict(struct text_cache *c, struct text_entry *e);
/* Makes room for `bytes` more, in place of what is needed later than number `used` says. Returns
 * false if all of it is needed before. */
bool text_cache_room(struct text_cache *c, uint64_t bytes, uint64_t used);
/* Returns the number `used` of a shard that comes now. */
uint64_t text_cache_need(const struct text_cache *c, uint64_t shard);
/* Returns the part of a file that is under way; NULL: it is not. */
struct text_part *text_cache_part(struct text_cache *c, const struct text_file *f);
void text_cache_close_part(struct text_part *p);

#endif
