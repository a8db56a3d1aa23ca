/* test_worker_trainer_ahead.c: steps of the next round ahead of the outer step, of overlapped and
 * of eager updates. */
#include "trainer_scene.h"

#include <stdlib.h>
#include <string.h>

enum { AHEAD = 3, OVERLAPPED_ROUNDS = 3 };

/* From its step `from` on to the steps ahead; what was encoded stays as it was. */
static void train_ahead(struct scene *s, uint64_t round, uint64_t from) {
	if (from < H)
		ask_train(s, round, from, H - from);
	encode(s, round, true);
	struct rv_hash encoded = rv_hash_of(trainer_encoded(s->t), payload_bytes(s));
	if (round + 1 < OVERLAPPED_ROUNDS) {
		ask_train(s, round + 1, 0, AHEAD);
		wait_for(s, &s->trained, s->trained + 1);
		assert_int_equal(s->progress.ahead, AHEAD);
		assert_int_equal(trainer_progress(s->t).done.steps_done, H);
		assert_int_equal(trainer_progress(s->t).global_step, (round + 1) * H + AHEAD);
	}
	struct rv_hash after = rv_hash_of(trainer_encoded(s->t), payload_bytes(s));
	assert_memory_equal(after.b, encoded.b, RV_HASH_BYTES);
}

/* Of one worker, whose share is all: its steps ahead begin where the next round will, so that they
 * are not ahead at all. */
static bool is_eager(const struct scene *s) {
	return s->run.cfg.updates == UPDATES_EAGER;
}

static void steps_ahead_are_what_they_are_by_hand(void **state) {
	struct scene *s = *state;
	struct rv_hash want = by_hand(s, OVERLAPPED_ROUNDS, is_eager(s) ? 0 : AHEAD);
	for (uint64_t r = 0; r < OVERLAPPED_ROUNDS; r++) {
		train_ahead(s, r, r > 0 ? AHEAD : 0);
		apply_own_result(s, PARTICIPANT_ADOPT);
		assert_int_equal(trainer_progress(s->t).done.steps_done, r + 1 < OVERLAPPED_ROUNDS ? AHEAD : 0);
	}
	assert_ended_as_by_hand(s, &want);
}

/* A process dies with steps ahead: the next one goes on from the copy of the encoding, and does
 * them again. */
static void steps_ahead_are_not_saved_but_done_again(void **state) {
	struct scene *s = *state;
	struct rv_hash want = by_hand(s, OVERLAPPED_ROUNDS, is_eager(s) ? 0 : AHEAD);
	train_ahead(s, 0, 0);
	struct state_replica_info info = s->copy->replica;
	struct blob *bytes = blob_ref(s->copy->replica_bytes);
	replica_seal(bytes->data, info.payload_bytes);
	ask(s, TRAINER_SAVE);
	wait_for(s, &s->saved, 1);
	assert_null(s->copy->replica_bytes);
	assert_int_equal(s->copy_is.err, RV_OK);

	assert_true(scene_resume(s, &info, bytes).exact);
	assert_int_equal(trainer_progress(s->t).done.steps_done, H);
	for (uint64_t r = 0; r < OVERLAPPED_ROUNDS; r++) {
		train_ahead(s, r, r > 0 ? AHEAD : H);
		apply_own_result(s, PARTICIPANT_ADOPT);
	}
	assert_ended_as_by_hand(s, &want);
	blob_unref(bytes);
}

static void steps_ahead_of_a_late_worker_are_kept_or_not(void **state) {
	struct scene *s = *state;
	train_ahead(s, 0, 0);
	uint64_t tokens = trainer_progress(s->t).done.tokens, per_step = tokens / H;
	apply_own_result(s, PARTICIPANT_KEEP);
	assert_int_equal(trainer_progress(s->t).done.steps_done, H);
	assert_int_equal(trainer_progress(s->t).done.tokens, tokens + AHEAD * per_step);
	train_ahead(s, 1, H);
	apply_own_result(s, PARTICIPANT_DISCARD);
	assert_int_equal(trainer_progress(s->t).done.steps_done, 0);
	assert_int_equal(trainer_progress(s->t).done.tokens, 0);
	const struct global_state *g = trainer_global(s->t);
	assert_memory_equal(replica_theta(trainer_replica(s->t)), g->theta, g->cfg.n * sizeof(float));
}

/* Before the first of them everything moves with theta; from then on they are the next round's. */
static void steps_ahead_of_who_gave_its_steps_away(void **state) {
	struct scene *s = *state;
	const struct global_state *g = trainer_global(s->t);
	size_t bytes = g->cfg.n * sizeof(float);
	float *local = malloc(bytes), *before = malloc(bytes);
	train_ahead(s, 0, 0);
	uint64_t per_step = trainer_progress(s->t).done.tokens / H;
	memcpy(local, replica_theta(trainer_replica(s->t)), bytes);
	apply_own_result(s, PARTICIPANT_KEEP);
	assert_int_equal(trainer_progress(s->t).done.steps_done, AHEAD);
	assert_int_equal(trainer_progress(s->t).done.tokens, AHEAD * per_step);
	assert_memory_equal(replica_theta(trainer_replica(s->t)), local, bytes);
	ask_train(s, 1, AHEAD, H - AHEAD);
	encode(s, 1, false);
	memcpy(local, replica_theta(trainer_replica(s->t)), bytes);
	memcpy(before, g->theta, bytes);
	apply_own_result(s, PARTICIPANT_KEEP);
	assert_int_equal(trainer_progress(s->t).done.steps_done, H);
	for (size_t i = 0; i < g->cfg.n; i++)
		assert_true(replica_theta(trainer_replica(s->t))[i] == local[i] + (g->theta[i] - before[i]));
	train_ahead(s, 2, H);
	apply_own_result(s, PARTICIPANT_DISCARD);
	assert_int_equal(trainer_progress(s->t).done.steps_done, 0);
	assert_memory_equal(replica_theta(trainer_replica(s->t)), g->theta, bytes);
	free(local);
	free(before);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		EAGER(steps_ahead_are_what_they_are_by_hand),    EAGER(steps_ahead_are_not_saved_but_done_again),
		EAGER(steps_ahead_of_who_gave_its_steps_away),   PLAIN(steps_ahead_are_what_they_are_by_hand),
		PLAIN(steps_ahead_are_not_saved_but_done_again), PLAIN(steps_ahead_of_a_late_worker_are_kept_or_not),
		FEEDBACK(steps_ahead_are_what_they_are_by_hand), FEEDBACK(steps_ahead_are_not_saved_but_done_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
