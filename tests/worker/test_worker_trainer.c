/* test_worker_trainer.c: the trainer does what the same calls on a replica and a shared state would
 * do, whatever it is asked in between. */
#include "trainer_scene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void rounds_are_what_they_are_by_hand(void **state) {
	struct scene *s = *state;
	struct rv_hash want = by_hand(s, 3, 0);
	for (uint64_t r = 0; r < 3; r++)
		play_round(s, r);
	assert_ended_as_by_hand(s, &want);
	assert_non_null(s->copy);
	assert_true(s->copy_is.has_snapshot);
	struct rv_hash full = global_full_hash(&s->copy->snapshot);
	assert_memory_equal(full.b, want.b, RV_HASH_BYTES);
	struct trainer_progress p = trainer_progress(s->t);
	assert_int_equal(p.round, 3);
	assert_int_equal(p.done.steps_done, 0);
	assert_int_equal(p.global_step, 3 * H);
}

/* Who was left out and discards takes all of theta; who keeps moves with it; who took part keeps
 * what was not exchanged. */
static void fragments_are_adopted_by_who_took_part(void **state) {
	struct scene *s = *state;
	const struct global_state *g = trainer_global(s->t);
	const enum participant_adopt adopts[] = {PARTICIPANT_ADOPT, PARTICIPANT_KEEP, PARTICIPANT_DISCARD};
	size_t bytes = g->cfg.n * sizeof(float);
	float *trained = malloc(bytes), *before = malloc(bytes);
	for (uint64_t round = 0; round < 3; round++) {
		train_and_encode(s, round, false);
		memcpy(trained, replica_theta(trainer_replica(s->t)), bytes);
		memcpy(before, g->theta, bytes);
		apply_own_result(s, adopts[round]);
		const float *local = replica_theta(trainer_replica(s->t));
		size_t as_theta = 0, as_trained = 0, moved = 0;
		for (size_t i = 0; i < g->cfg.n; i++) {
			as_theta += local[i] == g->theta[i];
			as_trained += local[i] == trained[i];
			moved += local[i] == trained[i] + (g->theta[i] - before[i]);
		}
		assert_true(adopts[round] != PARTICIPANT_ADOPT || (as_trained > g->cfg.n / 4 && as_trained < g->cfg.n));
		assert_int_equal(adopts[round] == PARTICIPANT_DISCARD, as_theta == g->cfg.n);
		assert_true(adopts[round] != PARTICIPANT_KEEP || moved == g->cfg.n);
	}
	free(trained);
	free(before);
}

static void an_outer_step_stops_training_at_a_step_boundary(void **state) {
	struct scene *s = *state;
	train_and_encode(s, 0, false);
	struct trainer_request rq = own_result(s, PARTICIPANT_ADOPT);
	ask_train(s, 0, H, 1000000); /* far too many: it must be stopped */
	trainer_request(s->t, &rq);
	blob_unref(rq.reduced);
	wait_for(s, &s->applied, 1);
	assert_int_equal(s->trained, 2);
	assert_true(s->progress.steps_done < 1000000);
}

/* Offers parts of an evaluation of `theta` one after the other, until `losses` of n sequences are
 * there. */
static void measure(struct scene *s, const float *theta, double *losses, uint64_t n) {
	for (uint64_t done = 0; done < n;) {
		struct trainer_slice slice = {.theta = theta, .next = done};
		trainer_offer(s->t, &slice);
		wait_for(s, &s->sliced, s->sliced + 1);
		assert_int_equal(slice.all, n);
		assert_true(slice.n > 0 && slice.n <= TRAINER_SLICE_MOST);
		memcpy(losses + done, slice.losses, slice.n * sizeof slice.losses[0]);
		done += slice.n;
	}
}

/* Other weights are evaluated between steps, and where there are none: training keeps its bits, and
 * losses are those of an evaluation as a whole. */
static void evaluations_between_steps_change_nothing(void **state) {
	enum { STEPS = 1000000 };
	struct scene *s = *state;
	const struct rv_hash want = by_hand(s, 3, 0);
	const uint64_t n = dataset_heldout_used(s->run.data, 0);
	double *losses = calloc(n, sizeof *losses), *at_rest = calloc(n, sizeof *at_rest), whole, mean = 0;
	const size_t bytes = trainer_global(s->t)->cfg.n * sizeof(float);
	float *theta = malloc(bytes);
	memcpy(theta, trainer_global(s->t)->theta, bytes);
	ask_train(s, 0, 0, H);
	measure(s, theta, losses, n);
	wait_for(s, &s->trained, 1);
	encode(s, 0, false);
	apply_own_result(s, PARTICIPANT_ADOPT);
	measure(s, theta, at_rest, n);
	assert_memory_equal(losses, at_rest, n * sizeof *losses);
	for (uint64_t i = 0; i < n; i++)
		mean += losses[i] / (double)n;
	assert_int_equal(replica_eval(s->run.replica, theta, 0, &whole, NULL), RV_OK);
	assert_true(fabs(mean - whole) < 1e-9);
	play_round(s, 1);
	play_round(s, 2);
	assert_ended_as_by_hand(s, &want);
	ask_train(s, 3, 0, STEPS); /* ends with the trainer: the slice does not wait for it */
	struct trainer_slice slice = {.theta = theta};
	trainer_offer(s->t, &slice);
	wait_for(s, &s->sliced, s->sliced + 1);
	assert_int_equal(s->trained, 3);
	free(losses);
	free(at_rest);
	free(theta);
}

static void late_progress_is_kept_or_not(void **state) {
	struct scene *s = *state;
	for (int keep = 0; keep < 2; keep++) {
		uint64_t round = (uint64_t)keep;
		train_and_encode(s, round, false);
		apply_own_result(s, keep ? PARTICIPANT_KEEP : PARTICIPANT_ADOPT);
		struct trainer_progress p = trainer_progress(s->t);
		assert_int_equal(p.done.steps_done, keep ? H : 0);
		assert_int_equal(p.global_step, (round + 1) * H + (keep ? H : 0));
	}
	/* theta_local = theta + what was kept: not theta. */
	const struct global_state *g = trainer_global(s->t);
	assert_memory_not_equal(replica_theta(trainer_replica(s->t)), g->theta, g->cfg.n * sizeof(float));
}

static void damaged_bytes_change_nothing(void **state) {
	struct scene *s = *state;
	train_and_encode(s, 0, false);
	struct rv_hash before = global_full_hash(trainer_global(s->t));
	struct trainer_request rq = own_result(s, PARTICIPANT_ADOPT);
	rq.reduced->data[rq.reduced->bytes - 1] ^= 1;
	trainer_request(s->t, &rq);
	blob_unref(rq.reduced);
	wait_for(s, &s->applied, 1);
	assert_int_equal(s->err, RV_E_CORRUPT);
	struct rv_hash after = global_full_hash(trainer_global(s->t));
	assert_memory_equal(before.b, after.b, RV_HASH_BYTES);
}

static void a_round_without_steps_has_no_loss(void **state) {
	struct scene *s = *state;
	assert_true(isnan(trainer_progress(s->t).loss));
	play_round(s, 0);
	assert_true(isfinite(trainer_progress(s->t).last_round_loss));
	encode(s, 1, false);
	apply_own_result(s, PARTICIPANT_ADOPT);
	assert_true(isnan(trainer_progress(s->t).last_round_loss));
	assert_true(isfinite(trainer_progress(s->t).loss));
}

/* A millisecond is too little for a million steps, and enough for one: H by the worker's own
 * speed. */
static void steps_end_when_their_time_is_up(void **state) {
	struct scene *s = *state;
	enum { MANY = 1000000 };
	s->run.cfg.round_ms = 1;
	s->run.cfg.steps_per_round = MANY;
	scene_new_trainer(s);
	ask_train(s, 0, 0, MANY);
	wait_for(s, &s->trained, 1);
	uint64_t steps = s->progress.steps_done;
	assert_in_range(steps, 1, MANY - 1);
	assert_true(s->time_up);
	assert_int_equal(s->progress.tokens, steps * (uint64_t)(s->run.cfg.batch * s->run.cfg.context));
	ask_train(s, 0, steps, MANY - steps); /* as after a round that it missed: no more of them */
	wait_for(s, &s->trained, 2);
	assert_int_equal(s->progress.steps_done, steps);
	encode(s, 0, false);
	apply_own_result(s, PARTICIPANT_ADOPT);
	struct trainer_progress p = trainer_progress(s->t);
	assert_int_equal(p.global_step, MANY);
	ask_train(s, 1, 0, MANY);
	wait_for(s, &s->trained, 3);
	assert_in_range(s->progress.steps_done, 1, MANY - 1);
}

static void held_out_loss_is_the_replicas(void **state) {
	struct scene *s = *state;
	double want;
	assert_int_equal(replica_eval(s->run.replica, NULL, 2, &want, NULL), RV_OK);
	ask_evaluate(s, 2, false);
	wait_for(s, &s->evaluated, 1);
	assert_int_equal(s->err, RV_OK);
	assert_true(s->loss == want);
}

static void a_stop_ends_an_evaluation(void **state) {
	struct scene *s = *state;
	ask_evaluate(s, 0, false);
	ask(s, TRAINER_END);
	ask_evaluate(s, 0, false);
	wait_for(s, &s->evaluated, 2);
	assert_int_equal(s->err, RV_E_CANCELLED);
	assert_int_equal(s->saved, 1);
}

/* A worker saves when it starts, after a rollback: it goes on, and measures. */
static enum rv_err read_zeros(void *n, struct repeat_job *job, struct rv_errtext *errtext) {
	(void)errtext;
	memset(job->before, 0, *(const size_t *)n * sizeof *job->before);
	return RV_OK;
}

/* A round's steps may take an hour: one who stops a worker waits for none of another member's. */
static void no_step_of_another_member_is_repeated_after_a_stop(void **state) {
	struct scene *s = *state;
	size_t n = trainer_global(s->t)->cfg.n;
	uint8_t *inner = calloc(1, inner_state_bytes(n)), *room = malloc(INNER_PIECE_BYTES);
	float *weights = calloc(2 * n, sizeof *weights);
	struct repeat_job job = {
		.steps = H, .before = weights, .state = {.theta = weights + n, .inner = inner, .room = room}};
	struct trainer_request rq = {.work = TRAINER_REPEAT, .repeat = &job, .read_before = read_zeros, .read_ctx = &n};
	assert_true(reading_add(&rq.text, 0, 64));
	ask(s, TRAINER_END);
	trainer_request(s->t, &rq);
	wait_for(s, &s->repeated, 1);
	assert_int_equal(s->err, RV_E_CANCELLED);
	assert_true(job.begun && job.done == 0);
	free(inner);
	free(room);
	free(weights);
}

/* Nobody wants it any more, before it has begun or between two of its steps. */
static void no_step_is_repeated_that_nobody_wants(void **state) {
	struct scene *s = *state;
	size_t n = trainer_global(s->t)->cfg.n;
	uint8_t *inner = calloc(1, inner_state_bytes(n)), *room = malloc(INNER_PIECE_BYTES);
	float *weights = calloc(2 * n, sizeof *weights);
	struct repeat_job job = {
		.steps = H, .dropped = true, .before = weights, .state = {.theta = weights + n, .inner = inner, .room = room}};
	struct trainer_request rq = {.work = TRAINER_REPEAT, .repeat = &job, .read_before = read_zeros, .read_ctx = &n};
	assert_true(reading_add(&rq.text, 0, 64));
	trainer_request(s->t, &rq);
	wait_for(s, &s->repeated, 1);
	assert_int_equal(s->err, RV_E_CANCELLED);
	assert_int_equal(job.done, 0);
	free(inner);
	free(room);
	free(weights);
}

static void evaluations_go_on_after_a_save(void **state) {
	struct scene *s = *state;
	double want;
	assert_int_equal(replica_eval(s->run.replica, NULL, 2, &want, NULL), RV_OK);
	ask(s, TRAINER_SAVE);
	ask_evaluate(s, 2, false);
	wait_for(s, &s->evaluated, 1);
	assert_int_equal(s->saved, 1);
	assert_int_equal(s->err, RV_OK);
	assert_true(s->loss == want);
}

static void an_evaluation_that_fails_says_why(void **state) {
	struct scene *s = *state;
	trainer_global(s->t)->theta[3] = NAN;
	ask_evaluate(s, 1, false);
	wait_for(s, &s->evaluated, 1);
	assert_int_equal(s->err, RV_E_RANGE);
	assert_non_null(strstr(s->said, "held-out loss"));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		PLAIN(rounds_are_what_they_are_by_hand),
		STREAMING(rounds_are_what_they_are_by_hand),
		STREAMING(fragments_are_adopted_by_who_took_part),
		PLAIN(an_outer_step_stops_training_at_a_step_boundary),
		PLAIN(evaluations_between_steps_change_nothing),
		PLAIN(late_progress_is_kept_or_not),
		PLAIN(damaged_bytes_change_nothing),
		PLAIN(held_out_loss_is_the_replicas),
		PLAIN(a_stop_ends_an_evaluation),
		PLAIN(no_step_of_another_member_is_repeated_after_a_stop),
		PLAIN(no_step_is_repeated_that_nobody_wants),
		PLAIN(evaluations_go_on_after_a_save),
		PLAIN(an_evaluation_that_fails_says_why),
		PLAIN(a_round_without_steps_has_no_loss),
		PLAIN(steps_end_when_their_time_is_up),
		FEEDBACK(rounds_are_what_they_are_by_hand),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
