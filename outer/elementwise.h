/* elementwise.h: one loop body, compiled for each instruction set. Private to outer/.
 *
 * The body is written once with the compiler's vector type of 16 floats: one register in AVX-512, two in AVX2, four in
 * SSE2. Elementwise IEEE operations without contraction give the same bits in all of them. */
#ifndef RV_OUTER_ELEMENTWISE_H
#define RV_OUTER_ELEMENTWISE_H

#include <stddef.h>

enum { VEC_LANES = 16 };

typedef float vec __attribute__((vector_size(VEC_LANES * 4)));
typedef float vec_unaligned __attribute__((vector_size(VEC_LANES * 4), aligned(4), may_alias));

#define VEC_AT(p) (*(vec_unaligned *)(p))

/* RV_ELEMENTWISE(NAME, PARAMS, ARGS) defines NAME PARAMS, which calls the always-inline NAME##_body PARAMS compiled for
 * the best instruction set of this processor. */
#define RV_ELEMENTWISE_BODY static inline __attribute__((always_inline)) void
#ifdef __x86_64__
#define RV_ELEMENTWISE(name, params, args)                                                                             \
	__attribute__((target("avx512f"))) static void name##_avx512 params {                                              \
		name##_body args;                                                                                              \
	}                                                                                                                  \
	__attribute__((target("avx2"))) static void name##_avx2 params {                                                   \
		name##_body args;                                                                                              \
	}                                                                                                                  \
	static void name params {                                                                                          \
		if (__builtin_cpu_supports("avx512f"))                                                                         \
			name##_avx512 args;                                                                                        \
		else if (__builtin_cpu_supports("avx2"))                                                                       \
			name##_avx2 args;                                                                                          \
		else                                                                                                           \
			name##_body args;                                                                                          \
	}
#else
#define RV_ELEMENTWISE(name, params, args)                                                                             \
	static void name params {                                                                                          \
		name##_body args;                                                                                              \
	}
#endif

#endif
