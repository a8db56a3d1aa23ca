/* groups.c: runs that differ in the seed only, put together, and what they come to. */
#include "lab/report/report.h"

#include "base/assert.h"
#include "base/chart/chart.h"
#include "lab/methods/methods.h"
#include "train/metrics.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- which runs belong together ---- */

const struct lab_method *report_method(const struct report_run *r) {
	return lab_method_find(r->evals_of->record.method);
}

bool report_is_data_parallel(const struct report_run *r) {
	const struct lab_method *m = report_method(r);
	return m && !m->averages;
}

static bool in_sweep(const struct report_run *r) {
	return r->facts.in_sweep;
}

static bool is_worker(const struct report_run *r) {
	return strcmp(r->evals_of->record.role, "worker") == 0;
}

/* Without a run.conf nothing is known to be equal: a run is then alone. */
static void identify(struct report_run *r, bool but_rounds, struct rv_hash *out) {
	const struct run_record *record = &r->evals_of->record;
	struct rv_hash facts = report_facts_hash(&r->facts, but_rounds);
	struct rv_hasher h = rv_hasher_of("rivulet report run");
	rv_hash_update(&h, facts.b, sizeof facts.b);
	rv_hash_update(&h, record->method, strlen(record->method) + 1);
	rv_hash_update(&h, record->role, strlen(record->role) + 1);
	rv_hash_u64(&h, record->n_params);
	rv_hash_u64(&h, record->workers);
	rv_hash_update(&h, r->data, strlen(r->data) + 1);
	rv_hash_u64(&h, record->eval_tokens);
	if (!r->facts.text)
		rv_hash_u64(&h, (uint64_t)r->found);
	*out = rv_hash_final(&h);
}

static double seed_of(const struct report_run *r) {
	return report_fact_number(&r->facts, "seed", 0);
}

static int by_number(double a, double b) {
	return a < b ? -1 : a > b;
}

/* What sets cells apart, as a reader would sort them; at last by configuration and seed. */
static int by_cell(const struct report_run *a, const struct report_run *b) {
	static const char *const texts[] = {"method", "outer", "codec"};
	int order = 0;
	for (size_t i = 0; order == 0 && i < sizeof texts / sizeof texts[0]; i++) {
		const char *x = report_fact(&a->facts, texts[i]), *y = report_fact(&b->facts, texts[i]);
		order = strcmp(x ? x : "", y ? y : "");
	}
	if (order == 0)
		order = by_number(a->evals_of->record.workers, b->evals_of->record.workers);
	if (order == 0)
		order = report_facts_compare(&a->facts, &b->facts);
	if (order == 0)
		order = strcmp(a->data, b->data);
	if (order == 0)
		order = memcmp(a->series.b, b->series.b, RV_HASH_BYTES);
	if (order == 0)
		order = by_number((double)a->evals_of->record.steps_per_round, (double)b->evals_of->record.steps_per_round);
	return order;
}

static int by_place(const void *a, const void *b) {
	const struct report_run *x = a, *y = b;
	if (is_worker(x) != is_worker(y))
		return is_worker(y) - is_worker(x);
	if (in_sweep(x) != in_sweep(y))
		return in_sweep(x) - in_sweep(y);
	int order = in_sweep(x) ? by_cell(x, y) : by_number(x->found, y->found);
	if (order == 0)
		order = memcmp(x->config.b, y->config.b, RV_HASH_BYTES);
	if (order == 0)
		order = by_number(seed_of(x), seed_of(y));
	return order != 0 ? order : strcmp(x->directory, y->directory);
}

/* A run whose seed is there already is the same run again: it stands alone. */
static bool joins(const struct report_group *g, const struct report_run *r) {
	if (!rv_hash_equal(&g->runs[0].config, &r->config))
		return false;
	for (int i = 0; i < g->n_runs; i++)
		if (seed_of(&g->runs[i]) == seed_of(r))
			return false;
	return true;
}

/* Runs that are not of a sweep stay where the first of their configuration was found. */
static void found_with_first(struct lab_report *p) {
	for (int i = 0; i < p->n_runs; i++)
		for (int k = 0; k < i && !in_sweep(&p->runs[i]); k++)
			if (rv_hash_equal(&p->runs[k].config, &p->runs[i].config)) {
				p->runs[i].found = p->runs[k].found;
				break;
			}
}

/* ---- numbers ---- */

void report_spread_add(struct report_spread *s, double v) {
	const double from = v - s->mean;
	s->mean += from / ++s->n;
	s->sd += from * (v - s->mean);
}

void report_spread_end(struct report_spread *s) {
	s->mean = s->n > 0 ? s->mean : NAN;
	s->sd = s->n > 1 ? sqrt(s->sd / (s->n - 1)) : NAN;
}

/* Returns the spread of a field of report_values (its offset). Runs that go on are compared with
 * none that have ended. */
static struct report_spread spread_of(const struct report_group *g, size_t value) {
	struct report_spread s = {0};
	for (int i = 0; i < g->n_runs; i++) {
		double v = *(const double *)((const char *)&g->runs[i].values + value);
		if (isfinite(v) && (g->n_ended == 0 || g->runs[i].evals_of->record.ended))
			report_spread_add(&s, v);
	}
	report_spread_end(&s);
	return s;
}

static void measure(struct report_group *g) {
	for (int i = 0; i < g->n_runs; i++) {
		const uint64_t round = g->runs[i].evals_of->record.diverged_round;
		g->n_ended += g->runs[i].evals_of->record.ended;
		g->n_diverged += round > 0;
		if (round > 0 && (g->diverged_round == 0 || round < g->diverged_round))
			g->diverged_round = round;
	}
#define VALUE(name) g->name = spread_of(g, offsetof(struct report_values, name));
	REPORT_VALUES(VALUE)
#undef VALUE
}

/* A series that was there before, or a new one. */
static int series_of(const struct lab_report *p, const struct report_group *g) {
	for (const struct report_group *before = p->groups; before < g; before++)
		if (rv_hash_equal(&before->runs[0].series, &g->runs[0].series))
			return before->series;
	return p->n_series;
}

/* Sorted runs: those of a configuration are neighbours. */
static void make_groups(struct lab_report *p) {
	RV_ASSERT(p->groups);
	for (int i = 0; i < p->n_runs; i++) {
		struct report_group *last = p->n_groups > 0 ? &p->groups[p->n_groups - 1] : NULL;
		if (last && joins(last, &p->runs[i]))
			last->n_runs++;
		else
			p->groups[p->n_groups++] = (struct report_group){.runs = &p->runs[i], .n_runs = 1};
	}
	for (int i = 0; i < p->n_groups; i++) {
		struct report_group *g = &p->groups[i];
		measure(g);
		g->series = series_of(p, g);
		p->n_series += g->series == p->n_series;
	}
}

enum rv_err report_group_runs(struct lab_report *p, struct rv_errtext *et) {
	p->groups = calloc((size_t)p->n_runs, sizeof *p->groups);
	if (!p->groups)
		return rv_fail(et, RV_E_NOMEM, "no memory for a report of %d runs", p->n_runs);
	p->on_bytes = true;
	for (int i = 0; i < p->n_runs; i++) {
		const char *tokenizer = report_fact(&p->runs[i].facts, "tokenizer-hash");
		p->on_bytes &= !tokenizer || !tokenizer[0];
		identify(&p->runs[i], false, &p->runs[i].config);
		identify(&p->runs[i], true, &p->runs[i].series);
	}
	found_with_first(p);
	qsort(p->runs, (size_t)p->n_runs, sizeof *p->runs, by_place);
	make_groups(p);
	return report_label_groups(p, et);
}

/* ---- comparisons ---- */

/* Losses of the two can be compared: the same held-out tokens of the same text. */
static bool same_task(const struct report_group *a, const struct report_group *b) {
	return strcmp(a->runs[0].data, b->runs[0].data) == 0 &&
		   a->runs[0].evals_of->record.eval_tokens == b->runs[0].evals_of->record.eval_tokens;
}

struct report_eval report_eval_tokens(const struct lab_report *p) {
	struct report_eval e = {0};
	for (int i = 0; i < p->n_runs; i++) {
		const struct run_record *r = &p->runs[i].evals_of->record;
		if (i > 0 && (r->eval_tokens != e.tokens || r->heldout_tokens != e.of))
			return (struct report_eval){0};
		e = (struct report_eval){r->eval_tokens, r->heldout_tokens};
	}
	return e;
}

void report_short_data(const char *data, char out[REPORT_SHORT_BYTES]) {
	const char *colon = strrchr(data, ':');
	snprintf(out, REPORT_SHORT_BYTES, "%s", colon ? colon + 1 : data);
}

const char *report_program(const struct lab_report *p) {
	const char *first = p->runs[0].evals_of->record.program;
	for (int i = 1; i < p->n_runs; i++)
		if (strcmp(p->runs[i].evals_of->record.program, first) != 0)
			return "several versions";
	return first;
}

bool report_texts_differ(const struct lab_report *p) {
	for (int i = 1; i < p->n_runs; i++)
		if (strcmp(p->runs[i].data, p->runs[0].data) != 0)
			return true;
	return false;
}

void report_models_text(const struct lab_report *p, char out[REPORT_LABEL_BYTES]) {
	uint64_t least = UINT64_MAX, most = 0;
	char from[CHART_TEXT_BYTES], to[CHART_TEXT_BYTES];
	for (int i = 0; i < p->n_runs; i++) {
		const uint64_t n = p->runs[i].evals_of->record.n_params;
		least = n < least ? n : least;
		most = n > most ? n : most;
	}
	chart_si((double)least, from);
	chart_si((double)most, to);
	out[0] = '\0';
	if (least != most)
		snprintf(out, REPORT_LABEL_BYTES, "%s to %s parameters", from, to);
}

const struct report_group *report_baseline(const struct lab_report *p, const struct report_group *of) {
	const struct report_group *best = NULL;
	const uint32_t wanted = of ? of->runs[0].evals_of->record.workers : 0;
	for (int i = 0; i < p->n_groups; i++) {
		const struct report_group *g = &p->groups[i];
		const struct run_record *r = &g->runs[0].evals_of->record;
		if (!report_is_data_parallel(&g->runs[0]) || r->workers <= 1 || !isfinite(g->loss.mean))
			continue;
		if (of && !same_task(g, of))
			continue;
		const bool fits = r->workers == wanted;
		const bool best_fits = best && best->runs[0].evals_of->record.workers == wanted;
		if (!best || (fits && !best_fits) || (fits == best_fits && g->loss.mean < best->loss.mean))
			best = g;
	}
	return best;
}

double report_against_baseline(const struct lab_report *p, const struct report_group *g) {
	const struct report_group *baseline = report_baseline(p, g);
	return baseline && baseline != g ? g->loss.mean / baseline->loss.mean - 1 : NAN;
}

double report_fewer_bytes(const struct report_group *g) {
	double ddp = g->runs[0].whole->ddp_bytes;
	return ddp > 0 && g->bytes_sent.mean > 0 ? ddp / g->bytes_sent.mean : NAN;
}

void report_diverged_text(const struct report_group *g, char out[REPORT_LABEL_BYTES]) {
	const unsigned long long round = g->diverged_round;
	out[0] = '\0';
	if (g->n_diverged == 1 && g->n_runs == 1)
		snprintf(out, REPORT_LABEL_BYTES, "in round %llu", round);
	else if (g->n_diverged > 0)
		snprintf(out, REPORT_LABEL_BYTES, "%d of %d, first in round %llu", g->n_diverged, g->n_runs, round);
}

double report_over_formula(const struct report_group *g) {
	const struct record_totals *t = &g->runs[0].totals;
	return t->formula_bytes > 0 ? t->bytes_sent / t->formula_bytes - 1 : NAN;
}

double report_steps_per_sync(const struct report_group *g) {
	const struct report_run *r = &g->runs[0];
	if (report_is_data_parallel(r))
		return 1;
	return (double)r->evals_of->record.steps_per_round * report_fact_number(&r->facts, "fragments", 1);
}
