/* columns.h: the columns of a report's table of configurations, once for the page and for CSV. */
#ifndef RV_LAB_REPORT_COLUMNS_H
#define RV_LAB_REPORT_COLUMNS_H

#include "base/chart/chart.h"
#include "lab/report/chart_csv.h"
#include "lab/report/report.h"

enum { CELL_TEXT_BYTES = 192 };

struct report_column {
	const char *name;   /* in CSV, with the unit */
	const char *header; /* in the page; NULL: not shown there */
	/* Writes the page's header where that depends on the runs; NULL: `header`. */
	void (*write_header)(const struct lab_report *p, char out[CELL_TEXT_BYTES]);
	/* One of three: the text ("": none); a number, which has no deviation (NaN: none); or a mean
	 * over runs and its deviation: the offset of a report_spread in report_group. */
	void (*text)(const struct report_group *g, char out[CELL_TEXT_BYTES]);
	double (*number)(const struct lab_report *p, const struct report_group *g);
	size_t spread;
	const char *format;  /* of a number in the page, unless there is a */
	chart_format *print; /* function for it */
};

/* The columns in order, ended by name == NULL. */
extern const struct report_column report_columns[];

/* Writes a cell of the page: "2.3412 ± 0.0021", "–". */
void report_cell_text(const struct report_column *c, const struct lab_report *p, const struct report_group *g,
					  char out[CELL_TEXT_BYTES]);
/* Writes the heading of the column in the page. */
void report_header_text(const struct report_column *c, const struct lab_report *p, char out[CELL_TEXT_BYTES]);
/* Returns false if no configuration has a value in it. */
bool report_column_used(const struct report_column *c, const struct lab_report *p);

/* Write a struct lab_report as CSV: a line for each configuration, and for each run. */
csv_writer report_csv_configurations, report_csv_runs;

#endif
