/* DeMo: the cosine transform of tiles against its definition, and the method against its equations
 * written out. */
#include "base/rng.h"
#include "lab/methods/dct_tiles.h"
#include "lab/methods/methods.h"
#include "lab/methods/preset.h"
#include "tests/lab/lab_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct lab_fixture f;

static int setup(void **state) {
	(void)state;
	lab_fixture_init(&f);
	f.cfg.method = &lab_method_demo;
	method_configure(&f.cfg);
	f.cfg.run.lr = 0.003;
	return 0;
}

static int teardown(void **state) {
	(void)state;
	lab_fixture_release(&f);
	return 0;
}

/* ---- tiles ---- */

static struct model_layout layout_of(struct model_tensor *tensors, int n) {
	return (struct model_layout){.tensors = tensors, .n_tensors = n};
}

static void test_tiles_cover_each_value_once(void **state) {
	(void)state;
	struct model_tensor tensors[] = {
		{.rows = 128, .cols = 192, .offset = 16, .decay = true},
		{.rows = 100, .cols = 1, .offset = 30000},
		{.rows = 58, .cols = 67, .offset = 40000},
		{.rows = 1, .cols = 1, .offset = 50000},
	};
	const int sides[][2] = {{64, 64}, {1, 50}, {58, 1}, {1, 1}}; /* 67 is prime; 100 has 50 */
	const struct model_layout layout = layout_of(tensors, 4);
	static int seen[50001];
	struct dct_tiles t;
	assert_int_equal(dct_tiles_init(&t, &layout, NULL), RV_OK);
	for (size_t i = 0; i < t.n; i++)
		for (int y = 0; y < t.tiles[i].h; y++)
			for (int x = 0; x < t.tiles[i].w; x++)
				seen[t.tiles[i].offset + (size_t)y * t.tiles[i].stride + (size_t)x]++;
	for (int k = 0; k < 4; k++) {
		const size_t begin = tensors[k].offset, end = begin + (size_t)tensors[k].rows * (size_t)tensors[k].cols;
		for (size_t i = begin; i < end; i++)
			assert_int_equal(seen[i]--, 1);
		size_t first = 0;
		while (t.tiles[first].offset != begin)
			first++;
		assert_int_equal(t.tiles[first].h, sides[k][0]);
		assert_int_equal(t.tiles[first].w, sides[k][1]);
		assert_true(t.tiles[first].decay == (k == 0));
	}
	for (size_t i = 0; i < 50001; i++)
		assert_int_equal(seen[i], 0);
	dct_tiles_release(&t);
}

static double basis(int s, int u, int j) {
	return sqrt((u == 0 ? 1.0 : 2.0) / s) * cos(M_PI * (2 * j + 1) * u / (2.0 * s));
}

static void test_transform_is_its_definition(void **state) {
	(void)state;
	struct model_tensor tensor = {.rows = 12, .cols = 50};
	const struct model_layout layout = layout_of(&tensor, 1);
	struct rv_rng r = rv_rng_of(1, 1);
	static float block[600], x[600], c[600], back[600];
	struct dct_tiles t;
	assert_int_equal(dct_tiles_init(&t, &layout, NULL), RV_OK);
	assert_int_equal(t.n, 1);
	for (int i = 0; i < 600; i++)
		block[i] = (float)rv_rng_normal(&r);
	dct_tile_get(&t.tiles[0], block, x);
	dct_forward(&t, &t.tiles[0], x, c);
	dct_inverse(&t, &t.tiles[0], c, back);
	for (int u = 0; u < 12; u++)
		for (int v = 0; v < 50; v++) {
			double want = 0;
			for (int i = 0; i < 12; i++)
				for (int j = 0; j < 50; j++)
					want += basis(12, u, i) * basis(50, v, j) * (double)x[i * 50 + j];
			assert_true(fabs(want - (double)c[u * 50 + v]) < 1e-5);
			assert_true(fabsf(back[u * 50 + v] - x[u * 50 + v]) < 1e-5f);
		}
	dct_tiles_release(&t);
}

/* ---- the method ---- */

struct coefficient {
	double size;
	int place;
};

static int by_size(const void *a, const void *b) {
	const struct coefficient *p = a, *q = b;
	return p->size < q->size ? 1 : p->size > q->size ? -1 : p->place - q->place;
}

/* The values of `whole` that its 32 largest coefficients make up, in double. */
static void largest_plainly(const struct dct_tile *tile, const double *whole, double *part) {
	static struct coefficient order[DCT_TILE_MAX];
	static double c[DCT_TILE_MAX];
	const int h = tile->h, w = tile->w;
	for (int u = 0; u < h; u++)
		for (int v = 0; v < w; v++) {
			double sum = 0;
			for (int i = 0; i < h; i++)
				for (int j = 0; j < w; j++)
					sum += basis(h, u, i) * basis(w, v, j) * whole[i * w + j];
			c[u * w + v] = sum;
			order[u * w + v] = (struct coefficient){fabs(sum), u * w + v};
		}
	qsort(order, (size_t)(h * w), sizeof *order, by_size);
	for (int i = 0; i < h * w; i++)
		part[i] = 0;
	for (int k = 0; k < 32 && k < h * w; k++)
		for (int i = 0; i < h; i++)
			for (int j = 0; j < w; j++)
				part[i * w + j] +=
					c[order[k].place] * basis(h, order[k].place / w, i) * basis(w, order[k].place % w, j);
}

/* One worker, two steps: momentum, what is taken out of it, and the direction of theta, against the
 * equations. */
static void test_demo_is_its_equations(void **state) {
	(void)state;
	f.cfg.workers = 1;
	f.cfg.run.steps_per_round = 1;
	f.cfg.run.warmup_steps = 0;
	f.cfg.run.weight_decay = 0.5;
	struct lab_run *r = lab_fixture_start(&f), *gradients = lab_fixture_start(&f);
	const struct dct_tiles *t = r->own;
	const size_t n = r->global.cfg.n;
	float *g = malloc(n * sizeof *g), *m = malloc(n * sizeof *m), *theta = malloc(n * sizeof *theta);
	assert_true(g && m && theta);
	for (int step = 0; step < 2; step++) {
		struct lab_round round;
		struct step_stats stats;
		double moved = 0, far = 0;
		memcpy(m, r->extra[0], n * sizeof *m);
		memcpy(theta, r->global.theta, n * sizeof *theta);
		replica_set_theta(gradients->replicas[0], theta);
		assert_int_equal(replica_gradient(gradients->replicas[0], g, &stats, NULL), RV_OK);
		assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
		for (size_t k = 0; k < t->n; k += 3) {
			static double whole[DCT_TILE_MAX], part[DCT_TILE_MAX];
			static float old[DCT_TILE_MAX], gradient[DCT_TILE_MAX], left[DCT_TILE_MAX], before[DCT_TILE_MAX],
				after[DCT_TILE_MAX];
			const struct dct_tile *tile = &t->tiles[k];
			const int elems = tile->h * tile->w;
			double size = 0;
			dct_tile_get(tile, m, old);
			dct_tile_get(tile, g, gradient);
			dct_tile_get(tile, r->extra[0], left);
			dct_tile_get(tile, theta, before);
			dct_tile_get(tile, r->global.theta, after);
			for (int i = 0; i < elems; i++) {
				whole[i] = 0.999 * (double)old[i] + (double)stats.lr * (double)gradient[i];
				size = fmax(size, fabs(whole[i]));
			}
			largest_plainly(tile, whole, part);
			for (int i = 0; i < elems; i++) {
				const double keep = tile->decay ? 1 - 0.5 * (double)stats.lr : 1;
				const double want = keep * (double)before[i] - (double)stats.lr * (part[i] > 0 ? 1 : -1);
				assert_true(fabs((double)left[i] - (whole[i] - part[i])) <= 1e-5 * size + 1e-12);
				if (fabs(part[i]) < 1e-4 * size)
					continue; /* the sign of nearly nothing */
				moved++;
				far += fabs((double)after[i] - want) > 1e-6;
			}
		}
		assert_true(moved > 500 && far == 0);
	}
	free(g);
	free(m);
	free(theta);
	lab_run_free(r);
	lab_run_free(gradients);
}

/* Workers that read the same data are one worker. (The hash covers theta and every momentum:
 * compare theta.) */
static void test_identical_workers_are_one(void **state) {
	(void)state;
	f.cfg.run.data_shards = 1;
	f.cfg.workers = 1;
	struct lab_run *one = lab_fixture_finished(&f);
	f.cfg.workers = 4;
	struct lab_run *four = lab_fixture_finished(&f);
	assert_memory_equal(one->global.theta, four->global.theta, one->global.cfg.n * sizeof(float));
	for (int i = 0; i < 4; i++)
		assert_memory_equal(replica_theta(four->replicas[i]), one->global.theta, one->global.cfg.n * sizeof(float));
	lab_run_free(one);
	lab_run_free(four);
}

static void test_bytes(void **state) {
	(void)state;
	struct lab_run *r = lab_fixture_start(&f);
	const struct dct_tiles *t = r->own;
	uint64_t one = 0;
	for (size_t i = 0; i < t->n; i++) {
		const uint64_t elems = (uint64_t)(t->tiles[i].h * t->tiles[i].w), kept = elems < 32 ? elems : 32;
		one += (kept * 12 + 7) / 8 + kept * 4;
	}
	struct lab_round round = lab_fixture_finish(r);
	assert_int_equal(r->cfg.method->payload_bytes(r), one);
	assert_int_equal(round.bytes, 3 * one * 3); /* three steps, to three others */
	assert_true(one <
				replica_n_params(r->replicas[0]) * sizeof(float) / 2); /* small tensors; 1/17 where tiles are whole */
	lab_run_free(r);
}

static void test_it_learns_and_is_deterministic(void **state) {
	(void)state;
	struct lab_round first, last;
	f.cfg.run.rounds = 10;
	struct lab_run *r = lab_fixture_start(&f);
	assert_int_equal(lab_run_round(r, &first, NULL), RV_OK);
	last = lab_fixture_finish(r);
	assert_true(last.train_loss < first.train_loss - 0.3);
	struct rv_hash hash = r->cfg.method->state_hash(r);
	lab_run_free(r);
	f.cfg.parallel = 1;
	struct rv_hash again = lab_fixture_result(&f);
	assert_hashes_equal(hash, again);
}

/* Identity 17, with a stop within a round. */
static void test_resumed_is_straight(void **state) {
	(void)state;
	char path[300];
	struct lab_round round;
	struct rv_hash straight = lab_fixture_result(&f);
	snprintf(path, sizeof path, "%s/checkpoint", f.dir);
	struct lab_run *stopped = lab_fixture_start(&f);
	assert_int_equal(lab_run_round(stopped, &round, NULL), RV_OK);
	lab_run_stop(stopped);
	assert_int_equal(lab_run_round(stopped, &round, NULL), RV_E_CANCELLED);
	assert_int_equal(lab_run_save(stopped, path, NULL), RV_OK);
	lab_run_free(stopped);
	struct lab_run *again = lab_fixture_start(&f);
	assert_int_equal(lab_run_load(again, path, NULL), RV_OK);
	lab_fixture_finish(again);
	struct rv_hash resumed = f.cfg.method->state_hash(again);
	assert_hashes_equal(straight, resumed);
	lab_run_free(again);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tiles_cover_each_value_once),
		cmocka_unit_test(test_transform_is_its_definition),
		TEST(test_demo_is_its_equations),
		TEST(test_identical_workers_are_one),
		TEST(test_bytes),
		TEST(test_it_learns_and_is_deterministic),
		TEST(test_resumed_is_straight),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
