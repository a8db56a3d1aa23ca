/* report_figures.c: see report_figures.h. */
#include "lab/report_figures.h"

#include "lab/clean_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum against { AGAINST_H, AGAINST_BYTES, AGAINST_TOKENS, AGAINST_WALL };

struct figure_plan {
	const char *id, *title, *x_label, *x_column;
	enum against against;
	bool final, x_log;
	chart_format *format_x;
};

static const struct figure_plan plans[REPORT_MAX_FIGURES] = {
	{"loss-against-h", "Held-out loss at the end against H", "H: inner steps between two exchanges (log)",
	 "steps_between_exchanges", AGAINST_H, true, true, chart_si},
	{"loss-against-bytes", "Held-out loss at the end against bytes sent", "bytes sent per worker (log)", "bytes_sent",
	 AGAINST_BYTES, true, true, chart_bytes},
	{"loss-against-wall-clock", "Held-out loss at the end against wall-clock", "wall-clock of the run (log)", "wall_s",
	 AGAINST_WALL, true, true, chart_seconds},
	{"curve-tokens", "Held-out loss against tokens", "tokens, all workers together", "tokens", AGAINST_TOKENS, false,
	 false, chart_si},
	{"curve-bytes", "Held-out loss against bytes sent", "bytes sent per worker (log)", "bytes_sent", AGAINST_BYTES,
	 false, true, chart_bytes},
	{"curve-wall-clock", "Held-out loss against wall-clock", "wall-clock", "wall_s", AGAINST_WALL, false, false,
	 chart_seconds},
};

/* ---- which lines ----------------------------------------------------------------------------------------------------
 */

struct line_of {
	int group;   /* of a curve; of a series its first; -1: none yet */
	double loss; /* the lowest; infinite: none */
	uint64_t kind;
	int rank; /* among those of its kind, by loss */
};

/* Of the method, the outer optimizer, the codec, and the number of workers: lines of one kind are variations. */
static uint64_t kind_of(const struct report_group *g) {
	const struct report_run *r = &g->runs[0];
	const char *outer = report_fact(&r->facts, "outer");
	struct rv_hasher h;
	struct rv_hash out;
	uint64_t kind;
	rv_hash_init_domain(&h, "rivulet report kind");
	rv_hash_update(&h, r->evals_of->record.method, strlen(r->evals_of->record.method) + 1);
	rv_hash_update(&h, r->evals_of->record.codec, strlen(r->evals_of->record.codec) + 1);
	rv_hash_update(&h, outer ? outer : "", outer ? strlen(outer) + 1 : 1);
	rv_hash_u64(&h, r->evals_of->record.workers);
	rv_hash_final(&h, &out);
	memcpy(&kind, out.b, sizeof kind);
	return kind;
}

static int by_loss(const struct line_of *x, const struct line_of *y) {
	return x->loss < y->loss ? -1 : x->loss > y->loss ? 1 : x->group - y->group;
}

static int by_kind(const void *a, const void *b) {
	const struct line_of *x = a, *y = b;
	return x->kind != y->kind ? (x->kind < y->kind ? -1 : 1) : by_loss(x, y);
}

static int by_rank(const void *a, const void *b) {
	const struct line_of *x = a, *y = b;
	return x->rank != y->rank ? x->rank - y->rank : by_loss(x, y);
}

static int by_group(const void *a, const void *b) {
	return ((const struct line_of *)a)->group - ((const struct line_of *)b)->group;
}

/* Of all lines those that are shown, in the table's order; returns how many: the best of each kind, then the second best... */
static int choose_lines(const struct report *p, bool series, struct line_of *lines, int *n_all) {
	int n = series ? p->n_series : p->n_groups;
	for (int i = 0; i < n; i++)
		lines[i] = (struct line_of){.group = -1, .loss = INFINITY};
	for (int g = 0; g < p->n_groups; g++) {
		struct line_of *l = &lines[series ? p->groups[g].series : g];
		if (l->group < 0) {
			l->group = g;
			l->kind = kind_of(&p->groups[g]);
		}
		l->loss = fmin(l->loss, p->groups[g].loss.mean);
	}
	*n_all = n;
	qsort(lines, (size_t)n, sizeof *lines, by_kind);
	for (int i = 1; i < n; i++)
		lines[i].rank = lines[i].kind == lines[i - 1].kind ? lines[i - 1].rank + 1 : 0;
	qsort(lines, (size_t)n, sizeof *lines, by_rank);
	n = n < REPORT_MAX_LINES ? n : REPORT_MAX_LINES;
	qsort(lines, (size_t)n, sizeof *lines, by_group);
	return n;
}

/* ---- their points ---------------------------------------------------------------------------------------------------
 */

/* x, y and sd of `cap` points, one array after the other. */
static struct chart_series empty_series(const char *label, double *numbers, int cap) {
	return (struct chart_series){
		.label = label, .x = numbers, .y = numbers + cap, .sd = numbers + 2 * (size_t)cap, .n = 0};
}

static void put_point(struct chart_series *s, double *numbers, int cap, double x, double y, double sd) {
	int at = s->n++;
	for (; at > 0 && numbers[at - 1] > x; at--)
		for (int k = 0; k < 3; k++)
			numbers[k * cap + at] = numbers[k * cap + at - 1];
	numbers[at] = x;
	numbers[cap + at] = y;
	numbers[2 * cap + at] = sd;
}

static double final_x(const struct report_group *g, enum against against) {
	return against == AGAINST_H       ? report_steps_per_sync(g)
		   : against == AGAINST_BYTES ? g->bytes_sent.mean
		   : against == AGAINST_WALL  ? g->wall_s.mean
									  : g->tokens.mean;
}

static struct chart_series final_series(const struct report *p, int first, enum against against, double **numbers) {
	const struct report_group *g = &p->groups[first];
	int cap = 0;
	for (int i = first; i < p->n_groups; i++)
		cap += p->groups[i].series == g->series;
	*numbers = malloc((size_t)cap * 3 * sizeof **numbers);
	struct chart_series s = empty_series(g->series_label, *numbers, cap);
	for (int i = first; *numbers && i < p->n_groups; i++) {
		const struct report_group *k = &p->groups[i];
		double x = final_x(k, against);
		if (k->series == g->series && isfinite(x) && isfinite(k->loss.mean))
			put_point(&s, *numbers, cap, x, k->loss.mean, k->loss.sd);
	}
	return s;
}

static double eval_x(const struct report_run *r, int i, enum against against) {
	const struct run_record *record = &r->evals_of->record;
	const struct record_eval *e = &record->evals[i];
	return against == AGAINST_BYTES  ? e->bytes_sent
		   : against == AGAINST_WALL ? (double)e->round * (double)record->steps_per_round * r->timing.step_wall_s
									 : (double)e->tokens;
}

/* The runs of a configuration are evaluated after the same rounds; those that did not get so far are not in the mean. */
static void mean_eval(const struct report_group *g, int i, enum against against, double out[3]) {
	double x = 0, y = 0, squares = 0;
	int n = 0;
	for (int pass = 0; pass < 2; pass++)
		for (int k = 0; k < g->n_runs; k++) {
			const struct report_run *r = &g->runs[k];
			if (i >= r->evals_of->record.n_evals)
				continue;
			double loss = r->evals_of->record.evals[i].loss;
			if (pass == 0) {
				x += eval_x(r, i, against);
				y += loss;
				n++;
			} else {
				squares += (loss - y / n) * (loss - y / n);
			}
		}
	out[0] = x / n;
	out[1] = y / n;
	out[2] = n > 1 ? sqrt(squares / (n - 1)) : NAN;
}

static struct chart_series curve_of(const struct report_group *g, enum against against, double **numbers) {
	int cap = 0;
	for (int k = 0; k < g->n_runs; k++)
		cap = g->runs[k].evals_of->record.n_evals > cap ? g->runs[k].evals_of->record.n_evals : cap;
	*numbers = malloc((size_t)(cap > 0 ? cap : 1) * 3 * sizeof **numbers);
	struct chart_series s = empty_series(g->label, *numbers, cap);
	for (int i = 0; *numbers && i < cap; i++) {
		double point[3];
		mean_eval(g, i, against, point);
		put_point(&s, *numbers, cap, point[0], point[1], point[2]);
	}
	return s;
}

/* ---- figures --------------------------------------------------------------------------------------------------------
 */

/* A few points that nothing joins say no more than the table. */
static bool says_something(const struct line_chart *c) {
	enum { POINTS_MIN = 5 };
	int n_points = 0;
	for (int s = 0; s < c->n_series; s++) {
		double first = NAN;
		for (int i = 0; i < c->series[s].n; i++) {
			if (!chart_shows(c, &c->series[s], i))
				continue;
			n_points++;
			if (isfinite(first) && c->series[s].x[i] != first)
				return true;
			first = c->series[s].x[i];
		}
	}
	return n_points >= POINTS_MIN;
}

static void drop_lines(struct report_figures *f, int at) {
	for (int k = 0; k < REPORT_MAX_LINES; k++) {
		free(f->numbers[at][k]);
		f->numbers[at][k] = NULL;
	}
}

static void write_title(const struct report *p, const struct figure_plan *plan, char title[192]) {
	char line[REPORT_LINE_TEXT_BYTES];
	report_line_text(&p->line, line);
	if (plan->against == AGAINST_WALL)
		snprintf(title, 192, "%s on a line of %s", plan->title, line);
	else
		snprintf(title, 192, "%s", plan->title);
}

/* Final figures are left out where they say nothing. */
static enum rv_err add_figure(const struct report *p, const struct figure_plan *plan, struct report_figures *f,
							  struct line_of *lines, struct rv_errtext *et) {
	int at = f->n_lines;
	struct line_chart *c = &f->lines[at];
	write_title(p, plan, f->texts[at]);
	*c = (struct line_chart){.id = plan->id,
							 .title = f->texts[at],
							 .x_label = plan->x_label,
							 .y_label = p->on_bytes ? "nats per byte" : "nats per token",
							 .x_column = plan->x_column,
							 .x_log = plan->x_log,
							 .format_x = plan->format_x,
							 .format_y = chart_plain};
	int n = choose_lines(p, plan->final, lines, &f->n_all[at]);
	for (int i = 0; i < n; i++) {
		double **numbers = &f->numbers[at][i];
		c->series[i] = plan->final ? final_series(p, lines[i].group, plan->against, numbers)
								   : curve_of(&p->groups[lines[i].group], plan->against, numbers);
		c->n_series++;
		if (!*numbers)
			return rv_fail(et, RV_E_NOMEM, "no memory for the figures");
	}
	if (!plan->final || says_something(c))
		f->n_lines++;
	else
		drop_lines(f, at);
	return RV_OK;
}

static void add_bars_of(const struct report_group *g, const struct report_run *r, struct report_figures *f) {
	const char *seed = report_fact(&r->facts, "seed");
	for (int k = 0; k < r->n_members; k++) {
		const struct report_member *m = &r->members[k];
		if (f->n_all_bars++ >= REPORT_MAX_BARS)
			continue;
		struct chart_bar *b = &f->bar_list[f->bars.n_bars++];
		*b = (struct chart_bar){.parts = {m->totals.compute_s, m->totals.reduce_s, m->totals.idle_s}};
		if (r->facts.in_sweep) /* its name is a hash */
			snprintf(b->label, sizeof b->label, "%.70s seed=%.20s", g->label, seed ? seed : "");
		else
			snprintf(b->label, sizeof b->label, "%s", m->record.name);
		clean_text(b->label);
	}
}

static enum rv_err add_bars(const struct report *p, struct report_figures *f, struct rv_errtext *et) {
	f->bar_list = calloc(REPORT_MAX_BARS, sizeof *f->bar_list);
	if (!f->bar_list)
		return rv_fail(et, RV_E_NOMEM, "no memory for the figures");
	f->bars = (struct bar_chart){.id = "time",
								 .title = "Where each worker's time went, as measured",
								 .part_names = {"compute", "all-reduce", "idle"},
								 .n_parts = 3,
								 .format = chart_seconds,
								 .bars = f->bar_list};
	for (int i = 0; i < p->n_groups; i++)
		for (int k = 0; k < p->groups[i].n_runs; k++)
			add_bars_of(&p->groups[i], &p->groups[i].runs[k], f);
	return RV_OK;
}

enum rv_err report_figures_make(const struct report *p, struct report_figures *f, struct rv_errtext *et) {
	memset(f, 0, sizeof *f);
	struct line_of *lines = malloc((size_t)p->n_groups * sizeof *lines);
	enum rv_err e = lines ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory for the figures");
	for (int i = 0; e == RV_OK && i < REPORT_MAX_FIGURES; i++)
		e = add_figure(p, &plans[i], f, lines, et);
	free(lines);
	return e == RV_OK ? add_bars(p, f, et) : e;
}

void report_figures_release(struct report_figures *f) {
	for (int i = 0; i < REPORT_MAX_FIGURES; i++)
		drop_lines(f, i);
	free(f->bar_list);
	memset(f, 0, sizeof *f);
}
