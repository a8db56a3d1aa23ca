/* test_train_zero.c: gradients and weights that several devices divide (ZeRO-2, ZeRO-3): the bits
 * of devices that have all of both where the sums are the same, one device's to rounding where
 * micro-batches are summed in another order; evaluations, saved states and single parameters as of
 * a replica that has everything. */
#include "tests/train/train_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 3, HELDOUT_TOKENS = 60, MOST_DEVICES = 8 };

struct several {
	struct device_set devices;
	struct replica *replica;
};

static enum rv_err try_several(struct several *s, struct fixture_run *f, int devices, struct savings savings,
							   struct rv_errtext *et) {
	const struct device_choice choice = {.backend = "cpu", .n = devices};
	const struct backend_options opt = {
		.threads = 1, .compute = run_config_compute(&f->cfg, &choice, "auto"), .isa = "auto"};
	const struct replica_options o = {.n_shards = (uint32_t)f->cfg.data_shards, .savings = savings};
	assert_int_equal(device_set_open(&s->devices, &choice, &opt, et), RV_OK);
	return replica_new_on(&f->cfg, f->data, &o, &s->devices, &s->replica, et);
}

static void several_init(struct several *s, struct fixture_run *f, int devices, struct savings savings) {
	assert_ok(try_several(s, f, devices, savings, &et));
}

static void several_release(struct several *s) {
	replica_free(s->replica);
	device_set_close(&s->devices);
}

/* `model` with sequences for its devices; slices end within sections, and are not equally large. */
static struct run_config config_of(const char *model, const char *dtype, int sequences) {
	struct run_config c = fixture_config();
	(void)rv_options_set(run_config_options, &c, "model", model, NULL);
	(void)rv_options_set(run_config_options, &c, "dtype", dtype, NULL);
	c.n_layer = 3;
	c.n_embd = 24;
	c.clip = 0.5; /* so that every step is clipped */
	c.batch = sequences;
	if (strcmp(model, "llama") == 0) {
		c.n_kv_head = 1;
		c.tied = false;
	}
	return c;
}

static struct step_stats step(struct replica *r) {
	struct step_stats stats;
	assert_ok(replica_step(r, &stats, &et));
	return stats;
}

static void check_same_theta(struct replica *a, struct replica *b) {
	char one[65], two[65];
	fixture_theta_hash(a, one);
	fixture_theta_hash(b, two);
	assert_string_equal(one, two);
}

/* Each device computes its share at once, so that all that differs is where things are. */
static void check_bits(const struct run_config *cfg, int devices, struct savings savings) {
	struct fixture_run f;
	struct several whole, divided;
	fixture_run_init(&f, cfg, "cpu");
	const struct savings all = savings;
	for (savings.zero = ZERO_GRADIENTS; savings.zero <= ZERO_WEIGHTS; savings.zero++) {
		several_init(&whole, &f, devices, all);
		several_init(&divided, &f, devices, savings);
		assert_int_equal(replica_savings(divided.replica).zero, savings.zero);
		for (int i = 0; i < STEPS; i++) {
			const struct step_stats want = step(whole.replica), got = step(divided.replica);
			assert_true(want.grad_norm > (float)cfg->clip);
			assert_memory_equal(&got, &want, sizeof want);
			check_same_theta(divided.replica, whole.replica);
		}
		several_release(&divided);
		several_release(&whole);
	}
	fixture_run_release(&f);
}

static void test_the_bits_of_devices_that_have_all(void **state) {
	(void)state;
	static const int devices[] = {2, 3, MOST_DEVICES};
	for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
		struct run_config gpt2 = config_of("gpt2", "fp32", devices[i]), llama = config_of("llama", "bf16", devices[i]);
		check_bits(&gpt2, devices[i], (struct savings){.recompute = RECOMPUTE_NONE});
		check_bits(&llama, devices[i], (struct savings){.recompute = RECOMPUTE_BLOCK, .moments = MOMENTS_INT8});
	}
	struct run_config cfg = config_of("gpt2", "bf16", 4);
	cfg.prox_mu = 0.1;
	check_bits(&cfg, 2, (struct savings){.recompute = RECOMPUTE_NORMS});
	cfg.n_layer = 1;
	(void)rv_options_set(run_config_options, &cfg, "inner", "sgd", NULL);
	check_bits(&cfg, 3, (struct savings){.recompute = RECOMPUTE_NONE});
}

static void check_near(const char *what, float got, float want, double tolerance) {
	if (!(fabs((double)got - (double)want) <= tolerance * fabs((double)want)))
		fail_msg("%s: got %.9g, want %.9g", what, (double)got, (double)want);
}

/* Shares of 2, 2 and 3 sequences in micro-batches of 1 or 2: some devices make idle passes. */
static void check_as_one(const char *model, enum zero zero, int micro_batch) {
	const struct run_config cfg = config_of(model, "fp32", 7);
	struct fixture_run f;
	struct several s;
	fixture_run_init(&f, &cfg, "cpu");
	several_init(&s, &f, 3, (struct savings){.zero = zero, .micro_batch = micro_batch});
	for (int i = 0; i < STEPS; i++) {
		const struct step_stats one = step(f.replica), many = step(s.replica);
		check_near("loss", many.loss, one.loss, 1e-5);
		check_near("gradient norm", many.grad_norm, one.grad_norm, 1e-4);
		assert_int_equal(many.tokens, one.tokens);
	}
	several_release(&s);
	fixture_run_release(&f);
}

static void test_micro_batches_of_uneven_shares(void **state) {
	(void)state;
	for (enum zero zero = ZERO_GRADIENTS; zero <= ZERO_WEIGHTS; zero++)
		for (int micro_batch = 1; micro_batch <= 2; micro_batch++) {
			check_as_one("gpt2", zero, micro_batch);
			check_as_one("llama", zero, micro_batch);
		}
}

/* With several micro-batches sums have another order than with ZeRO-1, and the same one with slices
 * of the weights as without, so that a worker that chose both is replayed with either. */
static void test_gradients_have_the_same_bits_whoever_has_the_weights(void **state) {
	(void)state;
	const struct run_config cfg = config_of("gpt2", "bf16", 7);
	struct fixture_run f;
	struct several gradients, weights;
	fixture_run_init(&f, &cfg, "cpu");
	several_init(&gradients, &f, 3, (struct savings){.zero = ZERO_GRADIENTS, .micro_batch = 1});
	several_init(&weights, &f, 3, (struct savings){.zero = ZERO_WEIGHTS, .micro_batch = 1});
	for (int i = 0; i < STEPS; i++) {
		const struct step_stats want = step(gradients.replica), got = step(weights.replica);
		assert_memory_equal(&got, &want, sizeof want);
		check_same_theta(weights.replica, gradients.replica);
	}
	several_release(&weights);
	several_release(&gradients);
	fixture_run_release(&f);
}

static void count_change(void *count) {
	++*(int *)count;
}

/* An evaluation of the replica's weights, and of others, between steps. Others take the place of
 * its own for that time, which is announced as a change. */
static void check_evaluations(enum zero zero) {
	const struct run_config cfg = config_of("gpt2", "fp32", 3);
	struct fixture_run f;
	struct several whole, divided;
	double want, got;
	fixture_run_init(&f, &cfg, "cpu");
	several_init(&whole, &f, 3, (struct savings){.zero = ZERO_MOMENTS});
	several_init(&divided, &f, 3, (struct savings){.zero = zero});
	float *other = fixture_copy_theta(divided.replica);
	int changes = 0;
	replica_before_update(divided.replica, count_change, &changes);
	for (int i = 0; i < STEPS; i++) {
		(void)step(whole.replica);
		(void)step(divided.replica);
		const float *theta = i == 1 ? other : NULL;
		assert_ok(replica_eval(whole.replica, theta, HELDOUT_TOKENS, &want, &et));
		assert_ok(replica_eval(divided.replica, theta, HELDOUT_TOKENS, &got, &et));
		assert_true(got == want);
		assert_int_equal(changes, i + 1 + (i >= 1));
		check_same_theta(divided.replica, whole.replica);
	}
	atomic_bool stop = true;
	struct rv_errtext why = {0};
	replica_watch(divided.replica, &stop);
	assert_fault(replica_eval(divided.replica, other, 0, &got, &why), RV_E_CANCELLED, &why, "stopped");
	check_same_theta(divided.replica, whole.replica);
	free(other);
	several_release(&divided);
	several_release(&whole);
	fixture_run_release(&f);
}

static void test_evaluations(void **state) {
	(void)state;
	check_evaluations(ZERO_GRADIENTS);
	check_evaluations(ZERO_WEIGHTS);
}

/* A state goes on with any division, on any number of devices. */
static void check_states(enum moments moments) {
	const struct run_config cfg = config_of("llama", "fp32", 4);
	struct fixture_run f;
	struct several from, to;
	fixture_run_init(&f, &cfg, "cpu");
	several_init(&from, &f, 3, (struct savings){.zero = ZERO_WEIGHTS, .moments = moments});
	several_init(&to, &f, 4, (struct savings){.zero = ZERO_GRADIENTS, .moments = moments});
	(void)step(from.replica);
	const size_t n = replica_state_bytes(from.replica);
	uint8_t *first = malloc(n), *second = malloc(n);
	assert_true(first && second && n == replica_state_bytes(to.replica));
	replica_save(from.replica, first);
	assert_ok(replica_load(to.replica, first, n, &et));
	replica_save(to.replica, second);
	assert_memory_equal(first, second, n);
	(void)step(to.replica);
	replica_save(to.replica, second);
	assert_memory_not_equal(first, second, n);
	assert_ok(replica_load(from.replica, second, n, &et));
	replica_save(from.replica, first);
	assert_memory_equal(first, second, n);
	assert_false(replica_heal(from.replica));
	free(first);
	free(second);
	several_release(&to);
	several_release(&from);
	fixture_run_release(&f);
}

static void test_states(void **state) {
	(void)state;
	check_states(MOMENTS_FP32);
	check_states(MOMENTS_INT8);
}

/* Single parameters, an outer step's shift, a gradient: what the outer loop asks of a replica. */
static void test_parameters_are_those_of_one(void **state) {
	(void)state;
	const struct run_config cfg = config_of("gpt2", "fp32", 3);
	struct fixture_run f;
	struct several s;
	struct backend *be;
	struct step_stats stats;
	fixture_run_init(&f, &cfg, "cpu");
	several_init(&s, &f, 3, (struct savings){.zero = ZERO_WEIGHTS});
	const size_t n = replica_n_params(s.replica);
	check_same_theta(s.replica, f.replica);
	assert_null(replica_device_theta(s.replica, &be));
	assert_false(replica_is_on_device(s.replica));
	float *from = fixture_copy_theta(f.replica), *to = fixture_copy_theta(f.replica), *gradient = calloc(2, n * 4);
	assert_non_null(gradient);
	for (size_t i = 0; i < n; i++)
		to[i] = from[i] + 0.25f * (float)(i % 7);
	replica_lay_by(s.replica, from);
	for (size_t begin = 0, some; begin < n; begin += some) {
		float laid_by[REPLICA_SHIFT_MAX];
		some = n - begin < REPLICA_SHIFT_MAX ? n - begin : REPLICA_SHIFT_MAX;
		replica_laid_by(s.replica, begin, some, laid_by);
		assert_memory_equal(laid_by, from + begin, some * sizeof *from);
		replica_shift_part(f.replica, begin, some, from + begin, to + begin);
		replica_shift_part(s.replica, begin, some, laid_by, to + begin);
	}
	check_same_theta(s.replica, f.replica);
	const size_t at = n / 3 - 300, count = n / 3 + 600; /* across slices */
	replica_set_part(s.replica, at, count, from);
	replica_get_part(s.replica, at, count, to);
	assert_memory_equal(to, from, count * sizeof *to);
	replica_set_theta(s.replica, from);
	replica_set_theta(f.replica, from);
	assert_ok(replica_gradient(f.replica, gradient, &stats, &et));
	assert_ok(replica_gradient(s.replica, gradient + n, &stats, &et));
	for (size_t i = 0; i < n; i++)
		assert_true(fabsf(gradient[n + i] - gradient[i]) <= 1e-5f + 1e-3f * fabsf(gradient[i]));
	free(from);
	free(to);
	free(gradient);
	several_release(&s);
	fixture_run_release(&f);
}

/* A step that is refused or abandoned leaves the devices together, and the next one works. */
static void check_faults(enum zero zero) {
	const struct run_config cfg = config_of("gpt2", "fp32", 7);
	struct fixture_run f;
	struct several s, fresh;
	struct rv_errtext why = {0};
	struct step_stats stats;
	fixture_run_init(&f, &cfg, "cpu");
	several_init(&s, &f, 3, (struct savings){.zero = zero, .micro_batch = 1});
	several_init(&fresh, &f, 3, (struct savings){.zero = zero, .micro_batch = 1});
	float *theta = fixture_copy_theta(s.replica), good = theta[5];
	theta[5] = NAN;
	replica_set_theta(s.replica, theta);
	assert_fault(replica_step(s.replica, &stats, &why), RV_E_RANGE, &why, "diverged");
	theta[5] = good;
	replica_set_theta(s.replica, theta);
	atomic_bool stop = true;
	replica_abandon_with(s.replica, &stop);
	assert_fault(replica_step(s.replica, &stats, &why), RV_E_CANCELLED, &why, "device 1 of 3: the step was abandoned");
	replica_abandon_with(s.replica, NULL);
	(void)replica_step(fresh.replica, &stats, NULL); /* the refused one took its sequences, too */
	replica_set_theta(fresh.replica, theta);
	for (int i = 0; i < 2; i++) {
		assert_ok(replica_gradient(s.replica, theta, &stats, &et));
		const float norm = stats.grad_norm;
		assert_ok(replica_gradient(fresh.replica, theta, &stats, &et));
		assert_true(norm == stats.grad_norm);
	}
	free(theta);
	several_release(&fresh);
	several_release(&s);
	fixture_run_release(&f);
}

static void test_faults(void **state) {
	(void)state;
	check_faults(ZERO_GRADIENTS);
	check_faults(ZERO_WEIGHTS);
}

static void test_what_cannot_be_divided(void **state) {
	(void)state;
	struct run_config cfg = config_of("gpt2", "fp32", 4);
	struct fixture_run f;
	struct several s;
	struct rv_errtext why = {0};
	(void)rv_options_set(run_config_options, &cfg, "inner", "muon", NULL);
	fixture_run_init(&f, &cfg, "cpu");
	assert_fault(try_several(&s, &f, 2, (struct savings){.zero = ZERO_GRADIENTS}, &why), RV_E_UNSUPPORTED, &why,
				 "use --zero 1");
	device_set_close(&s.devices);
	several_init(&s, &f, 1, (struct savings){.zero = ZERO_WEIGHTS}); /* one device has everything */
	assert_int_equal(replica_savings(s.replica).zero, ZERO_MOMENTS);
	several_release(&s);
	fixture_run_release(&f);
}

/* A worker that divided other vectors at an earlier start is replayed from one to the other. */
static void test_a_replica_is_made_anew_with_another_division(void **state) {
	(void)state;
	const struct run_config cfg = config_of("gpt2", "bf16", 7);
	for (int from = ZERO_MOMENTS; from <= ZERO_WEIGHTS; from++)
		for (int to = ZERO_MOMENTS; to <= ZERO_WEIGHTS; to++) {
			const struct savings first = {.zero = (enum zero)from, .micro_batch = 1};
			const struct savings later = {.zero = (enum zero)to, .micro_batch = 2};
			struct fixture_run f;
			struct several remade, begun;
			fixture_run_init(&f, &cfg, "cpu");
			several_init(&remade, &f, 3, first);
			several_init(&begun, &f, 3, later);
			uint8_t *saved = malloc(replica_state_bytes(remade.replica));
			assert_non_null(saved);
			(void)step(remade.replica);
			replica_save(remade.replica, saved);
			assert_ok(replica_load(begun.replica, saved, replica_state_bytes(begun.replica), &et));
			assert_ok(replica_remake(remade.replica, &later, &et));
			assert_ok(replica_load(remade.replica, saved, replica_state_bytes(remade.replica), &et));
			assert_int_equal(replica_savings(remade.replica).zero, to);
			(void)step(remade.replica);
			(void)step(begun.replica);
			check_same_theta(remade.replica, begun.replica);
			free(saved);
			several_release(&remade);
			several_release(&begun);
			fixture_run_release(&f);
		}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_bits_of_devices_that_have_all),
		cmocka_unit_test(test_micro_batches_of_uneven_shares),
		cmocka_unit_test(test_gradients_have_the_same_bits_whoever_has_the_weights),
		cmocka_unit_test(test_evaluations),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_parameters_are_those_of_one),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_what_cannot_be_divided),
		cmocka_unit_test(test_a_replica_is_made_anew_with_another_division),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
