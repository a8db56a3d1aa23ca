/* rows_view.h: the part of a document that is about rows and columns (net/reduce/grid.h), as one
 * participant sees it, made from a plan of the whole roster. Pure functions. */
#ifndef RV_NET_CONTROL_ROWS_VIEW_H
#define RV_NET_CONTROL_ROWS_VIEW_H

#include "net/control/control.h"

/* Chunks that one participant of each row owns, and its index in that row. */
struct rows_column {
	uint32_t first, count;
	uint8_t owner[NET_MAX_ROWS];
};

/* How the roster of an attempt is laid out. A row without participants is out of the mean. */
struct rows_plan {
	uint8_t n_rows;                          /* 2 to NET_MAX_ROWS */
	uint16_t first[NET_MAX_ROWS + 1];        /* place of each row's first participant; at n_rows: of the roster's end */
	const struct member_ref *members;        /* by place, with weight and boot; borrowed */
	uint32_t since[NET_MAX_ROWS];            /* document.row_since */
	uint8_t n_columns;                       /* 1 to NET_MAX_ROW */
	struct rows_column columns[NET_MAX_ROW]; /* ascending; together all chunks */
};

/* Returns how many columns one participant may own, so that its document has room for the owners in
 * the other rows. */
int rows_most_owned(int n_rows);
/* Cuts n_chunks into `n_columns` columns (at most n_chunks) of equal length, give or take one
 * chunk, each owned by the participant of its number in every row. */
void rows_plan_columns(struct rows_plan *p, uint32_t n_chunks, int n_columns);
/* Fills the members, ranges, rows, sections and column of `d` for the participant at `place`. It
 * owns at most rows_most_owned() columns, asserted. */
void rows_view(const struct rows_plan *p, int place, struct document *d);

#endif
