/* test_torture_transfer.c: a state on its way from donors to a joiner, while every call of all of
 * them that can fail fails in turn, also on the storage thread: memory pressure, mostly. Nobody
 * dies, no donor is accused of what was not its fault, and when nothing fails any more the joiner
 * has the state. */

#include "tests/common/check.h"
#include "tests/torture/torture.h"
#include "tests/worker/transfer_world.h"

enum {
	TRIALS = 60,
	STEPS = 400,
	ROUND = 4,
	PAUSE_US = 30 * 1000 * TRANSFER_MS /* whoever is let alone is asked again */
};

struct scene {
	struct transfer_world *w;
	struct state_id snapshot, log;
};

static void begin(void *ctx) {
	struct scene *s = ctx;
	s->w = transfer_world_new();
	s->w->may_warn = true;
	s->snapshot = transfer_id(s->w, STATE_KIND_SNAPSHOT, ROUND);
	s->log = transfer_id(s->w, STATE_KIND_LOG, ROUND);
}

static void run(void *ctx) {
	struct scene *s = ctx;
	struct transfer_world *w = s->w;
	const struct state_id ids[] = {s->snapshot, s->log};
	struct rv_errtext et = {0};
	faults_of_all_threads(true);
	if (torture_ok(fetcher_want(w->fetcher, w->now, ids, 2, &et), &et))
		for (int i = 0; i < STEPS && w->files == 0 && w->failures == 0; i++)
			(void)transfer_step(w);
	faults_of_all_threads(false);
}

static void check(void *ctx) {
	struct scene *s = ctx;
	struct transfer_world *w = s->w;
	int files = w->files;
	assert_int_equal(w->bad, 0);
	if (files == 0) {
		assert_int_equal(fetcher_want(w->fetcher, w->now, NULL, 0, NULL), RV_OK);
		transfer_settle(w);
		w->now += PAUSE_US;
		transfer_want(w, &s->snapshot, &s->log);
		transfer_until(w, 1);
	}
	transfer_assert_snapshot(w, ROUND);
	transfer_want(w, &s->log, NULL);
	transfer_until(w, w->files + 1);
	assert_non_null(w->log);
	assert_int_equal(w->bad, 0);
	transfer_world_free(w);
}

static void a_state_from_peers(void **state) {
	(void)state;
	static struct scene s;
	torture(&(struct torture){"a state from peers", begin, run, check, &s, TRIALS});
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_state_from_peers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
