/* A run of the lab: counts, bytes, chain; the result does not depend on how many replicas run at a
 * time. */
#include "lab/methods/methods.h"
#include "lab/methods/preset.h"
#include "tests/lab/lab_fixture.h"

#include "base/clock.h"
#include "train/metrics.h"

#include <math.h>

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

static void test_counts(void **state) {
	struct lab_fixture *f = *state;
	struct lab_run *r = lab_fixture_start(f);
	double before, after;
	assert_int_equal(lab_run_eval(r, &before, NULL), RV_OK);
	for (uint64_t i = 1; i <= 4; i++) {
		struct lab_round round;
		assert_false(lab_run_finished(r));
		assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
		assert_int_equal(round.tokens, 4 * 3 * 2 * 16);
		assert_true(isfinite(round.train_loss) && round.train_loss > 0 && round.train_loss < 8);
		assert_int_equal(r->rounds_done, i);
		assert_int_equal(r->global.round, i);
		assert_int_equal(lab_run_steps(r), 3 * i);
		assert_int_equal(r->tokens_done, 4 * 3 * 2 * 16 * i);
		assert_int_equal(atomic_load(&r->steps_done), 4 * 3 * i);
	}
	assert_true(lab_run_finished(r));
	assert_int_equal(lab_run_eval(r, &after, NULL), RV_OK);
	assert_true(after < before);
	lab_run_free(r);
}

/* Whatever replica computes for whom: a round's time is one worker's. What workers have taken is
 * put there; what this machine adds to it is far below. */
static void test_time_is_of_one_worker(void **state) {
	struct lab_fixture *f = *state;
	static const int64_t of_each_us = 1000LL * 1000 * RV_US_PER_S;
	int n_run = 0;
	for (int i = 0; lab_methods[i]; i++) {
		f->cfg.method = lab_methods[i];
		f->cfg.workers = lab_methods[i]->n_replicas(4) == 4 || lab_methods[i] == &lab_method_ddp ? 4 : 1;
		if (method_check(lab_methods[i], &f->cfg.run, 4, NULL) != RV_OK)
			continue;
		struct lab_run *r = lab_fixture_start(f);
		struct lab_round round;
		for (int k = 0; k < r->n_replicas; k++)
			r->sums[k].compute_us = of_each_us * f->cfg.workers / r->n_replicas;
		assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
		assert_in_range(round.compute_us, of_each_us, 2 * of_each_us);
		lab_run_free(r);
		n_run++;
	}
	assert_true(n_run >= 8);
}

/* Bytes by formula: int8 is a byte a parameter and four per 256; ddp four a parameter, at every
 * step. */
static void test_bytes(void **state) {
	struct lab_fixture *f = *state;
	struct lab_run *r = lab_fixture_finished(f);
	size_t n = replica_n_params(r->replicas[0]);
	uint64_t payload = r->cfg.method->payload_bytes(r);
	assert_true(payload >= n + n / 256 * 4 && payload <= n + (n / 256 + 1) * 4 * 2);
	assert_int_equal(r->bytes_sent, 4 * metrics_allreduce_bytes(payload, 4));
	lab_run_free(r);
	f->cfg.method = &lab_method_ddp;
	r = lab_fixture_start(f);
	lab_fixture_finish(r);
	assert_int_equal(r->bytes_sent, 4 * 3 * (2 * 3 * n * 4 / 4));
	assert_int_equal(r->tokens_done, 4 * 3 * 4 * 2 * 16);
	lab_run_free(r);
	f->cfg.workers = 1;
	r = lab_fixture_start(f);
	lab_fixture_finish(r);
	assert_int_equal(r->bytes_sent, 0);
	lab_run_free(r);
}

static void test_parallelism_changes_nothing(void **state) {
	struct lab_fixture *f = *state;
	f->cfg.parallel = 1;
	struct rv_hash alone = lab_fixture_result(f);
	for (int parallel = 2; parallel <= 4; parallel++) {
		f->cfg.parallel = parallel;
		struct rv_hash together = lab_fixture_result(f);
		assert_hashes_equal(alone, together);
	}
}

static void test_result_depends_on_what_it_should(void **state) {
	struct lab_fixture *f = *state;
	struct rv_hash base = lab_fixture_result(f), other;
	f->cfg.run_hash.b[0] ^= 1;
	other = lab_fixture_result(f);
	assert_hashes_not_equal(base, other);
	f->cfg.run_hash.b[0] ^= 1;
	f->cfg.run.seed = 2;
	other = lab_fixture_result(f);
	assert_hashes_not_equal(base, other);
	f->cfg.run.seed = 1;
	f->cfg.workers = 3;
	other = lab_fixture_result(f);
	assert_hashes_not_equal(base, other);
	f->cfg.workers = 4;
	other = lab_fixture_result(f);
	assert_hashes_equal(base, other);
}

static void test_divergence_names_the_worker(void **state) {
	struct lab_fixture *f = *state;
	struct rv_errtext et = {0};
	struct lab_run *r = lab_fixture_start(f);
	size_t n = replica_n_params(r->replicas[2]);
	float *huge = test_malloc(n * sizeof *huge);
	for (size_t i = 0; i < n; i++)
		huge[i] = 1e30f;
	replica_set_theta(r->replicas[2], huge);
	test_free(huge);
	struct lab_round round;
	enum rv_err e = lab_run_round(r, &round, &et);
	assert_fault(e, RV_E_RANGE, &et, "worker 2");
	lab_run_free(r);
}

static void test_stop(void **state) {
	struct lab_fixture *f = *state;
	struct lab_run *r = lab_fixture_start(f);
	struct lab_round round;
	lab_run_stop(r);
	assert_int_equal(lab_run_round(r, &round, NULL), RV_E_CANCELLED);
	assert_int_equal(r->rounds_done, 0);
	lab_run_free(r);
}

static void test_unknown_names(void **state) {
	struct lab_fixture *f = *state;
	struct lab_run *r;
	struct rv_errtext et = {0};
	f->cfg.device.backend = "abacus";
	assert_fault(lab_run_new(&f->cfg, f->data, &r, &et), RV_E_NOTFOUND, &et, "abacus");
	assert_null(r);
	f->cfg.device.backend = "cpu";
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(test_counts),
		TEST(test_time_is_of_one_worker),
		TEST(test_bytes),
		TEST(test_parallelism_changes_nothing),
		TEST(test_result_depends_on_what_it_should),
		TEST(test_divergence_names_the_worker),
		TEST(test_stop),
		TEST(test_unknown_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
