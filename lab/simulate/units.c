/* units.c: see units.h. */
#include "lab/simulate/units.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct suffix {
	const char *name;
	double scale;
};
static const struct suffix param_suffixes[] = {{"", 1},    {"k", 1e3},  {"m", 1e6}, {"b", 1e9},
											   {"g", 1e9}, {"t", 1e12}, {NULL, 0}};
static const struct suffix rate_suffixes[] = {{"bit", 1},    {"kbit", 1e3},  {"mbit", 1e6},
											  {"gbit", 1e9}, {"tbit", 1e12}, {NULL, 0}};

/* Reads a decimal number and one of the suffixes, in any case. */
static bool read_scaled(const char *text, const struct suffix *suffixes, double *out) {
	char *end;
	if (!isdigit((unsigned char)text[0]) && text[0] != '.')
		return false;
	double v = strtod(text, &end);
	size_t n = strlen(end), slash = n >= 2 && strcasecmp(end + n - 2, "/s") == 0 ? 2 : 0;
	for (const struct suffix *s = suffixes; s->name; s++)
		if (end > text && strlen(s->name) == n - slash && strncasecmp(end, s->name, n - slash) == 0) {
			*out = v * s->scale;
			return isfinite(*out);
		}
	return false;
}

enum rv_err simulate_read_params(const char *text, double *out, struct rv_errtext *et) {
	if (!read_scaled(text, param_suffixes, out))
		return rv_fail(et, RV_E_INVALID, "params = %s: must be a number such as 350K, 124M or 1.5B", text);
	return RV_OK;
}

enum rv_err simulate_read_rate(const char *text, double *out_bits_per_s, struct rv_errtext *et) {
	if (strcasecmp(text, "unlimited") == 0) {
		*out_bits_per_s = INFINITY;
		return RV_OK;
	}
	if (!read_scaled(text[0] ? text : "100mbit", rate_suffixes, out_bits_per_s))
		return rv_fail(et, RV_E_INVALID,
					   "rate = %s: must be a number with its unit, such as 500kbit, 20mbit or 1.5gbit, or unlimited",
					   text);
	return RV_OK;
}
