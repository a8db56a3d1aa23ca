/* report_collect.c: finding metrics files, and putting the workers of one run together. */
#include "lab/report.h"
#include "worker/train/metrics.h"

#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* "a/b" of "a/b/worker0/metrics.jsonl" */
static void directory_of_run(const char *file, char *out, size_t cap) {
	snprintf(out, cap, "%s", file);
	for (int up = 0; up < 2; up++) {
		char *slash = strrchr(out, '/');
		if (slash)
			*slash = '\0';
		else
			snprintf(out, cap, ".");
	}
}

static bool is_worker(const struct run_record *r) {
	return strcmp(r->role, "worker") == 0;
}

static bool same_run(const struct report_run *run, const char *directory, const struct run_record *r) {
	const struct run_record *first = &run->members[0];
	return is_worker(first) && is_worker(r) && strcmp(run->directory, directory) == 0 &&
		   first->n_params == r->n_params && strcmp(first->method, r->method) == 0 &&
		   first->steps_per_round == r->steps_per_round;
}

static enum rv_err add_member(struct report_run *run, const struct run_record *r, struct rv_errtext *et) {
	if (run->n_members == REPORT_MAX_MEMBERS)
		return rv_fail(et, RV_E_RANGE, "more than %d workers in %s", REPORT_MAX_MEMBERS, run->directory);
	struct run_record *grown = realloc(run->members, (size_t)(run->n_members + 1) * sizeof *grown);
	if (!grown)
		return rv_fail(et, RV_E_NOMEM, "no memory for a report");
	run->members = grown;
	run->members[run->n_members++] = *r;
	return RV_OK;
}

static enum rv_err add_record(struct report *p, const char *file, const struct run_record *r, struct rv_errtext *et) {
	char directory[512];
	directory_of_run(file, directory, sizeof directory);
	for (int i = 0; i < p->n_runs; i++)
		if (same_run(&p->runs[i], directory, r))
			return add_member(&p->runs[i], r, et);
	if (p->n_runs == REPORT_MAX_RUNS)
		return rv_fail(et, RV_E_RANGE, "more than %d runs; name fewer directories", REPORT_MAX_RUNS);
	struct report_run *run = &p->runs[p->n_runs++];
	*run = (struct report_run){0};
	snprintf(run->directory, sizeof run->directory, "%s", directory);
	return add_member(run, r, et);
}

static enum rv_err add_file(struct report *p, const char *file, struct rv_errtext *et) {
	struct run_record r;
	RV_TRY(run_record_read(file, &r, et));
	enum rv_err e = add_record(p, file, &r, et);
	if (e != RV_OK)
		run_record_release(&r);
	return e;
}

/* Both patterns of one path. */
static enum rv_err add_path(struct report *p, const char *path, struct rv_errtext *et) {
	char direct[600], nested[600];
	snprintf(direct, sizeof direct, "%s/" METRICS_FILE, path);
	snprintf(nested, sizeof nested, "%s/*/" METRICS_FILE, path);
	glob_t found = {0};
	(void)glob(direct, GLOB_NOSORT, NULL, &found);
	(void)glob(nested, found.gl_pathc > 0 ? GLOB_APPEND : 0, NULL, &found);
	enum rv_err e = RV_OK;
	if (found.gl_pathc == 0)
		e = rv_fail(et, RV_E_NOTFOUND, "%s: no " METRICS_FILE " in it, nor in a directory in it", path);
	for (size_t i = 0; e == RV_OK && i < found.gl_pathc; i++)
		e = add_file(p, found.gl_pathv[i], et);
	globfree(&found);
	return e;
}

static int by_member(const void *a, const void *b) {
	const struct run_record *x = a, *y = b;
	return x->member < y->member ? -1 : x->member > y->member;
}

/* By how many took part in the rounds, as their records say: of some workers the directories may be elsewhere. */
static void label_workers(struct report_run *run) {
	uint64_t least = UINT64_MAX, most = 0;
	for (int i = 0; i < run->n_members; i++)
		for (int k = 0; k < run->members[i].n_rounds; k++) {
			uint64_t n = run->members[i].rounds[k].participants;
			least = n > 0 && n < least ? n : least;
			most = n > most ? n : most;
		}
	if (most == 0)
		least = most = (uint64_t)run->n_members;
	if (least < most)
		snprintf(run->label, sizeof run->label, "Rivulet, %" PRIu64 " to %" PRIu64 " workers", least, most);
	else
		snprintf(run->label, sizeof run->label, "Rivulet, %" PRIu64 " worker%s", most, most == 1 ? "" : "s");
}

static void summarise(struct report_run *run) {
	qsort(run->members, (size_t)run->n_members, sizeof *run->members, by_member);
	run->evals_of = &run->members[0];
	double sent = 0, formula = 0;
	for (int i = 0; i < run->n_members; i++) {
		struct record_totals t = run_record_totals(&run->members[i]);
		sent += t.bytes_sent / run->n_members;
		formula += t.formula_bytes / run->n_members;
		if (run->members[i].n_evals > run->evals_of->n_evals)
			run->evals_of = &run->members[i];
	}
	run->totals = run_record_totals(run->evals_of);
	run->totals.bytes_sent = sent;
	run->totals.formula_bytes = formula;
	const struct run_record *first = run->evals_of;
	if (is_worker(first))
		label_workers(run);
	else
		snprintf(run->label, sizeof run->label, "%s", first->name);
}

/* Real runs before the lab's; else as they were found. */
static void real_runs_first(struct report *p) {
	struct report_run sorted[REPORT_MAX_RUNS];
	int n = 0;
	for (int real = 1; real >= 0; real--)
		for (int i = 0; i < p->n_runs; i++)
			if (is_worker(p->runs[i].evals_of) == (real == 1))
				sorted[n++] = p->runs[i];
	memcpy(p->runs, sorted, (size_t)n * sizeof sorted[0]);
}

enum rv_err report_collect(struct report *p, const char *const *paths, int n_paths, struct rv_errtext *et) {
	*p = (struct report){0};
	enum rv_err e = RV_OK;
	for (int i = 0; e == RV_OK && i < n_paths; i++)
		e = add_path(p, paths[i], et);
	if (e != RV_OK) {
		report_release(p);
		return e;
	}
	for (int i = 0; i < p->n_runs; i++)
		summarise(&p->runs[i]);
	real_runs_first(p);
	return RV_OK;
}

void report_release(struct report *p) {
	for (int i = 0; i < p->n_runs; i++) {
		for (int k = 0; k < p->runs[i].n_members; k++)
			run_record_release(&p->runs[i].members[k]);
		free(p->runs[i].members);
	}
	*p = (struct report){0};
}

const struct report_run *report_baseline(const struct report *p) {
	for (int i = 0; i < p->n_runs; i++) {
		const struct run_record *r = p->runs[i].evals_of;
		if (strcmp(r->method, "ddp") == 0 && r->workers > 1)
			return &p->runs[i];
	}
	return NULL;
}
