/* collect.c: finding metrics files, and putting the workers of one run together. */
#include "base/clean_text.h"
#include "base/hex.h"
#include "lab/report/report.h"
#include "train/metrics.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EVALS_KEPT = 256 }; /* of a record: more than a chart can show */

/* ---- one file ---- */

/* Every so many, and the last. */
static void thin_evals(struct run_record *r) {
	int every = r->n_evals / EVALS_KEPT + 1, n = 0;
	for (int i = 0; i < r->n_evals; i++)
		if ((i + 1) % every == 0 || i == r->n_evals - 1)
			r->evals[n++] = r->evals[i];
	r->n_evals = n;
}

/* Takes over the record; of its rounds what is needed. */
static struct report_member member_of(const struct run_record *r) {
	struct report_member m = {.record = *r,
							  .totals = run_record_totals(r),
							  .ddp_bytes = run_record_ddp_bytes(r),
							  .n_rounds = r->n_rounds,
							  .least_participants = UINT64_MAX};
	for (int i = 0; i < r->n_rounds; i++) {
		uint64_t n = r->rounds[i].participants;
		m.least_participants = n > 0 && n < m.least_participants ? n : m.least_participants;
		m.most_participants = n > m.most_participants ? n : m.most_participants;
	}
	free(m.record.rounds);
	m.record.rounds = NULL;
	m.record.n_rounds = 0;
	thin_evals(&m.record);
	char *const texts[] = {m.record.name,  m.record.role,    m.record.method, m.record.codec,
						   m.record.outer, m.record.program, m.record.data};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		clean_text(texts[i]);
	return m;
}

/* ---- into runs ---- */

static bool is_worker(const struct run_record *r) {
	return strcmp(r->role, "worker") == 0;
}

static bool same_run(const struct report_run *run, const char *directory, const struct run_record *r) {
	const struct run_record *first = &run->members[0].record;
	return is_worker(first) && strcmp(run->directory, directory) == 0 && first->n_params == r->n_params &&
		   strcmp(first->method, r->method) == 0 && first->steps_per_round == r->steps_per_round;
}

static enum rv_err add_member(struct report_run *run, const struct report_member *m, struct rv_errtext *et) {
	if (run->n_members == REPORT_MAX_MEMBERS)
		return rv_fail(et, RV_E_RANGE, "more than %d workers in %s", REPORT_MAX_MEMBERS, run->directory);
	struct report_member *grown = realloc(run->members, (size_t)(run->n_members + 1) * sizeof *grown);
	if (!grown)
		return rv_fail(et, RV_E_NOMEM, "no memory for a report");
	run->members = grown;
	run->members[run->n_members++] = *m;
	return RV_OK;
}

/* A new run at the end. Doubles at powers of two. */
static enum rv_err add_run(struct lab_report *p, const char *directory, struct report_run **out,
						   struct rv_errtext *et) {
	if (p->n_runs == REPORT_MAX_RUNS)
		return rv_fail(et, RV_E_RANGE, "more than %d runs; name fewer directories", REPORT_MAX_RUNS);
	if ((p->n_runs & (p->n_runs - 1)) == 0) {
		struct report_run *grown = realloc(p->runs, (size_t)(p->n_runs > 0 ? 2 * p->n_runs : 1) * sizeof *grown);
		if (!grown)
			return rv_fail(et, RV_E_NOMEM, "no memory for a report of %d runs", p->n_runs + 1);
		p->runs = grown;
	}
	*out = &p->runs[p->n_runs];
	**out = (struct report_run){.found = p->n_runs++};
	snprintf((*out)->directory, sizeof(*out)->directory, "%s", directory);
	return RV_OK;
}

/* "a" of "a/b"; "." of "b". */
static void parent_of(const char *dir, char out[REPORT_PATH_BYTES]) {
	snprintf(out, REPORT_PATH_BYTES, "%s", dir);
	size_t n = strlen(out);
	while (n > 1 && out[n - 1] == '/')
		out[--n] = '\0';
	char *slash = strrchr(out, '/');
	if (slash && slash > out)
		*slash = '\0';
	else
		snprintf(out, REPORT_PATH_BYTES, "%s", slash ? "/" : ".");
}

static enum rv_err add_to_run(struct lab_report *p, const char *dir, const struct report_member *m, bool *is_new,
							  struct rv_errtext *et) {
	char parent[REPORT_PATH_BYTES];
	const bool worker = is_worker(&m->record);
	parent_of(dir, parent);
	*is_new = false;
	for (int i = 0; worker && i < p->n_runs; i++)
		if (same_run(&p->runs[i], parent, &m->record))
			return add_member(&p->runs[i], m, et);
	struct report_run *run = NULL;
	RV_TRY(add_run(p, worker ? parent : dir, &run, et));
	*is_new = true;
	enum rv_err e = add_member(run, m, et);
	if (e != RV_OK)
		p->n_runs--;
	return e;
}

__attribute__((format(printf, 2, 3))) static void skip(struct lab_report *p, const char *format, ...) {
	if (p->n_skipped < REPORT_MAX_SKIPPED) {
		va_list values;
		va_start(values, format);
		vsnprintf(p->skipped[p->n_skipped], RV_ERRTEXT_BYTES, format, values);
		va_end(values);
		clean_text(p->skipped[p->n_skipped]);
	}
	p->n_skipped++;
}

static bool is_read(const struct lab_report *p, const struct stat *file) {
	for (int i = 0; i < p->n_runs; i++)
		for (int k = 0; k < p->runs[i].n_members; k++)
			if (p->runs[i].members[k].device == file->st_dev && p->runs[i].members[k].inode == file->st_ino)
				return true;
	return false;
}

/* Takes over the record and the facts. */
static enum rv_err add_record(struct lab_report *p, const char *dir, const struct stat *file, struct run_record *r,
							  struct report_facts *facts, struct rv_errtext *et) {
	struct report_member m = member_of(r);
	bool is_new;
	m.device = file->st_dev;
	m.inode = file->st_ino;
	enum rv_err e = add_to_run(p, dir, &m, &is_new, et);
	if (e != RV_OK)
		run_record_release(&m.record);
	if (e == RV_OK && is_new)
		p->runs[p->n_runs - 1].facts = *facts;
	else
		report_facts_release(facts);
	return e;
}

/* Adds a run. Returns RV_OK also if a file is unusable: that is named, and the run left out,
 * because without its options it would be grouped wrongly. */
static enum rv_err add_directory(struct lab_report *p, const char *dir, struct rv_errtext *et) {
	char path[REPORT_PATH_BYTES + 32];
	struct run_record r;
	struct report_facts facts;
	struct stat file = {0};
	struct rv_errtext why = {0};
	snprintf(path, sizeof path, "%s/" METRICS_FILE, dir);
	if (stat(path, &file) == 0 && is_read(p, &file)) {
		p->n_again++;
		return RV_OK;
	}
	if (run_record_read(path, &r, &why) != RV_OK) {
		skip(p, "%s", why.text);
		return RV_OK;
	}
	if (report_facts_read(dir, &facts, &why) != RV_OK) {
		run_record_release(&r);
		skip(p, "%s", why.text);
		return RV_OK;
	}
	return add_record(p, dir, &file, &r, &facts, et);
}

/* ---- finding ---- */

static bool holds(const char *dir, const char *file) {
	char path[REPORT_PATH_BYTES + 32];
	snprintf(path, sizeof path, "%s/%s", dir, file);
	return access(path, F_OK) == 0;
}

static int no_dots(const struct dirent *d) {
	return d->d_name[0] != '.';
}

/* A cell of a sweep that has not begun is no fault of anybody, but its absence should be
 * noticed. */
static void note_waiting(struct lab_report *p, const char *dir) {
	if (holds(dir, "sweep.json"))
		skip(p, "%s: no " METRICS_FILE ": this cell of a sweep has not begun", dir);
}

static enum rv_err add_below(struct lab_report *p, const char *path, int *n_found, struct rv_errtext *et) {
	struct dirent **entries;
	int n = scandir(path, &entries, no_dots, alphasort);
	enum rv_err e = RV_OK;
	if (n < 0)
		return RV_OK;
	for (int i = 0; i < n; i++) {
		char dir[REPORT_PATH_BYTES];
		bool fits = snprintf(dir, sizeof dir, "%s/%s", path, entries[i]->d_name) < (int)sizeof dir;
		free(entries[i]);
		if (e != RV_OK || !fits)
			continue;
		if (!holds(dir, METRICS_FILE)) {
			note_waiting(p, dir);
			continue;
		}
		++*n_found;
		e = add_directory(p, dir, et);
	}
	free(entries);
	return e;
}

static enum rv_err add_path(struct lab_report *p, const char *path, struct rv_errtext *et) {
	int n_found = 0;
	const int n_again = p->n_again;
	if (strlen(path) >= REPORT_PATH_BYTES - 1) {
		skip(p, "%.100s...: a path of %zu bytes, at most %d", path, strlen(path), REPORT_PATH_BYTES - 2);
		return RV_OK;
	}
	if (holds(path, METRICS_FILE)) {
		n_found++;
		RV_TRY(add_directory(p, path, et));
	}
	RV_TRY(add_below(p, path, &n_found, et));
	if (n_found == 0)
		skip(p, "%s: no " METRICS_FILE " in it, nor in a directory in it", path);
	if (p->n_again > n_again)
		skip(p, "%s: %d of the runs here were named before: they count once", path, p->n_again - n_again);
	return RV_OK;
}

/* ---- what they come to ---- */

static int by_member(const void *a, const void *b) {
	const struct report_member *x = a, *y = b;
	return x->record.member < y->record.member ? -1 : x->record.member > y->record.member;
}

/* By how many took part in the rounds, as their records say: of some workers the directories may be
 * elsewhere. */
static void label_workers(struct report_run *run) {
	uint64_t least = UINT64_MAX, most = 0;
	for (int i = 0; i < run->n_members; i++) {
		const struct report_member *m = &run->members[i];
		least = m->least_participants < least ? m->least_participants : least;
		most = m->most_participants > most ? m->most_participants : most;
	}
	if (most == 0)
		least = most = (uint64_t)run->n_members;
	if (least < most)
		snprintf(run->label, sizeof run->label, "Rivulet, %" PRIu64 " to %" PRIu64 " workers", least, most);
	else
		snprintf(run->label, sizeof run->label, "Rivulet, %" PRIu64 " worker%s", most, most == 1 ? "" : "s");
}

/* That of a member that measured the end. Once somebody has ended, an evaluation of an earlier
 * round is none of it. */
static double result_of(const struct report_run *run) {
	uint64_t rounds = 0;
	bool ended = false;
	for (int i = 0; i < run->n_members; i++) {
		const struct report_member *m = &run->members[i];
		if (m->record.ended && isfinite(m->record.final_loss))
			return m->record.final_loss;
		ended |= m->record.ended;
		rounds = m->totals.rounds > rounds ? m->totals.rounds : rounds;
	}
	const struct run_record *r = &run->evals_of->record;
	bool of_the_end = r->n_evals > 0 && r->evals[r->n_evals - 1].round == rounds;
	return !ended || of_the_end ? run->evals_of->totals.loss : NAN;
}

/* Of all members; where a record does not say it, the path. */
static void find_data(struct report_run *run) {
	const char *first = run->members[0].record.data, *path = report_fact(&run->facts, "data");
	char hex[2 * RV_HASH_BYTES + 1];
	bool several = false;
	struct rv_hasher h = rv_hasher_of("rivulet report texts");
	for (int i = 0; i < run->n_members; i++) {
		several |= strcmp(run->members[i].record.data, first) != 0;
		rv_hash_update(&h, run->members[i].record.data, strlen(run->members[i].record.data) + 1);
	}
	const struct rv_hash all = rv_hash_final(&h);
	rv_hex_encode(all.b, sizeof all.b, hex);
	if (several)
		snprintf(run->data, sizeof run->data, "several:%s", hex);
	else
		snprintf(run->data, sizeof run->data, "%s%s", first[0] ? "" : path ? path : "", first);
}

static struct report_values values_of(const struct report_run *run) {
	const struct report_member *m = run->evals_of;
	return (struct report_values){.loss = m->record.diverged_round > 0 ? NAN : run->totals.loss,
								  .average_loss = m->record.average_loss,
								  .replica_loss = m->record.replica_loss,
								  .delta_cosine = m->totals.delta_cosine,
								  .delta_norm = m->totals.delta_norm,
								  .codec_error = m->totals.codec_error,
								  .codec_cosine = m->totals.codec_cosine,
								  .bytes_sent = run->totals.bytes_sent,
								  .tokens = (double)run->totals.tokens,
								  .wall_s = run->timing.step_wall_s * (double)run->totals.steps,
								  .utilisation = run->timing.utilisation};
}

static void summarise(struct report_run *run, const struct report_line *line) {
	qsort(run->members, (size_t)run->n_members, sizeof *run->members, by_member);
	run->evals_of = &run->members[0];
	run->whole = &run->members[0];
	double sent = 0, formula = 0;
	for (int i = 0; i < run->n_members; i++) {
		const struct report_member *m = &run->members[i];
		sent += m->totals.bytes_sent / run->n_members;
		formula += m->totals.formula_bytes / run->n_members;
		if (m->record.n_evals > run->evals_of->record.n_evals)
			run->evals_of = m;
		if (m->n_rounds > run->whole->n_rounds)
			run->whole = m;
	}
	run->totals = run->whole->totals;
	run->totals.loss = result_of(run);
	run->totals.bytes_sent = sent;
	run->totals.formula_bytes = formula;
	run->timing = report_line_apply(line, &run->whole->record, &run->whole->totals, &run->facts);
	run->values = values_of(run);
	find_data(run);
	if (is_worker(&run->evals_of->record))
		label_workers(run);
	else
		snprintf(run->label, sizeof run->label, "%s", run->evals_of->record.name);
}

enum rv_err report_collect(struct lab_report *p, const char *const *paths, int n_paths, const struct report_line *line,
						   struct rv_errtext *et) {
	*p = (struct lab_report){.line = *line};
	for (int i = 0; i < n_paths; i++)
		RV_TRY(add_path(p, paths[i], et));
	if (p->n_runs == 0)
		return rv_fail(et, RV_E_NOTFOUND, "%s", p->skipped[0]);
	for (int i = 0; i < p->n_runs; i++)
		summarise(&p->runs[i], line);
	return report_group_runs(p, et);
}

void report_release(struct lab_report *p) {
	for (int i = 0; i < p->n_runs; i++) {
		for (int k = 0; k < p->runs[i].n_members; k++)
			run_record_release(&p->runs[i].members[k].record);
		free(p->runs[i].members);
		report_facts_release(&p->runs[i].facts);
	}
	free(p->runs);
	free(p->groups);
	*p = (struct lab_report){0};
}
