/* How often documents are announced: what a round needs at once, and lists of members no faster
 * than at a pace, whatever a member reports (coordinator/core/document.c). */
#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"

enum { FLIPS = 2000, FLIP_US = 5000 /* as fast as reports are taken */, BURST = 64, PER_S = 8 };

/* Member 2 of 3 loses the state and has it again, as fast as it can. */
static uint64_t flip(struct rig *r, int times) {
	const uint64_t before = rig_doc(r)->seq;
	for (int i = 0; i < times; i++) {
		rig_say(r, 2, i % 2 == 0 ? WORKER_SYNCING : WORKER_TRAINING);
		rig_wait(r, FLIP_US);
	}
	return rig_doc(r)->seq - before;
}

/* Each document goes to all members. */
static void one_that_flips_does_not_set_the_pace(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 2, 3);
	rig_say_all(&r, 3, WORKER_TRAINING);
	const uint64_t most = BURST + (uint64_t)PER_S * FLIPS * FLIP_US / RIG_S + 1;
	assert_in_range(flip(&r, FLIPS), 1, most);
	rig_release(&r);
}

static bool is_listed(const struct rig *r, uint32_t member) {
	const struct document *d = rig_doc(r);
	bool listed = false;
	for (int i = 0; i < d->n_syncing; i++)
		listed |= d->syncing[i].member == member;
	return listed;
}

static void the_last_word_is_announced(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 2, 3);
	rig_say_all(&r, 3, WORKER_TRAINING);
	(void)flip(&r, 4 * BURST);
	rig_say(&r, 2, WORKER_SYNCING);
	const int64_t at_us = core_deadline_us(r.core);
	assert_in_range(at_us - r.now_us, 1, RIG_S / PER_S);
	rig_wait(&r, at_us - r.now_us);
	assert_true(is_listed(&r, 2));
	rig_release(&r);
}

/* A round begins, and ends, at once all the same. */
static void a_round_waits_for_no_list(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 2, 3);
	rig_say_all(&r, 3, WORKER_TRAINING);
	(void)flip(&r, 4 * BURST);
	rig_say_all(&r, 3, WORKER_READY);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	rig_say_all(&r, 3, WORKER_VOTED);
	rig_expect(&r, RUN_OPEN, 1, 0);
	rig_release(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_flips_does_not_set_the_pace),
		cmocka_unit_test(the_last_word_is_announced),
		cmocka_unit_test(a_round_waits_for_no_list),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
