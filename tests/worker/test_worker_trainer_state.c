/* test_worker_trainer_state.c: state from elsewhere: a snapshot that is installed, a replica that
 * was saved and goes on exactly, and the residual of error feedback in it. */
#include "trainer_scene.h"

#include "base/hex.h"
#include "train/files/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void theta0_is_installed_again(void **state) {
	struct scene *s = *state;
	struct rv_hash theta0 = global_full_hash(trainer_global(s->t));
	play_round(s, 0);
	ask_install(s, 0, NULL, &(struct rv_hash){0});
	wait_for(s, &s->installed, 1);
	assert_int_equal(s->err, RV_OK);
	struct rv_hash now = global_full_hash(trainer_global(s->t));
	assert_memory_equal(now.b, theta0.b, RV_HASH_BYTES);
	assert_memory_equal(replica_theta(trainer_replica(s->t)), trainer_global(s->t)->theta,
						trainer_global(s->t)->cfg.n * sizeof(float));
}

static void install(struct scene *s, const struct global_state *g, const struct rv_hash *expect, enum rv_err want) {
	struct rv_hash full;
	struct state_file *snapshot = scene_snapshot(s, g, &full);
	ask_install(s, g->round, snapshot, expect);
	wait_for(s, &s->installed, s->installed + 1);
	assert_int_equal(s->err, want);
}

static void a_snapshot_is_installed_only_when_it_is_the_vouched_one(void **state) {
	struct scene *s = *state;
	play_round(s, 0);
	const struct global_state snapshot = s->copy->snapshot;
	struct blob *bytes = blob_ref(s->copy->snapshot_bytes);
	struct rv_hash full = global_full_hash(&snapshot), wrong = full;
	play_round(s, 1);
	wrong.b[0] ^= 1;
	install(s, &snapshot, &wrong, RV_E_CORRUPT);
	assert_int_equal(trainer_global(s->t)->round, 2);
	install(s, &snapshot, &full, RV_OK);
	assert_int_equal(trainer_global(s->t)->round, 1);
	struct rv_hash now = global_full_hash(trainer_global(s->t));
	assert_memory_equal(now.b, full.b, RV_HASH_BYTES);
	blob_unref(bytes);
}

/* A snapshot of round 0 that nobody vouches for is what the run's init_hash says, or refused. */
static void initial_weights_of_a_peer_are_checked(void **state) {
	struct scene *s = *state;
	const struct rv_hash any = {{0}};
	struct rv_hash weights = weights_hash(trainer_global(s->t)->theta, trainer_global(s->t)->cfg.n);
	install(s, trainer_global(s->t), &any, RV_E_CORRUPT); /* the run has no init_hash */
	rv_hex_encode(weights.b, RV_HASH_BYTES, s->run.cfg.init_hash);
	scene_new_trainer(s);
	install(s, trainer_global(s->t), &any, RV_OK);
	play_round(s, 0);
	install(s, &s->copy->snapshot, &any, RV_E_CORRUPT); /* whole, but no state of round 0 */
}

/* Two steps, save, a new trainer, two more: the same gradient as four at once. */
static void a_saved_replica_goes_on_exactly(void **state) {
	struct scene *s = *state;
	struct rv_hash want = by_hand(s, 1, 0);
	ask_train(s, 0, 0, H);
	ask(s, TRAINER_SAVE); /* stops it at some step */
	wait_for(s, &s->saved, 1);
	struct state_replica_info info = s->copy->replica;
	replica_seal(s->copy->replica_bytes->data, info.payload_bytes);
	struct blob *bytes = blob_ref(s->copy->replica_bytes);

	scene_resume(s, &info, bytes);
	assert_int_equal(trainer_progress(s->t).done.steps_done, info.steps_done);
	if (info.steps_done < H)
		ask_train(s, 0, info.steps_done, H - info.steps_done);
	encode(s, 0, false);
	apply_own_result(s, PARTICIPANT_ADOPT);
	assert_ended_as_by_hand(s, &want);
	blob_unref(bytes);
}

/* The saved replica of a later round has moments and a data position that the run's begin has not:
 * where the run is taken back there, it is trained as for the first time. */
static void a_run_that_is_taken_back_to_its_begin_begins_again(void **state) {
	struct scene *s = *state;
	struct rv_hash want = by_hand(s, 1, 0);
	play_round(s, 0);
	ask(s, TRAINER_SAVE);
	wait_for(s, &s->saved, 1);
	struct state_replica_info info = s->copy->replica;
	assert_int_equal(info.round, 1);
	replica_seal(s->copy->replica_bytes->data, info.payload_bytes);
	struct blob *bytes = blob_ref(s->copy->replica_bytes);

	assert_false(scene_resume(s, &info, bytes).saved);
	train_and_encode(s, 0, false);
	apply_own_result(s, PARTICIPANT_ADOPT);
	assert_ended_as_by_hand(s, &want);
	blob_unref(bytes);
}

/* A worker that was left out of a round has said nothing in it; one whose state comes from others
 * knows nothing of what it has said. */
static void only_what_is_committed_leaves_a_residual(void **state) {
	struct scene *s = *state;
	play_round(s, 0);
	train_and_encode(s, 1, false);
	struct rv_hash said = rv_hash_of(trainer_encoded(s->t), payload_bytes(s));
	encode(s, 1, false);
	struct rv_hash again = rv_hash_of(trainer_encoded(s->t), payload_bytes(s));
	assert_memory_equal(said.b, again.b, RV_HASH_BYTES);
	const uint8_t *old = s->copy->replica_bytes->data + s->copy->replica.payload_bytes - RV_HASH_BYTES;
	const size_t bytes = trainer_global(s->t)->cfg.n * sizeof(float);
	float *before = malloc(bytes);
	memcpy(before, old - bytes, bytes);
	apply_own_result(s, PARTICIPANT_DISCARD);
	const uint8_t *now = s->copy->replica_bytes->data + s->copy->replica.payload_bytes - RV_HASH_BYTES;
	assert_memory_equal(now - bytes, before, bytes);
	play_round(s, 2);
	now = s->copy->replica_bytes->data + s->copy->replica.payload_bytes - RV_HASH_BYTES;
	assert_memory_not_equal(now - bytes, before, bytes);
	free(before);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		EAGER(a_saved_replica_goes_on_exactly),
		STREAMING(a_saved_replica_goes_on_exactly),
		STREAMING(a_snapshot_is_installed_only_when_it_is_the_vouched_one),
		PLAIN(theta0_is_installed_again),
		PLAIN(a_snapshot_is_installed_only_when_it_is_the_vouched_one),
		PLAIN(a_saved_replica_goes_on_exactly),
		PLAIN(initial_weights_of_a_peer_are_checked),
		PLAIN(a_run_that_is_taken_back_to_its_begin_begins_again),
		EAGER(a_run_that_is_taken_back_to_its_begin_begins_again),
		FEEDBACK(a_run_that_is_taken_back_to_its_begin_begins_again),
		FEEDBACK(a_saved_replica_goes_on_exactly),
		FEEDBACK(only_what_is_committed_leaves_a_residual),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
