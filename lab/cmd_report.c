/* cmd_report.c: `rivulet report`: a table on the terminal and report.html. */
#include "base/file.h"
#include "lab/commands.h"
#include "lab/report.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

struct report_options {
	char out[512];
};

static const struct rv_option options[] = {
	{"out", RV_OPT_STRING, offsetof(struct report_options, out), sizeof(((struct report_options *)0)->out),
	 "report.html", 0, 0, NULL, "The page to write.", "Report"},
	{.name = NULL},
};

static enum rv_err write_page(const struct report *r, const char *path, struct rv_errtext *et) {
	char *html = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&html, &n);
	if (!f)
		return rv_fail_errno(et, errno, "no memory for %s", path);
	report_print_html(r, f);
	enum rv_err e = fclose(f) == 0 ? rv_file_write_atomic(path, html, n, 0644, et)
								   : rv_fail_errno(et, errno, "no memory for %s", path);
	free(html);
	return e;
}

static enum rv_err check_out(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	const struct report_options *o = opts;
	struct stat st;
	if (stat(o->out, &st) == 0 && S_ISDIR(st.st_mode))
		return rv_fail(et, RV_E_INVALID, "--out %s: is a directory: name a file, such as %s/report.html", o->out,
					   o->out);
	return RV_OK;
}

static enum rv_err run_report(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct report_options *o = opts;
	struct report *r = calloc(1, sizeof *r);
	if (!r)
		return rv_fail(et, RV_E_NOMEM, "no memory for a report");
	enum rv_err e = check_out(opts, args, et);
	if (e == RV_OK)
		e = report_collect(r, args->at, args->n, et);
	if (e == RV_OK) {
		report_print_table(r, stdout);
		e = write_page(r, o->out, et);
	}
	if (e == RV_OK)
		printf("written: %s\n", o->out);
	report_release(r);
	free(r);
	return e;
}

const struct rv_command report_command = {
	.name = "report",
	.synopsis = "DIR...",
	.args_min = 1,
	.args_max = RV_PROGRAM_ARGS_MAX,
	.help = "Compare runs: a table, and a page with plots.",
	.details = "Each DIR is a run's directory, or one that holds the directories of runs and workers. The page is one\n"
			   "file, needs no network and no scripts, and follows the reader's light or dark setting.",
	.options = options,
	.opts_bytes = sizeof(struct report_options),
	.check_files = check_out,
	.run = run_report,
};
