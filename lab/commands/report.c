/* report.c: `rivulet report`: a table on the terminal, report.html, and CSV files. */
#include "base/file.h"
#include "lab/commands/commands.h"
#include "lab/report/report_page.h"
#include "lab/simulate/units.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

struct report_options {
	char out[512], csv[512], rate[32];
	double latency_ms, sync_ms, step_time_ms;
};

#define FIELD(f) offsetof(struct report_options, f)
#define CAP(f)   sizeof(((struct report_options *)0)->f)

static const struct rv_option options[] = {
	{"out", RV_OPT_STRING, FIELD(out), CAP(out), "report.html", 0, 0, NULL, "The page to write.", "Report"},
	{"csv", RV_OPT_STRING, FIELD(csv), CAP(csv), "", 0, 0, NULL,
	 "Also write each table and figure as a CSV file into this directory.", "Report"},
	{"rate", RV_OPT_STRING, FIELD(rate), CAP(rate), "100mbit", 0, 0, NULL,
	 "Each worker's line, up and down: 20mbit, 1.5gbit, unlimited.", "Line for the wall-clock"},
	{"latency-ms", RV_OPT_DOUBLE, FIELD(latency_ms), 0, "20", 0, 3600000, NULL, "One way, half of ping's round trip.",
	 "Line for the wall-clock"},
	{"sync-ms", RV_OPT_DOUBLE, FIELD(sync_ms), 0, "50", 0, 86400000, NULL,
	 "Time of an exchange beside line and latency: encoding, disk, coordinator, waiting for the slower worker.",
	 "Line for the wall-clock"},
	{"step-time-ms", RV_OPT_DOUBLE, FIELD(step_time_ms), 0, "0", 0, 86400000, NULL,
	 "Time of an inner step; 0: as each run measured it.", "Line for the wall-clock"},
	{.name = NULL},
};

static enum rv_err read_line(const struct report_options *o, struct report_line *l, struct rv_errtext *et) {
	*l = (struct report_line){
		.latency_s = o->latency_ms * 1e-3, .sync_s = o->sync_ms * 1e-3, .step_s = o->step_time_ms * 1e-3};
	RV_TRY(simulate_read_rate(o->rate, &l->rate_bits_per_s, et));
	if (l->rate_bits_per_s < 1)
		return rv_fail(et, RV_E_RANGE, "rate = %s: must be at least 1bit, such as 20mbit, or unlimited", o->rate);
	return RV_OK;
}

static enum rv_err write_page(const struct lab_report *r, const struct report_figures *figures, const char *path,
							  struct rv_errtext *et) {
	char *html = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&html, &n);
	if (!f)
		return rv_fail_errno(et, errno, "no memory for %s", path);
	report_print_html(r, figures, f);
	enum rv_err e = fclose(f) == 0 ? rv_file_write_atomic(path, html, n, 0644, et)
								   : rv_fail_errno(et, errno, "no memory for %s", path);
	free(html);
	return e;
}

static enum rv_err check_out(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	const struct report_options *o = opts;
	struct report_line line;
	struct stat st;
	if (stat(o->out, &st) == 0 && S_ISDIR(st.st_mode))
		return rv_fail(et, RV_E_INVALID, "--out %s: is a directory: name a file, such as %s/report.html", o->out,
					   o->out);
	return read_line(o, &line, et);
}

static void tell_skipped(const struct lab_report *r) {
	for (int i = 0; i < r->n_skipped && i < REPORT_MAX_SKIPPED; i++)
		(void)fprintf(stderr, "skipped: %s\n", r->skipped[i]);
	if (r->n_skipped > REPORT_MAX_SKIPPED)
		(void)fprintf(stderr, "skipped: and %d more\n", r->n_skipped - REPORT_MAX_SKIPPED);
}

static enum rv_err write_all(const struct lab_report *r, const struct report_options *o, struct rv_errtext *et) {
	struct report_figures *figures = malloc(sizeof *figures);
	if (!figures)
		return rv_fail(et, RV_E_NOMEM, "no memory for a report");
	enum rv_err e = report_figures_make(r, figures, et);
	if (e == RV_OK)
		e = write_page(r, figures, o->out, et);
	if (e == RV_OK && o->csv[0])
		e = report_write_csv(r, figures, o->csv, et);
	report_figures_release(figures);
	free(figures);
	return e;
}

static enum rv_err run_report(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct report_options *o = opts;
	struct report_line line;
	struct lab_report *r = calloc(1, sizeof *r);
	if (!r)
		return rv_fail(et, RV_E_NOMEM, "no memory for a report");
	enum rv_err e = check_out(opts, args, et);
	if (e == RV_OK)
		e = read_line(o, &line, et);
	if (e == RV_OK)
		e = report_collect(r, args->at, args->n, &line, et);
	if (e == RV_OK) {
		tell_skipped(r);
		report_print_table(r, stdout);
		e = write_all(r, o, et);
	}
	if (e == RV_OK)
		printf("written: %s%s%s%s\n", o->out, o->csv[0] ? ", " : "", o->csv, o->csv[0] ? "/*.csv" : "");
	report_release(r);
	free(r);
	return e;
}

const struct rv_command report_command = {
	.name = "report",
	.synopsis = "DIR...",
	.args_min = 1,
	.args_max = RV_PROGRAM_ARGS_MAX,
	.help = "Compare runs and sweeps: a table, and a page with charts.",
	.details =
		"Each DIR is a run's directory, or one that holds the directories of runs and workers, or the --out of a\n"
		"sweep. Runs that differ in the seed only become one line with mean and standard deviation. The page is one\n"
		"file, needs no network, follows the reader's light or dark setting, and has every figure as CSV too.\n"
		"Wall-clock is computed for the line that you choose (`rivulet simulate` gives more):\n"
		"\n"
		"    rivulet report runs/demo\n"
		"    rivulet report runs/sweep --rate 20mbit --latency-ms 40 --csv runs/sweep/csv",
	.options = options,
	.opts_bytes = sizeof(struct report_options),
	.check_files = check_out,
	.run = run_report,
};
