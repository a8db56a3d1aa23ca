/* chart_text.c: numbers and names as text in charts and tables. */
#include "base/chart/chart.h"

#include <math.h>
#include <string.h>

static void scaled(double v, const char *const *units, int n_units, char out[CHART_TEXT_BYTES]) {
	int k = 0;
	double shown = v;
	while (fabs(shown) >= 999.5 && k < n_units - 1) {
		shown /= 1000;
		k++;
	}
	snprintf(out, CHART_TEXT_BYTES, "%.3g%s", shown, units[k]);
}

void chart_si(double v, char out[CHART_TEXT_BYTES]) {
	static const char *const units[] = {"", "k", "M", "G", "T"};
	scaled(v, units, 5, out);
}

void chart_bytes(double v, char out[CHART_TEXT_BYTES]) {
	static const char *const units[] = {" B", " kB", " MB", " GB", " TB"};
	scaled(v, units, 5, out);
}

void chart_seconds(double v, char out[CHART_TEXT_BYTES]) {
	long s = lround(v);
	if (v < 10)
		snprintf(out, CHART_TEXT_BYTES, "%.2f s", v);
	else if (s < 60)
		snprintf(out, CHART_TEXT_BYTES, "%ld s", s);
	else if (s < 3600)
		snprintf(out, CHART_TEXT_BYTES, "%ld:%02ld min", s / 60, s % 60);
	else
		snprintf(out, CHART_TEXT_BYTES, "%ld:%02ld:%02ld h", s / 3600, s / 60 % 60, s % 60);
}

void chart_plain(double v, char out[CHART_TEXT_BYTES]) {
	snprintf(out, CHART_TEXT_BYTES, "%.4g", v);
}

void chart_print_text(const char *text, FILE *out) {
	for (const char *c = text; *c; c++)
		switch (*c) {
		case '<':
			(void)fputs("&lt;", out);
			break;
		case '>':
			(void)fputs("&gt;", out);
			break;
		case '&':
			(void)fputs("&amp;", out);
			break;
		case '"':
			(void)fputs("&quot;", out);
			break;
		default:
			(void)fputc(*c, out);
		}
}

static bool within_character(const char *c) {
	return ((unsigned char)*c & 0xc0) == 0x80;
}

void chart_print_cut(const char *text, size_t chars, size_t head, FILE *out) {
	size_t n = strlen(text);
	if (n <= chars) {
		chart_print_text(text, out);
		return;
	}
	char first[CHART_CUT_BYTES];
	const char *tail = text + n - (chars - head - 1);
	while (head > 0 && within_character(text + head))
		head--;
	while (within_character(tail))
		tail++;
	snprintf(first, sizeof first, "%.*s", (int)head, text);
	chart_print_text(first, out);
	(void)fputs("…", out);
	chart_print_text(tail, out);
	(void)fputs("<title>", out);
	chart_print_text(text, out);
	(void)fputs("</title>", out);
}
