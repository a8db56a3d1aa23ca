/* kernels_peers.h: what the kernels are measured against: the machine's own limits, and oneDNN called directly. */
#ifndef RV_BENCH_KERNELS_PEERS_H
#define RV_BENCH_KERNELS_PEERS_H

#include <stdbool.h>
#include <stddef.h>

/* The work of every function is done on `threads` threads and finished when it returns. */

/* Independent fused multiply-adds in registers, of the widest vectors there are; returns the floating-point operations
 * done. 0: this machine has none we know. */
double peer_multiply_adds(int threads, long rounds);
/* The same with products of pairs of bf16 added in fp32 (AVX512_BF16); where there are none, as above. */
double peer_bf16_dots(int threads, long rounds);
/* a[i] = b[i] + 3 c[i]: 12 bytes per element. */
void peer_triad(int threads, float *a, const float *b, const float *c, size_t n);
/* Reads everything: 4 bytes per element. */
double peer_read(int threads, const float *a, size_t n);
/* C (m, n) = A B with oneDNN alone; false when this build has none. See struct gemm for ta, tb. */
bool peer_product(int threads, bool ta, bool tb, int m, int n, int k, const float *a, const float *b, bool add,
				  float *c);

#endif
