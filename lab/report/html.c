/* html.c: the page: tables, figures, downloads, and what was skipped. */
#include "lab/report/chart_csv.h"
#include "lab/report/columns.h"
#include "lab/report/palette.h"
#include "lab/report/report_page.h"

#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 500 };

extern const char report_css[]; /* report_page.S */

/* ---- downloads ---- */

/* A link that holds the table. */
static void print_download(const char *name, csv_writer *write, const void *what, FILE *out) {
	size_t n = 0;
	char *csv = chart_csv_text_of(write, what, &n);
	size_t cap = sodium_base64_ENCODED_LEN(n, sodium_base64_VARIANT_ORIGINAL);
	char *text = csv ? malloc(cap) : NULL;
	if (text) {
		sodium_bin2base64(text, cap, (const unsigned char *)csv, n, sodium_base64_VARIANT_ORIGINAL);
		(void)fprintf(out, "<a download=\"%s.csv\" href=\"data:text/csv;charset=utf-8;base64,%s\">%s.csv</a>", name,
					  text, name);
	}
	free(text);
	free(csv);
}

/* ---- the table ---- */

static void print_cell(const char *element, const struct report_column *c, const char *text, FILE *out) {
	(void)fprintf(out, "<%s%s>", element, c->text ? " class=\"text\"" : "");
	chart_print_text(text, out);
	(void)fprintf(out, "</%s>", element);
}

/* `row` NULL: the headers. */
static void print_row(const struct lab_report *p, const struct report_group *row, const bool *used, FILE *out) {
	char text[CELL_TEXT_BYTES];
	(void)fputs("<tr>", out);
	for (int k = 0; report_columns[k].name; k++) {
		const struct report_column *c = &report_columns[k];
		if (!used[k])
			continue;
		if (row)
			report_cell_text(c, p, row, text);
		else
			report_header_text(c, p, text);
		print_cell(row ? "td" : "th", c, text, out);
	}
	(void)fputs("</tr>\n", out);
}

static void print_table(const struct lab_report *p, FILE *out) {
	enum { COLUMNS_MAX = 64 };
	bool used[COLUMNS_MAX] = {false};
	for (int k = 0; report_columns[k].name; k++)
		used[k] = report_column_used(&report_columns[k], p);
	(void)fputs("<div class=\"wide\"><table>\n<thead>", out);
	print_row(p, NULL, used, out);
	(void)fputs("</thead><tbody>\n", out);
	for (int i = 0; i < p->n_groups && i < MAX_ROWS; i++)
		print_row(p, &p->groups[i], used, out);
	(void)fputs("</tbody></table></div>\n<p>", out);
	if (p->n_groups > MAX_ROWS)
		(void)fprintf(out, "%d of %d configurations; all are in the files. ", MAX_ROWS, p->n_groups);
	print_download("configurations", report_csv_configurations, p, out);
	(void)fputs(" · ", out);
	print_download("runs", report_csv_runs, p, out);
	(void)fputs("</p>\n", out);
}

/* ---- figures ---- */

static void open_figure(const char *id, const char *title, const char *unit, FILE *out) {
	(void)fprintf(out, "<figure id=\"%s\"><figcaption>", id);
	chart_print_text(title, out);
	(void)fprintf(out, " <span>%s</span></figcaption>\n", unit);
}

static void close_figure(const char *id, csv_writer *write, const void *chart, FILE *out) {
	print_download(id, write, chart, out);
	(void)fputs("</p></figure>\n", out);
}

/* Names in full. */
static void print_legend(const struct line_chart *c, FILE *out) {
	(void)fputs("<ul class=\"legend\">", out);
	for (int i = 0; i < c->n_series; i++) {
		const struct chart_paint paint = c->series[i].paint;
		(void)fprintf(out, "<li%s style=\"--line:var(%s)\">", chart_paint_dashes(paint)[0] ? " class=\"dashed\"" : "",
					  chart_paint_name(paint).text);
		chart_print_text(c->series[i].label, out);
		(void)fputs("</li>\n", out);
	}
	(void)fputs("</ul>\n", out);
}

/* What the crosses at the top stand for. */
static void print_marks(const struct line_chart *c, FILE *out) {
	enum { MARKS_TOLD = 8 };
	for (int i = 0; i < c->n_marks && i < MARKS_TOLD; i++) {
		(void)fputs(i > 0 ? "; " : "<p>✕ at the top: ", out);
		chart_print_text(c->series[c->marks[i].series].label, out);
		(void)fputs(": ", out);
		chart_print_text(c->marks[i].text, out);
	}
	if (c->n_marks > MARKS_TOLD)
		(void)fprintf(out, "; and %d more, in the table", c->n_marks - MARKS_TOLD);
	if (c->n_marks > 0)
		(void)fputs(".</p>\n", out);
}

static void print_lines(const struct line_chart *c, int n_all, FILE *out) {
	open_figure(c->id, c->title, c->y_label, out);
	chart_print_lines(c, out);
	print_legend(c, out);
	print_marks(c, out);
	(void)fputs("<p>", out);
	if (n_all > c->n_series)
		(void)fprintf(out,
					  "%d of %d lines: of each method, outer optimizer, codec and number of workers the best at "
					  "the end, then the second best. ",
					  c->n_series, n_all);
	close_figure(c->id, chart_csv_lines, c, out);
}

static void print_dots(const struct lab_report *p, const struct dot_chart *c, FILE *out) {
	open_figure(c->id, c->title, c->label, out);
	chart_print_dots(c, out);
	(void)fputs("<p>", out);
	if (isfinite(c->reference))
		(void)fputs("Dashed: the best data-parallel one. ", out);
	if (p->n_groups > c->n_dots)
		(void)fprintf(out, "The best %d of %d; all are in the table. ", c->n_dots, p->n_groups);
	close_figure(c->id, chart_csv_dots, c, out);
}

static void print_bars(const struct report_figures *p, FILE *out) {
	if (p->bars.n_bars == 0)
		return;
	open_figure(p->bars.id, p->bars.title, "", out);
	chart_print_bars(&p->bars, out);
	(void)fputs("<p>", out);
	if (p->n_all_bars > p->bars.n_bars)
		(void)fprintf(out, "The first %d of %d; all are in runs.csv. ", p->bars.n_bars, p->n_all_bars);
	close_figure(p->bars.id, chart_csv_bars, &p->bars, out);
}

/* ---- the page ---- */

/* The page's own script may run, by its hash: no other, whatever names runs have. */
static void print_policy(FILE *out) {
	unsigned char hash[crypto_hash_sha256_BYTES];
	char text[sodium_base64_ENCODED_LEN(sizeof hash, sodium_base64_VARIANT_ORIGINAL)];
	crypto_hash_sha256(hash, (const unsigned char *)chart_js, strlen(chart_js));
	sodium_bin2base64(text, sizeof text, hash, sizeof hash, sodium_base64_VARIANT_ORIGINAL);
	(void)fprintf(out,
				  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; "
				  "form-action 'none'; style-src 'unsafe-inline'; script-src 'sha256-%s'\">\n",
				  text);
}

static void print_head(FILE *out) {
	(void)fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n", out);
	print_policy(out);
	(void)fprintf(out,
				  "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
				  "<meta name=\"color-scheme\" content=\"light dark\">\n<title>Rivulet: report</title>\n<style>\n%s%s",
				  report_css, chart_css);
	palette_print_css(out);
	(void)fputs("</style></head><body>\n<h1>Rivulet: runs side by side</h1>\n", out);
}

static void print_notes(const struct lab_report *p, FILE *out) {
	char line[REPORT_LINE_TEXT_BYTES];
	report_line_text(&p->line, line);
	(void)fprintf(
		out,
		"<p>Held-out loss is in nats per %s, over text that was never trained on, the same in table and curves; ± and "
		"error bars: standard "
		"deviation over runs that differ in the seed only. H: inner steps between two exchanges (1: "
		"data-parallel). Bytes are what one worker sends to average; for runs inside one process they follow "
		"from the formula 2 (k−1)/k · payload. Wall-clock is not measured but computed, for a line of %s, from "
		"%s and those bytes.</p>\n",
		p->on_bytes ? "byte" : "token", line,
		p->line.step_s > 0 ? "the given time of an inner step" : "each run's measured time of an inner step");
}

/* What the runs were trained on and by. */
static void print_provenance(const struct lab_report *p, FILE *out) {
	const struct run_record *first = &p->runs[0].evals_of->record;
	char models[REPORT_LABEL_BYTES];
	report_models_text(p, models);
	(void)fputs("<p>", out);
	if (models[0])
		(void)fprintf(out, "<strong>Runs are of different models, %s: a loss compares only within one model.</strong> ",
					  models);
	if (report_texts_differ(p)) {
		(void)fputs("Runs are on several texts; losses compare only within one. ", out);
	} else if (first->data[0]) {
		(void)fputs("Text: ", out);
		chart_print_text(first->data, out);
		(void)fputs(". ", out);
	}
	if (report_program(p)[0]) {
		(void)fputs("Trained by ", out);
		chart_print_text(report_program(p), out);
		(void)fputs(". ", out);
	}
	(void)fputs("</p>\n", out);
}

static void print_skipped(const struct lab_report *p, FILE *out) {
	int kept = p->n_skipped < REPORT_MAX_SKIPPED ? p->n_skipped : REPORT_MAX_SKIPPED;
	if (kept == 0)
		return;
	(void)fputs("<h2>Not in this report</h2>\n<ul>\n", out);
	for (int i = 0; i < kept; i++) {
		(void)fputs("<li>", out);
		chart_print_text(p->skipped[i], out);
		(void)fputs("</li>\n", out);
	}
	if (p->n_skipped > kept)
		(void)fprintf(out, "<li>and %d more</li>\n", p->n_skipped - kept);
	(void)fputs("</ul>\n", out);
}

void report_print_html(const struct lab_report *p, const struct report_figures *f, FILE *out) {
	print_head(out);
	print_notes(p, out);
	print_provenance(p, out);
	print_table(p, out);
	print_dots(p, &f->dots, out);
	for (int i = 0; i < f->n_lines; i++)
		print_lines(&f->lines[i], f->n_all[i], out);
	print_bars(f, out);
	print_skipped(p, out);
	(void)fprintf(out, "<script>%s</script>\n</body></html>\n", chart_js);
}
