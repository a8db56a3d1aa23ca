/* report_page.h: the report as one HTML file, and its figures as CSV files. */
#ifndef RV_LAB_REPORT_PAGE_H
#define RV_LAB_REPORT_PAGE_H

#include "lab/report/figures.h"

/* Prints the page. Everything is in it: style, figures as SVG, a script that shows their numbers,
 * and each table and figure as a CSV file to download. It fetches nothing; only its own script may
 * run (Content-Security-Policy by hash). */
void report_print_html(const struct lab_report *p, const struct report_figures *f, FILE *out);

/* Writes DIR/{configurations,runs,FIGURE}.csv, and makes DIR. RV_E_IO and kin name the file. */
enum rv_err report_write_csv(const struct lab_report *p, const struct report_figures *f, const char *dir,
							 struct rv_errtext *et);

#endif
