/* test_worker_round_term.c: rounds that the operator took back, and what a worker's report says
 * that its disk proves. */
#include "round_driver.h"

#include "base/chain.h"
#include "tests/common/check.h"

#include <string.h>

enum { EVERYBODY = 0xf };

static void start(struct round_driver *f, uint64_t round, uint64_t term) {
	round_driver_start(f, (struct round_config){.term = term, .n_chunks = {FIXTURE_CHUNKS}}, round, 0);
}

static enum rv_err show(struct round_driver *f, uint64_t round, uint64_t term, uint64_t term_round,
						struct rv_errtext *et) {
	document_make(&f->doc, ++f->seq, RUN_OPEN, round, 0);
	document_members(&f->doc, EVERYBODY);
	f->doc.term = term;
	f->doc.term_round = term_round;
	return round_on_document(f->c, &f->doc, et);
}

static enum round_action_type next(struct round_driver *f, struct round_action *a) {
	return round_next_action(f->c, f->now, a) ? a->type : ROUND_NONE;
}

static void a_later_term_ends_the_core(void **state) {
	struct round_driver *f = *state;
	struct round_action a;
	start(f, 5, 0);
	assert_int_equal(show(f, 5, 0, 0, NULL), RV_OK);
	assert_int_equal(next(f, &a), ROUND_TRAIN);
	assert_int_equal(report_of(f).term, 0);
	assert_int_equal(show(f, 4, 2, 3, NULL), RV_OK);
	assert_int_equal(next(f, &a), ROUND_ROLLBACK);
	assert_int_equal(a.round, 3);
	assert_int_equal(a.term, 2);
	struct report r;
	assert_int_equal(next(f, &a), ROUND_NONE);
	assert_false(round_next_report(f->c, f->now + 10 * DRIVER_HEARTBEAT_US, &r));
	assert_int_equal(show(f, 6, 0, 0, NULL), RV_OK); /* whatever comes then */
	assert_int_equal(next(f, &a), ROUND_NONE);
	assert_int_equal(round_document(f->c)->round, 5);
}

static void an_earlier_term_is_refused(void **state) {
	struct round_driver *f = *state;
	struct round_action a;
	struct rv_errtext et = {0};
	start(f, 5, 2);
	assert_int_equal(show(f, 6, 1, 0, &et), RV_E_CORRUPT);
	assert_non_null(strstr(et.text, "is of round 6 (term 1), and this worker knows round 5 (term 2)"));
	assert_null(round_document(f->c));
	assert_int_equal(next(f, &a), ROUND_NONE);
	assert_int_equal(show(f, 5, 2, 3, NULL), RV_OK);
	assert_int_equal(next(f, &a), ROUND_TRAIN);
	assert_int_equal(report_of(f).term, 2);
}

/* Without a term an earlier round stays what it was: a store restored from an old copy. */
static void an_earlier_round_of_the_same_term_is_refused(void **state) {
	struct round_driver *f = *state;
	struct rv_errtext et = {0};
	start(f, 5, 1);
	assert_int_equal(show(f, 4, 1, 3, &et), RV_E_CORRUPT);
	assert_non_null(strstr(et.text, "is of round 4"));
	assert_non_null(strstr(et.text, "this worker knows round 5"));
	/* Also what it was only told of. */
	assert_int_equal(show(f, 9, 1, 3, NULL), RV_OK);
	assert_int_equal(show(f, 8, 1, 3, &et), RV_E_CORRUPT);
	assert_non_null(strstr(et.text, "is of round 8"));
	assert_non_null(strstr(et.text, "this worker knows round 9"));
	assert_true(round_knows_later(f->c, &f->doc));
	assert_int_equal(show(f, 9, 1, 3, NULL), RV_OK);
	assert_false(round_knows_later(f->c, &f->doc));
}

/* A worker that starts for the first time in a run that was rolled back, or was away meanwhile. */
static void also_the_first_document_may_begin_a_term(void **state) {
	struct round_driver *f = *state;
	struct round_action a;
	start(f, 0, 0);
	assert_int_equal(show(f, 4, 1, 2, NULL), RV_OK);
	assert_int_equal(next(f, &a), ROUND_ROLLBACK);
	assert_int_equal(a.round, 2);
}

static void expect_proven(struct round_driver *f, uint64_t round) {
	struct report r = report_of(f);
	struct rv_hash chain = chain_at(round);
	assert_int_equal(r.proven_round, round);
	assert_memory_equal(&r.proven_chain, &chain, sizeof chain);
}

/* Its own state; one round more when the log between is there and is, or may be, the committed
 * one. */
static void what_the_disk_proves(void **state) {
	struct round_driver *f = *state;
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

/* A worker that is too far behind for what documents list needs a snapshot: what was fetched on the
 * word of a document is the run's all the same, and a vote may be anything. */
static void what_the_disk_proves_of_before_the_snapshot(void **state) {
	struct round_driver *f = *state;
	struct rv_hash digest = digest_of(5);
	for (uint32_t attempt = 0; attempt < 2; attempt++) {
		start(f, 5, 0);
		round_on_persisted(f->c, f->now, 5, attempt, &digest, true);
		document_make(&f->doc, ++f->seq, RUN_OPEN, 20, 20);
		document_members(&f->doc, EVERYBODY);
		assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_OK);
		expect_proven(f, attempt == 0 ? 6 : 5);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, round_driver_setup, round_driver_teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		T(a_later_term_ends_the_core),
		T(an_earlier_term_is_refused),
		T(an_earlier_round_of_the_same_term_is_refused),
		T(also_the_first_document_may_begin_a_term),
		T(what_the_disk_proves),
		T(what_the_disk_proves_of_before_the_snapshot),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
