/* round_driver.h: a round core, the document that it was shown last, and its time: what tests of
 * one rule begin with. */
#ifndef TESTS_WORKER_ROUND_DRIVER_H
#define TESTS_WORKER_ROUND_DRIVER_H

#include "round_fixture.h"

enum { DRIVER_HEARTBEAT_US = 1000 };

struct round_driver {
	struct round_core *c;
	struct document doc;
	bool gives_away; /* round_config.gives_away, for who begins again with it */
	struct participant_progress progress;
	struct round_action apply; /* the last APPLY that was expected */
	uint64_t seq;              /* of doc */
	int64_t now;
};

/* *state: a struct round_driver whose core has memory, and is not begun. */
int round_driver_setup(void **state);
int round_driver_teardown(void **state);
/* The core begins in `round` with so many steps of it, at chain_at(round). Member, H and heartbeat
 * of `cfg` are filled in. */
void round_driver_start(struct round_driver *f, struct round_config cfg, uint64_t round, uint64_t steps_done);

/* The trainer has done that many steps in all of `round`, the core's or the next one. */
void driver_trained(struct round_driver *f, uint64_t round, uint64_t steps, uint64_t tokens);
/* The trainer has ended the last APPLY; its progress is what a participant has then. */
void driver_applied(struct round_driver *f, uint64_t round, const struct rv_hash *chain, bool ok);

/* The next action is this; expect_action: of `round` (CANCEL_FETCH: of any). */
struct round_action expect_next(struct round_driver *f, enum round_action_type type);
struct round_action expect_action(struct round_driver *f, enum round_action_type type, uint64_t round);
void expect_nothing(struct round_driver *f);
/* What it reports a heartbeat later. */
struct report report_of(struct round_driver *f);

/* The end of ENCODE, with a commitment. */
void driver_encoded(struct round_core *c, uint64_t round);

#endif
