/* receipts.c: what the lines of a roster count with: what each member says of its own, as far as
 * others have seen it.
 *
 * Who owns more chunks has more to say about the average, so a member's word for its line is not
 * enough. Reports carry receipts: how fast the contribution of each other member came
 * (net/reduce/reduce.h). Of those of its row in the last roster, as far as they take part again,
 * the median counts, the larger of two in the middle: a minority moves it neither above nor below
 * what honest ones got. So a line counts with
 *
 *     the smaller one of what its member says and of that median, if half of a row have receipts;
 *     otherwise what its member says, and no more than the median of the roster's lines
 *
 * A member that says nothing counts as if it said the most. Where nobody has receipts, because
 * exchanges are short or the coordinator has just met its members, nobody counts with more than
 * the median line, and slow ones with less. The result is part of the ROSTER record. */
#include "base/assert.h"
#include "base/order.h"
#include "base/rows.h"
#include "coordinator/core/internal.h"

#include <string.h>

enum { BANDS = UINT8_MAX + 1 };

/* Receipts for one member, by band. */
struct heard {
	int of[BANDS];
	int n;
};

/* Returns the band in which `rep` has the member; 0: it has no receipt. */
static uint8_t band_of(const struct report *rep, uint32_t member) {
	int low = 0, high = rep->n_receipts;
	while (low < high) {
		const int middle = (low + high) / 2;
		if (rep->receipts[middle].member < member)
			low = middle + 1;
		else
			high = middle;
	}
	return low < rep->n_receipts && rep->receipts[low].member == member ? rep->receipts[low].band : 0;
}

/* Returns the rate of the median receipt. */
static uint64_t median_of(const struct heard *h) {
	int below = 0, band = 0;
	RV_ASSERT(h->n > 0 && h->of[0] == 0);
	while (below + h->of[band] <= h->n / 2)
		below += h->of[band++];
	return receipt_rate((uint8_t)band);
}

/* Collects what the others of its row say of participant `i`. `rows`: of each in the last roster,
 * -1: it was in none. */
static void hear(const struct core *c, const struct core_record *rec, const int8_t *rows, int i, struct heard *h) {
	memset(h, 0, sizeof *h);
	for (int j = 0; j < rec->n_members; j++) {
		if (j == i || rows[j] != rows[i] || rows[j] < 0)
			continue;
		const uint8_t band = band_of(&c->members[core_find(c, rec->members[j])].last, rec->members[i]);
		h->of[band] += band > 0;
		h->n += band > 0;
	}
}

/* Returns how many receipts a member needs at least. */
static int least_receipts(const struct core *c, const struct core_record *rec) {
	return (rec->n_members / rows_choose(rec->n_members, core_row_size(c)) + 1) / 2;
}

static void find_rows(const struct core *c, const struct core_record *rec, int8_t rows[NET_MAX_ROSTER]) {
	const bool many = core_rows_many(&c->roster.rows);
	for (int i = 0; i < rec->n_members; i++)
		rows[i] = many ? (int8_t)core_last_row(c, (uint32_t)core_find(c, rec->members[i])) : 0;
}

/* Returns the median, the larger of two in the middle, where those that are not known are the
 * slowest: else one that claims a line among few could be it. If most are not known, the slowest
 * that is known; UINT64_MAX: none is. */
static uint64_t median_line(const struct core_record *rec) {
	const int n = rec->n_members;
	int unknown = 0;
	for (int i = 0; i < n; i++)
		unknown += rec->rates[i] == 0;
	return unknown < n ? rv_nth_u64(rec->rates, n, unknown > n / 2 ? unknown : n / 2) : UINT64_MAX;
}

void core_put_rates(const struct core *c, struct core_record *rec) {
	int8_t rows[NET_MAX_ROSTER];
	uint64_t alone[CORE_ROSTER_WORDS]; /* too few have receipts */
	struct heard h;
	const int least = least_receipts(c, rec);
	find_rows(c, rec, rows);
	set_clear(alone, CORE_ROSTER_WORDS);
	for (int i = 0; i < rec->n_members; i++) {
		hear(c, rec, rows, i, &h);
		const uint64_t seen = h.n >= least ? median_of(&h) : UINT64_MAX;
		if (h.n < least)
			set_add(alone, (uint32_t)i);
		if (h.n >= least && (rec->rates[i] == 0 || rec->rates[i] > seen))
			rec->rates[i] = seen;
	}
	const uint64_t median = median_line(rec);
	for (int i = 0; i < rec->n_members; i++)
		if (set_has(alone, (uint32_t)i) && rec->rates[i] > median)
			rec->rates[i] = median;
}
