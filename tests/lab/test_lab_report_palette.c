/* Colours stay with a method: over the figures of a page, when runs are added, in whatever order
 * they are found; and they can be told apart on a light and on a dark page. */
#include "lab/methods/methods.h"
#include "tests/lab/lab_fixture.h"

#include "lab/report/figures.h"
#include "lab/report/palette.h"
#include "tests/lab/report_fixture.h"

#include <math.h>
#include <string.h>

static int n_hues(void) {
	int n = 1;
	while (palette_hues[n - 1].method)
		n++;
	return n;
}

/* sRGB, IEC 61966-2-1. */
static void linear(uint32_t color, double out[3]) {
	for (int i = 0; i < 3; i++) {
		const double c = (color >> (16 - 8 * i) & 0xff) / 255.0;
		out[i] = c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
	}
}

static double luminance(uint32_t color) {
	double c[3];
	linear(color, c);
	return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
}

static double contrast(uint32_t a, uint32_t b) { /* WCAG 2.1 */
	const double x = luminance(a), y = luminance(b);
	return (fmax(x, y) + 0.05) / (fmin(x, y) + 0.05);
}

static double lab_f(double t) {
	return t > 0.008856 ? cbrt(t) : 7.787 * t + 16.0 / 116;
}

/* CIELAB, D65. */
static void lab_of(uint32_t color, double out[3]) {
	double c[3];
	linear(color, c);
	const double x = lab_f((0.4124 * c[0] + 0.3576 * c[1] + 0.1805 * c[2]) / 0.9505);
	const double y = lab_f(0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]);
	const double z = lab_f((0.0193 * c[0] + 0.1192 * c[1] + 0.9505 * c[2]) / 1.089);
	out[0] = 116 * y - 16;
	out[1] = 500 * (x - y);
	out[2] = 200 * (y - z);
}

static double distance(uint32_t a, uint32_t b) {
	double x[3], y[3], sum = 0;
	lab_of(a, x);
	lab_of(b, y);
	for (int i = 0; i < 3; i++)
		sum += (x[i] - y[i]) * (x[i] - y[i]);
	return sqrt(sum);
}

static void test_colors_can_be_told_apart(void **state) {
	(void)state;
	static const uint32_t pages[] = {0xffffff, 0x0d1117}; /* --bg of report_page.css */
	for (int dark = 0; dark <= 1; dark++)
		for (int a = 0; a < n_hues(); a++) {
			assert_true(contrast(palette_shade(a, 0, dark), pages[dark]) >= 3);
			assert_true(contrast(palette_shade(a, 1, dark), pages[dark]) >= 3);
			assert_true(contrast(palette_shade(a, 2, dark), pages[dark]) >= 1.7);
			for (int b = 0; b < a; b++)
				assert_true(distance(palette_shade(a, 0, dark), palette_shade(b, 0, dark)) >= 20);
		}
}

static void test_every_method_has_one(void **state) {
	(void)state;
	for (int i = 0; lab_methods[i]; i++)
		assert_true(palette_hue_of(lab_methods[i]->name, 4) < n_hues() - 1);
	assert_int_not_equal(palette_hue_of("ddp", 1), palette_hue_of("ddp", 2));
	assert_int_equal(palette_hue_of("a method of tomorrow", 4), n_hues() - 1);
}

/* Of every line and dot of a page: those of data-parallel training have its colour, those of DiLoCo
 * have theirs. */
static void check_figures(const struct lab_report *p) {
	struct report_figures f;
	const int ddp = palette_hue_of("ddp", 4), diloco = palette_hue_of("diloco", 4);
	assert_int_equal(report_figures_make(p, &f, NULL), RV_OK);
	assert_true(f.n_lines >= 4);
	for (int i = 0; i < f.n_lines; i++)
		for (int s = 0; s < f.lines[i].n_series; s++) {
			const struct chart_series *line = &f.lines[i].series[s];
			if (strncmp(line->label, "ddp", 3) == 0)
				assert_int_equal(line->paint.hue, ddp);
			if (strncmp(line->label, "diloco", 6) == 0)
				assert_int_equal(line->paint.hue, diloco);
			for (int t = 0; t < s; t++)
				assert_false(f.lines[i].series[t].paint.hue == line->paint.hue &&
							 f.lines[i].series[t].paint.variant == line->paint.variant);
		}
	for (int i = 0; i < f.dots.n_dots; i++)
		assert_int_equal(f.dots.dots[i].paint.hue, strncmp(f.dots.dots[i].label, "ddp", 3) == 0 ? ddp
												   : strncmp(f.dots.dots[i].label, "diloco", 6) == 0
													   ? diloco
													   : palette_hue_of("fedavg", 4));
	report_figures_release(&f);
}

static void test_colors_stay(void **state) {
	(void)state;
	char place[256];
	const char *paths[] = {place};
	struct lab_report p;
	scratch_make(place, sizeof place);
	report_fixture_sweep(place);
	assert_int_equal(report_collect(&p, paths, 1, &report_fixture_line, NULL), RV_OK);
	check_figures(&p);
	report_release(&p);
	report_fixture_cell(place, "00", "fedavg", 16, 1, "a name that comes first");
	assert_int_equal(report_collect(&p, paths, 1, &report_fixture_line, NULL), RV_OK);
	check_figures(&p);
	report_release(&p);
	scratch_remove(place);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_colors_can_be_told_apart),
		cmocka_unit_test(test_every_method_has_one),
		cmocka_unit_test(test_colors_stay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
