/* text_cache_state.h: the state behind text_cache.h, shared by text_cache.c (the directory and its
 * shards) and text_cache_part.c (files under way). Internal to them. */
#ifndef RV_WORKER_TEXT_TEXT_CACHE_STATE_H
#define RV_WORKER_TEXT_TEXT_CACHE_STATE_H

#include "worker/text/text_cache.h"
#include "worker/text/text_shelf.h"

#include <limits.h>

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
	bool has_manifest;
	struct manifest manifest;
	struct text_shelf shelf;
	struct text_part parts[TEXT_CACHE_PARTS];
};

/* Writes the path of a file, with `suffix` behind its name. */
void text_cache_path(const struct text_cache *c, const struct text_file *f, const char *suffix,
					 char path[static PATH_MAX]);
/* Returns the part of a file that is under way; NULL: it is not. */
struct text_part *text_cache_part(struct text_cache *c, const struct text_file *f);
void text_cache_close_part(struct text_part *p);

#endif
