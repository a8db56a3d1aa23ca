/* Votes that differ, votes of few, and proofs: who is believed, who is named, and who is waited
 * for. */
#include <string.h>

#include "base/chain.h"
#include "base/merkle.h"
#include "coordinator/core/internal.h"
#include "net/control/evidence.h"
#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"
#include "tests/coordinator/rig_seals.h"

static struct seal_scope scope_of(const struct rig *r) {
	const struct document *d = rig_doc(r);
	struct seal_scope s = {.roster = d->roster_hash, .term = d->term, .round = d->round, .attempt = d->attempt};
	memcpy(s.run_id, r->cfg.run_id, sizeof s.run_id);
	return s;
}

/* ---- what participants got ---- */

/* The leaves of one list of means: in chunk `odd` those of a flavour. */
struct got {
	struct rv_hash means[RIG_CHUNKS], digest;
	struct evidence evidence;
};

static struct rv_hash leaf_of(const struct rig *r, uint32_t chunk, uint8_t flavour) {
	struct rv_hash leaf = rig_digest(rig_doc(r)->round);
	leaf.b[1] ^= (uint8_t)chunk;
	leaf.b[2] ^= flavour;
	return leaf;
}

static void seal_all(const struct rig *r, struct got *g) {
	const struct document *d = rig_doc(r);
	const struct seal_scope scope = scope_of(r);
	for (int i = 0; i < d->n_members; i++) {
		struct merkle_sum sum = {.n = 0};
		for (int k = 0; k < d->n_ranges; k++)
			for (uint32_t c = 0; d->ranges[k].owner == i && c < d->ranges[k].count; c++)
				merkle_add(&sum, &g->means[d->ranges[k].first + c]);
		if (sum.n == 0)
			continue;
		struct owner_seal *s = &g->evidence.seals[g->evidence.n_seals++];
		uint8_t key[NET_KEY_BYTES];
		rig_key(d->members[i].member, key);
		*s = (struct owner_seal){.member = d->members[i].member, .kind = SEAL_ROW};
		s->seal.root = merkle_sum_root(&sum);
		rig_seal(key, &scope, &s->seal.root, s->seal.signature);
	}
}

static void get(const struct rig *r, uint32_t odd, uint8_t flavour, struct got *g) {
	const struct document *d = rig_doc(r);
	struct merkle_sum sum = {.n = 0};
	*g = (struct got){.evidence = {.term = d->term, .round = d->round, .attempt = d->attempt, .n_means = RIG_CHUNKS}};
	for (uint32_t c = 0; c < RIG_CHUNKS; c++) {
		g->means[c] = leaf_of(r, c, c == odd ? flavour : 0);
		merkle_add(&sum, &g->means[c]);
	}
	g->evidence.means = g->means;
	const struct rv_hash root = merkle_sum_root(&sum);
	g->digest = rv_round_digest(d->round, &root);
	seal_all(r, g);
}

static void vote(struct rig *r, uint32_t who, const struct rv_hash *digest) {
	struct report rep = rig_report(r, who, WORKER_VOTED);
	rep.digest = *digest;
	rig_send(r, who, &rep);
}

static enum rv_err show(struct rig *r, uint32_t who, const struct evidence *e) {
	uint8_t key[NET_KEY_BYTES];
	rig_key(who, key);
	const enum rv_err err = core_testify(r->core, r->now_us, key, e, NULL);
	rig_pump(r);
	return err;
}

static void begin(struct rig *r, int n) {
	rig_say_all(r, n, WORKER_TRAINING);
	rig_say_all(r, n, WORKER_READY);
	rig_say_all(r, n, WORKER_REDUCING);
}

static void setup(struct rig *r, uint32_t min_workers, int n) {
	rig_init(r, min_workers);
	r->cfg.final_round = 100;
	r->cfg.seals = rig_seals();
	rig_start(r);
	rig_join(r, n);
	begin(r, n);
}

/* ---- votes that differ ---- */

/* A majority waits for one that votes for something else, and shows nothing, as for a missing vote;
 * and in the next round not at all. */
static void test_a_false_vote_does_not_hold_a_majority(void **state) {
	(void)state;
	struct rig r;
	struct got g;
	setup(&r, 2, 4);
	for (int round = 0; round < 2; round++) {
		get(&r, 0, 0, &g);
		struct rv_hash other = g.digest;
		other.b[0] ^= 1;
		vote(&r, 1, &other);
		for (uint32_t i = 0; i < 4; i++)
			if (i != 1)
				vote(&r, i, &g.digest);
		if (round == 0) {
			rig_expect(&r, RUN_REDUCE, 0, 1);
			assert_true(document_asks(rig_doc(&r), 1));
			rig_wait(&r, RIG_S - 1); /* a quarter of withheld_us */
			rig_expect(&r, RUN_REDUCE, 0, 1);
			rig_wait(&r, 1);
			assert_true(rig_saw(&r, CORE_EVENT_MUTE, 1));
		}
		rig_expect(&r, RUN_OPEN, (uint64_t)round + 1, 0);
		assert_int_equal(rig_blamed(&r, CORE_COMMIT), 0);
		begin(&r, 4);
	}
	rig_release(&r);
}

/* Both show what they got: the owner of the chunk in which that differs has signed twice. */
static void test_an_owner_that_signed_twice_is_banned(void **state) {
	(void)state;
	struct rig r;
	struct got a, b;
	setup(&r, 2, 4);
	get(&r, 0, 0, &a);
	get(&r, 0, 1, &b);
	const uint32_t liar = rig_doc(&r)->members[rig_doc(&r)->ranges[0].owner].member;
	for (uint32_t i = 0; i < 4; i++)
		vote(&r, i, i == 3 ? &b.digest : &a.digest);
	assert_true(document_asks(rig_doc(&r), 3));
	for (uint32_t i = 0; i < 4; i++)
		if (document_asks(rig_doc(&r), i))
			assert_ok(show(&r, i, i == 3 ? &b.evidence : &a.evidence));
	assert_true(rig_view(&r, liar).banned);
	assert_int_equal(rig_doc(&r)->n_proofs, 1);
	assert_int_equal(rig_doc(&r)->proofs[0].member, liar);
	rig_expect(&r, RUN_REDUCE, 0, 2); /* its attempt is void */
	assert_int_equal(rig_doc(&r)->n_members, 3);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(rig_view(&r, i).banned == (i == liar));
	rig_release(&r);
}

/* So many members that are not here are banned. */
static void fill_table(struct core *c, uint16_t n) {
	for (int i = 0; i < n; i++)
		c->banned.members[i] = 1000 + (uint32_t)i;
	c->banned.n = n;
}

/* No more members can be banned: the one that signed twice is put away, and blamed. */
static void test_where_no_more_can_be_banned_it_stays_out(void **state) {
	(void)state;
	struct rig r;
	struct got a, b;
	setup(&r, 2, 4);
	fill_table(r.core, NET_MAX_BANNED);
	fill_table(r.twin, NET_MAX_BANNED);
	get(&r, 0, 0, &a);
	get(&r, 0, 1, &b);
	const uint32_t liar = rig_doc(&r)->members[rig_doc(&r)->ranges[0].owner].member;
	for (uint32_t i = 0; i < 4; i++)
		vote(&r, i, i == 3 ? &b.digest : &a.digest);
	for (uint32_t i = 0; i < 4; i++)
		if (document_asks(rig_doc(&r), i))
			assert_ok(show(&r, i, i == 3 ? &b.evidence : &a.evidence));
	assert_true(rig_saw(&r, CORE_EVENT_EQUIVOCATED, liar));
	assert_false(rig_view(&r, liar).banned);
	rig_expect(&r, RUN_REDUCE, 0, 2);
	assert_int_equal(rig_doc(&r)->n_members, 3);
	assert_int_equal(rig_blamed(&r, CORE_ROSTER), 1ull << liar);
	rig_release(&r);
}

/* Two members may come to be banned at once, where there is room for one. */
static void test_there_is_room_for_so_many_bans(void **state) {
	(void)state;
	struct rig r;
	setup(&r, 2, 4);
	fill_table(r.core, NET_MAX_BANNED - 1);
	assert_true(core_has_ban_room(r.core));
	r.core->members[1].want_banned = true;
	assert_false(core_has_ban_room(r.core));
	assert_int_equal(core_ban(r.core, r.now_us, 2, true, NULL), RV_E_FULL);
	rig_release(&r);
}

/* A ban that is taken back while its record waits takes the last place until that is undone. */
static void test_a_ban_that_is_taken_back_has_its_place(void **state) {
	(void)state;
	struct rig r;
	setup(&r, 2, 4);
	fill_table(r.core, NET_MAX_BANNED - 1);
	fill_table(r.twin, NET_MAX_BANNED - 1);
	r.hold = true;
	assert_int_equal(core_ban(r.core, r.now_us, 1, true, NULL), RV_OK);
	assert_int_equal(core_ban(r.core, r.now_us, 1, false, NULL), RV_OK);
	assert_int_equal(core_ban(r.core, r.now_us, 2, true, NULL), RV_E_FULL);
	r.hold = false;
	rig_pump(&r);
	assert_false(rig_view(&r, 1).banned);
	assert_int_equal(core_ban(r.core, r.now_us, 2, true, NULL), RV_OK);
	rig_pump(&r);
	assert_true(rig_view(&r, 2).banned);
	rig_release(&r);
}

/* Members that say they are apart from others do not use up the attempts that are void as rows were
 * given different means. */
static void test_attempts_end_by_counts_of_their_own(void **state) {
	(void)state;
	struct rig r;
	int n = 0;
	setup(&r, 2, 4);
	while (core_deal_anew(r.core))
		n++;
	assert_int_equal(n, 3);
	while (core_void_attempt(r.core))
		n++;
	assert_int_equal(n, 6);
	rig_release(&r);
}

/* Members that lie together are most of a roster. What one against them shows has to be answered:
 * time does not make them right, and each that shows nothing is put away. */
static void test_a_majority_that_shows_nothing_is_not_believed_against_one_that_does(void **state) {
	(void)state;
	struct rig r;
	struct got g;
	setup(&r, 1, 3);
	get(&r, 0, 0, &g);
	struct rv_hash other = g.digest;
	other.b[0] ^= 1;
	vote(&r, 0, &other);
	vote(&r, 1, &other);
	vote(&r, 2, &g.digest);
	assert_true(document_asks(rig_doc(&r), 2));
	assert_ok(show(&r, 2, &g.evidence));
	for (int s = 0; s < 60 && !rig_saw(&r, CORE_EVENT_NO_EVIDENCE, 0); s++) {
		rig_expect(&r, RUN_REDUCE, 0, 1);
		rig_wait(&r, RIG_S);
		vote(&r, 0, &other);
		vote(&r, 1, &other);
		vote(&r, 2, &g.digest);
	}
	assert_int_equal(rig_doc(&r)->round, 0);
	rig_release(&r);
}

/* ---- votes of few ---- */

/* Two of three are gone, and the last one has voted. */
static void test_a_lone_vote_is_believed_when_it_is_shown(void **state) {
	(void)state;
	struct rig r;
	struct got g;
	setup(&r, 1, 3);
	get(&r, 0, 0, &g);
	for (int s = 0; s < 11; s++) {
		rig_wait(&r, RIG_S);
		vote(&r, 0, &g.digest);
	}
	rig_expect(&r, RUN_REDUCE, 0, 1);
	assert_true(document_asks(rig_doc(&r), 0));
	assert_ok(show(&r, 0, &g.evidence));
	rig_expect(&r, RUN_OPEN, 1, 0);
	rig_release(&r);
}

static void test_a_lone_vote_that_nobody_can_show_is_none(void **state) {
	(void)state;
	struct rig r;
	struct got g;
	setup(&r, 1, 3);
	get(&r, 0, 0, &g);
	struct rv_hash other = g.digest;
	other.b[0] ^= 1;
	for (int s = 0; s < 11; s++) {
		rig_wait(&r, RIG_S);
		vote(&r, 0, &other);
	}
	assert_true(document_asks(rig_doc(&r), 0));
	assert_int_equal(show(&r, 0, &g.evidence), RV_E_INVALID);
	assert_true(rig_saw(&r, CORE_EVENT_FALSE_VOTE, 0));
	assert_int_equal(rig_doc(&r)->round, 0);
	rig_release(&r);
}

/* Another process found the vote on its disk. */
static void test_a_lone_vote_that_was_found_is_none(void **state) {
	(void)state;
	struct rig r;
	struct got g;
	setup(&r, 1, 3);
	get(&r, 0, 0, &g);
	vote(&r, 0, &g.digest);
	for (int s = 0; s < 11; s++) {
		struct report rep = rig_report(&r, 0, WORKER_VOTED);
		rep.boot = 2;
		rep.attempt = 1;
		rep.digest = g.digest;
		rig_wait(&r, RIG_S);
		rig_send(&r, 0, &rep);
	}
	assert_int_equal(rig_doc(&r)->round, 0);
	assert_false(document_asks(rig_doc(&r), 0));
	assert_false(rig_saw(&r, CORE_EVENT_FALSE_VOTE, 0));
	rig_release(&r);
}

static void test_seals_that_nobody_signed_are_named(void **state) {
	(void)state;
	struct rig r;
	struct got g, other;
	setup(&r, 2, 4);
	get(&r, 0, 0, &g);
	get(&r, 0, 1, &other);
	for (int i = 0; i < other.evidence.n_seals; i++)
		other.evidence.seals[i].seal.signature[0] ^= 1;
	for (uint32_t i = 0; i < 4; i++)
		vote(&r, i, i == 2 ? &other.digest : &g.digest);
	assert_int_equal(show(&r, 2, &other.evidence), RV_E_INVALID);
	assert_true(rig_saw(&r, CORE_EVENT_FALSE_VOTE, 2));
	rig_expect(&r, RUN_OPEN, 1, 0); /* the others need not wait for it */
	assert_int_equal(rig_doc(&r)->n_proofs, 0);
	rig_release(&r);
}

/* ---- proofs ---- */

static struct evidence proof_against(const struct rig *r, uint32_t member) {
	struct evidence e = {.has_proof = true, .proof = {.member = member, .scope = scope_of(r)}};
	rig_key(member, e.proof.key);
	for (uint8_t i = 0; i < 2; i++) {
		memset(e.proof.seals[i].root.b, 1 + i, RV_HASH_BYTES);
		rig_seal(e.proof.key, &e.proof.scope, &e.proof.seals[i].root, e.proof.seals[i].signature);
	}
	return e;
}

static void test_a_proof_counts_once(void **state) {
	(void)state;
	struct rig r;
	setup(&r, 2, 4);
	const struct evidence proof = proof_against(&r, 3);
	assert_ok(show(&r, 0, &proof));
	assert_true(rig_view(&r, 3).banned);
	assert_ok(core_ban(r.core, r.now_us, 3, false, NULL));
	rig_pump(&r);
	assert_false(rig_view(&r, 3).banned);
	assert_ok(show(&r, 1, &proof)); /* nothing new */
	assert_false(rig_view(&r, 3).banned);
	rig_restart(&r);
	assert_ok(show(&r, 1, &proof));
	assert_false(rig_view(&r, 3).banned);
	rig_say_all(&r, 4, WORKER_REDUCING);
	begin(&r, 4);
	const struct evidence another = proof_against(&r, 3); /* it lies again */
	assert_ok(show(&r, 1, &another));
	assert_true(rig_view(&r, 3).banned);
	rig_release(&r);
}

static void test_old_proofs_and_those_of_another_attempt_of_the_run_are_refused(void **state) {
	enum { ROUNDS = 17 };
	(void)state;
	struct rig r;
	struct got g;
	setup(&r, 2, 4);
	struct evidence proof = proof_against(&r, 3), forged = proof;
	forged.proof.seals[1] = forged.proof.seals[0];
	assert_int_equal(show(&r, 0, &forged), RV_E_INVALID);
	forged = proof;
	forged.proof.seals[1].signature[3] ^= 1;
	assert_int_equal(show(&r, 0, &forged), RV_E_INVALID);
	forged = proof;
	forged.proof.scope.run_id[0] ^= 1;
	assert_int_equal(show(&r, 0, &forged), RV_E_INVALID);
	for (int round = 0; round < ROUNDS; round++) {
		get(&r, 0, 0, &g);
		for (uint32_t i = 0; i < 4; i++)
			vote(&r, i, &g.digest);
		begin(&r, 4);
	}
	assert_int_equal(rig_doc(&r)->round, ROUNDS);
	assert_int_equal(show(&r, 0, &proof), RV_E_INVALID);
	assert_false(rig_view(&r, 3).banned);
	rig_release(&r);
}

/* The same processes with other weights: an honest owner has two lists, of two attempts. */
static void test_the_name_of_a_roster_covers_weights_and_owners(void **state) {
	(void)state;
	struct rv_hash names[3];
	for (int k = 0; k < 3; k++) {
		struct rig r;
		rig_init(&r, 2);
		r.cfg.weight_by_tokens = k == 1;
		r.cfg.equal_ownership = k == 2;
		rig_start(&r);
		rig_join(&r, 3);
		rig_say_all(&r, 3, WORKER_TRAINING);
		for (uint32_t i = 0; i < 3; i++) {
			struct report rep = rig_report(&r, i, WORKER_READY);
			rep.tokens = 100 + 50 * i;
			rep.up_bytes_per_s = rep.down_bytes_per_s = 100000 << (2 * i);
			rig_send(&r, i, &rep);
		}
		names[k] = rig_doc(&r)->roster_hash;
		rig_release(&r);
	}
	assert_false(rv_hash_equal(&names[0], &names[1]));
	assert_false(rv_hash_equal(&names[0], &names[2]));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_false_vote_does_not_hold_a_majority),
		cmocka_unit_test(test_where_no_more_can_be_banned_it_stays_out),
		cmocka_unit_test(test_there_is_room_for_so_many_bans),
		cmocka_unit_test(test_a_ban_that_is_taken_back_has_its_place),
		cmocka_unit_test(test_attempts_end_by_counts_of_their_own),
		cmocka_unit_test(test_an_owner_that_signed_twice_is_banned),
		cmocka_unit_test(test_a_majority_that_shows_nothing_is_not_believed_against_one_that_does),
		cmocka_unit_test(test_a_lone_vote_is_believed_when_it_is_shown),
		cmocka_unit_test(test_a_lone_vote_that_nobody_can_show_is_none),
		cmocka_unit_test(test_a_lone_vote_that_was_found_is_none),
		cmocka_unit_test(test_seals_that_nobody_signed_are_named),
		cmocka_unit_test(test_a_proof_counts_once),
		cmocka_unit_test(test_old_proofs_and_those_of_another_attempt_of_the_run_are_refused),
		cmocka_unit_test(test_the_name_of_a_roster_covers_weights_and_owners),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
