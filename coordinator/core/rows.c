/* rows.c: see rows.h. */
#include "coordinator/core/rows.h"

#include "base/assert.h"
#include "base/planted.h"
#include "base/rows.h"
#include "coordinator/core/internal.h"
#include "coordinator/core/set.h"

#include <string.h>

int core_rows_row_of(const struct core_rows *r, int place) {
	int row = 0;
	while (place >= r->plan.first[row + 1])
		row++;
	RV_ASSERT(place >= 0 && row < r->plan.n_rows);
	return row;
}

int core_rows_length(const struct core_rows *r, int row) {
	return r->plan.first[row + 1] - r->plan.first[row];
}

uint32_t core_rows_owned(const struct core_rows *r, int place) {
	const int row = core_rows_row_of(r, place), index = place - r->plan.first[row];
	uint32_t n = 0;
	for (int j = 0; j < r->plan.n_columns; j++)
		if (r->plan.columns[j].owner[row] == index)
			n += r->plan.columns[j].count;
	return n;
}

bool core_rows_deal(const struct core_rows *r, int a, int b) {
	const struct rows_plan *p = &r->plan;
	const int row_a = core_rows_row_of(r, a), row_b = core_rows_row_of(r, b);
	bool deal = row_a == row_b;
	for (int j = 0; j < p->n_columns && !deal; j++)
		deal = p->columns[j].owner[row_a] == a - p->first[row_a] && p->columns[j].owner[row_b] == b - p->first[row_b];
	return deal;
}

int core_rows_dealing(const struct core_rows *r, int place) {
	const struct rows_plan *p = &r->plan;
	const int own = core_rows_row_of(r, place);
	int n = core_rows_length(r, own) - 1;
	for (int row = 0; row < p->n_rows; row++) {
		uint64_t peers = 0;
		for (int j = 0; j < p->n_columns && row != own && core_rows_length(r, row) > 0; j++)
			if (p->columns[j].owner[own] == place - p->first[own])
				peers |= UINT64_C(1) << p->columns[j].owner[row];
		n += __builtin_popcountll(peers);
	}
	return n;
}

/* Returns the participants of a row that may own columns, by their index in it: all, if none
 * may. */
static uint64_t able(const struct rows_plan *p, int row, const uint64_t *owners) {
	const int length = p->first[row + 1] - p->first[row];
	uint64_t all = length == SET_BITS ? UINT64_MAX : (UINT64_C(1) << length) - 1, set = 0;
	RV_ASSERT(length <= NET_MAX_ROW);
	for (int i = 0; i < length; i++)
		set |= (uint64_t)set_has(owners, (uint32_t)(p->first[row] + i)) << i;
	return set != 0 ? set : all;
}

/* ---- the first layout ---- */

/* Returns how many columns an owner has in a row of `able` owners at most, if there are
 * `columns`. */
static int most_columns(int columns, int able) {
	return (columns + able - 1) / able;
}

/* Returns true if `a` columns are worth more links than `b`, which are fewer: the most loaded owner
 * of all has an eighth less, or no more and the rows together have a quarter less. `able`: number
 * of owners of each row. */
static bool is_better(const int *able, int n_rows, int a, int b) {
	int most_a = 0, most_b = 0, sum_a = 0, sum_b = 0;
	for (int row = 0; row < n_rows; row++) {
		const int of_a = most_columns(a, able[row]), of_b = most_columns(b, able[row]);
		most_a = of_a > most_a ? of_a : most_a;
		most_b = of_b > most_b ? of_b : most_b;
		sum_a += of_a;
		sum_b += of_b;
	}
	const bool no_worse = most_a * b <= most_b * a, far_better = 8 * most_a * b < 7 * most_b * a;
	return far_better || (no_worse && 4 * sum_a * b < 3 * sum_b * a);
}

/* Returns how many columns there are. */
static int count_columns(const struct rows_plan *p, uint32_t n_chunks, const uint64_t *owners) {
	const int most = rows_most_owned(p->n_rows), room = n_chunks < NET_MAX_ROW ? (int)n_chunks : NET_MAX_ROW;
	int in_row[NET_MAX_ROWS], best = 1, longest = room;
	for (int row = 0; row < p->n_rows; row++) {
		in_row[row] = __builtin_popcountll(able(p, row, owners));
		longest = in_row[row] * most < longest ? in_row[row] * most : longest;
	}
	for (int n = 2; n <= longest; n++)
		best = is_better(in_row, p->n_rows, n, best) ? n : best;
	return best;
}

/* Sets owner[j] to the one of the row that owns column j, of n: the first ones own two where there
 * are not enough. */
static void put_owners(struct rows_plan *p, int row, uint64_t may) {
	uint64_t left = may;
	for (int j = 0; j < p->n_columns; j++, left &= left - 1) {
		left = left != 0 ? left : may;
		p->columns[j].owner[row] = (uint8_t)__builtin_ctzll(left);
	}
}

/* Returns the rate of the slowest owner of a column, as far as known, for each column that it has;
 * 0: none is known. Sets *half if one of them should own half a part. */
static uint64_t column_rate(const struct rows_plan *p, int column, const struct core_lines *lines, bool *half) {
	uint64_t slowest = 0;
	*half = false;
	for (int row = 0; row < p->n_rows; row++) {
		const uint8_t owner = p->columns[column].owner[row];
		const uint32_t place = (uint32_t)(p->first[row] + owner);
		uint64_t columns = 0;
		for (int j = 0; j < p->n_columns; j++)
			columns += p->columns[j].owner[row] == owner;
		const uint64_t rate = lines->rates != NULL ? lines->rates[place] / columns : 0;
		slowest = rate != 0 && (slowest == 0 || rate < slowest) ? rate : slowest;
		*half = *half || set_has(lines->relayed, place);
	}
	return slowest;
}

/* Sets the width of each column as shares of one row are, and drops columns without any. */
static void put_widths(struct rows_plan *p, uint32_t n_chunks, const struct core_lines *lines) {
	static const uint32_t none[NET_MAX_ROW];
	const int n = p->n_columns, length = p->first[1] > n ? p->first[1] : n; /* the first row is the longest */
	uint64_t rates[NET_MAX_ROW] = {0}, all = n == SET_BITS ? UINT64_MAX : (UINT64_C(1) << n) - 1, halves = 0;
	uint32_t share[NET_MAX_ROW], next = 0;
	for (int j = 0; j < n; j++) {
		bool half;
		rates[j] = column_rate(p, j, lines, &half);
		halves |= (uint64_t)half << j;
	}
	core_shares(n_chunks, length, (struct core_owners){.all = all, .relayed = halves != all ? halves : 0}, rates, none,
				share);
	p->n_columns = 0;
	for (int j = 0; j < n; j++) {
		if (share[j] == 0)
			continue;
		struct rows_column *to = &p->columns[p->n_columns++];
		*to = p->columns[j];
		to->first = next;
		to->count = share[j];
		next += share[j];
	}
	RV_ASSERT(next == n_chunks && p->n_columns > 0);
}

void core_rows_lay_out(struct core_rows *r, int n, int row_size, uint32_t n_chunks, const struct core_lines *lines,
					   uint32_t attempt) {
	struct rows_plan *p = &r->plan;
	*r = (struct core_rows){.plan.n_rows = (uint8_t)rows_choose(n, row_size)};
	if (p->n_rows <= 1)
		return;
	for (int row = 0; row < p->n_rows; row++) {
		p->first[row] = (uint16_t)rows_first(n, p->n_rows, row);
		r->laid[row] = (uint16_t)rows_length(n, p->n_rows, row);
		p->since[row] = attempt;
	}
	p->first[p->n_rows] = (uint16_t)n;
	rows_plan_columns(p, n_chunks, count_columns(p, n_chunks, lines->owners));
	for (int row = 0; row < p->n_rows; row++)
		put_owners(p, row, able(p, row, lines->owners));
	put_widths(p, n_chunks, lines);
}

/* ---- later attempts ---- */

static int count_kept(const struct rows_plan *p, int row, const uint64_t *keep) {
	int n = 0;
	for (int i = p->first[row]; i < p->first[row + 1]; i++)
		n += set_has(keep, (uint32_t)i);
	return n;
}

static bool fails(const struct core_rows *r, int row, int kept) {
	const struct rows_plan *p = &r->plan;
	const int length = core_rows_length(r, row);
	if (kept == 0 || kept == length)
		return kept == 0;
	return 2 * kept < r->laid[row] || kept * rows_most_owned(p->n_rows) < p->n_columns ||
		   r->changes[row] >= CORE_ROW_CHANGES_MAX;
}

void core_rows_drop_failed(const struct core_rows *r, uint64_t *keep) {
	for (int row = 0; row < r->plan.n_rows; row++) {
		if (!fails(r, row, count_kept(&r->plan, row, keep)) || RV_BUG("keep-failed-rows"))
			continue;
		for (int i = r->plan.first[row]; i < r->plan.first[row + 1]; i++)
			set_drop(keep, (uint32_t)i);
	}
}

/* Returns the one of `may` that owns the fewest chunks, of those with room for a column; -1: none
 * has. */
static int find_heir(uint64_t may, const uint32_t *chunks, const int *columns, int most) {
	int heir = -1;
	for (; may != 0; may &= may - 1) {
		const int i = __builtin_ctzll(may);
		if (columns[i] < most && (heir < 0 || chunks[i] < chunks[heir]))
			heir = i;
	}
	return heir;
}

/* Sets the owners of a row's columns: those of before that are kept and still may, by their new
 * index; else an heir. */
static void hand_over(struct rows_plan *p, int row, uint64_t kept, uint64_t may) {
	const int most = rows_most_owned(p->n_rows);
	int owned[NET_MAX_ROW] = {0};
	uint32_t chunks[NET_MAX_ROW] = {0};
	bool free[NET_MAX_ROW] = {0};
	for (int j = 0; j < p->n_columns; j++) {
		uint8_t *owner = &p->columns[j].owner[row];
		const uint64_t bit = UINT64_C(1) << *owner;
		const int index = __builtin_popcountll(kept & (bit - 1));
		free[j] = !(kept & bit) || !(may >> index & 1);
		*owner = (uint8_t)index;
		owned[index] += !free[j];
		chunks[index] += free[j] ? 0 : p->columns[j].count;
	}
	for (int j = 0; j < p->n_columns; j++) {
		if (!free[j])
			continue;
		const int heir = find_heir(may, chunks, owned, most);
		RV_ASSERT(heir >= 0); /* may_own() are enough */
		owned[heir]++;
		chunks[heir] += p->columns[j].count;
		p->columns[j].owner[row] = (uint8_t)heir;
	}
}

/* Returns those that may own the columns of a row: its owners, or all of it, if these cannot. */
static uint64_t may_own(const struct rows_plan *p, int row, const uint64_t *owners) {
	const uint64_t may = able(p, row, owners);
	const int length = p->first[row + 1] - p->first[row], most = rows_most_owned(p->n_rows);
	if (__builtin_popcountll(may) * most >= p->n_columns)
		return may;
	return length == SET_BITS ? UINT64_MAX : (UINT64_C(1) << length) - 1;
}

static uint64_t kept_in(const struct rows_plan *p, int row, const uint64_t *keep) {
	uint64_t set = 0;
	for (int i = p->first[row]; i < p->first[row + 1]; i++)
		set |= (uint64_t)set_has(keep, (uint32_t)i) << (i - p->first[row]);
	return set;
}

void core_rows_keep(struct core_rows *r, const uint64_t *keep, const uint64_t *owners, uint32_t attempt) {
	struct rows_plan *p = &r->plan;
	uint64_t kept[NET_MAX_ROWS];
	bool changed[NET_MAX_ROWS];
	RV_ASSERT(core_rows_many(r));
	for (int row = 0; row < p->n_rows; row++) {
		kept[row] = kept_in(p, row, keep);
		changed[row] = __builtin_popcountll(kept[row]) != core_rows_length(r, row);
	}
	for (int row = 0; row < p->n_rows; row++) {
		p->first[row + 1] = (uint16_t)(p->first[row] + __builtin_popcountll(kept[row]));
		r->changes[row] += changed[row];
		p->since[row] = changed[row] && !RV_BUG("row-since-stays") ? attempt : p->since[row];
		if (kept[row] != 0)
			hand_over(p, row, kept[row], may_own(p, row, owners));
	}
}
