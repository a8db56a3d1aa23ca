/* status_table.h: the table of workers of `status`, as wide as the terminal: columns that do not
 * fit are left out whole, the least important first. */
#ifndef RV_COORDINATOR_STATUS_TABLE_H
#define RV_COORDINATOR_STATUS_TABLE_H

#include <stdio.h>

enum { STATUS_TABLE_CELL_BYTES = 24, STATUS_TABLE_COLUMNS = 15 };

/* A row: a cell for each column in the order of the header, then a text of any width. */
struct status_row {
	char cells[STATUS_TABLE_COLUMNS][STATUS_TABLE_CELL_BYTES];
	char notes[256];
};

/* Writes the header, then each row, into lines of at most `width` columns; `notes` alone may make a
 * line longer. */
void status_table_print(const struct status_row *rows, int n, int width, FILE *out);

/* The columns, as indices into `cells`. */
enum status_column {
	COLUMN_NUMBER,
	COLUMN_NAME,
	COLUMN_PHASE,
	COLUMN_ROUND,
	COLUMN_LOSS,
	COLUMN_SPEED,
	COLUMN_SENT,
	COLUMN_UP,
	COLUMN_DOWN,
	COLUMN_OWNS,
	COLUMN_NORM,
	COLUMN_COSINE,
	COLUMN_COMPUTE,
	COLUMN_REDUCE,
	COLUMN_SEEN
};

#endif
