/* figures.c: see figures.h. */
#include "lab/report/figures.h"

#include "base/clean_text.h"
#include "lab/report/palette.h"
#include "lab/run/loss_text.h"

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
	{"curve-wall-clock", "Held-out loss against wall-clock", "wall-clock (log)", "wall_s", AGAINST_WALL, false, true,
	 chart_seconds},
};

/* ---- which lines ---- */

struct line_of {
	int group;   /* of a curve; of a series its first; -1: none yet */
	double loss; /* the lowest; infinite: none */
	uint64_t kind;
	int rank; /* among those of its kind, by loss */
};

/* Of the method, the outer optimizer, the codec, and the number of workers: lines of one kind are
 * variations. */
static uint64_t kind_of(const struct report_group *g) {
	const struct report_run *r = &g->runs[0];
	const char *outer = report_fact_had(r, "outer");
	uint64_t kind;
	struct rv_hasher h = rv_hasher_of("rivulet report kind");
	rv_hash_update(&h, r->evals_of->record.method, strlen(r->evals_of->record.method) + 1);
	rv_hash_update(&h, r->evals_of->record.codec, strlen(r->evals_of->record.codec) + 1);
	rv_hash_update(&h, outer ? outer : "", outer ? strlen(outer) + 1 : 1);
	rv_hash_u64(&h, r->evals_of->record.workers);
	const struct rv_hash out = rv_hash_final(&h);
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

/* Of all lines those that are shown, in the table's order; returns how many: the best of each kind,
 * then the second best... */
static int choose_lines(const struct lab_report *p, bool series, struct line_of *lines, int *n_all) {
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

/* ---- their points ---- */

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
									  : g->wall_s.mean;
}

static struct chart_series final_series(const struct lab_report *p, int first, enum against against, double **numbers) {
	const struct report_group *g = &p->groups[first];
	int cap = 0;
	for (int i = first; i < p->n_groups; i++)
		cap += p->groups[i].series == g->series;
	*numbers = calloc((size_t)(cap > 0 ? cap : 1) * 3, sizeof **numbers);
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

/* After which round evaluation `i` was, in the first run that has so many. */
static uint64_t round_of(const struct report_group *g, int i) {
	for (int k = 0; k < g->n_runs; k++)
		if (i < g->runs[k].evals_of->record.n_evals)
			return g->runs[k].evals_of->record.evals[i].round;
	return 0;
}

/* The runs of a configuration are evaluated after the same rounds; those that were not, or did not
 * get so far, are not in the mean. */
static struct report_spread mean_eval(const struct report_group *g, int i, enum against against, double *x) {
	struct report_spread loss = {0}, at = {0};
	const uint64_t round = round_of(g, i);
	for (int k = 0; k < g->n_runs; k++) {
		const struct report_run *r = &g->runs[k];
		if (i >= r->evals_of->record.n_evals || r->evals_of->record.evals[i].round != round)
			continue;
		report_spread_add(&at, eval_x(r, i, against));
		report_spread_add(&loss, r->evals_of->record.evals[i].loss);
	}
	report_spread_end(&loss);
	*x = at.mean;
	return loss;
}

static struct chart_series curve_of(const struct report_group *g, enum against against, double **numbers) {
	int cap = 0;
	for (int k = 0; k < g->n_runs; k++)
		cap = g->runs[k].evals_of->record.n_evals > cap ? g->runs[k].evals_of->record.n_evals : cap;
	*numbers = malloc((size_t)(cap > 0 ? cap : 1) * 3 * sizeof **numbers);
	struct chart_series s = empty_series(g->label, *numbers, cap);
	for (int i = 0; *numbers && i < cap; i++) {
		double x;
		const struct report_spread loss = mean_eval(g, i, against, &x);
		put_point(&s, *numbers, cap, x, loss.mean, loss.sd);
	}
	return s;
}

/* ---- what has no place in them ---- */

/* Clearly worse than guessing, that training has failed: it would flatten all else. 0: not known of
 * every run. */
static double most_shown(const struct lab_report *p) {
	const double clearly = 1.1;
	double most = 0;
	for (int i = 0; i < p->n_runs; i++) {
		const double vocab = report_fact_number(&p->runs[i].facts, "vocab", 0);
		if (!(vocab > 1))
			return 0;
		most = fmax(most, clearly * log(vocab));
	}
	return most;
}

static void add_mark(struct line_chart *c, int series, double x, const char *text) {
	if (c->n_marks == CHART_MAX_MARKS || !isfinite(x) || (c->x_log && !(x > 0)))
		return;
	struct chart_mark *m = &c->marks[c->n_marks++];
	*m = (struct chart_mark){.series = series, .x = x};
	snprintf(m->text, sizeof m->text, "%.63s", text);
}

/* A cross where the configuration has diverged, or its loss at the end is off the picture. */
static void mark_group(struct line_chart *c, int series, double x, double loss, const struct report_group *g) {
	char text[REPORT_LABEL_BYTES], when[REPORT_LABEL_BYTES];
	report_diverged_text(g, when);
	snprintf(text, sizeof text, "diverged %.100s", when);
	if (when[0])
		add_mark(c, series, x, text);
	snprintf(text, sizeof text, "worse than guessing, %s", loss_text(loss).text);
	if (c->y_most > 0 && loss > c->y_most)
		add_mark(c, series, x, text);
}

static void mark_series(const struct lab_report *p, struct line_chart *c, int first, enum against against) {
	for (int i = first; i < p->n_groups; i++)
		if (p->groups[i].series == p->groups[first].series)
			mark_group(c, c->n_series, final_x(&p->groups[i], against), p->groups[i].loss.mean, &p->groups[i]);
}

/* At the last evaluation that there is. */
static void mark_curve(struct line_chart *c, const struct chart_series *s, const struct report_group *g) {
	const int last = s->n - 1;
	mark_group(c, c->n_series, last >= 0 ? s->x[last] : 0, last >= 0 ? s->y[last] : NAN, g);
}

/* ---- figures ---- */

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

static void write_title(const struct lab_report *p, const struct figure_plan *plan, char title[192]) {
	char line[REPORT_LINE_TEXT_BYTES];
	report_line_text(&p->line, line);
	if (plan->against == AGAINST_WALL)
		snprintf(title, 192, "%s on a line of %s", plan->title, line);
	else
		snprintf(title, 192, "%s", plan->title);
}

/* Final figures are left out where they say nothing. */
static enum rv_err add_figure(const struct lab_report *p, const struct figure_plan *plan, struct report_figures *f,
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
							 .format_y = chart_plain,
							 .y_most = most_shown(p)};
	int n = choose_lines(p, plan->final, lines, &f->n_all[at]);
	for (int i = 0; i < n; i++) {
		double **numbers = &f->numbers[at][i];
		c->series[i] = plan->final ? final_series(p, lines[i].group, plan->against, numbers)
								   : curve_of(&p->groups[lines[i].group], plan->against, numbers);
		c->series[i].paint = palette_paint(p, lines[i].group, plan->final);
		if (!*numbers)
			return rv_fail(et, RV_E_NOMEM, "no memory for the figures");
		if (plan->final)
			mark_series(p, c, lines[i].group, plan->against);
		else
			mark_curve(c, &c->series[i], &p->groups[lines[i].group]);
		c->n_series++;
	}
	if (!plan->final || says_something(c))
		f->n_lines++;
	else
		drop_lines(f, at);
	return RV_OK;
}

static int by_final_loss(const void *a, const void *b) {
	const struct report_group *x = *(const struct report_group *const *)a, *y = *(const struct report_group *const *)b;
	const bool x_known = isfinite(x->loss.mean), y_known = isfinite(y->loss.mean);
	if (x_known != y_known)
		return x_known ? -1 : 1;
	if (x_known && x->loss.mean != y->loss.mean)
		return x->loss.mean < y->loss.mean ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void write_dot(const struct lab_report *p, const struct report_group *g, struct chart_dot *d) {
	char when[REPORT_LABEL_BYTES];
	*d = (struct chart_dot){
		.value = g->loss.mean, .sd = g->loss.sd, .paint = palette_paint(p, (int)(g - p->groups), false)};
	memcpy(d->label, g->label, sizeof d->label);
	report_diverged_text(g, when);
	if (!isfinite(g->loss.mean))
		snprintf(d->text, sizeof d->text, "%s%.50s", when[0] ? "✕ diverged " : "–", when);
	else if (isfinite(g->loss.sd))
		snprintf(d->text, sizeof d->text, "%s ± %.4f", loss_text(g->loss.mean).text, g->loss.sd);
	else
		snprintf(d->text, sizeof d->text, "%s", loss_text(g->loss.mean).text);
}

/* Every configuration by its loss: where methods are many, lines in a plane do not tell them
 * apart. */
static enum rv_err add_dots(const struct lab_report *p, struct report_figures *f, struct rv_errtext *et) {
	const struct report_group **sorted = calloc((size_t)p->n_groups, sizeof *sorted);
	const struct report_group *baseline = report_baseline(p, NULL);
	f->dot_list = calloc(REPORT_MAX_DOTS, sizeof *f->dot_list);
	if (!sorted || !f->dot_list) {
		free(sorted);
		return rv_fail(et, RV_E_NOMEM, "no memory for the figures");
	}
	for (int i = 0; i < p->n_groups; i++)
		sorted[i] = &p->groups[i];
	qsort(sorted, (size_t)p->n_groups, sizeof *sorted, by_final_loss);
	f->dots = (struct dot_chart){.id = "loss-of-each",
								 .title = "Held-out loss at the end, of each configuration",
								 .label = p->on_bytes ? "nats per byte" : "nats per token",
								 .format = chart_plain,
								 .dots = f->dot_list,
								 .n_dots = p->n_groups < REPORT_MAX_DOTS ? p->n_groups : REPORT_MAX_DOTS,
								 .reference = baseline ? baseline->loss.mean : NAN,
								 .most = most_shown(p)};
	for (int i = 0; i < f->dots.n_dots; i++)
		write_dot(p, sorted[i], &f->dot_list[i]);
	free(sorted);
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

static enum rv_err add_bars(const struct lab_report *p, struct report_figures *f, struct rv_errtext *et) {
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

enum rv_err report_figures_make(const struct lab_report *p, struct report_figures *f, struct rv_errtext *et) {
	memset(f, 0, sizeof *f);
	struct line_of *lines = calloc((size_t)p->n_groups, sizeof *lines);
	enum rv_err e = lines ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory for the figures");
	for (int i = 0; e == RV_OK && i < REPORT_MAX_FIGURES; i++)
		e = add_figure(p, &plans[i], f, lines, et);
	free(lines);
	if (e == RV_OK)
		e = add_dots(p, f, et);
	return e == RV_OK ? add_bars(p, f, et) : e;
}

void report_figures_release(struct report_figures *f) {
	for (int i = 0; i < REPORT_MAX_FIGURES; i++)
		drop_lines(f, i);
	free(f->bar_list);
	free(f->dot_list);
	memset(f, 0, sizeof *f);
}
