/* data.h: training text as tokens: memory-mapped, split into training and held-out blocks, dealt out deterministically.
 *
 * The tokens are the bytes of text files, or those of token shards (worker/tokenizer/shard.h), or what a tokenizer
 * makes of text files, once: the shards it writes are kept in cache_dir under the hash of text and tokenizer. They are
 * cut into blocks of DATA_BLOCK tokens. Block i is held out when i % holdout_every == holdout_every - 1; the training
 * blocks are dealt round-robin to the shards. A shard's sequences (context + 1 tokens, within one block, so no sequence
 * ever touches a held-out token) are visited in a seeded pseudo-random permutation of each epoch; where in its block
 * the first one starts is drawn anew for every epoch. The cursor is one number: how many sequences have been read. It
 * is part of the checkpoint, so nothing is seen twice or skipped, and any position costs O(1).
 */
#ifndef RV_WORKER_TRAIN_DATA_H
#define RV_WORKER_TRAIN_DATA_H

#include "base/err.h"
#include "base/hash.h"
#include "base/run_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DATA_BLOCK = 16384 };

struct tokenizer; /* worker/tokenizer/tokenizer.h */
struct dataset;   /* read-only after open: any number of threads and cursors */

struct dataset_config {
	/* A file, a directory (its regular files, sorted by name, concatenated), or a pattern with * ? [ ] (glob(7),
	 * sorted). Text, or token shards: told apart by llm.c's magic and by the names' ending (.bin: tokens), all of one
	 * sort. */
	const char *path;
	const struct tokenizer *tokenizer; /* borrowed while opening: makes tokens of text; NULL: bytes are the tokens */
	const char *cache_dir;             /* where it puts them; NULL only without a tokenizer */
	int tokenize_threads;              /* 0: all cores */
	uint32_t vocab;                    /* every token is below; 0: not looked at */
	uint32_t n_shards, holdout_every, context;
	uint64_t seed;
	/* While text is tokenized or tokens are checked: bytes done of bytes there are; false: stop (RV_E_CANCELLED). NULL:
	 * silent. */
	bool (*progress)(void *ctx, const char *what, uint64_t done_bytes, uint64_t total_bytes);
	void *progress_ctx;
};

/* n_shards, holdout_every, context, seed, vocab of a run. */
struct dataset_config dataset_config_of(const struct run_config *c, const char *path);

/* What follows the last whole block is not used. RV_E_RANGE, naming the size needed, when there is not a training block
 * for every shard and one held-out block, or naming file, position and value of a token that is not below vocab;
 * RV_E_NOTFOUND, RV_E_IO, RV_E_INVALID (neither file nor directory, text mixed with tokens), RV_E_NOMEM name the path.
 * The files stay mapped: they must not be cut short while the dataset is open. */
enum rv_err dataset_open(const struct dataset_config *cfg, struct dataset **out, struct rv_errtext *et);
void dataset_close(struct dataset *d);
uint64_t dataset_tokens(const struct dataset *d);
/* Names the tokens and how they are dealt out: H over their number, a sample of them spread over all, and n_shards,
 * holdout_every, context, seed. Two datasets with the same one give the same sequences. */
struct rv_hash dataset_identity(const struct dataset *d);
uint64_t dataset_train_sequences(const struct dataset *d, uint32_t shard);
uint64_t dataset_heldout_sequences(const struct dataset *d);

/* Sequence number `cursor` of a shard's endless stream: inputs (context) and targets (context). */
void dataset_train_sequence(const struct dataset *d, uint32_t shard, uint64_t cursor, int32_t *inputs,
							int32_t *targets);
void dataset_heldout_sequence(const struct dataset *d, uint64_t i, int32_t *inputs, int32_t *targets);

#endif
