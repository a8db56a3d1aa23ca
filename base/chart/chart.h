/* chart.h: line charts, stacked bars and rows of dots as inline SVG, for reports and the
 * coordinator's page.
 *
 * Colours are CSS variables of the page (--h0-0 ... of chart_paint_name, --p0 ... of bars' parts,
 * --bg, --fg, --muted, --grid), so that one picture serves light and dark. Every mark has a tooltip
 * (<title>). A picture is complete without scripts; with scripts, chart_js shows the text of the
 * nearest mark, and a name in a legend hides its line. No function blocks but on `out`. */
#ifndef RV_BASE_CHART_H
#define RV_BASE_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { CHART_MAX_SERIES = 16, CHART_SHADES = 3, CHART_TEXT_BYTES = 32 };

typedef void chart_format(double v, char out[CHART_TEXT_BYTES]);

/* A colour of the page, and a number among the lines that share it. */
struct chart_paint {
	int hue, variant;
};
/* The name of a CSS variable, "--h3-1": hue 3, shade 1 of CHART_SHADES. */
struct chart_paint_name {
	char text[24];
};
struct chart_paint_name chart_paint_name(struct chart_paint paint);
/* Returns the stroke-dasharray of the variant; "": a solid line. */
const char *chart_paint_dashes(struct chart_paint paint);

struct chart_series {
	const char *label;
	struct chart_paint paint;
	const double *x, *y; /* (n), x ascending; points that chart_shows refuses are omitted */
	const double *sd;    /* (n) error bars: y - sd to y + sd; NaN: none. NULL: no point has one */
	int n;
};

/* An event outside the plane: a cross at its top edge. */
enum { CHART_MAX_MARKS = 64 };
struct chart_mark {
	int series;
	double x;
	char text[64]; /* "diverged in round 7" */
};

struct line_chart {
	int width, height; /* in units of which text is 12 high; 0: 464 x 290, legible on a phone */
	const char *id;    /* of files and elements */
	const char *title, *x_label, *y_label;
	const char *x_column; /* name of x in CSV */
	bool x_log;
	bool x_tight; /* a linear axis begins at the first point, not at 0 */
	bool x_whole; /* only whole numbers have ticks */
	chart_format *format_x, *format_y;
	struct chart_series series[CHART_MAX_SERIES];
	int n_series;
	double y_most; /* higher values are omitted from the picture, not from CSV; 0: none */
	struct chart_mark marks[CHART_MAX_MARKS];
	int n_marks;
	/* Writes the tooltip of point i of a series, as HTML; NULL: label, y and x. */
	void (*tell)(const void *of, int i, FILE *out);
	const void *of;
};

/* Prints a line chart. Labels are at the lines' right ends, moved apart if they would overlap; a
 * series whose label is "" has none. Marks, lines and labels of series 3 have the class s3. */
void chart_print_lines(const struct line_chart *c, FILE *out);

enum { CHART_MAX_PARTS = 4 };

struct chart_bar {
	char label[96];
	double parts[CHART_MAX_PARTS];
};

struct bar_chart {
	const char *id, *title;
	const char *part_names[CHART_MAX_PARTS];
	int n_parts;
	chart_format *format;
	const struct chart_bar *bars;
	int n_bars;
};

void chart_print_bars(const struct bar_chart *c, FILE *out);

/* A row of a dot chart, from the top down. SVG only. */
struct chart_dot {
	char label[128];
	double value, sd; /* NaN: none; no dot, no error bar */
	char text[64];    /* printed beside the name */
	struct chart_paint paint;
};

struct dot_chart {
	const char *id, *title, *label;
	chart_format *format;
	const struct chart_dot *dots;
	int n_dots;
	double reference; /* a dashed line; NaN: none */
	double most;      /* higher values have no dot; 0: all have */
};

void chart_print_dots(const struct dot_chart *c, FILE *out);

/* Returns true if point i is shown: it is finite, positive on a log axis, and not above y_most. */
bool chart_shows(const struct line_chart *c, const struct chart_series *s, int i);

/* Formats: 12.3M, 4.56 MB, 1:02:03 h, 1.234. */
chart_format chart_si, chart_bytes, chart_seconds, chart_plain;
/* Prints text with <, >, & and quotes escaped. */
void chart_print_text(const char *text, FILE *out);
/* Prints it too; text longer than `chars` loses its middle, as names mostly differ at the end, and
 * keeps `head` characters, fewer than CHART_CUT_BYTES, before it; a <title> then has all of it. */
enum { CHART_CUT_BYTES = 64 };
void chart_print_cut(const char *text, size_t chars, size_t head, FILE *out);

/* Style and script of charts and their legends, for the page; NUL-terminated. */
extern const char chart_css[], chart_js[];

#endif