/* kept_scene.h: the inner states of a few rounds, as a worker keeps them for auditors
 * (worker/audit/kept_states.h), and what must be found of them afterwards, whatever happened to the
 * disk meanwhile. */
#ifndef TESTS_TORTURE_KEPT_SCENE_H
#define TESTS_TORTURE_KEPT_SCENE_H

#include "tests/train/train_fixture.h"
#include "worker/audit/kept_states.h"

enum { KEPT_SLOTS = 2, KEPT_FIRST = 1, KEPT_LAST = 4 };

/* What was acknowledged. */
struct kept_promises {
	bool written[KEPT_LAST + 1];
	struct rv_hash roots[KEPT_LAST + 1];
	uint64_t begun; /* the round that was written last, or is being written */
	bool drops, dropped;
};

struct kept_scene {
	struct fixture_run f;
	struct statestore store; /* in a directory in memory */
	size_t n;
	float *theta;                  /* (n) weights that are being written */
	struct kept_promises promises; /* of a trial in this process */
};

struct kept_scene *kept_scene_new(void);
void kept_scene_free(struct kept_scene *s);
/* Keeps the rounds; a round that cannot be kept is left out. Then it drops all, if `drops`. */
void kept_scene_write(struct kept_scene *s, struct kept_promises *acknowledged, bool drops);
/* Reads each round, and fails the test if something is there that was not written, or if a round is
 * not there that must be; then keeps all of them once more. */
void kept_scene_check(struct kept_scene *s, const struct kept_promises *acknowledged);

#endif
