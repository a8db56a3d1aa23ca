/* views.c: members' own documents, where one for all would be too long.
 *
 * In a roster of several rows a participant's document has its row and the owners of its columns. A
 * member that takes no part has the row of its turn, as an observer, and is listed as behind to
 * that row if it lacks the state. In an open round with more members than a document lists, each
 * has SPREAD of the donors, another few in turn; and a donor lists those behind that have it. Two
 * of which one audits the other find each other in both: their links last, where
 * rounds do, and if the deal parts them. */
#include "base/assert.h"
#include "base/planted.h"
#include "coordinator/core/internal.h"

#include <string.h>

enum { SPREAD = 16 };

bool core_views_many(const struct core *c) {
	return c->roster.n > 0 ? core_rows_many(&c->roster.rows) : c->slots.n > NET_MAX_ROW;
}

/* ---- what changes ---- */

void core_views_touch(struct core *c, uint32_t slot) {
	set_add(c->views.stale, slot);
}

void core_views_touch_all(struct core *c) {
	set_copy(c->views.stale, c->slots.used, c->words);
}

static bool same_ref(const struct member_ref *a, const struct member_ref *b) {
	return a->member == b->member && a->relay == b->relay && memcmp(a->key, b->key, sizeof a->key) == 0 &&
		   candidates_equal(a->candidates, a->n_candidates, b->candidates, b->n_candidates);
}

static bool refresh_refs(struct core *c) {
	struct core_views *v = &c->views;
	bool changed = false;
	for (int i = set_next(v->stale, 0, c->words); i >= 0; i = set_next(v->stale, i + 1, c->words)) {
		const struct member_ref now = core_ref(c, (uint32_t)i, 0);
		changed |= !same_ref(&now, &v->refs[i]);
		v->refs[i] = now;
	}
	set_clear(v->stale, c->words);
	return changed;
}

/* Makes `list` the members of which `is` is true; returns true if it was another one. */
static bool refresh_list(const struct core *c, core_is *is, struct core_list *list) {
	bool changed = false;
	int n = 0;
	for (int k = 0; k < c->slots.n; k++) {
		uint16_t slot = c->slots.order[k];
		if (!is(c, &c->members[slot]))
			continue;
		changed |= n >= list->n || list->slots[n] != slot;
		list->slots[n++] = slot;
	}
	changed |= n != list->n;
	list->n = n;
	return changed;
}

static bool refresh_donors(struct core *c) {
	struct core_list *donors = &c->views.donors;
	if (c->roster.n > 0) {
		donors->n = 0; /* the change of the phase is one of the head */
		return false;
	}
	for (int k = 0; k < c->slots.n; k++)
		if (core_is_donor(c, &c->members[c->slots.order[k]]))
			return refresh_list(c, core_is_donor, donors);
	return refresh_list(c, core_may_have_parts, donors); /* they are each other's donors (document.c) */
}

static void refresh_roster(struct core *c) {
	const struct core_roster *r = &c->roster;
	for (int i = 0; i < r->n; i++) {
		struct member_ref *ref = &c->views.roster[i];
		*ref = c->views.refs[r->slots[i]];
		ref->weight = r->weights[i];
		ref->boot = r->boots[i];
		ref->codec = r->codecs[i];
		ref->part = r->parts[i];
		ref->contribution = r->roots[i];
	}
}

bool core_views_refresh(struct core *c) {
	if (!core_views_many(c))
		return false;
	bool refs = refresh_refs(c), donors = refresh_donors(c), behind = refresh_list(c, core_is_behind, &c->views.behind);
	const struct document *d = &c->doc;
	bool other_roster =
		d->attempt != c->attempt || d->round != c->round || d->term != c->term || d->phase != RUN_REDUCE;
	if (c->roster.n > 0 && (refs || other_roster))
		refresh_roster(c);
	return refs || donors || behind;
}

/* ---- a member's part ---- */

static uint32_t number_of(const struct core *c, int slot) {
	return slot >= 0 ? c->members[slot].number : 0;
}

static int place_of(const struct core *c, int slot) {
	return slot >= 0 ? core_place(c, (uint32_t)slot) : -1;
}

/* Rows in the mean; a member that takes no part watches one of them, each in turn. */
struct rows_alive {
	int rows[NET_MAX_ROWS], n;
};

static struct rows_alive rows_alive(const struct core_rows *r) {
	struct rows_alive a = {.n = 0};
	for (int row = 0; row < r->plan.n_rows; row++)
		if (core_rows_length(r, row) > 0)
			a.rows[a.n++] = row;
	RV_ASSERT(a.n > 0);
	return a;
}

static int watched_row(const struct rows_alive *a, uint32_t number) {
	return a->rows[number % (uint32_t)a->n];
}

static void put_syncing(const struct core *c, const uint16_t *slots, int n, struct document *d) {
	d->n_syncing = 0;
	for (int i = 0; i < n; i++)
		if (core_lists_behind(c, i, n))
			d->syncing[d->n_syncing++] = c->views.refs[slots[i]];
}

/* Adds a member to a list by ascending numbers, if it is not there and there is room. */
static void insert_ref(struct member_ref *refs, uint16_t *n, int most, const struct member_ref *ref) {
	int at = 0;
	while (at < *n && refs[at].member < ref->member)
		at++;
	if (*n >= most || (at < *n && refs[at].member == ref->member))
		return;
	memmove(&refs[at + 1], &refs[at], (size_t)(*n - at) * sizeof *refs);
	refs[at] = *ref;
	(*n)++;
}

static bool has_column_of(const struct document *d, uint32_t member) {
	bool has = false;
	for (int i = 0; i < d->n_column; i++)
		has |= d->column[i].member == member;
	return has;
}

static bool is_listed_donor(const struct core *c, uint16_t slot) {
	bool listed = false;
	for (int i = 0; i < c->views.donors.n; i++)
		listed |= c->views.donors.slots[i] == slot;
	return listed;
}

/* Lists those that audit the member's training, or whose training it audits, and the same of
 * averages in rows: as donors in an open round, else beside those that are behind. Whatever this
 * follows from is noted as a change when it changes: orders, who is in memory or banned, and the
 * list of donors. */
static void put_partners(const struct core *c, int slot, struct document *d) {
	uint16_t partners[NET_MAX_SYNCING + NET_MAX_ROW];
	int n = slot >= 0 ? core_scores_partners(c, (uint32_t)slot, partners) : 0;
	if (slot >= 0)
		n = core_audits_partners(c, (uint32_t)slot, partners, n, NET_MAX_SYNCING + NET_MAX_ROW);
	for (int i = 0; i < n; i++) {
		const struct member_ref *ref = &c->views.refs[partners[i]];
		if (d->phase != RUN_REDUCE && is_listed_donor(c, partners[i]))
			insert_ref(d->members, &d->n_members, NET_MAX_ROW, ref);
		else if (d->phase == RUN_REDUCE && document_find(d, ref->member) < 0 && !has_column_of(d, ref->member))
			insert_ref(d->syncing, &d->n_syncing, NET_MAX_SYNCING, ref);
	}
}

static void put_row(const struct core *c, int slot, struct document *d) {
	const struct core_rows *r = &c->roster.rows;
	const struct rows_alive alive = rows_alive(r);
	struct rows_plan plan = r->plan;
	uint16_t behind[NET_MAX_HERE];
	int place = place_of(c, slot), n = 0;
	int row = place >= 0 ? core_rows_row_of(r, place) : watched_row(&alive, number_of(c, slot));
	plan.members = c->views.roster;
	rows_view(&plan, place >= 0 ? place : plan.first[row], d);
	if (place < 0 && !RV_BUG("watch-as-an-owner")) {
		d->n_sections = 0;
		d->n_column = 0;
	}
	for (int i = 0; i < c->views.behind.n; i++) {
		uint16_t other = c->views.behind.slots[i];
		if (watched_row(&alive, number_of(c, other)) == row && place_of(c, other) < 0)
			behind[n++] = other;
	}
	put_syncing(c, behind, n, d);
	put_partners(c, slot, d);
}

/* Returns the first of the SPREAD donors of a member, as a place in the list of `n`. */
static int first_donor(uint32_t number, int n) {
	return (int)((uint64_t)number * SPREAD % (uint64_t)n);
}

/* Returns true if the donor at `place` of `n` is one of those of the member. */
static bool is_donor_of(int place, uint32_t number, int n) {
	return (place - first_donor(number, n) + n) % n < SPREAD;
}

static void put_open(const struct core *c, int slot, struct document *d) {
	const struct core_list *donors = &c->views.donors, *all = &c->views.behind;
	uint16_t behind[NET_MAX_HERE];
	int self = -1, n = 0;
	d->n_members = 0;
	for (int i = 0; i < donors->n; i++) {
		self = donors->slots[i] == slot ? i : self;
		if (is_donor_of(i, number_of(c, slot), donors->n))
			d->members[d->n_members++] = c->views.refs[donors->slots[i]];
	}
	put_partners(c, slot, d);
	for (int i = 0; i < all->n && self >= 0; i++) {
		uint32_t number = number_of(c, all->slots[i]);
		if (is_donor_of(self, number, donors->n) && document_find(d, number) < 0)
			behind[n++] = all->slots[i];
	}
	put_syncing(c, behind, n, d);
}

void core_views_put(const struct core *c, int slot, struct document *d) {
	if (d->phase == RUN_REDUCE)
		put_row(c, slot, d);
	else
		put_open(c, slot, d);
}
