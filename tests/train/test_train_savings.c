/* test_train_savings.c: what a replica does to take less memory: what it changes in its results,
 * and what it does not. */
#include "tests/train/train_fixture.h"

#include "train/device_set.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 6 };

/* 2 sequences of a batch, three batches: six of a step. */
static struct run_config config_of(const char *model) {
	struct run_config c = fixture_config();
	(void)rv_options_set(run_config_options, &c, "model", model, NULL);
	c.grad_accum = 3;
	return c;
}

static struct replica *replica_with(struct fixture_run *f, struct savings savings) {
	const struct replica_options o = {.n_shards = (uint32_t)f->cfg.data_shards, .savings = savings};
	struct replica *r;
	assert_ok(replica_new(&f->cfg, f->data, &o, f->be, &r, &et));
	return r;
}

static void same_bits(struct replica *a, struct replica *b, bool want) {
	char hashes[2][65];
	fixture_theta_hash(a, hashes[0]);
	fixture_theta_hash(b, hashes[1]);
	assert_int_equal(strcmp(hashes[0], hashes[1]) == 0, want);
}

static void check_near(const char *what, double got, double want, double tolerance) {
	if (!(fabs(got - want) <= tolerance * fabs(want)))
		fail_msg("%s: got %.9g, want %.9g", what, got, want);
}

/* ---- micro-batches ---- */

/* A step reads the same sequences, and its gradient is their mean, however many are computed at a
 * time: more than a batch, or fewer, or a number that divides nothing. */
static void test_any_micro_batch_is_the_same_step(void **state) {
	(void)state;
	static const int sizes[] = {1, 2, 3, 4, 5, 6, 100};
	struct fixture_run f;
	const struct run_config cfg = config_of("gpt2");
	fixture_run_init(&f, &cfg, "cpu");
	struct replica *own[sizeof sizes / sizeof sizes[0]];
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		own[i] = replica_with(&f, (struct savings){.micro_batch = sizes[i]});
	for (int step = 0; step < STEPS; step++) {
		struct step_stats want, got;
		assert_int_equal(replica_step(f.replica, &want, NULL), RV_OK);
		for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
			assert_int_equal(replica_step(own[i], &got, NULL), RV_OK);
			check_near("loss", (double)got.loss, (double)want.loss, 1e-5);
			check_near("gradient norm", (double)got.grad_norm, (double)want.grad_norm, 1e-4);
			assert_int_equal(got.tokens, want.tokens);
			assert_int_equal(replica_next(own[i]), replica_next(f.replica));
		}
	}
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		same_bits(own[i], f.replica, sizes[i] == 2); /* the run's: exactly the same */
		replica_free(own[i]);
	}
	fixture_run_release(&f);
}

/* Trains `first` for two steps, then goes on with the savings `later` in its place: what a new
 * process does that begins with them from the saved state. */
static void check_remade(struct fixture_run *f, struct savings first, struct savings later) {
	struct replica *remade = replica_with(f, first), *begun = replica_with(f, later);
	const size_t n = replica_state_bytes(remade);
	uint8_t *saved = malloc(n);
	assert_non_null(saved);
	fixture_steps(remade, 2);
	replica_save(remade, saved);
	assert_ok(replica_load(begun, saved, n, &et));
	assert_ok(replica_remake(remade, &later, &et));
	assert_ok(replica_load(remade, saved, n, &et));
	assert_int_equal(replica_state_bytes(remade), replica_state_bytes(begun));
	assert_int_equal(replica_savings(remade).micro_batch, replica_savings(begun).micro_batch);
	fixture_steps(begun, 2);
	fixture_steps(remade, 2);
	same_bits(remade, begun, true);
	assert_int_equal(replica_next(remade), replica_next(begun));
	free(saved);
	replica_free(remade);
	replica_free(begun);
}

static void test_savings_change_between_two_processes(void **state) {
	(void)state;
	struct fixture_run f;
	const struct run_config cfg = config_of("llama");
	const struct savings one = {.micro_batch = 1, .recompute = RECOMPUTE_BLOCK};
	const struct savings five = {.micro_batch = 5, .moments = MOMENTS_INT8};
	fixture_run_init(&f, &cfg, "cpu");
	check_remade(&f, one, five);
	check_remade(&f, five, one);
	fixture_run_release(&f);
}

/* ---- recomputation ---- */

static void test_recomputing_changes_no_bit(void **state) {
	(void)state;
	static const char *const models[] = {"gpt2", "llama"};
	for (size_t k = 0; k < 2; k++) {
		struct fixture_run f;
		const struct run_config cfg = config_of(models[k]);
		fixture_run_init(&f, &cfg, "cpu");
		fixture_steps(f.replica, STEPS);
		for (enum recompute r = RECOMPUTE_GELU; r <= RECOMPUTE_BLOCK; r++) {
			struct replica *again = replica_with(&f, (struct savings){.recompute = r});
			fixture_steps(again, STEPS);
			same_bits(again, f.replica, true);
			replica_free(again);
		}
		fixture_run_release(&f);
	}
}

/* ---- moments of 8 bits ---- */

static const struct savings int8 = {.moments = MOMENTS_INT8};

static float last_loss(struct replica *r, int steps) {
	struct step_stats s = {0};
	for (int i = 0; i < steps; i++)
		assert_int_equal(replica_step(r, &s, NULL), RV_OK);
	return s.loss;
}

static void test_moments_of_8_bits_learn(void **state) {
	(void)state;
	static const char *const models[] = {"gpt2", "llama"};
	for (size_t k = 0; k < 2; k++) {
		struct fixture_run f;
		const struct run_config cfg = config_of(models[k]);
		fixture_run_init(&f, &cfg, "cpu");
		struct replica *r = replica_with(&f, int8);
		const double want = (double)last_loss(f.replica, 32), got = (double)last_loss(r, 32);
		print_message("%s: loss %.5f, with fp32 moments %.5f\n", models[k], got, want);
		check_near("loss", got, want, 0.01);
		same_bits(r, f.replica, false);
		assert_true(replica_state_bytes(r) < replica_state_bytes(f.replica));
		replica_free(r);
		fixture_run_release(&f);
	}
}

/* Stop and resume equals straight through, also into a replica that did something else. */
static void test_their_state_resumes_to_the_bit(void **state) {
	(void)state;
	struct fixture_run f;
	const struct run_config cfg = config_of("gpt2");
	fixture_run_init(&f, &cfg, "cpu");
	struct replica *r = replica_with(&f, int8), *resumed = replica_with(&f, int8);
	const size_t bytes = replica_state_bytes(r);
	uint8_t *saved = malloc(bytes), *other = malloc(bytes);
	assert_true(saved && other);
	fixture_steps(r, 3);
	fixture_steps(resumed, 1);
	replica_save(r, saved);
	assert_ok(replica_load(resumed, saved, bytes, &et));
	fixture_steps(r, 4);
	fixture_steps(resumed, 4);
	replica_save(r, saved);
	replica_save(resumed, other);
	assert_memory_equal(saved, other, bytes);
	free(saved);
	free(other);
	replica_free(r);
	replica_free(resumed);
	fixture_run_release(&f);
}

static void move_state(struct replica *from, struct replica *to) {
	const size_t bytes = replica_state_bytes(from);
	uint8_t *state = malloc(bytes);
	assert_non_null(state);
	replica_save(from, state);
	assert_ok(replica_load(to, state, bytes, &et));
	free(state);
}

/* A worker that chooses the other kind when it starts again keeps its moments: from 8 bits to fp32
 * exactly, and back to the same bytes as near as rounding goes. */
static void test_a_state_of_the_other_kind_is_converted(void **state) {
	(void)state;
	struct fixture_run f;
	const struct run_config cfg = config_of("gpt2");
	fixture_run_init(&f, &cfg, "cpu");
	struct replica *small = replica_with(&f, int8), *large = replica_with(&f, (struct savings){.micro_batch = 0});
	struct replica *again = replica_with(&f, int8);
	fixture_steps(f.replica, 20);
	move_state(f.replica, small);
	same_bits(small, f.replica, true);
	assert_int_equal(replica_global_step(small), 20);
	const double want = (double)last_loss(f.replica, 8), got = (double)last_loss(small, 8);
	check_near("loss", got, want, 0.01);
	move_state(small, large);
	move_state(large, again);
	check_near("loss", (double)last_loss(again, 4), (double)last_loss(large, 4), 0.01);
	replica_free(small);
	replica_free(large);
	replica_free(again);
	fixture_run_release(&f);
}

/* A device that is several owns slices of the codes: its state is one device's, to the byte in its
 * layout, and resumes on another number. */
static void test_several_devices_own_slices(void **state) {
	(void)state;
	const struct backend_options opt = {.threads = 1, .compute = DTYPE_F32, .isa = "auto"};
	struct fixture_run f;
	struct run_config cfg = config_of("gpt2");
	fixture_run_init(&f, &cfg, "cpu");
	const struct replica_options o = {.n_shards = (uint32_t)cfg.data_shards, .savings = int8};
	struct device_choice choice;
	struct device_set set;
	struct replica *one = replica_with(&f, int8), *three;
	assert_ok(device_choose("cpu:3", &choice, &et));
	assert_ok(device_set_open(&set, &choice, &opt, &et));
	assert_ok(replica_new_on(&cfg, f.data, &o, &set, &three, &et));
	assert_int_equal(replica_state_bytes(one), replica_state_bytes(three));
	for (int i = 0; i < STEPS; i++)
		check_near("loss", (double)last_loss(three, 1), (double)last_loss(one, 1), 1e-3);
	move_state(three, one);
	same_bits(three, one, true);
	check_near("loss", (double)last_loss(one, 2), (double)last_loss(three, 2), 1e-4);
	replica_free(one);
	replica_free(three);
	device_set_close(&set);
	fixture_run_release(&f);
}

static void test_a_broken_top_is_healed(void **state) {
	(void)state;
	struct fixture_run f;
	const struct run_config cfg = config_of("gpt2");
	fixture_run_init(&f, &cfg, "cpu");
	struct replica *r = replica_with(&f, int8);
	fixture_steps(r, 2);
	assert_false(replica_heal(r));
	const size_t bytes = replica_state_bytes(r), n = replica_n_params(r);
	uint8_t *saved = malloc(bytes);
	assert_non_null(saved);
	replica_save(r, saved);
	const float broken = INFINITY;
	uint8_t *tops = saved + bytes - 32 - moments_blocks(n) * sizeof(float);
	memcpy(tops, &broken, sizeof broken);
	replica_seal(saved, bytes);
	assert_ok(replica_load(r, saved, bytes, &et));
	assert_true(replica_heal(r));
	assert_false(replica_heal(r));
	fixture_steps(r, 2);
	free(saved);
	replica_free(r);
	fixture_run_release(&f);
}

static void test_other_optimizers_have_none(void **state) {
	(void)state;
	struct fixture_run f;
	struct run_config cfg = config_of("gpt2");
	fixture_run_init(&f, &cfg, "cpu");
	(void)rv_options_set(run_config_options, &cfg, "inner", "muon", NULL);
	const struct replica_options o = {.n_shards = (uint32_t)cfg.data_shards, .savings = int8};
	struct rv_errtext et = {0};
	struct replica *r;
	assert_fault(replica_new(&cfg, f.data, &o, f.be, &r, &et), RV_E_UNSUPPORTED, &et, "--moments fp32");
	fixture_run_release(&f);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_micro_batch_is_the_same_step),
		cmocka_unit_test(test_savings_change_between_two_processes),
		cmocka_unit_test(test_recomputing_changes_no_bit),
		cmocka_unit_test(test_moments_of_8_bits_learn),
		cmocka_unit_test(test_their_state_resumes_to_the_bit),
		cmocka_unit_test(test_a_state_of_the_other_kind_is_converted),
		cmocka_unit_test(test_several_devices_own_slices),
		cmocka_unit_test(test_a_broken_top_is_healed),
		cmocka_unit_test(test_other_optimizers_have_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
