/* text_shelf.h: the shards, whole or not, that a worker has of a published text: which fit into the
 * quota, and which goes when another needs room. A table without I/O: the owner's files follow it.
 *
 * A shard's *need* is a number: of two shards the one with the higher number is kept. Shards whose
 * order of need is known (text_shelf_prefer) come before all others, the first before the last;
 * the others go in the order in which they were needed. */
#ifndef RV_WORKER_TEXT_TEXT_SHELF_H
#define RV_WORKER_TEXT_TEXT_SHELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEXT_SHELF_WANTED = 64 }; /* shards whose order of need is known */

struct text_shelf_entry {
	uint64_t shard, bytes, need;
};

struct text_shelf {
	uint64_t quota_bytes, used_bytes;
	uint64_t clock;                   /* grows; above every need */
	struct text_shelf_entry *entries; /* (n, room cap) ascending by shard; the shelf's */
	size_t n, cap;
	int n_wanted;
	uint64_t wanted[TEXT_SHELF_WANTED];       /* in the order of need */
	void (*evict)(void *ctx, uint64_t shard); /* removes the files of a shard that goes */
	void *ctx;
};

void text_shelf_init(struct text_shelf *s, uint64_t quota_bytes, void (*evict)(void *ctx, uint64_t shard), void *ctx);
void text_shelf_release(struct text_shelf *s);

/* Adds what was found on the disk: bytes of a shard that was needed last at `need`. Returns false
 * without memory. */
bool text_shelf_found(struct text_shelf *s, uint64_t shard, uint64_t bytes, uint64_t need);
/* Evicts what is beyond the quota. */
void text_shelf_fit(struct text_shelf *s);
/* Returns true if any bytes of the shard are here. */
bool text_shelf_has(const struct text_shelf *s, uint64_t shard);
/* Sets the order of need, n <= TEXT_SHELF_WANTED. */
void text_shelf_prefer(struct text_shelf *s, const uint64_t *shards, int n);

enum text_shelf_answer { TEXT_SHELF_TAKEN, TEXT_SHELF_FULL, TEXT_SHELF_NO_MEMORY };
/* Gives a shard room for all its bytes, in place of what is needed later; what it had counts no
 * more. FULL: all that is here is needed before it. */
enum text_shelf_answer text_shelf_take(struct text_shelf *s, uint64_t shard, uint64_t bytes);
/* Evicts a shard, if it is here. */
void text_shelf_drop(struct text_shelf *s, uint64_t shard);

#endif
