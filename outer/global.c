/* global.c: the shared state of a run and its one transition, the outer step. */
#include "outer/global.h"

#include "base/assert.h"
#include "base/chain.h"
#include "base/merkle.h"
#include "base/model_shape.h"
#include "base/weights.h"
#include "outer/codec_kernels.h"
#include "outer/float_bits.h"
#include "outer/slow_codecs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

/* Allocates n floats, zeroed. NULL: no memory. */
static float *new_vector(size_t n) {
	size_t bytes = (n * sizeof(float) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	float *v = aligned_alloc(ALIGNMENT, bytes);
	if (v)
		memset(v, 0, bytes);
	return v;
}

static enum rv_err allocate(struct global_state *g, struct rv_errtext *et) {
	const struct global_config *c = &g->cfg;
	bool ok = (g->theta = new_vector(c->n)) && (g->scratch = new_vector(c->chunks.chunk_elems));
	for (int k = 0; ok && k < global_states(c); k++)
		ok = (g->state[k] = new_vector(c->n)) != NULL;
	if (ok)
		return RV_OK;
	double mb = (double)c->n * (1 + global_states(c)) * sizeof(float) * 1e-6;
	return rv_fail(et, RV_E_NOMEM, "no memory for the shared state of %zu parameters (%.0f MB)", c->n, mb);
}

static enum rv_err check_chunks(const struct global_config *c, struct rv_errtext *et) {
	if (c->n > 0 && c->chunks.n_chunks <= GLOBAL_MAX_CHUNKS)
		return RV_OK;
	return rv_fail(et, RV_E_RANGE, "%zu parameters in chunks of %zu: must be 1..%d chunks; use larger chunks", c->n,
				   c->chunks.chunk_elems, GLOBAL_MAX_CHUNKS);
}

enum rv_err global_config_of(const struct run_config *run, size_t n, const struct fragment_layers *layers,
							 const struct rv_hash *run_hash, struct global_config *out, struct rv_errtext *et) {
	size_t chunk_elems = run->chunk_elems > 0 ? (size_t)run->chunk_elems : chunking_default_elems(n);
	*out = (struct global_config){
		.n = n, .chunks = chunking_of(n, chunk_elems), .params = outer_params_of(run), .run_hash = *run_hash};
	out->merge = merge_registry[run->merge];
	out->merge_params = (struct merge_params){.clip = run->outer_clip, .trim_share = run->trim_share};
	out->sent = codec_registry[run->codec];
	out->codec = codec_registry[run_config_mean_codec(run)];
	out->sent = out->sent == out->codec ? NULL : out->sent;
	out->optimizer = outer_registry[run->outer];
	RV_TRY(check_chunks(out, et));
	return fragments_make(&out->chunks, (uint32_t)run->fragments, layers, &out->fragments, et);
}

enum rv_err global_config_of_run(const struct run_config *run, const struct rv_hash *run_hash,
								 struct global_config *out, struct rv_errtext *et) {
	struct model_extent e;
	RV_TRY(model_extent_of(run, &e, et));
	const struct fragment_layers layers = {
		.begin = e.layers_begin, .layer_elems = e.layer_elems, .n = (int)run->n_layer};
	return global_config_of(run, e.n_params, &layers, run_hash, out, et);
}

void global_resolve_chunks(struct run_config *run) {
	struct model_extent e;
	if (run->chunk_elems != 0 || run->fragments < 2 || model_extent_of(run, &e, NULL) != RV_OK || e.n_params == 0)
		return;
	run->chunk_elems = (int64_t)chunking_fragment_elems(e.n_params, (size_t)run->fragments);
}

enum rv_err global_check_run(const struct run_config *run, struct rv_errtext *et) {
	struct global_config c;
	RV_TRY(run_config_validate(run, et));
	RV_TRY(slow_codecs_check(run, et));
	return global_config_of_run(run, &(struct rv_hash){0}, &c, et);
}

const struct codec *global_sent(const struct global_config *c) {
	return c->sent ? c->sent : c->codec;
}

const struct codec *global_sent_as(const struct global_config *c, uint8_t id) {
	const struct codec *sent = global_sent(c), *coarser = codec_by_id(id);
	if (id == 0)
		return sent;
	return coarser && codec_is_coarser(coarser, sent) ? coarser : NULL;
}

struct merge_rule global_merge(const struct global_config *c) {
	return (struct merge_rule){.ops = c->merge ? c->merge : &merge_mean,
							   .contributions = global_sent(c),
							   .mean = c->codec,
							   .params = c->merge_params};
}

int global_states(const struct global_config *c) {
	return c->optimizer->n_states + (c->merge && c->merge->centers);
}

const float *global_center(const struct global_config *c, const float *last, uint64_t round, uint32_t i) {
	return last ? last + global_round_chunk_at(c, round, i) : NULL;
}

const float *global_last_mean(const struct global_state *g) {
	const int own = g->cfg.optimizer->n_states;
	return global_states(&g->cfg) > own ? g->state[own] : NULL;
}

struct chunking global_round_chunks(const struct global_config *c, uint64_t round) {
	return fragment_chunks(&c->fragments, &c->chunks, fragment_of_round(&c->fragments, round));
}

static size_t longest_fragment(const struct global_config *c, const struct codec *codec) {
	size_t most = 0;
	for (uint32_t fragment = 0; fragment < fragments_count(&c->fragments); fragment++) {
		struct chunking part = fragment_chunks(&c->fragments, &c->chunks, fragment);
		size_t bytes = chunking_total_bytes(&part, codec);
		most = bytes > most ? bytes : most;
	}
	return most;
}

size_t global_max_payload_bytes(const struct global_config *c) {
	return longest_fragment(c, c->codec);
}

size_t global_max_sent_bytes(const struct global_config *c) {
	return longest_fragment(c, global_sent(c));
}

size_t global_round_chunk_at(const struct global_config *c, uint64_t round, uint32_t i) {
	const size_t at = fragment_chunk(&c->fragments, fragment_of_round(&c->fragments, round), i) * c->chunks.chunk_elems;
	RV_ASSERT(at < c->n);
	return at;
}

/* Returns where chunk i of round g->round begins in theta; `c` is the round's vector, of which
 * `before` values lie in earlier chunks. Asserts that the round's chunks lie one behind the other
 * there, and each within theta. */
static size_t chunk_in_theta(const struct global_state *g, const struct chunking *c, uint32_t i, size_t before) {
	const size_t at = global_round_chunk_at(&g->cfg, g->round, i), n = chunking_len(c, i);
	RV_ASSERT(before == (size_t)i * c->chunk_elems && before + n <= c->n);
	RV_ASSERT(at >= before && n <= g->cfg.n - at);
	return at;
}

/* Asserts what always holds of a configuration: the chunks cut all n values, and none but the last
 * ends within a block of either codec. */
static void check_config(const struct global_config *c) {
	RV_ASSERT(c->n > 0 && c->chunks.n == c->n);
	RV_ASSERT(c->chunks.n_chunks > 0 && c->chunks.n_chunks <= GLOBAL_MAX_CHUNKS);
	RV_ASSERT(c->chunks.chunk_elems % c->codec->block == 0);
	RV_ASSERT(c->chunks.chunk_elems % global_sent(c)->block == 0);
	RV_ASSERT(global_states(c) <= GLOBAL_MAX_STATES);
}

/* Asserts what always holds of a state: its vectors are those of its optimizer, and its chain has
 * begun. */
static void check_state(const struct global_state *g) {
	check_config(&g->cfg);
	RV_ASSERT(g->theta != NULL);
	for (int k = 0; k < GLOBAL_MAX_STATES; k++)
		RV_ASSERT((g->state[k] != NULL) == (k < global_states(&g->cfg)));
	RV_ASSERT(!rv_hash_is_zero(&g->chain));
}

/* Makes round 0 of states that are zero. */
static void start(struct global_state *g, const float *theta0) {
	const struct global_config *c = &g->cfg;
	if (c->optimizer->start)
		c->optimizer->start(g->state, c->n, &c->params);
	memcpy(g->theta, theta0, c->n * sizeof *theta0);
	g->round = 0;
	g->chain = rv_chain_start(&c->run_hash);
	check_state(g);
}

enum rv_err global_init(struct global_state *g, const struct global_config *cfg, const float *theta0,
						struct rv_errtext *et) {
	*g = (struct global_state){0};
	RV_TRY(check_chunks(cfg, et));
	check_config(cfg);
	g->cfg = *cfg;
	enum rv_err e = allocate(g, et);
	if (e != RV_OK) {
		global_release(g);
		return e;
	}
	start(g, theta0);
	return RV_OK;
}

void global_start_over(struct global_state *g, const float *theta0) {
	for (int k = 0; k < global_states(&g->cfg); k++)
		memset(g->state[k], 0, g->cfg.n * sizeof(float));
	start(g, theta0);
}

/* Compares the hashes of all pieces of state k with that of its first values. */
static bool begins_as(const struct global_config *c, int k, const float *first, const struct rv_hash *pieces) {
	const uint32_t n = global_pieces_per_vector(c);
	bool equal = true;
	for (uint32_t i = 0; i < n; i++) {
		const size_t at = (size_t)i * GLOBAL_PIECE_ELEMS, left = c->n - at;
		const struct rv_hash want =
			rv_hash_of(first, (left < GLOBAL_PIECE_ELEMS ? left : GLOBAL_PIECE_ELEMS) * sizeof *first);
		equal = equal && rv_hash_equal(&pieces[(uint32_t)(k + 1) * n + i], &want);
	}
	return equal;
}

enum rv_err global_begins_with(const struct global_config *c, const struct rv_hash *chain, const struct rv_hash *pieces,
							   bool *begins, struct rv_errtext *et) {
	const struct rv_hash start = rv_chain_start(&c->run_hash);
	const int n = global_states(c);
	float *memory = calloc((size_t)n + 1, GLOBAL_PIECE_ELEMS * sizeof *memory), *state[GLOBAL_MAX_STATES] = {NULL};
	if (!memory)
		return rv_fail(et, RV_E_NOMEM, "no memory to compare a state with the run's first");
	for (int k = 0; k < n; k++)
		state[k] = memory + (size_t)k * GLOBAL_PIECE_ELEMS;
	if (c->optimizer->start)
		c->optimizer->start(state, GLOBAL_PIECE_ELEMS, &c->params);
	*begins = rv_hash_equal(chain, &start);
	for (int k = 0; k < n; k++)
		*begins = begins_as(c, k, state[k], pieces) && *begins;
	free(memory);
	return RV_OK;
}

void global_release(struct global_state *g) {
	free(g->theta);
	free(g->scratch);
	for (int k = 0; k < GLOBAL_MAX_STATES; k++)
		free(g->state[k]);
	*g = (struct global_state){0};
}

enum rv_err global_diverged(const struct global_state *g, const float *theta_local, size_t at, size_t n,
							struct rv_errtext *et) {
	for (size_t i = at; i < at + n; i++) {
		char value[32] = "not a number"; /* which printf may call -nan */
		if (__builtin_isfinite(g->theta[i] - theta_local[i]))
			continue;
		if (!__builtin_isnan(theta_local[i]))
			snprintf(value, sizeof value, "%g", (double)theta_local[i]);
		return rv_fail(et, RV_E_RANGE,
					   "parameter %zu is %s (it was %g at the start of round %llu): training has diverged; a smaller "
					   "lr or a longer warm-up helps",
					   i, value, (double)g->theta[i], (unsigned long long)g->round);
	}
	return rv_fail(et, RV_E_RANGE, "parameters %zu to %zu: the outer gradient is too large to be sent", at, at + n - 1);
}

enum rv_err global_encode_delta(const struct global_state *g, const float *theta_local, uint8_t *out,
								struct rv_errtext *et) {
	const struct chunking c = global_round_chunks(&g->cfg, g->round);
	const struct codec *codec = global_sent(&g->cfg);
	size_t done = 0;
	for (uint32_t i = 0; i < c.n_chunks; i++) {
		const size_t at = chunk_in_theta(g, &c, i, done), n = chunking_len(&c, i);
		uint8_t *chunk = out + chunking_offset_bytes(&c, codec, i);
		enum rv_err e = codec->encode_delta(codec, g->theta + at, theta_local + at, n, chunk, et);
		if (e != RV_OK)
			return global_diverged(g, theta_local, at, n, et);
		done += n;
	}
	RV_ASSERT(done == c.n && chunking_total_bytes(&c, codec) <= global_max_sent_bytes(&g->cfg));
	return RV_OK;
}

enum rv_err global_check_sent(const struct global_state *g, const uint8_t *sent, struct rv_errtext *et) {
	const struct chunking c = global_round_chunks(&g->cfg, g->round);
	const struct codec *codec = global_sent(&g->cfg);
	const struct codec_kernels *k = codec_kernels_best();
	float *values = new_vector(c.chunk_elems); /* not g->scratch: participants that share `g` check at once */
	enum rv_err e = values ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory to check a contribution");
	RV_ASSERT(float_is_finite(GLOBAL_SENT_MAX * (float)RV_WEIGHT_SUM_MAX));
	for (uint32_t i = 0; e == RV_OK && i < c.n_chunks; i++) {
		size_t n = chunking_len(&c, i), at = global_round_chunk_at(&g->cfg, g->round, i);
		e = codec->decode(codec, sent + chunking_offset_bytes(&c, codec, i), n, values, et);
		uint32_t most = e == RV_OK ? k->absmax_bits(values, n) : 0;
		if (most > float_bits(GLOBAL_SENT_MAX))
			e = rv_fail(et, RV_E_RANGE,
						"parameters %zu to %zu: the outer gradient has a value of %g, too large to be averaged (at "
						"most %g)",
						at, at + n - 1, (double)float_of_bits(most), (double)GLOBAL_SENT_MAX);
	}
	free(values);
	return e;
}

struct rv_hash global_digest(const struct global_state *g, uint64_t round, const uint8_t *reduced) {
	const struct chunking c = global_round_chunks(&g->cfg, round);
	struct merkle_sum sum = {.n = 0};
	size_t at = 0;
	for (uint32_t i = 0; i < c.n_chunks; i++) {
		const size_t bytes = g->cfg.codec->encoded_bytes(g->cfg.codec, chunking_len(&c, i));
		RV_ASSERT(at == chunking_offset_bytes(&c, g->cfg.codec, i));
		const struct rv_hash leaf = merkle_leaf(i, reduced + at, bytes);
		merkle_add(&sum, &leaf);
		at += bytes;
	}
	RV_ASSERT(at <= global_max_payload_bytes(&g->cfg));
	const struct rv_hash root = merkle_sum_root(&sum);
	return rv_round_digest(round, &root);
}

struct rv_hash global_digest_of(const struct global_config *c, uint64_t round, const struct rv_hash *leaves) {
	struct merkle_sum sum = {.n = 0};
	for (uint32_t i = 0; i < global_round_chunks(c, round).n_chunks; i++)
		merkle_add(&sum, &leaves[i]);
	const struct rv_hash root = merkle_sum_root(&sum);
	return rv_round_digest(round, &root);
}

/* Decodes chunk i of the round's vector, as `c` cuts it, into the scratch. */
static enum rv_err decode_chunk(const struct global_state *g, const struct chunking *c, const uint8_t *reduced,
								uint32_t i, struct rv_errtext *et) {
	const uint8_t *bytes = reduced + chunking_offset_bytes(c, g->cfg.codec, i);
	RV_ASSERT(g->scratch != NULL && chunking_len(c, i) <= g->cfg.chunks.chunk_elems); /* the size of the scratch */
	enum rv_err e = g->cfg.codec->decode(g->cfg.codec, bytes, chunking_len(c, i), g->scratch, et);
	if (e == RV_OK)
		return RV_OK;
	return rv_fail_context(et, e, "reduced chunk %u of round %llu", i, (unsigned long long)g->round);
}

static void step_chunk(struct global_state *g, const struct chunking *c, uint32_t i, size_t before) {
	const size_t at = chunk_in_theta(g, c, i, before);
	float *state[GLOBAL_MAX_STATES] = {0};
	struct outer_params params = g->cfg.params;
	params.turn = g->round / fragments_count(&g->cfg.fragments);
	for (int k = 0; k < g->cfg.optimizer->n_states; k++)
		state[k] = g->state[k] + at;
	g->cfg.optimizer->step(g->theta + at, state, g->scratch, chunking_len(c, i), &params);
}

enum rv_err global_check(const struct global_state *g, const uint8_t *reduced, struct rv_errtext *et) {
	const struct chunking c = global_round_chunks(&g->cfg, g->round);
	for (uint32_t i = 0; i < c.n_chunks; i++)
		RV_TRY(decode_chunk(g, &c, reduced, i, et));
	return RV_OK;
}

/* Makes `reduced`, which global_check accepts, the last mean of what it exchanged. */
static void keep_mean(struct global_state *g, const uint8_t *reduced) {
	const struct chunking c = global_round_chunks(&g->cfg, g->round);
	float *last = g->state[g->cfg.optimizer->n_states];
	for (uint32_t i = 0; i < c.n_chunks; i++) {
		enum rv_err e = decode_chunk(g, &c, reduced, i, NULL);
		RV_ASSERT(e == RV_OK);
		memcpy(last + global_round_chunk_at(&g->cfg, g->round, i), g->scratch, chunking_len(&c, i) * sizeof *last);
	}
}

void global_advance(struct global_state *g, const uint8_t *reduced, const struct rv_hash *digest) {
	RV_ASSERT(!rv_hash_is_zero(digest) && g->round < UINT64_MAX);
	const struct rv_hash before = g->chain;
	check_state(g);
	if (global_last_mean(g))
		keep_mean(g, reduced);
	g->chain = rv_chain_next(&before, digest);
	g->round++;
	RV_ASSERT(!rv_hash_equal(&g->chain, &before));
}

/* Decodes twice, chunk by chunk: the first pass only checks. That reads a byte per parameter;
 * keeping the decoded vector would take four. */
enum rv_err global_apply(struct global_state *g, const uint8_t *reduced, const struct rv_hash *digest,
						 struct rv_errtext *et) {
	const struct chunking c = global_round_chunks(&g->cfg, g->round);
	const struct rv_hash next = rv_chain_next(&g->chain, digest);
	const uint64_t round = g->round;
	size_t done = 0;
	RV_TRY(global_check(g, reduced, et));
	for (uint32_t i = 0; i < c.n_chunks; i++) {
		enum rv_err e = decode_chunk(g, &c, reduced, i, et);
		RV_ASSERT(e == RV_OK);
		step_chunk(g, &c, i, done);
		done += chunking_len(&c, i);
	}
	RV_ASSERT(done == c.n);
	global_advance(g, reduced, digest);
	RV_ASSERT(g->round == round + 1 && rv_hash_equal(&g->chain, &next));
	return RV_OK;
}

uint32_t global_pieces_per_vector(const struct global_config *c) {
	return (uint32_t)((c->n + GLOBAL_PIECE_ELEMS - 1) / GLOBAL_PIECE_ELEMS);
}

uint32_t global_pieces(const struct global_config *c) {
	return global_pieces_per_vector(c) * (uint32_t)(1 + global_states(c));
}

const float *global_piece(const struct global_state *g, uint32_t i, size_t *n) {
	uint32_t per_vector = global_pieces_per_vector(&g->cfg), vector = i / per_vector;
	size_t at = (size_t)(i % per_vector) * GLOBAL_PIECE_ELEMS, left = g->cfg.n - at;
	RV_ASSERT(i < global_pieces(&g->cfg) && at < g->cfg.n);
	*n = left < GLOBAL_PIECE_ELEMS ? left : GLOBAL_PIECE_ELEMS;
	return (vector == 0 ? g->theta : g->state[vector - 1]) + at;
}

static struct rv_hasher full_hash_begin(const struct global_config *c, uint64_t round, const struct rv_hash *chain) {
	struct rv_hasher h = rv_hasher_of("rivulet state");
	rv_hash_u64(&h, round);
	rv_hash_update(&h, chain->b, sizeof chain->b);
	rv_hash_u64(&h, c->n);
	return h;
}

struct rv_hash global_full_hash(const struct global_state *g) {
	struct rv_hasher h = full_hash_begin(&g->cfg, g->round, &g->chain);
	size_t hashed = 0;
	check_state(g);
	for (uint32_t i = 0; i < global_pieces(&g->cfg); i++) {
		size_t n;
		const float *piece = global_piece(g, i, &n);
		struct rv_hash one = rv_hash_of(piece, n * sizeof *piece);
		rv_hash_update(&h, one.b, sizeof one.b);
		hashed += n;
	}
	RV_ASSERT(hashed == g->cfg.n * (size_t)(1 + global_states(&g->cfg)));
	return rv_hash_final(&h);
}

struct rv_hash global_full_hash_of(const struct global_config *c, uint64_t round, const struct rv_hash *chain,
								   const struct rv_hash *piece_hashes) {
	struct rv_hasher h = full_hash_begin(c, round, chain);
	rv_hash_update(&h, piece_hashes, global_pieces(c) * sizeof *piece_hashes);
	return rv_hash_final(&h);
}

/* Returns true if every state equals `state` in all pieces: pieces as before the first
 * step, which are the same everywhere in the vector. */
static bool states_are_initial(const struct global_config *c, float *const *state, const struct rv_hash *piece_hashes) {
	uint32_t per_vector = global_pieces_per_vector(c);
	for (int k = 0; k < global_states(c); k++) {
		const struct rv_hash whole = rv_hash_of(state[k], GLOBAL_PIECE_ELEMS * sizeof **state);
		for (uint32_t j = 0; j < per_vector; j++) {
			size_t left = c->n - (size_t)j * GLOBAL_PIECE_ELEMS;
			struct rv_hash want = left < GLOBAL_PIECE_ELEMS ? rv_hash_of(state[k], left * sizeof **state) : whole;
			if (!rv_hash_equal(&want, &piece_hashes[(uint32_t)(k + 1) * per_vector + j]))
				return false;
		}
	}
	return true;
}

enum rv_err global_check_initial(const struct global_config *c, const struct rv_hash *piece_hashes,
								 struct rv_errtext *et) {
	float *state[GLOBAL_MAX_STATES] = {0};
	size_t n_states = (size_t)global_states(c);
	float *all = calloc(n_states > 0 ? n_states : 1, GLOBAL_PIECE_ELEMS * sizeof *all);
	if (!all)
		return rv_fail(et, RV_E_NOMEM, "no memory to check the state that a run starts from");
	for (size_t k = 0; k < n_states; k++)
		state[k] = all + k * GLOBAL_PIECE_ELEMS;
	if (c->optimizer->start)
		c->optimizer->start(state, GLOBAL_PIECE_ELEMS, &c->params);
	bool right = states_are_initial(c, state, piece_hashes);
	free(all);
	return right ? RV_OK
				 : rv_fail(et, RV_E_CORRUPT,
						   "the outer optimizer's state, or the last mean, is not what it is before the first round");
}
