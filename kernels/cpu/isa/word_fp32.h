/* word_fp32.h: the operands of products are fp32: a word is one element. See pack.h. */
#include "kernels/cpu/isa/vec.h"

enum { K_PER_WORD = 1 };

RV_ALWAYS_INLINE vf word_lanes(const vf v[K_PER_WORD]) {
	return v[0];
}

RV_ALWAYS_INLINE vf word_rows(const vf v[K_PER_WORD]) {
	return v[0];
}
