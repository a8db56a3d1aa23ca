/* kernels_peers.h: peers of the kernels: the machine's own limits, and oneDNN called directly. */
#ifndef RV_BENCH_KERNELS_PEERS_H
#define RV_BENCH_KERNELS_PEERS_H

#include <stdbool.h>
#include <stddef.h>

/* Every function uses `threads` threads and returns when the work is done. */

/* Does independent fused multiply-adds in registers, with the machine's widest vectors; returns the
 * floating-point operations done. 0: none known for this machine. */
double peer_multiply_adds(int threads, long rounds);
/* Does the same with products of pairs of bf16 added in fp32 (AMX, else AVX512_BF16); without
 * these, multiply-adds. */
double peer_bf16_dots(int threads, long rounds);
/* Computes a[i] = b[i] + 3 c[i]: 12 bytes per element. */
void peer_triad(int threads, float *a, const float *b, const float *c, size_t n);
/* Reads everything: 4 bytes per element. */
double peer_read(int threads, const float *a, size_t n);
/* Computes C (m, n) = A B with oneDNN alone; returns false in a build without it. See struct gemm
 * for ta, tb. */
bool peer_product(int threads, bool ta, bool tb, int m, int n, int k, const float *a, const float *b, bool add,
				  float *c);

#endif
