/* kept_chunks.c: which chunks change their owner when their numbers are decided (kept_owners.c).
 * Few ranges are cut, so that the map stays short however often it changes: an owner gives up its
 * shortest ranges first, and what is free goes to a neighbour before it goes to others. */
#include "base/assert.h"
#include "coordinator/core/internal.h"

#include <string.h>

struct keeping {
	const struct owner_range *old;
	uint16_t n_old;
	uint32_t gives[CORE_KEPT_RANGES]; /* by old range: chunks that it gives up, at its end */
	uint32_t more[NET_MAX_ROW];       /* by owner: chunks that it gets */
};

/* Returns the shortest range of an owner of which nothing is given up yet; -1: none. */
static int shortest(const struct keeping *k, uint16_t owner) {
	int best = -1;
	for (int i = 0; i < k->n_old; i++)
		if (k->old[i].owner == owner && k->gives[i] == 0 && (best < 0 || k->old[i].count < k->old[best].count))
			best = i;
	return best;
}

static void give_up(struct keeping *k, uint16_t owner, uint32_t count) {
	while (count > 0) {
		const int i = shortest(k, owner);
		RV_ASSERT(i >= 0);
		k->gives[i] = k->old[i].count < count ? k->old[i].count : count;
		count -= k->gives[i];
	}
}

/* Appends what is kept, and between it what is free. Returns the number of ranges. */
static uint16_t free_ranges(const struct keeping *k, struct owner_range *out) {
	uint16_t n = 0;
	for (int i = 0; i < k->n_old; i++) {
		const struct owner_range *o = &k->old[i];
		const uint32_t kept = o->count - k->gives[i];
		n = core_ownership_append(out, n, o->first, kept, o->owner);
		n = core_ownership_append(out, n, o->first + kept, k->gives[i], CORE_NOBODY);
	}
	return n;
}

/* Takes up to `most` of what the owner is to get; returns how many. */
static uint32_t take(struct keeping *k, uint16_t owner, uint32_t most) {
	const uint32_t more = owner < NET_MAX_ROW ? k->more[owner] : 0, taken = more < most ? more : most;
	if (taken > 0)
		k->more[owner] -= taken;
	return taken;
}

/* Returns the one that gets the fewest chunks, but all of `count`; or the one that gets most. */
static uint16_t heir_of(const struct keeping *k, uint32_t count) {
	uint16_t best = 0;
	for (uint16_t i = 1; i < NET_MAX_ROW; i++) {
		const bool fits = k->more[i] >= count, best_fits = k->more[best] >= count;
		if (fits ? !best_fits || k->more[i] < k->more[best] : !best_fits && k->more[i] > k->more[best])
			best = i;
	}
	RV_ASSERT(k->more[best] > 0);
	return best;
}

/* Deals a free range between those of the owners `left` and `right`. */
static uint16_t deal(struct keeping *k, struct owner_range *out, uint16_t n, const struct owner_range *free,
					 uint16_t left, uint16_t right) {
	uint32_t first = free->first, rest = free->count;
	const uint32_t to_left = take(k, left, rest), to_right = take(k, right, rest - to_left);
	n = core_ownership_append(out, n, first, to_left, left);
	first += to_left;
	rest -= to_left + to_right;
	while (rest > 0) {
		const uint16_t heir = heir_of(k, rest);
		const uint32_t taken = take(k, heir, rest);
		n = core_ownership_append(out, n, first, taken, heir);
		first += taken;
		rest -= taken;
	}
	return core_ownership_append(out, n, first, to_right, right);
}

static uint16_t deal_all(struct keeping *k, const struct owner_range *in, int n_in, struct owner_range *out) {
	uint16_t n = 0;
	for (int i = 0; i < n_in; i++) {
		const uint16_t left = n > 0 ? out[n - 1].owner : CORE_NOBODY,
					   right = i + 1 < n_in ? in[i + 1].owner : CORE_NOBODY;
		if (in[i].owner == CORE_NOBODY)
			n = deal(k, out, n, &in[i], left, right);
		else
			n = core_ownership_append(out, n, in[i].first, in[i].count, in[i].owner);
	}
	return n;
}

uint16_t core_kept_chunks(const struct owner_range *old, uint16_t n_old, const uint32_t share[NET_MAX_ROW],
						  struct owner_range out[NET_MAX_RANGES]) {
	struct keeping k = {.old = old, .n_old = n_old};
	struct owner_range freed[2 * CORE_KEPT_RANGES];
	uint32_t owned[NET_MAX_ROW];
	RV_ASSERT(n_old > 0 && n_old <= CORE_KEPT_RANGES);
	core_ownership_count(old, n_old, owned);
	for (int i = 0; i < n_old; i++)
		k.gives[i] = old[i].owner == CORE_NOBODY ? old[i].count : 0;
	for (uint16_t i = 0; i < NET_MAX_ROW; i++) {
		k.more[i] = share[i] > owned[i] ? share[i] - owned[i] : 0;
		give_up(&k, i, owned[i] > share[i] ? owned[i] - share[i] : 0);
	}
	const uint16_t n = deal_all(&k, freed, free_ranges(&k, freed), out);
	for (int i = 0; i < NET_MAX_ROW; i++)
		RV_ASSERT(k.more[i] == 0); /* each has all that it was to get */
	return n;
}
