/* averaging.c: see averaging.h. */
#include "lab/methods/averaging.h"

#include "base/rng.h"
#include "base/weights.h"
#include "lab/methods/replica_spread.h"
#include "train/metrics.h"

#include <stdlib.h>

static const char *const outer_loop[] = {
	"outer",          "codec",       "mean-codec", "mean-feedback",    "outer-lr",
	"outer-momentum", "outer-beta2", "outer-eps",  "outer-delay",      "chunk-elems",
	"late",           "mix",         "updates",    "eager-share",      "outer-clip",
	"merge",          "trim-share",  "row-size",   "weight-by-tokens", NULL};
const struct method_idle idle_outer_loop = {outer_loop, "the outer loop, of --method diloco and its kind"};

static const char *const feedback[] = {"error-feedback", NULL};
const struct method_idle idle_feedback = {feedback,
										  "the outer loop, of --method diloco and its kind, and to --method demo"};

static enum rv_err one_step(struct lab_run *r, int i, struct step_stats *out, struct rv_errtext *et) {
	return participant_step(&r->participants[i], &r->global, r->rounds_done, out, et);
}

static void train(void *ctx, int i) {
	struct lab_run *r = ctx;
	participant_begin(&r->participants[i], &r->global, r->rounds_done);
	lab_run_inner_steps(r, i, r->goals[i], one_step);
}

static void encode(void *ctx, int i) {
	struct lab_run *r = ctx;
	struct participant *p = &r->participants[i];
	const struct global_state from = eager_view(&p->eager, &r->global);
	r->faults[i] = participant_encode(p, &r->global, &r->fault_texts[i]);
	outer_device_unpin(&p->device); /* theta is pinned for one device at a time */
	if (r->faults[i] == RV_OK)
		r->faults[i] = codec_loss_measure(&from, replica_theta(r->replicas[i]), p->encoded, &r->codec_losses[i],
										  &r->fault_texts[i]);
}

enum rv_err averaging_train_to(struct lab_run *r, uint64_t step, struct rv_errtext *et) {
	for (int i = 0; i < r->n_replicas; i++)
		r->goals[i] = step;
	return lab_run_for_all(r, train, et);
}

enum rv_err averaging_train_paced(struct lab_run *r, const struct pace_round *pace, struct rv_errtext *et) {
	uint64_t begin = r->rounds_done * (uint64_t)r->cfg.run.steps_per_round;
	for (int i = 0; i < r->n_replicas; i++)
		r->goals[i] = begin + lab_run_kept_steps(r, i) + pace->steps[i];
	return lab_run_for_all(r, train, et);
}

enum rv_err averaging_encode(struct lab_run *r, struct lab_round *out, struct rv_errtext *et) {
	RV_TRY(lab_run_for_all(r, encode, et));
	for (int i = 0; i < r->n_replicas; i++) {
		out->codec_error += r->codec_losses[i].error / r->n_replicas;
		out->codec_cosine += r->codec_losses[i].cosine / r->n_replicas;
	}
	return replica_spread_measure(r, out, et);
}

int averaging_participants(const struct lab_config *c, uint64_t round, bool takes_part[LAB_MAX_WORKERS]) {
	/* "dropsync": no other user of the seed draws from this stream */
	static const uint64_t stream = 0x64726f7073796e63;
	int n = 0;
	for (int i = 0; i < c->workers; i++) {
		struct rv_rng rng = rv_rng_of((uint64_t)c->run.seed, stream);
		rng.counter = round * LAB_MAX_WORKERS + (uint64_t)i;
		takes_part[i] = c->drop_sync <= 0 || rv_rng_double(&rng) >= c->drop_sync;
		n += takes_part[i];
	}
	if (n == 0)
		takes_part[round % (uint64_t)c->workers] = true;
	return n > 0 ? n : 1;
}

/* Reduces chunk by chunk, as owners do. */
static enum rv_err reduce_chunks(struct lab_run *r, const struct merge_layout *layout, const uint8_t *const *vectors,
								 const uint32_t *weights, int n, float *scratch, struct rv_errtext *et) {
	const struct chunking c = global_round_chunks(&r->global.cfg, r->global.round);
	const struct codec *mean = r->global.cfg.codec, *sent = global_sent(&r->global.cfg);
	const struct merge_rule rule = global_merge(&r->global.cfg);
	mean_residual_begin(&r->mean_residual, &r->global.cfg, r->global.round, AVERAGING_ATTEMPT);
	for (uint32_t k = 0; k < c.n_chunks; k++) {
		const uint8_t *in[LAB_MAX_WORKERS];
		struct feedback room;
		const struct feedback *residual = mean_residual_of(&r->mean_residual, &r->global.cfg, k, &room);
		uint8_t *out = r->reduced + chunking_offset_bytes(&c, mean, k);
		for (int i = 0; i < n; i++)
			in[i] = vectors[i] + chunking_offset_bytes(&c, sent, k);
		RV_TRY(merge_roster(&rule, layout, in, weights, chunking_len(&c, k), scratch, residual, out, et));
	}
	return RV_OK;
}

enum rv_err averaging_reduce_vectors(struct lab_run *r, const struct merge_layout *layout,
									 const uint8_t *const *vectors, const uint32_t *weights, int n,
									 struct rv_errtext *et) {
	const size_t chunk = r->global.cfg.chunks.chunk_elems;
	const struct merge_rule rule = global_merge(&r->global.cfg);
	float *scratch = malloc(merge_roster_scratch(&rule, layout, chunk) * sizeof *scratch);
	if (!scratch)
		return rv_fail(et, RV_E_NOMEM, "no memory to average a chunk of %zu values", chunk);
	enum rv_err e = reduce_chunks(r, layout, vectors, weights, n, scratch, et);
	free(scratch);
	return e;
}

/* Loses the residuals of chunks that change their owner (cfg.move_owners), drawn from (seed, round,
 * chunk). */
static void move_owners(struct lab_run *r) {
	/* "ownmoves": no other user of the seed draws from this stream */
	static const uint64_t stream = 0x6f776e6d6f766573;
	const uint64_t round = r->global.round;
	const uint32_t n = r->cfg.move_owners > 0 ? global_round_chunks(&r->global.cfg, round).n_chunks : 0;
	for (uint32_t i = 0; i < n; i++) {
		struct rv_rng rng = rv_rng_of((uint64_t)r->cfg.run.seed, stream);
		rng.counter = round * GLOBAL_MAX_CHUNKS + i;
		if (rv_rng_double(&rng) < r->cfg.move_owners)
			mean_residual_lose(&r->mean_residual, &r->global.cfg, round, i);
	}
}

enum rv_err averaging_reduce(struct lab_run *r, const bool *takes_part, struct rv_errtext *et) {
	const uint8_t *vectors[LAB_MAX_WORKERS];
	uint64_t tokens[LAB_MAX_WORKERS];
	uint32_t weights[LAB_MAX_WORKERS];
	int n = 0;
	for (int i = 0; i < r->n_replicas; i++) {
		if (!takes_part[i])
			continue;
		vectors[n] = r->participants[i].encoded;
		tokens[n++] = r->participants[i].tokens;
	}
	rv_weights(tokens, n, r->cfg.run.weight_by_tokens, weights);
	const struct merge_layout layout = merge_layout_of(n, (int)r->cfg.run.row_size);
	move_owners(r);
	RV_TRY(averaging_reduce_vectors(r, &layout, vectors, weights, n, et));
	mean_residual_commit(&r->mean_residual, &r->global.cfg, r->global.round, AVERAGING_ATTEMPT);
	for (int i = 0; i < r->n_replicas; i++) /* here a mean is always committed */
		if (takes_part[i])
			participant_commit(&r->participants[i], &r->global);
	return RV_OK;
}

enum rv_err averaging_step(struct lab_run *r, struct rv_errtext *et) {
	const struct rv_hash digest = global_digest(&r->global, r->global.round, r->reduced);
	return global_apply(&r->global, r->reduced, &digest, et);
}

uint64_t averaging_payload_bytes(const struct lab_run *r) {
	const struct chunking c = global_round_chunks(&r->global.cfg, r->rounds_done);
	return chunking_total_bytes(&c, global_sent(&r->global.cfg));
}

uint64_t averaging_line_bytes(const struct lab_run *r) {
	const struct chunking c = global_round_chunks(&r->global.cfg, r->rounds_done);
	uint64_t sent = averaging_payload_bytes(r), mean = chunking_total_bytes(&c, r->global.cfg.codec);
	return sent > mean ? sent : mean;
}

uint64_t averaging_bytes(const struct lab_run *r, int participants) {
	const struct chunking c = global_round_chunks(&r->global.cfg, r->rounds_done);
	const int rows = rows_choose(participants, (int)r->cfg.run.row_size);
	return metrics_rows_bytes(averaging_payload_bytes(r), chunking_total_bytes(&c, r->global.cfg.codec),
							  merge_partial_bytes(c.n), (uint32_t)participants, (uint32_t)rows);
}

int averaging_replicas(int workers) {
	return workers;
}

const float *averaging_theta(struct lab_run *r) {
	return r->global.theta;
}

struct rv_hash averaging_state_hash(struct lab_run *r) {
	return global_full_hash(&r->global);
}
