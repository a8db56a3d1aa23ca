/* test_lab_presets.c: the methods that are settings of DiLoCo: each is what its paper says, and
 * what it is at the ends of its range; and what contradicts a name is refused. On replicas with
 * text; inner SGD where a paper's equation wants it. */
#include "lab/methods/methods.h"
#include "lab/methods/preset.h"
#include "tests/lab/lab_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct lab_fixture f;

static int setup(void **state) {
	(void)state;
	lab_fixture_init(&f);
	f.cfg.run.codec = CODEC_fp32;
	return 0;
}

static int teardown(void **state) {
	(void)state;
	lab_fixture_release(&f);
	return 0;
}

static void method(const struct lab_method *m, int workers) {
	f.cfg.method = m;
	f.cfg.workers = workers;
	method_configure(&f.cfg);
}

static struct rv_hash diloco(const char *name, double lr, double momentum) {
	f.cfg.method = &lab_method_diloco;
	lab_fixture_outer(&f, name, lr, momentum);
	return lab_fixture_result(&f);
}

/* Plain SGD whose learning rate stays: what equations of momentum are written for. */
static void inner_sgd(double lr) {
	(void)rv_options_set(run_config_options, &f.cfg.run, "inner", "sgd", NULL);
	f.cfg.run.lr = lr;
	f.cfg.run.clip = f.cfg.run.weight_decay = 0;
	f.cfg.run.warmup_steps = 0;
	f.cfg.run.min_lr_ratio = 1;
	f.cfg.run.merge = MERGE_mean; /* the identity is the plain mean's: gradients of single steps differ in norm */
}

/* ---- identities ---- */

static void test_fedavg_is_the_outer_average(void **state) {
	(void)state;
	struct rv_hash want = diloco("average", 1, 0), got, sgd = diloco("sgd", 1, 0);
	lab_fixture_outer(&f, "nesterov", 0.7, 0.9);
	method(&lab_method_fedavg, 4);
	got = lab_fixture_result(&f);
	assert_hashes_equal(want, got);
	assert_hashes_equal(sgd, got); /* theta - 1 d is theta - d */
}

static void test_fedprox_without_mu_is_fedavg(void **state) {
	(void)state;
	method(&lab_method_fedavg, 4);
	struct rv_hash fedavg = lab_fixture_result(&f), fedprox;
	method(&lab_method_fedprox, 4);
	fedprox = lab_fixture_result(&f);
	assert_hashes_equal(fedavg, fedprox);
	f.cfg.run.prox_mu = 0.1;
	fedprox = lab_fixture_result(&f);
	assert_hashes_not_equal(fedavg, fedprox);
}

/* The stronger the pull, the nearer the replicas stay to theta; with H = 1 there is nothing to
 * pull. */
static void test_fedprox_holds_replicas(void **state) {
	(void)state;
	static const double mu[] = {0, 1, 10};
	double norm[3];
	inner_sgd(0.05);
	method(&lab_method_fedprox, 4);
	for (int i = 0; i < 3; i++) {
		f.cfg.run.prox_mu = mu[i];
		struct lab_run *r = lab_fixture_start(&f);
		norm[i] = lab_fixture_finish(r).delta_norm;
		lab_run_free(r);
	}
	assert_true(norm[0] > norm[1] && norm[1] > norm[2] && norm[2] > 0);
	f.cfg.run.steps_per_round = 1;
	struct rv_hash free_ones, held = lab_fixture_result(&f);
	f.cfg.run.prox_mu = 0;
	free_ones = lab_fixture_result(&f);
	assert_hashes_equal(free_ones, held);
}

static void test_fedopt_is_the_adaptive_outer_optimizer(void **state) {
	(void)state;
	static const char *const names[] = {"adam", "yogi", "adagrad"};
	struct rv_hash first = {{0}};
	for (int i = 0; i < 3; i++) {
		struct rv_hash want = diloco(names[i], 0.005, 0.9), got;
		lab_fixture_outer(&f, i == 0 ? "nesterov" : names[i], 0.005, 0.9);
		method(&lab_method_fedopt, 4);
		got = lab_fixture_result(&f);
		assert_hashes_equal(want, got);
		assert_hashes_not_equal(first, got);
		first = got;
	}
}

/* theta <- theta + alpha (theta_fast - theta), against the replica driven by hand. */
static void test_lookahead_is_its_equation(void **state) {
	(void)state;
	const double alpha = 0.4;
	struct step_stats stats;
	f.cfg.run.eps = 1e-3; /* keeps Adam from amplifying a rounding where a gradient is near zero */
	lab_fixture_outer(&f, "nesterov", alpha, 0.9);
	method(&lab_method_lookahead, 1);
	struct lab_run *r = lab_fixture_finished(&f), *by_hand = lab_fixture_start(&f);
	size_t n = replica_n_params(r->replicas[0]);
	float *slow = malloc(n * sizeof *slow);
	assert_non_null(slow);
	memcpy(slow, by_hand->global.theta, n * sizeof *slow);
	for (int round = 0; round < f.cfg.run.rounds; round++) {
		for (int s = 0; s < f.cfg.run.steps_per_round; s++)
			assert_int_equal(replica_step(by_hand->replicas[0], &stats, NULL), RV_OK);
		const float *fast = replica_theta(by_hand->replicas[0]);
		for (size_t i = 0; i < n; i++)
			slow[i] = (float)((double)slow[i] + alpha * ((double)fast[i] - (double)slow[i]));
		replica_set_theta(by_hand->replicas[0], slow);
	}
	assert_true(farthest(r->global.theta, slow, n) < 2e-5);
	free(slow);
	lab_run_free(r);
	lab_run_free(by_hand);
}

/* alpha = 0 freezes theta; alpha = 1 is plain training, which one worker's ddp is. */
static void test_ends_of_lookahead(void **state) {
	(void)state;
	f.cfg.run.eps = 1e-3;
	for (int alpha = 0; alpha <= 1; alpha++) {
		lab_fixture_outer(&f, "nesterov", alpha, 0);
		method(&lab_method_lookahead, 1);
		struct lab_run *r = lab_fixture_start(&f);
		f.cfg.method = &lab_method_ddp;
		struct lab_run *other = lab_fixture_start(&f);
		lab_fixture_finish(r);
		if (alpha == 1)
			lab_fixture_finish(other);
		assert_true(farthest(r->global.theta, replica_theta(other->replicas[0]), r->global.cfg.n) <=
					(alpha == 0 ? 0 : 1e-6));
		lab_run_free(r);
		lab_run_free(other);
	}
}

static void test_snoo_is_one_worker_with_nesterov(void **state) {
	(void)state;
	f.cfg.workers = 1;
	struct rv_hash want = diloco("nesterov", 0.7, 0.9), got, still;
	method(&lab_method_snoo, 1);
	got = lab_fixture_result(&f);
	assert_hashes_equal(want, got);
	lab_fixture_outer(&f, "nesterov", 0.7, 0); /* no momentum: Lookahead */
	struct lab_run *snoo = lab_fixture_finished(&f);
	method(&lab_method_lookahead, 1);
	struct lab_run *lookahead = lab_fixture_finished(&f);
	assert_memory_equal(snoo->global.theta, lookahead->global.theta, snoo->global.cfg.n * sizeof(float));
	lab_run_free(snoo);
	lab_run_free(lookahead);
	lab_fixture_outer(&f, "nesterov", 0, 0.9); /* alpha = 0 */
	method(&lab_method_snoo, 1);
	struct lab_run *frozen = lab_fixture_start(&f);
	f.cfg.run.rounds = 4;
	struct lab_run *start = lab_fixture_start(&f);
	lab_fixture_finish(frozen);
	assert_memory_equal(frozen->global.theta, start->global.theta, start->global.cfg.n * sizeof(float));
	still = frozen->cfg.method->state_hash(frozen);
	assert_hashes_not_equal(still, got);
	lab_run_free(frozen);
	lab_run_free(start);
}

/* H = 1, inner SGD(eta), outer average: the mean of k gradients moves theta, as data-parallel SGD's
 * does. */
static void test_one_step_rounds_of_sgd_are_data_parallel(void **state) {
	(void)state;
	inner_sgd(0.1);
	f.cfg.run.steps_per_round = 1;
	f.cfg.run.rounds = 8;
	method(&lab_method_fedavg, 4);
	struct lab_run *fedavg = lab_fixture_finished(&f);
	method(&lab_method_ddp, 4);
	struct lab_run *ddp = lab_fixture_finished(&f), *start = lab_fixture_start(&f);
	size_t n = replica_n_params(ddp->replicas[0]);
	const float *want = replica_theta(ddp->replicas[0]);
	assert_true(farthest(fedavg->global.theta, want, n) < 1e-6);
	assert_true(farthest(replica_theta(start->replicas[0]), want, n) > 1e-3);
	lab_run_free(fedavg);
	lab_run_free(ddp);
	lab_run_free(start);
}

/* The same with outer Nesterov(alpha, mu): data-parallel SGD of alpha eta with that momentum,
 * driven by hand on a ddp replica whose own step gives the gradient. */
static void test_one_step_rounds_with_nesterov_are_momentum_sgd(void **state) {
	(void)state;
	const double alpha = 0.7, mu = 0.9, eta = 0.1;
	struct step_stats stats;
	const uint32_t shards[] = {0, 1, 2, 3};
	inner_sgd(eta);
	f.cfg.run.steps_per_round = 1;
	f.cfg.run.rounds = 8;
	f.cfg.workers = 4;
	lab_fixture_outer(&f, "nesterov", alpha, mu);
	f.cfg.method = &lab_method_diloco;
	struct lab_run *r = lab_fixture_finished(&f);
	f.cfg.method = &lab_method_ddp;
	struct lab_run *ddp = lab_fixture_start(&f);
	struct replica *w = ddp->replicas[0];
	size_t n = replica_n_params(w);
	float *theta = malloc(n * sizeof *theta);
	double *velocity = calloc(n, sizeof *velocity);
	assert_true(theta && velocity);
	memcpy(theta, replica_theta(w), n * sizeof *theta);
	for (int s = 0; s < 8; s++) {
		assert_int_equal(replica_step_shards(w, shards, 4, &stats, NULL), RV_OK);
		const float *moved = replica_theta(w);
		for (size_t i = 0; i < n; i++) {
			double gradient = ((double)theta[i] - (double)moved[i]) / eta;
			velocity[i] = mu * velocity[i] + gradient;
			theta[i] = (float)((double)theta[i] - alpha * eta * (gradient + mu * velocity[i]));
		}
		replica_set_theta(w, theta);
	}
	assert_true(farthest(r->global.theta, theta, n) < 1e-5);
	free(theta);
	free(velocity);
	lab_run_free(r);
	lab_run_free(ddp);
}

/* MuLoCo: an inner Muon under the outer step, workers with identical data being one. */
static void test_identical_workers_with_muon_are_one(void **state) {
	(void)state;
	(void)rv_options_set(run_config_options, &f.cfg.run, "inner", "muon", NULL);
	f.cfg.run.data_shards = 1;
	f.cfg.workers = 1;
	struct rv_hash one = diloco("nesterov", 0.7, 0.9), four;
	f.cfg.workers = 4;
	four = diloco("nesterov", 0.7, 0.9);
	assert_hashes_equal(one, four);
	(void)rv_options_set(run_config_options, &f.cfg.run, "inner", "adamw", NULL);
	four = diloco("nesterov", 0.7, 0.9);
	assert_hashes_not_equal(one, four);
}

/* ---- stop and resume ---- */

static void test_resumed_with_every_inner_optimizer(void **state) {
	(void)state;
	static const char *const inner[] = {"adamw", "sgd", "muon"};
	char path[300];
	snprintf(path, sizeof path, "%s/checkpoint", f.dir);
	f.cfg.run.prox_mu = 0.05;
	for (int i = 0; i < 3; i++) {
		struct lab_round round;
		(void)rv_options_set(run_config_options, &f.cfg.run, "inner", inner[i], NULL);
		struct rv_hash straight = lab_fixture_result(&f), resumed;
		struct lab_run *r = lab_fixture_start(&f);
		assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
		assert_int_equal(lab_run_save(r, path, NULL), RV_OK);
		lab_run_free(r);
		r = lab_fixture_start(&f);
		assert_int_equal(lab_run_load(r, path, NULL), RV_OK);
		lab_fixture_finish(r);
		resumed = r->cfg.method->state_hash(r);
		assert_hashes_equal(straight, resumed);
		lab_run_free(r);
	}
}

/* ---- refusals ---- */

static void refused(const struct lab_method *m, int workers, enum rv_err want, const char *why) {
	struct rv_errtext et = {0};
	assert_fault(method_check(m, &f.cfg.run, workers, &et), want, &et, why);
}

static void test_what_contradicts_a_name(void **state) {
	(void)state;
	lab_fixture_outer(&f, "nesterov", 0.7, 0.9);
	assert_int_equal(method_check(&lab_method_fedavg, &f.cfg.run, 4, NULL), RV_OK);
	assert_int_equal(method_check(&lab_method_papa, &f.cfg.run, 4, NULL), RV_OK);
	assert_int_equal(method_check(&lab_method_snoo, &f.cfg.run, 1, NULL), RV_OK);
	refused(&lab_method_fedprox, 4, RV_E_INVALID, "give --prox-mu");
	refused(&lab_method_lookahead, 4, RV_E_RANGE, "--workers 1");
	refused(&lab_method_snoo, 2, RV_E_RANGE, "--workers 1");
	refused(&lab_method_fedopt, 4, RV_E_RANGE, "--outer-lr 0.001 to 0.01");
	refused(&lab_method_easgd, 8, RV_E_RANGE, "mix = 0.875 or more");
	lab_fixture_outer(&f, "yogi", 0.01, 0.9);
	assert_int_equal(method_check(&lab_method_fedopt, &f.cfg.run, 4, NULL), RV_OK);
	refused(&lab_method_fedavg, 4, RV_E_INVALID, "--method diloco");
	refused(&lab_method_papa, 4, RV_E_INVALID, "outer = yogi");
	refused(&lab_method_lookahead, 1, RV_E_INVALID, "outer = yogi");
	refused(&lab_method_snoo, 1, RV_E_INVALID, "outer = yogi");
	lab_fixture_outer(&f, "sgd", 0.01, 0.9);
	refused(&lab_method_fedopt, 4, RV_E_INVALID, "outer = sgd");
	f.cfg.run.prox_mu = 0.1;
	refused(&lab_method_ddp, 4, RV_E_INVALID, "--method fedprox");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(test_fedavg_is_the_outer_average),
		TEST(test_fedprox_without_mu_is_fedavg),
		TEST(test_fedprox_holds_replicas),
		TEST(test_fedopt_is_the_adaptive_outer_optimizer),
		TEST(test_lookahead_is_its_equation),
		TEST(test_ends_of_lookahead),
		TEST(test_snoo_is_one_worker_with_nesterov),
		TEST(test_one_step_rounds_of_sgd_are_data_parallel),
		TEST(test_one_step_rounds_with_nesterov_are_momentum_sgd),
		TEST(test_identical_workers_with_muon_are_one),
		TEST(test_resumed_with_every_inner_optimizer),
		TEST(test_what_contradicts_a_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
