/* chart_csv.h: what a chart shows as CSV (RFC 4180): a header line first, a row for each point, bar
 * or dot. */
#ifndef RV_LAB_REPORT_CHART_CSV_H
#define RV_LAB_REPORT_CHART_CSV_H

#include "base/chart/chart.h"

/* Writes a table of `what`, whose type the function says. */
typedef void csv_writer(const void *what, FILE *out);
csv_writer chart_csv_lines, chart_csv_bars, chart_csv_dots; /* struct line_chart, bar_chart, dot_chart */
/* Returns the table as text, which the caller frees; NULL: no memory. */
char *chart_csv_text_of(csv_writer *write, const void *what, size_t *n);
/* Writes a text in quotes, behind an apostrophe if a spreadsheet would take it for a formula. */
void chart_csv_text(const char *text, FILE *out);
/* Writes a number; nothing if it is not finite. */
void chart_csv_number(double v, FILE *out);

#endif
