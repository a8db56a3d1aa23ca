/* test_coordinator_core_audits_rows.c: audits of averages in rosters of several rows: what final
 * owners are asked to show, whose work is audited by whom, and what follows. */
#include "net/control/shown_sums.h"
#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"
#include "tests/coordinator/rig_seals.h"

#include <stdlib.h>
#include <string.h>

enum { ROW = 4, N = 8, WINDOW = 4, MOST = 64 };

static struct rig r;
/* What documents said of the rounds of this test. */
static struct {
	struct rv_hash roster;
	uint64_t term;
	uint32_t owner[NET_MAX_ROWS][RIG_CHUNKS]; /* member */
	int row_of[N];
	struct owner_range column[RIG_CHUNKS]; /* of a chunk */
	int n_rows;
} of[MOST];
static struct audit_result said[N][NET_MAX_AUDITS];
static uint8_t n_said[N];

static void open_rig(uint32_t row_size, int members, uint32_t min_workers) {
	memset(n_said, 0, sizeof n_said);
	memset(of, 0, sizeof of);
	rig_init(&r, min_workers);
	r.cfg.max_here = r.cfg.max_roster = N;
	r.cfg.row_size = row_size;
	r.cfg.seals = rig_seals();
	r.cfg.final_round = MOST;
	r.cfg.audit_chunks = 1;
	r.cfg.audit_window = WINDOW;
	memset(&r.cfg.audit_secret, 7, sizeof r.cfg.audit_secret);
	rig_start(&r);
	rig_join(&r, members);
}

static int close_rig(void **state) {
	(void)state;
	rig_release(&r);
	return 0;
}

static void read_view(uint32_t who) {
	const struct document *d = rig_doc_of(&r, who);
	const uint64_t round = d->round;
	of[round].roster = d->roster_hash;
	of[round].term = d->term;
	of[round].n_rows = d->n_rows;
	of[round].row_of[who] = d->row;
	for (int j = 0; j < d->n_ranges; j++)
		for (uint32_t c = d->ranges[j].first; c < d->ranges[j].first + d->ranges[j].count; c++) {
			of[round].owner[d->row][c] = d->members[d->ranges[j].owner].member;
			of[round].column[c] = d->ranges[j];
		}
}

/* Says so with each member but those in `but`. */
static void say_all(int members, uint64_t but, enum worker_phase phase) {
	for (uint32_t m = 0; m < (uint32_t)members; m++) {
		struct report rep = rig_report(&r, m, phase);
		if (but >> m & 1)
			continue;
		rep.n_verdicts = n_said[m];
		memcpy(rep.verdicts, said[m], sizeof said[m]);
		rig_send(&r, m, &rep);
	}
}

/* Plays a round; returns its number. */
static uint64_t play(int members) {
	const uint64_t round = rig_doc(&r)->round;
	say_all(members, 0, WORKER_TRAINING);
	say_all(members, 0, WORKER_READY);
	rig_expect(&r, RUN_REDUCE, round, 1);
	for (uint32_t m = 0; m < (uint32_t)members; m++)
		read_view(m);
	say_all(members, 0, WORKER_REDUCING);
	say_all(members, 0, WORKER_VOTED);
	assert_int_equal(rig_doc(&r)->round, round + 1);
	rig_wait(&r, r.cfg.liveness_us - RIG_S);
	return round;
}

/* ---- what final owners have ---- */

static struct rv_hash leaf_of(uint64_t round, int row, uint32_t chunk) {
	const uint64_t what[] = {round, (uint64_t)row, chunk};
	return rv_hash_of(what, sizeof what);
}

static int final_row(uint64_t round, uint32_t chunk) {
	return (int)(chunk % (uint32_t)of[round].n_rows);
}

/* Signs, with the key of each row's owner of the chunk, the list of its final owner. */
static void fill_sums(const struct audit_order *o, struct shown_sums *s) {
	const struct owner_range column = of[o->round].column[o->chunk];
	*s = (struct shown_sums){
		.round = o->round, .attempt = o->attempt, .chunk = o->chunk, .n_rows = (uint8_t)of[o->round].n_rows};
	for (int row = 0; row < s->n_rows; row++) {
		struct rv_hash nodes[2 * RIG_CHUNKS + MERKLE_LEVELS], path[MERKLE_MAX_PROOF];
		struct merkle_range range = {0, 0, 1};
		uint8_t key[NET_KEY_BYTES];
		struct seal_scope scope = {.roster = of[o->round].roster,
								   .term = of[o->round].term,
								   .round = o->round,
								   .attempt = o->attempt,
								   .kind = SEAL_SUMS};
		for (uint32_t c = column.first; c < column.first + column.count; c++) {
			if (final_row(o->round, c) != final_row(o->round, o->chunk))
				continue;
			scope.first = range.n == 0 ? c : scope.first;
			range.first = c == o->chunk ? range.n : range.first;
			nodes[range.n++] = leaf_of(o->round, row, c);
		}
		merkle_build(nodes, range.n);
		s->n_path = (uint8_t)merkle_prove(nodes, &range, path);
		s->rows[row].leaf = nodes[range.first];
		memcpy(s->rows[row].path, path, s->n_path * sizeof path[0]);
		s->rows[row].seal.root = merkle_root(nodes, range.n);
		rig_key(of[o->round].owner[row][o->chunk], key);
		rig_seal(key, &scope, &s->rows[row].seal.root, s->rows[row].seal.signature);
	}
}

static enum rv_err show_as(uint32_t who, const struct shown_sums *s) {
	static struct evidence e;
	uint8_t key[NET_KEY_BYTES];
	e = (struct evidence){.term = rig_doc(&r)->term, .round = rig_doc(&r)->round, .has_sums = true, .sums = *s};
	rig_key(who, key);
	const enum rv_err err = core_testify(r.core, r.now_us, key, &e, NULL);
	rig_pump(&r);
	return err;
}

/* ---- orders ---- */

/* Finds the order of a member about the round, to show or to audit; returns false if it has
 * none. */
static bool find_order(uint32_t who, uint64_t round, bool to_show, struct audit_order *out) {
	const struct document *d = rig_doc_of(&r, who);
	for (int i = 0; i < d->n_audits; i++)
		if (d->audits[i].round == round && (d->audits[i].kind == AUDIT_SHOW) == to_show) {
			*out = d->audits[i];
			return true;
		}
	return false;
}

/* Returns the member that has one, among those not in `but`; NET_NO_MEMBER: nobody. */
static uint32_t with_order(uint64_t round, bool to_show, uint64_t but, struct audit_order *out) {
	for (uint32_t m = 0; m < N; m++)
		if (!(but >> m & 1) && !rig_view(&r, m).banned && find_order(m, round, to_show, out))
			return m;
	return NET_NO_MEMBER;
}

static void conclude(uint32_t who, const struct audit_order *o, enum audit_verdict verdict) {
	struct audit_result *v = &said[who][n_said[who]++];
	*v = (struct audit_result){
		.round = o->round, .chunk = o->chunk, .verdict = (uint8_t)verdict, .member = NET_NO_MEMBER};
	if (verdict == AUDIT_WRONG)
		memset(&v->found, 9, sizeof v->found);
	struct report rep = rig_report(&r, who, WORKER_TRAINING);
	rep.n_verdicts = n_said[who];
	memcpy(rep.verdicts, said[who], sizeof said[who]);
	rig_send(&r, who, &rep);
}

/* Plays rounds until an audit of that kind is drawn and shown; returns its first auditor. */
static uint32_t until_audited(uint8_t kind, struct audit_order *o, uint32_t *final) {
	static struct shown_sums s;
	for (;;) {
		const uint64_t round = play(N);
		memset(n_said, 0, sizeof n_said);
		*final = with_order(round, true, 0, o);
		assert_int_not_equal(*final, NET_NO_MEMBER);
		assert_int_equal(with_order(round, false, 0, &(struct audit_order){0}), NET_NO_MEMBER);
		assert_int_equal(*final, of[round].owner[final_row(round, o->chunk)][o->chunk]);
		fill_sums(o, &s);
		assert_int_equal(show_as(*final, &s), RV_OK);
		assert_int_equal(with_order(round, true, 0, &(struct audit_order){0}), NET_NO_MEMBER);
		const uint32_t auditor = with_order(round, false, 0, o);
		assert_int_not_equal(auditor, NET_NO_MEMBER);
		if (o->kind == kind)
			return auditor;
		conclude(auditor, o, AUDIT_RIGHT);
	}
}

/* Returns the member that made what the order is about. */
static uint32_t maker_of(const struct audit_order *o, uint32_t auditor) {
	return o->kind == AUDIT_OF_MEAN ? o->member : of[o->round].owner[of[o->round].row_of[auditor]][o->chunk];
}

/* ---- tests ---- */

static void sums_are_audited_by_their_row(void **state) {
	(void)state;
	struct audit_order o;
	uint32_t final;
	uint64_t rows = 0;
	open_rig(ROW, N, 4);
	for (int i = 0; i < 8; i++) {
		const uint32_t auditor = until_audited(AUDIT_OF_SUM, &o, &final);
		const int row = of[o.round].row_of[auditor];
		const struct rv_hash leaf = leaf_of(o.round, row, o.chunk);
		assert_true(rv_hash_equal(&o.sum, &leaf));
		assert_int_not_equal(maker_of(&o, auditor), auditor);
		rows |= 1u << row;
		conclude(auditor, &o, AUDIT_RIGHT);
	}
	assert_int_equal(rows, 3);
	const struct core_audit_figures f = core_audits(r.core);
	assert_true(f.right == f.drawn && f.open == 0);
}

static void means_are_audited_by_the_row_of_their_owner(void **state) {
	(void)state;
	struct audit_order o;
	uint32_t final;
	open_rig(ROW, N, 4);
	for (int i = 0; i < 4; i++) {
		const uint32_t auditor = until_audited(AUDIT_OF_MEAN, &o, &final);
		const struct rv_hash leaves[] = {leaf_of(o.round, 0, o.chunk), leaf_of(o.round, 1, o.chunk)};
		const struct rv_hash all = shown_sums_hash(leaves, 2);
		assert_true(rv_hash_equal(&o.sum, &all));
		assert_true(o.member == final && auditor != final);
		assert_int_equal(of[o.round].row_of[auditor], of[o.round].row_of[final]);
		conclude(auditor, &o, AUDIT_RIGHT);
	}
}

/* Three others, all of a row of four, find the same: the maker is banned, and nobody else. */
static void three_convict_the_maker(void **state, uint8_t kind) {
	(void)state;
	struct audit_order o;
	uint32_t final;
	uint64_t asked = 0;
	open_rig(ROW, N, 4);
	uint32_t by = until_audited(kind, &o, &final);
	const uint32_t maker = maker_of(&o, by);
	for (int i = 0; i < 3; i++) {
		assert_true(by != NET_NO_MEMBER && by != maker);
		assert_false(rig_view(&r, maker).banned);
		conclude(by, &o, AUDIT_WRONG);
		asked |= 1ull << by;
		by = with_order(o.round, false, asked, &(struct audit_order){0});
	}
	assert_true(rig_view(&r, maker).banned);
	for (uint32_t m = 0; m < N; m++)
		assert_true(rig_view(&r, m).banned == (m == maker) && rig_view(&r, m).reputation.strikes == 0);
}

static void a_false_sum_convicts_its_owner(void **state) {
	three_convict_the_maker(state, AUDIT_OF_SUM);
}

static void a_false_mean_convicts_the_final_owner(void **state) {
	three_convict_the_maker(state, AUDIT_OF_MEAN);
}

/* In a row of four all three others are needed. */
static void two_convict_nobody(void **state) {
	(void)state;
	struct audit_order o;
	uint32_t final;
	open_rig(ROW, N, 4);
	const uint32_t first = until_audited(AUDIT_OF_SUM, &o, &final), maker = maker_of(&o, first);
	conclude(first, &o, AUDIT_WRONG);
	const uint32_t second = with_order(o.round, false, 1ull << first, &(struct audit_order){0});
	conclude(second, &o, AUDIT_WRONG);
	const uint32_t third = with_order(o.round, false, 1ull << first | 1ull << second, &(struct audit_order){0});
	conclude(third, &o, AUDIT_RIGHT);
	assert_false(rig_view(&r, maker).banned);
	assert_int_equal(rig_view(&r, third).reputation.strikes, 0);
}

/* A leaf, a root, or a path that nobody has signed, and what another one was given. */
static void what_is_not_signed_is_refused(void **state) {
	(void)state;
	static struct shown_sums s, bad;
	struct audit_order o;
	open_rig(ROW, N, 4);
	const uint64_t round = play(N);
	const uint32_t final = with_order(round, true, 0, &o);
	fill_sums(&o, &s);
	for (int i = 0; i < 4; i++) {
		bad = s;
		if (i == 0)
			bad.rows[1].leaf.b[0] ^= 1;
		else if (i == 1)
			bad.rows[0].seal.signature[0] ^= 1;
		else if (i == 2)
			bad.rows[0].seal.root.b[0] ^= 1;
		else
			bad.n_rows = 1;
		assert_int_equal(show_as(final, &bad), RV_E_INVALID);
		assert_int_equal(with_order(round, false, 0, &(struct audit_order){0}), NET_NO_MEMBER);
	}
	assert_int_equal(show_as((final + 1) % N, &s), RV_OK); /* nobody has asked that one */
	assert_int_equal(with_order(round, true, 0, &o), final);
	assert_int_equal(show_as(final, &s), RV_OK);
	assert_int_not_equal(with_order(round, false, 0, &o), NET_NO_MEMBER);
}

/* All take part in rounds, and one shows nothing: it is named at first, and struck at the second
 * round of which it is asked. What the others were given they show. */
static void one_that_shows_nothing_is_struck(void **state) {
	(void)state;
	static struct shown_sums s;
	enum { HIDES = 0 };
	struct audit_order o;
	uint64_t hidden = 0;
	open_rig(ROW, N, 4);
	for (int i = 0; i < MOST - 2 && hidden < 2; i++) {
		const uint64_t round = play(N);
		const uint32_t final = with_order(round, true, 0, &o);
		if (final == HIDES) {
			hidden++;
			continue;
		}
		if (final == NET_NO_MEMBER)
			continue;
		fill_sums(&o, &s);
		assert_int_equal(show_as(final, &s), RV_OK);
	}
	assert_int_equal(rig_view(&r, HIDES).reputation.strikes, 0);
	for (int i = 0; i < WINDOW + 1; i++)
		(void)play(N);
	assert_true(rig_saw(&r, CORE_EVENT_UNSHOWN, HIDES));
	assert_int_equal(rig_view(&r, HIDES).reputation.strikes, 1);
	assert_int_equal(rig_view(&r, HIDES).reputation.reason, CORE_STRIKE_EVADED);
}

/* It shows what it did honestly, in between, and hides the rest: it is struck as well. */
static void one_that_shows_only_some_is_struck(void **state) {
	(void)state;
	static struct shown_sums s;
	enum { HIDES = 0 };
	struct audit_order o;
	uint64_t asked = 0, hidden = 0;
	open_rig(ROW, N, 4);
	for (int i = 0; i < MOST - 2 - WINDOW; i++) {
		const uint64_t round = play(N);
		const uint32_t final = with_order(round, true, 0, &o);
		if (final == NET_NO_MEMBER || (final == HIDES && asked++ % 2 == 0)) {
			hidden += final == HIDES;
			continue;
		}
		fill_sums(&o, &s);
		assert_int_equal(show_as(final, &s), RV_OK);
	}
	assert_true(hidden >= 2);
	assert_true(rig_view(&r, HIDES).reputation.strikes > 0);
}

/* It shows what is asked of it when no auditor has time any more. */
static void one_that_shows_too_late_is_struck(void **state) {
	(void)state;
	static struct shown_sums s;
	enum { HIDES = 0 };
	struct audit_order o, late[MOST];
	int n = 0, hidden = 0;
	open_rig(ROW, N, 4);
	for (int i = 0; i < MOST - 2; i++) {
		const uint64_t round = play(N);
		for (int k = 0; k < n; k++)
			if (late[k].round + WINDOW == round + 1) {
				fill_sums(&late[k], &s);
				assert_int_equal(show_as(HIDES, &s), RV_OK);
			}
		const uint32_t final = with_order(round, true, 0, &o);
		if (final == HIDES) {
			late[n++] = o;
			hidden += i < MOST - 2 * WINDOW;
		} else if (final != NET_NO_MEMBER) {
			fill_sums(&o, &s);
			assert_int_equal(show_as(final, &s), RV_OK);
		}
	}
	assert_true(hidden >= 2);
	assert_true(rig_view(&r, HIDES).reputation.strikes > 0);
}

/* A slow one sends all that it owes, and a majority does not wait for its vote: it has kept
 * nothing that it could show. */
static void one_that_had_not_voted_is_not_struck(void **state) {
	(void)state;
	static struct shown_sums s;
	enum { SLOW = 0 };
	struct audit_order o;
	unsigned asked = 0;
	open_rig(ROW, N, 4);
	for (int i = 0; i < MOST - 2 - WINDOW; i++) {
		const uint64_t round = rig_doc(&r)->round;
		if (rig_doc(&r)->phase != RUN_REDUCE) { /* else it has begun while they answered */
			say_all(N, 0, WORKER_TRAINING);
			say_all(N, 0, WORKER_READY);
		}
		if (rig_doc(&r)->phase != RUN_REDUCE)
			rig_wait(&r, r.cfg.grace_us + 1);
		if (rig_view(&r, SLOW).reputation.strikes > 0)
			break;
		for (uint32_t m = 0; m < N; m++)
			read_view(m);
		say_all(N, 0, WORKER_REDUCING);
		say_all(N, 1ull << SLOW, WORKER_VOTED);
		for (int k = 0; k < 100 && rig_doc(&r)->round == round; k++) {
			rig_wait(&r, RIG_S);
			say_all(N, ~(1ull << SLOW), WORKER_REDUCING);
			say_all(N, 1ull << SLOW, WORKER_VOTED);
		}
		assert_int_equal(rig_doc(&r)->round, round + 1);
		rig_wait(&r, r.cfg.liveness_us - RIG_S);
		const uint32_t final = with_order(round, true, 0, &o);
		asked += final == SLOW;
		if (final == NET_NO_MEMBER || final == SLOW)
			continue;
		fill_sums(&o, &s);
		assert_int_equal(show_as(final, &s), RV_OK);
	}
	assert_true(asked >= 2);
	assert_int_equal(rig_view(&r, SLOW).reputation.strikes, 0);
}

/* Records of a coordinator that asked for no sums: of what it has read of them nobody is struck. */
static void what_is_drawn_again_strikes_nobody(void **state) {
	(void)state;
	open_rig(ROW, N, 4);
	for (int i = 0; i < WINDOW; i++)
		(void)play(N);
	rig_restart(&r);
	say_all(N, 0, WORKER_TRAINING);
	rig_wait(&r, r.cfg.liveness_us - RIG_S);
	for (int i = 0; i < WINDOW + 2; i++) {
		static struct shown_sums s;
		struct audit_order o;
		const uint64_t round = play(N);
		const uint32_t final = with_order(round, true, 0, &o);
		if (final == NET_NO_MEMBER)
			continue;
		fill_sums(&o, &s);
		assert_int_equal(show_as(final, &s), RV_OK);
	}
	struct core_event ev;
	unsigned named = 0;
	while (core_next_event(r.core, &ev))
		named += ev.type == CORE_EVENT_UNSHOWN;
	assert_int_equal(named, 0);
}

static void a_restart_asks_again(void **state) {
	(void)state;
	static struct shown_sums s;
	struct audit_order o, again;
	open_rig(ROW, N, 4);
	const uint64_t round = play(N);
	const uint32_t final = with_order(round, true, 0, &o);
	fill_sums(&o, &s);
	assert_int_equal(show_as(final, &s), RV_OK);
	const uint32_t auditor = with_order(round, false, 0, &o);
	rig_restart(&r);
	say_all(N, 0, WORKER_TRAINING);
	assert_int_equal(with_order(round, true, 0, &again), final);
	assert_int_equal(with_order(round, false, 0, &again), NET_NO_MEMBER);
	assert_int_equal(show_as(final, &s), RV_OK);
	assert_int_equal(with_order(round, false, 0, &again), auditor);
	assert_true(again.kind == o.kind && again.chunk == o.chunk && rv_hash_equal(&again.sum, &o.sum));
}

static void short_rows_are_not_audited(void **state) {
	(void)state;
	enum { SIX = 6, THREE = 3 };
	open_rig(THREE, SIX, 4);
	for (int i = 0; i < 6; i++)
		(void)play(SIX);
	assert_int_equal(core_audits(r.core).drawn, 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(sums_are_audited_by_their_row, close_rig),
		cmocka_unit_test_teardown(means_are_audited_by_the_row_of_their_owner, close_rig),
		cmocka_unit_test_teardown(a_false_sum_convicts_its_owner, close_rig),
		cmocka_unit_test_teardown(a_false_mean_convicts_the_final_owner, close_rig),
		cmocka_unit_test_teardown(two_convict_nobody, close_rig),
		cmocka_unit_test_teardown(what_is_not_signed_is_refused, close_rig),
		cmocka_unit_test_teardown(one_that_shows_nothing_is_struck, close_rig),
		cmocka_unit_test_teardown(one_that_shows_only_some_is_struck, close_rig),
		cmocka_unit_test_teardown(one_that_shows_too_late_is_struck, close_rig),
		cmocka_unit_test_teardown(one_that_had_not_voted_is_not_struck, close_rig),
		cmocka_unit_test_teardown(what_is_drawn_again_strikes_nobody, close_rig),
		cmocka_unit_test_teardown(a_restart_asks_again, close_rig),
		cmocka_unit_test_teardown(short_rows_are_not_audited, close_rig),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
