/* report.h: runs side by side: a table for the terminal, one self-contained HTML page, and CSV
 * files.
 *
 * A *run* is one record of the lab, or the records of one real run's workers. Runs on the same text
 * (by its content, not its path), evaluated on the same tokens of it, that differ in the seed only
 * are a *configuration*: means and standard deviations are over its runs. Configurations that
 * differ in H only (and in the number of rounds that follows from it) are a *series*: a line in a
 * chart. */
#ifndef RV_LAB_REPORT_H
#define RV_LAB_REPORT_H

#include "lab/report/facts.h"
#include "lab/report/line.h"
#include "lab/run/lab_run.h"
#include "lab/run/run_record.h"

#include <stdio.h>

enum {
	REPORT_MAX_RUNS = 10000,
	REPORT_MAX_MEMBERS = 64,
	REPORT_MAX_SKIPPED = 50,
	REPORT_LABEL_BYTES = 128,
	REPORT_PATH_BYTES = 512,
	REPORT_DATA_BYTES = 600
};

struct report_member {
	struct run_record record; /* its rounds are let go of; `totals` has their sums */
	struct record_totals totals;
	uint64_t device, inode; /* of its file */
	double ddp_bytes;       /* run_record_ddp_bytes */
	int n_rounds;           /* that are in its file */
	uint64_t least_participants, most_participants;
};

/* Results of a run; NaN: not known. wall_s and utilisation are on the chosen line. */
#define REPORT_VALUES(X)                                                                                               \
	X(loss)                                                                                                            \
	X(average_loss)                                                                                                    \
	X(replica_loss)                                                                                                    \
	X(delta_cosine)                                                                                                    \
	X(delta_norm)                                                                                                      \
	X(codec_error)                                                                                                     \
	X(codec_cosine)                                                                                                    \
	X(bytes_sent)                                                                                                      \
	X(tokens)                                                                                                          \
	X(wall_s)                                                                                                          \
	X(utilisation)
#define VALUE(name) double name;
struct report_values {
	REPORT_VALUES(VALUE)
};
#undef VALUE

struct report_run {
	char label[REPORT_LABEL_BYTES];    /* "Rivulet, 4 workers", "data-parallel" */
	char directory[REPORT_PATH_BYTES]; /* of the lab: its own; of workers: that their directories are in */
	struct report_member *members;
	int n_members;
	const struct report_member *evals_of; /* the member with most evaluations */
	const struct report_member *whole;    /* with most rounds: some join late, or lost their file */
	struct record_totals totals;          /* of `whole`; loss: of who measured the end; bytes: mean over the members */
	struct report_facts facts;            /* of the first member */
	/* The hash of the text (dataset_content) of all members; "several:" and a hash of all if they
	 * differ; for a record without it, the path in run.conf. */
	char data[REPORT_DATA_BYTES];
	struct rv_hash config, series; /* equal where the runs are of one configuration, of one series */
	struct report_timing timing;   /* on the chosen line */
	struct report_values values;   /* of `evals_of` and `totals` */
	int found;                     /* how many were before it */
};

/* Over the runs of a configuration that have the value; the standard deviation is of a sample (n -
 * 1), NaN for one. */
struct report_spread {
	double mean, sd;
	int n;
};

/* Adds a value to *s, zero at first, whose `sd` is meanwhile the sum of squared distances from the
 * mean (Welford 1962); then ends it: NaN where there are too few. */
void report_spread_add(struct report_spread *s, double v);
void report_spread_end(struct report_spread *s);

struct report_group {
	char label[REPORT_LABEL_BYTES];
	char series_label[REPORT_LABEL_BYTES]; /* without H */
	const struct report_run *runs;         /* borrowed from report.runs */
	int n_runs, n_ended;
	int n_diverged;          /* whose numbers stopped being finite: they have no loss */
	uint64_t diverged_round; /* the first round in which one did, counted from 1 */
	int series;              /* number of the series; ascending, not without gaps */
#define VALUE(name) struct report_spread name;
	REPORT_VALUES(VALUE) /* of its runs' values */
#undef VALUE
};

struct lab_report {
	struct report_line line;
	struct report_run *runs; /* those of a group are neighbours */
	int n_runs;
	struct report_group *groups;
	int n_groups, n_series;
	char skipped[REPORT_MAX_SKIPPED][RV_ERRTEXT_BYTES]; /* what could not be read, and why */
	int n_skipped;                                      /* may be more than are kept */
	int n_again;                                        /* files that were named more than once: read once */
	bool on_bytes;                                      /* every run's tokens are bytes */
};

/* Reads PATH/metrics.jsonl and PATH/STAR/metrics.jsonl of each path, with what run.conf and
 * sweep.json beside them say. Workers in sibling directories with the same model are one run. A
 * path or file that cannot be used is named in `skipped`, as is a path whose files were read
 * already: a run counts once. RV_E_NOTFOUND, RV_E_CORRUPT and kin when nothing could be read: the
 * first of these reasons; RV_E_RANGE: more than REPORT_MAX_RUNS; RV_E_NOMEM. *p is to be released
 * even then. */
enum rv_err report_collect(struct lab_report *p, const char *const *paths, int n_paths, const struct report_line *line,
						   struct rv_errtext *et);
void report_release(struct lab_report *p);

/* Puts runs into groups, sorted: real runs first, then the lab's as they were found, then sweeps by
 * what sets their cells apart (groups.c). RV_E_NOMEM. Called by report_collect. */
enum rv_err report_group_runs(struct lab_report *p, struct rv_errtext *et);

/* Makes the groups' labels, by the options in which the cells of sweeps differ (labels.c).
 * RV_E_NOMEM. Called by report_group_runs. */
enum rv_err report_label_groups(struct lab_report *p, struct rv_errtext *et);

/* Returns the data-parallel configuration that `of` is compared with: on the same text, evaluated
 * alike, of as many workers, or if there is none such of any number above one; of several the one
 * with the lowest loss. NULL: there is none with a loss. */
const struct report_group *report_baseline(const struct lab_report *p, const struct report_group *of);
/* Returns the loss over the baseline's, minus 1; NaN: there is no comparison. */
double report_against_baseline(const struct lab_report *p, const struct report_group *g);
/* Returns how many times fewer bytes it sent than data-parallel training with fp32 gradients; NaN:
 * does not apply. */
double report_fewer_bytes(const struct report_group *g);
/* Returns the method by which the run was trained; NULL: none that this program knows. */
const struct lab_method *report_method(const struct report_run *r);
/* Returns true if gradients are averaged at every step: no outer optimizer, codec or H. */
bool report_is_data_parallel(const struct report_run *r);
/* Returns the outer optimizer, or codec, that the run had: a method may choose another than the
 * options say. NULL: not known. */
const char *report_fact_had(const struct report_run *r, const char *name);
/* Returns the held-out tokens that all runs were evaluated on, and how many there were; 0: they
 * differ, or are not known. */
struct report_eval {
	uint64_t tokens, of;
};
struct report_eval report_eval_tokens(const struct lab_report *p);
/* Writes "28209490" of "sha256:28209490...". */
enum { REPORT_SHORT_BYTES = 9 };
void report_short_data(const char *data, char out[REPORT_SHORT_BYTES]);
/* Returns the program that recorded all runs; "several versions"; "": no record says. */
const char *report_program(const struct lab_report *p);
/* Writes "820k to 11M parameters" where runs have models of different sizes, else "". */
void report_models_text(const struct lab_report *p, char out[REPORT_LABEL_BYTES]);
/* Returns true if runs are on more than one text. */
bool report_texts_differ(const struct lab_report *p);
/* Writes "in round 7", "2 of 3, first in round 7"; "": no run has diverged. */
void report_diverged_text(const struct report_group *g, char out[REPORT_LABEL_BYTES]);
/* Returns the bytes sent over those by the metrics' formula, minus 1; NaN: not known. */
double report_over_formula(const struct report_group *g);
/* Returns H, the inner steps between two exchanges; 1 for data-parallel. */
double report_steps_per_sync(const struct report_group *g);

void report_print_table(const struct lab_report *p, FILE *out);

#endif
