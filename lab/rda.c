/* rda.c: see rda.h. Sums over parameters are in double, in a fixed order; of a chunk all contributions are decoded at a
 * time. */
#include "lab/rda.h"

#include <math.h>
#include <stdlib.h>

struct merge {
	struct lab_run *run;
	const uint8_t *const *vectors;
	const uint32_t *weights;
	int n;
	struct chunking chunks;
	size_t layers_begin, layers_end;
	float *values; /* (n, chunk_elems): the contributions to a chunk; the merged one takes the place of the first */
	double share[LAB_MAX_WORKERS];     /* w_i / sum w */
	double norm[LAB_MAX_WORKERS];      /* squared, then |v_i| */
	double direction[LAB_MAX_WORKERS]; /* what of v_i goes into the mean direction; then into the result */
	double squared;                    /* of the mean direction */
};

static bool is_layer(const struct merge *m, uint32_t chunk) {
	size_t at = global_round_chunk_at(&m->run->global.cfg, m->run->global.round, chunk);
	return at >= m->layers_begin && at < m->layers_end;
}

static float *values_of(const struct merge *m, int i) {
	return m->values + (size_t)i * m->chunks.chunk_elems;
}

static enum rv_err decode(const struct merge *m, uint32_t chunk, struct rv_errtext *et) {
	const struct codec *sent = global_sent(&m->run->global.cfg);
	size_t at = chunking_offset_bytes(&m->chunks, sent, chunk);
	for (int i = 0; i < m->n; i++)
		RV_TRY(sent->decode(m->vectors[i] + at, chunking_len(&m->chunks, chunk), values_of(m, i), et));
	return RV_OK;
}

/* Element k of the sum of the contributions, each times its factor. */
static double combined(const struct merge *m, size_t k) {
	double sum = 0;
	for (int i = 0; i < m->n; i++)
		sum += m->direction[i] * (double)values_of(m, i)[k];
	return sum;
}

static void add_norms(struct merge *m, size_t len) {
	for (int i = 0; i < m->n; i++)
		for (size_t k = 0; k < len; k++)
			m->norm[i] += (double)values_of(m, i)[k] * (double)values_of(m, i)[k];
}

static void add_direction(struct merge *m, size_t len) {
	for (size_t k = 0; k < len; k++)
		m->squared += combined(m, k) * combined(m, k);
}

static enum rv_err over_layers(struct merge *m, void (*add)(struct merge *m, size_t len), struct rv_errtext *et) {
	for (uint32_t chunk = 0; chunk < m->chunks.n_chunks; chunk++) {
		if (!is_layer(m, chunk))
			continue;
		RV_TRY(decode(m, chunk, et));
		add(m, chunking_len(&m->chunks, chunk));
	}
	return RV_OK;
}

/* m->direction: what of each contribution is in the result. */
static enum rv_err weigh(struct merge *m, struct rv_errtext *et) {
	double mean_norm = 0;
	RV_TRY(over_layers(m, add_norms, et));
	for (int i = 0; i < m->n; i++) {
		m->norm[i] = sqrt(m->norm[i]);
		m->direction[i] = m->norm[i] > 0 ? m->share[i] / m->norm[i] : 0;
		mean_norm += m->share[i] * m->norm[i];
	}
	RV_TRY(over_layers(m, add_direction, et));
	for (int i = 0; i < m->n; i++)
		m->direction[i] = m->squared > 0 ? m->direction[i] * mean_norm / sqrt(m->squared) : m->share[i];
	return RV_OK;
}

static enum rv_err combine_chunk(struct merge *m, uint32_t chunk, struct rv_errtext *et) {
	const struct codec *mean = m->run->global.cfg.codec, *sent = global_sent(&m->run->global.cfg);
	size_t len = chunking_len(&m->chunks, chunk);
	uint8_t *out = m->run->reduced + chunking_offset_bytes(&m->chunks, mean, chunk);
	if (is_layer(m, chunk)) {
		RV_TRY(decode(m, chunk, et));
		for (size_t k = 0; k < len; k++)
			m->values[k] = (float)combined(m, k);
		return mean->encode(m->values, len, out, et);
	}
	const uint8_t *in[LAB_MAX_WORKERS];
	for (int i = 0; i < m->n; i++)
		in[i] = m->vectors[i] + chunking_offset_bytes(&m->chunks, sent, chunk);
	const struct merge_rule rule = global_merge(&m->run->global.cfg);
	return merge_chunk(&rule, in, m->weights, m->n, len, m->values, out, NULL, et);
}

static enum rv_err merge_all(struct merge *m, struct rv_errtext *et) {
	RV_TRY(weigh(m, et));
	for (uint32_t chunk = 0; chunk < m->chunks.n_chunks; chunk++)
		RV_TRY(combine_chunk(m, chunk, et));
	return RV_OK;
}

enum rv_err rda_reduce(struct lab_run *r, const uint8_t *const *vectors, const uint32_t *weights, int n,
					   struct rv_errtext *et) {
	const struct fragment_layers *layers = &replica_model(r->replicas[0])->layout.layers;
	struct merge m = {.run = r,
					  .vectors = vectors,
					  .weights = weights,
					  .n = n,
					  .chunks = global_round_chunks(&r->global.cfg, r->global.round),
					  .layers_begin = layers->begin,
					  .layers_end = layers->begin + (size_t)layers->n * layers->layer_elems};
	uint64_t sum = 0;
	for (int i = 0; i < n; i++)
		sum += weights[i];
	for (int i = 0; i < n; i++)
		m.share[i] = (double)weights[i] / (double)sum;
	m.values = malloc((size_t)n * m.chunks.chunk_elems * sizeof *m.values);
	if (!m.values)
		return rv_fail(et, RV_E_NOMEM, "no memory to merge %d chunks of %zu values", n, m.chunks.chunk_elems);
	enum rv_err e = merge_all(&m, et);
	free(m.values);
	return e;
}
