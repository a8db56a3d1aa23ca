/* buggy.h: kernels with one bug each, and the same without it, to see that the emulator finds every
 * kind. */
#ifndef RV_TESTS_KERNELS_EMU_BUGGY_H
#define RV_TESTS_KERNELS_EMU_BUGGY_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each runs a kernel, or a few calls of the runtime, right or with its bug, and returns whether the
 * result is right. What the emulator finds by itself ends the process. */
struct buggy {
	const char *name;
	bool (*run)(bool planted);
	const char *found; /* in the emulator's text; NULL: the result is wrong instead */
	bool lazy_streams; /* shows only there */
	bool sanitizer;    /* found by AddressSanitizer only */
};

/* Ends with one without a name. */
extern const struct buggy buggy_kernels[];

#ifdef __cplusplus
}
#endif
#endif
