/* axis.c: round ticks: 1, 2, 5 times a power of ten; on a log axis the powers of ten, with 2 and 5
 * when they are few. */
#include "base/chart/axis.h"

#include <math.h>
#include <string.h>

static double round_step(double span, int wanted) {
	double raw = span / wanted, power = pow(10, floor(log10(raw))), lead = raw / power;
	return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

static void linear_ticks(struct axis *a, double low, double high, int wanted) {
	double step = round_step(high - low, wanted);
	double first = floor(low / step + 1e-9);
	a->low = first * step;
	a->high = ceil(high / step - 1e-9) * step;
	for (int i = 0; i < AXIS_MAX_TICKS && (first + i) * step <= a->high + step / 2; i++)
		a->ticks[a->n_ticks++] = (first + i) * step;
}

static void log_ticks(struct axis *a, double low, double high) {
	double decades = log10(high / low);
	a->low = low;
	a->high = high;
	int every = (int)ceil(decades / (AXIS_MAX_TICKS - 2));
	for (int k = (int)floor(log10(low)); k <= (int)ceil(log10(high)); k += every > 0 ? every : 1)
		for (int lead = 1; lead <= 5; lead = lead == 1 ? 2 : lead + 3) {
			double v = lead * pow(10, k);
			bool shown = lead == 1 || decades < 2.5;
			if (shown && v >= low * 0.999 && v <= high * 1.001 && a->n_ticks < AXIS_MAX_TICKS)
				a->ticks[a->n_ticks++] = v;
		}
}

struct axis axis_of(double data_low, double data_high, bool log, int wanted, double begin, double end) {
	struct axis a = {.begin = begin, .end = end, .log = log};
	if (log) {
		double margin = data_high > data_low ? 1.05 : 2;
		log_ticks(&a, data_low / margin, data_high * margin);
		return a;
	}
	if (!(data_high > data_low)) {
		double half = fabs(data_low) > 0 ? fabs(data_low) / 2 : 1;
		data_low -= half;
		data_high += half;
	}
	linear_ticks(&a, data_low, data_high, wanted);
	return a;
}

bool axis_has_room(double x, const char *text, double *end) {
	enum { CHAR_HALF = 4, GAP = 6 }; /* of digits at 12 px, in a wide font */
	const double half = CHAR_HALF * (double)strlen(text);
	const bool has_room = x - half >= *end + GAP;
	if (has_room)
		*end = x + half;
	return has_room;
}

double axis_at(const struct axis *a, double v) {
	double share = a->log ? log(v / a->low) / log(a->high / a->low) : (v - a->low) / (a->high - a->low);
	return a->begin + share * (a->end - a->begin);
}
