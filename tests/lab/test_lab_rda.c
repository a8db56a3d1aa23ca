/* test_lab_rda.c: radial-directional averaging: of equal contributions it is the contribution, of orthogonal ones it
 * keeps their length, and embeddings are averaged plainly. */
#include "lab/averaging.h"
#include "lab/rda.h"
#include "tests/lab/lab_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct lab_fixture f;
static struct lab_run *r;
static size_t n, layers_begin, layers_end;
static float *merged;

static int setup(void **state) {
	(void)state;
	lab_fixture_init(&f);
	strcpy(f.cfg.run.codec, "fp32");
	f.cfg.run.chunk_elems = 256;
	f.cfg.merge = LAB_MERGE_RDA;
	r = lab_fixture_start(&f);
	n = r->global.cfg.n;
	const struct fragment_layers *l = &replica_model(r->replicas[0])->layout.layers;
	layers_begin = l->begin;
	layers_end = l->begin + (size_t)l->n * l->layer_elems;
	merged = calloc(n, sizeof *merged);
	return merged ? 0 : -1;
}

static int teardown(void **state) {
	(void)state;
	free(merged);
	lab_run_free(r);
	lab_fixture_release(&f);
	return 0;
}

/* Whether element i is in a chunk of the layers. */
static bool is_layer(size_t i) {
	size_t begin = i / 256 * 256;
	return begin >= layers_begin && begin < layers_end;
}

/* Worker i's outer gradient becomes value(i, k, ctx) for parameter k; then they are merged. */
static void merge(int workers, const uint32_t *weights, float (*value)(int i, size_t k, double ctx), double ctx) {
	const struct chunking *c = &r->global.cfg.chunks;
	const uint8_t *vectors[LAB_MAX_WORKERS];
	float x[256];
	for (int i = 0; i < workers; i++) {
		vectors[i] = r->encoded[i];
		for (uint32_t k = 0; k < c->n_chunks; k++) {
			size_t len = chunking_len(c, k);
			for (size_t j = 0; j < len; j++)
				x[j] = value(i, (size_t)k * 256 + j, ctx);
			assert_int_equal(codec_fp32.encode(x, len, r->encoded[i] + chunking_offset_bytes(c, &codec_fp32, k), NULL),
							 RV_OK);
		}
	}
	assert_int_equal(rda_reduce(r, vectors, weights, workers, NULL), RV_OK);
	for (uint32_t k = 0; k < c->n_chunks; k++)
		assert_int_equal(codec_fp32.decode(r->reduced + chunking_offset_bytes(c, &codec_fp32, k), chunking_len(c, k),
										   merged + (size_t)k * 256, NULL),
						 RV_OK);
}

static const uint32_t alike[] = {1, 1, 1, 1}, unlike[] = {3, 1, 2, 5};

static float wave(int i, size_t k, double ctx) {
	(void)i;
	(void)ctx;
	return sinf((float)k) * 0.01f;
}

static void test_of_equals_it_is_the_identity(void **state) {
	(void)state;
	for (int workers = 1; workers <= 4; workers++) {
		for (int weighted = 0; weighted < 2; weighted++) {
			merge(workers, weighted ? unlike : alike, wave, 0);
			for (size_t k = 0; k < n; k++) /* the plain mean divides in fp32 */
				assert_true(fabsf(merged[k] - wave(0, k, 0)) <= (is_layer(k) ? 0 : 1e-8f));
		}
	}
}

/* Worker i has its own places: orthogonal. */
static float own_places(int i, size_t k, double ctx) {
	return k % 4 == (size_t)i ? (float)ctx : 0;
}

static double length_of_layers(const float *x) {
	double sum = 0;
	for (size_t k = 0; k < n; k++)
		sum += is_layer(k) ? (double)x[k] * (double)x[k] : 0;
	return sqrt(sum);
}

static void test_of_orthogonal_ones_it_keeps_the_length(void **state) {
	(void)state;
	merge(1, alike, own_places, 0.5);
	double one = length_of_layers(merged);
	for (int workers = 2; workers <= 4; workers++) {
		merge(workers, alike, own_places, 0.5);
		assert_true(fabs(length_of_layers(merged) / one - 1) < 1e-2); /* places differ by a few */
		for (size_t k = 0; k < n; k++)
			if (k % 4 < (size_t)workers && !is_layer(k))
				assert_true(fabsf(merged[k] - 0.5f / (float)workers) < 1e-7f);
			else if (k % 4 < (size_t)workers)
				assert_true(fabs((double)merged[k] - 0.5 / sqrt(workers)) < 1e-3);
	}
}

/* Against the formula written out, with unequal weights and lengths. */
static float mixed(int i, size_t k, double ctx) {
	return (float)(ctx * (i + 1) * sin((double)k * (1 + 0.37 * i)));
}

static void test_it_is_its_formula(void **state) {
	(void)state;
	double norm[4] = {0}, radius = 0, length = 0, sum = 0;
	double *direction = calloc(n, sizeof *direction);
	assert_non_null(direction);
	merge(4, unlike, mixed, 0.01);
	for (int i = 0; i < 4; i++) {
		for (size_t k = 0; k < n; k++)
			norm[i] += is_layer(k) ? (double)mixed(i, k, 0.01) * (double)mixed(i, k, 0.01) : 0;
		norm[i] = sqrt(norm[i]);
		radius += unlike[i] * norm[i];
		sum += unlike[i];
	}
	for (size_t k = 0; k < n; k++) {
		for (int i = 0; i < 4; i++)
			direction[k] += unlike[i] * (double)mixed(i, k, 0.01) / norm[i] / sum;
		length += is_layer(k) ? direction[k] * direction[k] : 0;
	}
	for (size_t k = 0; k < n; k++)
		if (is_layer(k))
			assert_true(fabs((double)merged[k] - radius / sum * direction[k] / sqrt(length)) < 1e-8);
	free(direction);
}

static float opposed(int i, size_t k, double ctx) {
	return (i % 2 ? -1.0f : 1.0f) * wave(i, k, ctx);
}

static float zero(int i, size_t k, double ctx) {
	(void)i;
	(void)k;
	(void)ctx;
	return 0;
}

static void test_degenerate_contributions(void **state) {
	(void)state;
	merge(2, alike, opposed, 0);
	for (size_t k = 0; k < n; k++)
		assert_true(merged[k] == 0);
	merge(3, alike, zero, 0);
	for (size_t k = 0; k < n; k++)
		assert_true(merged[k] == 0);
}

/* In a run: identical workers are one, to the rounding of a step; several that differ move further than their mean. */
static void test_in_a_run(void **state) {
	(void)state;
	struct lab_round round;
	f.cfg.run.rounds = 1;
	strcpy(f.cfg.run.outer, "average");
	double moved[2];
	for (int rda = 0; rda < 2; rda++) {
		f.cfg.merge = rda ? LAB_MERGE_RDA : LAB_MERGE_MEAN;
		struct lab_run *run = lab_fixture_start(&f);
		float *start = malloc(n * sizeof *start);
		assert_non_null(start);
		memcpy(start, run->global.theta, n * sizeof *start);
		assert_int_equal(lab_run_round(run, &round, NULL), RV_OK);
		for (size_t k = 0; k < n; k++)
			start[k] -= run->global.theta[k];
		moved[rda] = length_of_layers(start);
		free(start);
		lab_run_free(run);
	}
	assert_true(moved[1] > moved[0] * 1.02);
	f.cfg.run.data_shards = 1;
	f.cfg.run.rounds = 3;
	f.cfg.merge = LAB_MERGE_RDA;
	struct rv_hash four = lab_fixture_result(&f), one;
	f.cfg.merge = LAB_MERGE_MEAN;
	one = lab_fixture_result(&f);
	assert_hashes_equal(one, four);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(test_of_equals_it_is_the_identity),
		TEST(test_of_orthogonal_ones_it_keeps_the_length),
		TEST(test_it_is_its_formula),
		TEST(test_degenerate_contributions),
		TEST(test_in_a_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
