/* test_train_devices.c: one replica on several devices is what it is on one, to rounding, and the
 * same bits every time. */
#include "tests/train/train_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 6 };

struct several {
	struct device_set devices;
	struct replica *replica;
};

static enum rv_err try_several(struct several *s, struct fixture_run *f, const char *device, struct rv_errtext *et) {
	const struct backend_options opt = {.threads = 2, .compute = DTYPE_F32, .isa = "auto"};
	const struct replica_options o = {.n_shards = (uint32_t)f->cfg.data_shards};
	struct device_choice choice;
	assert_int_equal(device_choose(device, &choice, et), RV_OK);
	assert_int_equal(device_set_open(&s->devices, &choice, &opt, et), RV_OK);
	return replica_new_on(&f->cfg, f->data, &o, &s->devices, &s->replica, et);
}

static void several_init(struct several *s, struct fixture_run *f, const char *device) {
	assert_ok(try_several(s, f, device, &et));
}

static void several_release(struct several *s) {
	replica_free(s->replica);
	device_set_close(&s->devices);
}

static void check_near(const char *what, double got, double want, double tolerance) {
	if (!(fabs(got - want) <= tolerance * fabs(want)))
		fail_msg("%s: got %.9g, want %.9g", what, got, want);
}

static void check_weights_near(struct replica *got, struct replica *want, double tolerance) {
	size_t n = replica_n_params(want);
	const float *a = replica_theta(got), *b = replica_theta(want);
	double error = 0, norm = 0;
	for (size_t i = 0; i < n; i++) {
		error += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
		norm += (double)b[i] * (double)b[i];
	}
	if (!(sqrt(error) <= tolerance * sqrt(norm)))
		fail_msg("weights differ by %.3g of their norm", sqrt(error / norm));
}

static struct run_config config_of(const char *model) {
	struct run_config c = fixture_config();
	(void)rv_options_set(run_config_options, &c, "model", model, NULL);
	c.grad_accum = 3; /* 6 sequences: 2 devices take 3 each, in batches of 2 and 1; 4 take 1, 2, 1, 2 */
	return c;
}

static void configured_like_one(struct run_config cfg, const char *device) {
	struct fixture_run f;
	struct several s;
	fixture_run_init(&f, &cfg, "cpu");
	several_init(&s, &f, device);
	for (int i = 0; i < STEPS; i++) {
		struct step_stats one, many;
		assert_int_equal(replica_step(f.replica, &one, NULL), RV_OK);
		assert_int_equal(replica_step(s.replica, &many, NULL), RV_OK);
		check_near("loss", (double)many.loss, (double)one.loss, 1e-5);
		check_near("gradient norm", (double)many.grad_norm, (double)one.grad_norm, 1e-4);
		assert_int_equal(many.tokens, one.tokens);
	}
	check_weights_near(s.replica, f.replica, 1e-3); /* Adam divides by small second moments at first */
	several_release(&s);
	fixture_run_release(&f);
}

static void train_like_one(const char *model, const char *device) {
	configured_like_one(config_of(model), device);
}

/* Its matrices lie across the slices of the devices: each has all of the gradient, and all of the
 * momentum. */
static void test_muon_as_one_device_to_rounding(void **state) {
	(void)state;
	static const char *const devices[] = {"cpu:2", "cpu:3"};
	for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
		struct run_config cfg = config_of("gpt2");
		(void)rv_options_set(run_config_options, &cfg, "inner", "muon", NULL);
		cfg.prox_mu = 0.1;
		configured_like_one(cfg, devices[i]);
	}
}

static void test_as_one_device_to_rounding(void **state) {
	(void)state;
	static const char *const devices[] = {"cpu:2", "cpu:3", "cpu:4"};
	for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
		train_like_one("gpt2", devices[i]);
		train_like_one("llama", devices[i]);
	}
}

static void test_the_same_bits_every_time_and_on_every_device(void **state) {
	(void)state;
	struct run_config cfg = config_of("gpt2");
	char hex[2][65];
	struct fixture_run f;
	fixture_run_init(&f, &cfg, "cpu");
	for (int run = 0; run < 2; run++) {
		struct several s;
		struct step_stats stats;
		several_init(&s, &f, "cpu:3");
		for (int i = 0; i < STEPS; i++)
			assert_int_equal(replica_step(s.replica, &stats, NULL), RV_OK);
		fixture_theta_hash(s.replica, hex[run]);
		several_release(&s);
	}
	assert_string_equal(hex[0], hex[1]);
	fixture_run_release(&f);
}

/* What is saved on two devices goes on on one, and the other way. */
static void check_saved_state(const char *inner) {
	struct run_config cfg = config_of("gpt2");
	struct fixture_run f;
	struct several s, again;
	struct step_stats stats;
	char saved_by_two[65], loaded_by_one[65], loaded_by_four[65];
	(void)rv_options_set(run_config_options, &cfg, "inner", inner, NULL);
	fixture_run_init(&f, &cfg, "cpu");
	several_init(&s, &f, "cpu:2");
	several_init(&again, &f, "cpu:4");
	for (int i = 0; i < 2; i++)
		assert_int_equal(replica_step(s.replica, &stats, NULL), RV_OK);
	size_t n = replica_state_bytes(s.replica);
	uint8_t *first = malloc(n), *second = malloc(n);
	assert_true(first && second);
	replica_save(s.replica, first);
	assert_int_equal(replica_load(f.replica, first, n, NULL), RV_OK);
	assert_int_equal(replica_load(again.replica, first, n, NULL), RV_OK);
	fixture_theta_hash(s.replica, saved_by_two);
	fixture_theta_hash(f.replica, loaded_by_one);
	fixture_theta_hash(again.replica, loaded_by_four);
	assert_string_equal(saved_by_two, loaded_by_one);
	assert_string_equal(saved_by_two, loaded_by_four);
	replica_save(f.replica, second);
	assert_memory_equal(first, second, n);
	replica_save(again.replica, second);
	assert_memory_equal(first, second, n);
	free(first);
	free(second);
	several_release(&again);
	several_release(&s);
	fixture_run_release(&f);
}

static void test_saved_state_does_not_know_how_many_devices(void **state) {
	(void)state;
	check_saved_state("adamw");
	check_saved_state("muon");
}

/* A step that diverges is refused on every device, and nobody waits for ever. */
static void test_divergence_is_refused(void **state) {
	(void)state;
	struct run_config cfg = config_of("gpt2");
	struct fixture_run f;
	struct several s;
	struct rv_errtext et = {0};
	struct step_stats stats;
	fixture_run_init(&f, &cfg, "cpu");
	several_init(&s, &f, "cpu:2");
	size_t n = replica_n_params(s.replica);
	float *bad = malloc(n * sizeof *bad);
	assert_non_null(bad);
	memcpy(bad, replica_theta(s.replica), n * sizeof *bad);
	bad[0] = bad[n / 2] = NAN;
	replica_set_theta(s.replica, bad);
	assert_fault(replica_step(s.replica, &stats, &et), RV_E_RANGE, &et, "diverged");
	replica_draw_theta0(s.replica);
	assert_int_equal(replica_step(s.replica, &stats, NULL), RV_OK);
	free(bad);
	several_release(&s);
	fixture_run_release(&f);
}

static void test_more_devices_than_sequences(void **state) {
	(void)state;
	struct fixture_run f;
	struct several s;
	struct rv_errtext et = {0};
	fixture_run_init(&f, NULL, "cpu");
	assert_fault(try_several(&s, &f, "cpu:16", &et), RV_E_RANGE, &et, "fewer devices");
	device_set_close(&s.devices);
	fixture_run_release(&f);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_one_device_to_rounding),
		cmocka_unit_test(test_muon_as_one_device_to_rounding),
		cmocka_unit_test(test_the_same_bits_every_time_and_on_every_device),
		cmocka_unit_test(test_saved_state_does_not_know_how_many_devices),
		cmocka_unit_test(test_divergence_is_refused),
		cmocka_unit_test(test_more_devices_than_sequences),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
