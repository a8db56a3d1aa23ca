/* rows.h: how the participants of a large all-reduce are cut into rows (net/reduce/grid.h). The
 * coordinator, workers, the lab and replay call these functions: one layout, the same bits.
 *
 * A roster of n participants is cut into rows of neighbours in roster order; their lengths differ
 * by at most one. Up to `row_size` participants there is one row. Otherwise the rows are about as
 * many as they are long, sqrt(n), so that a participant deals with about 2 sqrt(n) others: with its
 * row, and with one member of every other row. */
#ifndef RV_BASE_ROWS_H
#define RV_BASE_ROWS_H

enum {
	ROWS_MAX = 32,         /* rows of a roster */
	ROWS_MAX_LENGTH = 64,  /* participants of a row */
	ROWS_LEAST_LENGTH = 4, /* ... where `row_size` allows it: with fewer, medians say little (outer/merge.h) */
	ROWS_MAX_ROSTER = 1024
};

/* Returns the number of rows for n participants (1 to ROWS_MAX_ROSTER): 1 if n <= row_size (2 to
 * ROWS_MAX_LENGTH); else the integer nearest to sqrt(n), fewer if rows would be shorter than
 * ROWS_LEAST_LENGTH, or more if they would be longer than `row_size`; at most ROWS_MAX, so rows may
 * be longer than a small `row_size`. With row_size 7 or more no row is shorter than
 * ROWS_LEAST_LENGTH. */
int rows_choose(int n, int row_size);
/* Return the place in the roster at which row `row` of `n_rows` begins, and its length: the first n
 * mod n_rows rows are one longer than the others. */
int rows_first(int n, int n_rows, int row);
int rows_length(int n, int n_rows, int row);
/* Returns the length of the shortest row that rows_choose makes for any n above `row_size`. */
int rows_shortest(int row_size);

#endif
