/* status_table.c: see status_table.h. */
#include "coordinator/commands/status_table.h"

#include <stdbool.h>
#include <string.h>

enum { INDENT = 2 };

/* The columns. `rank`: the order in which they get room. Text is left-aligned, numbers are
 * right-aligned. */
static const struct column {
	const char *title;
	int width, rank;
	bool text;
} columns[STATUS_TABLE_COLUMNS] = {
	[COLUMN_NUMBER] = {"no.", 3, 0, false},       [COLUMN_NAME] = {"worker", 16, 1, true},
	[COLUMN_PHASE] = {"phase", 10, 2, true},      [COLUMN_ROUND] = {"rounds", 6, 3, false},
	[COLUMN_LOSS] = {"loss", 8, 5, false},        [COLUMN_SPEED] = {"tokens/s", 9, 6, false},
	[COLUMN_SENT] = {"sent", 9, 7, false},        [COLUMN_UP] = {"line up", 10, 8, false},
	[COLUMN_DOWN] = {"line down", 10, 9, false},  [COLUMN_OWNS] = {"owns", 6, 10, false},
	[COLUMN_NORM] = {"norm", 6, 13, false},       [COLUMN_COSINE] = {"cosine", 6, 14, false},
	[COLUMN_COMPUTE] = {"compute", 8, 11, false}, [COLUMN_REDUCE] = {"reduce", 8, 12, false},
	[COLUMN_SEEN] = {"last report", 14, 4, true},
};

static void choose(int width, bool shown[STATUS_TABLE_COLUMNS]) {
	int used = INDENT - 1;
	memset(shown, 0, STATUS_TABLE_COLUMNS * sizeof *shown);
	for (int rank = 0; rank < STATUS_TABLE_COLUMNS; rank++)
		for (int i = 0; i < STATUS_TABLE_COLUMNS; i++) {
			if (columns[i].rank != rank)
				continue;
			if (used + 1 + columns[i].width > width)
				return; /* a narrower, less important one does not replace it */
			shown[i] = true;
			used += 1 + columns[i].width;
		}
}

static void print_cell(const struct column *c, const char *text, FILE *out) {
	if (c == &columns[COLUMN_SEEN])
		(void)fprintf(out, " %.*s", c->width, text); /* the last one: notes follow */
	else if (c->text)
		(void)fprintf(out, " %-*.*s", c->width, c->width, text);
	else
		(void)fprintf(out, " %*.*s", c->width, c->width, text);
}

void status_table_print(const struct status_row *rows, int n, int width, FILE *out) {
	bool shown[STATUS_TABLE_COLUMNS];
	choose(width, shown);
	(void)fprintf(out, "%*s", INDENT - 1, "");
	for (int i = 0; i < STATUS_TABLE_COLUMNS; i++)
		if (shown[i])
			print_cell(&columns[i], columns[i].title, out);
	(void)fputc('\n', out);
	for (int row = 0; row < n; row++) {
		(void)fprintf(out, "%*s", INDENT - 1, "");
		for (int i = 0; i < STATUS_TABLE_COLUMNS; i++)
			if (shown[i])
				print_cell(&columns[i], rows[row].cells[i], out);
		(void)fprintf(out, "%s\n", rows[row].notes);
	}
}
