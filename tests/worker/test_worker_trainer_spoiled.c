/* test_worker_trainer_spoiled.c: a gradient or a parameter of no use: it is not given, the tensor
 * is named, and the round begins anew. */
#include "trainer_scene.h"

#include "train/replica_internal.h"

#include <math.h>
#include <string.h>

static void spoil(struct scene *s, size_t at, float value) {
	replica_set_part(trainer_replica(s->t), at, 1, &value);
}

/* It gives nothing, says which tensor is to blame, and goes on from the run's state. */
static void expect_a_fresh_round(struct scene *s, const char *text) {
	const struct global_state *g = trainer_global(s->t);
	assert_int_equal(s->err, RV_E_RANGE);
	if (!strstr(s->said, text))
		fail_msg("'%s' does not name %s", s->said, text);
	assert_memory_equal(replica_theta(trainer_replica(s->t)), g->theta, g->cfg.n * sizeof *g->theta);
	struct trainer_progress p = trainer_progress(s->t);
	assert_int_equal(p.done.steps_done, 0);
	assert_int_equal(p.global_step, g->round * H);
}

static void a_gradient_of_no_use_is_not_given(void **state) {
	const float values[] = {NAN, INFINITY, -2e31f, 3e38f};
	struct scene *s = *state;
	const struct model_layout *l = &replica_model(trainer_replica(s->t))->layout;
	const struct model_tensor *victim = &l->tensors[l->n_tensors / 2];
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
		ask_train(s, 0, 0, H);
		wait_for(s, &s->trained, s->trained + 1);
		spoil(s, victim->offset + 3, values[i]);
		encode(s, 0, true);
		assert_null(s->copy);
		expect_a_fresh_round(s, victim->name);
	}
	ask_train(s, 0, 0, H);
	wait_for(s, &s->trained, s->trained + 1);
	spoil(s, 0, 9e30f); /* not so large that a mean could overflow */
	encode(s, 0, false);
	assert_int_equal(s->err, RV_OK);
}

/* While it trains: every batch is refused from there on. */
static void a_parameter_of_no_use_begins_the_round_anew(void **state) {
	struct scene *s = *state;
	const struct model_layout *l = &replica_model(trainer_replica(s->t))->layout;
	float *v = trainer_replica(s->t)->parts[0].v; /* moments of 32 bits */
	ask_train(s, 0, 0, 1);
	wait_for(s, &s->trained, 1);
	spoil(s, l->tensors[0].offset, NAN);
	v[5] = INFINITY;
	ask_train(s, 0, 1, H - 1);
	wait_for(s, &s->trained, 2);
	assert_int_equal(s->progress.steps_done, 0);
	expect_a_fresh_round(s, l->tensors[0].name);
	assert_true(v[5] == 0);
	assert_true(trainer_replica(s->t)->adam_steps == 0);
	play_round(s, 0);
	float moment = v[5];
	spoil(s, l->tensors[0].offset, NAN); /* moments that are well stay */
	encode(s, 1, false);
	expect_a_fresh_round(s, l->tensors[0].name);
	assert_true(v[5] == moment);
	assert_int_equal(trainer_replica(s->t)->adam_steps, H);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		PLAIN(a_gradient_of_no_use_is_not_given),
		FEEDBACK(a_gradient_of_no_use_is_not_given),
		PLAIN(a_parameter_of_no_use_begins_the_round_anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
