/* likeness.c: see likeness.h. */
#include "outer/likeness.h"

#include <math.h>

struct likeness likeness_of(const float *a, const float *b, size_t n) {
	double aa = 0, bb = 0, ab = 0;
	for (size_t i = 0; i < n; i++) {
		aa += (double)a[i] * (double)a[i];
		bb += (double)b[i] * (double)b[i];
		ab += (double)a[i] * (double)b[i];
	}
	return (struct likeness){.cosine = aa > 0 && bb > 0 ? ab / (sqrt(aa) * sqrt(bb)) : 0,
							 .norm_ratio = bb > 0 ? sqrt(aa / bb) : 0};
}
