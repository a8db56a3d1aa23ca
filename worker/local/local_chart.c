/* local_chart.c: see local_chart.h. */
#include "worker/local/local_chart.h"

#include "base/chart/chart.h"
#include "base/loss_curve.h"

#include <stdlib.h>

enum { HEIGHT = 240 };

struct curve {
	double x[LOSS_CURVE_POINTS], y[LOSS_CURVE_POINTS];
	int n;
};

struct curves {
	struct curve heldout, training;
};

static void read_curve(const json_t *list, struct curve *out) {
	size_t i;
	json_t *point;
	out->n = 0;
	json_array_foreach(list, i, point) {
		const json_t *x = json_array_get(point, 0), *y = json_array_get(point, 1);
		if (out->n == LOSS_CURVE_POINTS || !json_is_number(x) || !json_is_number(y))
			continue;
		out->x[out->n] = json_number_value(x);
		out->y[out->n++] = json_number_value(y);
	}
}

static void round_text(double v, char out[CHART_TEXT_BYTES]) {
	(void)snprintf(out, CHART_TEXT_BYTES, "%.0f", v);
}

static void add(struct line_chart *c, const char *label, int hue, const struct curve *curve) {
	if (curve->n < 2)
		return;
	c->series[c->n_series++] =
		(struct chart_series){.label = label, .paint = {.hue = hue}, .x = curve->x, .y = curve->y, .n = curve->n};
}

static void draw(const struct curves *of, int width, FILE *out) {
	struct line_chart c = {.width = width,
						   .height = HEIGHT,
						   .title = "Loss by round",
						   .x_label = "round",
						   .x_tight = true,
						   .x_whole = true,
						   .format_x = round_text,
						   .format_y = chart_plain};
	add(&c, "held-out text", 0, &of->heldout);
	add(&c, "my training", 1, &of->training);
	if (c.n_series > 0)
		chart_print_lines(&c, out);
}

char *local_chart_draw(const json_t *status, int width) {
	char *text = NULL;
	size_t n = 0;
	struct curves *of = malloc(sizeof *of);
	FILE *f = of ? open_memstream(&text, &n) : NULL;
	if (f) {
		read_curve(json_object_get(status, "heldout"), &of->heldout);
		read_curve(json_object_get(status, "training"), &of->training);
		draw(of,
			 width < LOCAL_CHART_WIDTH_LEAST  ? LOCAL_CHART_WIDTH_LEAST
			 : width > LOCAL_CHART_WIDTH_MOST ? LOCAL_CHART_WIDTH_MOST
											  : width,
			 f);
	}
	free(of);
	if (f && fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}
