/* test_torture_checkpoint.c: a worker's state files, while every call that can fail fails in turn: written, they are whole
 * or not there, and what was acknowledged is found again; read, the state is the one of its round to the bit or there is a
 * fault or a notice, and nothing that a later start could have used is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/torture/torture.h"
#include "tests/worker/state_fixture.h"

enum { ROUNDS = 5, TRIALS = 90, SOUGHT_ATTEMPT = 0 /* on the word of a document: committed */ };

struct scene {
	struct state_fixture *f;
	struct global_state g; /* of the trial */
	uint64_t acknowledged; /* log entries */
	uint8_t *payload[ROUNDS];
	struct rv_hash full[ROUNDS + 1];
};

static void begin_again(struct scene *s) {
	global_release(&s->g);
	assert_int_equal(state_fixture_theta0(s->f, &s->g), RV_OK);
	s->f->notice[0] = '\0';
}

/* What every round's reduced bytes are, and what state they lead to. */
static void make_rounds(struct scene *s) {
	struct global_state g;
	float local[STATE_FIXTURE_N];
	assert_int_equal(state_fixture_theta0(s->f, &g), RV_OK);
	for (uint64_t r = 0; r < ROUNDS; r++) {
		s->full[r] = global_full_hash(&g);
		s->payload[r] = malloc(state_payload_bytes(&s->f->store.cfg, STATE_KIND_LOG, r));
		for (int i = 0; i < STATE_FIXTURE_N; i++)
			local[i] = g.theta[i] - 0.01f * (float)((i + (int)r) % 7);
		assert_int_equal(global_encode_delta(&g, local, s->payload[r], NULL), RV_OK);
		struct rv_hash digest = global_digest(&g, r, s->payload[r]);
		assert_int_equal(global_apply(&g, s->payload[r], &digest, NULL), RV_OK);
	}
	s->full[ROUNDS] = global_full_hash(&g);
	global_release(&g);
}

static int set_up(void **state) {
	struct scene *s = calloc(1, sizeof *s);
	s->f = state_fixture_new();
	assert_int_equal(rmdir(s->f->store.dir), 0);
	(void)snprintf(s->f->store.dir, sizeof s->f->store.dir, "/dev/shm/rivulet-torture-XXXXXX");
	assert_non_null(mkdtemp(s->f->store.dir));
	make_rounds(s);
	*state = s;
	return 0;
}

static int tear_down(void **state) {
	struct scene *s = *state;
	for (int r = 0; r < ROUNDS; r++)
		free(s->payload[r]);
	global_release(&s->g);
	state_fixture_free(s->f);
	free(s);
	return 0;
}

/* ---- writing --------------------------------------------------------------------------------------------------------- */

static void begin_writing(void *ctx) {
	struct scene *s = ctx;
	torture_empty(s->f->store.dir);
	begin_again(s);
	s->acknowledged = 0;
}

/* A log that did not get to the disk is tried again, as a worker does. */
static bool keep_log(struct scene *s, struct state_log_info *info) {
	struct rv_errtext et = {0};
	for (int tries = 0; tries < 2; tries++)
		if (torture_ok(statestore_write_log(&s->f->store, info, s->payload[info->round], &et), &et))
			return true;
	return false;
}

static void run_writing(void *ctx) {
	struct scene *s = ctx;
	const struct statestore *store = &s->f->store;
	static const uint8_t bytes[100];
	struct rv_errtext et = {0};
	for (uint64_t r = 0; r < ROUNDS; r++) {
		struct state_log_info info = {.round = r, .attempt = SOUGHT_ATTEMPT};
		if (!keep_log(s, &info))
			return;
		s->acknowledged = r + 1;
		if (!torture_ok(global_apply(&s->g, s->payload[r], &info.digest, &et), &et))
			return;
		struct state_replica_info replica = {.round = r + 1, .chain = s->g.chain, .payload_bytes = sizeof bytes};
		(void)torture_ok(statestore_write_replica(store, &replica, bytes, &et), &et);
		if ((r + 1) % STATE_FIXTURE_BASE_EVERY == 0 && torture_ok(statestore_write_base(store, &s->g, NULL, &et), &et))
			(void)torture_ok(
				statestore_prune(store, &(struct checkpoint_named){.vouched_round = r + 1, .logs_from = r + 1}, &et),
				&et);
	}
}

static void recover_and_compare(struct scene *s, uint64_t at_least) {
	struct statestore_found found;
	struct rv_errtext et = {0};
	begin_again(s);
	if (statestore_recover(&s->f->store, &s->g, &found, &et) != RV_OK)
		fail_msg("afterwards: %s", et.text);
	if (s->f->notice[0] != '\0')
		fail_msg("afterwards a file is damaged: %s", s->f->notice);
	assert_in_range(s->g.round, at_least, ROUNDS);
	struct rv_hash full = global_full_hash(&s->g);
	assert_memory_equal(&full, &s->full[s->g.round], sizeof full);
	blob_unref(found.reduced);
	blob_unref(found.replica_file);
}

static void check_writing(void *ctx) {
	struct scene *s = ctx;
	recover_and_compare(s, s->acknowledged);
}

static void writing(void **state) {
	torture(&(struct torture){"checkpoint, written", begin_writing, run_writing, check_writing, *state, TRIALS});
}

/* ---- reading --------------------------------------------------------------------------------------------------------- */

static void begin_reading(void *ctx) {
	begin_again(ctx);
}

static void run_reading(void *ctx) {
	struct scene *s = ctx;
	struct statestore_found found = {.has_log = false};
	struct rv_errtext et = {0};
	if (!torture_ok(statestore_recover(&s->f->store, &s->g, &found, &et), &et))
		return;
	struct rv_hash full = global_full_hash(&s->g);
	assert_memory_equal(&full, &s->full[s->g.round], sizeof full);
	assert_true(s->g.round == ROUNDS || s->f->notice[0] != '\0'); /* less than there is, without a word */
	blob_unref(found.reduced);
	blob_unref(found.replica_file);
}

static void check_reading(void *ctx) {
	recover_and_compare(ctx, ROUNDS);
}

static void reading(void **state) {
	struct scene *s = *state;
	begin_writing(s);
	run_writing(s);
	assert_int_equal(s->acknowledged, ROUNDS);
	torture(&(struct torture){"checkpoint, read", begin_reading, run_reading, check_reading, s, TRIALS});
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(writing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(reading, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
