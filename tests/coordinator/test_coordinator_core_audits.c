/* test_coordinator_core_audits.c: who audits which average, and what follows from verdicts. */
#include "coordinator/core/core.h"
#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"

#include <string.h>

enum { MEMBERS = 6, WINDOW = 4 };

static struct rig r;

/* Members' verdicts, which their reports repeat. */
static struct audit_result said[MEMBERS][NET_MAX_AUDITS];
static uint8_t n_said[MEMBERS];

static void open_rig_of(uint32_t chunks, int members, bool rollback, uint32_t max_here) {
	memset(n_said, 0, sizeof n_said);
	rig_init(&r, 1);
	r.cfg.max_here = r.cfg.max_roster = max_here;
	r.cfg.final_round = 200;
	r.cfg.audit_chunks = chunks;
	r.cfg.audit_window = WINDOW;
	r.cfg.audit_rollback = rollback;
	memset(&r.cfg.audit_secret, 7, sizeof r.cfg.audit_secret);
	rig_start(&r);
	rig_join(&r, members);
}

static void open_rig(uint32_t chunks, int members, bool rollback) {
	open_rig_of(chunks, members, rollback, NET_MAX_ROW);
}

static int close_rig(void **state) {
	(void)state;
	rig_release(&r);
	return 0;
}

/* Returns the member that is to audit the chunk, among those not in `but`; NET_NO_MEMBER: none. */
static uint32_t auditor_of(int members, const struct audit_order *o, uint64_t but) {
	for (uint32_t m = 0; m < (uint32_t)members; m++) {
		const struct document *d = rig_view(&r, m).banned || (but >> m & 1) ? NULL : rig_doc_of(&r, m);
		for (int i = 0; d != NULL && i < d->n_audits; i++)
			if (d->audits[i].round == o->round && d->audits[i].chunk == o->chunk)
				return m;
	}
	return NET_NO_MEMBER;
}

/* Finds an order of the last round; returns its auditor. */
static uint32_t last_order(int members, struct audit_order *out) {
	for (uint32_t m = 0; m < (uint32_t)members; m++)
		for (int i = 0; i < rig_doc_of(&r, m)->n_audits; i++)
			if (rig_doc_of(&r, m)->audits[i].round + 1 == rig_doc_of(&r, m)->round) {
				*out = rig_doc_of(&r, m)->audits[i];
				return m;
			}
	fail();
	*out = (struct audit_order){.round = 0};
	return NET_NO_MEMBER;
}

static void say(uint32_t who, enum worker_phase phase) {
	struct report rep = rig_report(&r, who, phase);
	rep.n_verdicts = n_said[who];
	memcpy(rep.verdicts, said[who], sizeof said[who]);
	rig_send(&r, who, &rep);
}

/* Reports that no pieces of those that it lacks could make the mean. */
static void conclude_beyond(uint32_t who, const struct audit_order *o) {
	said[who][n_said[who]++] = (struct audit_result){
		.round = o->round, .chunk = o->chunk, .verdict = AUDIT_WRONG, .member = NET_NO_MEMBER, .found = audit_beyond()};
	say(who, WORKER_TRAINING);
}

static void conclude(uint32_t who, const struct audit_order *o, enum audit_verdict verdict, uint32_t member,
					 int found) {
	struct audit_result *v = &said[who][n_said[who]++];
	*v = (struct audit_result){.round = o->round, .chunk = o->chunk, .verdict = (uint8_t)verdict, .member = member};
	memset(&v->found, found, sizeof v->found);
	say(who, WORKER_TRAINING);
}

static uint32_t owner_in_round(int members, uint32_t chunk) {
	/* In the rig all lines are alike: owners have equal ranges in the order of the roster. */
	return chunk / (RIG_CHUNKS / (uint32_t)members);
}

/* ---- draws ---- */

static void auditors_are_participants_and_never_the_owner(void **state) {
	(void)state;
	uint32_t seen_chunks = 0, seen_auditors = 0;
	open_rig(3, MEMBERS, false);
	for (int round = 0; round < 60; round++) {
		rig_round(&r, MEMBERS);
		for (uint32_t m = 0; m < MEMBERS; m++) {
			const struct document *d = rig_doc_of(&r, m);
			for (int i = 0; i < d->n_audits; i++) {
				assert_int_not_equal(owner_in_round(MEMBERS, d->audits[i].chunk), m);
				assert_true(d->audits[i].round < d->round && d->round - d->audits[i].round <= WINDOW);
				assert_int_equal(d->audits[i].attempt, 1);
				seen_chunks |= 1u << d->audits[i].chunk;
				seen_auditors |= 1u << m;
			}
		}
	}
	assert_int_equal(seen_chunks, (1u << RIG_CHUNKS) - 1); /* every chunk is drawn sooner or later, */
	assert_int_equal(seen_auditors, (1u << MEMBERS) - 1);  /* and everybody audits */
}

/* Plays rounds; returns in how many of them a chunk of member `liar` was drawn. */
static int rounds_that_look_at(uint32_t liar, uint32_t audits, int rounds) {
	int seen = 0;
	open_rig(audits, MEMBERS, false);
	for (int round = 0; round < rounds; round++) {
		bool drawn = false;
		rig_round(&r, MEMBERS);
		for (uint32_t m = 0; m < MEMBERS; m++) {
			const struct document *d = rig_doc_of(&r, m);
			for (int i = 0; i < d->n_audits; i++)
				drawn |= d->audits[i].round + 1 == d->round && owner_in_round(MEMBERS, d->audits[i].chunk) == liar;
		}
		seen += drawn;
	}
	rig_release(&r);
	return seen;
}

/* An owner that lies about all its chunks, a share f of them all, is looked at in a round with
 * probability 1 - (1 - f)^k. The rig's secret is fixed, and so are its draws. */
static void a_liar_is_looked_at_as_often_as_its_share_says(void **state) {
	(void)state;
	enum { ROUNDS = 60, MOST_AUDITS = 4, LIAR = 2 };
	double missed = 1, expected = 0;
	int seen = 0;
	for (uint32_t k = 1; k <= MOST_AUDITS; k++) {
		const int now = rounds_that_look_at(LIAR, k, ROUNDS);
		missed *= 1 - 1.0 / MEMBERS;
		print_message("%u audits a round look at it in %d of %d rounds; by the formula %.1f\n", k, now, (int)ROUNDS,
					  (1 - missed) * ROUNDS);
		seen += now;
		expected += (1 - missed) * ROUNDS;
	}
	assert_true(seen > 0.8 * expected && seen < 1.2 * expected);
}

/* A secret is promised before its round, and shown after it; its draws are those of the orders. */
static void draws_are_promised_before_the_round(void **state) {
	(void)state;
	open_rig(1, MEMBERS, false);
	for (int round = 0; round < 10; round++) {
		const struct rv_hash promised = rig_doc_of(&r, 0)->audit_promise;
		rig_say_all(&r, MEMBERS, WORKER_TRAINING);
		rig_say_all(&r, MEMBERS, WORKER_READY);
		assert_true(rv_hash_equal(&promised, &rig_doc_of(&r, 1)->audit_promise));
		rig_say_all(&r, MEMBERS, WORKER_REDUCING);
		rig_say_all(&r, MEMBERS, WORKER_VOTED);
		const struct rv_hash shown = rig_doc_of(&r, 0)->audit_secret, hash = audit_promise_of(&shown);
		assert_true(rv_hash_equal(&hash, &promised));
		const struct rv_hash digest = rig_digest((uint64_t)round), seed = audit_seed_of(&shown, &digest);
		const uint32_t chunk = audit_draw(&seed, 1 << 20, RIG_CHUNKS);
		const struct audit_order o = {.round = (uint64_t)round, .chunk = chunk};
		assert_int_not_equal(auditor_of(MEMBERS, &o, 0), NET_NO_MEMBER);
	}
}

static void a_restart_draws_the_same(void **state) {
	(void)state;
	struct audit_order before, after;
	open_rig(1, MEMBERS, false);
	rig_round(&r, MEMBERS);
	const uint32_t auditor = last_order(MEMBERS, &before);
	rig_restart(&r);
	rig_say_all(&r, MEMBERS, WORKER_TRAINING);
	assert_int_equal(last_order(MEMBERS, &after), auditor);
	assert_true(before.round == after.round && before.chunk == after.chunk);
}

/* Plays a round in which members name chunks, counted from 1. */
static void play_naming(const uint32_t names[MEMBERS]) {
	rig_say_all(&r, MEMBERS, WORKER_TRAINING);
	rig_say_all(&r, MEMBERS, WORKER_READY);
	for (uint32_t m = 0; m < MEMBERS; m++) {
		struct report rep = rig_report(&r, m, WORKER_VOTED);
		rep.stands_out = names[m];
		rig_send(&r, m, &rep);
	}
}

/* Returns how many chunks of the last round are audited; sets *named if one of them is `chunk`. */
static int audits_of_last_round(uint32_t chunk, bool *named) {
	int n = 0;
	*named = false;
	for (uint32_t m = 0; m < MEMBERS; m++) {
		const struct document *d = rig_doc_of(&r, m);
		for (int i = 0; i < d->n_audits; i++) {
			n += d->audits[i].round + 1 == d->round;
			*named |= d->audits[i].round + 1 == d->round && d->audits[i].chunk == chunk;
			assert_int_not_equal(owner_in_round(MEMBERS, d->audits[i].chunk), m);
		}
	}
	return n;
}

/* The same chunk is drawn now and then. */
static void a_chunk_that_two_name_is_audited(void **state) {
	(void)state;
	enum { NAMED = 7, ROUNDS = 30 };
	bool named;
	int more = 0;
	open_rig(1, MEMBERS, false);
	for (int i = 0; i < ROUNDS; i++) {
		play_naming((const uint32_t[MEMBERS]){[1] = 1 + NAMED, [4] = 1 + NAMED});
		more += audits_of_last_round(NAMED, &named) - 1;
		assert_true(named && more <= i + 1);
	}
	assert_true(more > ROUNDS / 2);
}

static void a_chunk_that_one_names_is_not(void **state) {
	(void)state;
	bool named;
	open_rig(1, MEMBERS, false);
	for (int i = 0; i < 30; i++) {
		play_naming((const uint32_t[MEMBERS]){1, 2, 3, 4, 5, 0});
		assert_int_equal(audits_of_last_round(0, &named), 1);
	}
}

/* Two that name another chunk do not keep the others' from being audited for long, and cost an
 * audit at most. */
static void of_two_chunks_one_is_drawn(void **state) {
	(void)state;
	enum { ROUNDS = 40 };
	int found[2] = {0};
	bool named;
	open_rig(1, MEMBERS, false);
	for (int i = 0; i < ROUNDS; i++) {
		play_naming((const uint32_t[MEMBERS]){1, 1, 9, 9, 9, 0});
		for (int k = 0; k < 2; k++) {
			assert_in_range(audits_of_last_round(k == 0 ? 0 : 8, &named), 1, 2);
			found[k] += named;
		}
	}
	assert_true(found[0] >= ROUNDS / 8 && found[1] >= ROUNDS / 4);
}

/* Nor do names of those count that voted for something else. */
static void names_count_with_the_majority(void **state) {
	(void)state;
	bool named;
	open_rig(1, MEMBERS, false);
	rig_say_all(&r, MEMBERS, WORKER_TRAINING);
	rig_say_all(&r, MEMBERS, WORKER_READY);
	for (uint32_t m = 0; m < MEMBERS; m++) {
		struct report rep = rig_report(&r, m, WORKER_VOTED);
		rep.stands_out = m < 2 ? 8 : 0;
		rep.digest.b[5] ^= m < 2;
		rig_send(&r, m, &rep);
	}
	for (int i = 0; i < 60 && rig_doc(&r)->round == 0; i++)
		rig_wait(&r, 1000000);
	assert_int_equal(rig_doc(&r)->round, 1);
	assert_int_equal(audits_of_last_round(7, &named), 1);
	assert_false(named);
}

static void a_run_without_audits_is_not_told_where(void **state) {
	(void)state;
	bool named;
	open_rig(0, MEMBERS, false);
	play_naming((const uint32_t[MEMBERS]){1, 1, 1, 1, 1, 1});
	assert_int_equal(audits_of_last_round(0, &named), 0);
}

static void a_run_without_audits_orders_none(void **state) {
	(void)state;
	open_rig(0, MEMBERS, false);
	rig_round(&r, MEMBERS);
	for (uint32_t m = 0; m < MEMBERS; m++)
		assert_true(rig_doc_of(&r, m)->n_audits == 0 && rv_hash_is_zero(&rig_doc_of(&r, m)->audit_promise));
}

/* ---- verdicts ---- */

static void one_that_finds_it_right_ends_the_audit(void **state) {
	(void)state;
	struct audit_order o;
	open_rig(1, MEMBERS, false);
	rig_round(&r, MEMBERS);
	const uint32_t auditor = last_order(MEMBERS, &o);
	conclude(auditor, &o, AUDIT_RIGHT, NET_NO_MEMBER, 0);
	const struct core_audit_figures f = core_audits(r.core);
	assert_true(f.drawn == 1 && f.right == 1 && f.open == 0 && f.wrong == 0);
}

/* One that says WRONG convicts nobody: all others of these few are asked, too. by[0] is that
 * one. */
static void dispute(struct audit_order *o, int members, uint32_t by[MEMBERS]) {
	uint64_t asked = 0;
	rig_round(&r, members);
	by[0] = last_order(members, o);
	conclude(by[0], o, AUDIT_WRONG, NET_NO_MEMBER, 9);
	const uint32_t owner = owner_in_round(members, o->chunk);
	assert_true(rig_saw(&r, CORE_EVENT_DISPUTED, owner));
	assert_false(rig_view(&r, owner).banned);
	for (int i = 1; i < members - 1; i++) {
		asked |= 1ull << by[i - 1];
		by[i] = auditor_of(members, o, asked);
		assert_true(by[i] != NET_NO_MEMBER && by[i] != owner);
	}
	assert_int_equal(auditor_of(members, o, asked | 1ull << by[members - 2]), NET_NO_MEMBER);
}

static void three_that_find_the_same_convict(void **state) {
	(void)state;
	struct audit_order o;
	uint32_t by[MEMBERS];
	open_rig(1, MEMBERS, false);
	dispute(&o, MEMBERS, by);
	const uint32_t owner = owner_in_round(MEMBERS, o.chunk);
	conclude(by[1], &o, AUDIT_WRONG, NET_NO_MEMBER, 9);
	assert_false(rig_saw(&r, CORE_EVENT_LIED, owner));
	conclude(by[2], &o, AUDIT_WRONG, NET_NO_MEMBER, 9);
	assert_true(rig_saw(&r, CORE_EVENT_LIED, owner));
	assert_true(rig_view(&r, owner).banned);
	assert_int_equal(rig_doc(&r)->term, 0); /* without audit-rollback the run goes on */
	rig_restart(&r);
	assert_true(rig_view(&r, owner).banned);
}

/* An owner that keeps its own piece from two shows it to one: all three know that it lied. The run
 * goes back. */
static void those_that_lack_its_piece_convict_too(void **state) {
	(void)state;
	for (int shown = 0; shown < 2; shown++) {
		struct audit_order o;
		uint32_t by[MEMBERS];
		open_rig(1, MEMBERS, true);
		dispute(&o, MEMBERS, by);
		const uint32_t owner = owner_in_round(MEMBERS, o.chunk);
		memset(n_said, 0, sizeof n_said);
		if (shown == 0)
			rig_restart(&r); /* the first one's verdict is forgotten */
		for (int i = shown; i < 3; i++) {
			assert_false(rig_view(&r, owner).banned);
			conclude_beyond(by[i], &o);
		}
		assert_true(rig_saw(&r, CORE_EVENT_LIED, owner) && rig_view(&r, owner).banned);
		assert_true(rig_doc(&r)->term == 1 && rig_doc(&r)->round == o.round);
		if (shown == 0)
			rig_release(&r);
	}
}

/* Nor do two, that say it to an honest owner, nor two that found other things beside one. */
static void two_that_claim_to_lack_it_convict_nobody(void **state) {
	(void)state;
	struct audit_order o;
	uint32_t by[MEMBERS];
	open_rig(1, MEMBERS, true);
	dispute(&o, MEMBERS, by);
	const uint32_t owner = owner_in_round(MEMBERS, o.chunk);
	conclude(by[1], &o, AUDIT_WRONG, NET_NO_MEMBER, 8);
	conclude_beyond(by[2], &o);
	for (int i = 3; i < 5; i++)
		conclude(by[i], &o, AUDIT_RIGHT, NET_NO_MEMBER, 0);
	assert_true(!rig_view(&r, owner).banned && rig_doc(&r)->term == 0 && core_audits(r.core).open == 1);
}

/* One that lacks pieces does not say that their members gave them. */
static void one_that_lacks_pieces_refutes_nobody(void **state) {
	(void)state;
	struct audit_order o;
	open_rig(1, MEMBERS, true);
	rig_round(&r, MEMBERS);
	const uint32_t first = last_order(MEMBERS, &o), owner = owner_in_round(MEMBERS, o.chunk);
	uint32_t helper = 0;
	while (helper == first || helper == owner)
		helper++;
	uint64_t asked = 1ull << first;
	conclude_beyond(first, &o);
	for (uint32_t by; rig_doc(&r)->term == 0 && (by = auditor_of(MEMBERS, &o, asked)) != NET_NO_MEMBER;
		 asked |= 1ull << by)
		conclude(by, &o, by == helper ? AUDIT_UNABLE : AUDIT_WITHHELD, helper, 0);
	assert_int_equal(rig_view(&r, helper).reputation.strikes, 1);
	assert_true(rig_doc(&r)->term == 1 && rig_doc(&r)->round == o.round);
}

/* Both were drawn first. They are named; the owner stays. */
static void two_that_conspire_convict_nobody(void **state) {
	(void)state;
	struct audit_order o;
	uint32_t by[MEMBERS];
	open_rig(1, MEMBERS, false);
	dispute(&o, MEMBERS, by);
	const uint32_t owner = owner_in_round(MEMBERS, o.chunk);
	conclude(by[1], &o, AUDIT_WRONG, NET_NO_MEMBER, 9);
	for (int i = 2; i < 5; i++)
		conclude(by[i], &o, AUDIT_RIGHT, NET_NO_MEMBER, 0);
	assert_false(rig_view(&r, owner).banned);
	assert_int_equal(rig_view(&r, by[0]).reputation.reason, CORE_STRIKE_FALSE_AUDIT);
	assert_int_equal(rig_view(&r, by[1]).reputation.reason, CORE_STRIKE_FALSE_AUDIT);
	assert_int_equal(core_audits(r.core).right, 1);
}

/* Two of three, that is, and of a roster of five nobody by two of four. */
static void in_a_small_roster_most_others_convict(void **state) {
	for (int members = 4; members < MEMBERS; members++) {
		struct audit_order o;
		uint32_t by[MEMBERS];
		open_rig(1, members, false);
		dispute(&o, members, by);
		const uint32_t owner = owner_in_round(members, o.chunk);
		conclude(by[1], &o, AUDIT_WRONG, NET_NO_MEMBER, 9);
		assert_int_equal(rig_view(&r, owner).banned, members == 4);
		(void)close_rig(state);
	}
	open_rig(1, MEMBERS, false);
}

static void those_that_find_different_things_do_not(void **state) {
	(void)state;
	struct audit_order o;
	uint32_t by[MEMBERS];
	open_rig(1, MEMBERS, false);
	dispute(&o, MEMBERS, by);
	const uint32_t owner = owner_in_round(MEMBERS, o.chunk);
	conclude(by[1], &o, AUDIT_WRONG, NET_NO_MEMBER, 8);
	conclude(by[2], &o, AUDIT_WRONG, NET_NO_MEMBER, 7);
	conclude(by[3], &o, AUDIT_RIGHT, NET_NO_MEMBER, 0);
	conclude(by[4], &o, AUDIT_RIGHT, NET_NO_MEMBER, 0);
	assert_false(rig_view(&r, owner).banned);
	assert_true(core_audits(r.core).right == 0 && core_audits(r.core).open == 1);
}

static void a_lying_auditor_is_named(void **state) {
	(void)state;
	struct audit_order o;
	uint32_t by[MEMBERS];
	open_rig(1, MEMBERS, false);
	dispute(&o, MEMBERS, by);
	const uint32_t liar = by[0], owner = owner_in_round(MEMBERS, o.chunk);
	for (int i = 1; i < 4; i++)
		conclude(by[i], &o, AUDIT_RIGHT, NET_NO_MEMBER, 0);
	assert_true(rig_saw(&r, CORE_EVENT_FALSE_AUDIT, liar));
	assert_false(rig_view(&r, owner).banned || rig_view(&r, liar).banned);
	/* It is left out for a while, and rounds go on without it; no audit strikes it twice. */
	assert_true(rig_view(&r, owner).reputation.strikes == 0 && rig_view(&r, owner).reputation.rounds == 1);
	struct core_reputation got = rig_view(&r, liar).reputation;
	assert_true(got.strikes == 1 && got.reason == CORE_STRIKE_FALSE_AUDIT && got.rounds == 0);
	assert_true(got.struck_round == o.round && got.quarantined_until == rig_doc(&r)->round + 8);
	rig_restart(&r);
	rig_say_all(&r, MEMBERS, WORKER_TRAINING);
	assert_int_equal(rig_view(&r, liar).reputation.strikes, 1);
	rig_say_all(&r, MEMBERS, WORKER_READY);
	assert_int_equal(rig_doc(&r)->n_members, MEMBERS - 1);
	assert_int_equal(document_find(rig_doc(&r), liar), -1);
}

static void a_lie_takes_the_run_back(void **state) {
	(void)state;
	struct audit_order o;
	uint32_t by[MEMBERS];
	open_rig(1, MEMBERS, true);
	for (int i = 0; i < 3; i++)
		rig_round(&r, MEMBERS);
	dispute(&o, MEMBERS, by);
	const uint32_t owner = owner_in_round(MEMBERS, o.chunk);
	conclude(by[1], &o, AUDIT_WRONG, NET_NO_MEMBER, 9);
	conclude(by[2], &o, AUDIT_WRONG, NET_NO_MEMBER, 9);
	assert_true(rig_view(&r, owner).banned);
	assert_true(rig_doc(&r)->term == 1 && rig_doc(&r)->round == o.round && rig_doc(&r)->term_round == o.round);
	assert_int_equal(rig_last(&r, CORE_ROLLBACK)->round, o.round);
	/* Audits of what was taken back are over. */
	for (uint32_t m = 0; m < MEMBERS; m++)
		for (int i = 0; m != owner && i < rig_doc_of(&r, m)->n_audits; i++)
			assert_true(rig_doc_of(&r, m)->audits[i].round < o.round);
}

/* Plays rounds until two in a row have one audit each, of the same owner; returns that. */
static uint32_t find_two_of_one_owner(struct audit_order o[2]) {
	uint32_t owner = NET_NO_MEMBER;
	o[1] = (struct audit_order){.round = 0};
	for (int i = 0; i < 100; i++) {
		o[0] = o[1];
		rig_round(&r, MEMBERS);
		(void)last_order(MEMBERS, &o[1]);
		if (i > 0 && owner_in_round(MEMBERS, o[1].chunk) == owner)
			return owner;
		owner = owner_in_round(MEMBERS, o[1].chunk);
	}
	fail();
	return owner;
}

/* Lets three auditors of the chunk find that its owner lied. */
static void convict(const struct audit_order *o, uint32_t owner) {
	uint64_t asked = 1ull << owner;
	for (int i = 0; i < 3; i++) {
		const uint32_t by = auditor_of(MEMBERS, o, asked);
		assert_int_not_equal(by, NET_NO_MEMBER);
		asked |= 1ull << by;
		conclude(by, o, AUDIT_WRONG, NET_NO_MEMBER, 9);
	}
	assert_true(rig_saw(&r, CORE_EVENT_LIED, owner) && rig_view(&r, owner).banned);
}

/* An owner that keeps auditors from its first lie does not keep that, whether they have said
 * nothing yet or could not do it. One that they have found right stays. */
static void a_conviction_takes_back_what_could_not_be_checked(void **state) {
	(void)state;
	static const enum audit_verdict first[] = {0, AUDIT_UNABLE, AUDIT_RIGHT};
	for (int i = 0; i < 3; i++) {
		struct audit_order o[2];
		uint64_t asked = 0;
		open_rig(1, MEMBERS, true);
		const uint32_t owner = find_two_of_one_owner(o);
		for (uint32_t by; first[i] != 0 && (by = auditor_of(MEMBERS, &o[0], asked)) != NET_NO_MEMBER;
			 asked |= 1ull << by)
			conclude(by, &o[0], first[i], NET_NO_MEMBER, 0);
		convict(&o[1], owner);
		assert_true(rig_doc(&r)->term == 1 && rig_doc(&r)->round == o[first[i] == AUDIT_RIGHT].round);
		assert_int_equal(rig_last(&r, CORE_ROLLBACK)->member, owner);
		if (i < 2)
			rig_release(&r);
	}
}

/* Nor is more taken back than the window, or for audits of other owners. */
static void what_others_made_or_the_window_has_left_stays(void **state) {
	(void)state;
	struct audit_order o;
	uint64_t first = UINT64_MAX;
	open_rig(1, MEMBERS, true);
	for (int i = 0; i < 3 * WINDOW; i++)
		rig_round(&r, MEMBERS);
	(void)last_order(MEMBERS, &o);
	const uint32_t owner = owner_in_round(MEMBERS, o.chunk);
	for (uint32_t m = 0; m < MEMBERS; m++)
		for (int i = 0; i < rig_doc_of(&r, m)->n_audits; i++) {
			const struct audit_order *open = &rig_doc_of(&r, m)->audits[i];
			if (owner_in_round(MEMBERS, open->chunk) == owner && open->round < first)
				first = open->round;
		}
	convict(&o, owner);
	assert_true(rig_doc(&r)->term == 1 && rig_doc(&r)->round == first && 3 * WINDOW - first <= WINDOW);
}

/* Audits that nobody could do fill the documents of their auditors until their window is over;
 * those of the last round are ordered all the same. */
static void audits_that_are_done_keep_no_others_away(void **state) {
	(void)state;
	enum { FEW_MEMBERS = 4 };
	uint64_t drawn = 0;
	open_rig(NET_MAX_AUDITS, FEW_MEMBERS, true);
	for (int round = 0; round < 2; round++) {
		drawn = core_audits(r.core).drawn;
		rig_round(&r, FEW_MEMBERS);
		for (int again = 0; again < FEW_MEMBERS; again++)
			for (uint32_t m = 0; m < FEW_MEMBERS && round == 0; m++) {
				const struct document *d = rig_doc_of(&r, m);
				n_said[m] = 0;
				for (int i = 0; i < d->n_audits; i++)
					said[m][n_said[m]++] = (struct audit_result){.round = d->audits[i].round,
																 .chunk = d->audits[i].chunk,
																 .verdict = AUDIT_UNABLE,
																 .member = NET_NO_MEMBER};
				say(m, WORKER_TRAINING);
			}
	}
	int full = 0, orders = 0;
	for (uint32_t m = 0; m < FEW_MEMBERS; m++) {
		const struct document *d = rig_doc_of(&r, m);
		full += d->n_audits == NET_MAX_AUDITS;
		for (int i = 0; i < d->n_audits; i++)
			orders += d->audits[i].round == 1;
	}
	assert_true(full > 0);
	assert_int_equal(orders, core_audits(r.core).drawn - drawn);
}

/* A newcomer weighs little, and all after its probation. */
static void a_newcomers_weight_grows(void **state) {
	(void)state;
	rig_init(&r, 1);
	r.cfg.final_round = 20;
	r.cfg.probation = 3;
	rig_start(&r);
	rig_join(&r, 2);
	static const uint32_t expected[] = {4, 8, 12, 16, 16};
	for (uint32_t round = 0; round < 5; round++) {
		rig_say_all(&r, 2, WORKER_TRAINING);
		rig_say_all(&r, 2, WORKER_READY);
		assert_int_equal(rig_doc(&r)->members[0].weight, expected[round]);
		rig_say_all(&r, 2, WORKER_REDUCING);
		rig_say_all(&r, 2, WORKER_VOTED);
		if (round == 1)
			rig_restart(&r);
	}
	rig_join_one(&r, 2);
	rig_say_all(&r, 3, WORKER_TRAINING);
	rig_say_all(&r, 3, WORKER_READY);
	assert_true(rig_doc(&r)->members[0].weight == 16 && rig_doc(&r)->members[2].weight == 4);
}

/* One of long standing among newcomers weighs no more than two of them. */
static void nobody_outweighs_newcomers(void **state) {
	(void)state;
	rig_init(&r, 1);
	r.cfg.final_round = 40;
	r.cfg.probation = 15;
	rig_start(&r);
	rig_join(&r, 1);
	for (int i = 0; i < 16; i++)
		rig_round(&r, 1);
	for (uint32_t m = 1; m < 6; m++)
		rig_join_one(&r, m);
	rig_say_all(&r, 6, WORKER_TRAINING);
	rig_say_all(&r, 6, WORKER_READY);
	assert_int_equal(rig_doc(&r)->n_members, 6);
	assert_int_equal(rig_doc(&r)->members[0].weight, 2);
	for (int i = 1; i < 6; i++)
		assert_int_equal(rig_doc(&r)->members[i].weight, 1);
}

/* Newcomers, however many, do not lower the weight of three or more that are past probation. */
static void a_flood_of_newcomers_weighs_little(void **state) {
	enum { VETERANS = 4, ALL = 9 };
	(void)state;
	rig_init(&r, 1);
	r.cfg.final_round = 40;
	r.cfg.probation = 15;
	rig_start(&r);
	rig_join(&r, VETERANS);
	for (int i = 0; i < 16; i++)
		rig_round(&r, VETERANS);
	for (uint32_t m = VETERANS; m < ALL; m++)
		rig_join_one(&r, m);
	rig_say_all(&r, ALL, WORKER_TRAINING);
	rig_say_all(&r, ALL, WORKER_READY);
	assert_int_equal(rig_doc(&r)->n_members, ALL);
	for (int i = 0; i < ALL; i++)
		assert_int_equal(rig_doc(&r)->members[i].weight, i < VETERANS ? 16 : 1);
}

static void another_is_asked_for_one_that_cannot(void **state) {
	(void)state;
	struct audit_order o;
	open_rig(1, MEMBERS, false);
	rig_round(&r, MEMBERS);
	const uint32_t first = last_order(MEMBERS, &o);
	assert_int_equal(auditor_of(MEMBERS, &o, 1ull << first), NET_NO_MEMBER);
	conclude(first, &o, AUDIT_UNABLE, NET_NO_MEMBER, 0);
	const uint32_t second = auditor_of(MEMBERS, &o, 1ull << first);
	assert_int_not_equal(second, NET_NO_MEMBER);
	conclude(second, &o, AUDIT_RIGHT, NET_NO_MEMBER, 0);
	assert_int_equal(core_audits(r.core).right, 1);
}

static void another_is_asked_for_one_that_says_nothing(void **state) {
	(void)state;
	struct audit_order o;
	open_rig(1, MEMBERS, false);
	rig_round(&r, MEMBERS);
	const uint32_t first = last_order(MEMBERS, &o);
	for (int i = 0; i < 2; i++)
		rig_round(&r, MEMBERS);
	assert_int_equal(auditor_of(MEMBERS, &o, 1ull << first), NET_NO_MEMBER);
	rig_round(&r, MEMBERS);
	assert_int_not_equal(auditor_of(MEMBERS, &o, 1ull << first), NET_NO_MEMBER);
	for (int i = 0; i < WINDOW; i++)
		rig_round(&r, MEMBERS);
	assert_int_equal(auditor_of(MEMBERS, &o, 0), NET_NO_MEMBER); /* the window is over */
	assert_true(core_audits(r.core).unresolved > 0);
}

static void three_name_one_that_withholds(void **state) {
	(void)state;
	struct audit_order o;
	open_rig(1, MEMBERS, false);
	rig_round(&r, MEMBERS);
	const uint32_t first = last_order(MEMBERS, &o), owner = owner_in_round(MEMBERS, o.chunk);
	conclude(first, &o, AUDIT_WITHHELD, owner, 0);
	const uint32_t second = auditor_of(MEMBERS, &o, 1ull << first);
	assert_false(rig_saw(&r, CORE_EVENT_WITHHELD, owner));
	conclude(second, &o, AUDIT_WITHHELD, owner, 0);
	const uint32_t third = auditor_of(MEMBERS, &o, 1ull << first | 1ull << second);
	assert_false(rig_saw(&r, CORE_EVENT_WITHHELD, owner));
	conclude(third, &o, AUDIT_WITHHELD, owner, 0);
	assert_true(rig_saw(&r, CORE_EVENT_WITHHELD, owner));
}

/* An average that three auditors could not check does not stay, whoever hid a piece of it. */
static void a_hidden_average_takes_the_run_back(void **state) {
	(void)state;
	struct audit_order o;
	open_rig(1, MEMBERS, true);
	for (int i = 0; i < 3; i++)
		rig_round(&r, MEMBERS);
	const uint32_t first = last_order(MEMBERS, &o), owner = owner_in_round(MEMBERS, o.chunk);
	uint64_t asked = 0;
	for (uint32_t by = first, n = 0; n < 3; n++, by = auditor_of(MEMBERS, &o, asked)) {
		assert_int_equal(rig_doc(&r)->term, 0);
		asked |= 1ull << by;
		conclude(by, &o, AUDIT_WITHHELD, owner, 0);
	}
	assert_true(rig_saw(&r, CORE_EVENT_WITHHELD, owner));
	assert_false(rig_view(&r, owner).banned);
	assert_int_equal(rig_view(&r, owner).reputation.strikes, 1);
	assert_true(rig_doc(&r)->term == 1 && rig_doc(&r)->round == o.round && rig_doc(&r)->term_round == o.round);
	for (int i = 0; i < rig_doc_of(&r, first)->n_audits; i++)
		assert_true(rig_doc_of(&r, first)->audits[i].round < o.round);
}

/* Lets the auditors of the chunk conclude, one after the other, the owner's piece being withheld
 * from them; `n` of them. */
static void hide(int members, const struct audit_order *o, uint32_t owner, int n) {
	uint64_t asked = 0;
	for (int i = 0; i < n; i++) {
		const uint32_t by = auditor_of(members, o, asked | 1ull << owner);
		assert_int_not_equal(by, NET_NO_MEMBER);
		asked |= 1ull << by;
		conclude(by, o, AUDIT_WITHHELD, owner, 0);
	}
}

/* Plays rounds until the owner of the audited chunk of a round is the auditor of the next one. */
static void find_owner_that_audits(struct audit_order *lie, struct audit_order *next) {
	uint32_t owner = NET_NO_MEMBER;
	*next = (struct audit_order){.round = 0};
	for (int i = 0; i < 100; i++) {
		*lie = *next;
		rig_round(&r, MEMBERS);
		const uint32_t auditor = last_order(MEMBERS, next);
		if (i > 0 && auditor == owner)
			return;
		owner = owner_in_round(MEMBERS, next->chunk);
	}
	fail();
}

/* An owner that is struck for something of a later round, a false verdict of its own, does not keep
 * the lie of the round before. */
static void a_strike_for_a_later_round_saves_no_lie(void **state) {
	(void)state;
	struct audit_order lie, next;
	open_rig(1, MEMBERS, true);
	find_owner_that_audits(&lie, &next);
	const uint32_t owner = owner_in_round(MEMBERS, lie.chunk);
	conclude(owner, &next, AUDIT_WRONG, NET_NO_MEMBER, 9);
	uint64_t asked = 1ull << owner;
	for (int i = 0; i < 3; i++) {
		const uint32_t by = auditor_of(MEMBERS, &next, asked);
		assert_int_not_equal(by, NET_NO_MEMBER);
		asked |= 1ull << by;
		conclude(by, &next, AUDIT_RIGHT, NET_NO_MEMBER, 0);
	}
	assert_true(rig_view(&r, owner).reputation.strikes == 1 && rig_doc(&r)->term == 0);
	hide(MEMBERS, &lie, owner, 3);
	assert_int_equal(rig_view(&r, owner).reputation.strikes, 1);
	assert_true(rig_doc(&r)->term == 1 && rig_doc(&r)->round == lie.round);
}

/* The strike is durable, and the coordinator is killed before the rollback is. */
static void a_restart_after_the_strike_takes_the_run_back(void **state) {
	(void)state;
	struct audit_order o;
	open_rig(1, MEMBERS, true);
	for (int i = 0; i < 3; i++)
		rig_round(&r, MEMBERS);
	(void)last_order(MEMBERS, &o);
	const uint32_t owner = owner_in_round(MEMBERS, o.chunk);
	hide(MEMBERS, &o, owner, 2);
	r.cfg.audit_rollback = false; /* so its record is never made */
	rig_restart(&r);
	for (int again = 0; again < 2; again++) /* one is asked after the other */
		for (uint32_t m = 0; m < MEMBERS; m++)
			say(m, WORKER_TRAINING);
	uint64_t asked = 1ull << owner;
	for (uint32_t m = 0; m < MEMBERS; m++)
		asked |= (uint64_t)(n_said[m] > 0) << m;
	conclude(auditor_of(MEMBERS, &o, asked), &o, AUDIT_WITHHELD, owner, 0);
	assert_true(rig_view(&r, owner).reputation.strikes == 1 && rig_doc(&r)->term == 0);
	r.cfg.audit_rollback = true;
	for (int restarts = 0; restarts < 2; restarts++) { /* the second repeats the verdicts to no effect */
		rig_restart(&r);
		for (int again = 0; again < 3; again++)
			for (uint32_t m = 0; m < MEMBERS; m++)
				say(m, WORKER_TRAINING);
		assert_true(rig_doc(&r)->term == 1 && rig_doc(&r)->round == o.round);
		assert_int_equal(rig_view(&r, owner).reputation.strikes, 1);
	}
}

/* Nor does one that goes: another one has its slot. */
static void one_that_is_gone_keeps_no_lie(void **state) {
	(void)state;
	struct audit_order o;
	uint64_t asked = 0;
	open_rig_of(1, MEMBERS, true, MEMBERS);
	for (int i = 0; i < 3; i++)
		rig_round(&r, MEMBERS);
	(void)last_order(MEMBERS, &o);
	const uint32_t owner = owner_in_round(MEMBERS, o.chunk);
	hide(MEMBERS, &o, owner, 2);
	for (uint32_t m = 0; m < MEMBERS; m++)
		asked |= (uint64_t)(n_said[m] > 0) << m;
	const uint32_t third = auditor_of(MEMBERS, &o, asked | 1ull << owner);
	for (int i = 0; i < 12; i++) {
		rig_wait(&r, RIG_S);
		for (uint32_t m = 0; m < MEMBERS; m++)
			if (m != owner)
				say(m, WORKER_TRAINING);
	}
	static const enum worker_phase round[] = {WORKER_READY, WORKER_REDUCING, WORKER_VOTED, WORKER_TRAINING};
	for (int i = 0; i < 4; i++)
		for (uint32_t m = 0; m < MEMBERS; m++)
			if (m != owner)
				say(m, round[i]);
	rig_join_one(&r, MEMBERS);
	assert_int_equal(core_find(r.core, owner), -1);
	conclude(third, &o, AUDIT_WITHHELD, owner, 0);
	assert_true(rig_doc(&r)->term == 1 && rig_doc(&r)->round == o.round);
}

/* Of two averages that one hid, the later found first: the strike pays for one rollback. */
static void a_strike_takes_the_run_back_once(void **state) {
	(void)state;
	struct audit_order o[2];
	open_rig(1, MEMBERS, true);
	const uint32_t owner = find_two_of_one_owner(o);
	assert_int_equal(o[0].round + 1, o[1].round);
	hide(MEMBERS, &o[1], owner, 3);
	assert_true(rig_doc(&r)->term == 1 && rig_doc(&r)->round == o[1].round);
	memset(n_said, 0, sizeof n_said);
	hide(MEMBERS, &o[0], owner, 3);
	assert_true(rig_saw(&r, CORE_EVENT_WITHHELD, owner));
	assert_true(rig_view(&r, owner).reputation.strikes == 1 && rig_doc(&r)->term == 1);
}

/* Rounds that cannot do without a member that hides one piece after the other: each strike takes
 * the run back once, and there are three. */
static void one_that_is_needed_takes_the_run_back_three_times(void **state) {
	(void)state;
	enum { FEW_MEMBERS = 4, LIAR = 0 };
	bool hid = false;
	open_rig(1, FEW_MEMBERS, true);
	r.cfg.min_workers = FEW_MEMBERS;
	rig_restart(&r);
	for (int played = 0; played < 60 || !hid; played++) {
		struct audit_order o;
		rig_round(&r, FEW_MEMBERS);
		(void)last_order(FEW_MEMBERS, &o);
		memset(n_said, 0, sizeof n_said);
		hid = owner_in_round(FEW_MEMBERS, o.chunk) == LIAR;
		if (hid)
			hide(FEW_MEMBERS, &o, LIAR, 2);
	}
	rig_restart(&r);
	for (int again = 0; again < 3; again++)
		for (uint32_t m = 0; m < FEW_MEMBERS; m++)
			say(m, WORKER_TRAINING);
	assert_int_equal(rig_view(&r, LIAR).reputation.strikes, CORE_STRIKES_MAX);
	assert_false(rig_view(&r, LIAR).banned);
	assert_int_equal(rig_doc(&r)->term, CORE_STRIKES_MAX);
}

/* Opens a run and plays rounds until a chunk of member 0 is audited, the first one: whatever the
 * roster. */
static void find_order_of_first(int members, struct audit_order *o) {
	open_rig(1, members, true);
	do {
		rig_round(&r, members);
		(void)last_order(members, o);
	} while (o->chunk != 0);
}

/* Lets all auditors of the order say what is given, the last of it from then on; its owner is
 * member 0. */
static void conclude_all(int members, const struct audit_order *o, const enum audit_verdict *all, int n) {
	uint64_t asked = 1;
	uint32_t by;
	for (int i = 0; rig_doc(&r)->term == 0 && (by = auditor_of(members, o, asked)) != NET_NO_MEMBER; i++) {
		const enum audit_verdict verdict = all[i < n ? i : n - 1];
		asked |= 1ull << by;
		conclude(by, o, verdict, verdict == AUDIT_WITHHELD ? 0 : NET_NO_MEMBER, verdict == AUDIT_WRONG ? 9 : 0);
	}
}

/* What says that the owner lied does not say that it gives its piece to others. */
static void an_owner_that_shows_it_to_some_is_struck(void **state) {
	static const enum audit_verdict to_one[] = {AUDIT_WRONG, AUDIT_WITHHELD};
	static const enum audit_verdict to_two[] = {AUDIT_WRONG, AUDIT_WRONG, AUDIT_WITHHELD};
	(void)state;
	for (int i = 0; i < 5; i++) { /* to one of 3, 4, 5 others, to two of 4 and 5 */
		const int members = i < 3 ? 4 + i : 2 + i;
		struct audit_order o;
		find_order_of_first(members, &o);
		conclude_all(members, &o, i < 3 ? to_one : to_two, i < 3 ? 2 : 3);
		assert_true(rig_saw(&r, CORE_EVENT_WITHHELD, 0));
		assert_int_equal(rig_view(&r, 0).reputation.strikes, 1);
		assert_true(rig_doc(&r)->term == 1 && rig_doc(&r)->round == o.round);
		if (i < 4)
			rig_release(&r);
	}
}

/* One auditor lies, two have bad links with the owner: one that has all pieces is enough. */
static void one_that_finds_it_right_refutes_them(void **state) {
	static const enum audit_verdict all[] = {AUDIT_WRONG, AUDIT_WITHHELD, AUDIT_WITHHELD, AUDIT_RIGHT};
	struct audit_order o;
	(void)state;
	find_order_of_first(5, &o);
	conclude_all(5, &o, all, 4);
	for (int i = 0; i < WINDOW + 1; i++)
		rig_round(&r, 5);
	assert_true(rig_view(&r, 0).reputation.strikes == 0 && rig_doc(&r)->term == 0);
}

/* Another one than the owner is not struck where one had its piece: the owner lied. */
static void one_that_gave_it_to_an_auditor_is_not_struck_for_an_owner(void **state) {
	struct audit_order o;
	(void)state;
	find_order_of_first(MEMBERS, &o);
	const uint32_t first = auditor_of(MEMBERS, &o, 0), other = first == 1 ? 2 : 1;
	uint64_t asked = 1ull << first;
	conclude(first, &o, AUDIT_WRONG, NET_NO_MEMBER, 9);
	for (uint32_t by; (by = auditor_of(MEMBERS, &o, asked)) != NET_NO_MEMBER; asked |= 1ull << by)
		conclude(by, &o, by == other ? AUDIT_UNABLE : AUDIT_WITHHELD, other, 0);
	assert_int_equal(rig_view(&r, other).reputation.strikes, 0);
}

/* A verdict of one that was not asked, or about nothing that was drawn, is nothing. */
static void verdicts_of_others_do_not_count(void **state) {
	(void)state;
	struct audit_order o;
	open_rig(1, MEMBERS, false);
	rig_round(&r, MEMBERS);
	const uint32_t first = last_order(MEMBERS, &o), owner = owner_in_round(MEMBERS, o.chunk);
	for (uint32_t m = 0; m < MEMBERS; m++)
		if (m != first)
			conclude(m, &o, AUDIT_WRONG, NET_NO_MEMBER, 9);
	const struct audit_order other = {.round = o.round, .chunk = (o.chunk + 1) % RIG_CHUNKS};
	conclude(first, &other, AUDIT_WRONG, NET_NO_MEMBER, 9);
	assert_false(rig_saw(&r, CORE_EVENT_DISPUTED, owner));
	assert_int_equal(core_audits(r.core).open, 1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(auditors_are_participants_and_never_the_owner, close_rig),
		cmocka_unit_test(a_liar_is_looked_at_as_often_as_its_share_says),
		cmocka_unit_test_teardown(draws_are_promised_before_the_round, close_rig),
		cmocka_unit_test_teardown(a_restart_draws_the_same, close_rig),
		cmocka_unit_test_teardown(a_chunk_that_two_name_is_audited, close_rig),
		cmocka_unit_test_teardown(a_chunk_that_one_names_is_not, close_rig),
		cmocka_unit_test_teardown(of_two_chunks_one_is_drawn, close_rig),
		cmocka_unit_test_teardown(names_count_with_the_majority, close_rig),
		cmocka_unit_test_teardown(a_run_without_audits_is_not_told_where, close_rig),
		cmocka_unit_test_teardown(a_run_without_audits_orders_none, close_rig),
		cmocka_unit_test_teardown(one_that_finds_it_right_ends_the_audit, close_rig),
		cmocka_unit_test_teardown(three_that_find_the_same_convict, close_rig),
		cmocka_unit_test_teardown(those_that_lack_its_piece_convict_too, close_rig),
		cmocka_unit_test_teardown(two_that_claim_to_lack_it_convict_nobody, close_rig),
		cmocka_unit_test_teardown(one_that_lacks_pieces_refutes_nobody, close_rig),
		cmocka_unit_test_teardown(two_that_conspire_convict_nobody, close_rig),
		cmocka_unit_test_teardown(in_a_small_roster_most_others_convict, close_rig),
		cmocka_unit_test_teardown(those_that_find_different_things_do_not, close_rig),
		cmocka_unit_test_teardown(a_lying_auditor_is_named, close_rig),
		cmocka_unit_test_teardown(a_lie_takes_the_run_back, close_rig),
		cmocka_unit_test_teardown(a_conviction_takes_back_what_could_not_be_checked, close_rig),
		cmocka_unit_test_teardown(what_others_made_or_the_window_has_left_stays, close_rig),
		cmocka_unit_test_teardown(audits_that_are_done_keep_no_others_away, close_rig),
		cmocka_unit_test_teardown(a_newcomers_weight_grows, close_rig),
		cmocka_unit_test_teardown(nobody_outweighs_newcomers, close_rig),
		cmocka_unit_test_teardown(a_flood_of_newcomers_weighs_little, close_rig),
		cmocka_unit_test_teardown(another_is_asked_for_one_that_cannot, close_rig),
		cmocka_unit_test_teardown(another_is_asked_for_one_that_says_nothing, close_rig),
		cmocka_unit_test_teardown(three_name_one_that_withholds, close_rig),
		cmocka_unit_test_teardown(a_hidden_average_takes_the_run_back, close_rig),
		cmocka_unit_test_teardown(a_strike_for_a_later_round_saves_no_lie, close_rig),
		cmocka_unit_test_teardown(a_restart_after_the_strike_takes_the_run_back, close_rig),
		cmocka_unit_test_teardown(one_that_is_gone_keeps_no_lie, close_rig),
		cmocka_unit_test_teardown(a_strike_takes_the_run_back_once, close_rig),
		cmocka_unit_test_teardown(one_that_is_needed_takes_the_run_back_three_times, close_rig),
		cmocka_unit_test_teardown(verdicts_of_others_do_not_count, close_rig),
		cmocka_unit_test_teardown(an_owner_that_shows_it_to_some_is_struck, close_rig),
		cmocka_unit_test_teardown(one_that_finds_it_right_refutes_them, close_rig),
		cmocka_unit_test_teardown(one_that_gave_it_to_an_auditor_is_not_struck_for_an_owner, close_rig),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
