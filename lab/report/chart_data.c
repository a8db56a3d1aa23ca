/* chart_data.c: what a chart shows, as CSV and as JSON. */
#include "lab/report/chart.h"

#include <math.h>
#include <string.h>

/* ---- CSV ---- */

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

void chart_csv_lines(const struct line_chart *c, FILE *out) {
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

void chart_csv_bars(const struct bar_chart *c, FILE *out) {
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

/* ---- JSON ---- */

/* How report_page.js is to write a number. */
static const char *unit_of(chart_format *f) {
	return f == chart_bytes ? "bytes" : f == chart_seconds ? "seconds" : f == chart_si ? "si" : "plain";
}

static void append_number(json_t *to, double v) {
	(void)json_array_append_new(to, isfinite(v) ? json_real(v) : json_null());
}

static json_t *series_json(const struct line_chart *c, const struct chart_series *s) {
	json_t *x = json_array(), *y = json_array(), *sd = json_array();
	for (int i = 0; i < s->n; i++) {
		if (!chart_shows(c, s, i))
			continue;
		append_number(x, s->x[i]);
		append_number(y, s->y[i]);
		append_number(sd, s->sd ? s->sd[i] : NAN);
	}
	return json_pack("{ss ss ss so so so}", "label", s->label, "color", chart_paint_name(s->paint).text, "dashes",
					 chart_paint_dashes(s->paint), "x", x, "y", y, "sd", sd);
}

json_t *chart_json_lines(const struct line_chart *c) {
	json_t *series = json_array(), *marks = json_array();
	for (int i = 0; i < c->n_marks; i++)
		(void)json_array_append_new(
			marks, json_pack("{si sf ss}", "series", c->marks[i].series, "x", c->marks[i].x, "text", c->marks[i].text));
	for (int i = 0; i < c->n_series; i++)
		(void)json_array_append_new(series, series_json(c, &c->series[i]));
	return json_pack("{ss ss ss ss sb so so}", "id", c->id, "xLabel", c->x_label, "yLabel", c->y_label, "unit",
					 unit_of(c->format_x), "log", c->x_log, "series", series, "marks", marks);
}

json_t *chart_json_bars(const struct bar_chart *c) {
	json_t *names = json_array(), *parts = json_array();
	for (int i = 0; i < c->n_bars; i++)
		(void)json_array_append_new(names, json_string(c->bars[i].label));
	for (int k = 0; k < c->n_parts; k++) {
		json_t *values = json_array();
		for (int i = 0; i < c->n_bars; i++)
			append_number(values, c->bars[i].parts[k]);
		(void)json_array_append_new(parts, json_pack("{ss so}", "label", c->part_names[k], "values", values));
	}
	return json_pack("{ss ss so so}", "id", c->id, "unit", unit_of(c->format), "names", names, "parts", parts);
}
