/* Ownership from round to round: as few chunks as can be change their owner, shares stay near the
 * fair ones, and a restarted coordinator makes the same map. */
#include "base/rng.h"
#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"

#include "coordinator/core/internal.h"

enum { CHUNKS_MAX = 3000, MEMBERS = 100, STEPS = 300 };

/* ---- random histories ---- */

/* A run of `n_chunks`, members of which come and go; owner[c] is a member, or -1. */
struct history {
	struct rv_rng rng;
	uint32_t n_chunks;
	uint64_t rate[MEMBERS];
	bool here[MEMBERS];
	int owner[CHUNKS_MAX];
	struct owner_range ranges[NET_MAX_RANGES];
	uint16_t n_ranges;
	uint32_t members[NET_MAX_ROW]; /* the roster; `ranges` are by its places */
	int n;
};

static uint32_t below(struct history *h, uint64_t n) {
	return (uint32_t)rv_rng_below(&h->rng, n);
}

static void fill_roster(struct history *h) {
	h->n = 0;
	for (uint32_t m = 0; m < MEMBERS && h->n < NET_MAX_ROW; m++)
		if (h->here[m])
			h->members[h->n++] = m;
}

static int place_of(const struct history *h, int member) {
	for (int i = 0; i < h->n; i++)
		if ((int)h->members[i] == member)
			return i;
	return -1;
}

/* Some die, some come; the last one stays. */
static void change_members(struct history *h) {
	for (uint32_t changes = below(h, 4); changes > 0; changes--) {
		const uint32_t m = below(h, MEMBERS);
		h->here[m] = !h->here[m];
	}
	h->here[0] = true;
	fill_roster(h);
}

/* Lines as measured: up to a fifth off, and now and then one that is another one. */
static void measure(struct history *h, uint64_t *rates) {
	if (below(h, 10) == 0)
		h->rate[below(h, MEMBERS)] = 1000000 * (1 + below(h, 20));
	for (int i = 0; i < h->n; i++)
		rates[i] = h->rate[h->members[i]] * (80 + below(h, 41)) / 100;
}

static struct core_owners draw_owners(struct history *h) {
	const uint64_t most = core_first(h->n);
	uint64_t all = most, relayed = 0;
	if (h->n > 2 && below(h, 3) == 0)
		all &= ~core_bit(below(h, (uint64_t)h->n));
	if (core_count(all) > 1 && below(h, 3) == 0)
		relayed = all & ~(all & -all) & rv_rng_below(&h->rng, UINT64_MAX);
	return (struct core_owners){.all = all, .relayed = relayed};
}

/* Returns the fewest chunks that must change their owner: at least what is free, and what exceeds
 * its band; at least what others lack to theirs. */
static uint32_t least_moves(const uint32_t *fair, const uint32_t *owned, int n, uint32_t n_chunks) {
	uint32_t gains = 0, losses = n_chunks;
	for (int i = 0; i < n; i++) {
		const uint32_t band = core_kept_band(fair[i]), low = fair[i] > band ? fair[i] - band : 0, high = fair[i] + band;
		gains += owned[i] < low ? low - owned[i] : 0;
		losses -= owned[i] < high ? owned[i] : high;
	}
	return gains > losses ? gains : losses;
}

static uint32_t take_over(struct history *h) {
	uint32_t moved = 0;
	for (int i = 0; i < h->n_ranges; i++)
		for (uint32_t c = h->ranges[i].first; c < h->ranges[i].first + h->ranges[i].count; c++) {
			const int now = (int)h->members[h->ranges[i].owner];
			moved += h->owner[c] != now;
			h->owner[c] = now;
		}
	return moved;
}

/* Says the owners as ranges of places, CORE_NOBODY for those that own nothing now. */
static uint16_t old_ranges(const struct history *h, uint64_t owners, struct owner_range *old) {
	uint16_t n = 0;
	for (uint32_t c = 0; c < h->n_chunks; c++) {
		const int place = place_of(h, h->owner[c]);
		const uint16_t owner = place >= 0 && (owners & core_bit((uint32_t)place)) ? (uint16_t)place : CORE_NOBODY;
		assert_true(n < CORE_KEPT_RANGES);
		if (n == 0 || old[n - 1].owner != owner)
			old[n++] = (struct owner_range){.first = c, .owner = owner};
		old[n - 1].count++;
	}
	return n;
}

static void check_step(struct history *h) {
	static const uint32_t none[NET_MAX_ROW];
	static struct owner_range old[CORE_KEPT_RANGES];
	uint64_t rates[NET_MAX_ROW];
	uint32_t fair[NET_MAX_ROW], owned[NET_MAX_ROW], share[NET_MAX_ROW] = {0}, got[NET_MAX_ROW];
	change_members(h);
	measure(h, rates);
	const struct core_owners owners = draw_owners(h);
	const uint16_t n_old = old_ranges(h, owners.all, old);
	core_ownership_count(old, n_old, owned);
	core_shares(h->n_chunks, h->n, owners, rates, none, fair);
	core_kept_shares(h->n_chunks, h->n, fair, owned, share);
	h->n_ranges = core_kept_chunks(old, n_old, share, h->ranges);
	assert_in_range(h->n_ranges, 1, n_old + 2 * h->n);
	core_ownership_count(h->ranges, h->n_ranges, got);
	for (int i = 0; i < h->n; i++) {
		const uint32_t off = got[i] > fair[i] ? got[i] - fair[i] : fair[i] - got[i];
		assert_int_equal(got[i], share[i]);
		assert_true(off <= core_kept_band(fair[i]));
	}
	const uint32_t least = least_moves(fair, owned, h->n, h->n_chunks);
	assert_int_equal(take_over(h), least);
}

static void test_no_more_moves_than_must(void **state) {
	(void)state;
	static struct history h;
	for (uint64_t seed = 0; seed < 20; seed++) {
		uint16_t most = 0;
		h = (struct history){.rng = rv_rng_of(seed, 5), .here = {true}};
		h.n_chunks = 1 + below(&h, seed % 2 ? CHUNKS_MAX : 100);
		for (int m = 0; m < MEMBERS; m++)
			h.rate[m] = 1000000 * (10 + below(&h, seed % 3 ? 1 : 20));
		for (int m = 1; m < (int)(seed + 2); m++)
			h.here[m] = true;
		for (uint32_t c = 0; c < h.n_chunks; c++)
			h.owner[c] = -1;
		for (int step = 0; step < STEPS; step++) {
			check_step(&h);
			most = h.n_ranges > most ? h.n_ranges : most;
		}
		assert_true(most < CORE_KEPT_RANGES); /* 300 changes of the roster, and nothing was split anew */
	}
}

/* Noise of lines that are alike moves nothing. */
static void test_noise_moves_nothing(void **state) {
	(void)state;
	static struct history h;
	h = (struct history){.rng = rv_rng_of(3, 3), .n_chunks = 1000};
	uint32_t fair[NET_MAX_ROW], owned[NET_MAX_ROW], share[NET_MAX_ROW];
	for (int n = 2; n <= NET_MAX_ROW; n++) {
		for (int i = 0; i < n; i++)
			owned[i] = fair[i] = 1000 / (uint32_t)n + ((uint32_t)i < 1000 % (uint32_t)n);
		for (int i = 0; i + 1 < n; i += 2) {
			const uint32_t off = below(&h, 2 + 1000 / (uint32_t)n / CORE_KEPT_PART);
			owned[i] += off;
			owned[i + 1] -= off;
		}
		core_kept_shares(1000, n, fair, owned, share);
		assert_memory_equal(share, owned, (size_t)n * sizeof share[0]);
	}
}

/* ---- in the core: each record is replayed into a twin, which must make the same map ---- */

static void owners_now(const struct rig *r, uint32_t owner[RIG_CHUNKS]) {
	const struct document *d = rig_doc(r);
	for (int i = 0; i < d->n_ranges; i++)
		for (uint32_t c = 0; c < d->ranges[i].count; c++)
			owner[d->ranges[i].first + c] = d->members[d->ranges[i].owner].member;
}

static void freeze(struct rig *r, int n) {
	rig_say_all(r, n, WORKER_TRAINING);
	rig_say_all(r, n, WORKER_READY);
}

/* Four have three chunks each; one dies in round 1 and is back in round 2. */
static void death_and_return(struct rig *r, uint32_t at_first[RIG_CHUNKS], uint32_t without[RIG_CHUNKS],
							 uint32_t back[RIG_CHUNKS]) {
	freeze(r, 4);
	owners_now(r, at_first);
	rig_wait(r, 6 * RIG_S);
	for (uint32_t i = 0; i < 4; i++)
		if (i != 1)
			rig_say(r, i, WORKER_REDUCING);
	rig_wait(r, 4 * RIG_S);
	rig_expect(r, RUN_REDUCE, 1, 2);
	owners_now(r, without);
	for (uint32_t i = 0; i < 4; i++)
		if (i != 1)
			rig_say(r, i, WORKER_VOTED);
	rig_restart(r);
	freeze(r, 4);
	rig_expect(r, RUN_REDUCE, 2, 1);
	assert_int_equal(rig_doc(r)->n_members, 4);
	owners_now(r, back);
}

static void test_a_member_that_returns_gets_what_it_must(void **state) {
	(void)state;
	uint32_t at_first[RIG_CHUNKS], without[RIG_CHUNKS], back[RIG_CHUNKS];
	for (int keeps = 0; keeps < 2; keeps++) {
		struct rig r;
		rig_init(&r, 1);
		r.cfg.keeps_owners = keeps;
		rig_start(&r);
		rig_join(&r, 4);
		freeze(&r, 4);
		assert_int_equal(rig_doc(&r)->former_attempt, 0);
		rig_say_all(&r, 4, WORKER_VOTED);
		death_and_return(&r, at_first, without, back);
		assert_int_equal(rig_doc(&r)->former_attempt, 2);
		uint32_t moved = 0, of_1 = 0;
		for (int c = 0; c < RIG_CHUNKS; c++) {
			assert_true(at_first[c] == 1 || without[c] == at_first[c]);
			moved += back[c] != without[c];
			of_1 += back[c] == 1;
		}
		assert_int_equal(moved, keeps ? 2 : 3);
		assert_int_equal(of_1, keeps ? 2 : 3); /* three are fair, and two within the band */
		rig_release(&r);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_more_moves_than_must),
		cmocka_unit_test(test_noise_moves_nothing),
		cmocka_unit_test(test_a_member_that_returns_gets_what_it_must),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
