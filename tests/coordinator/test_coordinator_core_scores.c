/* test_coordinator_core_scores.c: whose training is scored by whom, and what follows from what
 * auditors measure. */
#include "coordinator/core/core.h"
#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"

#include <string.h>

enum { MEMBERS = 7, WINDOW = 6, ROUND = 8, TOKENS = 8 };

static struct rig r;

/* Members' measurements and appeals, which their reports repeat. */
static struct score_result said[MEMBERS][NET_MAX_SCORES];
static uint8_t n_said[MEMBERS];
static bool appeals[MEMBERS];

/* One score costs 4/3 of what a member trains in a round: with this share about one a round. */
static void open_rig_of(uint32_t ppm, uint8_t secret) {
	memset(n_said, 0, sizeof n_said);
	memset(appeals, 0, sizeof appeals);
	rig_init(&r, 1);
	r.cfg.final_round = 1000;
	r.cfg.audit_ppm = ppm;
	r.cfg.audit_window = WINDOW;
	r.cfg.lease_round = ROUND;
	r.cfg.lease_tokens = TOKENS;
	memset(&r.cfg.audit_secret, secret, sizeof r.cfg.audit_secret);
	rig_start(&r);
	rig_join(&r, MEMBERS);
}

static void open_rig(uint32_t ppm) {
	open_rig_of(ppm, 7);
}

static int close_rig(void **state) {
	(void)state;
	rig_release(&r);
	return 0;
}

static const struct document *doc_of(uint32_t who) {
	static struct document d;
	const int slot = core_find(r.core, who);
	assert_true(slot >= 0);
	assert_true(core_document_of(r.core, (uint32_t)slot, &d));
	return &d;
}

/* Those that have no link to another one. */
static uint64_t apart;
static uint32_t apart_from;

static void say_apart(uint32_t who, struct report *rep) {
	if (!(apart >> who & 1))
		return;
	rep->n_paths = 1;
	rep->paths[0] = (struct report_path){.member = apart_from, .path = PATH_APART};
}

static void say(uint32_t who, enum worker_phase phase) {
	struct report rep = rig_report(&r, who, phase);
	rep.n_scores = n_said[who];
	memcpy(rep.scores, said[who], sizeof said[who]);
	rep.appeals = appeals[who];
	say_apart(who, &rep);
	if (phase >= WORKER_READY) {
		rep.tokens = ROUND * TOKENS;
		rep.lease_first = doc_of(who)->lease_first;
		rep.lease_count = ROUND;
	}
	rig_send(&r, who, &rep);
}

/* The members of `but` are not there. */
static void play_round(uint64_t but) {
	static const enum worker_phase phases[] = {WORKER_TRAINING, WORKER_READY, WORKER_REDUCING, WORKER_VOTED};
	for (size_t p = 0; p < sizeof phases / sizeof phases[0]; p++)
		for (uint32_t m = 0; m < MEMBERS; m++)
			if (!(but >> m & 1))
				say(m, phases[p]);
}

/* Returns the auditors that have this order now. */
static uint64_t auditors_of(const struct score_order *o) {
	uint64_t set = 0;
	for (uint32_t m = 0; m < MEMBERS; m++) {
		const struct document *d = doc_of(m);
		for (int i = 0; i < d->n_scores; i++)
			if (d->scores[i].round == o->round && d->scores[i].member == o->member)
				set |= 1ull << m;
	}
	return set;
}

/* Finds an order of the last round, if there is one. */
static bool last_order(struct score_order *out) {
	for (uint32_t m = 0; m < MEMBERS; m++)
		for (int i = 0; i < doc_of(m)->n_scores; i++)
			if (doc_of(m)->scores[i].round + 1 == doc_of(m)->round) {
				*out = doc_of(m)->scores[i];
				return true;
			}
	return false;
}

static struct score_order next_order(void) {
	struct score_order o;
	do
		play_round(0);
	while (!last_order(&o));
	return o;
}

/* The next report of the member will have this. */
static void note(uint32_t who, const struct score_order *o, enum score_verdict verdict, float gain) {
	for (uint8_t i = 0; i < n_said[who]; i++)
		if (said[who][i].round == o->round && said[who][i].member == o->member)
			fail();
	if (n_said[who] == NET_MAX_SCORES)
		n_said[who] = 0;
	said[who][n_said[who]++] = (struct score_result){.round = o->round,
													 .member = o->member,
													 .verdict = (uint8_t)verdict,
													 .gain = verdict == SCORE_MEASURED ? gain : 0,
													 .own = verdict == SCORE_MEASURED ? 1 : 0};
}

static void conclude(uint32_t who, const struct score_order *o, enum score_verdict verdict, float gain) {
	note(who, o, verdict, gain);
	say(who, WORKER_TRAINING);
}

/* All that have the order and are not in `but` say so. Returns them. */
static uint64_t all_conclude(const struct score_order *o, uint64_t but, enum score_verdict verdict, float gain) {
	const uint64_t by = auditors_of(o) & ~but;
	for (uint32_t m = 0; m < MEMBERS; m++)
		if (by >> m & 1)
			conclude(m, o, verdict, gain);
	return by;
}

/* The author is struck: one doubts it, and two others agree. Returns the three. */
static uint64_t strike(struct score_order *o) {
	*o = next_order();
	const uint64_t first = all_conclude(o, 0, SCORE_MEASURED, 0.1f);
	assert_int_equal(__builtin_popcountll(first), 1);
	assert_true(rig_saw(&r, CORE_EVENT_DOUBTED, o->member));
	assert_int_equal(rig_view(&r, o->member).reputation.strikes, 0);
	const uint64_t all = auditors_of(o);
	assert_int_equal(__builtin_popcountll(all & ~first), 2);
	(void)all_conclude(o, first, SCORE_MEASURED, -0.2f);
	assert_true(rig_saw(&r, CORE_EVENT_WORTHLESS, o->member));
	assert_int_equal(rig_view(&r, o->member).reputation.strikes, 1);
	assert_int_equal(rig_view(&r, o->member).reputation.reason, CORE_STRIKE_TRAINING);
	assert_int_equal(auditors_of(o), 0);
	return all;
}

/* ---- draws ---- */

static void orders_name_what_the_author_has_read(void **state) {
	(void)state;
	uint64_t authors = 0, auditors = 0, n = 0;
	static uint64_t begins[MEMBERS];
	open_rig(200000);
	for (int round = 0; round < 60; round++) {
		struct score_order o;
		for (uint32_t m = 0; m < MEMBERS; m++)
			begins[m] = doc_of(m)->leases[0].begin;
		play_round(0);
		if (!last_order(&o))
			continue;
		n++;
		assert_int_equal(o.n_pieces, 1); /* what it reads is in one piece here */
		assert_true(o.pieces[0].begin == begins[o.member] && o.pieces[0].count == ROUND);
		assert_true(o.share == (SCORE_SHARE_ONE + MEMBERS - 1) / MEMBERS && o.n_chunks == RIG_CHUNKS);
		assert_false(auditors_of(&o) >> o.member & 1);
		authors |= 1ull << o.member;
		auditors |= auditors_of(&o);
		(void)all_conclude(&o, 0, SCORE_MEASURED, 1);
	}
	assert_int_equal(authors, (1u << MEMBERS) - 1);
	assert_int_equal(auditors, (1u << MEMBERS) - 1);
	/* 0.2 of 7 members' training is 1.05 scores a round; one member is not drawn twice. */
	assert_in_range(n, 55, 60);
	assert_in_range(core_scores(r.core).drawn, 57, 69);
}

static void a_restart_draws_the_same(void **state) {
	(void)state;
	open_rig(200000);
	const struct score_order before = next_order();
	const uint64_t by = auditors_of(&before);
	struct score_order after;
	rig_restart(&r);
	for (uint32_t m = 0; m < MEMBERS; m++)
		say(m, WORKER_TRAINING);
	assert_true(last_order(&after));
	assert_true(after.round == before.round && after.member == before.member);
	assert_true(after.pieces[0].begin == before.pieces[0].begin && rv_hash_equal(&after.root, &before.root));
	assert_int_equal(auditors_of(&after), by);
}

static void a_run_without_a_share_orders_none(void **state) {
	(void)state;
	open_rig(0);
	for (int i = 0; i < 5; i++)
		play_round(0);
	for (uint32_t m = 0; m < MEMBERS; m++)
		assert_true(doc_of(m)->n_scores == 0 && rv_hash_is_zero(&doc_of(m)->audit_promise));
}

/* One that has been there for long is drawn less often than newcomers. */
static void newcomers_are_drawn_more_often(void **state) {
	(void)state;
	uint64_t of_newcomer = 0, of_others = 0;
	open_rig(100000);
	for (int round = 0; round < 34; round++)
		play_round(1);
	for (int round = 0; round < 24; round++) {
		struct score_order o;
		play_round(0);
		if (!last_order(&o))
			continue;
		of_newcomer += o.member == 0;
		of_others += o.member != 0;
		(void)all_conclude(&o, 0, SCORE_MEASURED, 1);
	}
	/* It weighs 8, then 4, beside six of 2. */
	assert_true(of_others > 0 && 6 * of_newcomer > of_others);
}

/* ---- measurements ---- */

static void one_that_finds_work_ends_the_audit(void **state) {
	(void)state;
	open_rig(200000);
	const struct score_order o = next_order();
	(void)all_conclude(&o, 0, SCORE_MEASURED, SCORE_LIMIT);
	assert_int_equal(auditors_of(&o), 0);
	assert_int_equal(core_scores(r.core).worthy, 1);
	assert_false(rig_saw(&r, CORE_EVENT_DOUBTED, o.member));
}

static void two_that_find_it_worthless_strike(void **state) {
	(void)state;
	struct score_order o;
	open_rig(200000);
	(void)strike(&o);
	const struct core_member_view m = rig_view(&r, o.member);
	assert_true(m.reputation.quarantined_until > doc_of(0)->round && !m.banned);
	assert_int_equal(core_scores(r.core).worthless, 1);
	rig_restart(&r);
	assert_int_equal(rig_view(&r, o.member).reputation.reason, CORE_STRIKE_TRAINING);
}

static void one_against_two_strikes_nobody(void **state) {
	(void)state;
	open_rig(200000);
	const struct score_order o = next_order();
	const uint64_t first = all_conclude(&o, 0, SCORE_MEASURED, -3);
	(void)all_conclude(&o, first, SCORE_MEASURED, 0.9f);
	assert_int_equal(auditors_of(&o), 0);
	assert_int_equal(core_scores(r.core).worthy, 1);
	for (uint32_t m = 0; m < MEMBERS; m++)
		assert_int_equal(rig_view(&r, m).reputation.strikes, 0);
}

/* Where honest auditors are unable, two that lie are no majority. */
static void two_of_many_strike_nobody(void **state) {
	uint64_t asked;
	(void)state;
	open_rig(200000);
	const struct score_order o = next_order();
	asked = all_conclude(&o, 0, SCORE_MEASURED, -1);
	asked |= all_conclude(&o, asked, SCORE_UNABLE, 0);
	const uint32_t second = (uint32_t)__builtin_ctzll(auditors_of(&o) & ~asked);
	conclude(second, &o, SCORE_MEASURED, -1);
	asked |= 1ull << second;
	while ((auditors_of(&o) & ~asked) != 0)
		asked |= all_conclude(&o, asked, SCORE_UNABLE, 0);
	assert_int_equal(__builtin_popcountll(asked), MEMBERS - 1);
	assert_int_equal(rig_view(&r, o.member).reputation.strikes, 0);
	assert_int_equal(core_scores(r.core).worthless, 0);
}

/* Auditors that cannot, or whose own work is worth nothing, are replaced. */
static void others_are_asked_instead(void **state) {
	(void)state;
	open_rig(200000);
	const struct score_order o = next_order();
	const uint64_t unable = all_conclude(&o, 0, SCORE_UNABLE, 0);
	const uint64_t second = auditors_of(&o) & ~unable;
	assert_int_equal(__builtin_popcountll(second), 1);
	const uint32_t who = (uint32_t)__builtin_ctzll(second);
	said[who][0] =
		(struct score_result){.round = o.round, .member = o.member, .verdict = SCORE_MEASURED, .gain = -1, .own = -1};
	n_said[who] = 1;
	say(who, WORKER_TRAINING);
	assert_int_equal(__builtin_popcountll(auditors_of(&o) & ~unable & ~second), 1);
	assert_false(rig_saw(&r, CORE_EVENT_DOUBTED, o.member));
}

static void two_that_got_nothing_strike(void **state) {
	(void)state;
	open_rig(200000);
	const struct score_order o = next_order();
	const uint64_t first = all_conclude(&o, 0, SCORE_WITHHELD, 0);
	assert_int_equal(rig_view(&r, o.member).reputation.strikes, 0);
	(void)all_conclude(&o, first, SCORE_WITHHELD, 0);
	assert_int_equal(rig_view(&r, o.member).reputation.reason, CORE_STRIKE_WITHHELD);
	assert_true(rig_saw(&r, CORE_EVENT_WITHHELD, o.member));
}

static void one_that_nobody_can_score_is_named(void **state) {
	(void)state;
	open_rig(200000);
	const struct score_order o = next_order();
	uint64_t unable = 0;
	while ((auditors_of(&o) & ~unable) != 0)
		unable |= all_conclude(&o, unable, SCORE_UNABLE, 0);
	assert_false(rig_saw(&r, CORE_EVENT_UNRESOLVED, o.member));
	for (int i = 0; i < WINDOW; i++)
		play_round(0);
	assert_true(rig_saw(&r, CORE_EVENT_UNRESOLVED, o.member));
	assert_true(core_scores(r.core).unresolved > 0);
	assert_int_equal(rig_view(&r, o.member).reputation.strikes, 0);
}

static void verdicts_of_those_not_asked_are_ignored(void **state) {
	(void)state;
	open_rig(200000);
	const struct score_order o = next_order();
	for (uint32_t m = 0; m < MEMBERS; m++)
		if (!(auditors_of(&o) >> m & 1))
			conclude(m, &o, SCORE_MEASURED, -1);
	assert_false(rig_saw(&r, CORE_EVENT_DOUBTED, o.member));
	assert_int_equal(rig_view(&r, o.member).reputation.strikes, 0);
}

/* ---- appeals ---- */

static void appeal(uint32_t who) {
	appeals[who] = true;
	say(who, WORKER_TRAINING);
}

static void two_others_clear_a_member(void **state) {
	(void)state;
	struct score_order o;
	open_rig(200000);
	const uint64_t before = strike(&o);
	appeal(o.member);
	assert_true(rig_saw(&r, CORE_EVENT_APPEALED, o.member));
	const uint64_t others = auditors_of(&o);
	assert_true(__builtin_popcountll(others) == 2 && (others & before) == 0 && !(others >> o.member & 1));
	(void)all_conclude(&o, 0, SCORE_MEASURED, 1);
	assert_true(rig_saw(&r, CORE_EVENT_CLEARED, o.member));
	assert_int_equal(rig_view(&r, o.member).reputation.strikes, 0);
	assert_int_equal(rig_view(&r, o.member).reputation.quarantined_until, 0);
	/* Once: the same appeal, repeated, does nothing more. */
	appeal(o.member);
	assert_true(auditors_of(&o) == 0 && core_scores(r.core).appeals == 1 && core_scores(r.core).lifted == 1);
	rig_restart(&r);
	assert_int_equal(rig_view(&r, o.member).reputation.strikes, 0);
}

static void one_of_them_upholds_the_strike(void **state) {
	(void)state;
	struct score_order o;
	open_rig(200000);
	const uint64_t before = strike(&o);
	appeal(o.member);
	const uint32_t one = (uint32_t)__builtin_ctzll(auditors_of(&o) & ~before);
	conclude(one, &o, SCORE_MEASURED, 0.2f);
	assert_true(rig_saw(&r, CORE_EVENT_UPHELD, o.member));
	assert_int_equal(rig_view(&r, o.member).reputation.strikes, 1);
	assert_int_equal(auditors_of(&o), 0);
	appeal(o.member);
	assert_int_equal(auditors_of(&o), 0);
}

static void who_is_not_struck_cannot_appeal(void **state) {
	(void)state;
	struct score_order o;
	open_rig(200000);
	for (uint32_t m = 0; m < MEMBERS; m++)
		appeal(m);
	assert_int_equal(core_scores(r.core).appeals, 0);
	memset(appeals, 0, sizeof appeals);
	(void)strike(&o);
	appeal((o.member + 1) % MEMBERS);
	assert_int_equal(core_scores(r.core).appeals, 0);
}

/* ---- authors that keep auditors away ---- */

/* All that are asked about the author's contribution say so, until nobody more is asked. Returns
 * them. */
static uint64_t nobody_gets_it(const struct score_order *o, uint64_t but, enum score_verdict verdict) {
	uint64_t away = but;
	while ((auditors_of(o) & ~away) != 0)
		away |= all_conclude(o, away, verdict, 0);
	return away;
}

/* Plays until the next audit of the member. */
static struct score_order next_order_of(uint32_t member) {
	struct score_order o;
	do
		o = next_order();
	while (o.member != member);
	return o;
}

/* Its auditors of a round do not reach it, and rounds go on with all. */
static void evade(const struct score_order *o) {
	assert_int_equal(__builtin_popcountll(nobody_gets_it(o, 0, SCORE_UNREACHED)), 3);
	while (auditors_of(o) != 0)
		play_round(0);
	assert_true(rig_doc(&r)->round > o->round + WINDOW);
}

static void two_audits_in_a_row_that_it_evades_strike(void **state) {
	(void)state;
	open_rig(200000);
	const struct score_order first = next_order();
	evade(&first);
	assert_true(rig_saw(&r, CORE_EVENT_EVADED, first.member));
	assert_int_equal(rig_view(&r, first.member).reputation.strikes, 0);
	const struct score_order second = next_order_of(first.member);
	evade(&second);
	const struct core_reputation got = rig_view(&r, first.member).reputation;
	assert_true(got.strikes == 1 && got.reason == CORE_STRIKE_EVADED && got.struck_round == second.round);
	assert_true(got.quarantined_until > rig_doc(&r)->round);
	assert_int_equal(core_scores(r.core).evaded, 2);
	rig_restart(&r);
	assert_int_equal(rig_view(&r, first.member).reputation.reason, CORE_STRIKE_EVADED);
}

static void a_measurement_begins_a_new_row(void **state) {
	(void)state;
	open_rig(200000);
	const struct score_order first = next_order();
	evade(&first);
	const struct score_order second = next_order_of(first.member);
	(void)all_conclude(&second, 0, SCORE_MEASURED, 1);
	const struct score_order third = next_order_of(first.member);
	evade(&third);
	assert_int_equal(core_scores(r.core).evaded, 2);
	assert_int_equal(rig_view(&r, first.member).reputation.strikes, 0);
}

/* One auditor that lies, or has a bad line, costs an honest member nothing. */
static void one_that_does_not_reach_it_is_outweighed(void **state) {
	(void)state;
	open_rig(200000);
	const struct score_order o = next_order();
	const uint64_t one = all_conclude(&o, 0, SCORE_UNREACHED, 0);
	assert_int_equal(__builtin_popcountll(auditors_of(&o) & ~one), 2); /* at once */
	(void)all_conclude(&o, one, SCORE_MEASURED, 1);
	assert_int_equal(core_scores(r.core).worthy, 1);
	while (rig_doc(&r)->round <= o.round + WINDOW)
		play_round(0);
	assert_int_equal(core_scores(r.core).evaded, 0);
}

/* One of the three finds a link in time. */
static void one_that_reaches_it_later_ends_that(void **state) {
	(void)state;
	open_rig(200000);
	const struct score_order o = next_order();
	const uint64_t away = nobody_gets_it(&o, 0, SCORE_UNREACHED);
	const uint32_t one = (uint32_t)__builtin_ctzll(away);
	play_round(0);
	play_round(0);
	for (uint8_t i = 0; i < n_said[one]; i++)
		if (said[one][i].round == o.round && said[one][i].member == o.member)
			said[one][i] = (struct score_result){
				.round = o.round, .member = o.member, .verdict = SCORE_MEASURED, .gain = 1, .own = 1};
	say(one, WORKER_TRAINING);
	assert_int_equal(auditors_of(&o), 0);
	assert_int_equal(core_scores(r.core).worthy, 1);
}

/* It took part in no round with its auditors since they were asked: its line is down, or theirs. */
static void who_is_not_there_evades_nothing(void **state) {
	(void)state;
	open_rig(200000);
	const struct score_order o = next_order();
	assert_int_equal(__builtin_popcountll(nobody_gets_it(&o, 0, SCORE_UNREACHED)), 3);
	while (!rig_saw(&r, CORE_EVENT_UNRESOLVED, o.member)) {
		say(o.member, WORKER_SYNCING);
		play_round(1ull << o.member);
		rig_wait(&r, 6 * RIG_S); /* grace: a round may wait for it */
	}
	assert_int_equal(core_scores(r.core).evaded, 0);
}

/* It is taken for apart by those whose links it ends. */
static void links_that_it_cuts_do_not_excuse_it(void **state) {
	(void)state;
	for (int k = 0; k < 2; k++) {
		open_rig(200000);
		const struct score_order o = next_order();
		apart_from = o.member;
		apart = nobody_gets_it(&o, 0, k == 0 ? SCORE_UNREACHED : SCORE_CUT);
		while (auditors_of(&o) != 0)
			play_round(0);
		assert_int_equal(core_scores(r.core).evaded, k);
		apart = 0;
		if (k == 0)
			rig_release(&r);
	}
}

/* Rounds are shorter than the time after which an auditor says that it did not get it. */
static void what_auditors_say_late_counts(void **state) {
	(void)state;
	open_rig(200000);
	const struct score_order o = next_order();
	uint64_t asked = auditors_of(&o);
	for (int i = 0; i < 4; i++)
		play_round(0);
	assert_int_equal(__builtin_popcountll(auditors_of(&o)), 2); /* the first one is not waited for */
	asked |= auditors_of(&o);
	asked |= nobody_gets_it(&o, 0, SCORE_CUT);
	while (auditors_of(&o) != 0)
		play_round(0);
	assert_int_equal(core_scores(r.core).evaded, 1);
	assert_int_equal(__builtin_popcountll(asked), 3);
}

/* It gives nothing to the first, and keeps the others away. */
static void withholding_from_one_does_not_help(void **state) {
	(void)state;
	open_rig(200000);
	const struct score_order o = next_order();
	const uint64_t first = all_conclude(&o, 0, SCORE_WITHHELD, 0);
	assert_int_equal(__builtin_popcountll(nobody_gets_it(&o, first, SCORE_UNREACHED)), 3);
	while (rig_doc(&r)->round <= o.round + WINDOW)
		play_round(0);
	assert_int_equal(core_scores(r.core).evaded, 1);
}

/* ---- two strikes of one member ---- */

/* Plays until two contributions of one member are being audited, those to an earlier and to a later
 * round. */
static void two_orders(struct score_order o[2]) {
	static struct score_order all[MEMBERS * NET_MAX_SCORES];
	for (;;) {
		int n = 0;
		play_round(0);
		for (uint32_t m = 0; m < MEMBERS; m++)
			for (int i = 0; i < doc_of(m)->n_scores; i++)
				all[n++] = doc_of(m)->scores[i];
		for (int i = 0; i < n; i++)
			for (int k = 0; k < n; k++)
				if (all[i].member == all[k].member && all[i].round < all[k].round) {
					o[0] = all[i];
					o[1] = all[k];
					return;
				}
	}
}

/* All that are asked measure the same, until nobody is asked any more. */
static void all_measure(const struct score_order *o, float gain) {
	uint64_t done = 0;
	while ((auditors_of(o) & ~done) != 0)
		done |= all_conclude(o, done, SCORE_MEASURED, gain);
	assert_int_equal(auditors_of(o), 0);
}

/* The member is struck for both, and cleared of the second. Returns the end of the first
 * quarantine. */
static uint64_t strike_twice_and_clear(struct score_order o[2]) {
	open_rig(200000);
	two_orders(o);
	all_measure(&o[0], 0.1f);
	const uint64_t first = rig_view(&r, o[0].member).reputation.quarantined_until;
	assert_int_equal(first, rig_doc(&r)->round + 8);
	all_measure(&o[1], 0.1f);
	assert_int_equal(rig_view(&r, o[0].member).reputation.strikes, 2);
	assert_int_equal(rig_view(&r, o[0].member).reputation.quarantined_until, rig_doc(&r)->round + 32);
	memset(n_said, 0, sizeof n_said);
	appeal(o[0].member);
	all_measure(&o[1], 1);
	assert_true(rig_saw(&r, CORE_EVENT_CLEARED, o[0].member));
	assert_int_equal(rig_view(&r, o[0].member).reputation.strikes, 1);
	return first;
}

static void a_lift_leaves_the_quarantine_before_it(void **state) {
	(void)state;
	struct score_order o[2];
	const uint64_t until = strike_twice_and_clear(o);
	assert_int_equal(rig_view(&r, o[0].member).reputation.quarantined_until, until);
	rig_restart(&r);
	assert_int_equal(rig_view(&r, o[0].member).reputation.quarantined_until, until);
}

static struct notice notice_of(uint32_t who) {
	struct notice n;
	uint8_t key[NET_KEY_BYTES];
	rig_key(who, key);
	assert_true(core_notice(r.core, key, &n));
	return n;
}

/* It is struck for keeping auditors away, then for its training, of which it is cleared. */
static void after_a_lift_the_strike_before_is_told(void **state) {
	(void)state;
	open_rig(200000);
	const struct score_order first = next_order();
	evade(&first);
	const struct score_order second = next_order_of(first.member);
	struct score_order third;
	do { /* audited as well, before it is in quarantine */
		play_round(0);
	} while (!last_order(&third) || third.member != second.member);
	(void)nobody_gets_it(&second, 0, SCORE_UNREACHED);
	while (auditors_of(&second) != 0)
		play_round(0);
	assert_int_equal(notice_of(first.member).reason, NOTICE_STRUCK_EVADED);
	assert_false(notice_of(first.member).final);
	all_measure(&third, 0.1f);
	assert_int_equal(notice_of(first.member).reason, NOTICE_STRUCK_TRAINING);
	memset(n_said, 0, sizeof n_said);
	appeal(first.member);
	all_measure(&third, 1);
	assert_true(rig_saw(&r, CORE_EVENT_CLEARED, first.member));
	for (int k = 0; k < 2; k++) {
		assert_int_equal(rig_view(&r, first.member).reputation.strikes, 1);
		assert_int_equal(notice_of(first.member).reason, NOTICE_STRUCK_EVADED);
		assert_true(notice_of(first.member).final);
		rig_restart(&r);
	}
}

/* The coordinator restarts, draws the same audits again, and has the same answers. */
static void restart_and_measure(const struct score_order *o) {
	memset(n_said, 0, sizeof n_said);
	memset(appeals, 0, sizeof appeals);
	rig_restart(&r);
	for (uint32_t m = 0; m < MEMBERS; m++)
		say(m, WORKER_TRAINING);
	assert_true(auditors_of(o) != 0);
	all_measure(o, 0.1f);
	memset(n_said, 0, sizeof n_said);
}

static void a_restart_allows_no_second_appeal(void **state) {
	(void)state;
	struct score_order o[2];
	const uint64_t until = strike_twice_and_clear(o);
	restart_and_measure(&o[1]);
	appeal(o[1].member);
	assert_int_equal(core_scores(r.core).appeals, 0);
	assert_int_equal(auditors_of(&o[1]), 0);
	assert_int_equal(rig_view(&r, o[0].member).reputation.strikes, 1);
	assert_int_equal(rig_view(&r, o[0].member).reputation.quarantined_until, until);
}

static void nor_after_an_appeal_in_vain(void **state) {
	(void)state;
	struct score_order o;
	open_rig(200000);
	(void)strike(&o);
	memset(n_said, 0, sizeof n_said);
	assert_false(notice_of(o.member).final);
	appeal(o.member);
	all_measure(&o, 0.1f);
	assert_true(notice_of(o.member).final);
	assert_true(rig_saw(&r, CORE_EVENT_UPHELD, o.member));
	restart_and_measure(&o);
	appeal(o.member);
	assert_int_equal(core_scores(r.core).appeals, 0);
	assert_int_equal(rig_view(&r, o.member).reputation.strikes, 1);
}

static void a_restart_before_the_end_of_an_appeal_allows_it_again(void **state) {
	(void)state;
	struct score_order o;
	open_rig(200000);
	(void)strike(&o);
	appeal(o.member);
	restart_and_measure(&o);
	assert_int_equal(rig_view(&r, o.member).reputation.strikes, 1);
	appeal(o.member);
	assert_int_equal(core_scores(r.core).appeals, 1);
	all_measure(&o, 1);
	assert_int_equal(rig_view(&r, o.member).reputation.strikes, 0);
}

/* Prepares two findings about one member that a single report of `*who` completes: its appeal
 * against the first strike, and a second strike. Returns false if no member audits both. */
static bool two_findings_of_one(struct score_order o[2], uint32_t *who) {
	two_orders(o);
	all_measure(&o[0], 0.1f);
	memset(n_said, 0, sizeof n_said);
	appeal(o[0].member);
	const uint64_t first = auditors_of(&o[1]);
	(void)all_conclude(&o[1], 0, SCORE_MEASURED, 0.1f);
	const uint64_t second = auditors_of(&o[1]) & ~first, appealed = auditors_of(&o[0]);
	if (__builtin_popcountll(first) != 1 || __builtin_popcountll(appealed) != 2 || (second & appealed) == 0)
		return false;
	*who = (uint32_t)__builtin_ctzll(second & appealed);
	(void)all_conclude(&o[0], 1ull << *who, SCORE_MEASURED, 1);
	return true;
}

static void a_lift_and_a_strike_at_once_both_count(void **state) {
	(void)state;
	struct score_order o[2];
	uint32_t who = 0;
	uint8_t secret = 1;
	for (open_rig_of(200000, secret); !two_findings_of_one(o, &who); open_rig_of(200000, ++secret)) {
		assert_true(secret < 100);
		rig_release(&r);
	}
	note(who, &o[0], SCORE_MEASURED, 1);
	note(who, &o[1], SCORE_MEASURED, 0.1f);
	say(who, WORKER_TRAINING);
	assert_int_equal(core_scores(r.core).lifted, 1);
	assert_int_equal(core_scores(r.core).worthless, 2);
	const struct core_reputation got = rig_view(&r, o[0].member).reputation;
	assert_int_equal(got.strikes, 1);
	assert_int_equal(got.struck_round, o[1].round);
	assert_int_equal(got.quarantined_until, rig_doc(&r)->round + 8);
}

int main(void) {
#define TEST(t) cmocka_unit_test_teardown(t, close_rig)
	const struct CMUnitTest tests[] = {
		TEST(orders_name_what_the_author_has_read),
		TEST(a_restart_draws_the_same),
		TEST(a_run_without_a_share_orders_none),
		TEST(newcomers_are_drawn_more_often),
		TEST(one_that_finds_work_ends_the_audit),
		TEST(two_that_find_it_worthless_strike),
		TEST(one_against_two_strikes_nobody),
		TEST(two_of_many_strike_nobody),
		TEST(others_are_asked_instead),
		TEST(two_that_got_nothing_strike),
		TEST(one_that_nobody_can_score_is_named),
		TEST(verdicts_of_those_not_asked_are_ignored),
		TEST(two_others_clear_a_member),
		TEST(one_of_them_upholds_the_strike),
		TEST(who_is_not_struck_cannot_appeal),
		TEST(two_audits_in_a_row_that_it_evades_strike),
		TEST(a_measurement_begins_a_new_row),
		TEST(one_that_does_not_reach_it_is_outweighed),
		TEST(one_that_reaches_it_later_ends_that),
		TEST(who_is_not_there_evades_nothing),
		TEST(links_that_it_cuts_do_not_excuse_it),
		TEST(what_auditors_say_late_counts),
		TEST(withholding_from_one_does_not_help),
		TEST(a_lift_leaves_the_quarantine_before_it),
		TEST(after_a_lift_the_strike_before_is_told),
		TEST(a_restart_allows_no_second_appeal),
		TEST(nor_after_an_appeal_in_vain),
		TEST(a_restart_before_the_end_of_an_appeal_allows_it_again),
		TEST(a_lift_and_a_strike_at_once_both_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
