/* data.c: blocks, shards, and the order of a shard's sequences, by the rules of data.h.
 *
 * A block holds floor((DATA_BLOCK - 1) / context) sequences with disjoint inputs; the last target
 * of one is the first input of the next. The rest of the block is the range of a random phase that
 * shifts it in every epoch, so that over epochs every token is trained on, at different positions.
 * Tokens behind the last whole block belong to no sequence. */
#include "train/text/data.h"

#include "base/assert.h"
#include "base/hex.h"
#include "base/rng.h"
#include "train/text/heldout.h"
#include "train/text/permute.h"
#include "train/text/run_tokenizer.h"
#include "train/text/sequence_order.h"
#include "train/text/token_cache.h"
#include "train/text/token_content.h"
#include "train/text/token_source.h"
#include "train/text/tokenizer/tokenizer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct dataset {
	struct token_source source;
	struct rv_hash identity;
	uint32_t n_shards, holdout_every, context;
	bool contiguous; /* each shard is one piece of the text */
	uint32_t sequences_per_block;
	uint64_t n_blocks, n_train_blocks;
	uint64_t seed;
	struct heldout heldout;
	bool has_order;
	struct sequence_order order;
};

/* Philox streams of this file; the low half is the shard. */
#define STREAM_ORDER ((uint64_t)0x64617461 << 32)
#define STREAM_PHASE ((uint64_t)0x70686173 << 32)

static uint64_t random_u64(uint64_t seed, uint64_t stream, uint64_t counter) {
	struct rv_rng rng = {.seed = seed, .stream = stream, .counter = counter};
	return rv_rng_u64(&rng);
}

/* Returns the smallest number of blocks with one held-out block and a training block per shard. */
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
		.tokenizer_hash = c->tokenizer_hash,
		.vocab = (uint32_t)c->vocab,
		.n_shards = (uint32_t)c->data_shards,
		.contiguous = c->data_split == SPLIT_CONTIGUOUS,
		.holdout_every = (uint32_t)c->holdout_every,
		.context = (uint32_t)c->context,
		.seed = (uint64_t)c->seed,
		.order = c->data_hash[0] != '\0',
		.data_hash = c->data == RUN_DATA_PUBLISHED ? c->data_hash : NULL,
	};
}

static enum rv_err open_through_cache(struct dataset *d, const struct dataset_config *cfg,
									  const struct tokenizer *tokenizer, struct rv_errtext *et) {
	const struct token_cache cache = {.dir = cfg->cache_dir,
									  .tokenizer = tokenizer,
									  .field = cfg->field,
									  .threads = cfg->tokenize_threads,
									  .progress = cfg->progress,
									  .progress_ctx = cfg->progress_ctx};
	RV_ASSERT(cfg->cache_dir);
	struct data_files text = d->source.files;
	d->source = (struct token_source){0}; /* `text` has all that it held */
	enum rv_err e = token_cache_open(&cache, &text, cfg->vocab, &d->source, et);
	data_files_release(&text);
	return e;
}

/* Opens text that must be unpacked, whose bytes are the tokens. */
static enum rv_err open_bytes(struct dataset *d, const struct dataset_config *cfg, struct rv_errtext *et) {
	struct tokenizer *bytes;
	if (!cfg->cache_dir)
		return rv_fail(et, RV_E_UNSUPPORTED, "training data %s: text that must be unpacked, and no cache for it",
					   cfg->path);
	RV_TRY(tokenizer_open("bytes", "auto", &bytes, et));
	enum rv_err e = open_through_cache(d, cfg, bytes, et);
	tokenizer_free(bytes);
	return e;
}

/* Checks that the source is the text that the run names, if it names one. */
static enum rv_err check_data_hash(const struct dataset *d, const struct dataset_config *cfg, struct rv_errtext *et) {
	const struct manifest *m = token_source_manifest(&d->source);
	struct rv_hash hash;
	char hex[2 * RV_HASH_BYTES + 1];
	if (!cfg->data_hash || cfg->data_hash[0] == '\0')
		return RV_OK;
	if (!m)
		return rv_fail(et, RV_E_INVALID,
					   "training data %s: the run reads the published text %.16s... (data-hash), and this is not "
					   "published: use a copy of that one, or, with a run of your own, `rivulet data publish`",
					   cfg->path, cfg->data_hash);
	RV_TRY(manifest_hash(m, &hash, et));
	rv_hex_encode(hash.b, sizeof hash.b, hex);
	if (strcmp(hex, cfg->data_hash) == 0)
		return RV_OK;
	return rv_fail(et, RV_E_INVALID,
				   "training data %s: its data-hash is %.16s..., the run reads %.16s...: use a copy of that text",
				   cfg->path, hex, cfg->data_hash);
}

/* Checks that a published text is what the run reads: its tokenizer's, with the same held out. */
static enum rv_err check_published(const struct manifest *m, const struct dataset_config *cfg, struct rv_errtext *et) {
	char hex[2 * RV_HASH_BYTES + 1];
	rv_hex_encode(m->tokenizer_hash.b, sizeof m->tokenizer_hash.b, hex);
	if (cfg->tokenizer_hash && cfg->tokenizer_hash[0] && strcmp(cfg->tokenizer_hash, hex) != 0)
		return rv_fail(
			et, RV_E_INVALID,
			"training data %s: published with the tokenizer %.16s..., the run's is %.16s...; use --tokenizer "
			"%.200s/%s",
			cfg->path, hex, cfg->tokenizer_hash, cfg->path, m->tokenizer_file);
	if (cfg->tokenizer_hash && m->holdout_every != cfg->holdout_every)
		return rv_fail(et, RV_E_INVALID,
					   "training data %s: published with one block of %" PRId64 " held out, the run's holdout-every is "
					   "%u: set holdout-every = %" PRId64,
					   cfg->path, m->holdout_every, cfg->holdout_every, m->holdout_every);
	return RV_OK;
}

static enum rv_err open_source(struct dataset *d, const struct dataset_config *cfg, struct rv_errtext *et) {
	RV_TRY(token_source_open(&d->source, cfg->path, cfg->vocab, et));
	RV_TRY(check_data_hash(d, cfg, et));
	if (d->source.published) {
		published_on_missing(d->source.published, &cfg->missing);
		return check_published(token_source_manifest(&d->source), cfg, et);
	}
	if (!token_source_is_text(&d->source))
		return RV_OK;
	if (cfg->tokenizer_hash)
		RV_TRY(run_tokenizer_check(cfg->tokenizer_hash, cfg->tokenizer, cfg->path, et));
	if (cfg->tokenizer)
		return open_through_cache(d, cfg, cfg->tokenizer, et);
	return d->source.is_packed ? open_bytes(d, cfg, et) : RV_OK;
}

/* What else would do for this text; "" where nothing else does. */
static const char *other_ways(const struct dataset *d) {
	if (d->n_blocks >= blocks_needed(1, d->holdout_every))
		return " or fewer data-shards";
	if (d->n_blocks >= blocks_needed(d->n_shards, 2))
		return " or a smaller holdout-every";
	return d->n_blocks >= blocks_needed(1, 2) ? ", or fewer data-shards and a smaller holdout-every" : "";
}

static enum rv_err check_size(const struct dataset *d, const struct dataset_config *cfg, struct rv_errtext *et) {
	const char *unit = token_source_is_text(&d->source) ? "bytes" : "tokens";
	uint64_t needed = blocks_needed(d->n_shards, d->holdout_every);
	if (d->n_blocks >= needed)
		return RV_OK;
	char why[96] = "any run needs";
	if (cfg->refusal != DATA_OF_ANY_RUN)
		(void)snprintf(why, sizeof why, "data-shards = %u with holdout-every = %u need", d->n_shards, d->holdout_every);
	return rv_fail(et, RV_E_RANGE, "training text %s: %" PRIu64 " %s, and %s at least %" PRIu64 ": use more text%s",
				   cfg->path, d->source.n_tokens, unit, why, needed * DATA_BLOCK,
				   cfg->refusal == DATA_TO_CHOOSE ? other_ways(d) : "");
}

/* Hashes blocks' beginnings, spread over all; this detects tokens of another vocabulary too. A
 * published text has a hash of its own, and shards that may not be here yet. */
static enum rv_err sample(struct dataset *d, struct rv_errtext *et) {
	enum { SAMPLES = 64, SAMPLE_TOKENS = 4096 };
	int32_t tokens[SAMPLE_TOKENS];
	struct rv_hasher h = rv_hasher_of("rivulet dataset");
	const uint64_t dealt[] = {d->source.n_tokens, d->n_shards, d->holdout_every, d->context, d->seed};
	for (size_t i = 0; i < sizeof dealt / sizeof dealt[0]; i++)
		rv_hash_u64(&h, dealt[i]);
	if (d->contiguous)
		rv_hash_u64(&h, d->contiguous);
	uint64_t n = d->n_blocks < SAMPLES ? d->n_blocks : SAMPLES;
	const struct manifest *m = token_source_manifest(&d->source);
	if (m) {
		struct rv_hash data;
		RV_TRY(manifest_hash(m, &data, et));
		rv_hash_update(&h, data.b, sizeof data.b);
		n = 0;
	}
	for (uint64_t i = 0; i < n; i++) {
		RV_TRY(token_source_read(&d->source, i * d->n_blocks / n * DATA_BLOCK, SAMPLE_TOKENS, tokens, et));
		rv_hash_update(&h, tokens, sizeof tokens);
	}
	d->identity = rv_hash_final(&h);
	return RV_OK;
}

static enum rv_err build(struct dataset *d, const struct dataset_config *cfg, struct rv_errtext *et) {
	RV_TRY(open_source(d, cfg, et));
	d->n_shards = cfg->order ? 1 : cfg->n_shards;
	d->has_order = cfg->order;
	d->contiguous = cfg->contiguous;
	d->holdout_every = cfg->holdout_every;
	d->context = cfg->context;
	d->seed = cfg->seed;
	d->sequences_per_block = (DATA_BLOCK - 1) / d->context;
	d->n_blocks = d->source.n_tokens / DATA_BLOCK;
	d->heldout =
		heldout_of(d->source.n_tokens, d->holdout_every, d->context, token_source_manifest(&d->source) != NULL);
	d->n_train_blocks = d->n_blocks - d->heldout.n_blocks;
	RV_TRY(check_size(d, cfg, et));
	if (d->has_order)
		d->order = sequence_order_of(d->source.n_tokens, d->holdout_every, d->context, d->seed);
	return sample(d, et);
}

enum rv_err dataset_open(const struct dataset_config *cfg, struct dataset **out, struct rv_errtext *et) {
	*out = NULL;
	RV_TRY(check_arguments(cfg->n_shards, cfg->holdout_every, cfg->context, et));
	struct dataset *d = calloc(1, sizeof *d);
	if (!d)
		return rv_fail(et, RV_E_NOMEM, "training text %s: no memory", cfg->path);
	enum rv_err e = build(d, cfg, et);
	if (e == RV_OK)
		*out = d;
	else
		dataset_close(d);
	return e;
}

void dataset_close(struct dataset *d) {
	if (!d)
		return;
	token_source_release(&d->source);
	free(d);
}

enum rv_err dataset_content(const struct dataset *d, struct data_content *out, struct rv_errtext *et) {
	const struct manifest *m = token_source_manifest(&d->source);
	if (!m)
		return token_content(&d->source, out->text, et);
	struct rv_hash hash;
	char hex[2 * RV_HASH_BYTES + 1];
	RV_TRY(manifest_hash(m, &hash, et));
	rv_hex_encode(hash.b, sizeof hash.b, hex);
	(void)snprintf(out->text, sizeof out->text, "data:%s", hex);
	return RV_OK;
}

uint64_t dataset_mapped_bytes(const struct dataset *d) {
	return token_source_bytes(&d->source);
}

struct rv_hash dataset_identity(const struct dataset *d) {
	return d->identity;
}

/* Returns the first training block of a shard that is one piece of the text. */
static uint64_t piece_begin(const struct dataset *d, uint32_t shard) {
	return d->n_train_blocks * shard / d->n_shards;
}

/* Returns how many training blocks a shard has; dealt, they are shard, shard + n_shards, ... */
static uint64_t shard_blocks(const struct dataset *d, uint32_t shard) {
	RV_ASSERT(shard < d->n_shards);
	if (d->contiguous)
		return piece_begin(d, shard + 1) - piece_begin(d, shard);
	return (d->n_train_blocks - shard + d->n_shards - 1) / d->n_shards;
}

static uint64_t shard_block(const struct dataset *d, uint32_t shard, uint64_t i) {
	return d->contiguous ? piece_begin(d, shard) + i : i * d->n_shards + shard;
}

uint64_t dataset_train_sequences(const struct dataset *d, uint32_t shard) {
	return shard_blocks(d, shard) * d->sequences_per_block;
}

uint64_t dataset_heldout_sequences(const struct dataset *d) {
	return heldout_sequences(&d->heldout);
}

typedef enum rv_err (*token_reader)(const struct token_source *s, uint64_t begin, size_t n, int32_t *out,
									struct rv_errtext *et);

/* Where a sequence is. */
struct block_place {
	uint64_t block;
	uint32_t offset; /* in tokens */
};

/* Reads context + 1 tokens from there. */
static enum rv_err read_sequence(const struct dataset *d, token_reader read, struct block_place at, int32_t *inputs,
								 int32_t *targets, struct rv_errtext *et) {
	RV_ASSERT(at.block < d->n_blocks && at.offset + d->context < DATA_BLOCK);
	int32_t tokens[DATA_BLOCK];
	enum rv_err e = read(&d->source, at.block * DATA_BLOCK + at.offset, d->context + 1, tokens, et);
	if (e != RV_OK)
		return e == RV_E_RANGE ? RV_E_CORRUPT : e;
	memcpy(inputs, tokens, d->context * sizeof *inputs);
	memcpy(targets, tokens + 1, d->context * sizeof *targets);
	return RV_OK;
}

static struct block_place train_place(const struct dataset *d, uint32_t shard, uint64_t cursor) {
	uint64_t n = dataset_train_sequences(d, shard), epoch = cursor / n;
	uint64_t key = random_u64(d->seed, STREAM_ORDER | shard, epoch);
	uint64_t i = permute_index(n, key, cursor % n);
	uint64_t train_block = shard_block(d, shard, i / d->sequences_per_block);
	uint64_t block = train_block / (d->holdout_every - 1) * d->holdout_every + train_block % (d->holdout_every - 1);
	RV_ASSERT(block % d->holdout_every != d->holdout_every - 1);
	uint32_t slack = DATA_BLOCK - 1 - d->sequences_per_block * d->context;
	uint64_t phase_seed = random_u64(d->seed, STREAM_PHASE | shard, epoch);
	uint32_t phase = (uint32_t)(random_u64(phase_seed, STREAM_PHASE, block) % (slack + 1));
	return (struct block_place){block, phase + (uint32_t)(i % d->sequences_per_block) * d->context};
}

static struct block_place order_place(const struct dataset *d, uint64_t position) {
	RV_ASSERT(d->has_order);
	const struct sequence_place at = sequence_order_at(&d->order, position);
	return (struct block_place){at.block, (uint32_t)(at.token % DATA_BLOCK)};
}

enum rv_err dataset_train_sequence(const struct dataset *d, uint32_t shard, uint64_t cursor, int32_t *inputs,
								   int32_t *targets, struct rv_errtext *et) {
	return read_sequence(d, token_source_read, train_place(d, shard, cursor), inputs, targets, et);
}

enum rv_err dataset_sequence_at(const struct dataset *d, uint64_t position, int32_t *inputs, int32_t *targets,
								struct rv_errtext *et) {
	return read_sequence(d, token_source_read, order_place(d, position), inputs, targets, et);
}

enum rv_err dataset_present_train_sequence(const struct dataset *d, uint32_t shard, uint64_t cursor, int32_t *inputs,
										   int32_t *targets, struct rv_errtext *et) {
	return read_sequence(d, token_source_read_present, train_place(d, shard, cursor), inputs, targets, et);
}

enum rv_err dataset_present_sequence_at(const struct dataset *d, uint64_t position, int32_t *inputs, int32_t *targets,
										struct rv_errtext *et) {
	return read_sequence(d, token_source_read_present, order_place(d, position), inputs, targets, et);
}

enum rv_err dataset_heldout_sequence(const struct dataset *d, uint64_t i, int32_t *inputs, int32_t *targets,
									 struct rv_errtext *et) {
	const uint64_t token = heldout_token(&d->heldout, i);
	const struct block_place at = {token / DATA_BLOCK, (uint32_t)(token % DATA_BLOCK)};
	return read_sequence(d, token_source_read, at, inputs, targets, et);
}

uint64_t dataset_heldout_used(const struct dataset *d, uint64_t max_tokens) {
	return heldout_used(&d->heldout, max_tokens);
}

uint64_t dataset_heldout_spread(const struct dataset *d, uint64_t i, uint64_t used) {
	return heldout_choice(&d->heldout, i, used);
}
