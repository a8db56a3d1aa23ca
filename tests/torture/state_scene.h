/* state_scene.h: a few rounds of a worker, as its storage thread writes them, and what must be
 * found of them afterwards, whatever happened to the disk meanwhile. */
#ifndef TESTS_TORTURE_STATE_SCENE_H
#define TESTS_TORTURE_STATE_SCENE_H

#include "tests/worker/state_fixture.h"

enum { SCENE_ROUNDS = 5 };

/* What was acknowledged: the state and this worker's own file are of no earlier round. */
struct scene_promises {
	uint64_t round, replica_round;
};

struct state_scene {
	struct state_fixture *f;
	struct global_state g;
	uint8_t *payload[SCENE_ROUNDS];
	struct rv_hash full[SCENE_ROUNDS + 1];
};

/* In a directory in memory. */
struct state_scene *state_scene_new(void);
void state_scene_free(struct state_scene *s);
/* Before the first round again; what is on the disk stays. */
void state_scene_begin_again(struct state_scene *s);
/* Log entries, replicas, snapshots, retention; a log that did not get to the disk is tried again,
 * as a worker does. */
void state_scene_write(struct state_scene *s, struct scene_promises *acknowledged);
/* Recovers, and fails the test unless it is the state of its round to the bit, of no round before
 * what was acknowledged, and no file is damaged. Returns the round. */
uint64_t state_scene_recover(struct state_scene *s, const struct scene_promises *at_least);

#endif
