/* columns.h: the columns of a report's table of configurations, once for the page and for CSV. */
#ifndef RV_LAB_REPORT_COLUMNS_H
#define RV_LAB_REPORT_COLUMNS_H

#include "base/chart/chart.h"
#include "lab/report/report.h"

enum { CELL_TEXT_BYTES = 192 };

struct report_column {
	const char *name;   /* in CSV, with the unit */
	const char *header; /* in the page; NULL: not shown there */
	/* Writes the page's header where that depends on the runs; NULL: `header`. */
	void (*write_header)(const struct report *p, char out[CELL_TEXT_BYTES]);
	/* One of the two: the text ("": none), or the number and its standard deviation (NaN: none). */
	void (*text)(const struct report_group *g, char out[CELL_TEXT_BYTES]);
	struct report_spread (*number)(const struct report *p, const struct report_group *g);
	const char *format;  /* of a number in the page, unless there is a */
	chart_format *print; /* function for it */
	bool is_count;       /* as it is, without a deviation, in CSV too */
};

/* Ends with name == NULL. */
extern const struct report_column report_columns[];

/* Writes a cell of the page: "2.3412 ± 0.0021", "–". */
void report_cell_text(const struct report_column *c, const struct report *p, const struct report_group *g,
					  char out[CELL_TEXT_BYTES]);
/* Writes the heading of the column in the page. */
void report_header_text(const struct report_column *c, const struct report *p, char out[CELL_TEXT_BYTES]);
/* Returns false if no configuration has a value in it. */
bool report_column_used(const struct report_column *c, const struct report *p);

/* A line for each configuration, and for each run. */
void report_csv_configurations(const struct report *p, FILE *out);
void report_csv_runs(const struct report *p, FILE *out);

#endif
