/* owners.c: which participants may own chunks.
 *
 * Participants exchange data only where one of the two owns chunks. So in one row an owner is one
 * that is linked with all others of the roster; two that are apart (pairs.c) take part as long as
 * neither owns anything. Members that meet others through a relay own nothing either, if enough do
 * not: then no data of the round passes a relay; if only few do not, half of an equal part.
 *
 * In several rows a participant deals with fewer, and one that lies about being apart costs itself
 * only (apart.h, deal.h).
 *
 * Two at odds (odds.c) of one row own nothing of it either, if others of it may own. */
#include "base/assert.h"
#include "base/rows.h"
#include "coordinator/core/apart.h"
#include "coordinator/core/deal.h"
#include "coordinator/core/internal.h"

#include <string.h>

enum { DIRECT_SHARE = 4 /* members that need no relay own everything if they are at least one in so many */ };

struct finding {
	struct apart *apart;
	uint16_t index_of[NET_MAX_HERE]; /* by slot, of those that are named */
};

static void take_pair(void *ctx, uint32_t slot_a, uint32_t slot_b) {
	struct finding *f = ctx;
	apart_add(f->apart, f->index_of[slot_a], f->index_of[slot_b]);
}

/* Finds which of these n members are apart. */
static void find_apart(const struct core *c, const uint32_t *members, int n, struct apart *a) {
	uint64_t named[CORE_HERE_WORDS];
	struct finding f = {.apart = a};
	apart_init(a, n);
	set_clear(named, c->words);
	for (int i = 0; i < n; i++) {
		const uint32_t slot = (uint32_t)core_find(c, members[i]);
		f.index_of[slot] = (uint16_t)i;
		apart_note_claims(a, i, set_count(c->members[slot].apart, SET_WORDS(NET_MAX_PEERS)));
		set_add(named, slot);
	}
	core_each_apart(c, named, take_pair, &f);
}

/* ---- rows ---- */

static bool in_rows(const struct core *c, int n) {
	return n <= NET_MAX_ROSTER && n > 0 && rows_choose(n, core_row_size(c)) > 1;
}

void core_drop_apart_from_owners(const struct core *c, uint64_t *ready) {
	uint32_t members[NET_MAX_ROSTER] = {0};
	uint64_t able[CORE_ROSTER_WORDS];
	struct apart a;
	int n = 0, left = core_size_of(c, ready);
	if (!in_rows(c, left))
		return;
	for (int k = 0; k < c->slots.n; k++)
		if (set_has(ready, c->slots.order[k]))
			members[n++] = c->slots.numbers[k];
	find_apart(c, members, n, &a);
	apart_find_able(&a, apart_few(rows_choose(n, core_row_size(c))), able);
	for (int i = 0; i < n && a.any; i++) {
		if (left <= (int)c->cfg.min_workers || !apart_is_outcast(&a, able, i))
			continue;
		set_drop(ready, (uint32_t)core_find(c, members[i]));
		left--;
	}
}

/* Sets row[place] for the participants of a record: those of the rows that go on, or of the rows
 * that will be cut from it. */
static void find_rows(const struct core *c, const struct core_record *rec, bool goes_on, uint8_t *row) {
	const struct core_roster *r = &c->roster;
	const int n = rec->n_members, n_rows = goes_on ? 0 : rows_choose(n, core_row_size(c));
	for (int k = 0; k < n_rows; k++)
		memset(row + rows_first(n, n_rows, k), k, (size_t)rows_length(n, n_rows, k));
	for (int i = 0; goes_on && i < n; i++) {
		const int place = core_place(c, (uint32_t)core_find(c, rec->members[i]));
		RV_ASSERT(place >= 0 && place < r->n);
		row[i] = (uint8_t)core_rows_row_of(&r->rows, place);
	}
}

/* Drops from `able`, those that may own, those that are at odds with a participant of their row, if
 * others of the row are left. Marks these as apart. */
static void drop_at_odds(const struct core *c, const struct core_record *rec, struct apart *a, const uint8_t *row,
						 uint64_t *able) {
	uint64_t left[CORE_ROSTER_WORDS];
	bool any[NET_MAX_ROWS] = {0};
	set_copy(left, able, CORE_ROSTER_WORDS);
	core_odds_part(c, rec, a);
	apart_drop_in_rows(a, row, left);
	for (int i = set_next(left, 0, CORE_ROSTER_WORDS); i >= 0; i = set_next(left, i + 1, CORE_ROSTER_WORDS))
		any[row[i]] = true;
	for (int i = 0; i < rec->n_members; i++)
		if (any[row[i]] && !set_has(left, (uint32_t)i))
			set_drop(able, (uint32_t)i);
}

/* Sets `able` to the participants that are linked with all of their row, and with all owners that
 * they may deal with but a few, as far as is known; `a`: which are apart. */
static void find_linked(const struct core *c, const struct core_record *rec, struct apart *a, uint64_t *able) {
	uint8_t row[NET_MAX_ROSTER] = {0};
	const bool goes_on = c->roster.n > 0 && core_rows_many(&c->roster.rows);
	find_apart(c, rec->members, rec->n_members, a);
	set_first(able, a->n, CORE_ROSTER_WORDS);
	if (goes_on || in_rows(c, rec->n_members)) {
		const int n_rows = goes_on ? c->roster.rows.plan.n_rows : rows_choose(a->n, core_row_size(c));
		apart_find_able(a, apart_few(n_rows), able);
		find_rows(c, rec, goes_on, row);
	}
	apart_drop_in_rows(a, row, able);
	if (!goes_on) /* the columns of rows are laid once */
		drop_at_odds(c, rec, a, row, able);
}

/* ---- records ---- */

/* Puts those of `linked` that own into the record: those that need no relay, if they are enough. */
static void put_owners(const struct core *c, struct core_record *rec, const uint64_t *linked) {
	uint64_t roster[CORE_HERE_WORDS], direct[CORE_ROSTER_WORDS];
	const int words = CORE_ROSTER_WORDS;
	const bool known = core_named(c, rec, roster);
	RV_ASSERT(known && rec->n_members > 0);
	set_clear(rec->relayed, words);
	set_copy(direct, linked, words);
	for (int i = set_next(linked, 0, words); i >= 0; i = set_next(linked, i + 1, words))
		if (core_is_relayed(c, (uint32_t)core_find(c, rec->members[i]), roster))
			set_drop(direct, (uint32_t)i);
	const bool enough = DIRECT_SHARE * set_count(direct, words) >= rec->n_members;
	if (enough)
		set_copy(rec->owners, direct, words);
	else if (!set_is_empty(linked, words))
		set_copy(rec->owners, linked, words);
	else
		set_first(rec->owners, rec->n_members, words);
	if (enough || set_is_empty(direct, words))
		return;
	set_copy(rec->relayed, rec->owners, words); /* half a part for those that need a relay */
	set_less(rec->relayed, direct, words);
}

/* Puts the owners into a record: those of `linked` of which no two that are apart own a column. */
static void settle_owners(const struct core *c, struct core_record *rec, const struct apart *a, uint64_t *linked) {
	const bool rows = (c->roster.n > 0 && core_rows_many(&c->roster.rows)) || in_rows(c, rec->n_members);
	put_owners(c, rec, linked);
	while (rows && a->any && core_part_meeting(c, rec, a, linked))
		put_owners(c, rec, linked);
}

void core_put_owners(const struct core *c, struct core_record *rec) {
	uint64_t linked[CORE_ROSTER_WORDS];
	struct apart a;
	find_linked(c, rec, &a, linked);
	settle_owners(c, rec, &a, linked);
}

/* Swaps the record's lists into the order of `order`. */
static void put_in_order(struct core_record *rec, const uint16_t *order) {
	uint32_t members[NET_MAX_ROSTER];
	uint64_t tokens[NET_MAX_ROSTER], boots[NET_MAX_ROSTER], rates[NET_MAX_ROSTER], lease_first[NET_MAX_ROSTER],
		downs[NET_MAX_ROSTER];
	uint32_t lease_count[NET_MAX_ROSTER];
	uint8_t codecs[NET_MAX_ROSTER], parts[NET_MAX_ROSTER];
	struct seal roots[NET_MAX_ROSTER];
	const size_t n = rec->n_members;
	for (size_t i = 0; i < n; i++) {
		members[i] = rec->members[order[i]];
		tokens[i] = rec->tokens[order[i]];
		boots[i] = rec->boots[order[i]];
		rates[i] = rec->rates[order[i]];
		lease_first[i] = rec->lease_first[order[i]];
		lease_count[i] = rec->lease_count[order[i]];
		downs[i] = rec->downs[order[i]];
		codecs[i] = rec->codecs[order[i]];
		parts[i] = rec->parts[order[i]];
		roots[i] = rec->roots[order[i]];
	}
	memcpy(rec->members, members, n * sizeof members[0]);
	memcpy(rec->tokens, tokens, n * sizeof tokens[0]);
	memcpy(rec->boots, boots, n * sizeof boots[0]);
	memcpy(rec->rates, rates, n * sizeof rates[0]);
	memcpy(rec->lease_first, lease_first, n * sizeof lease_first[0]);
	memcpy(rec->lease_count, lease_count, n * sizeof lease_count[0]);
	memcpy(rec->downs, downs, n * sizeof downs[0]);
	memcpy(rec->codecs, codecs, n * sizeof codecs[0]);
	memcpy(rec->parts, parts, n * sizeof parts[0]);
	memcpy(rec->roots, roots, n * sizeof roots[0]);
}

/* Returns the first column that the participant at `place` of the last roster owned; with none a
 * position behind all owners. */
static uint16_t last_position(const struct core_rows *r, int row, int place) {
	const struct rows_plan *p = &r->plan;
	const int index = place - p->first[row];
	for (int j = 0; j < p->n_columns; j++)
		if (p->columns[j].owner[row] == index)
			return (uint16_t)j;
	return (uint16_t)(p->n_columns + index);
}

/* Fills in the row and the position that a participant had in the last roster, if that had `n_rows`
 * rows. */
static void put_last_row(const struct core *c, uint32_t member, int n_rows, struct deal_entry *e) {
	const uint32_t slot = (uint32_t)core_find(c, member);
	e->row = c->roster.rows.plan.n_rows == n_rows ? (int8_t)core_last_row(c, slot) : -1;
	e->place = e->row >= 0 ? last_position(&c->roster.rows, e->row, c->members[slot].place) : 0;
}

static uint8_t deal_level(const struct core_record *rec, uint32_t i, uint8_t line) {
	if (!set_has(rec->owners, i))
		return DEAL_NONE;
	return (uint8_t)(set_has(rec->relayed, i) ? DEAL_RELAYED + line : line);
}

void core_deal(const struct core *c, struct core_record *rec) {
	struct deal_entry entries[NET_MAX_ROSTER];
	struct apart a;
	uint64_t able[CORE_ROSTER_WORDS];
	uint8_t lines[NET_MAX_ROSTER];
	uint16_t order[NET_MAX_ROSTER];
	const int n = rec->n_members;
	if (!in_rows(c, n))
		return;
	RV_ASSERT(c->roster.n == 0); /* participants of later attempts stay where they are */
	const int n_rows = rows_choose(n, core_row_size(c));
	find_apart(c, rec->members, n, &a);
	apart_find_able(&a, apart_few(n_rows), able);
	put_owners(c, rec, able);
	core_odds_part(c, rec, &a);
	memset(lines, DEAL_MIDDLE, sizeof lines);
	if (!c->cfg.equal_ownership)
		deal_lines(rec->rates, n, lines);
	for (int i = 0; i < n; i++) {
		entries[i].level = deal_level(rec, (uint32_t)i, lines[i]);
		put_last_row(c, rec->members[i], n_rows, &entries[i]);
	}
	deal_rows(entries, n, n_rows, a.of, a.words, order);
	put_in_order(rec, order);
}

/* ---- accusations ---- */

/* Makes the record of a next attempt with all that are present, as far as its owners go. */
static void begin_next(const struct core *c, const struct core_accusations *a, struct core_record *next) {
	next->n_members = 0;
	for (uint32_t i = 0; i < (uint32_t)a->n; i++)
		if (set_has(a->present, i))
			next->members[next->n_members++] = c->roster.members[i];
}

bool core_blames_its_owners(const struct core *c, const struct core_accusations *a) {
	struct core_record next;
	struct core_outcome outcome;
	struct apart apart;
	uint64_t linked[CORE_ROSTER_WORDS];
	const bool many = core_rows_many(&c->roster.rows);
	bool any = false, ends = false;
	for (int i = 0; i < a->n; i++) {
		for (int k = a->out_first[i]; k < a->out_first[i + 1]; k++) {
			const int j = a->out[k];
			const uint32_t slot_i = c->roster.slots[i], slot_j = c->roster.slots[j];
			if (!core_are_apart(c, slot_i, slot_j) || core_are_linked(c, slot_i, slot_j))
				continue;
			if (!any) {
				begin_next(c, a, &next);
				find_linked(c, &next, &apart, linked);
				settle_owners(c, &next, &apart, linked);
			}
			if (!any && many)
				core_foresee(c, &next, &outcome);
			any = true;
			ends = ends || (many ? !core_will_exchange(&outcome, &next, c->roster.members[i], c->roster.members[j])
								 : !set_is_empty(linked, CORE_ROSTER_WORDS));
		}
	}
	return any && ends;
}
