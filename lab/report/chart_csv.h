/* chart_csv.h: what a chart shows as CSV (RFC 4180): a header line first, a row for each point, bar
 * or dot. */
#ifndef RV_LAB_REPORT_CHART_CSV_H
#define RV_LAB_REPORT_CHART_CSV_H

#include "base/chart/chart.h"

void chart_csv_lines(const struct line_chart *c, FILE *out);
void chart_csv_bars(const struct bar_chart *c, FILE *out);
void chart_csv_dots(const struct dot_chart *c, FILE *out);
/* In quotes; what a spreadsheet would take for a formula gets an apostrophe in front. */
void chart_csv_text(const char *text, FILE *out);
/* Nothing for what is not finite. */
void chart_csv_number(double v, FILE *out);

#endif
