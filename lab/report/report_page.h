/* report_page.h: the report as one HTML file, and its figures as CSV files. */
#ifndef RV_LAB_REPORT_PAGE_H
#define RV_LAB_REPORT_PAGE_H

#include "lab/report/figures.h"

/* Everything is in the page: style, Chart.js where the program has it, the figures' numbers, plain pictures of them for
 * browsers without scripts, and each table and figure as a CSV file to download. Nothing is fetched from anywhere; only
 * the page's own two scripts may run (Content-Security-Policy by hash), whatever names runs have. */
void report_print_html(const struct report *p, const struct report_figures *f, FILE *out);
/* The library, the numbers, and what draws them; nothing without a library. Inner part of report_print_html. */
void report_print_scripts(const struct report_figures *f, FILE *out);
void report_print_policy(FILE *out);

/* DIR/{configurations,runs,FIGURE}.csv; makes DIR. RV_E_IO and kin name the file. */
enum rv_err report_write_csv(const struct report *p, const struct report_figures *f, const char *dir,
							 struct rv_errtext *et);

#endif
