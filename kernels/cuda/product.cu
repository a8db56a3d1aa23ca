// product.cu: a plain tiled matrix product, where cuBLASLt has none and tensor cores
// (product_mma.cu) do not fit: fp32, and operands of odd sizes.
//
// A block makes a tile of d, TILE x TILE, of which each thread has 4 x 4: rows and columns 16
// apart, so that a warp writes 16 neighbours twice and reads shared memory without conflicts. Both
// operands come as DEPTH x TILE slices, as floats in shared memory, whatever their type, layout and
// alignment; beyond their ends they are 0. Threads read along whichever dimension is contiguous.
// Per slice a thread does 256 multiply-adds for 128 reads of shared memory.
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/launch_epilogue.h"
#include "kernels/cuda/launch_product.h"

enum { TILE = 64, DEPTH = 16, SIDE = 16, EACH = TILE / SIDE, PRODUCT_THREADS = SIDE * SIDE, TILE_ROW = TILE + 1 };

// op(x) as (outer, k): element (o, k) is at[o * outer_stride + k * k_stride]; one of the strides is
// 1.
template <class T> struct operand {
	const T *at;
	size_t outer, k, outer_stride, k_stride;
};

template <class In, class Out> struct product {
	operand<In> a, b;
	Out *d;
	size_t ldd;
	bool accumulate;
};

// Loads tile[k][o] = x (first + o, first_k + k).
template <class T>
static __device__ __forceinline__ void load_slice(shared_t<float> tile, const operand<T> &x, size_t first,
												  size_t first_k) {
	const bool along_k = x.k_stride == 1;
#pragma unroll
	for (int i = 0; i < DEPTH * TILE / PRODUCT_THREADS; i++) {
		int e = i * PRODUCT_THREADS + (int)threadIdx.x;
		int o = along_k ? e / DEPTH : e % TILE, k = along_k ? e % DEPTH : e / TILE;
		bool inside = first + o < x.outer && first_k + k < x.k;
		tile[k * TILE_ROW + o] =
			inside ? to_float(x.at[(first + o) * x.outer_stride + (first_k + k) * x.k_stride]) : 0.0f;
	}
}

static __device__ __forceinline__ void multiply_slice(float (&sum)[EACH][EACH], shared_t<float> a, shared_t<float> b,
													  int row, int column) {
#pragma unroll
	for (int k = 0; k < DEPTH; k++) {
		float x[EACH], y[EACH];
#pragma unroll
		for (int i = 0; i < EACH; i++) {
			x[i] = a[k * TILE_ROW + row + i * SIDE];
			y[i] = b[k * TILE_ROW + column + i * SIDE];
		}
#pragma unroll
		for (int i = 0; i < EACH; i++)
#pragma unroll
			for (int j = 0; j < EACH; j++)
				sum[i][j] += x[i] * y[j];
	}
}

template <class In, class Out>
__global__ void __launch_bounds__(PRODUCT_THREADS) product_kernel(struct product<In, Out> p, size_t tiles_across) {
	SHMEM(float, a, DEPTH *TILE_ROW);
	SHMEM(float, b, DEPTH *TILE_ROW);
	const size_t first_row = blockIdx.x / tiles_across * TILE, first_column = blockIdx.x % tiles_across * TILE;
	const int row = (int)threadIdx.x / SIDE, column = (int)threadIdx.x % SIDE;
	float sum[EACH][EACH] = {};
	for (size_t k = 0; k < p.a.k; k += DEPTH) {
		load_slice(a, p.a, first_row, k);
		load_slice(b, p.b, first_column, k);
		__syncthreads();
		multiply_slice(sum, a, b, row, column);
		__syncthreads();
	}
#pragma unroll
	for (int i = 0; i < EACH; i++)
#pragma unroll
		for (int j = 0; j < EACH; j++) {
			size_t m = first_row + row + i * SIDE, n = first_column + column + j * SIDE;
			if (m >= p.a.outer || n >= p.b.outer)
				continue;
			Out *at = p.d + m * p.ldd + n;
			*at = from_float<Out>(p.accumulate ? to_float(*at) + sum[i][j] : sum[i][j]);
		}
}

template <class In, class Out> static void launch_typed(cudaStream_t stream, const struct gemm_call *c, void *d) {
	const size_t m = (size_t)c->m, n = (size_t)c->n, k = (size_t)c->k, lda = (size_t)c->lda, ldb = (size_t)c->ldb;
	const struct product<In, Out> p = {
		{static_cast<const In *>(c->a), m, k, c->a_transposed ? 1 : lda, c->a_transposed ? lda : 1},
			{static_cast<const In *>(c->b), n, k, c->b_transposed ? ldb : 1, c->b_transposed ? 1 : ldb},
			static_cast<Out *>(d), (size_t)c->ldd, c->accumulate
	};
	const size_t tiles_across = blocks_for(n, TILE);
	LAUNCH((product_kernel<In, Out>), (unsigned)(tiles_across * blocks_for(m, TILE)), PRODUCT_THREADS, 0, stream, p,
		   tiles_across);
}

extern "C" void launch_product(cudaStream_t stream, const struct gemm_call *c) {
	if (launch_product_mma_fits(c)) {
		launch_product_mma(stream, c);
		return;
	}
	void *d = c->epilogue == GEMM_GELU ? c->aux : c->d;
	if (c->in == DTYPE_F32)
		launch_typed<float, float>(stream, c, d);
	else if (c->out == DTYPE_F32)
		launch_typed<bf16, float>(stream, c, d);
	else
		launch_typed<bf16, bf16>(stream, c, d);
	if (c->epilogue != GEMM_PLAIN)
		launch_epilogue(stream, c);
}
