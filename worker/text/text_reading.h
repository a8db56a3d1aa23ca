/* text_reading.h: the shards that a member's leases, and its evaluations, lie in. */
#ifndef RV_WORKER_TEXT_TEXT_READING_H
#define RV_WORKER_TEXT_TEXT_READING_H

#include "train/text/heldout.h"
#include "train/text/published/manifest.h"
#include "train/text/reading.h"
#include "train/text/sequence_order.h"

/* Writes the shards in which the sequences of a reading lie, each once, in the order in which they
 * are read first; at most `most` of them, and those of the first 65,536 sequences. Returns how
 * many. */
int text_reading_shards(const struct reading *r, const struct sequence_order *o, const struct manifest *m,
						uint64_t *shards, int most);

/* Writes the shards in which the held-out sequences of an evaluation of at most max_tokens lie,
 * each once. Returns how many; 0 if they are more than `most`: too many to be fetched ahead. */
int text_heldout_shards(const struct heldout *h, const struct manifest *m, uint64_t max_tokens, uint64_t *shards,
						int most);

#endif
