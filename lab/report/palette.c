/* palette.c: see palette.h. */
#include "lab/report/palette.h"

#include "lab/methods/methods.h"

#include <string.h>

/* Any two are at least 25 apart in CIELAB, on either page; contrast to the page is at least 3 (WCAG
 * 2.1, 1.4.11). */
#define LAB_METHOD(name, light, dark, about) {#name, light, dark},
const struct palette_hue palette_hues[] = {
#include "lab/methods/methods.def"
	{"one worker", 0x57606a, 0x9ea7b3},
	{NULL, 0x1c2128, 0xe6edf3},
};
#undef LAB_METHOD

static const uint32_t text_colors[] = {0x1c2128, 0xe6edf3}, page_colors[] = {0xffffff, 0x0d1117};

int palette_hue_of(const char *method, uint32_t workers) {
	const struct lab_method *m = lab_method_find(method);
	const char *name = m && !m->averages && workers == 1 ? "one worker" : method;
	int i = 0;
	while (palette_hues[i].method && strcmp(palette_hues[i].method, name) != 0)
		i++;
	return i;
}

/* `percent` of the way from `from` to `to`. */
static uint32_t mix(uint32_t from, uint32_t to, int percent) {
	uint32_t out = 0;
	for (int shift = 0; shift <= 16; shift += 8) {
		const int a = (int)(from >> shift & 0xff), b = (int)(to >> shift & 0xff);
		out |= (uint32_t)(a + (b - a) * percent / 100) << shift;
	}
	return out;
}

uint32_t palette_shade(int hue, int shade, bool dark) {
	enum { TO_TEXT_PERCENT = 45, TO_PAGE_PERCENT = 40 };
	const uint32_t color = dark ? palette_hues[hue].dark : palette_hues[hue].light;
	return shade == 1   ? mix(color, text_colors[dark], TO_TEXT_PERCENT)
		   : shade == 2 ? mix(color, page_colors[dark], TO_PAGE_PERCENT)
						: color;
}

static void print_colors(bool dark, FILE *out) {
	(void)fputs(":root{", out);
	for (int hue = 0; hue == 0 || palette_hues[hue - 1].method; hue++)
		for (int shade = 0; shade < CHART_SHADES; shade++)
			(void)fprintf(out, "--h%d-%d:#%06x;", hue, shade, palette_shade(hue, shade, dark));
	(void)fputs("}\n", out);
}

void palette_print_css(FILE *out) {
	print_colors(false, out);
	(void)fputs("@media(prefers-color-scheme:dark){", out);
	print_colors(true, out);
	(void)fputs("}\n", out);
}

static int hue_of(const struct report_group *g) {
	const struct run_record *r = &g->runs[0].evals_of->record;
	return palette_hue_of(r->method, r->workers);
}

static bool is_first_of_series(const struct lab_report *p, int group) {
	for (int i = 0; i < group; i++)
		if (p->groups[i].series == p->groups[group].series)
			return false;
	return true;
}

/* Numbers in names by value: H=4 before H=16. */
static bool is_before(const struct lab_report *p, int a, int b, bool series) {
	const struct report_group *x = &p->groups[a], *y = &p->groups[b];
	const int order = strverscmp(series ? x->series_label : x->label, series ? y->series_label : y->label);
	return order != 0 ? order < 0 : a < b;
}

struct chart_paint palette_paint(const struct lab_report *p, int group, bool series) {
	struct chart_paint paint = {.hue = hue_of(&p->groups[group])};
	for (int i = 0; i < p->n_groups; i++) {
		const bool counts = hue_of(&p->groups[i]) == paint.hue && (!series || is_first_of_series(p, i));
		paint.variant += counts && i != group && is_before(p, i, group, series);
	}
	return paint;
}
