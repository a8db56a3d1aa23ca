/* meetings.c: owners of a roster in several rows that would own the same column, and so exchange
 * data, although they are apart. The deal keeps them from that where it can (deal.h); where it
 * cannot, and in later attempts, whose heirs are others, one of the two owns nothing. */
#include "coordinator/core/apart.h"
#include "coordinator/core/internal.h"

static void foresee_next(const struct core *c, const struct core_record *rec, struct core_outcome *o) {
	uint64_t keep[CORE_ROSTER_WORDS] = {0}, owners[CORE_ROSTER_WORDS] = {0};
	int16_t at[NET_MAX_ROSTER];
	for (int i = 0; i < rec->n_members; i++) {
		const int place = core_place(c, (uint32_t)core_find(c, rec->members[i]));
		set_add(keep, (uint32_t)place);
		at[place] = (int16_t)i;
	}
	o->rows = c->roster.rows;
	core_rows_drop_failed(&o->rows, keep);
	int n = 0;
	for (int place = set_next(keep, 0, CORE_ROSTER_WORDS); place >= 0;
		 place = set_next(keep, place + 1, CORE_ROSTER_WORDS)) {
		if (set_has(rec->owners, (uint32_t)at[place]))
			set_add(owners, (uint32_t)n);
		o->index[n++] = at[place];
	}
	if (n > 0)
		core_rows_keep(&o->rows, keep, owners, c->attempt + 1);
	else
		o->rows.plan.n_columns = 0;
}

void core_foresee(const struct core *c, const struct core_record *rec, struct core_outcome *o) {
	if (c->roster.n > 0) {
		foresee_next(c, rec, o);
		return;
	}
	core_lay_out(c, rec, &o->rows);
	for (int i = 0; i < rec->n_members; i++)
		o->index[i] = (int16_t)i;
}

static int place_of(const struct core_outcome *o, uint32_t member, const struct core_record *rec) {
	const int n = o->rows.plan.n_columns > 0 ? o->rows.plan.first[o->rows.plan.n_rows] : 0;
	for (int place = 0; place < n; place++)
		if (rec->members[o->index[place]] == member)
			return place;
	return -1;
}

bool core_will_exchange(const struct core_outcome *o, const struct core_record *rec, uint32_t a, uint32_t b) {
	const int i = place_of(o, a, rec), j = place_of(o, b, rec);
	if (i < 0 || j < 0)
		return false;
	const bool owns = core_rows_owned(&o->rows, i) > 0 || core_rows_owned(&o->rows, j) > 0;
	return owns && core_rows_deal(&o->rows, i, j);
}

/* Returns the one of two that are apart that shall own nothing: the one that is apart from more; of
 * equals the lot says. */
static int loser(const struct core *c, const struct core_record *rec, const struct apart *a, int i, int j) {
	if (a->from[i] != a->from[j])
		return a->from[i] > a->from[j] ? i : j;
	return core_lot(c, rec->members[i]) > core_lot(c, rec->members[j]) ? i : j;
}

/* Sets `owners` to the indices of those of `linked` that own column `j`; returns their number. */
static int owners_of(const struct core_outcome *o, int j, const uint64_t *linked, int owners[NET_MAX_ROWS]) {
	const struct rows_plan *p = &o->rows.plan;
	int n = 0;
	for (int row = 0; row < p->n_rows; row++) {
		if (core_rows_length(&o->rows, row) == 0)
			continue;
		const int i = o->index[p->first[row] + p->columns[j].owner[row]];
		if (set_has(linked, (uint32_t)i))
			owners[n++] = i;
	}
	return n;
}

bool core_part_meeting(const struct core *c, const struct core_record *rec, const struct apart *a, uint64_t *linked) {
	struct core_outcome o;
	bool any = false;
	core_foresee(c, rec, &o);
	for (int j = 0; j < o.rows.plan.n_columns; j++) {
		int owners[NET_MAX_ROWS];
		const int n = owners_of(&o, j, linked, owners);
		for (int x = 0; x < n; x++)
			for (int y = 0; y < x && set_has(linked, (uint32_t)owners[x]); y++) {
				if (!set_has(linked, (uint32_t)owners[y]) || !set_has(apart_from(a, owners[x]), (uint32_t)owners[y]))
					continue;
				set_drop(linked, (uint32_t)loser(c, rec, a, owners[x], owners[y]));
				any = true;
			}
	}
	return any;
}
