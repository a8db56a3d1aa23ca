/* An auditor of averages between three contributors: what it asks whom, and what it concludes. */
#include "tests/common/check.h"
#include "tests/worker/auditor_rig.h"

#include <stdlib.h>
#include <string.h>

static void all_pieces_are_judged(void **state) {
	(void)state;
	begin();
	assert_false(is_asked(SELF));
	assert_true(is_asked(0) && is_asked(2));
	assert_false(is_asked(0) || is_asked(2)); /* once */
	assert_int_equal(answer(2), RV_OK);
	assert_true(is_open());
	assert_int_equal(answer(0), RV_OK);
	assert_int_equal(w.judged, 1);
	expect(AUDIT_RIGHT, NET_NO_MEMBER);
	/* The result is repeated until the order is over. */
	auditor_follow(w.a, w.now_us, &doc);
	assert_int_equal(result()->verdict, AUDIT_RIGHT);
	doc.n_audits = 0;
	auditor_follow(w.a, w.now_us, &doc);
	assert_true(is_open());
}

static void a_wrong_average_is_reported_with_the_right_one(void **state) {
	(void)state;
	begin();
	w.verdict = AUDIT_WRONG;
	assert_true(is_asked(0) && is_asked(2));
	assert_int_equal(answer(0), RV_OK);
	assert_int_equal(answer(2), RV_OK);
	struct rv_hash five;
	memset(&five, 5, sizeof five);
	assert_true(rv_hash_equal(&result()->found, &five));
	expect(AUDIT_WRONG, NET_NO_MEMBER);
}

static void what_was_not_committed_to_is_withheld(void **state) {
	(void)state;
	uint8_t piece[BYTES + MERKLE_MAX_PROOF * sizeof(struct rv_hash)];
	begin();
	assert_true(is_asked(0) && is_asked(2));
	const size_t n = piece_of(0, CHUNK, piece);
	piece[BYTES / 2] ^= 1;
	assert_int_equal(answer_bytes(0, piece, n, 64), RV_OK);
	expect(AUDIT_WITHHELD, 0);
	assert_int_equal(w.judged, 0);
	/* The other answer, which was on its way, does no harm. */
	assert_int_equal(answer(2), RV_OK);
	assert_int_equal(answer(2), RV_E_PROTOCOL);
}

static void a_piece_of_another_chunk_or_length_is_withheld(void **state) {
	(void)state;
	uint8_t piece[BYTES + MERKLE_MAX_PROOF * sizeof(struct rv_hash)];
	begin();
	assert_true(is_asked(0));
	(void)piece_of(0, CHUNK - 1, piece);
	assert_int_equal(answer_bytes(0, piece, piece_of(0, CHUNK - 1, piece), 64), RV_OK);
	expect(AUDIT_WITHHELD, 0);
	assert_int_equal(close_world(NULL), 0);
	begin();
	assert_true(is_asked(2));
	assert_int_equal(answer_bytes(2, piece, BYTES, BYTES), RV_OK);
	expect(AUDIT_WITHHELD, 2);
}

/* The sender may be slow to store it: NONE is as if it said nothing. */
static void none_is_asked_again_until_patience_is_over(void **state) {
	(void)state;
	begin();
	assert_true(is_asked(2));
	assert_int_equal(answer(2), RV_OK);
	while (w.now_us < PATIENCE_US) {
		assert_true(is_open() && is_asked(0));
		assert_int_equal(answer_none(0), RV_OK);
		assert_false(is_asked(0));
		assert_int_equal(auditor_deadline_us(w.a), w.now_us + AUDITOR_AGAIN_US);
		w.now_us += AUDITOR_AGAIN_US;
		auditor_tick(w.a, w.now_us);
	}
	expect(AUDIT_WITHHELD, 0);
}

static void patience_ends(void **state) {
	(void)state;
	begin();
	assert_true(is_asked(0) && is_asked(2));
	assert_int_equal(answer(0), RV_OK);
	assert_int_equal(auditor_deadline_us(w.a), PATIENCE_US);
	w.now_us = PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	expect(AUDIT_WITHHELD, 2);
	assert_int_equal(close_world(NULL), 0);
	/* One that is not linked withholds nothing. */
	begin();
	w.linked[2] = false;
	assert_true(is_asked(0));
	assert_int_equal(answer(0), RV_OK);
	w.now_us = PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	expect(AUDIT_UNABLE, 2);
}

/* Returns when all pieces of the average must be here at the latest. */
static int64_t latest_us(void) {
	uint8_t piece[BYTES + MERKLE_MAX_PROOF * sizeof(struct rv_hash)];
	const int64_t bytes = (int64_t)piece_of(0, CHUNK, piece), others = MEMBERS - 1;
	return PATIENCE_US + bytes * 1000000 / SCORE_LEAST_BYTES_PER_S +
		   others * bytes * 1000000 / AUDITOR_LEAST_BYTES_PER_S;
}

/* Gives the first bytes of member 2's piece when patience is nearly over. */
static void give_a_little(void) {
	uint8_t piece[BYTES + MERKLE_MAX_PROOF * sizeof(struct rv_hash)];
	begin();
	assert_true(is_asked(0) && is_asked(2));
	assert_int_equal(answer(0), RV_OK);
	w.now_us = PATIENCE_US - 1;
	auditor_tick(w.a, w.now_us);
	assert_int_equal(answer_slice(2, piece, piece_of(2, CHUNK, piece), 0, 64), RV_OK);
}

static void a_slow_line_is_waited_for_and_a_drip_is_not(void **state) {
	uint8_t piece[BYTES + MERKLE_MAX_PROOF * sizeof(struct rv_hash)];
	(void)state;
	give_a_little();
	const size_t n = piece_of(2, CHUNK, piece);
	w.now_us = latest_us() - 1;
	auditor_tick(w.a, w.now_us);
	assert_true(is_open());
	assert_int_equal(answer_slice(2, piece, n, 64, n - 64), RV_OK);
	expect(AUDIT_RIGHT, NET_NO_MEMBER);
	assert_int_equal(close_world(NULL), 0);
	give_a_little();
	assert_int_equal(auditor_deadline_us(w.a), latest_us());
	w.now_us = latest_us();
	auditor_tick(w.a, w.now_us);
	expect(AUDIT_WITHHELD, 2);
}

/* A tenth of an exchange is the auditors': so much of it counts. */
static void an_exchange_takes_little_of_patience(void **state) {
	(void)state;
	begin();
	assert_true(is_asked(0) && is_asked(2));
	assert_int_equal(answer(0), RV_OK);
	auditor_note_exchange(w.a, w.now_us, true);
	w.now_us = 5 * (int64_t)PATIENCE_US;
	auditor_note_exchange(w.a, w.now_us, false);
	auditor_tick(w.a, w.now_us);
	assert_true(is_open());
	assert_int_equal(auditor_deadline_us(w.a), w.now_us + PATIENCE_US / 2);
	w.now_us += PATIENCE_US / 2;
	auditor_tick(w.a, w.now_us);
	expect(AUDIT_WITHHELD, 2);
}

/* Member 2 still gives what an audit that is over has asked for. */
static void one_that_owes_another_piece_is_waited_for(void **state) {
	(void)state;
	begin();
	assert_true(is_asked(2));
	doc.n_audits = 0;
	auditor_follow(w.a, w.now_us, &doc);
	order(2);
	assert_true(is_asked(0) && !is_asked(2));
	assert_int_equal(answer(0), RV_OK);
	w.now_us = PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	assert_true(is_open());
	assert_int_equal(answer(2), RV_OK);
	assert_true(is_asked(2));
	w.now_us = latest_us();
	auditor_tick(w.a, w.now_us);
	expect(AUDIT_WITHHELD, 2);
}

static void a_new_link_is_asked_again(void **state) {
	(void)state;
	begin();
	assert_true(is_asked(0) && is_asked(2));
	assert_int_equal(answer(0), RV_OK);
	auditor_link_down(w.a, w.now_us, 2, true);
	assert_false(is_asked(2)); /* an exchange may pass first */
	w.now_us += AUDITOR_AFTER_CUT_US;
	auditor_tick(w.a, w.now_us);
	assert_true(is_asked(2));
	assert_int_equal(answer(2), RV_OK);
	expect(AUDIT_RIGHT, NET_NO_MEMBER);
}

/* One that ends link after link once it is asked withholds its piece; links that this worker, or
 * the network, ends say nothing. */
static void who_ends_its_links_withholds(void **state) {
	(void)state;
	begin();
	assert_true(is_asked(0));
	assert_int_equal(answer(0), RV_OK);
	for (int by_member = 0; by_member < 2; by_member++)
		for (int i = 0; i < AUDITOR_CUTS; i++) {
			assert_true(is_open());
			w.now_us += by_member ? AUDITOR_AFTER_CUT_US : 0;
			auditor_tick(w.a, w.now_us);
			assert_true(is_asked(2));
			auditor_link_down(w.a, w.now_us, 2, by_member);
		}
	expect(AUDIT_WITHHELD, 2);
}

/* Gives the first bytes of member 2's piece, up to `end`, each time anew; then the link ends. */
static void give_and_cut(size_t end) {
	uint8_t piece[BYTES + MERKLE_MAX_PROOF * sizeof(struct rv_hash)];
	const size_t n = piece_of(2, w.chunk, piece), slice = 32;
	assert_true(is_asked(2));
	for (size_t at = 0; at < end; at += slice)
		assert_int_equal(answer_slice(2, piece, n, at, slice), RV_OK);
	auditor_link_down(w.a, w.now_us, 2, true);
	w.now_us += AUDITOR_AFTER_CUT_US;
	auditor_tick(w.a, w.now_us);
}

/* On a line that often fails more of the piece comes in between; the same bytes again are not
 * more. */
static void links_that_end_count_in_a_row_without_new_bytes(void **state) {
	(void)state;
	begin();
	assert_true(is_asked(0));
	assert_int_equal(answer(0), RV_OK);
	for (int i = 0; i + 1 < AUDITOR_CUTS; i++)
		give_and_cut(0);
	give_and_cut(32);
	give_and_cut(32);
	give_and_cut(64);
	give_and_cut(0);
	assert_true(is_open());
	give_and_cut(64);
	expect(AUDIT_WITHHELD, 2);
}

/* What a relay does is not what the member does; what the member says is. */
static void a_relay_is_not_the_member(void **state) {
	(void)state;
	for (int silent = 0; silent < 2; silent++) {
		begin();
		w.relayed = true;
		assert_true(is_asked(0));
		assert_int_equal(answer(0), RV_OK);
		if (silent) {
			assert_true(is_asked(2));
			w.now_us = PATIENCE_US;
			auditor_tick(w.a, w.now_us);
		} else {
			for (int i = 0; i < AUDITOR_CUTS; i++)
				give_and_cut(0);
		}
		expect(AUDIT_UNABLE, 2);
		assert_int_equal(close_world(NULL), 0);
	}
	begin();
	w.relayed = true;
	assert_true(is_asked(0) && is_asked(2));
	assert_int_equal(answer(0), RV_OK);
	w.now_us = PATIENCE_US - 1;
	assert_int_equal(answer_none(2), RV_OK);
	w.now_us = PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	expect(AUDIT_WITHHELD, 2);
}

static void expect_beyond(void) {
	const struct rv_hash beyond = audit_beyond();
	assert_true(rv_hash_equal(&result()->found, &beyond));
	expect(AUDIT_WRONG, NET_NO_MEMBER);
}

/* One that lies and keeps its own piece to itself: at its first cut, at a NONE, and where it is not
 * linked, the mean is judged by what the others sent, once for each piece more. */
static void a_mean_that_no_hidden_piece_makes_is_wrong_at_once(void **state) {
	(void)state;
	for (int how = 0; how < 3; how++) {
		begin();
		w.beyond = true;
		w.linked[2] = how != 2;
		assert_true(is_asked(0) && is_asked(2));
		if (how == 0)
			auditor_link_down(w.a, w.now_us, 2, true);
		else if (how == 1)
			assert_int_equal(answer_none(2), RV_OK);
		auditor_tick(w.a, w.now_us);
		assert_true(is_open() && w.looked == 0); /* the piece of the other one is on its way */
		assert_int_equal(answer(0), RV_OK);
		auditor_tick(w.a, w.now_us);
		expect_beyond();
		assert_true(w.looked == 1 && w.had == (1u << 0 | 1u << SELF) && w.judged == 0);
		assert_int_equal(close_world(NULL), 0);
	}
	begin();
}

static void a_mean_within_reach_is_looked_at_once_and_waited_for(void **state) {
	(void)state;
	begin();
	w.linked[2] = false;
	assert_true(is_asked(0));
	assert_int_equal(answer(0), RV_OK);
	for (int i = 0; i < 5; i++)
		auditor_tick(w.a, w.now_us);
	assert_true(is_open() && w.looked == 1);
	w.linked[2] = true;
	assert_true(is_asked(2));
	assert_int_equal(answer(2), RV_OK);
	expect(AUDIT_RIGHT, NET_NO_MEMBER);
}

/* Silence, and another piece than was committed to, hide nothing either. What came instead is not
 * taken for the piece. */
static void a_lie_behind_silence_or_a_false_piece_is_wrong(void **state) {
	uint8_t piece[BYTES + MERKLE_MAX_PROOF * sizeof(struct rv_hash)];
	(void)state;
	begin();
	w.beyond = true;
	assert_true(is_asked(0) && is_asked(2));
	assert_int_equal(answer(0), RV_OK);
	auditor_tick(w.a, w.now_us);
	assert_true(is_open() && w.looked == 0);
	w.now_us = PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	expect_beyond();
	assert_int_equal(close_world(NULL), 0);
	begin();
	w.beyond = true;
	assert_true(is_asked(0) && is_asked(2));
	assert_int_equal(answer(0), RV_OK);
	const size_t n = piece_of(2, CHUNK, piece);
	piece[BYTES / 2] ^= 1;
	assert_int_equal(answer_bytes(2, piece, n, 64), RV_OK);
	expect_beyond();
	assert_int_equal(w.had, 1u << 0 | 1u << SELF);
}

/* ---- audits that are set aside ---- */

enum { OTHER = 1 }; /* a chunk of an honest owner; CHUNK is that of member 2, which lies */

/* Has OTHER and CHUNK audited, OTHER first. */
static void order_two(void) {
	doc.phase = RUN_OPEN;
	doc.round = 8;
	doc.n_audits = 2;
	doc.audits[0] = (struct audit_order){.round = 7, .attempt = 2, .chunk = OTHER};
	doc.audits[1] = (struct audit_order){.round = 7, .attempt = 2, .chunk = CHUNK};
	auditor_follow(w.a, w.now_us, &doc);
}

/* Begins both, and lets member 2 end its link while it owes its piece of OTHER. */
static void begin_two(void) {
	open_world();
	auditor_note_roster(w.a, &doc);
	order_two();
	w.chunk = OTHER;
	assert_true(is_asked(0) && is_asked(2));
	assert_int_equal(answer(0), RV_OK);
	auditor_link_down(w.a, w.now_us, 2, true);
	auditor_tick(w.a, w.now_us);
	assert_true(is_open() && w.looked == 1);
	w.chunk = CHUNK;
}

/* Returns the result of the chunk; NULL: there is none. */
static const struct audit_result *result_of(uint32_t chunk) {
	static struct report r;
	auditor_report(w.a, &r);
	for (int i = 0; i < r.n_verdicts; i++)
		if (r.verdicts[i].chunk == chunk)
			return &r.verdicts[i];
	return NULL;
}

static void wait_until(int64_t now_us) {
	w.now_us = now_us;
	auditor_tick(w.a, w.now_us);
}

/* The liar's own chunk is looked at before it has ended three links, or patience has, and though it
 * was asked for no piece of that. Then the other audit goes on, with the pieces that it has. */
static void a_look_in_vain_lets_the_next_audit_go_first(void **state) {
	(void)state;
	const struct rv_hash beyond = audit_beyond();
	begin_two();
	assert_true(is_asked(0));
	w.beyond = true;
	assert_int_equal(answer(0), RV_OK);
	wait_until(w.now_us);
	assert_true(w.looked == 2 && w.had == (1u << 0 | 1u << SELF));
	assert_true(result_of(CHUNK) != NULL && result_of(OTHER) == NULL && w.taken == 1);
	assert_true(rv_hash_equal(&result_of(CHUNK)->found, &beyond));
	w.beyond = false;
	w.chunk = OTHER;
	wait_until(w.now_us + AUDITOR_AFTER_CUT_US);
	assert_true(is_asked(2) && !is_asked(0));
	assert_int_equal(answer(2), RV_OK);
	assert_true(w.judged == 1 && result_of(OTHER)->verdict == AUDIT_RIGHT && w.taken == 0);
}

/* Its time stands still, and cuts count as if nothing had come between them: it names the member
 * as late, and as surely, as it would alone. */
static void one_set_aside_keeps_its_patience_and_cuts(void **state) {
	(void)state;
	for (int silent = 0; silent < 2; silent++) {
		begin_two();
		assert_true(is_asked(0));
		wait_until(PATIENCE_US / 2); /* member 0 has a slow line */
		assert_int_equal(answer(0), RV_OK);
		wait_until(w.now_us);
		assert_true(is_open() && w.looked == 2 && w.taken == 2);
		w.chunk = OTHER;
		for (int i = 1; i < AUDITOR_CUTS && !silent; i++) {
			assert_true(is_open() && is_asked(2));
			auditor_link_down(w.a, w.now_us, 2, true);
			wait_until(w.now_us + AUDITOR_AFTER_CUT_US);
		}
		if (silent) {
			assert_int_equal(auditor_deadline_us(w.a), w.now_us + PATIENCE_US);
			wait_until(w.now_us + PATIENCE_US - 1);
			assert_true(is_open());
			wait_until(w.now_us + 1);
		}
		assert_true(result_of(OTHER) != NULL && result_of(CHUNK) == NULL && w.taken == 1);
		assert_true(result_of(OTHER)->verdict == AUDIT_WITHHELD && result_of(OTHER)->member == 2);
		if (!silent)
			assert_int_equal(close_world(NULL), 0);
	}
}

/* All were looked at in vain: they go on one after the other, the one first whose answer is under
 * way. */
static void those_set_aside_go_on_one_after_the_other(void **state) {
	(void)state;
	begin_two();
	wait_until(w.now_us + AUDITOR_AFTER_CUT_US);
	assert_true(is_asked(0) && is_asked(2));
	assert_int_equal(answer(0), RV_OK);
	wait_until(w.now_us);
	assert_true(is_open() && w.looked == 2);
	assert_int_equal(answer(2), RV_OK);
	assert_true(result_of(CHUNK) != NULL && result_of(OTHER) == NULL);
	w.chunk = OTHER;
	assert_true(is_asked(2));
	assert_int_equal(answer(2), RV_OK);
	assert_true(result_of(OTHER) != NULL && w.judged == 2);
}

/* It has to wait for those set aside; it is not unable. */
static void without_memory_the_next_audit_waits(void **state) {
	(void)state;
	open_world();
	auditor_note_roster(w.a, &doc);
	order_two();
	w.chunk = OTHER;
	assert_true(is_asked(0) && is_asked(2));
	assert_int_equal(answer(0), RV_OK);
	w.is_short = true;
	auditor_link_down(w.a, w.now_us, 2, true);
	wait_until(w.now_us + AUDITOR_AFTER_CUT_US);
	assert_true(is_open() && w.looked == 1 && w.taken == 1);
	assert_true(is_asked(2));
	w.is_short = false;
	assert_int_equal(answer(2), RV_OK);
	wait_until(w.now_us);
	w.chunk = CHUNK;
	assert_true(is_asked(0) && is_asked(2) && result_of(OTHER) != NULL && result_of(CHUNK) == NULL);
}

static void what_this_worker_lacks_makes_it_unable(void **state) {
	(void)state;
	open_world();
	order(2); /* it knows no roster */
	expect(AUDIT_UNABLE, NET_NO_MEMBER);
	assert_int_equal(close_world(NULL), 0);
	open_world();
	auditor_note_roster(w.a, &doc);
	order(3); /* of another attempt */
	expect(AUDIT_UNABLE, NET_NO_MEMBER);
	assert_int_equal(close_world(NULL), 0);
	open_world();
	w.own_is_there = false;
	auditor_note_roster(w.a, &doc);
	order(2);
	expect(AUDIT_UNABLE, NET_NO_MEMBER);
}

static void an_order_that_is_gone_is_left(void **state) {
	(void)state;
	begin();
	assert_true(is_asked(0) && is_asked(2));
	doc.n_audits = 0;
	auditor_follow(w.a, w.now_us, &doc);
	assert_int_equal(w.taken, 0);
	assert_int_equal(answer(0), RV_OK); /* it was on its way */
	assert_int_equal(answer_none(2), RV_OK);
	assert_int_equal(answer_none(2), RV_E_PROTOCOL);
	assert_true(is_open());
}

static void what_was_not_asked_for_is_a_breach(void **state) {
	(void)state;
	begin();
	assert_int_equal(answer(0), RV_E_PROTOCOL);
	assert_true(is_asked(0));
	uint8_t piece[BYTES + MERKLE_MAX_PROOF * sizeof(struct rv_hash)], body[FRAME_PIECE_BYTES + 10];
	struct frame_piece p = {.of = {.kind = FRAME_FETCH_CONTRIBUTION, .round = 7, .index = CHUNK},
							.offset = 10,
							.total = (uint32_t)piece_of(0, CHUNK, piece),
							.data = piece,
							.data_bytes = 10};
	struct frame_header h = frame_piece_encode(&p, TAG, body);
	memcpy(body + FRAME_PIECE_BYTES, piece, 10);
	struct rv_errtext et;
	assert_int_equal(auditor_receive(w.a, 0, 0, &h, body, &et), RV_E_PROTOCOL); /* not from the beginning */
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(all_pieces_are_judged, close_world),
		cmocka_unit_test_teardown(a_wrong_average_is_reported_with_the_right_one, close_world),
		cmocka_unit_test_teardown(what_was_not_committed_to_is_withheld, close_world),
		cmocka_unit_test_teardown(a_piece_of_another_chunk_or_length_is_withheld, close_world),
		cmocka_unit_test_teardown(none_is_asked_again_until_patience_is_over, close_world),
		cmocka_unit_test_teardown(patience_ends, close_world),
		cmocka_unit_test_teardown(links_that_end_count_in_a_row_without_new_bytes, close_world),
		cmocka_unit_test_teardown(a_relay_is_not_the_member, close_world),
		cmocka_unit_test_teardown(a_slow_line_is_waited_for_and_a_drip_is_not, close_world),
		cmocka_unit_test_teardown(an_exchange_takes_little_of_patience, close_world),
		cmocka_unit_test_teardown(one_that_owes_another_piece_is_waited_for, close_world),
		cmocka_unit_test_teardown(a_new_link_is_asked_again, close_world),
		cmocka_unit_test_teardown(who_ends_its_links_withholds, close_world),
		cmocka_unit_test_teardown(a_mean_that_no_hidden_piece_makes_is_wrong_at_once, close_world),
		cmocka_unit_test_teardown(a_mean_within_reach_is_looked_at_once_and_waited_for, close_world),
		cmocka_unit_test_teardown(a_lie_behind_silence_or_a_false_piece_is_wrong, close_world),
		cmocka_unit_test_teardown(a_look_in_vain_lets_the_next_audit_go_first, close_world),
		cmocka_unit_test_teardown(one_set_aside_keeps_its_patience_and_cuts, close_world),
		cmocka_unit_test_teardown(those_set_aside_go_on_one_after_the_other, close_world),
		cmocka_unit_test_teardown(without_memory_the_next_audit_waits, close_world),
		cmocka_unit_test_teardown(what_this_worker_lacks_makes_it_unable, close_world),
		cmocka_unit_test_teardown(an_order_that_is_gone_is_left, close_world),
		cmocka_unit_test_teardown(what_was_not_asked_for_is_a_breach, close_world),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
