/* chart.h: line charts and stacked bars as inline SVG. Colours are CSS variables of the page (--s0 ... --s7, --fg,
 * --muted, --grid), so that one picture serves light and dark; every mark has a tooltip (<title>). No scripts. */
#ifndef RV_LAB_CHART_H
#define RV_LAB_CHART_H

#include <stdbool.h>
#include <stdio.h>

enum { CHART_MAX_SERIES = 16, CHART_COLORS = 8, CHART_TEXT_BYTES = 32 };

typedef void chart_format(double v, char out[CHART_TEXT_BYTES]);

struct chart_series {
	const char *label;
	const double *x, *y; /* (n), x ascending; points that are not finite, or not positive on a log axis, are left out */
	int n;
};

struct line_chart {
	const char *title, *x_label, *y_label;
	bool x_log;
	chart_format *format_x, *format_y;
	struct chart_series series[CHART_MAX_SERIES];
	int n_series;
};

/* Labels stand at the lines' right ends, moved apart where they would overlap. */
void chart_print_lines(const struct line_chart *c, FILE *out);

enum { CHART_MAX_PARTS = 4 };

struct chart_bar {
	char label[96];
	double parts[CHART_MAX_PARTS];
};

struct bar_chart {
	const char *title;
	const char *part_names[CHART_MAX_PARTS];
	int n_parts;
	chart_format *format;
	const struct chart_bar *bars;
	int n_bars;
};

void chart_print_bars(const struct bar_chart *c, FILE *out);

/* Formats: 12.3M, 4.56 MB, 1:02:03 h, 1.234. */
chart_format chart_si, chart_bytes, chart_seconds, chart_plain;
/* Text with <, >, & and quotes escaped. */
void chart_print_text(const char *text, FILE *out);

#endif
