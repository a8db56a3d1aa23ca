/* Axes, number formats, and the SVG: balanced tags, escaped names, labels that do not overlap,
 * numbers that are. */
#include "base/chart/axis.h"
#include "base/chart/chart.h"
#include "tests/common/check.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_linear_axis(void **state) {
	(void)state;
	const double ranges[][2] = {{0, 1}, {1.9, 5.6}, {-3, 17}, {0, 3686400}, {2, 2}, {0, 0}, {1e-9, 2e-9}, {-5, -5}};
	for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
		struct axis a = axis_of(ranges[i][0], ranges[i][1], false, 5, 100, 500);
		assert_true(a.low <= ranges[i][0] && a.high >= ranges[i][1]);
		assert_true(a.n_ticks >= 2 && a.n_ticks <= AXIS_MAX_TICKS);
		for (int k = 1; k < a.n_ticks; k++)
			assert_true(a.ticks[k] > a.ticks[k - 1]);
		assert_true(fabs(axis_at(&a, a.low) - 100) < 1e-6 && fabs(axis_at(&a, a.high) - 500) < 1e-6);
	}
}

static void test_log_axis(void **state) {
	(void)state;
	struct axis a = axis_of(1e5, 1e9, true, 5, 0, 400);
	assert_int_equal(a.n_ticks, 5);
	assert_true(fabs(a.ticks[0] - 1e5) < 1 && fabs(a.ticks[4] - 1e9) < 1e4);
	assert_true(fabs(axis_at(&a, 1e7) - 200) < 1);
	a = axis_of(3e6, 4e6, true, 5, 0, 400);
	assert_true(a.low < 3e6 && a.high > 4e6);
	a = axis_of(5, 5, true, 5, 0, 400);
	assert_true(a.high > a.low && a.n_ticks >= 1);
	a = axis_of(1e-30, 1e30, true, 5, 0, 400);
	assert_true(a.n_ticks > 2 && a.n_ticks <= AXIS_MAX_TICKS);
}

static void assert_formats(chart_format *f, double v, const char *want) {
	char text[CHART_TEXT_BYTES];
	f(v, text);
	assert_string_equal(text, want);
}

static void test_formats(void **state) {
	(void)state;
	assert_formats(chart_si, 0, "0");
	assert_formats(chart_si, 999, "999");
	assert_formats(chart_si, 1500000, "1.5M");
	assert_formats(chart_bytes, 38504700, "38.5 MB");
	assert_formats(chart_bytes, 999700, "1 MB");
	assert_formats(chart_seconds, 1.5, "1.50 s");
	assert_formats(chart_seconds, 59.4, "59 s");
	assert_formats(chart_seconds, 187, "3:07 min");
	assert_formats(chart_seconds, 3723, "1:02:03 h");
	assert_formats(chart_plain, 2.25, "2.25");
}

/* Every tag that opens closes, in order; void tags end in "/>". */
static void assert_balanced(const char *svg) {
	char open[64][16];
	int depth = 0;
	for (const char *c = strchr(svg, '<'); c; c = strchr(c + 1, '<')) {
		const char *end = strchr(c, '>');
		assert_non_null(end);
		if (end[-1] == '/')
			continue;
		char name[16] = "";
		const char *from = c[1] == '/' ? c + 2 : c + 1;
		for (size_t i = 0; i < sizeof name - 1 && isalnum((unsigned char)from[i]); i++)
			name[i] = from[i];
		if (c[1] == '/') {
			assert_true(depth > 0);
			assert_string_equal(open[--depth], name);
		} else {
			assert_true(depth < 64);
			strcpy(open[depth++], name);
		}
	}
	assert_int_equal(depth, 0);
}

static char *lines_of(const struct line_chart *c) {
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	assert_non_null(f);
	chart_print_lines(c, f);
	assert_int_equal(fclose(f), 0);
	assert_balanced(text);
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf"));
	return text;
}

static struct line_chart empty_chart(bool x_log) {
	return (struct line_chart){
		.title = "t", .x_label = "x", .y_label = "y", .x_log = x_log, .format_x = chart_si, .format_y = chart_plain};
}

static void test_lines(void **state) {
	(void)state;
	const double x[] = {0, 10, 100, 1000}, y[] = {5, NAN, 3, 2.5};
	for (int log = 0; log < 2; log++) {
		struct line_chart c = empty_chart(log);
		c.series[c.n_series++] = (struct chart_series){.label = "a<b>&\"c\"", .x = x, .y = y, .n = 4};
		char *svg = lines_of(&c);
		assert_non_null(strstr(svg, "a&lt;b&gt;&amp;&quot;c&quot;"));
		assert_non_null(strstr(svg, ": 2.5 at 1k</title>"));
		assert_null(strstr(svg, "<script"));
		free(svg);
	}
}

/* On a log axis of counts the values that there are, where they are few. */
static void test_values_are_ticks(void **state) {
	(void)state;
	const double x[] = {4, 24, 96}, y[] = {1, 2, 3};
	struct line_chart c = empty_chart(true);
	c.series[c.n_series++] = (struct chart_series){.label = "a", .x = x, .y = y, .n = 3};
	c.series[c.n_series++] = (struct chart_series){.label = "b", .x = x + 1, .y = y, .n = 1};
	char *svg = lines_of(&c);
	assert_non_null(strstr(svg, ">4</text>"));
	assert_non_null(strstr(svg, ">24</text>"));
	assert_non_null(strstr(svg, ">96</text>"));
	assert_null(strstr(svg, ">20</text>"));
	free(svg);
	c.format_x = chart_bytes;
	svg = lines_of(&c);
	assert_non_null(strstr(svg, ">20 B</text>"));
	free(svg);
}

static void test_long_names_are_cut_between_characters(void **state) {
	(void)state;
	const double x[] = {1, 2}, y[] = {1, 2};
	struct line_chart c = empty_chart(false);
	c.series[c.n_series++] = (struct chart_series){.label = "abcdefé ghijklmnop 中r and more", .x = x, .y = y, .n = 2};
	char *svg = lines_of(&c);
	assert_non_null(strstr(svg, ">abcdef…r and more<title>abcdefé ghijklmnop 中r and more</title>"));
	free(svg);
	c.series[0].label = "Rivulet, 4 workers"; /* the demo's */
	svg = lines_of(&c);
	assert_non_null(strstr(svg, ">Rivulet, 4 workers</text>"));
	free(svg);
}

static void test_nothing_to_show(void **state) {
	(void)state;
	const double zero[] = {0}, one[] = {1};
	struct line_chart c = empty_chart(true);
	char *svg = lines_of(&c);
	assert_non_null(strstr(svg, "no data yet"));
	free(svg);
	c.series[c.n_series++] =
		(struct chart_series){.label = "silent", .x = zero, .y = one, .n = 1}; /* not on a log axis */
	svg = lines_of(&c);
	assert_non_null(strstr(svg, "no data yet"));
	free(svg);
}

/* Sixteen runs that end at the same loss: sixteen labels, each on a line of its own. */
static void test_labels_do_not_overlap(void **state) {
	(void)state;
	const double x[] = {1, 2}, y[] = {2, 1};
	struct line_chart c = empty_chart(false);
	for (int i = 0; i < CHART_MAX_SERIES; i++)
		c.series[c.n_series++] = (struct chart_series){.label = "run", .x = x, .y = y, .n = 2};
	char *svg = lines_of(&c);
	double seen[CHART_MAX_SERIES];
	int n = 0;
	for (const char *at = svg; (at = strstr(at, "class=\"label\"")); at++) {
		const char *y_text = strstr(at, " y=\"");
		assert_true(n < CHART_MAX_SERIES && y_text);
		seen[n++] = strtod(y_text + 4, NULL);
	}
	assert_int_equal(n, CHART_MAX_SERIES);
	for (int i = 0; i < n; i++)
		for (int k = 0; k < i; k++)
			assert_true(fabs(seen[i] - seen[k]) >= 12);
	free(svg);
}

/* Ticks with long texts: of two that would touch one is left out. Each digit is as wide as 7 px. */
static void test_texts_of_ticks_do_not_overlap(void **state) {
	(void)state;
	const double x[] = {3661, 40000}, y[] = {2, 1};
	static const struct {
		chart_format *format;
		bool log;
	} axes[] = {{chart_seconds, false}, {chart_seconds, true}, {chart_bytes, true}};
	for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++) {
		struct line_chart c = empty_chart(axes[i].log);
		c.format_x = axes[i].format;
		c.series[c.n_series++] = (struct chart_series){.label = "run", .x = x, .y = y, .n = 2};
		char *svg = lines_of(&c);
		double end = -INFINITY;
		int n = 0;
		for (const char *at = svg; (at = strstr(at, "text-anchor=\"middle\">")); n++) {
			const char *begin = at;
			while (strncmp(begin, "<text ", 6) != 0)
				begin--;
			if (strncmp(begin, "<text class", 11) == 0)
				break; /* the axis's own */
			at = strchr(at, '>') + 1;
			const double middle = strtod(strstr(begin, "x=\"") + 3, NULL), half = 3.5 * (double)strcspn(at, "<");
			if (middle - half < end + 3)
				fail_msg("%.20s begins at %.1f, and the one before ends at %.1f", at, middle - half, end);
			end = middle + half;
		}
		assert_in_range(n, 2, 8);
		free(svg);
	}
}

static void test_bars(void **state) {
	(void)state;
	const struct chart_bar bars[] = {{"w0", {3, 1, 0}}, {"w<1>", {0, 0, 0}}};
	const struct bar_chart c = {.title = "time",
								.part_names = {"compute", "all-reduce", "idle"},
								.n_parts = 3,
								.format = chart_seconds,
								.bars = bars,
								.n_bars = 2};
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	chart_print_bars(&c, f);
	assert_int_equal(fclose(f), 0);
	assert_balanced(text);
	assert_non_null(strstr(text, "compute: 3.00 s"));
	assert_non_null(strstr(text, "w&lt;1&gt;"));
	free(text);
}

static void test_error_bars(void **state) {
	(void)state;
	const double x[] = {1, 2, 4}, y[] = {3, 2, 1}, sd[] = {0.5, NAN, 2};
	struct line_chart c = empty_chart(true);
	c.series[c.n_series++] = (struct chart_series){.label = "run", .x = x, .y = y, .sd = sd, .n = 3};
	char *svg = lines_of(&c);
	int n = 0;
	for (const char *at = svg; (at = strstr(at, "<path class=\"line\"")); at++)
		n++;
	assert_int_equal(n, 2);
	assert_non_null(strstr(svg, "<title>run: 3 ± 0.5 at 1</title>"));
	assert_non_null(strstr(svg, "<title>run: 2 at 2</title>"));
	assert_non_null(strstr(svg, ">-1</text>")); /* the axis reaches as far as they do */
	free(svg);
}

/* What has diverged, or is off the picture, is a cross at the top edge, and flattens nothing
 * else. */
static void test_marks(void **state) {
	(void)state;
	const double x[] = {1, 2, 4}, y[] = {3, 2, 1e30}, none[] = {NAN};
	struct line_chart c = empty_chart(true);
	c.id = "id";
	c.y_most = 6;
	c.series[c.n_series++] = (struct chart_series){.label = "run", .x = x, .y = y, .n = 3};
	c.series[c.n_series++] = (struct chart_series){.label = "lost", .x = none, .y = none, .n = 1};
	c.marks[c.n_marks++] = (struct chart_mark){.series = 1, .x = 8, .text = "diverged in round 7"};
	char *svg = lines_of(&c);
	assert_non_null(strstr(svg, "line mark"));
	assert_non_null(strstr(svg, "<title>lost: diverged in round 7</title>"));
	assert_non_null(strstr(svg, ">lost</text>")); /* it has its label */
	assert_null(strstr(svg, "e+"));
	free(svg);
	c.series[0].n = 0; /* marks alone */
	svg = lines_of(&c);
	assert_null(strstr(svg, "no data yet"));
	free(svg);
}

/* One line without a name fills the width that is asked for; its marks say what their owner says of
 * them. */
static void tell_point(const void *of, int i, FILE *out) {
	(void)fprintf(out, "%s %d", (const char *)of, i);
}

static void test_a_line_without_a_name(void **state) {
	(void)state;
	const double x[] = {1000, 1001, 1010}, y[] = {3, NAN, 2};
	struct line_chart c = empty_chart(false);
	c.width = 900;
	c.x_tight = true;
	c.tell = tell_point;
	c.of = "point";
	c.series[c.n_series++] = (struct chart_series){.label = "", .x = x, .y = y, .n = 3};
	char *svg = lines_of(&c);
	assert_non_null(strstr(svg, "viewBox=\"0 0 900 290\""));
	assert_non_null(strstr(svg, "points=\"40.0,"));
	assert_non_null(strstr(svg, " 884.0,"));
	assert_non_null(strstr(svg, "<title>point 0</title>"));
	assert_null(strstr(svg, "point 1<"));
	assert_null(strstr(svg, "class=\"label\""));
	free(svg);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_linear_axis),
		cmocka_unit_test(test_log_axis),
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_values_are_ticks),
		cmocka_unit_test(test_nothing_to_show),
		cmocka_unit_test(test_long_names_are_cut_between_characters),
		cmocka_unit_test(test_labels_do_not_overlap),
		cmocka_unit_test(test_texts_of_ticks_do_not_overlap),
		cmocka_unit_test(test_bars),
		cmocka_unit_test(test_error_bars),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_a_line_without_a_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
