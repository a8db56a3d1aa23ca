/* palette.h: a colour for each method, the same in every figure of a page, whatever else is on it.
 *
 * The colour is the method's (of data-parallel training with one worker a colour of its own: that
 * is plain training); lines of one method differ in variants of it: lighter, darker, dashed. */
#ifndef RV_LAB_REPORT_PALETTE_H
#define RV_LAB_REPORT_PALETTE_H

#include "base/chart/chart.h"
#include "lab/report/report.h"

#include <stdint.h>
#include <stdio.h>

struct palette_hue {
	const char *method;
	uint32_t light, dark; /* 0xRRGGBB, on a white and on a dark page */
};
/* The hues, ended by the one with method NULL, which is for all other methods. */
extern const struct palette_hue palette_hues[];

/* Returns the index in palette_hues of a method's hue. */
int palette_hue_of(const char *method, uint32_t workers);
/* Returns one of the hue's colours: 0 as in the table, 1 nearer to the text's colour, 2 nearer to
 * the page's. */
uint32_t palette_shade(int hue, int shade, bool dark);
/* Defines --h0-0, --h0-1, ... for light and dark pages. */
void palette_print_css(FILE *out);

/* Returns the paint of configuration `group`, or of its series: among lines of a hue the variants
 * follow their names. */
struct chart_paint palette_paint(const struct lab_report *p, int group, bool series);

#endif
