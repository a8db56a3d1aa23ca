/* ownership.c: the ownership map: which member owns which chunks. Attempt 1 splits them all; a
 * later attempt leaves the survivors' chunks where they are and splits only those of the missed, so
 * that the data that owners hold stays useful. The number for each follows from their lines
 * (shares.c). */
#include "base/assert.h"
#include "coordinator/core/internal.h"

#include <string.h>

uint16_t core_ownership_append(struct owner_range *ranges, uint16_t n, uint32_t first, uint32_t count, uint16_t owner) {
	if (count == 0)
		return n;
	if (n > 0 && ranges[n - 1].owner == owner && ranges[n - 1].first + ranges[n - 1].count == first) {
		ranges[n - 1].count += count;
		return n;
	}
	RV_ASSERT(n < NET_MAX_RANGES);
	ranges[n] = (struct owner_range){.first = first, .count = count, .owner = owner};
	return (uint16_t)(n + 1);
}

uint16_t core_ownership_split(uint32_t n_chunks, int n, struct core_owners owners, const uint64_t *rates,
							  struct owner_range out[NET_MAX_RANGES]) {
	static const uint32_t none[NET_MAX_ROW];
	uint32_t share[NET_MAX_ROW], first = 0;
	uint16_t n_ranges = 0;
	core_shares(n_chunks, n, owners, rates, none, share);
	RV_ASSERT(n > 0 && n <= NET_MAX_ROW);
	for (int i = 0; i < n; i++) {
		n_ranges = core_ownership_append(out, n_ranges, first, share[i], (uint16_t)i);
		first += share[i];
	}
	RV_ASSERT(first == n_chunks);
	return n_ranges;
}

void core_ownership_count(const struct owner_range *ranges, uint16_t n_ranges, uint32_t owned[NET_MAX_ROW]) {
	memset(owned, 0, NET_MAX_ROW * sizeof owned[0]);
	for (int i = 0; i < n_ranges; i++) {
		RV_ASSERT(ranges[i].owner < NET_MAX_ROW || ranges[i].owner == CORE_NOBODY);
		RV_ASSERT(ranges[i].count > 0);
		if (ranges[i].owner != CORE_NOBODY)
			owned[ranges[i].owner] += ranges[i].count;
	}
}

/* Deals the free chunks, laid end to end, to the heirs in their order; `heir` is next. */
struct deal {
	uint32_t more[NET_MAX_ROW];
	int heir;
};

static uint16_t deal_range(struct deal *d, struct owner_range *out, uint16_t n_out, const struct owner_range *free) {
	uint32_t first = free->first, left = free->count;
	while (left > 0) {
		while (d->more[d->heir] == 0) {
			d->heir++;
			RV_ASSERT(d->heir < NET_MAX_ROW);
		}
		RV_ASSERT(d->more[d->heir] > 0);
		uint32_t take = left < d->more[d->heir] ? left : d->more[d->heir];
		n_out = core_ownership_append(out, n_out, first, take, (uint16_t)d->heir);
		d->more[d->heir] -= take;
		first += take;
		left -= take;
	}
	return n_out;
}

static uint16_t new_index(uint64_t keep, uint16_t old) {
	RV_ASSERT(keep & core_bit(old));
	return (uint16_t)core_count(keep & core_first(old));
}

/* Returns true if the survivor `old` of a roster is still an owner. */
static bool still_owns(uint64_t keep, uint64_t owners, uint16_t old) {
	return (keep & core_bit(old)) && (owners & core_bit(new_index(keep, old)));
}

/* Sets the chunks that each owner gets beyond those that it keeps. */
static void plan_deal(const struct owner_range *ranges, uint16_t n_ranges, uint64_t keep, struct core_owners owners,
					  const uint64_t *rates, struct deal *d) {
	uint32_t owned[NET_MAX_ROW], have[NET_MAX_ROW] = {0}, n_chunks = 0;
	int n = core_count(keep);
	core_ownership_count(ranges, n_ranges, owned);
	for (uint16_t i = 0; i < NET_MAX_ROW; i++) {
		n_chunks += owned[i];
		if (still_owns(keep, owners.all, i))
			have[new_index(keep, i)] = owned[i];
	}
	core_shares(n_chunks, n, owners, rates, have, d->more);
	for (int i = 0; i < n; i++) {
		RV_ASSERT(d->more[i] >= have[i]); /* an owner keeps what it has */
		d->more[i] -= have[i];
	}
}

uint16_t core_ownership_hand_over(struct owner_range *ranges, uint16_t n_ranges, uint64_t keep,
								  struct core_owners owners, const uint64_t *rates) {
	struct owner_range out[NET_MAX_RANGES];
	struct deal d = {.heir = 0};
	RV_ASSERT(keep != 0);
	plan_deal(ranges, n_ranges, keep, owners, rates, &d);
	uint16_t n_out = 0;
	for (int i = 0; i < n_ranges; i++) {
		const struct owner_range *g = &ranges[i];
		if (still_owns(keep, owners.all, g->owner))
			n_out = core_ownership_append(out, n_out, g->first, g->count, new_index(keep, g->owner));
		else
			n_out = deal_range(&d, out, n_out, g);
	}
	while (d.heir < NET_MAX_ROW && d.more[d.heir] == 0)
		d.heir++;
	RV_ASSERT(d.heir == NET_MAX_ROW); /* each heir has all that it was to get */
	for (int i = 0; i < n_out; i++)
		ranges[i] = out[i];
	return n_out;
}
