/* cases.h: the operations of kernels/backend.h, each over sizes that are awkward for vectors, warps and tiles. */
#ifndef RV_TESTS_KERNELS_CASES_H
#define RV_TESTS_KERNELS_CASES_H

#include "tests/kernels/conformance/duo.h"

/* An operation, or those that share a file: run(d, i) checks size i of `sizes`. */
struct conformance_case {
	const char *name;
	int sizes;
	void (*run)(struct duo *d, int size);
	int light; /* of the sizes, the first so many are quick even where every thread is a fiber under a sanitizer */
};

/* Ends with a case without a name. */
extern const struct conformance_case cases_norm[], cases_pointwise[], cases_embed[], cases_linear[], cases_attention[],
	cases_head[], cases_optimizer[];

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
/* Runs `call` with `s` set to each side in turn. */
#define ON_BOTH(d, s) for (struct duo_side s = {(d), (d)->ref}; s.be; s.be = s.be == (d)->ref ? (d)->be : NULL)

#endif
