/* test_coordinator_core_scores_rows.c: audits of training in rosters of several rows. */
#include "tests/common/check.h"
#include "tests/coordinator/scores_rig.h"

#include <string.h>

/* Seven in rows of four and three, or in rows of two and one. */
enum { ROW = 4, SHORT = 2, PPM = 200000, ALL = (1 << SCORES_MEMBERS) - 1 };

static struct scores s;

static void open_rows(uint32_t row_size, uint32_t ppm) {
	memset(&s, 0, sizeof s);
	s.row_size = row_size;
	scores_open(&s, ppm);
}

static int close_rig(void **state) {
	(void)state;
	rig_release(&s.r);
	return 0;
}

/* Sets row[m] to the members that take part in one row with m. */
static void read_rows(uint64_t row[SCORES_MEMBERS]) {
	for (uint32_t m = 0; m < SCORES_MEMBERS; m++) {
		const struct document *d = scores_doc(&s, m);
		row[m] = 0;
		assert_int_equal(d->phase, RUN_REDUCE);
		assert_true(d->n_rows > 1);
		for (int i = 0; i < d->n_members; i++)
			row[m] |= 1ull << d->members[i].member;
	}
}

/* Plays a round; sets row[m] as read_rows does. */
static void play(uint64_t row[SCORES_MEMBERS]) {
	static const enum worker_phase phases[] = {WORKER_TRAINING, WORKER_READY, WORKER_REDUCING, WORKER_VOTED};
	for (size_t p = 0; p < sizeof phases / sizeof phases[0]; p++) {
		if (phases[p] == WORKER_REDUCING)
			read_rows(row);
		for (uint32_t m = 0; m < SCORES_MEMBERS; m++)
			scores_say(&s, m, phases[p]);
	}
}

/* All of the author's row but itself are asked, one after the other: the last one measures it. */
static void ask_all(const struct score_order *o, uint64_t row) {
	const uint64_t others = row & ~(1ull << o->member);
	uint64_t asked = 0;
	while (asked != others) {
		const uint64_t more = scores_auditors(&s, o) & ~asked;
		assert_true(more != 0 && (more & ~others) == 0);
		asked |= more;
		(void)scores_conclude_all(&s, o, asked & ~more, asked == others ? SCORE_MEASURED : SCORE_UNABLE, 1);
	}
	assert_int_equal(scores_auditors(&s, o), 0);
}

static void auditors_are_of_the_authors_row(void **state) {
	enum { ROUNDS = 60 };
	(void)state;
	uint64_t authors = 0;
	open_rows(ROW, PPM);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t row[SCORES_MEMBERS];
		struct score_order o;
		play(row);
		for (int k = 0; k < 2 && scores_last_order(&s, &o); k++) { /* a quarter of seven, at most */
			authors |= 1ull << o.member;
			ask_all(&o, row[o.member]);
		}
		assert_false(scores_last_order(&s, &o));
	}
	assert_int_equal(authors, ALL);
}

static void rows_of_two_are_not_audited(void **state) {
	(void)state;
	open_rows(SHORT, PPM);
	for (int i = 0; i < 20; i++) {
		uint64_t row[SCORES_MEMBERS];
		play(row);
		assert_int_equal(core_scores(s.r.core).drawn, 0);
	}
}

/* By the records alone: rows are those of the committed attempt. */
static void a_restart_draws_the_same_in_rows(void **state) {
	(void)state;
	open_rows(ROW, PPM);
	uint64_t row[SCORES_MEMBERS];
	struct score_order before, after;
	do
		play(row);
	while (!scores_last_order(&s, &before));
	rig_restart(&s.r);
	for (uint32_t m = 0; m < SCORES_MEMBERS; m++)
		scores_say(&s, m, WORKER_TRAINING);
	assert_true(scores_last_order(&s, &after));
	assert_true(after.round == before.round && after.member == before.member);
	ask_all(&after, row[after.member]);
}

/* In a row of three two others are all: both kept away, in two audits in a row, strike. */
static void who_keeps_its_row_away_is_struck(void **state) {
	(void)state;
	open_rows(ROW, PPM);
	uint64_t row[SCORES_MEMBERS];
	uint32_t author = 0;
	play(row);
	while (__builtin_popcountll(row[author]) != 3)
		author++;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rig_view(&s.r, author).reputation.strikes, 0);
		const struct score_order o = scores_next_order_of(&s, author);
		assert_int_equal(__builtin_popcountll(scores_nobody_gets_it(&s, &o, 0, SCORE_UNREACHED)), 2);
		while (scores_auditors(&s, &o) != 0)
			play(row);
		assert_true(rig_saw(&s.r, CORE_EVENT_EVADED, author));
	}
	assert_int_equal(rig_view(&s.r, author).reputation.strikes, 1);
	assert_int_equal(rig_view(&s.r, author).reputation.reason, CORE_STRIKE_EVADED);
}

/* ---- more members than a document lists ---- */

enum { MANY = 80 };

static void open_many(void) {
	memset(&s, 0, sizeof s);
	rig_init(&s.r, MANY / 2);
	s.r.cfg.max_here = s.r.cfg.max_roster = 2 * MANY;
	s.r.cfg.final_round = 1000;
	s.r.cfg.audit_ppm = PPM;
	s.r.cfg.audit_window = SCORES_WINDOW;
	s.r.cfg.lease_round = SCORES_LEASE;
	s.r.cfg.lease_tokens = SCORES_TOKENS;
	rig_start(&s.r);
	rig_join(&s.r, MANY);
}

static void say_many(uint32_t but, enum worker_phase phase) {
	rig_wait(&s.r, RIG_S / 4); /* lists of members are announced at a pace */
	for (uint32_t m = 0; m < MANY; m++) {
		struct report rep = rig_report(&s.r, m, phase);
		if (m == but)
			continue;
		if (phase >= WORKER_READY) {
			rep.tokens = SCORES_LEASE * SCORES_TOKENS;
			rep.lease_first = scores_doc(&s, m)->lease_first;
			rep.lease_count = SCORES_LEASE;
		}
		rig_send(&s.r, m, &rep);
	}
}

/* Reads a member's document as it travels. */
static const struct document *read_doc(uint32_t who) {
	static uint8_t bytes[NET_MAX_DOCUMENT_BYTES];
	static struct document d;
	struct rv_errtext et = {0};
	struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
	document_encode(scores_doc(&s, who), CONTROL_VERSION, &w);
	assert_false(w.failed);
	if (document_decode(bytes, rv_writer_len(&w), &d, &et) != RV_OK)
		fail_msg("member %u: %s", who, et.text);
	return &d;
}

static bool names(uint32_t who, uint32_t other) {
	static struct member_ref linked[DOCUMENT_MAX_LINKED];
	const int n = document_linked(read_doc(who), linked);
	int found = 0;
	for (int i = 0; i < n; i++)
		found += linked[i].member == other;
	assert_in_range(found, 0, 1);
	return found == 1;
}

/* Finds the first member with an order. */
static uint32_t find_auditor(void) {
	uint32_t m = 0;
	while (m < MANY && scores_doc(&s, m)->n_scores == 0)
		m++;
	assert_true(m < MANY);
	return m;
}

/* In the open round, of which a document lists 16 only, and in the next all-reduce, in which the
 * author takes no part. */
static void auditor_and_author_find_each_other(void **state) {
	(void)state;
	open_many();
	for (int phase = WORKER_TRAINING; phase <= WORKER_VOTED; phase++)
		say_many(MANY, (enum worker_phase)phase);
	say_many(MANY, WORKER_TRAINING);
	assert_int_equal(rig_doc(&s.r)->round, 1);
	const uint32_t auditor = find_auditor(), author = scores_doc(&s, auditor)->scores[0].member;
	assert_true(names(auditor, author) && names(author, auditor));
	say_many(author, WORKER_READY);
	rig_wait(&s.r, 6 * RIG_S);
	assert_int_equal(read_doc(auditor)->phase, RUN_REDUCE);
	assert_true(read_doc(auditor)->n_rows > 1);
	assert_true(names(auditor, author) && names(author, auditor));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(auditors_are_of_the_authors_row, close_rig),
		cmocka_unit_test_teardown(rows_of_two_are_not_audited, close_rig),
		cmocka_unit_test_teardown(a_restart_draws_the_same_in_rows, close_rig),
		cmocka_unit_test_teardown(auditor_and_author_find_each_other, close_rig),
		cmocka_unit_test_teardown(who_keeps_its_row_away_is_struck, close_rig),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
