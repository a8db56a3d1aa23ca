/* test_worker_round_epoch.c: rounds that the operator took back, and what a worker's report says that its disk proves. */
#include "round_fixture.h"

#include "base/chain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HEARTBEAT_US = 1000, EVERYBODY = 0xf };

struct fixture {
	struct round_core *c;
	struct document doc;
	uint64_t seq;
	int64_t now;
};

static void start(struct fixture *f, uint64_t round, uint64_t epoch) {
	struct round_config cfg = {.member = FIXTURE_SELF,
							   .epoch = epoch,
							   .steps_per_round = FIXTURE_H,
							   .n_chunks = {FIXTURE_CHUNKS},
							   .heartbeat_us = HEARTBEAT_US};
	struct rv_hash chain = chain_at(round);
	f->c = round_core_init(f->c, &cfg, 77, round, &chain, 0, f->now);
}

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof *f);
	f->c = malloc(round_core_size());
	f->now = 1;
	*state = f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	free(f->c);
	free(f);
	return 0;
}

static enum rv_err show(struct fixture *f, uint64_t round, uint64_t epoch, uint64_t epoch_round,
						struct rv_errtext *et) {
	document_make(&f->doc, ++f->seq, RUN_OPEN, round, 0);
	document_members(&f->doc, EVERYBODY);
	f->doc.epoch = epoch;
	f->doc.epoch_round = epoch_round;
	return round_on_document(f->c, f->now, &f->doc, et);
}

static enum round_action_type next(struct fixture *f, struct round_action *a) {
	return round_next_action(f->c, f->now, a) ? a->type : ROUND_NONE;
}

static struct report report_of(struct fixture *f) {
	struct report r;
	f->now += HEARTBEAT_US;
	assert_true(round_next_report(f->c, f->now, &r));
	return r;
}

static void a_later_epoch_ends_the_core(void **state) {
	struct fixture *f = *state;
	struct round_action a;
	start(f, 5, 0);
	assert_int_equal(show(f, 5, 0, 0, NULL), RV_OK);
	assert_int_equal(next(f, &a), ROUND_TRAIN);
	assert_int_equal(report_of(f).epoch, 0);
	assert_int_equal(show(f, 4, 2, 3, NULL), RV_OK);
	assert_int_equal(next(f, &a), ROUND_ROLLBACK);
	assert_int_equal(a.round, 3);
	assert_int_equal(a.epoch, 2);
	struct report r;
	assert_int_equal(next(f, &a), ROUND_NONE);
	assert_false(round_next_report(f->c, f->now + 10 * HEARTBEAT_US, &r));
	assert_int_equal(show(f, 6, 0, 0, NULL), RV_OK); /* whatever comes then */
	assert_int_equal(next(f, &a), ROUND_NONE);
	assert_int_equal(round_document(f->c)->round, 5);
}

static void an_earlier_epoch_is_refused(void **state) {
	struct fixture *f = *state;
	struct round_action a;
	struct rv_errtext et = {0};
	start(f, 5, 2);
	assert_int_equal(show(f, 6, 1, 0, &et), RV_E_CORRUPT);
	assert_non_null(strstr(et.text, "epoch 2 has begun"));
	assert_null(round_document(f->c));
	assert_int_equal(next(f, &a), ROUND_NONE);
	assert_int_equal(show(f, 5, 2, 3, NULL), RV_OK);
	assert_int_equal(next(f, &a), ROUND_TRAIN);
	assert_int_equal(report_of(f).epoch, 2);
}

/* Without an epoch an earlier round stays what it was: a store restored from an old copy. */
static void an_earlier_round_of_the_same_epoch_is_refused(void **state) {
	struct fixture *f = *state;
	struct rv_errtext et = {0};
	start(f, 5, 1);
	assert_int_equal(show(f, 4, 1, 3, &et), RV_E_CORRUPT);
	assert_non_null(strstr(et.text, "rollback"));
}

/* A worker that starts for the first time in a run that was rolled back, or was away meanwhile. */
static void also_the_first_document_may_begin_an_epoch(void **state) {
	struct fixture *f = *state;
	struct round_action a;
	start(f, 0, 0);
	assert_int_equal(show(f, 4, 1, 2, NULL), RV_OK);
	assert_int_equal(next(f, &a), ROUND_ROLLBACK);
	assert_int_equal(a.round, 2);
}

static void expect_proven(struct fixture *f, uint64_t round) {
	struct report r = report_of(f);
	struct rv_hash chain = chain_at(round);
	assert_int_equal(r.proven_round, round);
	assert_memory_equal(&r.proven_chain, &chain, sizeof chain);
}

/* Its own state; one round more when the log between is there and is, or may be, the committed one. */
static void what_the_disk_proves(void **state) {
	struct fixture *f = *state;
	struct rv_hash digest = digest_of(5), other = digest_of(77), none = {0};
	start(f, 5, 0);
	expect_proven(f, 5);
	round_on_persisted(f->c, f->now, 5, 1, &digest, true);
	expect_proven(f, 6);
	assert_int_equal(show(f, 7, 0, 0, NULL), RV_OK);
	expect_proven(f, 6);
	start(f, 5, 0);
	round_on_persisted(f->c, f->now, 5, 1, &other, true);
	assert_int_equal(show(f, 7, 0, 0, NULL), RV_OK);
	expect_proven(f, 5);
	start(f, 5, 0);
	round_lacks_state(f->c);
	struct report r = report_of(f);
	assert_memory_equal(&r.proven_chain, &none, sizeof none);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_later_epoch_ends_the_core, setup, teardown),
		cmocka_unit_test_setup_teardown(an_earlier_epoch_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(an_earlier_round_of_the_same_epoch_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(also_the_first_document_may_begin_an_epoch, setup, teardown),
		cmocka_unit_test_setup_teardown(what_the_disk_proves, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
