/* chart_csv.c: see chart_csv.h. */
#include "lab/report/chart_csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

char *chart_csv_text_of(csv_writer *write, const void *what, size_t *n) {
	char *text = NULL;
	FILE *f = open_memstream(&text, n);
	if (!f)
		return NULL;
	write(what, f);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

/* Spreadsheets compute what begins with one of these, white space before it or not. */
void chart_csv_text(const char *text, FILE *out) {
	const char *first = text + strspn(text, " \t\r\n");
	(void)fputs(*first && strchr("=+-@|%", *first) ? "\"'" : "\"", out);
	for (const char *c = text; *c; c++) {
		if (*c == '"')
			(void)fputc('"', out);
		(void)fputc(*c, out);
	}
	(void)fputc('"', out);
}

void chart_csv_number(double v, FILE *out) {
	if (isfinite(v))
		(void)fprintf(out, "%.9g", v);
}

void chart_csv_lines(const void *chart, FILE *out) {
	const struct line_chart *c = chart;
	(void)fprintf(out, "series,%s,loss,loss_sd\r\n", c->x_column);
	for (int k = 0; k < c->n_series; k++)
		for (int i = 0; i < c->series[k].n; i++) {
			const struct chart_series *s = &c->series[k];
			chart_csv_text(s->label, out);
			(void)fputc(',', out);
			chart_csv_number(s->x[i], out);
			(void)fputc(',', out);
			chart_csv_number(s->y[i], out);
			(void)fputc(',', out);
			chart_csv_number(s->sd ? s->sd[i] : NAN, out);
			(void)fputs("\r\n", out);
		}
}

void chart_csv_bars(const void *chart, FILE *out) {
	const struct bar_chart *c = chart;
	(void)fputs("name", out);
	for (int k = 0; k < c->n_parts; k++)
		(void)fprintf(out, ",%s_s", c->part_names[k]);
	(void)fputs("\r\n", out);
	for (int i = 0; i < c->n_bars; i++) {
		chart_csv_text(c->bars[i].label, out);
		for (int k = 0; k < c->n_parts; k++) {
			(void)fputc(',', out);
			chart_csv_number(c->bars[i].parts[k], out);
		}
		(void)fputs("\r\n", out);
	}
}

void chart_csv_dots(const void *chart, FILE *out) {
	const struct dot_chart *c = chart;
	(void)fputs("configuration,loss,loss_sd,told\r\n", out);
	for (int i = 0; i < c->n_dots; i++) {
		chart_csv_text(c->dots[i].label, out);
		(void)fputc(',', out);
		chart_csv_number(c->dots[i].value, out);
		(void)fputc(',', out);
		chart_csv_number(c->dots[i].sd, out);
		(void)fputc(',', out);
		chart_csv_text(c->dots[i].text, out);
		(void)fputs("\r\n", out);
	}
}
