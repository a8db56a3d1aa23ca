/* chart.c: SVG. The view box is small enough that text stays legible on a phone. */
#include "base/chart/chart.h"

#include "base/chart/axis.h"

#include <math.h>
#include <string.h>

enum {
	WIDTH = 464,
	HEIGHT = 290,
	LEFT = 40,
	RIGHT = 156, /* room for the labels at the lines' ends */
	RIGHT_BARE = 16,
	TICK_PITCH = 56,
	TOP = 12,
	BOTTOM = 44,
	LABEL_GAP = 15,
	LABEL_CHARS = 18,     /* that fit there, in a wide font too */
	LABEL_HEAD_CHARS = 6, /* of a longer one */
	MARKERS_MAX = 80,     /* per line; longer ones have markers at some points only */
	ERROR_BARS_MAX = 12,  /* likewise */
	BAR_HEIGHT = 18,
	BAR_PITCH = 40,
	LEGEND_HEIGHT = 26
};

struct plot {
	const struct line_chart *chart;
	int right, bottom; /* of the plane */
	struct axis x, y;
	FILE *out;
};

struct chart_paint_name chart_paint_name(struct chart_paint paint) {
	struct chart_paint_name name;
	snprintf(name.text, sizeof name.text, "--h%d-%d", paint.hue, paint.variant % CHART_SHADES);
	return name;
}

const char *chart_paint_dashes(struct chart_paint paint) {
	static const char *const dashes[] = {"", "6 3", "2 3", "10 3 2 3"};
	return dashes[paint.variant % (int)(sizeof dashes / sizeof dashes[0])];
}

bool chart_shows(const struct line_chart *c, const struct chart_series *s, int i) {
	return isfinite(s->x[i]) && isfinite(s->y[i]) && (!c->x_log || s->x[i] > 0) &&
		   !(c->y_most > 0 && s->y[i] > c->y_most);
}

static double half_bar(const struct chart_series *s, int i) {
	return s->sd && isfinite(s->sd[i]) ? s->sd[i] : 0;
}

static void drop_fractions(struct axis *a) {
	int n = 0;
	for (int i = 0; i < a->n_ticks; i++)
		if (fabs(a->ticks[i] - round(a->ticks[i])) < 1e-9)
			a->ticks[n++] = round(a->ticks[i]);
	a->n_ticks = n;
}

/* Finds the ranges; returns false if there is nothing to show. */
static bool find_ranges(struct plot *p) {
	const struct line_chart *c = p->chart;
	double x0 = INFINITY, x1 = -INFINITY, y0 = INFINITY, y1 = -INFINITY;
	for (int s = 0; s < c->n_series; s++)
		for (int i = 0; i < c->series[s].n; i++)
			if (chart_shows(c, &c->series[s], i)) {
				x0 = fmin(x0, c->series[s].x[i]);
				x1 = fmax(x1, c->series[s].x[i]);
				y0 = fmin(y0, c->series[s].y[i] - half_bar(&c->series[s], i));
				y1 = fmax(y1, c->series[s].y[i] + half_bar(&c->series[s], i));
			}
	for (int i = 0; i < c->n_marks; i++) {
		x0 = fmin(x0, c->marks[i].x);
		x1 = fmax(x1, c->marks[i].x);
	}
	if (!(x0 <= x1))
		return false;
	if (!(y0 <= y1)) { /* marks alone */
		y0 = 0;
		y1 = 1;
	}
	p->x = axis_of(c->x_log || c->x_tight ? x0 : fmin(x0, 0), x1, c->x_log, (p->right - LEFT) / TICK_PITCH, LEFT,
				   p->right);
	if (c->x_whole)
		drop_fractions(&p->x);
	p->y = axis_of(y0, y1, false, 6, p->bottom, TOP);
	return true;
}

static bool add_tick(struct axis *a, double v) {
	int at = a->n_ticks;
	for (int i = 0; i < a->n_ticks; i++)
		if (a->ticks[i] == v)
			return true;
	if (a->n_ticks == AXIS_MAX_TICKS)
		return false;
	for (a->n_ticks++; at > 0 && a->ticks[at - 1] > v; at--)
		a->ticks[at] = a->ticks[at - 1];
	a->ticks[at] = v;
	return true;
}

/* Uses few values, such as those of H, as ticks. */
static void tick_values(struct plot *p) {
	const struct line_chart *c = p->chart;
	struct axis a = p->x;
	bool few = c->x_log && c->format_x == chart_si;
	a.n_ticks = 0;
	for (int s = 0; s < c->n_series; s++)
		for (int i = 0; few && i < c->series[s].n; i++)
			few = !chart_shows(c, &c->series[s], i) || add_tick(&a, c->series[s].x[i]);
	for (int i = 0; few && i < c->n_marks; i++)
		few = add_tick(&a, c->marks[i].x);
	if (few)
		p->x = a;
}

static void print_axes(const struct plot *p) {
	const struct line_chart *c = p->chart;
	char text[CHART_TEXT_BYTES];
	for (int i = 0; i < p->y.n_ticks; i++) {
		double y = axis_at(&p->y, p->y.ticks[i]);
		c->format_y(p->y.ticks[i], text);
		(void)fprintf(p->out, "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>", LEFT, y, p->right,
					  y);
		(void)fprintf(p->out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", LEFT - 6, y + 4, text);
	}
	double end = -INFINITY;
	for (int i = 0; i < p->x.n_ticks; i++) {
		double x = axis_at(&p->x, p->x.ticks[i]);
		c->format_x(p->x.ticks[i], text);
		(void)fprintf(p->out, "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>", x, TOP, x,
					  p->bottom);
		if (axis_has_room(x, text, &end))
			(void)fprintf(p->out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x, p->bottom + 16,
						  text);
	}
	(void)fprintf(p->out, "<text class=\"axis\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
				  (LEFT + p->right) / 2, p->bottom + 38, c->x_label);
}

static void print_error_bars(const struct plot *p, const struct chart_series *s) {
	for (int i = s->n - 1; i >= 0; i -= (s->n + ERROR_BARS_MAX - 1) / ERROR_BARS_MAX) {
		if (!chart_shows(p->chart, s, i) || !(half_bar(s, i) > 0))
			continue;
		double x = axis_at(&p->x, s->x[i]), half = half_bar(s, i);
		double low = axis_at(&p->y, s->y[i] - half), high = axis_at(&p->y, s->y[i] + half);
		(void)fprintf(p->out, "<path class=\"line\" style=\"stroke:var(%s)\" d=\"M%.1f %.1fh6m-3 0V%.1fm-3 0h6\"/>\n",
					  chart_paint_name(s->paint).text, x - 3, low, high);
	}
}

static void print_told(const struct plot *p, const struct chart_series *s, int i) {
	char x[CHART_TEXT_BYTES], y[CHART_TEXT_BYTES];
	if (p->chart->tell) {
		p->chart->tell(p->chart->of, i, p->out);
		return;
	}
	p->chart->format_x(s->x[i], x);
	p->chart->format_y(s->y[i], y);
	chart_print_text(s->label, p->out);
	(void)fprintf(p->out, ": %s", y);
	if (half_bar(s, i) > 0)
		(void)fprintf(p->out, " ± %.2g", half_bar(s, i));
	(void)fprintf(p->out, " at %s", x);
}

static void print_line(const struct plot *p, int index) {
	const struct chart_series *s = &p->chart->series[index];
	const int every = s->n / MARKERS_MAX + 1;
	const struct chart_paint_name color = chart_paint_name(s->paint);
	const char *dashes = chart_paint_dashes(s->paint), *fill = dashes[0] ? "--bg" : color.text; /* dashed: hollow */
	(void)fprintf(p->out, "<g class=\"s%d\">", index);
	(void)fprintf(p->out, "<polyline class=\"line\" style=\"stroke:var(%s)%s%s\" points=\"", color.text,
				  dashes[0] ? ";stroke-dasharray:" : "", dashes);
	for (int i = 0; i < s->n; i++)
		if (chart_shows(p->chart, s, i))
			(void)fprintf(p->out, "%.1f,%.1f ", axis_at(&p->x, s->x[i]), axis_at(&p->y, s->y[i]));
	(void)fputs("\"/>\n", p->out);
	print_error_bars(p, s);
	for (int i = 0; i < s->n; i += every) {
		if (!chart_shows(p->chart, s, i))
			continue;
		(void)fprintf(p->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\" style=\"fill:var(%s);stroke:var(%s)\"><title>",
					  axis_at(&p->x, s->x[i]), axis_at(&p->y, s->y[i]), fill, color.text);
		print_told(p, s, i);
		(void)fputs("</title></circle>\n", p->out);
	}
	(void)fputs("</g>\n", p->out);
}

enum { MARK_HALF = 4, MARK_Y = TOP + MARK_HALF + 1 };

static void print_marks(const struct plot *p) {
	for (int i = 0; i < p->chart->n_marks; i++) {
		const struct chart_mark *m = &p->chart->marks[i];
		double x = axis_at(&p->x, m->x);
		(void)fprintf(
			p->out, "<path class=\"line mark s%d\" style=\"stroke:var(%s)\" d=\"M%.1f %dl%d %dm0 -%dl-%d %d\"><title>",
			m->series, chart_paint_name(p->chart->series[m->series].paint).text, x - MARK_HALF, MARK_Y - MARK_HALF,
			2 * MARK_HALF, 2 * MARK_HALF, 2 * MARK_HALF, 2 * MARK_HALF, 2 * MARK_HALF);
		chart_print_text(p->chart->series[m->series].label, p->out);
		(void)fputs(": ", p->out);
		chart_print_text(m->text, p->out);
		(void)fputs("</title></path>\n", p->out);
	}
}

struct end_label {
	int series;
	double x, y, shown_y;
};

/* Finds the end of a line, or its last mark if it has no points; returns false if it is not in the
 * picture. */
static bool find_end(const struct plot *p, int series, struct end_label *e) {
	const struct line_chart *c = p->chart;
	const struct chart_series *line = &c->series[series];
	int last = line->n - 1, mark = c->n_marks - 1;
	while (last >= 0 && !chart_shows(c, line, last))
		last--;
	while (mark >= 0 && c->marks[mark].series != series)
		mark--;
	if (last >= 0)
		*e = (struct end_label){
			.series = series, .x = axis_at(&p->x, line->x[last]), .y = axis_at(&p->y, line->y[last])};
	else if (mark >= 0)
		*e = (struct end_label){.series = series, .x = axis_at(&p->x, c->marks[mark].x), .y = MARK_Y};
	return last >= 0 || mark >= 0;
}

static int collect_ends(const struct plot *p, struct end_label *ends) {
	int n = 0;
	for (int s = 0; s < p->chart->n_series; s++) {
		struct end_label e;
		if (!p->chart->series[s].label[0] || !find_end(p, s, &e))
			continue;
		int at = n++;
		for (; at > 0 && ends[at - 1].y > e.y; at--)
			ends[at] = ends[at - 1];
		ends[at] = e;
	}
	return n;
}

/* Moves each, from the top down, at least LABEL_GAP below the previous one; then from the bottom
 * up, to stay inside. */
static void spread(struct end_label *ends, int n, double bottom) {
	for (int i = 0; i < n; i++) {
		double least = i > 0 ? ends[i - 1].shown_y + LABEL_GAP : TOP + 4;
		ends[i].shown_y = fmax(ends[i].y, least);
	}
	double most = bottom;
	for (int i = n - 1; i >= 0; i--) {
		ends[i].shown_y = fmin(ends[i].shown_y, most);
		most = ends[i].shown_y - LABEL_GAP;
	}
}

static void print_labels(const struct plot *p) {
	struct end_label ends[CHART_MAX_SERIES];
	int n = collect_ends(p, ends);
	spread(ends, n, p->bottom);
	for (int i = 0; i < n; i++) {
		const struct end_label *e = &ends[i];
		const struct chart_paint_name color = chart_paint_name(p->chart->series[e->series].paint);
		(void)fprintf(p->out,
					  "<g class=\"s%d\"><line class=\"leader\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" "
					  "style=\"stroke:var(%s)\"/>",
					  e->series, e->x + 4, e->y, p->right + 8, e->shown_y, color.text);
		(void)fprintf(p->out, "<text class=\"label\" x=\"%d\" y=\"%.1f\" style=\"fill:var(%s)\">", p->right + 12,
					  e->shown_y + 4, color.text);
		chart_print_cut(p->chart->series[e->series].label, LABEL_CHARS, LABEL_HEAD_CHARS, p->out);
		(void)fputs("</text></g>\n", p->out);
	}
}

static void open_svg(const char *title, int width, int height, FILE *out) {
	(void)fprintf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", width, height);
	chart_print_text(title, out);
	(void)fputs("\">\n", out);
}

void chart_print_lines(const struct line_chart *c, FILE *out) {
	const int width = c->width > 0 ? c->width : WIDTH, height = c->height > 0 ? c->height : HEIGHT;
	struct plot p = {.chart = c, .right = width - RIGHT_BARE, .bottom = height - BOTTOM, .out = out};
	for (int s = 0; s < c->n_series; s++)
		if (c->series[s].label[0])
			p.right = width - RIGHT;
	open_svg(c->title, width, height, out);
	if (find_ranges(&p)) {
		tick_values(&p);
		print_axes(&p);
		for (int s = 0; s < c->n_series; s++)
			print_line(&p, s);
		print_marks(&p);
		print_labels(&p);
	} else {
		(void)fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">no data yet</text>\n", width / 2,
					  height / 2);
	}
	(void)fputs("</svg>\n", out);
}

static void print_legend(const struct bar_chart *c, FILE *out) {
	for (int k = 0; k < c->n_parts; k++) {
		int x = LEFT + k * 100;
		(void)fprintf(out, "<rect x=\"%d\" y=\"4\" width=\"12\" height=\"12\" style=\"fill:var(--p%d)\"/>", x, k);
		(void)fprintf(out, "<text x=\"%d\" y=\"14\">%s</text>\n", x + 17, c->part_names[k]);
	}
}

static void print_bar(const struct bar_chart *c, const struct chart_bar *b, double y, double pixels_per_unit,
					  FILE *out) {
	char text[CHART_TEXT_BYTES];
	double x = LEFT, total = 0;
	(void)fprintf(out, "<text x=\"%d\" y=\"%.1f\">", LEFT, y - 4);
	chart_print_text(b->label, out);
	(void)fputs("</text>\n", out);
	for (int k = 0; k < c->n_parts; k++) {
		double width = b->parts[k] * pixels_per_unit;
		c->format(b->parts[k], text);
		(void)fprintf(out,
					  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" style=\"fill:var(--p%d)\">"
					  "<title>%s: %s</title></rect>\n",
					  x, y, width, BAR_HEIGHT, k, c->part_names[k], text);
		x += width;
		total += b->parts[k];
	}
	c->format(total, text);
	(void)fprintf(out, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", x + 6, y + BAR_HEIGHT - 4, text);
}

void chart_print_bars(const struct bar_chart *c, FILE *out) {
	double most = 0;
	for (int i = 0; i < c->n_bars; i++) {
		double total = 0;
		for (int k = 0; k < c->n_parts; k++)
			total += c->bars[i].parts[k];
		most = fmax(most, total);
	}
	open_svg(c->title, WIDTH, LEGEND_HEIGHT + c->n_bars * BAR_PITCH + 8, out);
	print_legend(c, out);
	for (int i = 0; i < c->n_bars; i++)
		print_bar(c, &c->bars[i], LEGEND_HEIGHT + 16 + i * BAR_PITCH, most > 0 ? (WIDTH - LEFT - 70) / most : 0, out);
	(void)fputs("</svg>\n", out);
}
