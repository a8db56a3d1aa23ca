/* data.h: text as tokens: memory-mapped, split into training and held-out blocks, dealt out deterministically.
 *
 * The file is cut into blocks of DATA_BLOCK bytes. Block i is held out when i % holdout_every == holdout_every - 1; the
 * training blocks are dealt round-robin to the shards. A shard's sequences (context + 1 tokens, within one block, so no
 * sequence ever touches a held-out byte) are visited in a seeded pseudo-random permutation of each epoch; where in its
 * block the first one starts is drawn anew for every epoch. The cursor is one number: how many sequences have been
 * read. It is part of the checkpoint, so nothing is seen twice or skipped, and any position costs O(1).
 */
#ifndef RV_WORKER_TRAIN_DATA_H
#define RV_WORKER_TRAIN_DATA_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum { DATA_BLOCK = 16384 };

struct dataset; /* read-only after open: any number of threads and cursors */

/* A file, or a directory (its regular files, sorted by name, concatenated). What follows the last whole
 * block is not used. RV_E_RANGE, naming the size needed, when there is not a training block for every shard and one
 * held-out block; RV_E_NOTFOUND, RV_E_IO, RV_E_INVALID (neither file nor directory), RV_E_NOMEM name the path. The
 * files stay mapped: they must not be cut short while the dataset is open. */
enum rv_err dataset_open(const char *path, uint32_t n_shards, uint32_t holdout_every, uint32_t context, uint64_t seed,
						 struct dataset **out, struct rv_errtext *et);
void dataset_close(struct dataset *d);
uint64_t dataset_bytes(const struct dataset *d);
uint64_t dataset_train_sequences(const struct dataset *d, uint32_t shard);
uint64_t dataset_heldout_sequences(const struct dataset *d);

/* Sequence number `cursor` of a shard's endless stream: inputs (context) and targets (context). */
void dataset_train_sequence(const struct dataset *d, uint32_t shard, uint64_t cursor, int32_t *inputs,
							int32_t *targets);
void dataset_heldout_sequence(const struct dataset *d, uint64_t i, int32_t *inputs, int32_t *targets);

#endif
