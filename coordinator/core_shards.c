/* core_shards.c: the shard map: who owns which chunks. Attempt 1 splits them equally; a later attempt leaves the
 * survivors' chunks where they are and splits only the missing ones', so that what owners already hold stays useful. */
#include "base/assert.h"
#include "coordinator/core_internal.h"

/* Appends [first, first + count) of `owner`, joined to the last range when it continues it. */
static uint16_t append(struct shard_range *ranges, uint16_t n, uint32_t first, uint32_t count, uint16_t owner) {
	if (count == 0)
		return n;
	if (n > 0 && ranges[n - 1].owner == owner && ranges[n - 1].first + ranges[n - 1].count == first) {
		ranges[n - 1].count += count;
		return n;
	}
	RV_ASSERT(n < NET_MAX_RANGES);
	ranges[n] = (struct shard_range){.first = first, .count = count, .owner = owner};
	return (uint16_t)(n + 1);
}

/* Where part i of n begins in `total`. */
static uint32_t part(uint64_t total, int i, int n) {
	return (uint32_t)(total * (uint64_t)i / (uint64_t)n);
}

uint16_t core_shards_split(uint32_t n_chunks, int n, struct shard_range out[NET_MAX_RANGES]) {
	RV_ASSERT(n > 0 && n <= NET_MAX_MEMBERS && n_chunks > 0);
	uint16_t n_ranges = 0;
	for (int i = 0; i < n; i++) {
		uint32_t first = part(n_chunks, i, n);
		n_ranges = append(out, n_ranges, first, part(n_chunks, i + 1, n) - first, (uint16_t)i);
	}
	return n_ranges;
}

/* The free chunks, laid end to end, are dealt in n equal parts; `dealt` of `total` are gone so far. */
struct deal {
	uint32_t dealt, total;
	int heir, n;
};

static uint16_t deal_range(struct deal *d, struct shard_range *out, uint16_t n_out, const struct shard_range *free) {
	uint32_t first = free->first, left = free->count;
	while (left > 0) {
		while (part(d->total, d->heir + 1, d->n) <= d->dealt)
			d->heir++;
		uint32_t room = part(d->total, d->heir + 1, d->n) - d->dealt;
		uint32_t take = left < room ? left : room;
		n_out = append(out, n_out, first, take, (uint16_t)d->heir);
		first += take;
		left -= take;
		d->dealt += take;
	}
	return n_out;
}

uint16_t core_shards_hand_over(struct shard_range *ranges, uint16_t n_ranges, uint64_t keep) {
	struct shard_range out[NET_MAX_RANGES];
	struct deal d = {.n = core_count(keep)};
	RV_ASSERT(d.n > 0);
	for (int i = 0; i < n_ranges; i++)
		if (!(keep & core_bit(ranges[i].owner)))
			d.total += ranges[i].count;
	uint16_t n_out = 0;
	for (int i = 0; i < n_ranges; i++) {
		const struct shard_range *g = &ranges[i];
		if (keep & core_bit(g->owner))
			n_out = append(out, n_out, g->first, g->count, (uint16_t)core_count(keep & core_first(g->owner)));
		else
			n_out = deal_range(&d, out, n_out, g);
	}
	for (int i = 0; i < n_out; i++)
		ranges[i] = out[i];
	return n_out;
}
