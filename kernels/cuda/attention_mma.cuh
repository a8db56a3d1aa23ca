// attention_mma.cuh: shared by the tensor-core attention kernels: tiles in shared memory, and
// products of them.
//
// A block has MMA_WARPS warps, each of which owns 16 of the 64 rows of a tile. A tile of `head_dim`
// columns has rows that are 16 bytes longer, so that the 8 rows of an ldmatrix lie in different
// banks. Accumulators are those of mma_bf16: of 16 rows x 8 columns, lane 4 g + q has columns 2 q
// and 2 q + 1 of row g in [0], [1] and of row g + 8 in [2], [3].
//
// At head size 128 not all passes of the loops that copy and multiply are unrolled: NVRTC 12 would
// make the addresses, or load the operands, of all of them first, and keep sums in local memory to
// have registers for them.
#ifndef RV_CUDA_ATTENTION_MMA_CUH
#define RV_CUDA_ATTENTION_MMA_CUH

#include "kernels/cuda/attention_layout.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/vec.cuh"

enum { MMA_WARPS = 4, MMA_THREADS = MMA_WARPS * WARP, TILE_ROWS = 64, WARP_ROWS = 16 };

static const float LOG2_E = 1.44269504088896340736f, LN_2 = 0.69314718055994530942f;

template <int HD> constexpr int tile_stride = HD + 8;
template <int HD> constexpr int tile_elements = TILE_ROWS *tile_stride<HD>;

// Starts copying ROWS rows, from `first` on, into a tile; rows from `end` on are zeroes. Called by
// all threads of the block.
template <int HD, int ROWS>
__device__ __forceinline__ void load_tile(shared_t<bf16> tile, const bf16 *base, size_t ld, int first, int end) {
	constexpr int pieces = HD / 8;
#pragma unroll(HD == 128 && ROWS < TILE_ROWS ? 1 : ROWS * pieces / MMA_THREADS)
	for (int i = 0; i < ROWS * pieces / MMA_THREADS; i++) {
		int piece = i * MMA_THREADS + (int)threadIdx.x, row = piece / pieces, column = piece % pieces * 8;
		const bf16 *from = first + row < end ? base + (size_t)(first + row) * ld + column : nullptr;
		cp_async16(tile + (row * tile_stride<HD> + column), from);
	}
}

// Loads rows row .. row + 15, columns column .. column + 15 of a tile, as the left operand.
template <int HD> __device__ __forceinline__ void load_left(uint32_t a[4], shared_t<bf16> tile, int row, int column) {
	int lane = (int)threadIdx.x % WARP;
	ldmatrix_x4(a, tile + ((row + lane % 16) * tile_stride<HD> + column + lane / 16 * 8));
}

// Adds to acc (16, 8 N) a tile's rows `row` on times the transposed rows of `right` (8 N of them),
// over all HD columns.
template <int HD, int N>
__device__ __forceinline__ void multiply_transposed(float (&acc)[N][4], shared_t<bf16> left, int row,
													shared_t<bf16> right) {
	int lane = (int)threadIdx.x % WARP;
#pragma unroll(HD == 128 ? 4 : HD / 16)
	for (int k = 0; k < HD; k += 16) {
		uint32_t a[4], b[4];
		load_left<HD>(a, left, row, k);
#pragma unroll
		for (int n = 0; n < N; n += 2) {
			ldmatrix_x4(b, right + ((n * 8 + lane % 8 + lane / 16 * 8) * tile_stride<HD> + k + lane / 8 % 2 * 8));
			mma_bf16(acc[n], a, b);
			mma_bf16(acc[n + 1], a, b + 2);
		}
	}
}

__device__ __forceinline__ uint32_t pack(float low, float high) {
	bf16 pair[2] = {from_float<bf16>(low), from_float<bf16>(high)};
	uint32_t bits;
	memcpy(&bits, pair, sizeof bits);
	return bits;
}

// Adds to acc (16, HD) left (16, 8 N) right (8 N, HD): left is in accumulators and is rounded to
// bf16, right is a tile.
template <int HD, int N>
__device__ __forceinline__ void multiply_accumulators(float (&acc)[HD / 8][4], const float (&left)[N][4],
													  shared_t<bf16> right) {
	int lane = (int)threadIdx.x % WARP;
#pragma unroll
	for (int k = 0; k < N; k += 2) {
		uint32_t a[4] = {pack(left[k][0], left[k][1]), pack(left[k][2], left[k][3]),
						 pack(left[k + 1][0], left[k + 1][1]), pack(left[k + 1][2], left[k + 1][3])};
#pragma unroll
		for (int n = 0; n < HD / 8; n += 2) {
			uint32_t b[4];
			ldmatrix_x4_transposed(b, right + ((k * 8 + lane % 16) * tile_stride<HD> + n * 8 + lane / 16 * 8));
			mma_bf16(acc[n], a, b);
			mma_bf16(acc[n + 1], a, b + 2);
		}
	}
}

// Writes the accumulators of 16 rows as bf16, times the row's factor: rows[0] is the address of row
// g, rows[1] that of row g + 8; NULL: not written.
template <int HD>
__device__ __forceinline__ void store_accumulators(bf16 *const (&rows)[2], const float (&acc)[HD / 8][4],
												   const float (&factor)[2]) {
	int column = (int)threadIdx.x % 4 * 2;
#pragma unroll
	for (int half = 0; half < 2; half++)
#pragma unroll
		for (int n = 0; n < HD / 8; n++)
			if (rows[half]) {
				uint32_t pair = pack(acc[n][half * 2] * factor[half], acc[n][half * 2 + 1] * factor[half]);
				*reinterpret_cast<uint32_t *>(rows[half] + n * 8 + column) = pair;
			}
}

// Calls f(HD) for a supported head dimension.
template <int HD> struct head_dim_of { static constexpr int value = HD; };

template <class F> inline void by_mma_head_dim(int head_dim, F f) {
	if (head_dim == 32)
		f(head_dim_of<32>());
	else if (head_dim == 64)
		f(head_dim_of<64>());
	else
		f(head_dim_of<128>());
}

#endif
