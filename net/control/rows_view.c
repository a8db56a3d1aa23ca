/* rows_view.c: see rows_view.h. */
#include "net/control/rows_view.h"

#include "base/assert.h"

#include <string.h>

int rows_most_owned(int n_rows) {
	RV_ASSERT(n_rows > 1 && n_rows <= NET_MAX_ROWS);
	const int most = NET_MAX_COLUMN / (n_rows - 1);
	return most < NET_MAX_SECTIONS ? most : NET_MAX_SECTIONS;
}

void rows_plan_columns(struct rows_plan *p, uint32_t n_chunks, int n_columns) {
	RV_ASSERT(n_columns >= 1 && n_columns <= NET_MAX_ROW && (uint32_t)n_columns <= n_chunks);
	uint32_t next = 0;
	p->n_columns = (uint8_t)n_columns;
	for (int j = 0; j < n_columns; j++) {
		const uint32_t end = (uint32_t)((uint64_t)n_chunks * (unsigned)(j + 1) / (unsigned)n_columns);
		p->columns[j] = (struct rows_column){.first = next, .count = end - next};
		memset(p->columns[j].owner, j, sizeof p->columns[j].owner);
		next = end;
	}
}

static int length_of(const struct rows_plan *p, int row) {
	return p->first[row + 1] - p->first[row];
}

static int row_of(const struct rows_plan *p, int place) {
	int row = 0;
	while (place >= p->first[row + 1])
		row++;
	RV_ASSERT(row < p->n_rows);
	return row;
}

static void view_rows(const struct rows_plan *p, struct document *d) {
	d->n_rows = p->n_rows;
	d->n_roster = p->first[p->n_rows];
	for (int row = 0; row < p->n_rows; row++) {
		d->row_since[row] = p->since[row];
		d->row_weights[row] = 0;
		for (int i = p->first[row]; i < p->first[row + 1]; i++)
			d->row_weights[row] += p->members[i].weight;
	}
}

static struct member_ref ref_at(const struct rows_plan *p, int row, int index) {
	RV_ASSERT(index < length_of(p, row));
	struct member_ref ref = p->members[p->first[row] + index];
	ref.place = (uint16_t)(p->first[row] + index);
	ref.row = (uint8_t)row;
	return ref;
}

static void view_own_row(const struct rows_plan *p, int row, struct document *d) {
	d->row = (uint8_t)row;
	d->n_members = (uint16_t)length_of(p, row);
	RV_ASSERT(d->n_members <= NET_MAX_ROW);
	for (int i = 0; i < d->n_members; i++)
		d->members[i] = ref_at(p, row, i);
	d->n_ranges = p->n_columns;
	for (int j = 0; j < p->n_columns; j++) {
		const struct rows_column *c = &p->columns[j];
		d->ranges[j] = (struct owner_range){.first = c->first, .count = c->count, .owner = c->owner[row]};
	}
	d->n_chunks = p->columns[p->n_columns - 1].first + p->columns[p->n_columns - 1].count;
}

/* Returns the set of participants of row `other` that own columns which `self` (index) owns in its
 * row. */
static uint64_t met_in(const struct rows_plan *p, int row, int self, int other) {
	uint64_t set = 0;
	for (int j = 0; j < p->n_columns && length_of(p, other) > 0; j++)
		if (p->columns[j].owner[row] == self)
			set |= UINT64_C(1) << p->columns[j].owner[other];
	return set;
}

/* Lists the owners that the participant meets, by ascending place. */
static void view_column(const struct rows_plan *p, int row, int self, struct document *d) {
	d->n_column = 0;
	for (int other = 0; other < p->n_rows; other++) {
		uint64_t met = other != row ? met_in(p, row, self, other) : 0;
		for (; met != 0; met &= met - 1) {
			RV_ASSERT(d->n_column < NET_MAX_COLUMN);
			d->column[d->n_column++] = ref_at(p, other, __builtin_ctzll(met));
		}
	}
}

static uint8_t column_index(const struct document *d, int row, uint16_t place) {
	for (int i = 0; i < d->n_column; i++)
		if (d->column[i].row == row && d->column[i].place == place)
			return (uint8_t)i;
	return NET_NO_OWNER;
}

static void view_sections(const struct rows_plan *p, int row, int self, struct document *d) {
	d->n_sections = 0;
	for (int j = 0; j < p->n_columns; j++) {
		const struct rows_column *c = &p->columns[j];
		if (c->owner[row] != self)
			continue;
		RV_ASSERT(d->n_sections < NET_MAX_SECTIONS);
		struct section *s = &d->sections[d->n_sections++];
		*s = (struct section){.first = c->first, .count = c->count};
		for (int r = 0; r < p->n_rows; r++)
			s->owner[r] = r == row || length_of(p, r) == 0 ? (uint8_t)NET_NO_OWNER
														   : column_index(d, r, (uint16_t)(p->first[r] + c->owner[r]));
	}
}

void rows_view(const struct rows_plan *p, int place, struct document *d) {
	const int row = row_of(p, place), self = place - p->first[row];
	RV_ASSERT(p->n_rows > 1 && p->n_rows <= NET_MAX_ROWS && p->n_columns >= 1);
	view_rows(p, d);
	view_own_row(p, row, d);
	view_column(p, row, self, d);
	view_sections(p, row, self, d);
}
