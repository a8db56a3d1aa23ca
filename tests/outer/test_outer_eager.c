/* Eager updates as a shared and a private chain against the paper's form, in which every worker
 * steps weights and momentum of its own with D(t-1) + share (own(t) - own(t-1)): the same but for
 * roundings, which are bounded; and what is the same to the bit. */

#include "base/rng.h"
#include "outer/eager.h"
#include "tests/common/check.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1000, WORKERS = 4, ROUNDS = 40, CHUNK = 256 };

struct fixture {
	struct run_config run;
	struct global_state global;
	struct eager eager[WORKERS];
	float own[ROUNDS][WORKERS][N]; /* outer gradients */
	float mean[ROUNDS][N];
};

static struct fixture *f;

static int setup(void **state) {
	(void)state;
	f = calloc(1, sizeof *f);
	assert_non_null(f);
	run_config_defaults(&f->run);
	f->run.outer_lr = 0.7;
	f->run.outer_momentum = 0.9;
	f->run.chunk_elems = CHUNK;
	f->run.codec = CODEC_fp32;
	f->run.updates = UPDATES_EAGER;
	f->run.eager_share = 1.0 / WORKERS;
	struct rv_rng rng = rv_rng_of(7, 1);
	for (int t = 0; t < ROUNDS; t++)
		for (int k = 0; k < WORKERS; k++)
			for (int i = 0; i < N; i++)
				f->own[t][k][i] = (float)(rv_rng_double(&rng) - 0.45) * 0.01f;
	return 0;
}

static int teardown(void **state) {
	(void)state;
	for (int k = 0; k < WORKERS; k++)
		eager_release(&f->eager[k]);
	global_release(&f->global);
	free(f);
	return 0;
}

static void start(const char *outer, int workers) {
	const struct rv_hash nameless = {{0}};
	const struct fragment_layers no_layers = {.n = 0};
	struct global_config cfg;
	struct rv_rng rng = rv_rng_of(7, 2);
	float theta[N];
	(void)rv_options_set(run_config_options, &f->run, "outer", outer, NULL);
	for (int i = 0; i < N; i++)
		theta[i] = (float)rv_rng_double(&rng) - 0.5f;
	assert_int_equal(global_config_of(&f->run, N, &no_layers, &nameless, &cfg, NULL), RV_OK);
	assert_int_equal(global_init(&f->global, &cfg, theta, NULL), RV_OK);
	for (int k = 0; k < workers; k++)
		assert_int_equal(eager_init(&f->eager[k], &f->run, &cfg, theta, NULL), RV_OK);
	for (int t = 0; t < ROUNDS; t++)
		for (int i = 0; i < N; i++) {
			float sum = 0;
			for (int k = 0; k < workers; k++)
				sum += f->own[t][k][i];
			f->mean[t][i] = sum / (float)workers;
		}
}

/* The outer step of the round that is due, with fp32 bytes of its mean. */
static void apply(int t) {
	uint8_t bytes[2 * sizeof f->mean[0]];
	const struct chunking *c = &f->global.cfg.chunks;
	for (uint32_t k = 0; k < c->n_chunks; k++)
		assert_int_equal(f->global.cfg.codec->encode(f->global.cfg.codec, f->mean[t] + k * CHUNK, chunking_len(c, k),
													 bytes + chunking_offset_bytes(c, f->global.cfg.codec, k), NULL),
						 RV_OK);
	struct rv_hash digest = global_digest(&f->global, (uint64_t)t, bytes);
	assert_int_equal(global_apply(&f->global, bytes, &digest, NULL), RV_OK);
}

/* Worker k has done the steps of round t from its start. */
static void turn(int k, int t) {
	float local[N];
	for (int i = 0; i < N; i++)
		local[i] = f->eager[k].start[i] - f->own[t][k][i];
	eager_turn(&f->eager[k], &f->global, local);
}

struct direct {
	double theta[N], b[N];
};

/* The paper's worker, in double: mean and own of -1 are 0. */
static void direct_step(struct direct *w, int k, int t) {
	const double lr = (double)f->global.cfg.params.lr, mu = (double)f->global.cfg.params.momentum;
	const bool nesterov = f->global.cfg.optimizer == &outer_nesterov;
	const bool plain = f->global.cfg.optimizer == &outer_average;
	for (int i = 0; i < N; i++) {
		double before = t > 0 ? (double)f->own[t - 1][k][i] : 0, mean = t > 0 ? (double)f->mean[t - 1][i] : 0;
		double d = mean + f->run.eager_share * ((double)f->own[t][k][i] - before);
		w->b[i] = nesterov ? mu * w->b[i] + d : 0;
		w->theta[i] -= nesterov ? lr * (d + mu * w->b[i]) : plain ? d : lr * d;
	}
}

/* One rounding of a weight below 1 in each of the shared steps, one for the start; `own` is known
 * to a rounding of the weight that it was taken from, and the chain makes at most 1 / (1 - mu) of
 * each of these. */
static double bound(int t) {
	double each = 0.5 * (double)FLT_EPSILON, gain = f->run.outer_lr * (1 + 1 / (1 - f->run.outer_momentum));
	return each * (t + 3 + 3 * gain);
}

static void check_against_the_paper(const char *outer) {
	static struct direct direct[WORKERS];
	memset(direct, 0, sizeof direct);
	start(outer, WORKERS);
	for (int k = 0; k < WORKERS; k++)
		for (int i = 0; i < N; i++)
			direct[k].theta[i] = (double)f->global.theta[i];
	for (int t = 0; t < ROUNDS; t++) {
		if (t > 0)
			apply(t - 1);
		for (int k = 0; k < WORKERS; k++) {
			turn(k, t);
			direct_step(&direct[k], k, t);
			for (int i = 0; i < N; i++) {
				double off = fabs((double)f->eager[k].start[i] - direct[k].theta[i]);
				if (off > bound(t))
					fail_msg("%s, round %d, worker %d: parameter %d is off by %g, more than %g", outer, t, k, i, off,
							 bound(t));
			}
		}
	}
}

static void test_nesterov_is_the_papers(void **state) {
	(void)state;
	check_against_the_paper("nesterov");
}

static void test_sgd_is_the_papers(void **state) {
	(void)state;
	check_against_the_paper("sgd");
}

static void test_average_is_the_papers(void **state) {
	(void)state;
	check_against_the_paper("average");
}

/* What the workers go ahead by is together the outer step that is under way. */
static void test_all_shares_are_the_step_under_way(void **state) {
	(void)state;
	static float before[N];
	start("nesterov", WORKERS);
	for (int t = 0; t < ROUNDS; t++) {
		if (t > 0) {
			memcpy(before, f->global.theta, sizeof before);
			static double ahead[N];
			memset(ahead, 0, sizeof ahead);
			for (int k = 0; k < WORKERS; k++)
				for (int i = 0; i < N; i++)
					ahead[i] += (double)f->eager[k].start[i] - (double)before[i];
			apply(t - 1);
			for (int i = 0; i < N; i++)
				assert_true(fabs((double)f->global.theta[i] - ((double)before[i] + ahead[i])) < 5e-6);
		}
		for (int k = 0; k < WORKERS; k++)
			turn(k, t);
	}
}

/* To the bit: its own share is the whole step, so that it begins each round where DiLoCo would. */
static void test_one_worker_alone_is_not_late(void **state) {
	(void)state;
	f->run.eager_share = 1;
	start("nesterov", 1);
	for (int t = 0; t < 6; t++) {
		if (t > 0)
			apply(t - 1);
		float local[N];
		for (int i = 0; i < N; i++) { /* a gradient that float holds exactly */
			local[i] = f->eager[0].start[i] - f->own[t][0][i];
			f->mean[t][i] = f->eager[0].start[i] - local[i];
		}
		eager_turn(&f->eager[0], &f->global, local);
		if (t == 5)
			break;
		struct global_state then = f->global;
		float theta[N], momentum[N], *states[] = {momentum};
		memcpy(theta, then.theta, sizeof theta);
		memcpy(momentum, then.state[0], sizeof momentum);
		outer_nesterov.step(theta, states, f->mean[t], N, &then.cfg.params);
		assert_memory_equal(f->eager[0].start, theta, sizeof theta);
		assert_memory_equal(f->eager[0].state[0], momentum, sizeof momentum);
	}
}

static void test_delayed_begins_from_the_shared_weights(void **state) {
	(void)state;
	f->run.updates = UPDATES_DELAYED;
	start("adam", WORKERS);
	for (int t = 0; t < ROUNDS; t++) {
		if (t > 0)
			apply(t - 1);
		turn(0, t);
		assert_memory_equal(f->eager[0].start, f->global.theta, sizeof f->mean[0]);
	}
}

static void test_restart_and_shift(void **state) {
	(void)state;
	float *vectors[EAGER_MAX_VECTORS], moved[N], gradient[N];
	start("nesterov", WORKERS);
	assert_int_equal(eager_vectors(&f->eager[0], vectors), 2);
	assert_ptr_equal(vectors[0], f->eager[0].start);
	assert_ptr_equal(vectors[1], f->eager[0].state[0]);
	turn(0, 0);
	struct global_state view = eager_view(&f->eager[0], &f->global);
	assert_ptr_equal(view.theta, f->eager[0].start);
	for (int i = 0; i < N; i++) {
		gradient[i] = f->eager[0].start[i];
		moved[i] = f->global.theta[i] + 0.25f;
	}
	eager_shift(&f->eager[0], 0, N, f->global.theta, moved);
	for (int i = 0; i < N; i++)
		assert_true(fabs((double)f->eager[0].start[i] - (double)gradient[i] - 0.25) < 1e-6);
	eager_restart(&f->eager[0], &f->global.cfg, f->global.theta);
	assert_memory_equal(f->eager[0].start, f->global.theta, sizeof moved);
	for (int i = 0; i < N; i++)
		assert_true(f->eager[0].state[0][i] == 0);
}

static void test_waited_is_off(void **state) {
	(void)state;
	float *vectors[EAGER_MAX_VECTORS];
	f->run.updates = UPDATES_WAITED;
	start("nesterov", 1);
	assert_false(eager_is_on(&f->eager[0]));
	assert_int_equal(eager_vectors(&f->eager[0], vectors), 0);
	assert_ptr_equal(eager_reference(&f->eager[0], &f->global), f->global.theta);
	eager_turn(&f->eager[0], &f->global, f->global.theta);
	eager_shift(&f->eager[0], 0, N, f->global.theta, f->global.theta);
	eager_restart(&f->eager[0], &f->global.cfg, f->global.theta);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(test_nesterov_is_the_papers),
		TEST(test_sgd_is_the_papers),
		TEST(test_average_is_the_papers),
		TEST(test_all_shares_are_the_step_under_way),
		TEST(test_one_worker_alone_is_not_late),
		TEST(test_delayed_begins_from_the_shared_weights),
		TEST(test_restart_and_shift),
		TEST(test_waited_is_off),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
