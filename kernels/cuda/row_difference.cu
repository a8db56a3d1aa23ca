// row_difference.cu: the distance of two matrices, row by row. Each element is read once; a warp
// takes a row.
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/reduce.cuh"

enum { DIFFERENCE_WARPS = 8 };

template <class T>
__global__ void __launch_bounds__(WARP *DIFFERENCE_WARPS)
	row_difference_kernel(float *sums, const T *x, const T *y, int rows, int width, int ld) {
	int lane = (int)threadIdx.x % WARP, row = (int)blockIdx.x * DIFFERENCE_WARPS + (int)threadIdx.x / WARP;
	float apart = 0, squares = 0;
	for (int i = lane; row < rows && i < width; i += WARP) {
		float a = to_float(x[(size_t)row * ld + i]), b = to_float(y[(size_t)row * ld + i]);
		apart += (a - b) * (a - b);
		squares += b * b;
	}
	apart = warp_sum(apart);
	squares = warp_sum(squares);
	if (row >= rows || lane)
		return;
	sums[2 * (size_t)row] = apart;
	sums[2 * (size_t)row + 1] = squares;
}

extern "C" void launch_row_difference(cudaStream_t stream, enum dtype type, float *sums, const void *x, const void *y,
									  int rows, int width, int ld) {
	unsigned blocks = blocks_for((size_t)rows, DIFFERENCE_WARPS);
	if (type == DTYPE_BF16)
		LAUNCH(row_difference_kernel<bf16>, blocks, WARP * DIFFERENCE_WARPS, 0, stream, sums,
			   static_cast<const bf16 *>(x), static_cast<const bf16 *>(y), rows, width, ld);
	else
		LAUNCH(row_difference_kernel<float>, blocks, WARP * DIFFERENCE_WARPS, 0, stream, sums,
			   static_cast<const float *>(x), static_cast<const float *>(y), rows, width, ld);
}
