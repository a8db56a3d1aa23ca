/* averaging.c: see averaging.h. */
#include "lab/methods/averaging.h"

#include "base/assert.h"
#include "base/rng.h"
#include "base/weights.h"
#include "lab/methods/attack.h"
#include "lab/methods/lines.h"
#include "lab/methods/replica_spread.h"
#include "outer/recode.h"
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
	if (r->faults[i] == RV_OK)
		r->faults[i] = attack_contribution(r, i, &r->fault_texts[i]);
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

/* Makes what is sent of a contribution: `out` (NULL: as it is encoded). RV_E_NOMEM. */
static enum rv_err recode(const struct lab_run *r, const uint8_t *encoded, const struct contribution_form *form,
						  float *scratch, uint8_t **out, struct rv_errtext *et) {
	const struct global_config *g = &r->global.cfg;
	const struct chunking c = global_round_chunks(g, r->global.round);
	const struct codec *as = global_sent_as(g, form->codec);
	*out = NULL;
	if (form->codec == 0)
		return RV_OK;
	*out = malloc(chunking_total_bytes(&c, as));
	if (!*out)
		return rv_fail(et, RV_E_NOMEM, "no memory for a contribution as %s", as->name);
	return recode_vector(&c, global_sent(g), as, encoded, *out, scratch, et);
}

/* The contributions as they are sent. */
struct sent {
	const struct averaging_given *given;
	const uint8_t *vectors[LAB_MAX_WORKERS];
	const struct codec *codecs[LAB_MAX_WORKERS];
};

/* Merges chunk `k` of those that contribute to it. */
static enum rv_err reduce_chunk(struct lab_run *r, const struct merge_layout *layout, const struct sent *s, uint32_t k,
								float *scratch, struct rv_errtext *et) {
	const struct global_config *g = &r->global.cfg;
	const struct chunking c = global_round_chunks(g, r->global.round);
	const uint8_t *in[LAB_MAX_WORKERS];
	const struct codec *codecs[LAB_MAX_WORKERS];
	uint32_t weights[LAB_MAX_WORKERS];
	int n = 0;
	for (int i = 0; i < s->given->n; i++) {
		const struct contribution_form *form = &s->given->forms[i];
		if (!slow_contributes(form->part, form->member, r->global.round, k))
			continue;
		in[n] = s->vectors[i] + chunking_offset_bytes(&c, s->codecs[i], k);
		codecs[n] = s->codecs[i];
		weights[n++] = s->given->weights[i];
	}
	RV_ASSERT(n == s->given->n || (layout->n_rows == 1 && n > 0)); /* in rows all contribute to all chunks */
	struct merge_rule rule = global_merge(g);
	struct merge_layout of_chunk = *layout;
	struct feedback room;
	rule.codecs = codecs;
	rule.center = global_center(g, global_last_mean(&r->global), r->global.round, k);
	of_chunk.length[0] = layout->n_rows == 1 ? n : layout->length[0];
	return merge_roster(&rule, &of_chunk, in, weights, chunking_len(&c, k), scratch,
						mean_residual_of(&r->mean_residual, g, k, &room),
						r->reduced + chunking_offset_bytes(&c, g->codec, k), et);
}

/* Reduces chunk by chunk, as owners do. */
static enum rv_err reduce_chunks(struct lab_run *r, const struct merge_layout *layout,
								 const struct averaging_given *given, uint8_t **recoded, float *scratch,
								 struct rv_errtext *et) {
	const struct global_config *g = &r->global.cfg;
	const uint32_t n_chunks = global_round_chunks(g, r->global.round).n_chunks;
	struct sent s = {.given = given};
	for (int i = 0; i < given->n; i++) {
		RV_TRY(recode(r, given->vectors[i], &given->forms[i], scratch, &recoded[i], et));
		s.vectors[i] = recoded[i] ? recoded[i] : given->vectors[i];
		s.codecs[i] = global_sent_as(g, given->forms[i].codec);
	}
	mean_residual_begin(&r->mean_residual, g, r->global.round, AVERAGING_ATTEMPT);
	for (uint32_t k = 0; k < n_chunks; k++)
		RV_TRY(reduce_chunk(r, layout, &s, k, scratch, et));
	return RV_OK;
}

enum rv_err averaging_reduce_given(struct lab_run *r, const struct merge_layout *layout,
								   const struct averaging_given *given, struct rv_errtext *et) {
	const size_t chunk = r->global.cfg.chunks.chunk_elems;
	const struct merge_rule rule = global_merge(&r->global.cfg);
	uint8_t *recoded[LAB_MAX_WORKERS] = {NULL};
	float *scratch = malloc(merge_roster_scratch(&rule, layout, chunk) * sizeof *scratch);
	if (!scratch)
		return rv_fail(et, RV_E_NOMEM, "no memory to average a chunk of %zu values", chunk);
	enum rv_err e = reduce_chunks(r, layout, given, recoded, scratch, et);
	for (int i = 0; i < given->n; i++)
		free(recoded[i]);
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

/* Returns the bytes of the contributions, on average. */
static uint64_t average_sent(const struct lab_run *r, const struct averaging_given *given) {
	const struct chunking c = global_round_chunks(&r->global.cfg, r->global.round);
	uint64_t sum = 0;
	for (int i = 0; i < given->n; i++) {
		const struct contribution_form *form = &given->forms[i];
		const uint64_t bytes = chunking_total_bytes(&c, global_sent_as(&r->global.cfg, form->codec));
		sum += form->part > 0 ? bytes / form->part : bytes;
	}
	return given->n > 0 ? sum / (uint64_t)given->n : 0;
}

/* Commits the contributions of those that took part. */
static void commit(struct lab_run *r, const bool *takes_part, const struct contribution_form *forms) {
	mean_residual_commit(&r->mean_residual, &r->global.cfg, r->global.round, AVERAGING_ATTEMPT);
	lab_leases_commit(r, takes_part);
	for (int i = 0; i < r->n_replicas; i++) { /* here a mean is always committed */
		if (!takes_part[i])
			continue;
		participant_send_as(&r->participants[i], &forms[i]);
		participant_commit(&r->participants[i], &r->global);
	}
}

enum rv_err averaging_reduce(struct lab_run *r, const bool *takes_part, struct rv_errtext *et) {
	struct contribution_form forms[LAB_MAX_WORKERS] = {{0}};
	struct averaging_given given = {.n = 0};
	uint64_t tokens[LAB_MAX_WORKERS];
	const struct lines_round round = lines_round_of(r, r->global.round);
	lines_forms(&r->cfg, &round, &r->global.cfg, takes_part, forms);
	for (int i = 0; i < r->n_replicas; i++) {
		if (!takes_part[i])
			continue;
		given.vectors[given.n] = r->participants[i].encoded;
		given.forms[given.n] = forms[i];
		tokens[given.n++] = r->participants[i].tokens;
	}
	rv_weights(tokens, given.n, r->cfg.run.weight_by_tokens, given.weights);
	const struct merge_layout layout = merge_layout_of(given.n, (int)r->cfg.run.row_size);
	move_owners(r);
	RV_TRY(averaging_reduce_given(r, &layout, &given, et));
	r->sent_bytes = average_sent(r, &given);
	commit(r, takes_part, forms);
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

uint64_t averaging_bytes(const struct lab_run *r, int participants) {
	const struct chunking c = global_round_chunks(&r->global.cfg, r->rounds_done);
	const int rows = rows_choose(participants, (int)r->cfg.run.row_size);
	return metrics_rows_bytes(r->sent_bytes, chunking_total_bytes(&c, r->global.cfg.codec), merge_partial_bytes(c.n),
							  (uint32_t)participants, (uint32_t)rows);
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
