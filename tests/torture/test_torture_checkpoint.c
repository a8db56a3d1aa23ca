/* test_torture_checkpoint.c: a worker's state files, while every call that can fail fails in turn:
 * written, they are whole or not there, and what was acknowledged is found again; read, the state
 * is the one of its round to the bit or there is a fault or a notice, and nothing that a later
 * start could have used is lost. */

#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "tests/torture/state_scene.h"
#include "tests/torture/torture.h"

enum { TRIALS = 90 };

struct scene {
	struct state_scene *s;
	struct scene_promises acknowledged; /* of the trial */
};

static int set_up(void **state) {
	static struct scene scene;
	scene = (struct scene){.s = state_scene_new()};
	*state = &scene;
	return 0;
}

static int tear_down(void **state) {
	struct scene *scene = *state;
	state_scene_free(scene->s);
	return 0;
}

/* ---- writing ---- */

static void begin_writing(void *ctx) {
	struct scene *scene = ctx;
	scratch_empty(scene->s->f->store.dir);
	state_scene_begin_again(scene->s);
	scene->acknowledged = (struct scene_promises){0};
}

static void run_writing(void *ctx) {
	struct scene *scene = ctx;
	state_scene_write(scene->s, &scene->acknowledged);
}

static void check(void *ctx) {
	struct scene *scene = ctx;
	(void)state_scene_recover(scene->s, &scene->acknowledged);
}

static void writing(void **state) {
	torture(&(struct torture){"checkpoint, written", begin_writing, run_writing, check, *state, TRIALS});
}

/* ---- reading ---- */

static void begin_reading(void *ctx) {
	struct scene *scene = ctx;
	state_scene_begin_again(scene->s);
}

static void run_reading(void *ctx) {
	struct state_scene *s = ((struct scene *)ctx)->s;
	struct recovered found = {.has_log = false};
	struct rv_errtext et = {0};
	if (!torture_ok(statestore_recover(&s->f->store, &s->g, &found, &et), &et))
		return;
	struct rv_hash full = global_full_hash(&s->g);
	assert_memory_equal(&full, &s->full[s->g.round], sizeof full);
	assert_true(s->g.round == SCENE_ROUNDS || s->f->notice[0] != '\0'); /* less than there is, without a word */
	blob_unref(found.reduced);
	replica_file_free(found.replica_file);
}

static void reading(void **state) {
	struct scene *scene = *state;
	begin_writing(scene);
	run_writing(scene);
	assert_int_equal(scene->acknowledged.round, SCENE_ROUNDS);
	assert_int_equal(scene->acknowledged.replica_round, SCENE_ROUNDS);
	torture(&(struct torture){"checkpoint, read", begin_reading, run_reading, check, scene, TRIALS});
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(writing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(reading, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
