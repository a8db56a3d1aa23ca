/* test_coordinator_core_signed_roots.c: a report counts only with its sender's signature of what it
 * commits to; and a member that signs two contributions to a round, as one process, is banned by
 * these. */
#include "coordinator/core/internal.h"
#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"
#include "tests/coordinator/rig_seals.h"

#include <stdlib.h>
#include <string.h>

enum { LIAR = 3, ALL = 4 };

static void setup(struct rig *r) {
	rig_init(r, 2);
	r->cfg.seals = rig_seals();
	rig_start(r);
	rig_join(r, ALL);
	rig_say_all(r, ALL, WORKER_TRAINING);
}

static void setup_reducing(struct rig *r) {
	setup(r);
	rig_say_all(r, ALL, WORKER_READY);
	rig_expect(r, RUN_REDUCE, 0, 1);
}

/* Room is left for one ban. */
static void fill_table(struct core *c) {
	for (uint32_t i = 0; i < NET_MAX_BANNED - 1; i++)
		c->banned.members[i] = 1000 + i;
	c->banned.n = NET_MAX_BANNED - 1;
}

static enum rv_err send_as_is(struct rig *r, uint32_t who, struct report *rep, struct rv_errtext *et) {
	uint8_t key[NET_KEY_BYTES];
	rig_key(who, key);
	rep->seq = ++r->report_seq;
	const enum rv_err e = core_report(r->core, r->now_us, key, rep, et);
	rig_pump(r);
	return e;
}

static struct report another(const struct rig *r, enum worker_phase phase) {
	struct report rep = rig_report(r, LIAR, phase);
	rep.commitment.roots[0].root.b[0] ^= 1;
	return rep;
}

static struct report forged(const struct rig *r, uint32_t signed_by, uint64_t boot, uint64_t round) {
	struct report rep = rig_report(r, LIAR, WORKER_READY), of = rep;
	uint8_t key[NET_KEY_BYTES];
	rig_key(signed_by, key);
	of.boot = boot;
	of.round = round;
	rig_sign_report(&of, r->cfg.run_id, key);
	memcpy(rep.signatures, of.signatures, sizeof rep.signatures);
	return rep;
}

static void a_report_without_its_signature_does_not_count(void **state) {
	(void)state;
	struct rig r;
	struct rv_errtext why = {0};
	setup(&r);
	rig_round(&r, ALL);
	rig_say_all(&r, ALL, WORKER_TRAINING);
	struct report reports[] = {
		rig_report(&r, LIAR, WORKER_READY), /* none */
		forged(&r, 1, 1, 1),                /* another member's */
		forged(&r, LIAR, 2, 1),             /* another process's */
		forged(&r, LIAR, 1, 0),             /* of the round before */
	};
	for (size_t i = 0; i < sizeof reports / sizeof reports[0]; i++) {
		assert_int_equal(send_as_is(&r, LIAR, &reports[i], &why), RV_E_INVALID);
		assert_non_null(strstr(why.text, "round 2 (codec 0) is not signed by the sender's key"));
		assert_int_equal(rig_view(&r, LIAR).last->phase, WORKER_TRAINING);
	}
	struct report good = forged(&r, LIAR, 1, 1);
	assert_ok(send_as_is(&r, LIAR, &good, &et));
	assert_int_equal(rig_view(&r, LIAR).last->phase, WORKER_READY);
	assert_false(rig_view(&r, LIAR).banned);
	rig_release(&r);
}

static void expect_signed(const struct rig *r, int n) {
	const struct document *d = rig_doc(r);
	assert_int_equal(d->n_members, n);
	for (int i = 0; i < n; i++) {
		const struct seal_scope scope = document_scope(d, &d->members[i]);
		assert_true(r->cfg.seals.verify(NULL, d->members[i].key, &scope, &d->members[i].contribution));
	}
}

/* Documents name what was signed, after a restart too, and in the next attempt. */
static void documents_have_the_signatures(void **state) {
	(void)state;
	struct rig r;
	setup_reducing(&r);
	expect_signed(&r, ALL);
	rig_restart(&r);
	expect_signed(&r, ALL);
	rig_say_all(&r, LIAR, WORKER_REDUCING);
	struct report rep = rig_report(&r, LIAR, WORKER_TRAINING);
	rep.boot = 2; /* it was started again: its contribution is lost */
	rig_send(&r, LIAR, &rep);
	rig_expect(&r, RUN_REDUCE, 0, 2);
	expect_signed(&r, LIAR);
	rig_release(&r);
}

static void expect_banned(struct rig *r) {
	assert_true(rig_view(r, LIAR).banned);
	assert_true(rig_saw(r, CORE_EVENT_TWO_ROOTS, LIAR));
	for (uint32_t i = 0; i < LIAR; i++)
		assert_false(rig_view(r, i).banned);
	const struct document *d = rig_doc(r);
	assert_int_equal(d->n_proofs, 1);
	assert_int_equal(d->proofs[0].member, LIAR);
	assert_int_equal(d->proofs[0].scope.kind, SEAL_CONTRIBUTION);
	assert_true(equivocation_proves(&d->proofs[0], &r->cfg.seals));
	assert_true(banned_has(&d->banned, LIAR));
}

static void two_roots_before_the_roster_ban(void **state) {
	(void)state;
	struct rig r;
	setup(&r);
	rig_say(&r, LIAR, WORKER_READY);
	struct report rep = another(&r, WORKER_READY);
	rig_send(&r, LIAR, &rep);
	expect_banned(&r);
	rig_say_all(&r, LIAR, WORKER_READY);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	RIG_EXPECT_MEMBERS(&r, 0, 1, 2);
	rig_release(&r);
}

/* It takes its first word back in between, as if it had none. */
static void a_pause_between_two_roots_does_not_help(void **state) {
	(void)state;
	struct rig r;
	setup(&r);
	rig_say(&r, LIAR, WORKER_READY);
	rig_say(&r, LIAR, WORKER_TRAINING);
	struct report rep = another(&r, WORKER_READY);
	rig_send(&r, LIAR, &rep);
	expect_banned(&r);
	rig_release(&r);
}

static void two_roots_in_an_attempt_ban_and_the_others_go_on(void **state) {
	(void)state;
	struct rig r;
	setup_reducing(&r);
	rig_say_all(&r, LIAR, WORKER_REDUCING);
	struct report rep = another(&r, WORKER_REDUCING);
	rig_send(&r, LIAR, &rep);
	expect_banned(&r);
	rig_expect(&r, RUN_REDUCE, 0, 2);
	RIG_EXPECT_MEMBERS(&r, 0, 1, 2);
	rig_say_all(&r, LIAR, WORKER_VOTED);
	rig_expect(&r, RUN_OPEN, 1, 0);
	rig_release(&r);
}

/* Only the roster is durable: it is enough. */
static void two_roots_across_a_restart_ban(void **state) {
	(void)state;
	struct rig r;
	setup_reducing(&r);
	rig_restart(&r);
	struct report rep = another(&r, WORKER_REDUCING);
	rig_send(&r, LIAR, &rep);
	expect_banned(&r);
	rig_release(&r);
}

/* While a proof waits for the disk, the operator bans another one: there is room for one. */
static void a_proof_that_waits_takes_its_room(void **state) {
	(void)state;
	struct rig r;
	setup(&r);
	fill_table(r.core);
	fill_table(r.twin);
	r.hold = true;
	rig_say(&r, LIAR, WORKER_READY);
	struct report rep = another(&r, WORKER_READY);
	rig_send(&r, LIAR, &rep);
	assert_int_equal(core_ban(r.core, r.now_us, 1, true, NULL), RV_E_FULL);
	r.hold = false;
	rig_pump(&r);
	rig_wait(&r, RIG_S);
	assert_true(rig_view(&r, LIAR).banned);
	assert_false(rig_view(&r, 1).banned);
	rig_release(&r);
}

/* The records of others wait: the proof waits too, and is not lost. */
static void a_proof_waits_for_the_record_before_it(void **state) {
	(void)state;
	struct rig r;
	setup(&r);
	rig_say(&r, LIAR, WORKER_READY);
	r.hold = true;
	rig_say_all(&r, LIAR, WORKER_READY); /* the roster's record waits */
	struct report rep = another(&r, WORKER_READY);
	rig_send(&r, LIAR, &rep);
	assert_false(rig_view(&r, LIAR).banned);
	r.hold = false;
	rig_pump(&r);
	rig_wait(&r, RIG_S);
	expect_banned(&r);
	rig_release(&r);
}

/* A process that starts again makes its contribution again: it has another boot, and is not
 * blamed. */
static void another_process_may_commit_to_something_else(void **state) {
	(void)state;
	struct rig r;
	setup_reducing(&r);
	struct report rep = another(&r, WORKER_READY);
	rep.boot = 2;
	rig_send(&r, LIAR, &rep);
	assert_false(rig_view(&r, LIAR).banned);
	assert_false(rig_saw(&r, CORE_EVENT_TWO_ROOTS, LIAR));
	rig_release(&r);
}

/* So does one in the next round, and one that says the same again. */
static void the_next_round_is_another_contribution(void **state) {
	(void)state;
	struct rig r;
	setup(&r);
	for (int i = 0; i < 3; i++)
		rig_round(&r, ALL);
	rig_say_all(&r, ALL, WORKER_READY);
	rig_say_all(&r, ALL, WORKER_READY);
	for (uint32_t i = 0; i < ALL; i++)
		assert_false(rig_view(&r, i).banned);
	rig_release(&r);
}

static void a_member_may_show_the_proof(void **state) {
	(void)state;
	struct rig r;
	uint8_t key[NET_KEY_BYTES];
	struct evidence *e = calloc(1, sizeof *e);
	setup_reducing(&r);
	struct report rep = rig_report(&r, LIAR, WORKER_READY);
	e->has_proof = true;
	rig_key(LIAR, e->proof.key);
	for (int i = 0; i < 2; i++) {
		rep.commitment.roots[0].root.b[0] ^= 1;
		rig_sign_report(&rep, r.cfg.run_id, e->proof.key);
		e->proof.seals[i] = report_seal(&rep, 0);
	}
	e->proof.member = LIAR;
	e->proof.chunk = NET_MAX_CHUNKS;
	e->proof.scope = report_scope(&rep, r.cfg.run_id, 0);
	rig_key(0, key);
	assert_ok(core_testify(r.core, r.now_us, key, e, &et));
	rig_pump(&r);
	expect_banned(&r);
	assert_ok(core_ban(r.core, r.now_us, LIAR, false, NULL)); /* the operator forgives: it counts once */
	rig_pump(&r);
	assert_ok(core_testify(r.core, r.now_us, key, e, &et));
	rig_pump(&r);
	assert_false(rig_view(&r, LIAR).banned);
	free(e);
	rig_release(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_report_without_its_signature_does_not_count),
		cmocka_unit_test(documents_have_the_signatures),
		cmocka_unit_test(two_roots_before_the_roster_ban),
		cmocka_unit_test(a_pause_between_two_roots_does_not_help),
		cmocka_unit_test(two_roots_in_an_attempt_ban_and_the_others_go_on),
		cmocka_unit_test(two_roots_across_a_restart_ban),
		cmocka_unit_test(a_proof_that_waits_takes_its_room),
		cmocka_unit_test(a_proof_waits_for_the_record_before_it),
		cmocka_unit_test(another_process_may_commit_to_something_else),
		cmocka_unit_test(the_next_round_is_another_contribution),
		cmocka_unit_test(a_member_may_show_the_proof),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
