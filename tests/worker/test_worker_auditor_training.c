/* An auditor that scores others' training: what it asks an author for, and what it concludes. */
#include "tests/common/check.h"
#include "tests/worker/auditor_rig.h"

#include <stdlib.h>
#include <string.h>

/* Member 2's contribution to round 7 is to be scored: of all chunks, or of every second one. */
static void order_score(uint32_t member, uint8_t part) {
	open_world();
	w.sent_bytes = (part ? (CHUNKS + 1) / 2 : CHUNKS) * BYTES;
	w.chunk = 0;
	doc.phase = RUN_OPEN;
	doc.round = 8;
	doc.n_scores = 1;
	doc.scores[0] = (struct score_order){.round = 7,
										 .member = member,
										 .n_chunks = CHUNKS,
										 .share = 1,
										 .part = part,
										 .root = merkle_root(w.nodes[2], CHUNKS),
										 .n_pieces = 1,
										 .pieces = {{0, 1}}};
	auditor_follow(w.a, w.now_us, &doc);
}

static void expect_score(enum score_verdict verdict, float gain) {
	static struct report r;
	auditor_report(w.a, &r);
	assert_true(r.n_verdicts == 0 && r.n_scores == 1);
	assert_int_equal(score_results_check(r.scores, r.n_scores, NULL), RV_OK);
	assert_true(r.scores[0].round == 7 && r.scores[0].verdict == verdict && r.scores[0].gain == gain);
	assert_true(auditor_has_news(w.a));
	assert_int_equal(w.taken, 0);
}

static void fetch_all(uint8_t part) {
	for (w.chunk = 0; w.chunk < CHUNKS; w.chunk++) {
		if (part && (7 + 2 + w.chunk) % part != 0)
			continue;
		assert_true(w.scored == NULL && is_asked(2) && !is_asked(0));
		assert_int_equal(answer(2), RV_OK);
	}
	assert_true(w.scored != NULL && !is_asked(2));
}

static void a_whole_contribution_is_fetched_and_scored(void **state) {
	(void)state;
	order_score(2, 0);
	fetch_all(0);
	assert_int_equal(w.scored_of, 2);
	assert_memory_equal(w.scored, w.data[2], CHUNKS * BYTES);
	assert_int_equal(auditor_deadline_us(w.a), INT64_MAX);
	const struct score_result r = {.round = 7, .member = 2, .verdict = SCORE_MEASURED, .gain = 0.5f, .own = 1};
	auditor_scored(w.a, &r);
	expect_score(SCORE_MEASURED, 0.5f);
}

static void of_a_slow_member_what_it_sent(void **state) {
	(void)state;
	order_score(2, 2);
	w.sent_bytes = 2 * BYTES; /* chunks 1 and 3: 7 + 2 + chunk is even */
	auditor_release(w.a);
	doc.n_scores = 0;
	auditor_follow(w.a, w.now_us, &doc);
	doc.n_scores = 1;
	auditor_follow(w.a, w.now_us, &doc);
	fetch_all(2);
	assert_memory_equal(w.scored, w.data[2][1], BYTES);
	assert_memory_equal(w.scored + BYTES, w.data[2][3], BYTES);
}

static void one_that_gives_another_contribution_withholds(void **state) {
	(void)state;
	order_score(2, 0);
	assert_true(is_asked(2));
	assert_int_equal(answer(2), RV_OK);
	w.chunk = 1;
	w.data[2][1][0] ^= 1;
	assert_true(is_asked(2));
	assert_int_equal(answer(2), RV_OK);
	expect_score(SCORE_WITHHELD, 0);
}

static void silence_withholds_and_no_link_is_said(void **state) {
	(void)state;
	for (int is_linked = 0; is_linked < 2; is_linked++) {
		order_score(2, 0);
		w.linked[2] = is_linked;
		assert_true(is_asked(2));
		assert_int_equal(answer(2), RV_OK);
		w.now_us += PATIENCE_US; /* since the last chunk */
		auditor_tick(w.a, w.now_us);
		expect_score(is_linked ? SCORE_WITHHELD : SCORE_UNREACHED, 0);
	}
}

/* What was said before is repeated until there is something better. */
static void one_that_was_not_reached_is_asked_when_it_is_linked(void **state) {
	(void)state;
	order_score(2, 0);
	w.linked[2] = false;
	w.now_us += PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	expect_score(SCORE_UNREACHED, 0);
	auditor_tick(w.a, w.now_us);
	assert_false(is_asked(2));
	w.linked[2] = true;
	auditor_tick(w.a, w.now_us);
	assert_true(is_asked(2));
	w.linked[2] = false;
	auditor_link_down(w.a, w.now_us, 2, true);
	w.now_us += PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	assert_false(auditor_has_news(w.a)); /* the same again */
	w.linked[2] = true;
	auditor_tick(w.a, w.now_us);
	fetch_all(0);
	const struct score_result r = {.round = 7, .member = 2, .verdict = SCORE_MEASURED, .gain = 0.5f, .own = 1};
	auditor_scored(w.a, &r);
	expect_score(SCORE_MEASURED, 0.5f);
}

/* The link of an author that owes a chunk ends, and there is a new one at once. */
static void cut(void) {
	assert_true(is_asked(2));
	auditor_link_down(w.a, w.now_us, 2, true);
	auditor_tick(w.a, w.now_us);
	assert_false(is_asked(2)); /* not yet */
	w.now_us += AUDITOR_AFTER_CUT_US;
	auditor_tick(w.a, w.now_us);
}

static void links_that_end_when_the_author_is_asked_are_said(void **state) {
	(void)state;
	order_score(2, 0);
	for (int i = 0; i < AUDITOR_CUTS; i++) {
		assert_false(auditor_has_news(w.a));
		cut();
	}
	expect_score(SCORE_CUT, 0);
	assert_false(is_asked(2));
	w.now_us += PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	assert_true(is_asked(2));
	w.linked[2] = false; /* worse than CUT: that is said on */
	auditor_link_down(w.a, w.now_us, 2, true);
	w.now_us += PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	assert_false(auditor_has_news(w.a));
	w.linked[2] = true;
	auditor_tick(w.a, w.now_us);
	fetch_all(0);
	const struct score_result r = {.round = 7, .member = 2, .verdict = SCORE_MEASURED, .gain = 0.5f, .own = 1};
	auditor_scored(w.a, &r);
	expect_score(SCORE_MEASURED, 0.5f);
}

static void a_relay_is_not_the_author(void **state) {
	(void)state;
	for (int silent = 0; silent < 2; silent++) {
		order_score(2, 0);
		w.relayed = true;
		if (silent) {
			assert_true(is_asked(2));
			w.now_us = PATIENCE_US;
			auditor_tick(w.a, w.now_us);
		} else {
			cut();
			w.relayed = false; /* of the three links one is enough */
			cut();
			cut();
		}
		expect_score(SCORE_UNABLE, 0);
		assert_int_equal(close_world(NULL), 0);
	}
	order_score(2, 0);
}

/* Ends by this worker, and those before the author paused, are not the author's. */
static void other_ends_are_not_cuts(void **state) {
	(void)state;
	order_score(2, 0);
	for (int i = 0; i < 2 * AUDITOR_CUTS; i++) {
		assert_true(is_asked(2));
		auditor_link_down(w.a, w.now_us, 2, false);
	}
	for (int i = 0; i + 1 < AUDITOR_CUTS; i++)
		cut();
	const uint16_t n = doc.n_members;
	doc.n_members = 0;
	auditor_follow(w.a, w.now_us, &doc);
	doc.n_members = n;
	for (int i = 0; i + 1 < AUDITOR_CUTS; i++)
		cut();
	assert_false(auditor_has_news(w.a));
	cut();
	expect_score(SCORE_CUT, 0);
}

/* A line that ends now and then gives chunks in between. */
static void a_chunk_that_came_begins_the_count_anew(void **state) {
	(void)state;
	order_score(2, 0);
	for (w.chunk = 0; w.chunk < CHUNKS; w.chunk++) {
		for (int i = 0; i + 1 < AUDITOR_CUTS; i++)
			cut();
		assert_true(is_asked(2));
		assert_int_equal(answer(2), RV_OK);
	}
	assert_true(w.scored != NULL);
	const struct score_result r = {.round = 7, .member = 2, .verdict = SCORE_MEASURED, .gain = 0.5f, .own = 1};
	auditor_scored(w.a, &r);
	expect_score(SCORE_MEASURED, 0.5f);
}

/* The author was cut off once, and patience ends before it can be asked again. */
static void one_that_is_linked_anew_is_asked_before_it_withholds(void **state) {
	(void)state;
	order_score(2, 0);
	w.sent_bytes = CHUNKS * BYTES;
	assert_true(is_asked(2));
	w.now_us = PATIENCE_US - 1;
	auditor_link_down(w.a, w.now_us, 2, true);
	w.now_us = PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	assert_false(auditor_has_news(w.a));
	w.now_us = auditor_deadline_us(w.a);
	auditor_tick(w.a, w.now_us);
	expect_score(SCORE_WITHHELD, 0);
}

/* Each chunk comes in time, and all of them too late. */
static void a_drip_of_chunks_ends(void **state) {
	(void)state;
	const int64_t latest_us = PATIENCE_US + (int64_t)CHUNKS * BYTES * 1000000 / SCORE_LEAST_BYTES_PER_S;
	order_score(2, 0);
	assert_true(is_asked(2));
	w.now_us = PATIENCE_US - 1;
	auditor_tick(w.a, w.now_us);
	assert_int_equal(answer(2), RV_OK);
	w.chunk = 1;
	assert_true(is_asked(2));
	assert_int_equal(auditor_deadline_us(w.a), latest_us);
	w.now_us = latest_us;
	auditor_tick(w.a, w.now_us);
	expect_score(SCORE_WITHHELD, 0);
}

/* Member 2 takes its time with its contribution, of which a chunk is on its way. */
static void a_slow_author_holds_no_average_up(void **state) {
	static struct report r;
	(void)state;
	order_score(2, 0);
	assert_true(is_asked(2));
	doc.phase = RUN_REDUCE;
	doc.round = 7;
	auditor_note_roster(w.a, &doc);
	order(2);
	w.chunk = CHUNK;
	assert_true(is_asked(0) && !is_asked(2)); /* one chunk of a member at a time */
	assert_int_equal(answer(0), RV_OK);
	w.chunk = 0;
	assert_int_equal(answer(2), RV_OK);
	w.chunk = CHUNK;
	assert_true(is_asked(2));
	assert_int_equal(answer(2), RV_OK);
	auditor_report(w.a, &r);
	assert_true(w.judged == 1 && r.n_verdicts == 1 && r.n_scores == 0);
	w.chunk = 1;
	assert_true(is_asked(2)); /* and its contribution goes on */
}

/* A piece that was not asked for, as one of the contribution was on its way, is not withheld. */
static void one_that_still_gives_another_chunk_withholds_nothing(void **state) {
	(void)state;
	order_score(2, 0);
	w.now_us = PATIENCE_US / 2;
	assert_true(is_asked(2));
	assert_int_equal(answer(2), RV_OK);
	w.chunk = 1;
	assert_true(is_asked(2));
	doc.phase = RUN_REDUCE;
	doc.round = 7;
	auditor_note_roster(w.a, &doc);
	w.now_us = 0;
	order(2);
	w.chunk = CHUNK;
	assert_true(is_asked(0));
	assert_int_equal(answer(0), RV_OK);
	w.now_us = PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	assert_true(result()->verdict == AUDIT_UNABLE && result()->member == NET_NO_MEMBER);
}

/* What it owes to a weighing of this worker is no answer that it withholds. */
static void one_that_answers_a_weighing_is_asked_after_that(void **state) {
	(void)state;
	order_score(2, 0);
	w.busy = true;
	for (int i = 0; i < 2; i++) {
		assert_false(is_asked(2));
		w.now_us = PATIENCE_US + i;
		auditor_tick(w.a, w.now_us);
		assert_false(auditor_has_news(w.a));
	}
	w.busy = false;
	assert_true(is_asked(2));
	assert_int_equal(close_world(NULL), 0);
	open_world();
	auditor_note_roster(w.a, &doc);
	order(2);
	assert_true(is_asked(0));
	assert_int_equal(answer(0), RV_OK);
	w.busy = true;
	w.now_us = PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	assert_true(result()->verdict == AUDIT_UNABLE && result()->member == NET_NO_MEMBER);
}

static void give_score(uint32_t member) {
	const struct score_result r = {.round = 7, .member = member, .verdict = SCORE_MEASURED, .gain = 0.5f, .own = 1};
	assert_int_equal(w.scored_of, member);
	assert_memory_equal(w.scored, w.data[member], CHUNKS * BYTES);
	free(w.scored);
	w.scored = NULL;
	auditor_scored(w.a, &r);
}

static void authors_give_side_by_side_and_are_scored_in_turn(void **state) {
	static struct report r;
	(void)state;
	order_score(2, 0);
	doc.n_scores = 2;
	doc.scores[1] = doc.scores[0];
	doc.scores[1].member = 0;
	doc.scores[1].root = merkle_root(w.nodes[0], CHUNKS);
	auditor_follow(w.a, w.now_us, &doc);
	for (w.chunk = 0; w.chunk < CHUNKS; w.chunk++) {
		assert_true(is_asked(0) && is_asked(2));
		assert_int_equal(answer(0), RV_OK);
		assert_int_equal(answer(2), RV_OK);
	}
	give_score(0);
	give_score(2);
	assert_true(w.scored == NULL);
	auditor_report(w.a, &r);
	assert_int_equal(r.n_scores, 2);
}

/* The first one is ordered no more, and its score is still being measured. */
static void a_score_that_nobody_wants_is_waited_for(void **state) {
	(void)state;
	order_score(2, 0);
	fetch_all(0);
	const struct score_order second = {.round = 7,
									   .member = 0,
									   .n_chunks = CHUNKS,
									   .share = 1,
									   .root = merkle_root(w.nodes[0], CHUNKS),
									   .n_pieces = 1,
									   .pieces = {{0, 1}}};
	doc.scores[0] = second;
	auditor_follow(w.a, w.now_us, &doc);
	for (w.chunk = 0; w.chunk < CHUNKS; w.chunk++) {
		assert_true(is_asked(0));
		assert_int_equal(answer(0), RV_OK);
	}
	give_score(2);
	give_score(0);
	expect_score(SCORE_MEASURED, 0.5f);
}

static void what_cannot_be_scored_makes_it_unable(void **state) {
	(void)state;
	order_score(SELF, 0);
	expect_score(SCORE_UNABLE, 0);
	order_score(2, 0);
	auditor_release(w.a);
	w.sent_bytes = 0;
	doc.scores[0].root.b[0] ^= 1; /* another order */
	auditor_follow(w.a, w.now_us, &doc);
	expect_score(SCORE_UNABLE, 0);
}

static void a_score_that_comes_late_is_dropped(void **state) {
	(void)state;
	order_score(2, 0);
	fetch_all(0);
	doc.n_scores = 0;
	auditor_follow(w.a, w.now_us, &doc);
	const struct score_result r = {.round = 7, .member = 2, .verdict = SCORE_MEASURED, .gain = 0.5f, .own = 1};
	auditor_scored(w.a, &r);
	assert_false(auditor_has_news(w.a));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_relay_is_not_the_author, close_world),
		cmocka_unit_test_teardown(a_whole_contribution_is_fetched_and_scored, close_world),
		cmocka_unit_test_teardown(of_a_slow_member_what_it_sent, close_world),
		cmocka_unit_test_teardown(one_that_gives_another_contribution_withholds, close_world),
		cmocka_unit_test_teardown(silence_withholds_and_no_link_is_said, close_world),
		cmocka_unit_test_teardown(one_that_was_not_reached_is_asked_when_it_is_linked, close_world),
		cmocka_unit_test_teardown(links_that_end_when_the_author_is_asked_are_said, close_world),
		cmocka_unit_test_teardown(other_ends_are_not_cuts, close_world),
		cmocka_unit_test_teardown(a_chunk_that_came_begins_the_count_anew, close_world),
		cmocka_unit_test_teardown(one_that_is_linked_anew_is_asked_before_it_withholds, close_world),
		cmocka_unit_test_teardown(a_drip_of_chunks_ends, close_world),
		cmocka_unit_test_teardown(a_slow_author_holds_no_average_up, close_world),
		cmocka_unit_test_teardown(one_that_still_gives_another_chunk_withholds_nothing, close_world),
		cmocka_unit_test_teardown(one_that_answers_a_weighing_is_asked_after_that, close_world),
		cmocka_unit_test_teardown(authors_give_side_by_side_and_are_scored_in_turn, close_world),
		cmocka_unit_test_teardown(a_score_that_nobody_wants_is_waited_for, close_world),
		cmocka_unit_test_teardown(what_cannot_be_scored_makes_it_unable, close_world),
		cmocka_unit_test_teardown(a_score_that_comes_late_is_dropped, close_world),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
