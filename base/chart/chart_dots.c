/* chart_dots.c: a row for each value, its name above it: legible with too many names for lines, and
 * on a phone. */
#include "base/chart/chart.h"

#include "base/chart/axis.h"

#include <math.h>

enum {
	WIDTH = 400,
	LEFT = 8,
	RIGHT = 24, /* room for half a tick's text */
	TOP = 8,
	PITCH = 34,
	BASELINE = 26, /* of a row: the place of its dot */
	BOTTOM = 44,
	NAME_CHARS = 44, /* that fit beside the value */
	NAME_HEAD_CHARS = 20
};

struct plot {
	const struct dot_chart *chart;
	struct axis x;
	FILE *out;
};

static bool is_shown(const struct dot_chart *c, double v) {
	return isfinite(v) && !(c->most > 0 && v > c->most);
}

static double half_bar(const struct chart_dot *d) {
	return isfinite(d->sd) ? d->sd : 0;
}

/* Finds the range; returns false if there is nothing to show. */
static bool find_range(struct plot *p) {
	const struct dot_chart *c = p->chart;
	double low = INFINITY, high = -INFINITY;
	for (int i = 0; i < c->n_dots; i++)
		if (is_shown(c, c->dots[i].value)) {
			low = fmin(low, c->dots[i].value - half_bar(&c->dots[i]));
			high = fmax(high, c->dots[i].value + half_bar(&c->dots[i]));
		}
	if (!(low <= high))
		return false;
	p->x = axis_of(low, high, false, 6, LEFT + 6, WIDTH - RIGHT);
	return true;
}

static void print_axis(const struct plot *p, int bottom) {
	char text[CHART_TEXT_BYTES];
	double end = -INFINITY;
	for (int i = 0; i < p->x.n_ticks; i++) {
		double x = axis_at(&p->x, p->x.ticks[i]);
		p->chart->format(p->x.ticks[i], text);
		(void)fprintf(p->out, "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>", x, TOP, x, bottom);
		if (axis_has_room(x, text, &end))
			(void)fprintf(p->out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x, bottom + 16, text);
	}
	(void)fprintf(p->out, "<text class=\"axis\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", WIDTH / 2,
				  bottom + 36, p->chart->label);
}

static void print_reference(const struct plot *p, int bottom) {
	if (!is_shown(p->chart, p->chart->reference))
		return;
	double x = axis_at(&p->x, p->chart->reference);
	(void)fprintf(p->out,
				  "<line class=\"leader\" style=\"stroke:var(--fg)\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n",
				  x, TOP, x, bottom);
}

static void print_dot(const struct plot *p, const struct chart_dot *d, double y) {
	const struct chart_paint_name color = chart_paint_name(d->paint);
	double x = axis_at(&p->x, d->value), half = half_bar(d);
	double low = axis_at(&p->x, d->value - half), high = axis_at(&p->x, d->value + half);
	if (half > 0)
		(void)fprintf(p->out, "<path class=\"line\" style=\"stroke:var(%s)\" d=\"M%.1f %.1fv6m0 -3H%.1fm0 -3v6\"/>",
					  color.text, low, y - 3, high);
	(void)fprintf(p->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" style=\"fill:var(%s)\"/>\n", x, y, color.text);
}

/* Prints the value beside the name; without a dot, on the next line. */
static void print_name(const struct plot *p, const struct chart_dot *d, int y) {
	const int told_y = is_shown(p->chart, d->value) ? y : y + PITCH / 2 - 2;
	(void)fprintf(p->out, "<text class=\"axis\" x=\"%d\" y=\"%d\">", LEFT, y);
	chart_print_cut(d->label, NAME_CHARS, NAME_HEAD_CHARS, p->out);
	(void)fprintf(p->out, "</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">", WIDTH - LEFT, told_y);
	chart_print_text(d->text, p->out);
	(void)fputs("</text>\n", p->out);
}

void chart_print_dots(const struct dot_chart *c, FILE *out) {
	struct plot p = {.chart = c, .out = out};
	const int bottom = TOP + c->n_dots * PITCH;
	(void)fprintf(out, "<svg class=\"dots\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, bottom + BOTTOM);
	chart_print_text(c->title, out);
	(void)fputs("\">\n", out);
	if (find_range(&p)) {
		print_axis(&p, bottom);
		print_reference(&p, bottom);
		for (int i = 0; i < c->n_dots; i++) {
			print_name(&p, &c->dots[i], TOP + i * PITCH + 13);
			if (is_shown(c, c->dots[i].value))
				print_dot(&p, &c->dots[i], TOP + i * PITCH + BASELINE);
		}
	} else {
		(void)fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">no data yet</text>\n", WIDTH / 2, TOP + 20);
	}
	(void)fputs("</svg>\n", out);
}
