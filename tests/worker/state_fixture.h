/* state_fixture.h: a state store in a temporary directory, and a small run to fill it. */
#ifndef TESTS_WORKER_STATE_FIXTURE_H
#define TESTS_WORKER_STATE_FIXTURE_H

#include "worker/state/statestore.h"

enum { STATE_FIXTURE_N = 3000, STATE_FIXTURE_ROUNDS = 16, STATE_FIXTURE_SNAPSHOT_EVERY = 2 };

struct state_fixture {
	struct statestore store;
	struct global_state g;
	struct rv_hash full[STATE_FIXTURE_ROUNDS + 1]; /* full hash at each round */
	char notice[1024];                             /* the last one */
};

/* For fixtures from now on: rounds exchange one of so many parts of the vector (1 at the start of
 * the program). */
void state_fixture_fragments(uint32_t n);
struct state_fixture *state_fixture_new(void);
void state_fixture_free(struct state_fixture *f);
enum rv_err state_fixture_theta0(struct state_fixture *f, struct global_state *g);
/* Plays rounds up to `rounds`, each with a log entry of that `attempt`, and a snapshot every
 * SNAPSHOT_EVERY rounds. */
void state_fixture_play(struct state_fixture *f, uint64_t rounds, uint32_t attempt);
/* A replica saved 3 steps into `round`. */
void state_fixture_save_replica(struct state_fixture *f, uint64_t round);
void state_fixture_remove(struct state_fixture *f, enum statestore_file kind, uint64_t round);

#endif
