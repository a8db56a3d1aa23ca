/* evil_training.c: contributions and means of a participant in the hands of an attacker, by the
 * linker (--wrap): of the real worker (rivulet-worker-evil) and of the lab (rivulet-evil). They
 * exist for tests and benches only. What they do: evil.h. */
#include "tests/attack/evil.h"

#include "base/assert.h"
#include "base/rng.h"
#include "outer/merge.h"
#include "train/outer_device.h"
#include "train/replica_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef enum rv_err encode_fn(struct outer_device *d, struct replica *r, const struct global_state *g, uint8_t *out,
							  struct rv_errtext *et);
typedef enum rv_err merge_fn(const struct merge_rule *rule, const uint8_t *const *in, const uint32_t *weights, int n_in,
							 size_t n, float *scratch, const struct feedback *feedback, uint8_t *out,
							 struct merge_measured *measured, struct rv_errtext *et);
encode_fn __real_outer_device_encode, __wrap_outer_device_encode;
merge_fn __real_merge_chunk, __wrap_merge_chunk;

/* Returns whether this replica is the attacker's. */
static bool is_evil(const struct replica *r) {
	double last = r->n_shards;
	(void)evil("last", &last);
	return (double)r->shard >= (double)r->n_shards - last;
}

static bool evil_now(uint64_t round) {
	double from = 0, until = INFINITY, ignored;
	if (evil("odd", &ignored) && round % 2 == 0)
		return false;
	(void)evil("from", &from);
	(void)evil("until", &until);
	return (double)round >= from && (double)round < until;
}

static double norm_of(const float *x, size_t n) {
	double norm2 = 0;
	for (size_t i = 0; i < n; i++)
		norm2 += (double)x[i] * (double)x[i];
	return sqrt(norm2);
}

static void fill_noise(float *x, size_t n, double factor, struct rv_rng *rng) {
	const double norm = norm_of(x, n);
	double sum = 0;
	for (size_t i = 0; i < n; i++) {
		double z = rv_rng_normal(rng);
		sum += z * z;
		x[i] = (float)z;
	}
	for (size_t i = 0; i < n; i++)
		x[i] = (float)((double)x[i] * factor * norm / sqrt(sum));
}

/* Puts chunk k of the outer optimizer's momentum in the place of x, at its norm; there is none
 * before the first outer step. */
static void copy_momentum(const struct global_state *g, uint32_t k, float *x, size_t n) {
	double times;
	if (!evil("copies", &times) || g->state[0] == NULL)
		return;
	const float *momentum = g->state[0] + global_round_chunk_at(&g->cfg, g->round, k);
	const double norm = norm_of(momentum, n), own = norm_of(x, n);
	for (size_t i = 0; i < n && norm > 0; i++)
		x[i] = (float)((double)momentum[i] * times * own / norm);
}

static void corrupt(float *x, size_t n, uint64_t round, struct rv_rng *rng) {
	double value, share = 1;
	(void)evil("share", &share);
	const size_t part = (size_t)(share * (double)n);
	if (evil("noise", &value) && part > 0)
		fill_noise(x, part, value, rng);
	if (evil("zero", &value) || (evil("half", &value) && round % 2 == 1))
		memset(x, 0, n * sizeof *x);
	if (evil("scale", &value))
		for (size_t i = 0; i < part; i++)
			x[i] = (float)((double)x[i] * value);
}

static void corrupt_vector(const struct global_state *g, uint8_t *vector) {
	const struct codec *c = global_sent(&g->cfg);
	const struct chunking chunks = global_round_chunks(&g->cfg, g->round);
	struct rv_rng rng = rv_rng_of(0x6576696c, g->round);
	float *x = malloc(g->cfg.chunks.chunk_elems * sizeof *x);
	RV_ASSERT(x);
	for (uint32_t k = 0; k < chunks.n_chunks; k++) {
		uint8_t *at = vector + chunking_offset_bytes(&chunks, c, k);
		size_t n = chunking_len(&chunks, k);
		RV_ASSERT(c->decode(c, at, n, x, NULL) == RV_OK);
		copy_momentum(g, k, x, n);
		corrupt(x, n, g->round, &rng);
		RV_ASSERT(c->encode(c, x, n, at, NULL) == RV_OK);
	}
	free(x);
}

/* One thread at a time encodes for a replica; those of the lab have one each. */
static void make_stale(uint32_t shard, uint8_t *vector, size_t n) {
	enum { REPLICAS = 1024 };
	static uint8_t *firsts[REPLICAS];
	RV_ASSERT(shard < REPLICAS);
	uint8_t **first = &firsts[shard];
	if (*first == NULL) {
		*first = malloc(n);
		RV_ASSERT(*first);
		memcpy(*first, vector, n);
	}
	memcpy(vector, *first, n);
}

enum rv_err __wrap_outer_device_encode(struct outer_device *d, struct replica *r, const struct global_state *g,
									   uint8_t *out, struct rv_errtext *et) {
	const struct chunking chunks = global_round_chunks(&g->cfg, g->round);
	double ignored;
	double nap;
	if (evil("nap", &nap))
		(void)nanosleep(&(struct timespec){.tv_sec = (time_t)nap}, NULL);
	RV_TRY(__real_outer_device_encode(d, r, g, out, et));
	evil_select((int)r->shard);
	if (!is_evil(r) || !evil_now(g->round))
		return RV_OK;
	corrupt_vector(g, out);
	if (evil("stale", &ignored))
		make_stale(r->shard, out, chunking_total_bytes(&chunks, global_sent(&g->cfg)));
	return RV_OK;
}

typedef enum rv_err step_fn(struct replica *r, const uint32_t *shards, int n, struct step_stats *out,
							struct rv_errtext *et);
step_fn __real_replica_step_over, __wrap_replica_step_over;
enum rv_err __wrap_replica_step_over(struct replica *r, const uint32_t *shards, int n, struct step_stats *out,
									 struct rv_errtext *et) {
	const uint64_t sequences = (uint64_t)r->cfg.batch * (uint64_t)r->cfg.grad_accum;
	double ignored;
	if (!evil("lazy", &ignored) || r->global_step % 2 == 0)
		return __real_replica_step_over(r, shards, n, out, et);
	*out = (struct step_stats){.loss = 1, .tokens = sequences * (uint64_t)r->cfg.context};
	r->global_step++;
	r->adam_steps++;
	r->cursor += sequences;
	return RV_OK;
}

typedef enum rv_err sequence_fn(const struct dataset *d, uint64_t position, int32_t *inputs, int32_t *targets,
								struct rv_errtext *et);
sequence_fn __real_dataset_sequence_at, __wrap_dataset_sequence_at;
enum rv_err __wrap_dataset_sequence_at(const struct dataset *d, uint64_t position, int32_t *inputs, int32_t *targets,
									   struct rv_errtext *et) {
	double few;
	return __real_dataset_sequence_at(d, evil("other", &few) ? position % (uint64_t)few : position, inputs, targets,
									  et);
}

/* As an owner. As an auditor, which alone wants no error text, it reports what it finds: else it
 * would be left out as a false auditor before anybody looks at its means. */
enum rv_err __wrap_merge_chunk(const struct merge_rule *rule, const uint8_t *const *in, const uint32_t *weights,
							   int n_in, size_t n, float *scratch, const struct feedback *feedback, uint8_t *out,
							   struct merge_measured *measured, struct rv_errtext *et) {
	static unsigned made;
	double factor, every = 1;
	RV_TRY(__real_merge_chunk(rule, in, weights, n_in, n, scratch, feedback, out, measured, et));
	if (et == NULL || !evil("mean", &factor))
		return RV_OK;
	(void)evil("every", &every);
	if (made++ % (unsigned)every != 0)
		return RV_OK;
	RV_TRY(rule->mean->decode(rule->mean, out, n, scratch, et));
	for (size_t i = 0; i < n; i++)
		scratch[i] = (float)((double)scratch[i] * factor);
	return rule->mean->encode(rule->mean, scratch, n, out, et);
}
