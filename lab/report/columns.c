/* columns.c: see columns.h. */
#include "lab/report/columns.h"

#include "lab/report/chart_csv.h"
#include "lab/run/loss_text.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* ---- texts ---- */

static void put(const char *text, char out[CELL_TEXT_BYTES]) {
	snprintf(out, CELL_TEXT_BYTES, "%s", text ? text : "");
}

static void label_text(const struct report_group *g, char out[CELL_TEXT_BYTES]) {
	put(g->label, out);
}

static void method_text(const struct report_group *g, char out[CELL_TEXT_BYTES]) {
	put(g->runs[0].evals_of->record.method, out);
}

static void outer_text(const struct report_group *g, char out[CELL_TEXT_BYTES]) {
	put(report_is_data_parallel(&g->runs[0]) ? "" : report_fact_had(&g->runs[0], "outer"), out);
}

static void codec_text(const struct report_group *g, char out[CELL_TEXT_BYTES]) {
	put(report_is_data_parallel(&g->runs[0]) ? "" : g->runs[0].evals_of->record.codec, out);
}

static void mode_text(const struct report_group *g, char out[CELL_TEXT_BYTES]) {
	put(g->runs[0].facts.replicas_mode, out);
}

static void data_text(const struct report_group *g, char out[CELL_TEXT_BYTES]) {
	put(g->runs[0].data, out);
}

/* Of the runs of a configuration the first; "mixed" where they were trained by several. */
static void program_text(const struct report_group *g, char out[CELL_TEXT_BYTES]) {
	const char *first = g->runs[0].evals_of->record.program;
	bool mixed = false;
	for (int i = 1; i < g->n_runs; i++)
		mixed |= strcmp(g->runs[i].evals_of->record.program, first) != 0;
	put(mixed ? "mixed" : first, out);
}

static void seeds_text(const struct report_group *g, char out[CELL_TEXT_BYTES]) {
	size_t n = 0;
	out[0] = '\0';
	for (int i = 0; i < g->n_runs && n + 24 < CELL_TEXT_BYTES; i++) {
		const char *seed = report_fact(&g->runs[i].facts, "seed");
		if (seed)
			n += (size_t)snprintf(out + n, CELL_TEXT_BYTES - n, "%s%.20s", n > 0 ? " " : "", seed);
	}
}

static void unfinished_text(const struct report_group *g, char out[CELL_TEXT_BYTES]) {
	const int n = g->n_runs - g->n_ended - g->n_diverged;
	out[0] = '\0';
	if (n > 0)
		snprintf(out, CELL_TEXT_BYTES, "%d of %d", n, g->n_runs);
}

static void diverged_text(const struct report_group *g, char out[CELL_TEXT_BYTES]) {
	report_diverged_text(g, out);
}

/* ---- numbers ---- */

#define NUMBER(function, expression)                                                                                   \
	static double function(const struct lab_report *p, const struct report_group *g) {                                 \
		(void)p;                                                                                                       \
		return expression;                                                                                             \
	}
NUMBER(eval_tokens_of,
	   g->runs[0].evals_of->record.eval_tokens > 0 ? (double)g->runs[0].evals_of->record.eval_tokens : NAN)
NUMBER(threads_of, g->runs[0].evals_of->record.threads > 0 ? (double)g->runs[0].evals_of->record.threads : NAN)
NUMBER(h_of, report_steps_per_sync(g))
NUMBER(workers_of, g->runs[0].evals_of->record.workers)
NUMBER(runs_of, g->n_runs)
NUMBER(perplexity_of, exp(g->loss.mean))
NUMBER(bits_per_byte, p->on_bytes ? g->loss.mean / M_LN2 : NAN)
NUMBER(bits_per_token, p->on_bytes ? NAN : g->loss.mean / M_LN2)
NUMBER(against_of, report_against_baseline(p, g) * 100)
NUMBER(over_formula_of, report_over_formula(g) * 100)
NUMBER(fewer_of, report_fewer_bytes(g))

static void print_loss(double v, char out[CHART_TEXT_BYTES]) {
	memcpy(out, loss_text(v).text, CHART_TEXT_BYTES);
}

static void print_large(double v, char out[CHART_TEXT_BYTES]) {
	memcpy(out, perplexity_text(log(v)).text, CHART_TEXT_BYTES);
}

/* Which held-out text: the same in the curves. */
static void loss_header(const struct lab_report *p, char out[CELL_TEXT_BYTES]) {
	const struct report_eval e = report_eval_tokens(p);
	char some[CHART_TEXT_BYTES], all[CHART_TEXT_BYTES];
	chart_si((double)e.tokens, some);
	chart_si((double)e.of, all);
	if (e.tokens == 0)
		snprintf(out, CELL_TEXT_BYTES, "held-out loss");
	else if (e.tokens == e.of)
		snprintf(out, CELL_TEXT_BYTES, "held-out loss (all %s tokens)", all);
	else
		snprintf(out, CELL_TEXT_BYTES, "held-out loss (%s of %s tokens)", some, all);
}

void report_header_text(const struct report_column *c, const struct lab_report *p, char out[CELL_TEXT_BYTES]) {
	if (c->write_header)
		c->write_header(p, out);
	else
		put(c->header, out);
}

#define SPREAD_OF(value) .spread = offsetof(struct report_group, value)

const struct report_column report_columns[] = {
	{.name = "configuration", .header = "run", .text = label_text},
	{.name = "steps_between_exchanges", .header = "H", .number = h_of, .format = "%.0f"},
	{.name = "loss", .header = "held-out loss", .write_header = loss_header, SPREAD_OF(loss), .print = print_loss},
	{.name = "heldout_tokens", .number = eval_tokens_of, .format = "%.0f"},
	{.name = "against_data_parallel_percent",
	 .header = "loss vs data-parallel",
	 .number = against_of,
	 .format = "%+.1f %%"},
	{.name = "bytes_sent", .header = "sent per worker", SPREAD_OF(bytes_sent), .print = chart_bytes},
	{.name = "fewer_bytes_than_fp32_data_parallel", .header = "fewer bytes", .number = fewer_of, .format = "%.0f×"},
	{.name = "line_wall_s", .header = "wall-clock on the line", SPREAD_OF(wall_s), .print = chart_seconds},
	{.name = "line_utilisation", .header = "compute utilisation", SPREAD_OF(utilisation), .format = "%.3f"},
	{.name = "threads", .number = threads_of, .format = "%.0f"},
	{.name = "workers", .header = "workers", .number = workers_of, .format = "%.0f"},
	{.name = "method", .header = "method", .text = method_text},
	{.name = "outer", .header = "outer", .text = outer_text},
	{.name = "codec", .header = "codec", .text = codec_text},
	{.name = "replicas_mode", .header = "replicas' batch", .text = mode_text},
	{.name = "runs", .header = "seeds", .number = runs_of, .format = "%.0f"},
	{.name = "seeds", .text = seeds_text},
	{.name = "diverged", .header = "diverged", .text = diverged_text},
	{.name = "unfinished", .header = "unfinished", .text = unfinished_text},
	{.name = "tokens", .header = "tokens", SPREAD_OF(tokens), .print = chart_si},
	{.name = "perplexity", .header = "perplexity", .number = perplexity_of, .print = print_large},
	{.name = "bits_per_byte", .header = "bits per byte", .number = bits_per_byte, .format = "%.4f"},
	{.name = "bits_per_token", .header = "bits per token", .number = bits_per_token, .format = "%.4f"},
	{.name = "average_loss", .header = "replicas' mean: loss", SPREAD_OF(average_loss), .format = "%.4f"},
	{.name = "replica_loss", .header = "one replica: loss", SPREAD_OF(replica_loss), .format = "%.4f"},
	{.name = "over_formula_percent", .header = "over the formula", .number = over_formula_of, .format = "%+.2f %%"},
	{.name = "delta_cosine", .header = "cosine of outer gradients", SPREAD_OF(delta_cosine), .format = "%.3f"},
	{.name = "delta_norm", .header = "norm of outer gradients", SPREAD_OF(delta_norm), .format = "%.3g"},
	{.name = "codec_error", .header = "relative error of the codec", SPREAD_OF(codec_error), .format = "%.4f"},
	{.name = "codec_cosine", SPREAD_OF(codec_cosine), .format = "%.6f"},
	{.name = "data", .text = data_text},
	{.name = "program", .text = program_text},
	{.name = NULL},
};

static struct report_spread number_of(const struct report_column *c, const struct lab_report *p,
									  const struct report_group *g) {
	if (c->number)
		return (struct report_spread){.mean = c->number(p, g), .sd = NAN};
	return *(const struct report_spread *)((const char *)g + c->spread);
}

static void number_text(const struct report_column *c, double v, char out[CHART_TEXT_BYTES]) {
	if (c->print)
		c->print(v, out);
	else
		snprintf(out, CHART_TEXT_BYTES, c->format, v); /* NOLINT: the formats are constants of this file */
}

/* A deviation that the printed digits do not show is left out. */
void report_cell_text(const struct report_column *c, const struct lab_report *p, const struct report_group *g,
					  char out[CELL_TEXT_BYTES]) {
	char mean[CHART_TEXT_BYTES], sd[CHART_TEXT_BYTES];
	if (c->text) {
		c->text(g, out);
	} else {
		const struct report_spread s = number_of(c, p, g);
		out[0] = '\0';
		if (isfinite(s.mean)) {
			number_text(c, s.mean, mean);
			number_text(c, isfinite(s.sd) ? s.sd : 0, sd);
			bool shown = strpbrk(sd, "123456789") && s.sd > 0;
			snprintf(out, CELL_TEXT_BYTES, "%s%s%s", mean, shown ? " ± " : "", shown ? sd : "");
		}
	}
	if (out[0] == '\0')
		snprintf(out, CELL_TEXT_BYTES, "%s",
				 c->spread == offsetof(struct report_group, loss) && g->n_diverged == g->n_runs ? "diverged" : "–");
}

bool report_column_used(const struct report_column *c, const struct lab_report *p) {
	char text[CELL_TEXT_BYTES];
	for (int i = 0; c->header && i < p->n_groups; i++) {
		report_cell_text(c, p, &p->groups[i], text);
		if (strcmp(text, "–") != 0)
			return true;
	}
	return false;
}

/* ---- CSV ---- */

static void csv_cell(const struct report_column *c, const struct lab_report *p, const struct report_group *g,
					 FILE *out) {
	char text[CELL_TEXT_BYTES];
	if (c->text) {
		c->text(g, text);
		chart_csv_text(text, out);
		return;
	}
	const struct report_spread s = number_of(c, p, g);
	chart_csv_number(s.mean, out);
	if (c->number)
		return;
	(void)fputc(',', out);
	chart_csv_number(s.sd, out);
}

void report_csv_configurations(const void *report, FILE *out) {
	const struct lab_report *p = report;
	for (const struct report_column *c = report_columns; c->name; c++)
		(void)fprintf(out, !c->spread ? "%s%s" : "%s%s,%s_sd", c > report_columns ? "," : "", c->name,
					  c->name); /* NOLINT: both formats are constants */
	(void)fputs("\r\n", out);
	for (int i = 0; i < p->n_groups; i++) {
		for (const struct report_column *c = report_columns; c->name; c++) {
			if (c > report_columns)
				(void)fputc(',', out);
			csv_cell(c, p, &p->groups[i], out);
		}
		(void)fputs("\r\n", out);
	}
}

static const char *state_of(const struct report_member *m) {
	return m->record.diverged_round > 0 ? "diverged" : m->record.ended ? "done" : "unfinished";
}

static void csv_run(const struct report_group *g, const struct report_run *r, FILE *out) {
	const struct report_member *m = r->evals_of;
	const char *seed = report_fact(&r->facts, "seed");
	const struct report_values *v = &r->values;
	const double numbers[] = {(double)r->totals.rounds,
							  v->tokens,
							  v->loss,
							  v->average_loss,
							  v->replica_loss,
							  v->bytes_sent,
							  v->delta_cosine,
							  v->delta_norm,
							  v->codec_error,
							  v->codec_cosine,
							  (double)m->record.eval_tokens,
							  m->record.threads,
							  r->totals.compute_s,
							  r->totals.reduce_s,
							  r->totals.idle_s,
							  m->record.wall_s,
							  v->wall_s,
							  v->utilisation};
	const char *const texts[] = {g->label, r->directory, seed ? seed : "", r->data, m->record.program};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		chart_csv_text(texts[i], out);
		(void)fputc(',', out);
	}
	(void)fprintf(out, "%d,%s", r->n_members, state_of(m));
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		(void)fputc(',', out);
		chart_csv_number(numbers[i], out);
	}
	(void)fputs("\r\n", out);
}

void report_csv_runs(const void *report, FILE *out) {
	const struct lab_report *p = report;
	(void)fputs("configuration,directory,seed,data,program,records,state,rounds,tokens,loss,average_loss,replica_loss,"
				"bytes_sent,"
				"delta_cosine,delta_norm,codec_error,codec_cosine,heldout_tokens,threads,compute_s,reduce_s,idle_s,"
				"wall_s,line_wall_s,line_"
				"utilisation\r\n",
				out);
	for (int i = 0; i < p->n_groups; i++)
		for (int k = 0; k < p->groups[i].n_runs; k++)
			csv_run(&p->groups[i], &p->groups[i].runs[k], out);
}
