/* short_number.c: see short_number.h. */
#include "base/short_number.h"

#include <stdio.h>
#include <string.h>

const char *rv_short_number(double v, char out[RV_SHORT_NUMBER_BYTES]) {
	static const char prefixes[] = " kMGTP";
	int u = 0;
	while (v >= 999.5 && prefixes[u + 1] != '\0') {
		v /= 1000;
		u++;
	}
	const int decimals = u == 0 || v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2;
	(void)snprintf(out, RV_SHORT_NUMBER_BYTES, "%.*f %c", decimals, v, prefixes[u]);
	if (u == 0)
		out[strcspn(out, " ")] = '\0';
	return out;
}
