/* Rosters of several rows: who owns what, what a death costs, rows that fail, and the documents
 * that each member gets. Every document is encoded, decoded and checked against the others'. */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "coordinator/core/rows.h"
#include "coordinator/core/set.h"
#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"

enum { MANY = 160, GRID = 20, ROW = 4, CHUNKS = 12 };

static struct document views[MANY];

/* ---- the layout ---- */

/* Each column is owned once in each row that is in the mean, by few enough. */
static void check_rows(const struct core_rows *r, int n, uint32_t n_chunks) {
	const struct rows_plan *p = &r->plan;
	uint32_t next = 0, owned = 0;
	int rows = 0;
	assert_int_equal(p->first[0], 0);
	assert_int_equal(p->first[p->n_rows], n);
	for (int row = 0; row < p->n_rows; row++)
		rows += core_rows_length(r, row) > 0;
	for (int j = 0; j < p->n_columns; j++) {
		assert_int_equal(p->columns[j].first, next);
		next += p->columns[j].count;
		for (int row = 0; row < p->n_rows; row++)
			assert_true(core_rows_length(r, row) == 0 || p->columns[j].owner[row] < core_rows_length(r, row));
	}
	assert_int_equal(next, n_chunks);
	for (int i = 0; i < n; i++) {
		int row = core_rows_row_of(r, i), columns = 0;
		for (int j = 0; j < p->n_columns; j++)
			columns += p->columns[j].owner[row] == i - p->first[row];
		assert_in_range(columns, 0, rows_most_owned(p->n_rows));
		owned += core_rows_owned(r, i);
	}
	assert_int_equal(owned, (uint32_t)rows * n_chunks);
}

/* Half of the deaths come one by one, the others several at once. */
static void test_layouts_survive_deaths(void **state) {
	(void)state;
	struct rv_rng rng = rv_rng_of(18, 1);
	static const uint64_t relayed[SET_WORDS(NET_MAX_ROSTER)];
	static uint64_t rates[NET_MAX_ROSTER];
	for (int i = 0; i < NET_MAX_ROSTER; i++)
		rates[i] = rv_rng_below(&rng, 5) * 1000000;
	for (int turn = 0; turn < 300; turn++) {
		int n = 5 + (int)rv_rng_below(&rng, turn < 20 ? 1019 : 200), size = 2 + (int)rv_rng_below(&rng, 63);
		uint32_t n_chunks = 1 + (uint32_t)rv_rng_below(&rng, 300), attempt = 1;
		uint64_t owners[SET_WORDS(NET_MAX_ROSTER)], keep[SET_WORDS(NET_MAX_ROSTER)];
		const struct core_lines lines = {owners, relayed, turn % 2 ? rates : NULL};
		struct core_rows r;
		for (int w = 0; w < SET_WORDS(NET_MAX_ROSTER); w++)
			owners[w] = rv_rng_u64(&rng) | rv_rng_u64(&rng);
		core_rows_lay_out(&r, n, size, n_chunks, &lines, attempt);
		while (core_rows_many(&r) && attempt++ < 12) {
			const struct core_rows before = r;
			check_rows(&r, n, n_chunks);
			set_first(keep, n, SET_WORDS(NET_MAX_ROSTER));
			for (uint64_t deaths = rv_rng_below(&rng, 1 + (uint64_t)n / 4) + 1; deaths > 0; deaths--)
				set_drop(keep, (uint32_t)rv_rng_below(&rng, (uint64_t)n));
			core_rows_drop_failed(&r, keep);
			int left = set_count(keep, SET_WORDS(NET_MAX_ROSTER));
			if (left == 0)
				break;
			core_rows_keep(&r, keep, keep, attempt);
			n = left;
			for (int row = 0; row < r.plan.n_rows; row++) {
				bool same = core_rows_length(&r, row) == core_rows_length(&before, row);
				assert_int_equal(r.plan.since[row], same ? before.plan.since[row] : attempt);
			}
		}
	}
}

/* ---- in the core ---- */

static void open_grid(struct rig *r, int n, uint32_t min_workers) {
	rig_init(r, min_workers);
	r->cfg.max_here = r->cfg.max_roster = MANY;
	r->cfg.row_size = ROW;
	rig_start(r);
	rig_join(r, n);
	rig_say_all(r, n, WORKER_TRAINING);
}

/* Reads the documents of members 0..n-1, as they travel. */
static void read_views(const struct rig *r, int n) {
	static uint8_t bytes[NET_MAX_DOCUMENT_BYTES];
	static struct document d;
	struct rv_errtext et = {0};
	for (int i = 0; i < n; i++) {
		struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
		assert_true(core_document_of(r->core, (uint32_t)core_find(r->core, (uint32_t)i), &d));
		document_encode(&d, CONTROL_VERSION, &w);
		assert_false(w.failed);
		if (document_decode(bytes, rv_writer_len(&w), &views[i], &et) != RV_OK)
			fail_msg("member %d: %s", i, et.text);
		assert_int_equal(views[i].seq, rig_doc(r)->seq);
	}
}

/* What a participant says of itself as an owner is what its row and its columns say of it. */
static void check_agreement(int n) {
	for (int i = 0; i < n; i++) {
		const struct document *d = &views[i];
		if (document_find(d, (uint32_t)i) < 0)
			continue;
		for (int k = 0; k < d->n_members; k++) {
			const struct document *mate = &views[d->members[k].member];
			assert_int_equal(mate->row, d->row);
			assert_memory_equal(mate->ranges, d->ranges, d->n_ranges * sizeof d->ranges[0]);
		}
		for (int k = 0; k < d->n_column; k++) { /* they meet each other */
			const struct document *other = &views[d->column[k].member];
			bool meets = false;
			for (int m = 0; m < other->n_column; m++)
				meets |= other->column[m].member == (uint32_t)i;
			assert_true(meets);
			assert_int_equal(other->row, d->column[k].row);
		}
		assert_memory_equal(d->row_since, views[0].row_since, d->n_rows * sizeof d->row_since[0]);
		assert_memory_equal(d->row_weights, views[0].row_weights, d->n_rows * sizeof d->row_weights[0]);
	}
}

static void reduce_round(struct rig *r, int n, uint64_t round) {
	rig_say_all(r, n, WORKER_READY);
	rig_expect(r, RUN_REDUCE, round, 1);
	rig_say_all(r, n, WORKER_REDUCING);
}

static void reduce(struct rig *r, int n) {
	reduce_round(r, n, 0);
}

static void test_a_round_of_rows(void **state) {
	(void)state;
	struct rig r;
	open_grid(&r, GRID, GRID);
	reduce(&r, GRID);
	assert_int_equal(rig_last(&r, CORE_ROSTER)->n_members, GRID);
	read_views(&r, GRID);
	check_agreement(GRID);
	for (int i = 0; i < GRID; i++) {
		assert_int_equal(views[i].n_rows, GRID / ROW);
		assert_int_equal(views[i].n_roster, GRID);
		assert_int_equal(views[i].n_members, ROW);
		assert_int_equal(views[i].n_sections, 1);
		assert_int_equal(views[i].n_column, GRID / ROW - 1);
		assert_true(document_find(&views[i], (uint32_t)i) >= 0);
	}
	rig_say_all(&r, GRID, WORKER_VOTED);
	rig_expect(&r, RUN_OPEN, 1, 0);
	rig_release(&r);
}

/* Far more lack the state than a document lists: each participant has its row and its columns, as
 * many of the others as there is room for, and in other rounds the rest of them. */
static void test_many_that_are_behind(void **state) {
	(void)state;
	enum { BEHIND = 120 };
	struct rig r;
	bool listed[GRID + BEHIND] = {false};
	rig_init(&r, GRID);
	r.cfg.max_here = MANY;
	r.cfg.max_roster = GRID;
	r.cfg.row_size = ROW;
	rig_start(&r);
	rig_join(&r, GRID + BEHIND);
	for (int round = 0; round < 3; round++) {
		rig_say_all(&r, GRID, WORKER_TRAINING);
		for (uint32_t who = GRID; who < GRID + BEHIND; who++)
			rig_say(&r, who, WORKER_SYNCING);
		reduce_round(&r, GRID, (uint64_t)round);
		read_views(&r, GRID + BEHIND);
		check_agreement(GRID);
		for (int i = 0; i < GRID; i++) {
			assert_true(document_find(&views[i], (uint32_t)i) >= 0);
			assert_true(views[i].n_members == ROW && views[i].n_sections == 1 && views[i].n_column == GRID / ROW - 1);
			assert_int_equal(views[i].n_syncing, NET_MAX_SYNCING);
			for (int k = 0; k < views[i].n_syncing; k++)
				listed[views[i].syncing[k].member] = true;
		}
		rig_say_all(&r, GRID, WORKER_VOTED);
		rig_expect(&r, RUN_OPEN, (uint64_t)round + 1, 0);
	}
	for (int i = GRID; i < GRID + BEHIND; i++)
		assert_true(listed[i]);
	rig_release(&r);
}

/* Its row begins anew; the other rows' partial sums stay valid, and their weights too. */
static void test_a_death_costs_its_row(void **state) {
	(void)state;
	struct rig r;
	open_grid(&r, GRID, 10);
	reduce(&r, GRID);
	for (uint32_t who = 4; who < 8; who++) { /* row 1 accuses its member 5, at place 5 */
		struct report rep = rig_report(&r, who, WORKER_REDUCING);
		rig_accuse(&rep, UINT64_C(1) << 5);
		if (who != 5)
			rig_send(&r, who, &rep);
	}
	rig_wait(&r, 2 * RIG_S);
	rig_expect(&r, RUN_REDUCE, 0, 2);
	assert_int_equal(rig_last(&r, CORE_ROSTER)->n_members, GRID - 1);
	read_views(&r, GRID);
	check_agreement(GRID);
	for (int row = 0; row < GRID / ROW; row++) {
		assert_int_equal(views[0].row_since[row], row == 1 ? 2 : 1);
		assert_int_equal(views[0].row_weights[row], row == 1 ? ROW - 1 : ROW);
	}
	int sections = 0;
	for (int i = 4; i < 8; i++)
		sections += i != 5 ? views[i].n_sections : 0;
	assert_int_equal(sections, ROW); /* one of the three has the dead one's column, whole */
	assert_true(document_find(&views[5], 5) < 0);
	assert_int_equal(views[5].n_sections, 0);
	for (int i = 0; i < GRID; i++)
		if (i != 5)
			rig_say(&r, (uint32_t)i, WORKER_VOTED);
	rig_expect(&r, RUN_OPEN, 1, 0);
	rig_release(&r);
}

/* All report whom they suspect but those in `silent`. */
static void accuse_all(struct rig *r, const uint64_t *suspects, uint64_t silent) {
	rig_wait(r, RIG_S);
	for (uint32_t who = 0; who < GRID; who++) {
		struct report rep = rig_report(r, who, WORKER_REDUCING);
		rig_accuse(&rep, suspects[who]);
		if (!(silent >> who & 1))
			rig_send(r, who, &rep);
	}
	rig_wait(r, 2 * RIG_S);
}

/* In rows 1 and 3 one has died: accused by all with whom it deals, or by five of seven. Both are
 * put away in one attempt; two of one column are not, as one may stall for want of the other's
 * data. */
static void test_deaths_in_several_rows_cost_one_attempt(void **state) {
	(void)state;
	const uint64_t first = UINT64_C(1) << 5;
	for (int same_column = 0; same_column < 2; same_column++) {
		const uint32_t at = same_column ? 13 : 14, column = at % ROW;
		const uint64_t second = UINT64_C(1) << at;
		uint64_t suspects[GRID] = {0};
		struct rig r;
		open_grid(&r, GRID, 10);
		reduce(&r, GRID);
		for (uint32_t who = 0; who < GRID; who++) {
			suspects[who] |= who / ROW == 1 || who % ROW == 1 ? first : 0;
			suspects[who] |= who / ROW == 3 || who == column || who == 2 * ROW + column ? second : 0;
			suspects[who] &= ~(UINT64_C(1) << who);
		}
		accuse_all(&r, suspects, UINT64_C(1) << 5 | UINT64_C(1) << 14);
		rig_expect(&r, RUN_REDUCE, 0, 2);
		assert_int_equal(rig_last(&r, CORE_ROSTER)->n_members, same_column ? GRID - 1 : GRID - 2);
		for (int i = 0; i < rig_last(&r, CORE_ROSTER)->n_members; i++)
			assert_int_not_equal(rig_last(&r, CORE_ROSTER)->members[i], 5);
		rig_release(&r);
	}
}

/* The owners of column 1 in rows 1, 3 and 4 have died: each is accused by all others that deal with
 * it but for those, in rows of other lengths by another number. */
static void test_deaths_in_one_column_cost_one_attempt(void **state) {
	(void)state;
	enum { PLACES = GRID - 1 }; /* the last row is shorter */
	const uint64_t dead = UINT64_C(1) << 5 | UINT64_C(1) << 13 | UINT64_C(1) << 17;
	uint64_t suspects[GRID] = {0};
	struct rig r;
	open_grid(&r, PLACES, 10);
	reduce(&r, PLACES);
	assert_int_equal(rig_last(&r, CORE_ROSTER)->n_members, PLACES);
	for (uint32_t who = 0; who < PLACES; who++)
		for (uint32_t other = 0; other < PLACES; other++)
			if (dead >> other & 1 && other != who && (who / ROW == other / ROW || who % ROW == other % ROW))
				suspects[who] |= UINT64_C(1) << other;
	accuse_all(&r, suspects, dead | UINT64_C(1) << PLACES);
	rig_expect(&r, RUN_REDUCE, 0, 2);
	assert_int_equal(rig_last(&r, CORE_ROSTER)->n_members, PLACES - 3);
	for (int i = 0; i < PLACES - 3; i++)
		assert_false(dead >> rig_last(&r, CORE_ROSTER)->members[i] & 1);
	rig_release(&r);
}

/* One liar in each row accuses everybody else, over and over: of strangers that counts for nothing,
 * and against their rows they stand alone. All others go on. */
static void test_liars_in_many_rows_put_nobody_away(void **state) {
	(void)state;
	enum { EACH = ROW - 1, HONEST = GRID - GRID / ROW };
	struct rig r;
	open_grid(&r, GRID, 2);
	reduce(&r, GRID);
	for (int k = 0; k < 20 && rig_last(&r, CORE_ROSTER)->n_members == GRID; k++) {
		for (uint32_t i = 0; i < GRID; i++) {
			struct report rep = rig_report(&r, i, WORKER_REDUCING);
			uint64_t all = 0;
			for (int place = 0; place < GRID; place++)
				all |= (uint64_t)(place % ROW != EACH) << place;
			if (i % ROW == EACH)
				rig_accuse(&rep, all);
			rig_send(&r, i, &rep);
		}
		rig_wait(&r, RIG_S / 2);
	}
	const struct core_record *roster = rig_last(&r, CORE_ROSTER);
	assert_int_equal(roster->n_members, HONEST);
	for (int i = 0; i < HONEST; i++)
		assert_int_not_equal(roster->members[i] % ROW, EACH);
	rig_release(&r);
}

struct toll {
	int attempts, honest_lost;
};

/* A round in which the liar, if it is on the roster, accuses one of its row alone, the next one in
 * each round, or the owner of its column in another row; all others vote. */
static void lie_once(struct rig *r, uint32_t liar, int *turn, struct toll *toll) {
	const uint64_t round = rig_doc(r)->round;
	rig_say_all(r, GRID, WORKER_TRAINING);
	rig_say_all(r, GRID, WORKER_READY);
	rig_expect(r, RUN_REDUCE, round, 1);
	rig_say_all(r, GRID, WORKER_REDUCING);
	read_views(r, GRID);
	const struct document *d = &views[liar];
	if (document_find(d, liar) >= 0) {
		const int n = d->n_members + d->n_column, at = (*turn)++ % n;
		const struct member_ref *whom = at < d->n_members ? &d->members[at] : &d->column[at - d->n_members];
		struct report rep = rig_report(r, liar, WORKER_REDUCING);
		rig_accuse(&rep, whom->member != liar ? UINT64_C(1) << whom->place : 0);
		rig_send(r, liar, &rep);
	}
	for (int k = 0; k < 4; k++) {
		rig_wait(r, RIG_S);
		for (uint32_t i = 0; i < GRID; i++)
			if (i != liar)
				rig_say(r, i, WORKER_REDUCING);
	}
	toll->attempts += (int)rig_doc(r)->attempt - 1;
	const struct core_record *roster = rig_last(r, CORE_ROSTER);
	uint64_t in = 0;
	for (int i = 0; i < roster->n_members; i++)
		in |= UINT64_C(1) << roster->members[i];
	toll->honest_lost += GRID - 1 - __builtin_popcountll(in & ~(UINT64_C(1) << liar));
	for (uint32_t i = 0; i < GRID && rig_doc(r)->round == round; i++)
		if (in >> i & 1)
			rig_say(r, i, WORKER_VOTED);
	rig_expect(r, RUN_OPEN, round + 1, 0);
}

/* It costs an attempt for each of a few others that it accuses, and then stays out for longer and
 * longer; and it costs few of them their round. */
static void test_a_liar_that_accuses_one_after_the_other_costs_little(void **state) {
	(void)state;
	enum { ROUNDS = 60, LIAR = 6 };
	struct rig r;
	struct toll toll = {0};
	int turn = 0;
	rig_init(&r, 10);
	r.cfg.max_here = r.cfg.max_roster = MANY;
	r.cfg.row_size = ROW;
	r.cfg.final_round = ROUNDS + 1;
	rig_start(&r);
	rig_join(&r, GRID);
	for (int round = 0; round < ROUNDS; round++)
		lie_once(&r, LIAR, &turn, &toll);
	print_message("%d rounds with a liar: %d attempts more, %d rounds lost by others\n", ROUNDS, toll.attempts,
				  toll.honest_lost);
	assert_in_range(toll.attempts, 1, ROUNDS / 3);
	assert_in_range(toll.honest_lost, 0, 4);
	rig_release(&r);
}

/* ---- one that withholds partial sums ---- */

enum { FOUR = 4 };

/* A round of four in rows of two, in which the owner of its column in the other row gets nothing
 * from member `bad`, and accuses it. Returns the attempts. */
static int withhold_from_a_column(struct rig *r, uint32_t bad) {
	const uint64_t round = rig_doc(r)->round;
	rig_say_all(r, FOUR, WORKER_TRAINING);
	rig_say_all(r, FOUR, WORKER_READY);
	rig_wait(r, RIG_S); /* it may be excluded */
	rig_expect(r, RUN_REDUCE, round, 1);
	rig_say_all(r, FOUR, WORKER_REDUCING);
	read_views(r, FOUR);
	const struct document *d = &views[bad];
	if (document_find(d, bad) >= 0 && d->n_column > 0) {
		const uint32_t by = d->column[0].member != bad ? d->column[0].member : d->column[1].member;
		struct report rep = rig_report(r, by, WORKER_REDUCING);
		rig_accuse(&rep, UINT64_C(1) << d->members[document_find(d, bad)].place);
		rig_send(r, by, &rep);
		rig_wait(r, 4 * RIG_S);
	}
	const int attempts = (int)rig_doc(r)->attempt;
	for (uint32_t i = 0; i < FOUR && rig_doc(r)->round == round; i++)
		rig_say(r, i, WORKER_VOTED);
	rig_expect(r, RUN_OPEN, round + 1, 0);
	return attempts;
}

/* Each accuser is alone. With most others it is at odds soon, the same ones again and again. */
static void test_one_that_is_at_odds_with_most_stays_out(void **state) {
	(void)state;
	enum { ROUNDS = 40, BAD = 1 };
	struct rig r;
	int more = 0;
	rig_init(&r, 3);
	r.cfg.max_here = r.cfg.max_roster = MANY;
	r.cfg.row_size = 2;
	r.cfg.final_round = ROUNDS + 1;
	rig_start(&r);
	rig_join(&r, FOUR);
	for (int round = 0; round < ROUNDS; round++)
		more += withhold_from_a_column(&r, BAD) - 1;
	print_message("%d rounds with one that withholds partial sums: %d attempts more\n", ROUNDS, more);
	assert_in_range(more, 1, ROUNDS / 4);
	rig_release(&r);
}

/* ---- columns stay with their owners ---- */

enum { WIDE = 240 };

/* Returns the member that encodes the mean of a chunk, when all rows are in it. */
static uint32_t encoder(int n, uint32_t chunk) {
	for (int i = 0; i < n; i++) {
		const struct document *d = &views[i];
		if (document_find(d, (uint32_t)i) < 0 || d->row != chunk % d->n_rows)
			continue;
		for (int k = 0; k < d->n_sections; k++)
			if (chunk - d->sections[k].first < d->sections[k].count)
				return (uint32_t)i;
	}
	fail_msg("chunk %u has no owner", chunk);
	return 0;
}

struct columns {
	uint32_t encoder[WIDE];
	int n_rows, n_columns;
};

/* A round of all below n but `absent`; their columns. */
static void round_without(struct rig *r, int n, uint64_t absent, struct columns *out) {
	const uint64_t round = rig_doc(r)->round;
	for (int pass = 0; rig_doc(r)->phase != RUN_REDUCE && pass < 20; pass++) {
		for (int i = 0; i < n; i++)
			if (!(absent >> i & 1))
				rig_say(r, (uint32_t)i, pass == 0 ? WORKER_TRAINING : WORKER_READY);
		rig_wait(r, RIG_S);
	}
	rig_expect(r, RUN_REDUCE, round, 1);
	read_views(r, n);
	check_agreement(n);
	for (uint32_t c = 0; c < WIDE; c++)
		out->encoder[c] = encoder(n, c);
	for (int i = 0; i < n; i++)
		if (!(absent >> i & 1)) {
			out->n_rows = views[i].n_rows;
			out->n_columns = views[i].n_ranges;
		}
	for (int i = 0; i < n; i++)
		if (!(absent >> i & 1))
			rig_say(r, (uint32_t)i, WORKER_VOTED);
	rig_expect(r, RUN_OPEN, round + 1, 0);
}

/* In each of fifty rounds another one of 60 members is away, or two are: where rows and columns are
 * as many as before, only those chunks are encoded by another member whose owner is away, or which
 * went to one that is back; a coordinator that starts again goes on so. */
static void test_columns_stay_with_their_owners(void **state) {
	(void)state;
	enum { MEMBERS = 60, ROUNDS = 50 };
	struct rv_rng rng = rv_rng_of(55, 1);
	static struct columns before, now;
	int moved = 0, must = 0, anew = 0;
	struct rig r;
	rig_init(&r, 10);
	r.cfg.max_here = r.cfg.max_roster = MANY;
	r.cfg.row_size = ROW + 4;
	r.cfg.keeps_owners = true;
	r.cfg.n_chunks[0] = WIDE;
	r.cfg.final_round = ROUNDS + 2;
	rig_start(&r);
	rig_join(&r, MEMBERS);
	round_without(&r, MEMBERS, 0, &before);
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t absent = UINT64_C(1) << rv_rng_below(&rng, MEMBERS);
		absent |= rv_rng_below(&rng, 2) == 0 ? UINT64_C(1) << rv_rng_below(&rng, MEMBERS) : 0;
		round_without(&r, MEMBERS, absent, &now);
		const bool same = now.n_rows == before.n_rows && now.n_columns == before.n_columns;
		anew += !same;
		for (int c = 0; c < WIDE && same; c++) {
			moved += now.encoder[c] != before.encoder[c];
			must += (absent >> before.encoder[c] & 1) != 0;
		}
		if (round == ROUNDS / 2)
			rig_restart(&r);
		before = now;
	}
	print_message("%d rounds, %d with other columns: of %d chunks each %d changed their encoder, %d had to\n", ROUNDS,
				  anew, WIDE, moved, must);
	assert_in_range(moved, must, 2 * must);
	rig_release(&r);
}

static uint64_t line_of(uint32_t i) {
	return i >= GRID - GRID / ROW ? 8000000 : 2000000;
}

static void ready_with_lines(struct rig *r) {
	for (uint32_t i = 0; i < GRID; i++) {
		struct report rep = rig_report(r, i, WORKER_READY);
		rep.up_bytes_per_s = rep.down_bytes_per_s = line_of(i);
		rep.n_receipts = GRID;
		for (uint32_t of = 0; of < GRID; of++)
			rep.receipts[of] = (struct report_receipt){of, receipt_band(line_of(of))};
		rig_send(r, i, &rep);
	}
}

/* The last five members have lines four times as fast: each row gets one of them, with its widest
 * column. */
static void test_lines_are_dealt(void **state) {
	(void)state;
	struct rig r;
	open_grid(&r, GRID, GRID);
	ready_with_lines(&r);
	rig_expect(&r, RUN_REDUCE, 0, 1);
	uint32_t members[GRID];
	memcpy(members, rig_last(&r, CORE_ROSTER)->members, sizeof members);
	read_views(&r, GRID);
	check_agreement(GRID);
	for (uint32_t i = 0; i < GRID; i++) {
		const struct document *d = &views[i];
		assert_true(d->members[0].member >= GRID - GRID / ROW && d->members[1].member < GRID - GRID / ROW);
		assert_int_equal(d->ranges[0].owner, 0);
		for (int j = 1; j < d->n_ranges; j++)
			assert_true(d->ranges[j].count < d->ranges[0].count);
	}
	rig_restart(&r);
	read_views(&r, GRID);
	for (uint32_t place = 0; place < GRID; place++)
		assert_int_equal(views[members[place]].members[place % ROW].member, members[place]);
	for (uint32_t i = 0; i < GRID; i++)
		rig_say(&r, i, WORKER_VOTED);
	rig_expect(&r, RUN_OPEN, 1, 0);
	ready_with_lines(&r); /* links last: everybody stays */
	assert_memory_equal(rig_last(&r, CORE_ROSTER)->members, members, sizeof members);
	rig_release(&r);
}

static void test_equal_ownership_keeps_rows_by_number(void **state) {
	(void)state;
	struct rig r;
	rig_init(&r, GRID);
	r.cfg.max_here = r.cfg.max_roster = MANY;
	r.cfg.row_size = ROW;
	r.cfg.equal_ownership = true;
	rig_start(&r);
	rig_join(&r, GRID);
	rig_say_all(&r, GRID, WORKER_TRAINING);
	ready_with_lines(&r);
	for (uint32_t i = 0; i < GRID; i++)
		assert_int_equal(rig_last(&r, CORE_ROSTER)->members[i], i);
	rig_release(&r);
}

/* One member says that it reaches nobody but one, or nobody of some rows: others lose nothing. */
static void test_one_that_says_it_is_apart_costs_itself(void **state) {
	(void)state;
	for (int spared = 1; spared < GRID; spared += 4) {
		struct rig r;
		open_grid(&r, GRID, 10);
		for (uint32_t i = 0; i < GRID; i++) {
			struct report rep = rig_report(&r, i, WORKER_READY);
			for (uint32_t k = 0; i == GRID - 1 && k < GRID - (uint32_t)spared; k++)
				report_add_path(&rep, k, PATH_APART);
			rig_send(&r, i, &rep);
		}
		rig_expect(&r, RUN_REDUCE, 0, 1);
		read_views(&r, GRID);
		check_agreement(GRID - 1);
		assert_in_range(views[0].n_ranges, ROW - 1, ROW); /* without it, a row may be one shorter */
		assert_int_equal(views[GRID - 1].n_sections, 0);
		int owners = 0;
		for (int i = 0; i < GRID - 1; i++)
			owners += views[i].n_sections > 0;
		assert_true(owners >= views[0].n_ranges * GRID / ROW);
		rig_release(&r);
	}
}

/* Three of four are gone: the fourth is not blamed and keeps its progress, the others go on. */
static void test_a_row_that_fails_is_out_of_the_mean(void **state) {
	(void)state;
	struct rig r;
	open_grid(&r, GRID, 10);
	reduce(&r, GRID);
	for (uint32_t who = 8; who < 11; who++)
		rig_say(&r, who, WORKER_LEAVING);
	rig_expect(&r, RUN_REDUCE, 0, rig_doc(&r)->attempt);
	assert_int_equal(rig_last(&r, CORE_ROSTER)->n_members, GRID - ROW);
	assert_int_equal(rig_last(&r, CORE_ROSTER)->n_blamed, 0);
	read_views(&r, GRID);
	check_agreement(8);
	assert_int_equal(views[0].n_rows, GRID / ROW);
	assert_int_equal(views[0].row_weights[2], 0);
	assert_true(document_find(&views[11], 11) < 0);
	assert_true(views[11].n_members > 0 && views[11].row != 2);
	for (int i = 0; i < GRID; i++)
		if (i / ROW != 2)
			rig_say(&r, (uint32_t)i, WORKER_VOTED);
	rig_expect(&r, RUN_OPEN, 1, 0);
	rig_release(&r);
}

static void test_a_restart_lays_out_the_same(void **state) {
	(void)state;
	struct rig r;
	static struct document before[GRID];
	open_grid(&r, GRID, 10);
	reduce(&r, GRID);
	rig_say(&r, 7, WORKER_LEAVING);
	rig_expect(&r, RUN_REDUCE, 0, 2);
	read_views(&r, GRID);
	memcpy(before, views, sizeof before);
	rig_restart(&r);
	read_views(&r, GRID);
	for (int i = 0; i < GRID; i++) {
		assert_int_equal(views[i].row, before[i].row);
		assert_int_equal(views[i].n_sections, before[i].n_sections);
		assert_memory_equal(views[i].sections, before[i].sections, before[i].n_sections * sizeof before[i].sections[0]);
		assert_memory_equal(views[i].row_since, before[i].row_since, sizeof before[i].row_since[0] * (GRID / ROW));
		assert_memory_equal(views[i].row_weights, before[i].row_weights,
							sizeof before[i].row_weights[0] * (GRID / ROW));
	}
	rig_release(&r);
}

/* More members than a document lists: each has a few donors, and these list it. */
static void test_donors_are_spread(void **state) {
	(void)state;
	struct rig r;
	int listed[MANY] = {0};
	open_grid(&r, MANY, 2);
	for (uint32_t who = 100; who < 110; who++) { /* behind */
		struct report rep = rig_report(&r, who, WORKER_SYNCING);
		rep.chain = rep.proven_chain = (struct rv_hash){0};
		rig_send(&r, who, &rep);
	}
	rig_wait(&r, RIG_S); /* lists are announced at a pace */
	read_views(&r, MANY);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(views[i].n_members, 16);
		for (int k = 0; k < views[i].n_members; k++)
			listed[views[i].members[k].member]++;
	}
	for (int i = 0; i < MANY; i++)
		assert_in_range(listed[i], i >= 100 && i < 110 ? 0 : 8, i >= 100 && i < 110 ? 0 : 32);
	for (int i = 100; i < 110; i++)
		for (int k = 0; k < views[i].n_members; k++) {
			const struct document *donor = &views[views[i].members[k].member];
			bool lists = false;
			for (int m = 0; m < donor->n_syncing; m++)
				lists |= donor->syncing[m].member == (uint32_t)i;
			assert_true(lists);
		}
	rig_release(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layouts_survive_deaths),
		cmocka_unit_test(test_a_round_of_rows),
		cmocka_unit_test(test_many_that_are_behind),
		cmocka_unit_test(test_a_death_costs_its_row),
		cmocka_unit_test(test_deaths_in_several_rows_cost_one_attempt),
		cmocka_unit_test(test_deaths_in_one_column_cost_one_attempt),
		cmocka_unit_test(test_a_row_that_fails_is_out_of_the_mean),
		cmocka_unit_test(test_a_restart_lays_out_the_same),
		cmocka_unit_test(test_a_liar_that_accuses_one_after_the_other_costs_little),
		cmocka_unit_test(test_one_that_is_at_odds_with_most_stays_out),
		cmocka_unit_test(test_columns_stay_with_their_owners),
		cmocka_unit_test(test_lines_are_dealt),
		cmocka_unit_test(test_equal_ownership_keeps_rows_by_number),
		cmocka_unit_test(test_one_that_says_it_is_apart_costs_itself),
		cmocka_unit_test(test_donors_are_spread),
		cmocka_unit_test(test_liars_in_many_rows_put_nobody_away),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
