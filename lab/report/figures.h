/* figures.h: what a report draws: each figure once, for the page and for CSV.
 *
 * Final figures have a point for each configuration, the mean over its seeds with the standard
 * deviation as error bar, and a line for each series (and one figure a row for each, by loss);
 * curves have the evaluations along the way. If there are more lines than can be distinguished, the
 * best by final loss of each kind (method, outer optimizer, codec, workers) are shown, then the
 * second best. */
#ifndef RV_LAB_REPORT_FIGURES_H
#define RV_LAB_REPORT_FIGURES_H

#include "base/chart/chart.h"
#include "lab/report/report.h"

enum { REPORT_MAX_FIGURES = 6, REPORT_MAX_LINES = 12, REPORT_MAX_BARS = 32, REPORT_MAX_DOTS = 48 };

struct report_figures {
	struct line_chart lines[REPORT_MAX_FIGURES];
	int n_all[REPORT_MAX_FIGURES]; /* lines that there would be */
	int n_lines;
	struct dot_chart dots;
	struct chart_dot *dot_list;
	struct bar_chart bars;
	int n_all_bars;
	char texts[REPORT_MAX_FIGURES][192]; /* titles */
	double *numbers[REPORT_MAX_FIGURES][REPORT_MAX_LINES];
	struct chart_bar *bar_list;
};

/* Makes the figures of a report, which borrow from *p. RV_E_NOMEM. Release *f even then. */
enum rv_err report_figures_make(const struct lab_report *p, struct report_figures *f, struct rv_errtext *et);
void report_figures_release(struct report_figures *f);

#endif
