/* shares.c: how many chunks each owner should own, so that the all-reduce ends as early as it can.
 *
 * The model. Of C chunks owner i has k_i. It uploads its own C - k_i chunks to their owners and
 * each of its k_i results to the n - 1 others: C + (n - 2) k_i chunks; it downloads as many: n - 1
 * contributions to each of its chunks, and the C - k_i results of others. Both directions run at
 * once, so with the slower of its two rates, r_i, it is done after
 *
 *     t_i = (C + (n - 2) k_i) / r_i
 *
 * and all are done after max t_i. With sum k_i = C the least T with t_i <= T for all is found by
 * filling every owner up to T: k_i(T) = (T r_i - C) / (n - 2), which grows with T (bisection). No
 * owner takes less than C / r_i, whatever it owns: an owner that is slower than that owns nothing,
 * still sends and receives C chunks, and so is measured again in every round. Nor does a member own
 * anything that cannot be linked with all others (pairs.c). One that needs a relay, beside others
 * that do not, owns at most half of an equal part: each of its chunks passes the relay n - 1 times
 * in each direction. With n <= 2 the shares do not matter.
 *
 * Measured rates are noise and line. k_i(T) multiplies it: at equal rates by 2 (n - 1) / (n - 2),
 * so rates near the median count as the median (ALIKE_LESS), and shares that follow from that are
 * taken only if the rates as measured say that they are worth it.
 *
 * Integers only: rates as parts of 4,096 of the fastest, T in 1/4,096 of the time that a chunk
 * takes the fastest. Chunks left when T is rounded down go, one by one, to the owner that is done
 * first with one more. */
#include "base/assert.h"
#include "base/order.h"
#include "coordinator/core/internal.h"

#include <string.h>

enum {
	RATE_ONE = 4096,    /* the fastest */
	TIME_ONE = 4096,    /* a chunk at that rate: with 2^20 chunks and 64 owners all products stay below 2^63 */
	WORTH_PERCENT = 97, /* of the time with equal shares */
	/* A rate counts as the median if the smaller of the two is at least this share of the larger:
	 * measured rates of equal lines differ by more than a tenth, and each part of noise in a rate
	 * is two parts or more of a share. */
	ALIKE_LESS = 5,
	ALIKE_MORE = 6
};
static const uint64_t RATE_MAX = 1ull << 40; /* bytes per second */
/* The most medians that a line counts for: a single wrong report would make all others look equally
 * slow. */
enum { MEDIANS_MAX = 64 };

struct plan {
	uint32_t n_chunks;
	int n;
	uint64_t rate[NET_MAX_ROW]; /* 1..RATE_ONE */
	const uint32_t *have;       /* chunks that each keeps in any case */
	uint32_t most[NET_MAX_ROW];
};

/* Returns the time at which owner `i` with `k` chunks is done. */
static uint64_t done_at(const struct plan *p, int i, uint32_t k) {
	RV_ASSERT(p->rate[i] >= 1 && p->rate[i] <= RATE_ONE && k <= p->n_chunks + 1);
	uint64_t chunks = p->n_chunks + (uint64_t)(p->n - 2) * k;
	return chunks * RATE_ONE * TIME_ONE / p->rate[i];
}

static uint64_t all_done_at(const struct plan *p, const uint32_t *share) {
	uint64_t worst = 0;
	for (int i = 0; i < p->n; i++) {
		uint64_t at = done_at(p, i, share[i]);
		worst = at > worst ? at : worst;
	}
	return worst;
}

/* Sets the most chunks that each can own and be done by `at`; returns the sum. */
static uint64_t fill_up_to(const struct plan *p, uint64_t at, uint32_t *share) {
	uint64_t sum = 0;
	for (int i = 0; i < p->n; i++) {
		uint64_t chunks = at * p->rate[i] / RATE_ONE / TIME_ONE;
		uint64_t k = chunks > p->n_chunks ? (chunks - p->n_chunks) / (uint64_t)(p->n - 2) : 0;
		k = k > p->most[i] ? p->most[i] : k;
		k = k < p->have[i] ? p->have[i] : k;
		share[i] = (uint32_t)k;
		sum += k;
	}
	return sum;
}

/* Returns the owner that is done first with one chunk more; of several the first. */
static int first_with_one_more(const struct plan *p, const uint32_t *share) {
	int best = -1;
	uint64_t best_at = 0;
	for (int i = 0; i < p->n; i++) {
		uint64_t at = done_at(p, i, share[i] + 1);
		if (share[i] >= p->most[i] || (best >= 0 && at >= best_at))
			continue;
		best = i;
		best_at = at;
	}
	RV_ASSERT(best >= 0);
	return best;
}

static void fill(const struct plan *p, uint32_t *share) {
	uint64_t low = 0,
			 high = (uint64_t)p->n * p->n_chunks * RATE_ONE * TIME_ONE; /* at `low` not all is owned, at `high` it is */
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;
		if (fill_up_to(p, middle, share) >= p->n_chunks)
			high = middle;
		else
			low = middle;
	}
	uint64_t sum = fill_up_to(p, low, share);
	RV_ASSERT(sum <= p->n_chunks);
	for (; sum < p->n_chunks; sum++)
		share[first_with_one_more(p, share)]++;
}

/* Returns the median of the known rates (not 0), the larger of the two in the middle; 0: none is
 * known. */
static uint64_t median_of_known(const uint64_t *rates, int n) {
	int known = 0;
	for (int i = 0; i < n; i++)
		known += rates[i] != 0;
	return known > 0 ? rv_nth_u64(rates, n, n - known + known / 2) : 0;
}

static bool is_like(uint64_t rate, uint64_t median) {
	return rate * ALIKE_MORE >= median * ALIKE_LESS && rate * ALIKE_LESS <= median * ALIKE_MORE;
}

/* Sets rates as parts of the largest; an unknown one counts as the median of the known, and, if
 * `smooth`, so does one that is about the median. */
static void scale_rates(struct plan *p, const uint64_t *rates, bool smooth) {
	uint64_t median = median_of_known(rates, p->n), max = 1;
	uint64_t most = median < RATE_MAX / MEDIANS_MAX ? median * MEDIANS_MAX : RATE_MAX;
	median = median < most ? median : most;
	for (int i = 0; i < p->n; i++) {
		p->rate[i] = rates[i] != 0 ? rates[i] : median;
		p->rate[i] = p->rate[i] > most ? most : p->rate[i];
		p->rate[i] = smooth && is_like(p->rate[i], median) ? median : p->rate[i];
		max = p->rate[i] > max ? p->rate[i] : max;
	}
	for (int i = 0; i < p->n; i++) {
		uint64_t scaled = p->rate[i] * RATE_ONE / max;
		p->rate[i] = scaled > 0 ? scaled : 1;
	}
}

/* Returns the half parts that member `i` should own, and those of all. */
static uint32_t halves_of(struct core_owners owners, int i) {
	uint64_t bit = core_bit((uint32_t)i);
	return !(owners.all & bit) ? 0 : owners.relayed & bit ? 1 : 2;
}
static uint32_t all_halves(struct core_owners owners) {
	return (uint32_t)(2 * core_count(owners.all) - core_count(owners.relayed));
}

/* Splits the chunks that are not kept in parts, one for each owner, half a part for a relayed
 * one. */
static void share_equally(uint32_t n_chunks, int n, struct core_owners owners, const uint32_t *have, uint32_t *share) {
	uint64_t free = n_chunks, halves = all_halves(owners), half = 0;
	for (int i = 0; i < n; i++) {
		RV_ASSERT(have[i] <= free);
		free -= have[i];
	}
	for (int i = 0; i < n; i++) {
		uint64_t after = half + halves_of(owners, i);
		share[i] = have[i] + (uint32_t)(free * after / halves - free * half / halves);
		half = after;
	}
}

/* Returns the most chunks that owner `i` should own beside the other owners. */
static uint32_t most_of(const struct plan *p, struct core_owners owners, int i) {
	const uint32_t halves = halves_of(owners, i), all = all_halves(owners);
	const uint32_t part = (uint32_t)(((uint64_t)halves * p->n_chunks + all - 1) / all);
	return halves == 1 ? part : CORE_SHARE_MOST * part;
}

/* Sets p->most: twice an owner's equal part; and, if the owners are enough for that, twice that of
 * a member of the roster, of whom not all may be owners. */
static void put_most(struct plan *p, struct core_owners owners) {
	const uint32_t of_member =
		(uint32_t)((CORE_SHARE_MOST * (uint64_t)p->n_chunks + (uint64_t)p->n - 1) / (uint64_t)p->n);
	uint64_t room = 0;
	for (int i = 0; i < p->n; i++) {
		p->most[i] = most_of(p, owners, i);
		room += p->most[i] < of_member ? p->most[i] : of_member;
	}
	for (int i = 0; i < p->n; i++) {
		if (room >= p->n_chunks && p->most[i] > of_member)
			p->most[i] = of_member;
		if (p->most[i] < p->have[i])
			p->most[i] = p->have[i];
	}
}

void core_shares(uint32_t n_chunks, int n, struct core_owners owners, const uint64_t *rates, const uint32_t *have,
				 uint32_t *share) {
	RV_ASSERT(n > 0 && n <= NET_MAX_ROW && n_chunks > 0);
	RV_ASSERT(owners.all != 0 && (owners.all & ~core_first(n)) == 0);
	RV_ASSERT((owners.relayed & ~owners.all) == 0 && (owners.relayed == 0 || owners.relayed != owners.all));
	share_equally(n_chunks, n, owners, have, share);
	if (n <= 2 || median_of_known(rates, n) == 0)
		return;
	struct plan p = {.n_chunks = n_chunks, .n = n, .have = have};
	uint32_t unequal[NET_MAX_ROW];
	put_most(&p, owners);
	scale_rates(&p, rates, true);
	fill(&p, unequal);
	scale_rates(&p, rates, false);
	if (all_done_at(&p, unequal) / WORTH_PERCENT < all_done_at(&p, share) / 100)
		memcpy(share, unequal, (size_t)n * sizeof share[0]);
}
