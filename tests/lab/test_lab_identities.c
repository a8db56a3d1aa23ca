/* Identities of the method on the real thing: replicas with AdamW on text. */
#include "lab/methods/methods.h"
#include "tests/lab/lab_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int setup(void **state) {
	static struct lab_fixture f;
	lab_fixture_init(&f);
	*state = &f;
	return 0;
}

static int teardown(void **state) {
	lab_fixture_release(*state);
	return 0;
}

static void outer(struct lab_fixture *f, const char *name, const char *codec, double lr, double momentum) {
	lab_fixture_outer(f, name, lr, momentum);
	(void)rv_options_set(run_config_options, &f->cfg.run, "codec", codec, NULL);
}

/* A copy of the result's parameters. */
static float *result_theta(struct lab_fixture *f, size_t *n) {
	struct lab_run *r = lab_fixture_finished(f);
	*n = replica_n_params(r->replicas[0]);
	float *theta = malloc(*n * sizeof *theta);
	assert_non_null(theta);
	memcpy(theta, r->cfg.method->theta(r), *n * sizeof *theta);
	lab_run_free(r);
	return theta;
}

/* One worker with outer SGD(1) and exact encoding is plain training, for any H: Adam's state, the
 * schedule and the data cursor run on through the outer step. Rounding of theta - (theta - local)
 * is all that may differ; a large eps keeps Adam from amplifying it where a gradient is near zero.
 * A step is of size lr = 0.01. */
static void test_one_worker_is_plain_training(void **state) {
	struct lab_fixture *f = *state;
	size_t n;
	f->cfg.workers = 1;
	f->cfg.run.eps = 1e-3;
	for (int h = 1; h <= 12; h = h == 1 ? 3 : h * 2) {
		f->cfg.run.steps_per_round = h;
		f->cfg.run.rounds = 12 / h;
		f->cfg.method = &lab_method_ddp;
		float *plain = result_theta(f, &n);
		f->cfg.method = &lab_method_diloco;
		outer(f, "sgd", "fp32", 1, 0);
		float *diloco = result_theta(f, &n);
		assert_true(farthest(plain, diloco, n) < 1e-6);
		free(plain);
		free(diloco);
	}
}

/* Data-parallel training of one worker is this loop. */
static void test_ddp_of_one_is_replica_step(void **state) {
	struct lab_fixture *f = *state;
	struct step_stats stats;
	f->cfg.workers = 1;
	f->cfg.method = &lab_method_ddp;
	struct lab_run *a = lab_fixture_start(f), *b = lab_fixture_start(f);
	lab_fixture_finish(a);
	for (int i = 0; i < 12; i++)
		assert_int_equal(replica_step(b->replicas[0], &stats, NULL), RV_OK);
	assert_memory_equal(replica_theta(a->replicas[0]), replica_theta(b->replicas[0]),
						replica_n_params(a->replicas[0]) * sizeof(float));
	lab_run_free(a);
	lab_run_free(b);
}

/* Workers that read the same shard are one worker, bit for bit. (The state hash covers theta and
 * momentum.) */
static void test_identical_workers_are_one(void **state) {
	struct lab_fixture *f = *state;
	f->cfg.run.data_shards = 1;
	for (int fp32 = 0; fp32 < 2; fp32++) {
		outer(f, "nesterov", fp32 ? "fp32" : "int8", 0.7, 0.9);
		f->cfg.workers = 1;
		struct rv_hash one = lab_fixture_result(f);
		for (int k = 2; k <= 4; k += fp32 ? 2 : 1) {
			f->cfg.workers = k;
			struct rv_hash many = lab_fixture_result(f);
			assert_hashes_equal(one, many);
		}
	}
}

/* Outer SGD(1) makes theta the mean of the workers' parameters: FedAvg. */
static void test_sgd_is_the_parameter_mean(void **state) {
	struct lab_fixture *f = *state;
	outer(f, "sgd", "fp32", 1, 0);
	f->cfg.run.rounds = 1;
	size_t n;
	float *averaged = result_theta(f, &n);
	double *mean = calloc(n, sizeof *mean);
	assert_non_null(mean);
	struct lab_run *r = lab_fixture_start(f);
	for (int i = 0; i < 4; i++) {
		struct step_stats stats;
		for (int s = 0; s < 3; s++)
			assert_int_equal(replica_step(r->replicas[i], &stats, NULL), RV_OK);
		const float *theta = replica_theta(r->replicas[i]);
		for (size_t j = 0; j < n; j++)
			mean[j] += (double)theta[j] / 4;
	}
	for (size_t j = 0; j < n; j++)
		assert_true(fabs(mean[j] - (double)averaged[j]) < 1e-6);
	lab_run_free(r);
	free(mean);
	outer(f, "average", "fp32", 0.3, 0.5); /* both ignored */
	float *same = result_theta(f, &n);
	assert_memory_equal(averaged, same, n * sizeof *same);
	free(averaged);
	free(same);
}

static void test_zero_outer_lr_freezes_theta(void **state) {
	struct lab_fixture *f = *state;
	outer(f, "nesterov", "int8", 0, 0.9);
	struct lab_run *r = lab_fixture_start(f);
	size_t n = replica_n_params(r->replicas[0]);
	float *before = malloc(n * sizeof *before);
	assert_non_null(before);
	memcpy(before, r->global.theta, n * sizeof *before);
	lab_fixture_finish(r);
	assert_memory_equal(before, r->global.theta, n * sizeof *before);
	free(before);
	lab_run_free(r);
}

/* Weighing by tokens is weighing equally when all have trained on as many, bit for bit. */
static void test_equal_tokens_weigh_equally(void **state) {
	struct lab_fixture *f = *state;
	size_t n;
	outer(f, "sgd", "fp32", 1, 0);
	f->cfg.run.rounds = 1;
	float *equal = result_theta(f, &n);
	f->cfg.run.weight_by_tokens = true;
	float *by_tokens = result_theta(f, &n);
	assert_memory_equal(equal, by_tokens, n * sizeof *equal); /* a share in common is divided out: base/weights.h */
	free(equal);
	free(by_tokens);
}

/* int8 against fp32 after one round: the outer gradient is off by about a percent, theta by as much
 * of the movement. */
static void test_int8_is_close_to_fp32(void **state) {
	struct lab_fixture *f = *state;
	size_t n;
	f->cfg.run.rounds = 1;
	outer(f, "nesterov", "fp32", 0.7, 0.9);
	struct lab_run *r = lab_fixture_start(f);
	float *start = malloc(replica_n_params(r->replicas[0]) * sizeof *start);
	assert_non_null(start);
	memcpy(start, r->global.theta, replica_n_params(r->replicas[0]) * sizeof *start);
	lab_run_free(r);
	float *exact = result_theta(f, &n);
	outer(f, "nesterov", "int8", 0.7, 0.9);
	float *coded = result_theta(f, &n);
	double moved = 0, off = 0;
	for (size_t i = 0; i < n; i++) {
		moved += pow((double)exact[i] - (double)start[i], 2);
		off += pow((double)exact[i] - (double)coded[i], 2);
	}
	assert_true(sqrt(off / moved) < 0.02);
	assert_true(off > 0);
	free(start);
	free(exact);
	free(coded);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(test_one_worker_is_plain_training), TEST(test_ddp_of_one_is_replica_step),
		TEST(test_identical_workers_are_one),    TEST(test_sgd_is_the_parameter_mean),
		TEST(test_zero_outer_lr_freezes_theta),  TEST(test_equal_tokens_weigh_equally),
		TEST(test_int8_is_close_to_fp32),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
