/* report.h: runs side by side: as a table for the terminal and as one self-contained HTML page. */
#ifndef RV_LAB_REPORT_H
#define RV_LAB_REPORT_H

#include "lab/run_record.h"

#include <stdio.h>

enum { REPORT_MAX_RUNS = 16, REPORT_MAX_MEMBERS = 64 };

/* One run: the records of its workers, or one record of the lab. */
struct report_run {
	char label[RECORD_NAME_BYTES + 32]; /* "Rivulet, 4 workers", "data-parallel" */
	char directory[512];                /* that its members' directories are in */
	struct run_record *members;
	int n_members;
	const struct run_record *evals_of; /* the member with most evaluations */
	struct record_totals totals;       /* its loss and rounds; bytes: mean over the members */
};

struct report {
	struct report_run runs[REPORT_MAX_RUNS];
	int n_runs;
};

/* Reads PATH/metrics.jsonl and PATH/STAR/metrics.jsonl of each path. Workers in sibling directories with the same model
 * are one run. RV_E_NOTFOUND names the path that holds no metrics; RV_E_RANGE too many runs. */
enum rv_err report_collect(struct report *p, const char *const *paths, int n_paths, struct rv_errtext *et);
void report_release(struct report *p);

/* The data-parallel run that others are compared with, or NULL. */
const struct report_run *report_baseline(const struct report *p);
void report_print_table(const struct report *p, FILE *out);
void report_print_html(const struct report *p, FILE *out);

#endif
