/* test_train_replica_state.c: stop and resume equals straight through, bit for bit; damaged states
 * are refused. */
#include "tests/train/train_fixture.h"

#include <stdlib.h>

struct fixture {
	struct fixture_run run;
	uint8_t *state, *before;
	size_t bytes;
};

/* A replica after three steps, saved. */
static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof *f);
	assert_non_null(f);
	fixture_run_init(&f->run, NULL, "ref");
	fixture_steps(f->run.replica, 3);
	f->bytes = replica_state_bytes(f->run.replica);
	f->state = malloc(f->bytes);
	f->before = malloc(f->bytes);
	assert_true(f->state && f->before);
	replica_save(f->run.replica, f->state);
	*state = f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	fixture_run_release(&f->run);
	free(f->state);
	free(f->before);
	free(f);
	return 0;
}

/* Loading must fail with the text, and leave `r` as it is. */
static void assert_refused(struct fixture *f, struct replica *r, size_t n, const char *needle) {
	struct rv_errtext et = {0};
	uint8_t *after = malloc(f->bytes);
	assert_non_null(after);
	replica_save(r, f->before);
	assert_fault(replica_load(r, f->state, n, &et), RV_E_CORRUPT, &et, needle);
	replica_save(r, after);
	assert_memory_equal(f->before, after, f->bytes);
	free(after);
}

static void test_resuming_is_going_straight_through(void **state) {
	struct fixture *f = *state;
	struct replica *resumed = fixture_replica(&f->run, &f->run.cfg);
	fixture_steps(resumed, 1); /* whatever it did before is forgotten */
	assert_ok(replica_load(resumed, f->state, f->bytes, &et));
	assert_int_equal(replica_global_step(resumed), 3);
	fixture_steps(f->run.replica, 4);
	fixture_steps(resumed, 4);
	replica_save(f->run.replica, f->before);
	replica_save(resumed, f->state);
	assert_memory_equal(f->before, f->state, f->bytes);
	replica_free(resumed);
}

static void test_every_damaged_byte_is_found(void **state) {
	struct fixture *f = *state;
	struct rv_errtext et = {0};
	struct replica *r = fixture_replica(&f->run, &f->run.cfg);
	size_t stride = f->bytes / 97;
	for (size_t at = 0; at < f->bytes; at += at < 64 ? 1 : stride) {
		f->state[at] ^= 0x10;
		assert_int_equal(replica_load(r, f->state, f->bytes, &et), RV_E_CORRUPT);
		f->state[at] ^= 0x10;
	}
	assert_int_equal(replica_load(r, f->state, f->bytes, &et), RV_OK);
	replica_free(r);
}

static void test_the_text_names_the_field(void **state) {
	struct fixture *f = *state;
	static const struct {
		size_t offset;
		const char *needle;
	} damage[] = {{0, "magic"},       {8, "version"}, {12, "vectors of error feedback"},
				  {16, "parameters"}, {24, "shard"},  {100, "hash"}};
	struct replica *r = fixture_replica(&f->run, &f->run.cfg);
	for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
		f->state[damage[i].offset] ^= 1;
		assert_refused(f, r, f->bytes, damage[i].needle);
		f->state[damage[i].offset] ^= 1;
	}
	replica_free(r);
}

static void test_cut_and_grown_states_are_refused(void **state) {
	struct fixture *f = *state;
	f->state = realloc(f->state, f->bytes + 1);
	assert_non_null(f->state);
	f->state[f->bytes] = 0;
	assert_refused(f, f->run.replica, 0, "size is 0");
	assert_refused(f, f->run.replica, 87, "size is 87");
	assert_refused(f, f->run.replica, f->bytes - 1, "size is");
	assert_refused(f, f->run.replica, f->bytes + 1, "size is");
}

static void test_a_state_of_another_model_or_shard_is_refused(void **state) {
	struct fixture *f = *state;
	struct rv_errtext et = {0};
	struct run_config cfg = f->run.cfg;
	cfg.n_layer++;
	struct replica *deeper = fixture_replica(&f->run, &cfg);
	assert_fault(replica_load(deeper, f->state, f->bytes, &et), RV_E_CORRUPT, &et, "parameters");
	replica_free(deeper);
	struct replica *elsewhere;
	assert_int_equal(replica_new(&f->run.cfg, f->run.data, &(struct replica_options){.shard = 1, .n_shards = 2},
								 f->run.be, &elsewhere, &et),
					 RV_OK);
	assert_refused(f, elsewhere, f->bytes, "shard 0 of 2");
	replica_free(elsewhere);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_resuming_is_going_straight_through, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_damaged_byte_is_found, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_text_names_the_field, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut_and_grown_states_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_state_of_another_model_or_shard_is_refused, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
