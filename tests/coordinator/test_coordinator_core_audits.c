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

static void open_rig(uint32_t chunks, int members, bool rollback) {
	memset(n_said, 0, sizeof n_said);
	rig_init(&r, 1);
	r.cfg.final_round = 200;
	r.cfg.audit_chunks = chunks;
	r.cfg.audit_window = WINDOW;
	r.cfg.audit_rollback = rollback;
	memset(&r.cfg.audit_secret, 7, sizeof r.cfg.audit_secret);
	rig_start(&r);
	rig_join(&r, members);
}

static int close_rig(void **state) {
	(void)state;
	rig_release(&r);
	return 0;
}

/* Returns the document of member `who`. */
static const struct document *doc_of(uint32_t who) {
	static struct document d;
	const int slot = core_find(r.core, who);
	assert_true(slot >= 0);
	assert_true(core_document_of(r.core, (uint32_t)slot, &d));
	return &d;
}

/* Returns the member that is to audit the chunk, among those not in `but`; NET_NO_MEMBER: none. */
static uint32_t auditor_of(int members, const struct audit_order *o, uint64_t but) {
	for (uint32_t m = 0; m < (uint32_t)members; m++) {
		const struct document *d = rig_view(&r, m).banned || (but >> m & 1) ? NULL : doc_of(m);
		for (int i = 0; d != NULL && i < d->n_audits; i++)
			if (d->audits[i].round == o->round && d->audits[i].chunk == o->chunk)
				return m;
	}
	return NET_NO_MEMBER;
}

/* Finds an order of the last round; returns its auditor. */
static uint32_t last_order(int members, struct audit_order *out) {
	for (uint32_t m = 0; m < (uint32_t)members; m++)
		for (int i = 0; i < doc_of(m)->n_audits; i++)
			if (doc_of(m)->audits[i].round + 1 == doc_of(m)->round) {
				*out = doc_of(m)->audits[i];
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
			const struct document *d = doc_of(m);
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

/* A secret is promised before its round, and shown after it; its draws are those of the orders. */
static void draws_are_promised_before_the_round(void **state) {
	(void)state;
	open_rig(1, MEMBERS, false);
	for (int round = 0; round < 10; round++) {
		const struct rv_hash promised = doc_of(0)->audit_promise;
		rig_say_all(&r, MEMBERS, WORKER_TRAINING);
		rig_say_all(&r, MEMBERS, WORKER_READY);
		assert_true(rv_hash_equal(&promised, &doc_of(1)->audit_promise));
		rig_say_all(&r, MEMBERS, WORKER_REDUCING);
		rig_say_all(&r, MEMBERS, WORKER_VOTED);
		const struct rv_hash shown = doc_of(0)->audit_secret, hash = audit_promise_of(&shown);
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

static void a_run_without_audits_orders_none(void **state) {
	(void)state;
	open_rig(0, MEMBERS, false);
	rig_round(&r, MEMBERS);
	for (uint32_t m = 0; m < MEMBERS; m++)
		assert_true(doc_of(m)->n_audits == 0 && rv_hash_is_zero(&doc_of(m)->audit_promise));
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
		for (int i = 0; m != owner && i < doc_of(m)->n_audits; i++)
			assert_true(doc_of(m)->audits[i].round < o.round);
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
		cmocka_unit_test_teardown(draws_are_promised_before_the_round, close_rig),
		cmocka_unit_test_teardown(a_restart_draws_the_same, close_rig),
		cmocka_unit_test_teardown(a_run_without_audits_orders_none, close_rig),
		cmocka_unit_test_teardown(one_that_finds_it_right_ends_the_audit, close_rig),
		cmocka_unit_test_teardown(three_that_find_the_same_convict, close_rig),
		cmocka_unit_test_teardown(two_that_conspire_convict_nobody, close_rig),
		cmocka_unit_test_teardown(in_a_small_roster_most_others_convict, close_rig),
		cmocka_unit_test_teardown(those_that_find_different_things_do_not, close_rig),
		cmocka_unit_test_teardown(a_lying_auditor_is_named, close_rig),
		cmocka_unit_test_teardown(a_lie_takes_the_run_back, close_rig),
		cmocka_unit_test_teardown(a_newcomers_weight_grows, close_rig),
		cmocka_unit_test_teardown(another_is_asked_for_one_that_cannot, close_rig),
		cmocka_unit_test_teardown(another_is_asked_for_one_that_says_nothing, close_rig),
		cmocka_unit_test_teardown(three_name_one_that_withholds, close_rig),
		cmocka_unit_test_teardown(verdicts_of_others_do_not_count, close_rig),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
