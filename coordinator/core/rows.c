/* rows.c: see rows.h. */
#include "coordinator/core/rows.h"

#include "base/assert.h"
#include "base/planted.h"
#include "base/rows.h"
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

static int count_columns(const struct rows_plan *p, uint32_t n_chunks, const uint64_t *owners) {
	int n = n_chunks < NET_MAX_ROW ? (int)n_chunks : NET_MAX_ROW;
	for (int row = 0; row < p->n_rows; row++) {
		int in_row = __builtin_popcountll(able(p, row, owners));
		n = in_row < n ? in_row : n;
	}
	return n;
}

void core_rows_lay_out(struct core_rows *r, int n, int row_size, uint32_t n_chunks, const uint64_t *owners,
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
	rows_plan_columns(p, n_chunks, count_columns(p, n_chunks, owners));
	for (int row = 0; row < p->n_rows; row++) {
		uint64_t left = able(p, row, owners);
		for (int j = 0; j < p->n_columns; j++, left &= left - 1)
			p->columns[j].owner[row] = (uint8_t)__builtin_ctzll(left);
	}
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

/* Sets the owners of a row's columns: those of `before` that are kept and still may, by their new
 * index; else the one of `may` that owns the fewest. Returns false if each of those owns as many as
 * it can. */
static bool hand_over(struct rows_plan *p, int row, uint64_t kept, uint64_t may) {
	const int most = rows_most_owned(p->n_rows);
	int owned[NET_MAX_ROW] = {0};
	bool free[NET_MAX_ROW] = {0};
	for (int j = 0; j < p->n_columns; j++) {
		uint8_t *owner = &p->columns[j].owner[row];
		const uint64_t bit = UINT64_C(1) << *owner;
		const int index = __builtin_popcountll(kept & (bit - 1));
		free[j] = !(kept & bit) || !(may >> index & 1);
		*owner = (uint8_t)index;
		owned[index] += !free[j];
	}
	for (int j = 0; j < p->n_columns; j++) {
		int heir = -1;
		for (uint64_t left = free[j] ? may : 0; left != 0; left &= left - 1) {
			int i = __builtin_ctzll(left);
			heir = heir < 0 || owned[i] < owned[heir] ? i : heir;
		}
		if (free[j] && owned[heir]++ >= most)
			return false;
		if (free[j])
			p->columns[j].owner[row] = (uint8_t)heir;
	}
	return true;
}

static uint64_t kept_in(const struct rows_plan *p, int row, const uint64_t *keep) {
	uint64_t set = 0;
	for (int i = p->first[row]; i < p->first[row + 1]; i++)
		set |= (uint64_t)set_has(keep, (uint32_t)i) << (i - p->first[row]);
	return set;
}

bool core_rows_keep(struct core_rows *r, const uint64_t *keep, const uint64_t *owners, uint32_t attempt) {
	struct core_rows after = *r;
	uint64_t kept[NET_MAX_ROWS];
	RV_ASSERT(core_rows_many(r));
	for (int row = 0; row < r->plan.n_rows; row++)
		kept[row] = kept_in(&r->plan, row, keep);
	for (int row = 0, next = 0; row < r->plan.n_rows; row++) {
		after.plan.first[row] = (uint16_t)next;
		next += __builtin_popcountll(kept[row]);
		after.plan.first[row + 1] = (uint16_t)next;
		bool changed = __builtin_popcountll(kept[row]) != core_rows_length(r, row);
		after.changes[row] += changed;
		after.plan.since[row] = changed && !RV_BUG("row-since-stays") ? attempt : r->plan.since[row];
		if (kept[row] != 0 && !hand_over(&after.plan, row, kept[row], able(&after.plan, row, owners)))
			return false;
	}
	*r = after;
	return true;
}
