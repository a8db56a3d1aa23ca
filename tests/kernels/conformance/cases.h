/* cases.h: the operations of kernels/backend.h, each over sizes that are awkward for vectors, warps
 * and tiles. */
#ifndef RV_TESTS_KERNELS_CASES_H
#define RV_TESTS_KERNELS_CASES_H

#include "tests/kernels/conformance/duo.h"

/* An operation, or those that share a file: run(d, i) checks size i of [0, sizes + large). */
struct conformance_case {
	const char *name;
	int sizes;
	void (*run)(struct duo *d, int size);
	int light; /* the first so many sizes are quick even where every thread is a fiber under a sanitizer */
	int large; /* as many sizes behind `sizes` are those of GPT-2: for a device, against `cpu` instead of `ref` */
};

/* Ends with a case without a name. */
extern const struct conformance_case cases_norm[], cases_pointwise[], cases_embed[], cases_linear[], cases_attention[],
	cases_head[], cases_optimizer[];

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
/* Runs what follows with `s` set to each side in turn; the backend's time counts as the operation
 * `name`. */
#define ON_BOTH(d, s, name) for (struct duo_side s = duo_first((d), (name)); s.be; duo_next(&s))

#endif
