/* data.h: training text as tokens: memory-mapped, split into training and held-out blocks, dealt out deterministically.
 *
 * The tokens are the bytes of text files, or those of token shards (train/text/tokenizer/shard.h), or what a tokenizer
 * makes of text files, once: the shards it writes are kept in cache_dir under the hash of text and tokenizer. They are
 * cut into blocks of DATA_BLOCK tokens. Block i is held out when i % holdout_every == holdout_every - 1; the training
 * blocks are dealt round-robin to the shards, so that all are alike, or each shard is one piece of the text. A shard's
 * sequences (context + 1 tokens, within one block, so no sequence ever touches a held-out token) are visited in a
 * seeded pseudo-random permutation of each epoch; where in its block the first one starts is drawn anew for every
 * epoch. The cursor is one number: how many sequences have been read. It is part of the checkpoint, so nothing is seen
 * twice or skipped, and any position costs O(1).
 */
#ifndef RV_TRAIN_TEXT_DATA_H
#define RV_TRAIN_TEXT_DATA_H

#include "base/err.h"
#include "base/hash.h"
#include "base/run_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DATA_BLOCK = 16384 };

struct tokenizer; /* train/text/tokenizer/tokenizer.h */
struct dataset;   /* read-only after open: any number of threads and cursors */

struct dataset_config {
	/* A file, a directory (its regular files, sorted by name, concatenated; of one that `rivulet tokenize` has written
	 * only the shards), or a pattern with * ? [ ] (glob(7), sorted). Text, or token shards: told apart by llm.c's magic
	 * and by the names' ending (.bin: tokens), all of one sort. */
	const char *path;
	/* Makes tokens of text; borrowed while opening. NULL: the bytes of text are the tokens. Token shards need none. */
	const struct tokenizer *tokenizer;
	/* What the run was made with, in hex: text is then refused without this tokenizer. "": bytes, no tokenizer is
	 * accepted; NULL: not looked at. Borrowed while opening. */
	const char *tokenizer_hash;
	const char *cache_dir; /* where tokens of text are put (token_cache.h); NULL only without a tokenizer */
	int tokenize_threads;  /* 0: all cores */
	uint32_t vocab;        /* every token is below; 0: not looked at */
	uint32_t n_shards, holdout_every, context;
	bool contiguous; /* shards are pieces of the text; false: training blocks are dealt to them in turn */
	uint64_t seed;
	/* While text is tokenized, about ten times a second: bytes done of bytes there are; false: stop (RV_E_CANCELLED;
	 * the next call goes on from there). NULL: silent. */
	bool (*progress)(void *ctx, const char *what, uint64_t done_bytes, uint64_t total_bytes);
	void *progress_ctx;
};

/* n_shards, contiguous, holdout_every, context, seed, vocab, tokenizer_hash (borrowed) of a run. */
struct dataset_config dataset_config_of(const struct run_config *c, const char *path);

/* What follows the last whole block is not used. Blocking: the time that tokenizing takes where that is needed, else
 * the same for any size: headers, and a sample of the tokens, are read. RV_E_RANGE, naming the size needed, when there
 * is not a training block for every shard and one held-out block, or naming file, position and value of a sampled token
 * that is not below vocab; RV_E_NOTFOUND, RV_E_IO, RV_E_INVALID (neither file nor directory, text mixed with tokens, a
 * malformed shard, another tokenizer than the run's), RV_E_NOMEM name the path. The files stay mapped. */
enum rv_err dataset_open(const struct dataset_config *cfg, struct dataset **out, struct rv_errtext *et);
void dataset_close(struct dataset *d);
uint64_t dataset_tokens(const struct dataset *d);
uint64_t dataset_mapped_bytes(const struct dataset *d); /* of the files */
/* Names the tokens and how they are dealt out: H over their number, a sample of them spread over all, and n_shards,
 * holdout_every, context, seed. It tells other data apart from the run's, not a few changed tokens: those between the
 * samples are not looked at. */
struct rv_hash dataset_identity(const struct dataset *d);
/* What the tokens are, whatever their path, split, seed and context: "sha256:" and 64 hex digits over the bytes of text
 * (as `cat FILES | sha256sum` prints), or over 4 little-endian bytes for each token; "sample:" of more than
 * DATA_CONTENT_MAX_TOKENS, over their number and DATA_CONTENT_BLOCKS blocks spread evenly. Reads what it hashes: 3 ms a
 * MiB. RV_E_IO, RV_E_CORRUPT as dataset_train_sequence. */
enum { DATA_CONTENT_BLOCKS = 4096, DATA_CONTENT_MAX_TOKENS = DATA_CONTENT_BLOCKS * DATA_BLOCK };
struct data_content {
	char text[80];
};
enum rv_err dataset_content(const struct dataset *d, struct data_content *out, struct rv_errtext *et);
uint64_t dataset_train_sequences(const struct dataset *d, uint32_t shard);
uint64_t dataset_heldout_sequences(const struct dataset *d);

/* Sequence number `cursor` of a shard's endless stream: inputs (context) and targets (context). Every token is looked
 * at here: RV_E_CORRUPT names file, position and value of one that is not below vocab; RV_E_IO: a file was cut short,
 * or its disk failed. Inputs and targets are not defined then. */
enum rv_err dataset_train_sequence(const struct dataset *d, uint32_t shard, uint64_t cursor, int32_t *inputs,
								   int32_t *targets, struct rv_errtext *et);
enum rv_err dataset_heldout_sequence(const struct dataset *d, uint64_t i, int32_t *inputs, int32_t *targets,
									 struct rv_errtext *et);

/* How many held-out sequences an evaluation of at most max_tokens predicted tokens uses: at least one; 0: all. */
uint64_t dataset_heldout_used(const struct dataset *d, uint64_t max_tokens);
/* An evaluation that uses only some of the held-out sequences spreads them over all: number i of `used` (at most
 * dataset_heldout_sequences) is this sequence. */
uint64_t dataset_heldout_spread(const struct dataset *d, uint64_t i, uint64_t used);
/* How many bytes of text the targets of the `used` sequences of such an evaluation stand for: the sum of their losses
 * in bits, divided by this, is bits per byte. `t`: the tokenizer that made the tokens; NULL: they are bytes. What
 * dataset_heldout_sequence refuses; RV_E_NOMEM. */
enum rv_err dataset_heldout_bytes(const struct dataset *d, const struct tokenizer *t, uint64_t used, uint64_t *bytes,
								  struct rv_errtext *et);

#endif
