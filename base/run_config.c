/* run_config.c: what the fields of a run mean where they leave it open, and the checks that span
 * several of them. */
#include "base/run_config.h"

#include "base/hash.h"
#include "base/hex.h"
#include "base/rows.h"

#include <inttypes.h>
#include <string.h>

enum {
	MAX_TOKENS_PER_BATCH = 1 << 20, /* rows of an activation: times 4 n_embd they must fit comfortably in memory */
	MAX_ACT_ELEMS = 2147483647,     /* rows x widest layer: the backends' shapes are int */
	CHUNK_MULTIPLE = 256,           /* the int8 codec's block */
};

double run_config_outer_lr(const struct run_config *c) {
	return c->outer_lr == RUN_CONFIG_AUTO ? outer_usual[c->outer].lr : c->outer_lr;
}

double run_config_outer_momentum(const struct run_config *c) {
	return c->outer_momentum == RUN_CONFIG_AUTO ? outer_usual[c->outer].momentum : c->outer_momentum;
}

enum codec_choice run_config_mean_codec(const struct run_config *c) {
	if (c->mean_codec != MEAN_CODEC_auto)
		return (enum codec_choice)(c->mean_codec - 1);
	return codec_of_mean[c->codec];
}

void run_config_resolve(struct run_config *c) {
	c->outer_lr = run_config_outer_lr(c);
	c->outer_momentum = run_config_outer_momentum(c);
	c->mean_codec = 1 + (int)run_config_mean_codec(c);
}

void run_config_defaults(struct run_config *c) {
	rv_options_defaults(run_config_options, c);
}

const char *run_config_updates_name(const struct run_config *c) {
	static const char *const names[] = {
		[UPDATES_WAITED] = "waited", [UPDATES_DELAYED] = "delayed", [UPDATES_EAGER] = "eager"};
	return names[c->updates];
}

bool run_config_is_late(const struct run_config *c) {
	return c->updates != UPDATES_WAITED;
}

uint64_t run_config_lease_round(const struct run_config *c) {
	const uint64_t step = (uint64_t)c->batch * (uint64_t)c->grad_accum;
	return c->data_hash[0] ? step * (uint64_t)(c->steps_per_round + run_config_overlap(c)) : 0;
}

bool run_config_is_audited(const struct run_config *c) {
	return c->audit_chunks > 0 && c->mean_feedback == 0 && !(merge_facts[c->merge].facts & MERGE_CENTERS);
}

bool run_config_is_scored(const struct run_config *c) {
	return c->audit_training > 0 && c->data_hash[0];
}

bool run_config_can_repeat(const struct run_config *c) {
	return c->fragments == 1 && run_config_overlap(c) == 0 && c->mix == 0 && c->prox_mu == 0 &&
		   c->error_feedback == 0 && c->slow_members == SLOW_WAIT;
}

bool run_config_is_repeated(const struct run_config *c) {
	return c->audit_repeat > 0 && run_config_is_scored(c) && run_config_can_repeat(c);
}

bool run_config_keeps_contributions(const struct run_config *c) {
	return run_config_is_audited(c) || run_config_is_scored(c);
}

int64_t run_config_overlap(const struct run_config *c) {
	return run_config_is_late(c) ? c->steps_per_round : c->overlap_steps;
}

static enum rv_err check_model(const struct run_config *c, struct rv_errtext *et) {
	if (c->n_embd % c->n_head != 0)
		return rv_fail(et, RV_E_RANGE, "n-embd = %" PRId64 " is not a multiple of n-head = %" PRId64, c->n_embd,
					   c->n_head);
	int64_t rows = c->batch * c->context;
	if (rows > MAX_TOKENS_PER_BATCH)
		return rv_fail(et, RV_E_RANGE,
					   "batch x context = %" PRId64
					   " tokens in a micro-batch, at most %d: lower batch and raise grad-accum",
					   rows, MAX_TOKENS_PER_BATCH);
	int64_t inner =
		c->n_inner > 0 ? c->n_inner : 3 * c->n_embd; /* llama's usual is 8/3; gate and up lie side by side */
	int64_t widest = 2 * inner > 4 * c->n_embd ? 2 * inner : 4 * c->n_embd;
	if (rows * widest > MAX_ACT_ELEMS)
		return rv_fail(et, RV_E_RANGE,
					   "batch x context x %" PRId64 " hidden channels = %" PRId64
					   ", at most %d: lower batch and raise grad-accum",
					   widest, rows * widest, MAX_ACT_ELEMS);
	if (c->n_kv_head > 0 && c->n_head % c->n_kv_head != 0)
		return rv_fail(et, RV_E_RANGE, "n-head = %" PRId64 " is not a multiple of n-kv-head = %" PRId64, c->n_head,
					   c->n_kv_head);
	if (c->rope_scaling == ROPE_LLAMA3 && !(c->rope_high_freq > c->rope_low_freq))
		return rv_fail(et, RV_E_RANGE, "rope-high-freq = %g must be larger than rope-low-freq = %g", c->rope_high_freq,
					   c->rope_low_freq);
	return model_extent_of(c, NULL, et);
}

void run_config_take_model(struct run_config *c, const struct run_config *from) {
	_Static_assert(offsetof(struct run_config, model) == 0, "the model's fields come first, and init_hash after them");
	memcpy(c, from, offsetof(struct run_config, init_hash));
}

/* Refuses what is neither "" nor 64 hex digits. */
static enum rv_err check_hash(const char *name, const char *hex, struct rv_errtext *et) {
	struct rv_hash ignored;
	if (!hex[0] || rv_hex_decode(hex, ignored.b, RV_HASH_BYTES))
		return RV_OK;
	return rv_fail(et, RV_E_INVALID, "%s = %.70s: must be %d hex digits, or empty", name, hex, 2 * RV_HASH_BYTES);
}

/* Refuses a value that is neither at least 0 nor RUN_CONFIG_AUTO. */
static enum rv_err check_auto(const char *name, double value, struct rv_errtext *et) {
	if (value >= 0 || value == RUN_CONFIG_AUTO)
		return RV_OK;
	return rv_fail(et, RV_E_RANGE, "%s = %g: must be at least 0, or -1 for the outer optimizer's default", name, value);
}

/* Refuses outer optimizers that are not linear in outer gradients, or not alike in every round: the
 * private chain of outer/eager.h needs both. */
static enum rv_err check_eager(const struct run_config *c, struct rv_errtext *et) {
	struct registry_names linear;
	registry_names(outer_facts, OUTER_LINEAR, &linear);
	if (!(outer_facts[c->outer].facts & OUTER_LINEAR))
		return rv_fail(et, RV_E_INVALID,
					   "updates = eager with outer = %s: its step is not linear in the outer gradients, so a worker "
					   "cannot make its own share of it; outer = %s, or updates = delayed",
					   outer_facts[c->outer].name, linear.text);
	if (c->eager_share <= 0)
		return rv_fail(et, RV_E_INVALID,
					   "updates = eager: eager-share says how much of its own outer gradient a worker goes ahead by: "
					   "give 1 / the number of workers that the run is made for, as eager-share = 0.25 for four");
	return RV_OK;
}

enum rv_err run_config_check_updates(const struct run_config *c, struct rv_errtext *et) {
	const char *updates = run_config_updates_name(c);
	if (!run_config_is_late(c))
		return RV_OK;
	if (c->overlap_steps > 0)
		return rv_fail(et, RV_E_INVALID,
					   "updates = %s and overlap-steps = %" PRId64
					   ": all steps of a round overlap the exchange of the one before; leave overlap-steps at 0",
					   updates, c->overlap_steps);
	if (c->fragments > 1 || c->mix > 0)
		return rv_fail(
			et, RV_E_UNSUPPORTED,
			"updates = %s with %s: rounds exchange all parameters, and replicas take the shared ones; leave it "
			"out, or stream with overlap-steps (updates = waited)",
			updates, c->fragments > 1 ? "fragments" : "mix");
	if (c->round_ms > 0)
		return rv_fail(
			et, RV_E_UNSUPPORTED,
			"updates = %s with round-ms: steps that overlap an exchange are counted, not timed; leave out one "
			"of them",
			updates);
	if (c->late == RUN_LATE_DISCARD)
		return rv_fail(
			et, RV_E_INVALID,
			"updates = %s with late = discard: a joiner is ready later than the others by the time of an exchange "
			"in every round, and might be left out of all of them; use late = keep",
			updates);
	return c->updates == UPDATES_EAGER ? check_eager(c, et) : RV_OK;
}

static enum rv_err check_merge(const struct run_config *c, struct rv_errtext *et) {
	if (c->min_workers < merge_least[c->merge])
		return rv_fail(et, RV_E_INVALID,
					   "merge = %s with min-workers = %" PRId64 ": needs at least %d workers in each round; raise "
					   "min-workers, or merge = clipped",
					   merge_facts[c->merge].name, c->min_workers, merge_least[c->merge]);
	const int row = rows_shortest((int)c->row_size);
	if (row < merge_least[c->merge])
		return rv_fail(
			et, RV_E_INVALID,
			"merge = %s with row-size = %" PRId64
			": it merges row by row, needs at least %d workers in each, and some would have %d; raise row-size, "
			"or merge = clipped",
			merge_facts[c->merge].name, c->row_size, merge_least[c->merge], row);
	return RV_OK;
}

static enum rv_err check_outer_and_round(const struct run_config *c, struct rv_errtext *et) {
	RV_TRY(check_auto("outer-lr", c->outer_lr, et));
	RV_TRY(check_auto("outer-momentum", c->outer_momentum, et));
	RV_TRY(check_merge(c, et));
	RV_TRY(run_config_check_updates(c, et));
	if (c->chunk_elems % CHUNK_MULTIPLE != 0)
		return rv_fail(et, RV_E_RANGE, "chunk-elems = %" PRId64 " is not a multiple of %d", c->chunk_elems,
					   CHUNK_MULTIPLE);
	if (c->fragments > c->n_layer + 1)
		return rv_fail(et, RV_E_RANGE,
					   "fragments = %" PRId64 ": at most n-layer + 1 = %" PRId64
					   ": layers are dealt to all fragments but the last, which has the rest",
					   c->fragments, c->n_layer + 1);
	if (c->fragments > c->rounds)
		return rv_fail(et, RV_E_RANGE,
					   "fragments = %" PRId64 " with rounds = %" PRId64
					   ": a round exchanges one fragment, in turn, so %" PRId64
					   " of them would never be exchanged; use at least as many rounds as fragments",
					   c->fragments, c->rounds, c->fragments - c->rounds);
	if (c->overlap_steps > c->steps_per_round)
		return rv_fail(et, RV_E_RANGE,
					   "overlap-steps = %" PRId64 " is more than steps-per-round = %" PRId64
					   ": a round would be encoded before the previous one is adopted",
					   c->overlap_steps, c->steps_per_round);
	if (c->round_ms > 0 && c->overlap_steps > 0)
		return rv_fail(
			et, RV_E_RANGE,
			"round-ms and overlap-steps: give one of them; steps that overlap an exchange are counted, not timed");
	return RV_OK;
}

enum rv_err run_config_check_leases(const struct run_config *c, struct rv_errtext *et) {
	struct run_config usual;
	run_config_defaults(&usual);
	if (c->data_shards != usual.data_shards)
		return rv_fail(et, RV_E_INVALID,
					   "data-shards = %" PRId64
					   ": the run hands its text out, and leases sequences to its members, however many they are: "
					   "leave data-shards out",
					   c->data_shards);
	if (c->data_split != usual.data_split)
		return rv_fail(et, RV_E_INVALID,
					   "data-split: the run hands its text out, and leases sequences to its members: leave it out");
	return RV_OK;
}

enum rv_err run_config_validate(const struct run_config *c, struct rv_errtext *et) {
	RV_TRY(check_model(c, et));
	RV_TRY(check_hash("init-hash", c->init_hash, et));
	RV_TRY(check_hash("tokenizer-hash", c->tokenizer_hash, et));
	RV_TRY(check_hash("data-hash", c->data_hash, et));
	if (c->data_hash[0])
		RV_TRY(run_config_check_leases(c, et));
	return check_outer_and_round(c, et);
}

enum rv_err run_config_parse(struct run_config *c, const char *source, const char *text, struct rv_errtext *et) {
	struct run_config parsed;
	run_config_defaults(&parsed);
	RV_TRY(rv_options_parse_text(run_config_options, &parsed, source, text, et));
	RV_TRY(rv_options_check_required(run_config_options, &parsed, et));
	enum rv_err e = run_config_validate(&parsed, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "%s", source);
	*c = parsed;
	return RV_OK;
}
