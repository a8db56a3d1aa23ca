/* test_train_inner.c: inner optimizers in a replica: SGD is its equation, Muon learns, all resume
 * to the bit; and FedProx's term, whose fixed points are known. */
#include "tests/train/train_fixture.h"

#include "train/inner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct run_config config_of(const char *inner) {
	struct run_config c = fixture_config();
	(void)rv_options_set(run_config_options, &c, "inner", inner, NULL);
	return c;
}

/* Without decay, clipping and schedule a step is lr times something that does not depend on lr;
 * decay adds lr wd p. */
static void test_sgd_is_its_equation(void **state) {
	(void)state;
	struct run_config cfg = config_of("sgd");
	struct fixture_run f;
	cfg.clip = cfg.weight_decay = 0;
	cfg.warmup_steps = 0;
	cfg.min_lr_ratio = 1;
	cfg.lr = 0.01;
	fixture_run_init(&f, &cfg, "ref");
	float *start = fixture_copy_theta(f.replica);
	struct run_config twice = cfg, decaying = cfg;
	twice.lr = 0.02;
	decaying.weight_decay = 0.5;
	struct replica *b = fixture_replica(&f, &twice), *c = fixture_replica(&f, &decaying);
	fixture_steps(f.replica, 1);
	fixture_steps(b, 1);
	fixture_steps(c, 1);
	const struct model *m = replica_model(c);
	double moved = 0;
	for (int s = 0; s < m->n_spans; s++)
		for (size_t i = m->spans[s].begin; i < m->spans[s].end; i++) {
			double once = (double)replica_theta(f.replica)[i] - (double)start[i];
			double decay = m->spans[s].decay ? 0.01 * 0.5 * (double)start[i] : 0;
			assert_true(fabs((double)replica_theta(b)[i] - (double)start[i] - 2 * once) < 1e-6);
			assert_true(fabs((double)replica_theta(c)[i] - ((double)start[i] + once - decay)) < 1e-6);
			moved += fabs(once);
		}
	assert_true(moved > 0);
	free(start);
	replica_free(b);
	replica_free(c);
	fixture_run_release(&f);
}

static double heldout_after(const char *inner, double lr, int n) {
	struct run_config cfg = config_of(inner);
	struct fixture_run f;
	double loss = 0;
	cfg.lr = lr;
	cfg.rounds = 16;
	fixture_run_init(&f, &cfg, "cpu");
	fixture_steps(f.replica, n);
	assert_int_equal(replica_eval(f.replica, NULL, 4, &loss, NULL), RV_OK);
	fixture_run_release(&f);
	return loss;
}

/* Each at its better one of some learning rates. */
static void test_muon_learns_better_than_sgd(void **state) {
	(void)state;
	static const double rates[] = {0.003, 0.01, 0.03, 0.1};
	double sgd = INFINITY, muon = INFINITY;
	for (int i = 0; i < 4; i++) {
		sgd = fmin(sgd, heldout_after("sgd", 10 * rates[i], 40));
		muon = fmin(muon, heldout_after("muon", rates[i], 40));
	}
	assert_true(muon < sgd - 0.1);
}

/* Muon's matrices move by its scale, not by AdamW's; all else moves as with AdamW, to the bit in
 * the first step. */
static void test_muon_is_adamw_outside_of_the_layers_matrices(void **state) {
	(void)state;
	static const char *const families[] = {"gpt2", "llama"};
	for (int k = 0; k < 2; k++) {
		struct run_config cfg = config_of("muon"), adamw = config_of("adamw");
		struct fixture_run f;
		(void)rv_options_set(run_config_options, &cfg, "model", families[k], NULL);
		(void)rv_options_set(run_config_options, &adamw, "model", families[k], NULL);
		fixture_run_init(&f, &cfg, "ref");
		struct replica *other = fixture_replica(&f, &adamw);
		fixture_steps(f.replica, 1);
		fixture_steps(other, 1);
		const struct model_layout *l = &replica_model(other)->layout;
		size_t end = l->layers.begin + (size_t)l->layers.n * l->layers.layer_elems;
		int hidden = 0;
		for (int i = 0; i < l->n_tensors; i++) {
			const struct model_tensor *t = &l->tensors[i];
			bool is_hidden = t->cols > 1 && t->offset >= l->layers.begin && t->offset < end;
			bool same = memcmp(replica_theta(f.replica) + t->offset, replica_theta(other) + t->offset,
							   t->elems * sizeof(float)) == 0;
			assert_int_equal(same, !is_hidden);
			hidden += is_hidden;
		}
		assert_int_equal(hidden, 2 * (k == 0 ? 4 : 7)); /* of 2 layers */
		replica_free(other);
		fixture_run_release(&f);
	}
}

static void test_resumed_is_straight(void **state) {
	(void)state;
	for (int i = 0; inner_registry[i]; i++) {
		struct run_config cfg = config_of(inner_registry[i]->name);
		struct fixture_run f;
		cfg.prox_mu = 0.1;
		fixture_run_init(&f, &cfg, "cpu");
		fixture_steps(f.replica, 3);
		size_t n = replica_state_bytes(f.replica);
		uint8_t *saved = malloc(n);
		assert_non_null(saved);
		replica_save(f.replica, saved);
		struct replica *resumed = fixture_replica(&f, &cfg);
		fixture_steps(resumed, 1); /* anything else */
		assert_int_equal(replica_load(resumed, saved, n, NULL), RV_OK);
		fixture_steps(f.replica, 4);
		fixture_steps(resumed, 4);
		assert_memory_equal(replica_theta(f.replica), replica_theta(resumed),
							replica_n_params(resumed) * sizeof(float));
		free(saved);
		replica_free(resumed);
		fixture_run_release(&f);
	}
}

/* ---- FedProx ---- */

/* At the anchor the term is nothing: the first step has the same bits. Then the gradient differs by
 * mu (theta - anchor). */
static void test_the_proximal_term_is_its_gradient(void **state) {
	(void)state;
	static const char *const devices[] = {"cpu", "cpu:2"};
	for (int k = 0; k < 2; k++) {
		struct run_config cfg = config_of("sgd");
		struct fixture_run f;
		struct device_set set;
		struct replica *pulled;
		const struct backend_options opt = {.threads = 2, .compute = DTYPE_F32, .isa = "auto"};
		const struct replica_options o = {.n_shards = (uint32_t)cfg.data_shards};
		cfg.clip = cfg.weight_decay = 0;
		cfg.warmup_steps = 0;
		cfg.min_lr_ratio = 1;
		cfg.lr = 0.1;
		fixture_run_init(&f, &cfg, "cpu");
		struct run_config prox = cfg;
		prox.prox_mu = 0.5;
		struct device_choice choice;
		assert_int_equal(device_choose(devices[k], &choice, NULL), RV_OK);
		assert_int_equal(device_set_open(&set, &choice, &opt, NULL), RV_OK);
		assert_int_equal(replica_new_on(&prox, f.data, &o, &set, &pulled, NULL), RV_OK);
		size_t n = replica_n_params(pulled);
		float *anchor = calloc(n, sizeof *anchor), *start = fixture_copy_theta(pulled);
		assert_non_null(anchor);
		replica_set_anchor(pulled, anchor);
		fixture_steps(f.replica, 1);
		fixture_steps(pulled, 1);
		double apart = 0;
		for (size_t i = 0; i < n; i++) {
			double want = (double)replica_theta(f.replica)[i] - 0.1 * 0.5 * (double)start[i];
			assert_true(fabs((double)replica_theta(pulled)[i] - want) < 1e-5);
			apart += fabs((double)start[i]);
		}
		assert_true(apart > 1);
		free(anchor);
		free(start);
		replica_free(pulled);
		device_set_close(&set);
		fixture_run_release(&f);
	}
}

static void test_without_mu_there_is_no_term(void **state) {
	(void)state;
	struct run_config cfg = config_of("adamw");
	struct fixture_run f;
	fixture_run_init(&f, &cfg, "cpu");
	struct replica *other = fixture_replica(&f, &cfg);
	float *anchor = calloc(replica_n_params(other), sizeof *anchor);
	assert_non_null(anchor);
	replica_set_anchor(other, anchor);
	fixture_steps(f.replica, 5);
	fixture_steps(other, 5);
	assert_memory_equal(replica_theta(f.replica), replica_theta(other), replica_n_params(other) * sizeof *anchor);
	free(anchor);
	replica_free(other);
	fixture_run_release(&f);
}

enum { QUADRATIC_N = 37, QUADRATIC_WORKERS = 3 };

/* H steps of inner SGD on lambda/2 |x - c|^2 + mu/2 |x - theta|^2, by the operations that a replica
 * uses. */
static void quadratic_round(struct backend *be, float *x, const float *theta, const float *c, float lambda, float mu,
							float eta, int h) {
	float g[QUADRATIC_N];
	const struct decay_span all = {0, QUADRATIC_N, false};
	const struct inner_slice s = {.be = be, .theta = x, .grad = g, .n = QUADRATIC_N, .spans = &all, .n_spans = 1};
	const struct inner_params p = {.adamw = {.lr = eta, .grad_scale = 1, .step = 1}};
	for (int i = 0; i < h; i++) {
		be->ops->add_scaled(be, g, 0, lambda, x, c, QUADRATIC_N);
		be->ops->add_scaled(be, g, 1, mu, x, theta, QUADRATIC_N);
		inner_sgd.step(&s, &p);
	}
}

/* With a_i = lambda_i + mu: H steps move x by (1 - (1 - eta a_i)^H) (lambda_i / a_i) (c_i - theta),
 * so many steps reach (lambda c + mu theta) / (lambda + mu), and the mean of the workers comes to
 * rest at sum w_i c_i / sum w_i with that factor as w_i. mu = 0 gives the drift of FedAvg. */
static void test_fixed_points_of_fedprox(void **state) {
	(void)state;
	const float lambda[QUADRATIC_WORKERS] = {0.5f, 1.5f, 4}, eta = 0.1f;
	static float c[QUADRATIC_WORKERS][QUADRATIC_N], x[QUADRATIC_WORKERS][QUADRATIC_N], theta[QUADRATIC_N];
	const struct backend_options opt = {.threads = 1, .compute = DTYPE_F32, .isa = "auto"};
	struct backend *be;
	assert_int_equal(backend_open("cpu", &opt, &be, NULL), RV_OK);
	for (int i = 0; i < QUADRATIC_WORKERS; i++)
		for (int k = 0; k < QUADRATIC_N; k++)
			c[i][k] = sinf((float)(k * (i + 2)));
	for (float mu = 0; mu <= 2; mu += 1) {
		for (int k = 0; k < QUADRATIC_N; k++)
			theta[k] = x[1][k] = 1;
		quadratic_round(be, x[1], theta, c[1], lambda[1], mu, eta, 400);
		for (int k = 0; k < QUADRATIC_N; k++)
			assert_true(fabsf(x[1][k] - (lambda[1] * c[1][k] + mu) / (lambda[1] + mu)) < 1e-5f);
		for (int round = 0; round < 300; round++) {
			for (int i = 0; i < QUADRATIC_WORKERS; i++) {
				memcpy(x[i], theta, sizeof theta);
				quadratic_round(be, x[i], theta, c[i], lambda[i], mu, eta, 5);
			}
			for (int k = 0; k < QUADRATIC_N; k++)
				theta[k] = (x[0][k] + x[1][k] + x[2][k]) / QUADRATIC_WORKERS;
		}
		for (int k = 0; k < QUADRATIC_N; k++) {
			double sum = 0, weights = 0;
			for (int i = 0; i < QUADRATIC_WORKERS; i++) {
				double a = (double)lambda[i] + (double)mu;
				double w = (1 - pow(1 - (double)eta * a, 5)) * (double)lambda[i] / a;
				sum += w * (double)c[i][k];
				weights += w;
			}
			assert_true(fabs((double)theta[k] - sum / weights) < 1e-5);
		}
	}
	backend_close(be);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sgd_is_its_equation),
		cmocka_unit_test(test_muon_learns_better_than_sgd),
		cmocka_unit_test(test_muon_is_adamw_outside_of_the_layers_matrices),
		cmocka_unit_test(test_resumed_is_straight),
		cmocka_unit_test(test_the_proximal_term_is_its_gradient),
		cmocka_unit_test(test_without_mu_there_is_no_term),
		cmocka_unit_test(test_fixed_points_of_fedprox),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
