/* test_coordinator_core_leases.c: who reads what. Every record is replayed at once by a twin
 * (core_rig.h), which must give each member the same leases; over all committed rounds a position
 * is read once. */
#include "tests/coordinator/core_rig.h"

#include "base/rng.h"
#include "tests/common/check.h"

#include <stdlib.h>
#include <string.h>

enum { ROUND = 40, MEMBERS = 6, POSITIONS = 100000 };

/* What committed rounds have read, by the documents of those that read it. */
struct reader {
	struct rig r;
	uint16_t times[POSITIONS];
	uint64_t read;
};

static void open_run(struct reader *w, uint32_t min_workers, int n) {
	memset(w->times, 0, sizeof w->times);
	w->read = 0;
	rig_init(&w->r, min_workers);
	w->r.cfg.lease_round = ROUND;
	w->r.cfg.lease_tokens = 8;
	w->r.cfg.final_round = 1000;
	rig_start(&w->r);
	rig_join(&w->r, n);
}

/* Returns the document of a member, from `core`. */
static const struct document *document_from(const struct core *core, uint32_t who) {
	static struct document d;
	const int slot = core_find(core, who);
	assert_true(slot >= 0);
	assert_true(core_document_of(core, (uint32_t)slot, &d));
	return &d;
}

/* Returns the same from the core, after comparing it with the twin's. */
static struct document *own(struct reader *w, uint32_t who) {
	static struct document d;
	d = *document_from(w->r.twin, who);
	const struct document *b = document_from(w->r.core, who);
	assert_int_equal(d.n_leases, b->n_leases);
	assert_int_equal(d.lease_first, b->lease_first);
	for (int i = 0; i < d.n_leases; i++)
		assert_true(d.leases[i].begin == b->leases[i].begin && d.leases[i].count == b->leases[i].count);
	return &d;
}

static uint64_t held(struct reader *w, uint32_t who) {
	const struct document *d = own(w, who);
	uint64_t n = 0;
	for (int i = 0; i < d->n_leases; i++)
		n += d->leases[i].count;
	return n;
}

static uint64_t position(const struct document *d, uint64_t number) {
	uint64_t i = number - d->lease_first;
	int at = 0;
	for (; at < d->n_leases && i >= d->leases[at].count; at++)
		i -= d->leases[at].count;
	assert_true(at < d->n_leases);
	return d->leases[at].begin + i;
}

/* A report of a contribution that has passed over some of the member's sequences, and read some. */
static struct report report_of(struct reader *w, uint32_t who, enum worker_phase phase, uint64_t over, uint32_t count) {
	struct report rep = rig_report(&w->r, who, phase);
	rep.tokens = 8 * count;
	rep.lease_first = own(w, who)->lease_first + over;
	rep.lease_count = count;
	return rep;
}

static void note_read(struct reader *w, uint32_t who, const struct report *rep) {
	for (uint64_t k = 0; k < rep->lease_count; k++, w->read++)
		w->times[position(own(w, who), rep->lease_first + k)]++;
}

/* The members of a set are ready; those of them that the roster has commit the round. */
static void round_of(struct reader *w, uint64_t members, uint64_t over, uint32_t count) {
	struct report rep[MEMBERS];
	static struct document roster;
	const uint64_t round = rig_doc(&w->r)->round;
	for (uint32_t i = 0; i < MEMBERS; i++)
		if (members >> i & 1)
			rig_say(&w->r, i, WORKER_TRAINING);
	for (uint32_t i = 0; i < MEMBERS; i++) {
		if (!(members >> i & 1))
			continue;
		rep[i] = report_of(w, i, WORKER_READY, over, count);
		rig_send(&w->r, i, &rep[i]);
	}
	rig_wait(&w->r, 6 * RIG_S); /* grace */
	roster = *rig_doc(&w->r);
	assert_int_equal(roster.phase, RUN_REDUCE);
	for (int k = 0; k < roster.n_members; k++) {
		const uint32_t i = roster.members[k].member;
		struct report vote = rig_report(&w->r, i, WORKER_VOTED);
		vote.lease_first = rep[i].lease_first;
		vote.lease_count = rep[i].lease_count;
		note_read(w, i, &rep[i]);
		rig_send(&w->r, i, &vote);
	}
	assert_int_equal(rig_doc(&w->r)->round, round + 1);
}

static void assert_read_once(const struct reader *w) {
	uint64_t sum = 0;
	for (int p = 0; p < POSITIONS; p++) {
		assert_in_range(w->times[p], 0, 1);
		sum += w->times[p];
	}
	assert_int_equal(sum, w->read);
}

static void a_newcomer_is_granted_three_rounds_with_its_record(void **state) {
	(void)state;
	static struct reader w;
	open_run(&w, 2, 3);
	rig_last(&w.r, CORE_MEMBER);
	assert_int_equal(w.r.n_records, 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct document *d = own(&w, i);
		assert_true(d->n_leases == 1 && d->lease_first == 3 * ROUND * i);
		assert_true(d->leases[0].begin == 3 * ROUND * i && d->leases[0].count == 3 * ROUND);
	}
	rig_release(&w.r);
}

static void a_commit_consumes_and_grants_more(void **state) {
	(void)state;
	static struct reader w;
	open_run(&w, 2, 3);
	round_of(&w, 7, 0, ROUND);
	const struct core_record *commit = rig_last(&w.r, CORE_COMMIT);
	assert_true(commit->lease_first[1] == 3 * ROUND && commit->lease_count[1] == ROUND);
	for (uint32_t i = 0; i < 3; i++) {
		const struct document *d = own(&w, i);
		assert_true(d->n_leases == 2 && d->lease_first == (3 * i + 1) * ROUND);
		assert_true(d->leases[1].begin == (9 + i) * ROUND && held(&w, i) == 3 * ROUND);
	}
	/* What a contribution passes over is read by the first that is topped up. */
	round_of(&w, 7, 5, ROUND);
	const struct document *d = own(&w, 0);
	assert_true(d->leases[2].begin == ROUND && d->leases[2].count == 5);
	for (int i = 0; i < 20; i++)
		round_of(&w, 7, 0, ROUND + (uint32_t)i % 3);
	assert_read_once(&w);
	rig_release(&w.r);
}

static void a_member_that_has_read_what_is_not_its_own_is_not_ready(void **state) {
	(void)state;
	static struct reader w;
	open_run(&w, 2, 3);
	for (uint32_t i = 0; i < 3; i++)
		rig_say(&w.r, i, WORKER_TRAINING);
	struct report bad[] = {report_of(&w, 0, WORKER_READY, 0, 0), report_of(&w, 0, WORKER_READY, 2 * ROUND + 1, ROUND),
						   report_of(&w, 0, WORKER_READY, 3 * ROUND, ROUND)};
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		rig_send(&w.r, 0, &bad[k]);
		assert_true(rig_saw(&w.r, CORE_EVENT_LEASE, 0) == (k == 0)); /* once a round */
	}
	for (uint32_t i = 1; i < 3; i++) {
		const struct report rep = report_of(&w, i, WORKER_READY, 0, ROUND);
		rig_send(&w.r, i, &rep);
	}
	rig_expect(&w.r, RUN_OPEN, 0, 0);
	rig_wait(&w.r, 6 * RIG_S);
	rig_expect(&w.r, RUN_REDUCE, 0, 1);
	RIG_EXPECT_MEMBERS(&w.r, 1, 2);
	rig_release(&w.r);
}

/* Sends that member `who` is ready with so many sequences. Returns true if that is too many. */
static bool counts_too_many(struct reader *w, uint32_t who, uint32_t count) {
	const struct report rep = report_of(w, who, WORKER_READY, 0, count);
	rig_send(&w->r, who, &rep);
	return rig_saw(&w->r, CORE_EVENT_LEASE, who);
}

/* A contribution counts as read what a round has, what the rounds since its last one may have left,
 * and some that were refused: no member takes three times its share of a pass. */
static void a_contribution_counts_no_more_than_its_rounds_have(void **state) {
	(void)state;
	static struct reader w;
	rig_init(&w.r, 2);
	w.r.cfg.lease_round = ROUND;
	w.r.cfg.lease_tokens = 8;
	w.r.cfg.round_tokens = 8 * ROUND;
	w.r.cfg.missed_tokens = 8 * ROUND / 2;
	w.r.cfg.lease_slack = ROUND / 4;
	w.r.cfg.final_round = 1000;
	rig_start(&w.r);
	rig_join(&w.r, 3);
	memset(w.times, 0, sizeof w.times);
	rig_say(&w.r, 0, WORKER_TRAINING);
	assert_true(counts_too_many(&w, 0, ROUND + ROUND / 4 + 1));
	round_of(&w, 6, 0, ROUND + ROUND / 4);
	assert_int_equal(rig_last(&w.r, CORE_COMMIT)->n_members, 2);
	/* It has missed a round. */
	rig_say(&w.r, 0, WORKER_TRAINING);
	assert_true(counts_too_many(&w, 0, ROUND + 3 * ROUND / 4 + 1));
	assert_false(counts_too_many(&w, 0, ROUND + 3 * ROUND / 4));
	for (uint32_t i = 1; i < 3; i++)
		assert_false(counts_too_many(&w, i, ROUND));
	rig_expect(&w.r, RUN_REDUCE, 1, 1);
	RIG_EXPECT_MEMBERS(&w.r, 0, 1, 2);
	rig_release(&w.r);
}

/* Tokens count as far as the sequences can have them. */
static void tokens_are_bounded_by_the_sequences(void **state) {
	(void)state;
	static struct reader w;
	open_run(&w, 2, 2);
	for (uint32_t i = 0; i < 2; i++) {
		struct report rep = report_of(&w, i, WORKER_READY, 0, ROUND);
		rep.tokens = 100000;
		rig_send(&w.r, i, &rep);
	}
	assert_int_equal(rig_last(&w.r, CORE_ROSTER)->tokens[1], 8 * ROUND);
	rig_release(&w.r);
}

/* A member that dies, or leaves, holds its lease for a few rounds; then another is granted it. One
 * that is banned gives it back at once. One that comes back is granted anew, under later
 * numbers. */
static void what_is_gone_is_read_by_others(void **state) {
	(void)state;
	static struct reader w;
	open_run(&w, 2, 5);
	for (uint32_t i = 2; i < 5; i++)
		rig_say(&w.r, i, WORKER_TRAINING);
	rig_wait(&w.r, 11 * RIG_S); /* 2, 3 and 4 are dead */
	for (int k = 0; k < CORE_LEASE_KEPT_ROUNDS; k++) {
		assert_int_equal(held(&w, 2), 3 * ROUND);
		round_of(&w, 3, 0, ROUND);
	}
	rig_wait(&w.r, RIG_S);
	for (uint32_t i = 2; i < 5; i++)
		assert_int_equal(held(&w, i), 0);
	for (int k = 0; k < 12; k++)
		round_of(&w, 3, 0, ROUND);
	for (int p = 6 * ROUND; p < 15 * ROUND; p++) /* all that the dead held */
		assert_int_equal(w.times[p], 1);
	rig_say(&w.r, 2, WORKER_SYNCING);
	assert_int_equal(held(&w, 2), 3 * ROUND);
	assert_true(own(&w, 2)->lease_first >= 15 * ROUND);
	rig_say(&w.r, 2, WORKER_TRAINING);
	rig_say(&w.r, 2, WORKER_LEAVING);
	assert_int_equal(held(&w, 2), 0);
	struct rv_errtext et = {0};
	rig_say(&w.r, 3, WORKER_SYNCING);
	assert_int_equal(held(&w, 3), 3 * ROUND);
	assert_int_equal(core_ban(w.r.core, w.r.now_us, 3, true, &et), RV_OK);
	rig_pump(&w.r);
	assert_int_equal(held(&w, 3), 0);
	rig_restart(&w.r);
	assert_int_equal(held(&w, 0), 3 * ROUND);
	for (int k = 0; k < 12; k++)
		round_of(&w, 3, 0, ROUND);
	assert_read_once(&w);
	rig_release(&w.r);
}

/* Rows deal the participants out in another order: each keeps its own sequences. */
static void a_roster_of_rows_has_each_ones_sequences(void **state) {
	(void)state;
	static struct reader w;
	rig_init(&w.r, 2);
	w.r.cfg.lease_round = ROUND;
	w.r.cfg.lease_tokens = 8;
	w.r.cfg.row_size = 2;
	rig_start(&w.r);
	rig_join(&w.r, MEMBERS);
	rig_say_all(&w.r, MEMBERS, WORKER_TRAINING);
	for (uint32_t i = 0; i < MEMBERS; i++) {
		struct report rep = report_of(&w, i, WORKER_READY, i, ROUND);
		rep.up_bytes_per_s = rep.down_bytes_per_s = 1000 << 2 * (i % 3);
		rig_send(&w.r, i, &rep);
	}
	const struct core_record *rec = rig_last(&w.r, CORE_ROSTER);
	int moved = 0;
	assert_int_equal(rec->n_members, MEMBERS);
	for (uint32_t i = 0; i < MEMBERS; i++) {
		assert_int_equal(rec->lease_first[i], 3 * ROUND * rec->members[i] + rec->members[i]);
		moved += rec->members[i] != i;
	}
	assert_true(moved > 0);
	rig_release(&w.r);
}

/* The rounds that are taken back have read nothing. */
static void a_rollback_makes_free_what_was_read(void **state) {
	(void)state;
	static struct reader w;
	static uint16_t before[POSITIONS];
	struct rv_errtext et = {0};
	open_run(&w, 2, 3);
	for (int k = 0; k < 3; k++)
		round_of(&w, 7, (uint64_t)k, ROUND);
	memcpy(before, w.times, sizeof before);
	const uint64_t read = w.read;
	for (int k = 0; k < 5; k++)
		round_of(&w, 7, 0, ROUND);
	const uint64_t first = own(&w, 1)->lease_first;
	assert_int_equal(core_rollback(w.r.core, w.r.now_us, 3, true, &et), RV_OK);
	rig_pump(&w.r);
	assert_int_equal(rig_doc(&w.r)->round, 3);
	assert_int_equal(own(&w, 1)->lease_first, first);
	memcpy(w.times, before, sizeof before);
	w.read = read;
	rig_restart(&w.r);
	for (int k = 0; k < 12; k++)
		round_of(&w, 7, 0, ROUND);
	assert_read_once(&w);
	for (int p = 0; p < 9 * ROUND; p++)
		assert_int_equal(w.times[p], 1);
	rig_release(&w.r);
}

static void a_run_without_leases_has_none(void **state) {
	(void)state;
	static struct reader w;
	open_run(&w, 2, 2);
	rig_release(&w.r);
	rig_open(&w.r, 2, 2);
	for (int k = 0; k < 3; k++)
		rig_round(&w.r, 2);
	assert_int_equal(own(&w, 1)->n_leases, 0);
	for (uint64_t id = 1; id <= (uint64_t)w.r.n_records; id++) {
		const struct core_record *rec = &w.r.last[id];
		assert_int_not_equal(rec->type, CORE_LEASES);
		for (int i = 0; i < rec->n_members; i++)
			assert_true(rec->lease_first[i] == 0 && rec->lease_count[i] == 0);
	}
	rig_release(&w.r);
}

/* Records that cannot follow those before them are refused, never applied in part. */
static void impossible_records_are_refused(void **state) {
	(void)state;
	static struct reader w;
	static struct core_record rec;
	open_run(&w, 2, 3);
	round_of(&w, 7, 0, ROUND);
#define REFUSED(why_, ...)                                                                                             \
	do {                                                                                                               \
		struct rv_errtext et_ = {0};                                                                                   \
		rec = (struct core_record){.id = (uint64_t)w.r.n_records + 1, .type = CORE_LEASES, __VA_ARGS__};               \
		assert_int_equal(core_replay(w.r.twin, &rec, &et_), RV_E_CORRUPT);                                             \
		assert_non_null(strstr(et_.text, why_));                                                                       \
	} while (0)
	REFUSED("of nobody", .n_members = 0);
	REFUSED("no member has", .n_members = 1, .members = {9});
	REFUSED("out of order", .n_members = 2, .members = {1, 1});
	REFUSED("more or less", .n_members = 1, .members = {1}, .lease_count = {1});
	core_replayed(w.r.twin);
	assert_int_equal(held(&w, 1), 3 * ROUND);
	rig_release(&w.r);
}

/* Bans a member other than the first two, or lifts its ban. */
static void ban_or_unban(struct reader *w, struct rv_rng *rng, uint64_t *banned) {
	struct rv_errtext et = {0};
	const uint32_t who = 2 + (uint32_t)rv_rng_below(rng, MEMBERS - 2);
	const bool ban = !(*banned >> who & 1);
	if (ban)
		rig_say(&w->r, who, WORKER_SYNCING); /* it is not away: that would be refused */
	assert_int_equal(core_ban(w->r.core, w->r.now_us, who, ban, &et), RV_OK);
	*banned ^= UINT64_C(1) << who;
	rig_pump(&w->r);
	if (ban)
		assert_int_equal(held(w, who), 0);
}

/* Members come, train, die, return, leave and are banned for a while; rounds go on with those that
 * are there. */
static void whatever_members_do_a_position_is_read_once(void **state) {
	(void)state;
	static struct reader w;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct rv_rng rng = {.seed = seed};
		uint64_t banned = 0;
		open_run(&w, 2, MEMBERS);
		for (int k = 0; k < 40; k++) {
			if (rv_rng_below(&rng, 4) == 0)
				ban_or_unban(&w, &rng, &banned);
			const uint64_t members = (3 | rv_rng_u64(&rng)) & ~banned;
			for (uint32_t i = 2; i < MEMBERS; i++)
				if (members >> i & 1)
					rig_say(&w.r, i, WORKER_SYNCING);
				else if (!(banned >> i & 1) && rv_rng_below(&rng, 6) == 0)
					rig_say(&w.r, i, WORKER_LEAVING);
			rig_wait(&w.r, (int64_t)rv_rng_below(&rng, 5) * RIG_S);
			round_of(&w, members & 63, rv_rng_below(&rng, 3), 1 + (uint32_t)rv_rng_below(&rng, ROUND));
			if (rv_rng_below(&rng, 8) == 0)
				rig_restart(&w.r);
		}
		assert_read_once(&w);
		rig_release(&w.r);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_newcomer_is_granted_three_rounds_with_its_record),
		cmocka_unit_test(a_commit_consumes_and_grants_more),
		cmocka_unit_test(a_member_that_has_read_what_is_not_its_own_is_not_ready),
		cmocka_unit_test(a_contribution_counts_no_more_than_its_rounds_have),
		cmocka_unit_test(tokens_are_bounded_by_the_sequences),
		cmocka_unit_test(what_is_gone_is_read_by_others),
		cmocka_unit_test(a_roster_of_rows_has_each_ones_sequences),
		cmocka_unit_test(a_rollback_makes_free_what_was_read),
		cmocka_unit_test(a_run_without_leases_has_none),
		cmocka_unit_test(impossible_records_are_refused),
		cmocka_unit_test(whatever_members_do_a_position_is_read_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
