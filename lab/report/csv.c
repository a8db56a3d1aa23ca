/* csv.c: the figures as files. */
#include "lab/report/report_page.h"

#include "base/file.h"
#include "lab/report/chart_csv.h"
#include "lab/report/columns.h"

#include <errno.h>
#include <stdlib.h>

typedef void csv_writer(const void *what, FILE *out);

static void write_configurations(const void *what, FILE *out) {
	report_csv_configurations(what, out);
}
static void write_runs(const void *what, FILE *out) {
	report_csv_runs(what, out);
}
static void write_lines(const void *what, FILE *out) {
	chart_csv_lines(what, out);
}
static void write_dots(const void *what, FILE *out) {
	chart_csv_dots(what, out);
}
static void write_bars(const void *what, FILE *out) {
	chart_csv_bars(what, out);
}

static enum rv_err write_file(const char *dir, const char *name, csv_writer *write, const void *what,
							  struct rv_errtext *et) {
	char path[640], *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	snprintf(path, sizeof path, "%s/%s.csv", dir, name);
	if (!f)
		return rv_fail_errno(et, errno, "no memory for %s", path);
	write(what, f);
	enum rv_err e = fclose(f) == 0 ? rv_file_write_atomic(path, text, n, 0644, et)
								   : rv_fail_errno(et, errno, "no memory for %s", path);
	free(text);
	return e;
}

enum rv_err report_write_csv(const struct report *p, const struct report_figures *f, const char *dir,
							 struct rv_errtext *et) {
	RV_TRY(rv_dir_make(dir, 0755, et));
	RV_TRY(write_file(dir, "configurations", write_configurations, p, et));
	RV_TRY(write_file(dir, "runs", write_runs, p, et));
	for (int i = 0; i < f->n_lines; i++)
		RV_TRY(write_file(dir, f->lines[i].id, write_lines, &f->lines[i], et));
	RV_TRY(write_file(dir, f->dots.id, write_dots, &f->dots, et));
	return f->bars.n_bars > 0 ? write_file(dir, f->bars.id, write_bars, &f->bars, et) : RV_OK;
}
