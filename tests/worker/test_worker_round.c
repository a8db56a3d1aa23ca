/* test_worker_round.c: a round of a worker that is in step with the run: from its opening to its
 * commit, over several attempts, and what it is not taken in by. */
#include "round_script.h"
#include "tests/common/check.h"

#include <string.h>

static void a_round_from_open_to_commit(void **state) {
	struct round_driver *f = *state;
	expect_nothing(f);
	expect_report(f, WORKER_SYNCING);
	make_ready(f, 0);
	struct report r = expect_report(f, WORKER_READY);
	assert_int_equal(r.tokens, 100);
	assert_int_equal(r.n_chunks, FIXTURE_CHUNKS);
	assert_int_equal(r.boot, 77);
	struct rv_hash digest = digest_of(0), chain = chain_at(0);
	assert_true(rv_hash_equal(&r.chain, &chain));

	reduce_and_vote(f, 0, digest);
	r = expect_report(f, WORKER_VOTED);
	assert_int_equal(r.attempt, 1);
	assert_true(rv_hash_equal(&r.digest, &digest));

	show(f, RUN_OPEN, 1);
	expect_next(f, ROUND_REDUCE_STOP);
	struct round_action a = expect_next(f, ROUND_APPLY);
	assert_true(a.participated);
	assert_true(rv_hash_equal(&a.expect, &digest));
	expect_nothing(f); /* never applied twice */
	apply_ok(f, 0);
	apply_ok(f, 0);
	assert_int_equal(round_round(f->c), 1);
	assert_int_equal(expect_next(f, ROUND_TRAIN).steps, FIXTURE_H);
	assert_int_equal(expect_report(f, WORKER_TRAINING).round, 1);
}

static void reports_on_change_and_on_heartbeat(void **state) {
	struct round_driver *f = *state;
	show(f, RUN_OPEN, 0);
	struct report first = expect_report(f, WORKER_TRAINING), second;
	assert_false(round_next_report(f->c, f->now, &second));
	assert_int_equal(round_deadline_us(f->c), f->now + DRIVER_HEARTBEAT_US);
	f->now += DRIVER_HEARTBEAT_US;
	second = expect_report(f, WORKER_TRAINING);
	assert_int_equal(second.seq, first.seq + 1);
}

static void reports_at_once_what_its_platform_adds(void **state) {
	struct round_driver *f = *state;
	struct report r;
	show(f, RUN_OPEN, 0);
	uint64_t seq = expect_report(f, WORKER_TRAINING).seq;
	round_report_soon(f->c);
	assert_true(round_deadline_us(f->c) <= f->now);
	assert_int_equal(expect_report(f, WORKER_TRAINING).seq, seq + 1);
	assert_false(round_next_report(f->c, f->now, &r));
	assert_int_equal(round_deadline_us(f->c), f->now + DRIVER_HEARTBEAT_US);
}

static void documents_not_newer_are_ignored(void **state) {
	struct round_driver *f = *state;
	show(f, RUN_OPEN, 1);
	f->seq = 0;
	assert_int_equal(show(f, RUN_DONE, FIXTURE_ROUNDS), RV_OK);
	assert_int_equal(round_document(f->c)->round, 1);
}

/* Three fragments: what a report says and what a document may say is of its round's. */
static void each_round_has_the_size_of_its_fragment(void **state) {
	struct round_driver *f = *state;
	for (uint64_t round = 0; round < 6; round++) {
		const struct round_config cfg = {.n_fragments = 3,
										 .n_chunks = {FIXTURE_CHUNKS, FIXTURE_CHUNKS + 4, FIXTURE_CHUNKS + 2}};
		round_driver_start(f, cfg, round, 0);
		assert_int_equal(expect_report(f, WORKER_SYNCING).n_chunks, cfg.n_chunks[round % 3]);
		document_make(&f->doc, ++f->seq, RUN_REDUCE, round, 0);
		f->doc.n_chunks = cfg.n_chunks[round % 3] + 1;
		assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_E_PROTOCOL);
		f->doc.n_chunks = cfg.n_chunks[round % 3];
		assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_OK);
	}
}

/* A coordinator that asks for more than the worker's person agreed to is not followed. */
static void a_longer_run_is_not_followed(void **state) {
	struct round_driver *f = *state;
	struct rv_errtext why;
	struct round_config cfg = {.rounds = FIXTURE_ROUNDS};
	document_make(&f->doc, ++f->seq, RUN_OPEN, 0, 0);
	cfg.run_hash = f->doc.run_hash;
	cfg.run_hash.b[0] ^= 1;
	round_driver_start(f, cfg, 0, 0);
	assert_int_equal(round_on_document(f->c, &f->doc, &why), RV_E_CORRUPT);
	assert_non_null(strstr(why.text, "another configuration than the one that was agreed to"));
	cfg.run_hash = f->doc.run_hash;
	round_driver_start(f, cfg, 0, 0);
	f->doc.final_round = FIXTURE_ROUNDS + 1;
	assert_int_equal(round_on_document(f->c, &f->doc, &why), RV_E_CORRUPT);
	assert_non_null(strstr(why.text, "were agreed to"));
	document_make(&f->doc, ++f->seq, RUN_DONE, FIXTURE_ROUNDS - 1, 0);
	f->doc.final_round = FIXTURE_ROUNDS - 1; /* an end before its time would end the worker, too */
	assert_int_equal(round_on_document(f->c, &f->doc, &why), RV_E_CORRUPT);
	assert_null(round_document(f->c));
	f->doc.final_round = FIXTURE_ROUNDS;
	document_make(&f->doc, ++f->seq, RUN_OPEN, 0, 0);
	assert_int_equal(round_on_document(f->c, &f->doc, &why), RV_OK);
}

static void without_an_encoded_gradient_nobody_takes_part(void **state) {
	struct round_driver *f = *state;
	show(f, RUN_REDUCE, 0);
	expect_next(f, ROUND_TRAIN);
	expect_nothing(f);
	expect_report(f, WORKER_TRAINING);
}

static void waiting_holds(void **state) {
	struct round_driver *f = *state;
	show(f, RUN_WAITING, 0);
	expect_nothing(f);
	expect_report(f, WORKER_TRAINING);
	show(f, RUN_OPEN, 0);
	expect_next(f, ROUND_TRAIN);
}

static void a_later_attempt_supersedes_the_vote(void **state) {
	struct round_driver *f = *state;
	make_ready(f, 0);
	struct rv_hash wrong = digest_of(99), right = digest_of(0);
	reduce_and_vote(f, 0, wrong);
	show_attempt(f, RUN_REDUCE, 0, 2, 0x7);
	expect_next(f, ROUND_REDUCE_RESTART);
	assert_int_equal(expect_report(f, WORKER_REDUCING).attempt, 2);
	round_on_reduced(f->c, 0, 1); /* stale */
	expect_nothing(f);
	round_on_reduced(f->c, 0, 2);
	expect_next(f, ROUND_PERSIST);
	round_on_persisted(f->c, f->now, 0, 2, &right, true);
	assert_hash(expect_report(f, WORKER_VOTED).digest, right);
	show(f, RUN_OPEN, 1);
	expect_next(f, ROUND_REDUCE_STOP);
	assert_true(expect_next(f, ROUND_APPLY).participated);
}

static void a_roster_without_us_stops_the_all_reduce(void **state) {
	struct round_driver *f = *state;
	make_ready(f, 0);
	show(f, RUN_REDUCE, 0);
	expect_next(f, ROUND_REDUCE_START);
	show_attempt(f, RUN_REDUCE, 0, 2, 0x3);
	expect_next(f, ROUND_REDUCE_STOP);
	expect_report(f, WORKER_READY);
	/* Back in attempt 3: from the start for us. */
	show_attempt(f, RUN_REDUCE, 0, 3, 0x7);
	expect_next(f, ROUND_REDUCE_START);
}

static void too_few_members_for_a_moment_keeps_the_all_reduce(void **state) {
	struct round_driver *f = *state;
	make_ready(f, 0);
	show(f, RUN_REDUCE, 0);
	expect_next(f, ROUND_REDUCE_START);
	show(f, RUN_WAITING, 0);
	expect_nothing(f);
	show_attempt(f, RUN_REDUCE, 0, 2, 0x7);
	expect_next(f, ROUND_REDUCE_RESTART);
}

static void a_roster_of_our_former_process_is_not_ours(void **state) {
	struct round_driver *f = *state;
	make_ready(f, 0);
	document_make(&f->doc, ++f->seq, RUN_REDUCE, 0, 0);
	document_members(&f->doc, EVERYBODY);
	f->doc.members[FIXTURE_SELF].boot = 76;
	round_on_document(f->c, &f->doc, NULL);
	expect_nothing(f);
	expect_report(f, WORKER_READY);
	f->doc.seq = ++f->seq;
	f->doc.attempt++;
	f->doc.members[FIXTURE_SELF].boot = 77;
	round_on_document(f->c, &f->doc, NULL);
	expect_next(f, ROUND_REDUCE_START);
}

static void a_vote_found_on_disk_is_cast_again(void **state) {
	struct round_driver *f = *state;
	struct rv_hash digest = digest_of(3);
	start_with(f, 3, 2, LATE_KEEP);
	round_on_persisted(f->c, f->now, 3, 1, &digest, true);
	show(f, RUN_REDUCE, 3);
	assert_hash(expect_report(f, WORKER_VOTED).digest, digest);
	assert_int_equal(expect_next(f, ROUND_TRAIN).steps, FIXTURE_H - 2);
	show(f, RUN_OPEN, 4);
	assert_true(expect_next(f, ROUND_APPLY).participated);
}

static void an_uncommitted_log_entry_is_replaced(void **state) {
	struct round_driver *f = *state;
	struct rv_hash other = digest_of(77);
	start_with(f, 3, 0, LATE_KEEP);
	round_on_persisted(f->c, f->now, 3, 1, &other, true);
	show(f, RUN_OPEN, 4);
	expect_next(f, ROUND_FETCH_LOG);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 3, true);
	assert_false(expect_next(f, ROUND_APPLY).participated);
}

static void suspects_are_reported_for_the_current_attempt_only(void **state) {
	struct round_driver *f = *state;
	const struct grid_suspects two = {.n = 2, .places = {100, 103}};
	make_ready(f, 0);
	show(f, RUN_REDUCE, 0);
	expect_next(f, ROUND_REDUCE_START);
	expect_report(f, WORKER_REDUCING);
	round_on_suspects(f->c, 1, &two);
	const struct report r = expect_report(f, WORKER_REDUCING);
	assert_true(r.n_suspects == 2 && r.suspects[0] == 100 && r.suspects[1] == 103);
	show_attempt(f, RUN_REDUCE, 0, 2, 0x7);
	expect_next(f, ROUND_REDUCE_RESTART);
	round_on_suspects(f->c, 1, &two);
	assert_int_equal(expect_report(f, WORKER_REDUCING).n_suspects, 0);
}

static void leaving_stops_everything(void **state) {
	struct round_driver *f = *state;
	make_ready(f, 0);
	show(f, RUN_REDUCE, 0);
	expect_next(f, ROUND_REDUCE_START);
	round_leave(f->c);
	expect_next(f, ROUND_REDUCE_STOP);
	expect_nothing(f);
	expect_report(f, WORKER_LEAVING);
}

static void contradictions_are_refused(void **state) {
	struct round_driver *f = *state;
	start_with(f, 5, 0, LATE_KEEP);
	assert_int_equal(show(f, RUN_OPEN, 4), RV_E_CORRUPT); /* before what we hold */
	assert_null(round_document(f->c));
	assert_int_equal(show(f, RUN_OPEN, 5), RV_OK);
	document_make(&f->doc, ++f->seq, RUN_OPEN, 6, 0);
	f->doc.run_hash.b[0] ^= 1;
	assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_E_CORRUPT);
	document_make(&f->doc, ++f->seq, RUN_OPEN, 6, 0);
	f->doc.log[2].b[0] ^= 1;
	assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_E_CORRUPT);
	document_make(&f->doc, ++f->seq, RUN_REDUCE, 5, 0);
	f->doc.n_chunks++;
	assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_E_PROTOCOL);
	assert_int_equal(round_document(f->c)->round, 5);
	expect_next(f, ROUND_TRAIN);
}

/* A coordinator that was restored from a backup counts attempts again: it catches up by itself. */
static void an_earlier_attempt_is_refused(void **state) {
	struct round_driver *f = *state;
	struct rv_errtext et = {0};
	make_ready(f, 0);
	assert_int_equal(show_attempt(f, RUN_REDUCE, 0, 2, EVERYBODY), RV_OK);
	expect_action(f, ROUND_REDUCE_START, 0);
	document_make(&f->doc, ++f->seq, RUN_REDUCE, 0, 0);
	document_members(&f->doc, EVERYBODY);
	assert_int_equal(round_on_document(f->c, &f->doc, &et), RV_E_CORRUPT);
	assert_string_equal(et.text, "document 3 is of attempt 1 at round 0, and this worker knows attempt 2");
	assert_true(round_knows_later(f->c, &f->doc));
	assert_int_equal(show(f, RUN_OPEN, 0), RV_OK); /* the all-reduce goes on meanwhile */
	assert_int_equal(show_attempt(f, RUN_REDUCE, 0, 1, EVERYBODY), RV_E_CORRUPT);
	assert_int_equal(show_attempt(f, RUN_REDUCE, 0, 3, EVERYBODY), RV_OK);
	expect_action(f, ROUND_REDUCE_RESTART, 0);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, round_script_setup, round_driver_teardown)
	const struct CMUnitTest tests[] = {
		T(a_round_from_open_to_commit),
		T(reports_on_change_and_on_heartbeat),
		T(reports_at_once_what_its_platform_adds),
		T(documents_not_newer_are_ignored),
		T(each_round_has_the_size_of_its_fragment),
		T(a_longer_run_is_not_followed),
		T(without_an_encoded_gradient_nobody_takes_part),
		T(waiting_holds),
		T(a_later_attempt_supersedes_the_vote),
		T(a_roster_without_us_stops_the_all_reduce),
		T(too_few_members_for_a_moment_keeps_the_all_reduce),
		T(a_roster_of_our_former_process_is_not_ours),
		T(a_vote_found_on_disk_is_cast_again),
		T(an_uncommitted_log_entry_is_replaced),
		T(suspects_are_reported_for_the_current_attempt_only),
		T(leaving_stops_everything),
		T(contradictions_are_refused),
		T(an_earlier_attempt_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
