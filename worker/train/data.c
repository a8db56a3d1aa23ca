/* data.c: blocks, shards, and the order of a shard's sequences. See data.h for the rules.
 *
 * A block holds floor((DATA_BLOCK - 1) / context) sequences whose inputs do not overlap; a sequence's last target is
 * the next one's first input. What is left over at the block's end shifts the whole block by a random phase in every
 * epoch, so that over epochs every byte is trained on and a byte is seen at different positions. Bytes past the last
 * whole block belong to no sequence. */
#include "worker/train/data.h"

#include "base/assert.h"
#include "base/rng.h"
#include "worker/train/permute.h"
#include "worker/tokenizer/data_files.h"

#include <inttypes.h>
#include <stdlib.h>

struct dataset {
	struct data_files text;
	uint32_t n_shards, holdout_every, context;
	uint32_t sequences_per_block;
	uint64_t n_blocks, n_train_blocks;
	uint64_t seed;
};

/* Philox streams of this file; the low half is the shard. */
#define STREAM_ORDER ((uint64_t)0x64617461 << 32)
#define STREAM_PHASE ((uint64_t)0x70686173 << 32)

static uint64_t random_u64(uint64_t seed, uint64_t stream, uint64_t counter) {
	struct rv_rng rng = {.seed = seed, .stream = stream, .counter = counter};
	return rv_rng_u64(&rng);
}

static uint64_t heldout_blocks(uint64_t n_blocks, uint32_t holdout_every) {
	return n_blocks / holdout_every;
}

/* The smallest number of blocks with one held-out block and a training block for every shard. */
static uint64_t blocks_needed(uint32_t n_shards, uint32_t holdout_every) {
	uint64_t cycles = (n_shards - 1) / (holdout_every - 1), rest = (n_shards - 1) % (holdout_every - 1) + 1;
	uint64_t for_shards = cycles * holdout_every + rest;
	return for_shards > holdout_every ? for_shards : holdout_every;
}

static enum rv_err check_arguments(uint32_t n_shards, uint32_t holdout_every, uint32_t context, struct rv_errtext *et) {
	if (n_shards < 1)
		return rv_fail(et, RV_E_RANGE, "training text: 0 shards, at least 1 is needed");
	if (holdout_every < 2)
		return rv_fail(et, RV_E_RANGE, "training text: one block of every %u held out, at least 2", holdout_every);
	if (context < 1 || context >= DATA_BLOCK)
		return rv_fail(et, RV_E_RANGE, "training text: context of %u tokens, must be 1 to %d", context, DATA_BLOCK - 1);
	return RV_OK;
}

struct dataset_config dataset_config_of(const struct run_config *c, const char *path) {
	return (struct dataset_config){
		.path = path,
		.vocab = (uint32_t)c->vocab,
		.n_shards = (uint32_t)c->data_shards,
		.holdout_every = (uint32_t)c->holdout_every,
		.context = (uint32_t)c->context,
		.seed = (uint64_t)c->seed,
	};
}

enum rv_err dataset_open(const struct dataset_config *cfg, struct dataset **out, struct rv_errtext *et) {
	*out = NULL;
	RV_TRY(check_arguments(cfg->n_shards, cfg->holdout_every, cfg->context, et));
	struct dataset *d = calloc(1, sizeof *d);
	if (!d)
		return rv_fail(et, RV_E_NOMEM, "training text %s: no memory", cfg->path);
	enum rv_err e = data_files_init(&d->text, cfg->path, et);
	if (e != RV_OK)
		goto fail;
	d->n_shards = cfg->n_shards;
	d->holdout_every = cfg->holdout_every;
	d->context = cfg->context;
	d->seed = cfg->seed;
	d->sequences_per_block = (DATA_BLOCK - 1) / d->context;
	d->n_blocks = d->text.bytes / DATA_BLOCK;
	d->n_train_blocks = d->n_blocks - heldout_blocks(d->n_blocks, d->holdout_every);
	uint64_t needed = blocks_needed(d->n_shards, d->holdout_every);
	if (d->n_blocks < needed) {
		e = rv_fail(et, RV_E_RANGE,
					"training text %s: %" PRIu64
					" bytes, but %u shards with one block of every %u held out need at least "
					"%" PRIu64 " bytes: use more text, fewer data-shards or a smaller holdout-every",
					cfg->path, d->text.bytes, d->n_shards, d->holdout_every, needed * DATA_BLOCK);
		goto fail;
	}
	*out = d;
	return RV_OK;
fail:
	dataset_close(d);
	return e;
}

void dataset_close(struct dataset *d) {
	if (!d)
		return;
	data_files_release(&d->text);
	free(d);
}

uint64_t dataset_tokens(const struct dataset *d) {
	return d->text.bytes;
}

/* Training blocks shard, shard + n_shards, ... of the n_train_blocks. */
static uint64_t shard_blocks(const struct dataset *d, uint32_t shard) {
	RV_ASSERT(shard < d->n_shards);
	return (d->n_train_blocks - shard + d->n_shards - 1) / d->n_shards;
}

uint64_t dataset_train_sequences(const struct dataset *d, uint32_t shard) {
	return shard_blocks(d, shard) * d->sequences_per_block;
}

uint64_t dataset_heldout_sequences(const struct dataset *d) {
	return heldout_blocks(d->n_blocks, d->holdout_every) * d->sequences_per_block;
}

/* Reads context + 1 bytes of `block` from `offset` in it. */
static void read_sequence(const struct dataset *d, uint64_t block, uint32_t offset, int32_t *inputs, int32_t *targets) {
	RV_ASSERT(block < d->n_blocks && offset + d->context < DATA_BLOCK);
	uint8_t bytes[DATA_BLOCK];
	data_files_read(&d->text, block * DATA_BLOCK + offset, d->context + 1, bytes);
	for (uint32_t i = 0; i < d->context; i++) {
		inputs[i] = bytes[i];
		targets[i] = bytes[i + 1];
	}
}

void dataset_train_sequence(const struct dataset *d, uint32_t shard, uint64_t cursor, int32_t *inputs,
							int32_t *targets) {
	uint64_t n = dataset_train_sequences(d, shard), epoch = cursor / n;
	uint64_t key = random_u64(d->seed, STREAM_ORDER | shard, epoch);
	uint64_t i = permute_index(n, key, cursor % n);
	uint64_t train_block = i / d->sequences_per_block * d->n_shards + shard;
	uint64_t block = train_block / (d->holdout_every - 1) * d->holdout_every + train_block % (d->holdout_every - 1);
	uint32_t slack = DATA_BLOCK - 1 - d->sequences_per_block * d->context;
	uint64_t phase_seed = random_u64(d->seed, STREAM_PHASE | shard, epoch);
	uint32_t phase = (uint32_t)(random_u64(phase_seed, STREAM_PHASE, block) % (slack + 1));
	read_sequence(d, block, phase + (uint32_t)(i % d->sequences_per_block) * d->context, inputs, targets);
}

void dataset_heldout_sequence(const struct dataset *d, uint64_t i, int32_t *inputs, int32_t *targets) {
	RV_ASSERT(i < dataset_heldout_sequences(d));
	uint64_t block = (i / d->sequences_per_block + 1) * d->holdout_every - 1;
	read_sequence(d, block, (uint32_t)(i % d->sequences_per_block) * d->context, inputs, targets);
}
