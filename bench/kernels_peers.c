/* kernels_peers.c: see kernels_peers.h. */
#include "bench/kernels_peers.h"

#include "base/os_cpus.h"

#include <omp.h>
#include <stdint.h>

#ifdef RV_HAVE_ONEDNN
#include <dnnl.h>
#endif

#if defined(__x86_64__)
#include <immintrin.h>

/* Twelve chains hide the latency of the unit; the asm keeps the compiler from folding them. */
#define CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

__attribute__((target("avx512f"))) static void fma512(long rounds) {
	__m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(1e-3f);
#define DECLARE(i) __m512 c##i = _mm512_set1_ps(i);
#define STEP(i)    __asm__ volatile("vfmadd213ps %2, %1, %0" : "+v"(c##i) : "v"(a), "v"(b));
	CHAINS(DECLARE)
	for (long r = 0; r < rounds; r++) {
		CHAINS(STEP)
	}
#undef DECLARE
#undef STEP
}

__attribute__((target("avx512f,avx512bf16"))) static void dot512(long rounds) {
	__m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(1e-3f);
#define DECLARE(i) __m512 c##i = _mm512_set1_ps(i);
#define STEP(i)    __asm__ volatile("vdpbf16ps %2, %1, %0" : "+v"(c##i) : "v"(a), "v"(b));
	CHAINS(DECLARE)
	for (long r = 0; r < rounds; r++) {
		CHAINS(STEP)
	}
#undef DECLARE
#undef STEP
}

/* Four sums, as in our product; gcc 10 has no intrinsics of tiles. */
static void tiles(long rounds) {
	struct {
		uint8_t palette, start_row, reserved[14];
		uint16_t row_bytes[16];
		uint8_t rows[16];
	} c = {.palette = 1};
	for (int i = 0; i < 8; i++) {
		c.row_bytes[i] = 64;
		c.rows[i] = 16;
	}
	__asm__ volatile("ldtilecfg %0" : : "m"(c));
	for (long r = 0; r < rounds; r++)
		__asm__ volatile("tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n\t"
						 "tdpbf16ps %%tmm7, %%tmm4, %%tmm1\n\t"
						 "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\n\t"
						 "tdpbf16ps %%tmm7, %%tmm5, %%tmm3" ::);
	__asm__ volatile("tilerelease" ::);
}

__attribute__((target("avx2,fma"))) static void fma256(long rounds) {
	__m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(1e-3f);
#define DECLARE(i) __m256 c##i = _mm256_set1_ps(i);
#define STEP(i)    __asm__ volatile("vfmadd213ps %2, %1, %0" : "+x"(c##i) : "x"(a), "x"(b));
	CHAINS(DECLARE)
	for (long r = 0; r < rounds; r++) {
		CHAINS(STEP)
	}
#undef DECLARE
#undef STEP
}
#endif

double peer_multiply_adds(int threads, long rounds) {
#if defined(__x86_64__)
	bool wide = __builtin_cpu_supports("avx512f"), narrow = __builtin_cpu_supports("fma");
	if (!wide && !narrow)
		return 0;
#pragma omp parallel num_threads(threads)
	{
		if (wide)
			fma512(rounds);
		else
			fma256(rounds);
	}
	return (double)rounds * threads * 12 * 2 * (wide ? 16 : 8);
#else
	(void)threads;
	(void)rounds;
	return 0;
#endif
}

double peer_bf16_dots(int threads, long rounds) {
#if defined(__x86_64__)
	enum { TILE_FLOP = 2 * 16 * 16 * 32 };
	if (os_cpus_allow_amx()) {
#pragma omp parallel num_threads(threads)
		tiles(rounds);
		return (double)rounds * threads * 4 * TILE_FLOP;
	}
	if (__builtin_cpu_supports("avx512bf16")) {
#pragma omp parallel num_threads(threads)
		dot512(rounds);
		return (double)rounds * threads * 12 * 4 * 16;
	}
#endif
	return peer_multiply_adds(threads, rounds);
}

void peer_triad(int threads, float *a, const float *b, const float *c, size_t n) {
#pragma omp parallel for simd schedule(static) num_threads(threads)
	for (size_t i = 0; i < n; i++)
		a[i] = b[i] + 3 * c[i];
}

double peer_read(int threads, const float *a, size_t n) {
	double total = 0;
#pragma omp parallel for simd schedule(static) num_threads(threads) reduction(+ : total)
	for (size_t i = 0; i < n; i++)
		total += (double)a[i];
	return total;
}

bool peer_product(int threads, bool ta, bool tb, int m, int n, int k, const float *a, const float *b, bool add,
				  float *c) {
#ifdef RV_HAVE_ONEDNN
	omp_set_num_threads(threads);
	return dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1, a, ta ? m : k, b, tb ? k : n, add ? 1 : 0, c, n) ==
		   dnnl_success;
#else
	(void)threads, (void)ta, (void)tb, (void)m, (void)n, (void)k, (void)a, (void)b, (void)add, (void)c;
	return false;
#endif
}
