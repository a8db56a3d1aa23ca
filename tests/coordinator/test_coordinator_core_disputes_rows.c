/* Votes that differ in two rows: the owners that passed the chunk on are asked, and what they show
 * proves who signed two lists, or made a mean up. */
#include <string.h>

#include "base/chain.h"
#include "base/merkle.h"
#include "net/control/evidence.h"
#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"
#include "tests/coordinator/rig_seals.h"

enum { ROW = 4, TWO_ROWS = 2 * ROW, THREE_ROWS = 3 * ROW, ODD = 3 /* a chunk */ };

static struct document views[THREE_ROWS];

static void read_views(const struct rig *r, int n) {
	for (int i = 0; i < n; i++)
		assert_true(core_document_of(r->core, (uint32_t)core_find(r->core, (uint32_t)i), &views[i]));
}

/* ---- what participants got ---- */

/* A list of means, of flavour 0 but in chunk ODD; and the seals with which it came. `signed_as`:
 * the flavour over which the final owner of that chunk has signed. */
struct got {
	struct rv_hash means[RIG_CHUNKS], digest;
	struct evidence evidence;
};

static struct rv_hash leaf_of(const struct rig *r, uint32_t chunk, uint8_t flavour) {
	struct rv_hash leaf = rig_digest(rig_doc(r)->round);
	leaf.b[1] ^= (uint8_t)chunk;
	leaf.b[2] ^= chunk == ODD ? flavour : 0;
	return leaf;
}

static void add_seal(const struct rig *r, uint32_t member, uint8_t kind, uint32_t first, const struct merkle_sum *sum,
					 struct evidence *e) {
	uint8_t key[NET_KEY_BYTES];
	struct seal_scope scope = {.roster = rig_doc(r)->roster_hash,
							   .term = rig_doc(r)->term,
							   .round = rig_doc(r)->round,
							   .attempt = rig_doc(r)->attempt,
							   .kind = kind,
							   .first = first};
	memcpy(scope.run_id, r->cfg.run_id, sizeof scope.run_id);
	if (sum->n == 0)
		return;
	struct owner_seal *s = &e->seals[e->n_seals++];
	*s = (struct owner_seal){.member = member, .kind = kind, .first = first, .seal.root = merkle_sum_root(sum)};
	rig_key(member, key);
	rig_seal(key, &scope, &s->seal.root, s->seal.signature);
}

static void seal_row(const struct rig *r, uint32_t who, struct got *g) {
	const struct document *d = &views[who];
	for (int i = 0; i < d->n_members; i++) {
		struct merkle_sum sum = {.n = 0};
		for (int j = 0; j < d->n_ranges; j++)
			for (uint32_t c = 0; d->ranges[j].owner == i && c < d->ranges[j].count; c++)
				merkle_add(&sum, &g->means[d->ranges[j].first + c]);
		add_seal(r, d->members[i].member, SEAL_ROW, d->row, &sum, &g->evidence);
	}
}

static void seal_columns(const struct rig *r, uint32_t who, uint8_t signed_as, struct got *g) {
	const struct document *d = &views[who];
	for (int k = 0; k < d->n_sections; k++)
		for (int row = 0; row < d->n_rows; row++) {
			const struct section *s = &d->sections[k];
			struct merkle_sum sum = {.n = 0};
			for (uint32_t c = s->first; c < s->first + s->count; c++) {
				const struct rv_hash leaf = leaf_of(r, c, signed_as);
				if ((int)(c % d->n_rows) == row)
					merkle_add(&sum, &leaf);
			}
			add_seal(r, row == d->row ? who : d->column[s->owner[row]].member, SEAL_COLUMN, s->first, &sum,
					 &g->evidence);
		}
}

static void get(const struct rig *r, uint32_t who, uint8_t flavour, uint8_t signed_as, struct got *g) {
	const struct document *d = rig_doc(r);
	struct merkle_sum sum = {.n = 0};
	*g = (struct got){.evidence = {.term = d->term, .round = d->round, .attempt = d->attempt, .n_means = RIG_CHUNKS}};
	for (uint32_t c = 0; c < RIG_CHUNKS; c++) {
		g->means[c] = leaf_of(r, c, flavour);
		merkle_add(&sum, &g->means[c]);
	}
	g->evidence.means = g->means;
	const struct rv_hash root = merkle_sum_root(&sum);
	g->digest = rv_round_digest(d->round, &root);
	seal_row(r, who, g);
	seal_columns(r, who, signed_as, g);
}

/* Returns the owner of chunk ODD in the row of a member. */
static uint32_t owner_for(uint32_t who) {
	const struct document *d = &views[who];
	int j = 0;
	while (ODD - d->ranges[j].first >= d->ranges[j].count)
		j++;
	return d->members[d->ranges[j].owner].member;
}

/* Returns a member of a row. */
static uint32_t of_row(int n, int row) {
	for (int i = 0; i < n; i++)
		if (views[i].row == row)
			return (uint32_t)i;
	fail();
	return 0;
}

static void vote(struct rig *r, uint32_t who, uint8_t flavour) {
	struct got g;
	struct report rep = rig_report(r, who, WORKER_VOTED);
	get(r, who, flavour, flavour, &g);
	rep.digest = g.digest;
	rig_send(r, who, &rep);
}

static enum rv_err show(struct rig *r, uint32_t who, uint8_t flavour, uint8_t signed_as) {
	struct got g;
	uint8_t key[NET_KEY_BYTES];
	get(r, who, flavour, signed_as, &g);
	rig_key(who, key);
	const enum rv_err err = core_testify(r->core, r->now_us, key, &g.evidence, NULL);
	rig_pump(r);
	return err;
}

static void setup(struct rig *r, int n) {
	rig_init(r, 2);
	r->cfg.max_here = r->cfg.max_roster = n;
	r->cfg.row_size = ROW;
	r->cfg.seals = rig_seals();
	rig_start(r);
	rig_join(r, n);
	rig_say_all(r, n, WORKER_TRAINING);
	rig_say_all(r, n, WORKER_READY);
	rig_say_all(r, n, WORKER_REDUCING);
	rig_expect(r, RUN_REDUCE, 0, 1);
	read_views(r, n);
	assert_int_equal(views[0].n_rows, n / ROW);
}

/* Those that are asked, but for the owners of chunk ODD, show what they voted for: rows from the
 * second on have flavour 1. */
static void voters_show(struct rig *r) {
	const struct document d = *rig_doc(r);
	assert_int_equal(d.n_asked, 2);
	for (int k = 0; k < 2; k++) {
		const uint32_t who = d.asked[k];
		assert_ok(show(r, who, views[who].row > 0, views[who].row > 0));
	}
}

/* ---- two rows ---- */

/* ODD is odd: the final owner is in the second row. */
static void test_a_final_owner_that_gave_two_rows_two_means_is_banned(void **state) {
	(void)state;
	struct rig r;
	setup(&r, TWO_ROWS);
	const uint32_t owner[2] = {owner_for(of_row(TWO_ROWS, 0)), owner_for(of_row(TWO_ROWS, 1))};
	for (uint32_t i = 0; i < TWO_ROWS; i++)
		vote(&r, i, views[i].row);
	voters_show(&r);
	for (int k = 0; k < 2; k++)
		assert_true(document_asks(rig_doc(&r), owner[k]));
	assert_ok(show(&r, owner[0], 0, 0));
	assert_ok(show(&r, owner[1], 1, 1));
	assert_true(rig_view(&r, owner[1]).banned);
	assert_int_equal(rig_doc(&r)->n_proofs, 1);
	assert_int_equal(rig_doc(&r)->proofs[0].member, owner[1]);
	assert_int_equal(rig_doc(&r)->proofs[0].scope.kind, SEAL_COLUMN);
	rig_expect(&r, RUN_REDUCE, 0, 2);
	for (uint32_t i = 0; i < TWO_ROWS; i++)
		assert_true(rig_view(&r, i).banned == (i == owner[1]));
	rig_release(&r);
}

/* It gives its row another mean than the final owner gave it. */
static void test_an_owner_that_made_a_mean_up_is_put_away(void **state) {
	(void)state;
	struct rig r;
	setup(&r, TWO_ROWS);
	const uint32_t liar = owner_for(of_row(TWO_ROWS, 0)), final = owner_for(of_row(TWO_ROWS, 1));
	for (uint32_t i = 0; i < TWO_ROWS; i++)
		vote(&r, i, views[i].row == 0);
	const struct document d = *rig_doc(&r);
	for (int k = 0; k < d.n_asked; k++)
		assert_ok(show(&r, d.asked[k], views[d.asked[k]].row == 0, 0));
	assert_true(document_asks(rig_doc(&r), liar));
	assert_ok(show(&r, final, 0, 0));
	assert_int_equal(show(&r, liar, 1, 0), RV_E_INVALID);
	assert_true(rig_saw(&r, CORE_EVENT_FALSE_VOTE, liar));
	assert_int_equal(rig_doc(&r)->n_proofs, 0);
	assert_int_equal(rig_doc(&r)->round, 0);
	rig_release(&r);
}

/* It votes for a third list than those that it gave out, and shows that. */
static void test_an_owner_that_shows_another_list_than_it_gave_has_signed_both(void **state) {
	(void)state;
	struct rig r;
	setup(&r, TWO_ROWS);
	const uint32_t liar = owner_for(of_row(TWO_ROWS, 1));
	assert_true(liar != of_row(TWO_ROWS, 1)); /* another one of its row is asked */
	for (uint32_t i = 0; i < TWO_ROWS; i++)
		vote(&r, i, i == liar ? 2 : views[i].row);
	voters_show(&r);
	assert_true(document_asks(rig_doc(&r), liar));
	assert_ok(show(&r, liar, 2, 2));
	assert_true(rig_view(&r, liar).banned);
	assert_int_equal(rig_doc(&r)->proofs[0].scope.kind, SEAL_ROW);
	rig_release(&r);
}

/* It gives its own row what it has signed, and the other one something else; then it says nothing,
 * or votes for what it cannot show, so that it is not asked. What the others show suffices. */
static void test_a_final_owner_that_shows_nothing_is_banned_by_what_others_show(void **state) {
	(void)state;
	for (int votes = 0; votes < 2; votes++) {
		struct rig r;
		setup(&r, TWO_ROWS);
		const uint32_t owner = owner_for(of_row(TWO_ROWS, 0)), final = owner_for(of_row(TWO_ROWS, 1));
		for (uint32_t i = 0; i < TWO_ROWS; i++)
			if (i != final)
				vote(&r, i, views[i].row);
		voters_show(&r);
		if (votes)
			vote(&r, final, 2);
		while (document_asks(rig_doc(&r), final))
			assert_int_equal(show(&r, final, 1, 1), RV_E_INVALID);
		for (int k = 0; k < 2 && !document_asks(rig_doc(&r), owner); k++)
			voters_show(&r);
		assert_ok(show(&r, owner, 0, 0));
		assert_true(rig_saw(&r, CORE_EVENT_EQUIVOCATED, final));
		assert_true(rig_view(&r, final).banned);
		rig_expect(&r, RUN_REDUCE, 0, 2);
		for (uint32_t i = 0; i < TWO_ROWS; i++)
			assert_true(rig_view(&r, i).banned == (i == final));
		rig_release(&r);
	}
}

/* ---- three rows ---- */

/* One in the third row has got, and shown, another list than the majority. The owner that gave it
 * the chunk does not vote: it is waited for, then put away, and nothing is committed over it. */
static void test_an_owner_that_cannot_show_what_it_gave_is_put_away_before_a_majority_goes_on(void **state) {
	(void)state;
	struct rig r;
	setup(&r, THREE_ROWS);
	const uint32_t liar = owner_for(of_row(THREE_ROWS, 2));
	uint32_t victim = of_row(THREE_ROWS, 2);
	while (victim == liar || views[victim].row != 2)
		victim++;
	for (uint32_t i = 0; i < THREE_ROWS; i++)
		if (views[i].row < 2)
			vote(&r, i, 0);
	vote(&r, victim, 1);
	const struct document d = *rig_doc(&r);
	assert_int_equal(d.n_asked, 2);
	for (int k = 0; k < 2; k++)
		assert_ok(show(&r, d.asked[k], d.asked[k] == victim, d.asked[k] == victim));
	rig_expect(&r, RUN_REDUCE, 0, 1); /* it may vote yet */
	for (int s = 0; s < 8 && rig_doc(&r)->attempt == 1; s++)
		rig_wait(&r, RIG_S);
	rig_expect(&r, RUN_REDUCE, 0, 2);
	assert_true(rig_saw(&r, CORE_EVENT_NO_EVIDENCE, liar));
	assert_int_equal(rig_doc(&r)->n_proofs, 0);
	for (uint32_t i = 0; i < THREE_ROWS; i++)
		assert_false(rig_view(&r, i).banned); /* nor is the final owner, of which nothing was shown */
	for (int i = 0; i < THREE_ROWS; i++)
		if ((uint32_t)i != liar) {
			read_views(&r, THREE_ROWS);
			assert_int_equal(document_find(&views[i], liar), -1);
		}
	rig_release(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_final_owner_that_gave_two_rows_two_means_is_banned),
		cmocka_unit_test(test_an_owner_that_made_a_mean_up_is_put_away),
		cmocka_unit_test(test_an_owner_that_shows_another_list_than_it_gave_has_signed_both),
		cmocka_unit_test(test_a_final_owner_that_shows_nothing_is_banned_by_what_others_show),
		cmocka_unit_test(test_an_owner_that_cannot_show_what_it_gave_is_put_away_before_a_majority_goes_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
