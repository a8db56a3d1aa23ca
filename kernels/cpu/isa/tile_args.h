/* tile_args.h: what a tile multiplies. */
#ifndef RV_KERNELS_CPU_ISA_TILE_ARGS_H
#define RV_KERNELS_CPU_ISA_TILE_ARGS_H

#include <stdbool.h>
#include <stddef.h>

/* Operands of a tile: where each starts and how far apart its rows (and columns) are. */
struct tile_args {
	const float *a;
	ptrdiff_t a_i, a_k;
	const float *b; /* (k, nv * VL), rows b_k apart */
	ptrdiff_t b_k;
	float *c; /* (mr, nv * VL), rows c_i apart */
	ptrdiff_t c_i;
	int k;
	bool add;           /* C += A B, else C = A B */
	const float *ahead; /* to prefetch, see struct tiles_ahead; NULL: nothing */
	ptrdiff_t ahead_word, ahead_element;
};

#endif
