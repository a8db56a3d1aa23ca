/* elementwise.h: one loop, compiled for each instruction set. Private to outer/.
 *
 * The body is a plain loop that the compiler vectorizes (outer/CMakeLists.txt sets -O3).
 * Elementwise IEEE operations without contraction give the same bits in all sets. */
#ifndef RV_OUTER_ELEMENTWISE_H
#define RV_OUTER_ELEMENTWISE_H

#include <stddef.h>

/* Defines NAME PARAMS, which calls the always-inline NAME##_body PARAMS compiled for the best
 * instruction set of this processor. */
#define RV_ELEMENTWISE_BODY static inline __attribute__((always_inline)) void
#ifdef __x86_64__
#define RV_TARGET_AVX512 __attribute__((target("avx512f,avx512bw")))
#define RV_TARGET_AVX2   __attribute__((target("avx2")))
#define RV_HAS_AVX512()  (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"))
#define RV_ELEMENTWISE(name, params, args)                                                                             \
	RV_TARGET_AVX512 static void name##_avx512 params {                                                                \
		name##_body args;                                                                                              \
	}                                                                                                                  \
	RV_TARGET_AVX2 static void name##_avx2 params {                                                                    \
		name##_body args;                                                                                              \
	}                                                                                                                  \
	static void name params {                                                                                          \
		if (RV_HAS_AVX512())                                                                                           \
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
