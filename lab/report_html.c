/* report_html.c: the page: a table, loss against tokens and against bytes, and where the time went. */
#include "lab/chart.h"
#include "lab/report.h"

#include <math.h>
#include <stdlib.h>

static const char style[] =
	"<style>\n"
	":root{--bg:#fff;--fg:#1c2128;--muted:#59636e;--grid:#e4e7eb;--s0:#1f6feb;--s1:#bc4c00;--s2:#1a7f37;--s3:#8250df;"
	"--s4:#bf3989;--s5:#0e7490;--s6:#9a6700;--s7:#cf222e;--p0:#1f6feb;--p1:#bc4c00;--p2:#afb8c1;--p3:#8250df}\n"
	"@media (prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--muted:#9198a1;--grid:#262c36;--s0:#58a6ff;"
	"--s1:#f0883e;--s2:#3fb950;--s3:#bc8cff;--s4:#f778ba;--s5:#39c5cf;--s6:#d29922;--s7:#ff7b72;--p0:#58a6ff;"
	"--p1:#f0883e;--p2:#484f58;--p3:#bc8cff}}\n"
	"*{box-sizing:border-box}body{margin:0 auto;padding:1rem;max-width:62rem;background:var(--bg);color:var(--fg);"
	"font:16px/1.5 system-ui,sans-serif}\n"
	"h1{font-size:1.4rem;margin:.2rem 0 0}p{color:var(--muted);margin:.3rem 0 1rem}figure{margin:1.6rem 0}\n"
	"figcaption{font-weight:600;margin-bottom:.3rem}svg{width:100%;max-width:40rem;height:auto;display:block}\n"
	"svg text{font:12px system-ui,sans-serif;fill:var(--muted)}svg text.label{font-weight:600}"
	"svg text.axis{fill:var(--fg)}\n"
	".grid{stroke:var(--grid);stroke-width:1}.line{fill:none;stroke-width:2;stroke-linejoin:round}"
	".leader{stroke-width:1;stroke-dasharray:2 2;opacity:.7}\n"
	".wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}"
	"th,td{padding:.35rem .5rem;text-align:right;border-bottom:1px solid var(--grid);white-space:nowrap}"
	"th:first-child,td:first-child{text-align:left}th{color:var(--muted);font-weight:500;white-space:normal;"
	"vertical-align:bottom}\n"
	"</style>\n";

static void print_head(FILE *out) {
	(void)fprintf(
		out,
		"<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
		"<meta name=\"color-scheme\" content=\"light dark\">\n<title>Rivulet: report</title>\n%s</head><body>\n"
		"<h1>Rivulet: runs side by side</h1>\n",
		style);
}

static void print_cell(FILE *out, const char *text) {
	(void)fputs("<td>", out);
	chart_print_text(text, out);
	(void)fputs("</td>", out);
}

static void print_number(FILE *out, const char *format, double v) {
	char text[CHART_TEXT_BYTES] = "–";
	if (isfinite(v))
		snprintf(text, sizeof text, format, v); /* NOLINT: the formats are constants of this file */
	print_cell(out, text);
}

static void print_row(const struct report_run *run, const struct report_run *baseline, FILE *out) {
	const struct record_totals *t = &run->totals;
	char text[CHART_TEXT_BYTES];
	double ddp = run_record_ddp_bytes(run->evals_of);
	bool compared = baseline && baseline != run;
	(void)fputs("<tr>", out);
	print_cell(out, run->label);
	chart_si((double)t->tokens, text);
	print_cell(out, text);
	print_number(out, "%.4f", t->loss);
	print_number(out, "%.3f", exp(t->loss));
	print_number(out, "%.4f", t->loss / M_LN2);
	print_number(out, "%+.1f %%", compared ? (t->loss / baseline->totals.loss - 1) * 100 : NAN);
	chart_bytes(t->bytes_sent, text);
	print_cell(out, text);
	print_number(out, "%+.2f %%", t->formula_bytes > 0 ? (t->bytes_sent / t->formula_bytes - 1) * 100 : NAN);
	print_number(out, "%.0f×", ddp > 0 && t->bytes_sent > 0 ? ddp / t->bytes_sent : NAN);
	(void)fputs("</tr>\n", out);
}

static void print_table(const struct report *p, FILE *out) {
	(void)fputs("<div class=\"wide\"><table><tr><th>run</th><th>tokens</th><th>held-out loss</th><th>perplexity</th>"
				"<th>bits per byte</th><th>loss against data-parallel</th><th>sent per worker</th>"
				"<th>over the formula</th><th>fewer bytes</th></tr>\n",
				out);
	for (int i = 0; i < p->n_runs; i++)
		print_row(&p->runs[i], report_baseline(p), out);
	(void)fputs("</table></div>\n", out);
}

enum x_axis { AGAINST_TOKENS, AGAINST_BYTES };

/* x and y of every run's evaluations: x first, then y. NULL: no memory, or nothing. */
static double *points_of(const struct report_run *run, enum x_axis axis) {
	const struct run_record *r = run->evals_of;
	double *v = malloc((size_t)(r->n_evals ? r->n_evals : 1) * 2 * sizeof *v);
	for (int i = 0; v && i < r->n_evals; i++) {
		v[i] = axis == AGAINST_TOKENS ? (double)r->evals[i].tokens : r->evals[i].bytes_sent;
		v[r->n_evals + i] = r->evals[i].loss;
	}
	return v;
}

static void print_loss_chart(const struct report *p, enum x_axis axis, FILE *out) {
	bool bytes = axis == AGAINST_BYTES;
	struct line_chart c = {.title = bytes ? "Held-out loss against bytes sent" : "Held-out loss against tokens",
						   .x_label = bytes ? "bytes sent per worker (log)" : "tokens, all workers together",
						   .y_label = "nats per byte",
						   .x_log = bytes,
						   .format_x = bytes ? chart_bytes : chart_si,
						   .format_y = chart_plain};
	double *points[REPORT_MAX_RUNS] = {0};
	for (int i = 0; i < p->n_runs; i++) {
		const struct run_record *r = p->runs[i].evals_of;
		points[i] = points_of(&p->runs[i], axis);
		if (points[i])
			c.series[c.n_series++] =
				(struct chart_series){p->runs[i].label, points[i], points[i] + r->n_evals, r->n_evals};
	}
	chart_print_lines(&c, out);
	for (int i = 0; i < p->n_runs; i++)
		free(points[i]);
}

static void print_time_chart(const struct report *p, FILE *out) {
	struct chart_bar *bars = calloc((size_t)p->n_runs * REPORT_MAX_MEMBERS + 1, sizeof *bars);
	int n = 0;
	if (!bars)
		return;
	for (int i = 0; i < p->n_runs; i++)
		for (int k = 0; k < p->runs[i].n_members; k++) {
			const struct run_record *r = &p->runs[i].members[k];
			struct record_totals t = run_record_totals(r);
			bars[n] = (struct chart_bar){.parts = {t.compute_s, t.reduce_s, t.idle_s}};
			snprintf(bars[n++].label, sizeof bars->label, "%s", r->name);
		}
	const struct bar_chart c = {.title = "Where each worker's time went",
								.part_names = {"compute", "all-reduce", "idle"},
								.n_parts = 3,
								.format = chart_seconds,
								.bars = bars,
								.n_bars = n};
	chart_print_bars(&c, out);
	free(bars);
}

void report_print_html(const struct report *p, FILE *out) {
	print_head(out);
	(void)fputs("<p>Held-out loss is in nats per byte, over text that was never trained on. Bytes are what one worker "
				"sends to average; for runs inside one process they follow from the formula 2 (k−1)/k · payload.</p>\n",
				out);
	print_table(p, out);
	print_loss_chart(p, AGAINST_TOKENS, out);
	print_loss_chart(p, AGAINST_BYTES, out);
	print_time_chart(p, out);
	(void)fputs("</body></html>\n", out);
}
