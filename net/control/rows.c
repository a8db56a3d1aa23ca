/* rows.c: see rows.h.
 *
 * Order on the wire: n_rows; with more than one: row, n_roster, of each row its weight and since
 * when, the places of `members`, the sections, the column. */
#include "net/control/rows.h"

static const char WHAT[] = "document";

static const struct layout head[] = {
	LAYOUT_FIELD(PLAIN, struct document, row),
	LAYOUT_FIELD(PLAIN, struct document, n_roster),
	LAYOUT_LAST,
};

static const struct layout column[] = {
	LAYOUT_FIELD(PLAIN, struct member_ref, row),
	LAYOUT_FIELD(PLAIN, struct member_ref, place),
	LAYOUT_LAST,
};

static void write_sections(const struct document *m, struct rv_writer *w) {
	rv_write_u8(w, m->n_sections);
	for (int i = 0; i < m->n_sections; i++) {
		rv_write_u32(w, m->sections[i].first);
		rv_write_u32(w, m->sections[i].count);
		rv_write_bytes(w, m->sections[i].owner, m->n_rows);
	}
}

void rows_write(const struct document *m, struct rv_writer *w) {
	rv_write_u8(w, m->n_rows > 1 ? m->n_rows : 1);
	if (m->n_rows <= 1)
		return;
	layout_write(head, m, w);
	for (int i = 0; i < m->n_rows; i++) {
		rv_write_u32(w, m->row_weights[i]);
		rv_write_u32(w, m->row_since[i]);
	}
	for (int i = 0; i < m->n_members; i++)
		rv_write_u16(w, m->members[i].place);
	write_sections(m, w);
	rv_write_u16(w, m->n_column);
	for (int i = 0; i < m->n_column; i++) {
		layout_write(layout_participant, &m->column[i], w);
		layout_write(column, &m->column[i], w);
	}
}

static enum rv_err read_sections(struct document *out, struct rv_reader *r, struct rv_errtext *et) {
	uint8_t n = rv_read_u8(r);
	if (n > NET_MAX_SECTIONS)
		return rv_fail(et, RV_E_INVALID, "%s: n_sections = %u, at most %d", WHAT, n, (int)NET_MAX_SECTIONS);
	out->n_sections = n;
	for (int i = 0; i < out->n_sections; i++) {
		out->sections[i].first = rv_read_u32(r);
		out->sections[i].count = rv_read_u32(r);
		rv_read_copy(r, out->sections[i].owner, out->n_rows);
	}
	return RV_OK;
}

static enum rv_err read_column(struct document *out, struct rv_reader *r, struct rv_errtext *et) {
	uint16_t n = rv_read_u16(r);
	if (n > NET_MAX_COLUMN)
		return rv_fail(et, RV_E_INVALID, "%s: n_column = %u, at most %d", WHAT, n, (int)NET_MAX_COLUMN);
	out->n_column = n;
	for (int i = 0; i < out->n_column; i++) {
		out->column[i] = (struct member_ref){0};
		RV_TRY(layout_read(layout_participant, r, &out->column[i], WHAT, et));
		RV_TRY(layout_read(column, r, &out->column[i], WHAT, et));
	}
	return RV_OK;
}

static void one_row(struct document *out) {
	out->n_roster = out->n_members;
	for (uint16_t i = 0; i < out->n_members; i++)
		out->members[i].place = i;
}

static enum rv_err read_rows(struct document *out, struct rv_reader *r, struct rv_errtext *et) {
	RV_TRY(layout_read(head, r, out, WHAT, et));
	for (int i = 0; i < out->n_rows; i++) {
		out->row_weights[i] = rv_read_u32(r);
		out->row_since[i] = rv_read_u32(r);
	}
	for (int i = 0; i < out->n_members; i++) {
		out->members[i].place = rv_read_u16(r);
		out->members[i].row = out->row;
	}
	RV_TRY(read_sections(out, r, et));
	return read_column(out, r, et);
}

enum rv_err rows_read(struct document *out, struct rv_reader *r, struct rv_errtext *et) {
	out->n_rows = rv_read_u8(r);
	if (!rv_reader_ok(r))
		return RV_OK; /* the end of the decoder refuses it */
	if (out->n_rows < 1 || out->n_rows > NET_MAX_ROWS) {
		enum rv_err e =
			rv_fail(et, RV_E_INVALID, "%s: n_rows = %u, must be 1..%d", WHAT, out->n_rows, (int)NET_MAX_ROWS);
		out->n_rows = 0;
		return e;
	}
	if (out->n_rows > 1)
		return read_rows(out, r, et);
	one_row(out);
	return RV_OK;
}

/* ---- checks ---- */

static enum rv_err check_weights(const struct document *d, struct rv_errtext *et) {
	uint64_t all = 0, own = 0;
	for (int i = 0; i < d->n_rows; i++) {
		all += d->row_weights[i];
		if (d->row_since[i] < 1 || d->row_since[i] > d->attempt)
			return rv_fail(et, RV_E_INVALID, "%s: row_since[%d] = %u, must be 1..%u", WHAT, i, d->row_since[i],
						   d->attempt);
	}
	for (int i = 0; i < d->n_members; i++)
		own += d->members[i].weight;
	if (all > NET_MAX_WEIGHT_SUM)
		return rv_fail(et, RV_E_INVALID, "%s: weights of rows add up to %llu, at most %d", WHAT,
					   (unsigned long long)all, (int)NET_MAX_WEIGHT_SUM);
	if (d->row_weights[d->row] != own)
		return rv_fail(et, RV_E_INVALID, "%s: weight of row %u = %u, of its members %llu", WHAT, d->row,
					   d->row_weights[d->row], (unsigned long long)own);
	return RV_OK;
}

/* Checks that places ascend and are in the roster, and that no member has two. */
static enum rv_err check_places(const struct document *d, const struct member_ref *list, int n, const char *name,
								struct rv_errtext *et) {
	for (int i = 0; i < n; i++) {
		const struct member_ref *m = &list[i];
		if (m->place >= d->n_roster || (i > 0 && m->place <= list[i - 1].place))
			return rv_fail(et, RV_E_INVALID, "%s: %s[%d].place = %u: must ascend and stay below %u", WHAT, name, i,
						   m->place, d->n_roster);
		bool twice = m->member == NET_NO_MEMBER;
		for (int j = 0; j < i; j++)
			twice |= list[j].member == m->member;
		if (twice)
			return rv_fail(et, RV_E_INVALID, "%s: %s[%d] = %u: the number of none, or of another place too", WHAT, name,
						   i, m->member);
	}
	return RV_OK;
}

static enum rv_err check_column(const struct document *d, struct rv_errtext *et) {
	RV_TRY(check_places(d, d->column, d->n_column, "column", et));
	for (int i = 0; i < d->n_column; i++) {
		const struct member_ref *m = &d->column[i];
		RV_TRY(document_check_ref(d, d->column, i, "column", et));
		if (m->row >= d->n_rows || m->row == d->row || m->weight == 0)
			return rv_fail(et, RV_E_INVALID,
						   "%s: column[%d] in row %u of %u with weight %u: must be a participant of another row", WHAT,
						   i, m->row, d->n_rows, m->weight);
		if (document_find(d, m->member) >= 0)
			return rv_fail(et, RV_E_INVALID, "%s: column[%d] = %u is in members", WHAT, i, m->member);
	}
	return RV_OK;
}

/* Checks that a section names an owner in each other row that is in the mean. A row that is not may
 * have one, which takes the mean from the others. */
static enum rv_err check_owners(const struct document *d, const struct section *s, int i, struct rv_errtext *et) {
	for (int row = 0; row < d->n_rows; row++) {
		uint8_t at = s->owner[row];
		bool may_lack = row == d->row || d->row_weights[row] == 0;
		bool named = row != d->row && at < d->n_column && d->column[at].row == row;
		if (!named && !(may_lack && at == NET_NO_OWNER))
			return rv_fail(et, RV_E_INVALID, "%s: sections[%d].owner[%d] = %u: must be %s", WHAT, i, row, at,
						   row == d->row ? "255, for none" : "a member of that row in the column");
	}
	return RV_OK;
}

/* Returns the index in the row of the owner of the chunks of a section, which are one range; -1:
 * they are not. */
static int owner_of(const struct document *d, const struct section *s) {
	for (int i = 0; i < d->n_ranges; i++)
		if (d->ranges[i].first == s->first && d->ranges[i].count == s->count)
			return d->ranges[i].owner;
	return -1;
}

/* Checks that sections are ranges of one participant, the receiver. */
static enum rv_err check_columns(const struct document *d, struct rv_errtext *et) {
	const int owner = d->n_sections > 0 ? owner_of(d, &d->sections[0]) : -1;
	if (d->n_ranges > NET_MAX_ROW)
		return rv_fail(et, RV_E_INVALID, "%s: n_ranges = %u with %u rows: at most %d columns", WHAT, d->n_ranges,
					   d->n_rows, (int)NET_MAX_ROW);
	for (int i = 0; i < d->n_sections; i++)
		if (owner_of(d, &d->sections[i]) != owner || owner < 0)
			return rv_fail(et, RV_E_INVALID,
						   "%s: sections[%d] = %u+%u: must be a range, of the same owner as the first", WHAT, i,
						   d->sections[i].first, d->sections[i].count);
	return RV_OK;
}

static enum rv_err check_sections(const struct document *d, struct rv_errtext *et) {
	uint32_t next = 0;
	for (int i = 0; i < d->n_sections; i++) {
		const struct section *s = &d->sections[i];
		if (s->first < next || s->count == 0 || s->first > d->n_chunks || s->count > d->n_chunks - s->first)
			return rv_fail(et, RV_E_INVALID, "%s: sections[%d] = %u+%u: must start at %u at least and end by %u", WHAT,
						   i, s->first, s->count, next, d->n_chunks);
		RV_TRY(check_owners(d, s, i, et));
		next = s->first + s->count;
	}
	return RV_OK;
}

enum rv_err rows_check(const struct document *d, struct rv_errtext *et) {
	if (d->n_rows <= 1)
		return RV_OK;
	if (d->row >= d->n_rows || d->n_roster > NET_MAX_ROSTER)
		return rv_fail(et, RV_E_INVALID, "%s: row %u of %u, %u participants, at most %d", WHAT, d->row, d->n_rows,
					   d->n_roster, (int)NET_MAX_ROSTER);
	RV_TRY(check_weights(d, et));
	RV_TRY(check_places(d, d->members, d->n_members, "members", et));
	RV_TRY(check_column(d, et));
	RV_TRY(check_sections(d, et));
	return check_columns(d, et);
}
