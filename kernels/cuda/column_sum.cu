// column_sum.cu: sums over rows, in two steps of fixed shape: slabs of rows to partial sums,
// partial sums to the result. Each element is read once; partial sums are column_sum_slabs() rows
// more.
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/launch.h"

enum {
	COLUMN_WARPS = 8,
	REDUCE_WARPS = 32 // few blocks: a column's rows are read by as many warps as there may be
};

// Sums block (columns, slab): warp w takes rows w, w + COLUMN_WARPS, ... of the slab; the warps'
// sums are added in order.
template <class T, int V>
__global__ void __launch_bounds__(WARP *COLUMN_WARPS) column_sum_kernel(float *partial, const T *x, int n, int c) {
	SHMEM(float, sums, COLUMN_WARPS *WARP *V);
	int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
	int column = ((int)blockIdx.x * WARP + lane) * V;
	int slab = (n + (int)gridDim.y - 1) / (int)gridDim.y, begin = (int)blockIdx.y * slab;
	int end = min(n, begin + slab);
	float sum[V] = {};
	if (column < c)
		for (int row = begin + warp; row < end; row += COLUMN_WARPS) {
			float value[V];
			load<V>(value, x + (size_t)row * c + column);
#pragma unroll
			for (int j = 0; j < V; j++)
				sum[j] += value[j];
		}
#pragma unroll
	for (int j = 0; j < V; j++)
		sums[(j * COLUMN_WARPS + warp) * WARP + lane] = sum[j];
	__syncthreads();
	if (warp || column >= c)
		return;
#pragma unroll
	for (int j = 0; j < V; j++) {
		sum[j] = 0;
		for (int w = 0; w < COLUMN_WARPS; w++)
			sum[j] += sums[(j * COLUMN_WARPS + w) * WARP + lane];
	}
	store<V>(partial + (size_t)blockIdx.y * c + column, sum);
}

// Sums 32 columns of result y in block (x, y); warp w adds rows w, w + REDUCE_WARPS, ...
__global__ void __launch_bounds__(WARP *REDUCE_WARPS)
	reduce_partials_kernel(float *sums, float *second, const float *partial, int rows, int columns, int ld) {
	SHMEM(float, totals, REDUCE_WARPS *WARP);
	int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP, column = (int)blockIdx.x * WARP + lane;
	float sum = 0;
	if (blockIdx.y) {
		sums = second;
		partial += columns;
	}
	if (column < columns)
#pragma unroll 8 // as many loads are on their way
		for (int row = warp; row < rows; row += REDUCE_WARPS)
			sum += partial[(size_t)row * ld + column];
	totals[warp * WARP + lane] = sum;
	__syncthreads();
	if (warp || column >= columns)
		return;
	float total = 0;
	for (int w = 0; w < REDUCE_WARPS; w++)
		total += totals[w * WARP + lane];
	sums[column] += total;
}

extern "C" void launch_reduce_partials(cudaStream_t stream, float *sums, float *second, const float *partial, int rows,
									   int columns, int ld) {
	dim3 grid(blocks_for((size_t)columns, WARP), second ? 2 : 1);
	LAUNCH(reduce_partials_kernel, grid, WARP * REDUCE_WARPS, 0, stream, sums, second, partial, rows, columns, ld);
}

extern "C" void launch_column_sum(cudaStream_t stream, enum dtype act, float *sums, const act_t *x, float *partial,
								  int n, int c) {
	dispatch(
		act, c,
		[=](auto a) {
			typedef typename decltype(a)::T T;
			constexpr int V = decltype(a)::V;
			dim3 grid(blocks_for((size_t)c, WARP * V), (unsigned)column_sum_slabs(n));
			LAUNCH((column_sum_kernel<T, V>), grid, WARP * COLUMN_WARPS, 0, stream, partial, as<T>(x), n, c);
		},
		x, partial);
	launch_reduce_partials(stream, sums, nullptr, partial, column_sum_slabs(n), c, c);
}
