/* csv.c: the figures as files. */
#include "lab/report/report_page.h"

#include "base/file.h"
#include "lab/report/chart_csv.h"
#include "lab/report/columns.h"

#include <stdlib.h>

static enum rv_err write_file(const char *dir, const char *name, csv_writer *write, const void *what,
							  struct rv_errtext *et) {
	char path[640];
	size_t n = 0;
	snprintf(path, sizeof path, "%s/%s.csv", dir, name);
	char *text = chart_csv_text_of(write, what, &n);
	if (!text)
		return rv_fail(et, RV_E_NOMEM, "no memory for %s", path);
	enum rv_err e = rv_file_write_atomic(path, text, n, 0644, et);
	free(text);
	return e;
}

enum rv_err report_write_csv(const struct lab_report *p, const struct report_figures *f, const char *dir,
							 struct rv_errtext *et) {
	RV_TRY(rv_dir_make(dir, 0755, et));
	RV_TRY(write_file(dir, "configurations", report_csv_configurations, p, et));
	RV_TRY(write_file(dir, "runs", report_csv_runs, p, et));
	for (int i = 0; i < f->n_lines; i++)
		RV_TRY(write_file(dir, f->lines[i].id, chart_csv_lines, &f->lines[i], et));
	RV_TRY(write_file(dir, f->dots.id, chart_csv_dots, &f->dots, et));
	return f->bars.n_bars > 0 ? write_file(dir, f->bars.id, chart_csv_bars, &f->bars, et) : RV_OK;
}
