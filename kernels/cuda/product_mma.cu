// product_mma.cu: the product of bf16 matrices on tensor cores, with its epilogue, where cuBLASLt
// is missing or refuses.
//
// A block makes a tile of d, 128 x 128, by 8 warps of 64 x 32, in steps of 32 along k. The slices
// of both operands for the next STAGES - 1 steps are on their way to shared memory (cp.async)
// while one is multiplied (ldmatrix, mma), so that a step has one barrier. A slice lies in shared
// memory as it does in global memory: rows of 32 along k, or 32 rows along the other dimension;
// rows are 16 bytes longer, so that the 8 rows of an ldmatrix lie in different banks. Per step a
// warp does 64 products of 16 x 8 x 16 for 12 ldmatrix; per element of d the block reads 4 / 128
// bytes of each operand per unit of k. With GEMM_SUMS the blocks of the first column of tiles also
// add up the slices of a, in an order that the shape alone decides: a thread reads 8 words of them
// per step. The sums of products then go through shared memory, half a tile at a time, so that a
// warp writes 32 neighbours of a row. Blocks that run at the same time share rows of a and columns
// of b: 8 tiles of a column follow each other.
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/gelu.cuh"
#include "kernels/cuda/launch_product.h"
#include "kernels/cuda/ptx.cuh"

enum {
	STAGES = 3,
	TILE = 128,
	DEPTH = 32,
	WARPS_DOWN = 2,
	WARPS_ACROSS = 4,
	THREADS = WARPS_DOWN * WARPS_ACROSS * WARP,
	WARP_M = TILE / WARPS_DOWN,   // 64
	WARP_N = TILE / WARPS_ACROSS, // 32
	PIECE = 8,                    // elements of 16 bytes
	ALONG_K_ROW = DEPTH + PIECE,
	ACROSS_ROW = TILE + PIECE,
	SLICE = TILE * ALONG_K_ROW, // the larger: DEPTH * ACROSS_ROW is less
	SUM_ROW = TILE + 8,         // floats
	GROUP = 8,                  // tiles of a column that follow each other
	PAIRS = TILE / 2,           // of rows of op(a), which a thread sums
	PARTS = THREADS / PAIRS     // of a slice along k
};
static_assert(SLICE >= DEPTH * ACROSS_ROW, "a slice of either layout fits");
static_assert(DEPTH % PARTS == 0, "each thread sums as many");
static_assert(WARP_M * SUM_ROW * sizeof(float) <= STAGES * 2 * SLICE * sizeof(bf16), "sums fit where slices were");

// op(x) as (outer, k). ALONG_K: row o is at + o * ld, contiguous along k; else row k is at + k *
// ld.
struct mma_operand {
	const bf16 *at;
	size_t ld;
	int outer, k;
};

template <class Out> struct mma_product {
	mma_operand a, b;
	Out *d, *aux;
	const bf16 *bias; // NULL: none
	size_t ldd;
	enum gemm_epilogue epilogue;
	bool accumulate;
	float *row_sums; // of op(a), added to by the blocks of the first column of tiles
};

// Starts copying the slice (first, first_k) of x into shared memory; zeroes beyond its ends.
template <bool ALONG_K>
static __device__ __forceinline__ void load_slice(shared_t<bf16> slice, const mma_operand &x, int first, int first_k) {
	constexpr int row_length = ALONG_K ? DEPTH : TILE, row_stride = ALONG_K ? ALONG_K_ROW : ACROSS_ROW;
	constexpr int pieces = row_length / PIECE;
	const int row0 = ALONG_K ? first : first_k, column0 = ALONG_K ? first_k : first;
	const int rows = ALONG_K ? x.outer : x.k, columns = ALONG_K ? x.k : x.outer;
#pragma unroll
	for (int i = 0; i < TILE * DEPTH / PIECE / THREADS; i++) {
		int piece = i * THREADS + (int)threadIdx.x, row = piece / pieces, column = piece % pieces * PIECE;
		bool inside = row0 + row < rows && column0 + column < columns;
		const bf16 *from = inside ? x.at + (size_t)(row0 + row) * x.ld + column0 + column : nullptr;
		cp_async16(slice + (row * row_stride + column), from);
	}
}

// Loads the 16 x 16 left operand at (outer, k) of a slice.
template <bool ALONG_K>
static __device__ __forceinline__ void load_a(uint32_t out[4], shared_t<bf16> slice, int outer, int k) {
	int lane = (int)threadIdx.x % WARP;
	if constexpr (ALONG_K)
		ldmatrix_x4(out, slice + ((outer + lane % 16) * ALONG_K_ROW + k + lane / 16 * 8));
	else
		ldmatrix_x4_transposed(out, slice + ((k + lane % 8 + lane / 16 * 8) * ACROSS_ROW + outer + lane / 8 % 2 * 8));
}

// Loads the right operands of 16 x 8 at (outer, k) and (outer + 8, k).
template <bool ALONG_K>
static __device__ __forceinline__ void load_b(uint32_t out[4], shared_t<bf16> slice, int outer, int k) {
	int lane = (int)threadIdx.x % WARP;
	if constexpr (ALONG_K)
		ldmatrix_x4(out, slice + ((outer + lane % 8 + lane / 16 * 8) * ALONG_K_ROW + k + lane / 8 % 2 * 8));
	else
		ldmatrix_x4_transposed(out, slice + ((k + lane % 8 + lane / 8 % 2 * 8) * ACROSS_ROW + outer + lane / 16 * 8));
}

template <bool A_ALONG_K, bool B_ALONG_K>
static __device__ __forceinline__ void multiply_slices(float (&acc)[WARP_M / 16][WARP_N / 8][4], shared_t<bf16> a,
													   shared_t<bf16> b, int row, int column) {
#pragma unroll
	for (int k = 0; k < DEPTH; k += 16) {
		uint32_t left[WARP_M / 16][4], right[WARP_N / 16][4];
#pragma unroll
		for (int i = 0; i < WARP_M / 16; i++)
			load_a<A_ALONG_K>(left[i], a, row + i * 16, k);
#pragma unroll
		for (int j = 0; j < WARP_N / 16; j++)
			load_b<B_ALONG_K>(right[j], b, column + j * 16, k);
#pragma unroll
		for (int i = 0; i < WARP_M / 16; i++)
#pragma unroll
			for (int j = 0; j < WARP_N / 8; j++)
				mma_bf16(acc[i][j], left[i], right[j / 2] + j % 2 * 2);
	}
}

// Writes an element of d, and of aux with GEMM_GELU.
template <class Out>
static __device__ __forceinline__ void finish(const mma_product<Out> &p, size_t at, int column, float x) {
	if (p.bias)
		x += to_float(p.bias[column]);
	if (p.epilogue == GEMM_GELU) {
		p.aux[at] = from_float<Out>(x);
		x = gelu_of(x);
	}
	if (p.epilogue == GEMM_DGELU)
		x *= gelu_slope(to_float(p.aux[at]));
	if (p.accumulate)
		x += to_float(p.d[at]);
	p.d[at] = from_float<Out>(x);
}

// Copies a warp's sums to shared memory, where they are rows.
static __device__ __forceinline__ void keep_sums(shared_t<float> sums, const float (&acc)[WARP_M / 16][WARP_N / 8][4],
												 int column) {
	const int lane = (int)threadIdx.x % WARP;
#pragma unroll
	for (int i = 0; i < WARP_M / 16; i++)
#pragma unroll
		for (int j = 0; j < WARP_N / 8; j++)
#pragma unroll
			for (int e = 0; e < 4; e++)
				sums[(i * 16 + lane / 4 + e / 2 * 8) * SUM_ROW + column + j * 8 + lane % 4 * 2 + e % 2] = acc[i][j][e];
}

// Writes the rows of d from first_row on whose sums are in shared memory: a warp 32 neighbours.
template <class Out>
static __device__ __forceinline__ void finish_part(const mma_product<Out> &p, shared_t<float> sums, int first_row,
												   int first_column) {
	const int column = (int)threadIdx.x % TILE, n = first_column + column;
#pragma unroll 1
	for (int row = (int)threadIdx.x / TILE; row < WARP_M; row += THREADS / TILE) {
		int m = first_row + row;
		if (m < p.a.outer && n < p.b.outer)
			finish(p, (size_t)m * p.ldd + n, n, sums[row * SUM_ROW + column]);
	}
}

// Adds this thread's part of a slice of a that lies ACROSS to the sums of its pair of rows.
static __device__ __forceinline__ void add_slice(float2 &sums, shared_t<bf16> slice) {
	const shared_t<uint32_t> pairs = shared_as<uint32_t>(slice);
	const int pair = (int)threadIdx.x % PAIRS, first = (int)threadIdx.x / PAIRS * (DEPTH / PARTS);
#pragma unroll
	for (int k = 0; k < DEPTH / PARTS; k++) {
		const uint32_t two = pairs[(first + k) * (ACROSS_ROW / 2) + pair];
		sums.x += __uint_as_float(two << 16);
		sums.y += __uint_as_float(two & 0xffff0000u);
	}
}

// Adds the sums of all threads to row_sums, the parts in their order. `kept`: PARTS x TILE floats.
template <class Out>
static __device__ __forceinline__ void finish_sums(const mma_product<Out> &p, shared_t<float> kept, float2 sums,
												   int first_row) {
	const int at = (int)threadIdx.x / PAIRS * TILE + (int)threadIdx.x % PAIRS * 2, row = (int)threadIdx.x;
	__syncthreads(); // what was there is read
	kept[at] = sums.x;
	kept[at + 1] = sums.y;
	__syncthreads();
	if (row >= TILE || first_row + row >= p.a.outer)
		return;
	float sum = 0;
#pragma unroll
	for (int part = 0; part < PARTS; part++)
		sum += kept[part * TILE + row];
	p.row_sums[first_row + row] += sum;
}

// Returns the block's tile: (down, across).
static __device__ __forceinline__ int2 tile_of(int block, int tiles_down, int tiles_across) {
	int group = block / (GROUP * tiles_across), first = group * GROUP, in_group = block % (GROUP * tiles_across);
	int rows = min(+GROUP, tiles_down - first);
	return {first + in_group % rows, in_group / rows};
}

template <bool A_ALONG_K, bool B_ALONG_K, bool SUMS, class Out>
__global__ void __launch_bounds__(THREADS) product_mma_kernel(mma_product<Out> p, int tiles_down, int tiles_across) {
	DSHMEM(bf16, slices); // a and b of each stage
	const int2 tile = tile_of((int)blockIdx.x, tiles_down, tiles_across);
	const int first_row = tile.x * TILE, first_column = tile.y * TILE, warp = (int)threadIdx.x / WARP;
	const int row = warp / WARPS_ACROSS * WARP_M, column = warp % WARPS_ACROSS * WARP_N;
	const int steps = (p.a.k + DEPTH - 1) / DEPTH;
	const bool sums_here = SUMS && first_column == 0;
	float acc[WARP_M / 16][WARP_N / 8][4] = {};
	float2 sums = {0, 0};
	for (int step = 0; step < STAGES - 1; step++) {
		const shared_t<bf16> stage = slices + step * 2 * SLICE;
		if (step < steps) {
			load_slice<A_ALONG_K>(stage, p.a, first_row, step * DEPTH);
			load_slice<B_ALONG_K>(stage + SLICE, p.b, first_column, step * DEPTH);
		}
		cp_async_commit();
	}
	for (int step = 0; step < steps; step++) {
		cp_async_wait<STAGES - 2>();
		__syncthreads(); // the slice is there for all, and all have done with the one before
		const int ahead = step + STAGES - 1;
		const shared_t<bf16> stage = slices + step % STAGES * 2 * SLICE, next = slices + ahead % STAGES * 2 * SLICE;
		if (ahead < steps) {
			load_slice<A_ALONG_K>(next, p.a, first_row, ahead * DEPTH);
			load_slice<B_ALONG_K>(next + SLICE, p.b, first_column, ahead * DEPTH);
		}
		cp_async_commit();
		multiply_slices<A_ALONG_K, B_ALONG_K>(acc, stage, stage + SLICE, row, column);
		if (sums_here)
			add_slice(sums, stage);
	}
	for (int part = 0; part < WARPS_DOWN; part++) {
		__syncthreads(); // slices, or the sums of the part before, are read
		if (row == part * WARP_M)
			keep_sums(shared_as<float>(slices), acc, column);
		__syncthreads();
		finish_part(p, shared_as<float>(slices), first_row + part * WARP_M, first_column);
	}
	if (sums_here)
		finish_sums(p, shared_as<float>(slices), sums, first_row);
}

// Returns true if 16-byte pieces of x can be copied: its rows are aligned, and a piece that begins
// in a row ends in it, in elements that are multiplied by nothing.
static bool fits(const void *at, int ld, int contiguous, bool along_k) {
	return reinterpret_cast<uintptr_t>(at) % 16 == 0 && ld % PIECE == 0 &&
		   (along_k ? contiguous % PIECE == 0 : (contiguous + PIECE - 1) / PIECE * PIECE <= ld);
}

extern "C" bool launch_product_mma_fits(const struct gemm_call *c) {
	return c->in == DTYPE_BF16 && fits(c->a, c->lda, c->a_transposed ? c->m : c->k, !c->a_transposed) &&
		   fits(c->b, c->ldb, c->b_transposed ? c->k : c->n, c->b_transposed);
}

template <bool A_ALONG_K, bool B_ALONG_K, class Out, bool SUMS = false>
static void launch_layout(cudaStream_t stream, const struct gemm_call *c) {
	const mma_product<Out> p = {
		{static_cast<const bf16 *>(c->a), (size_t)c->lda, c->m, c->k},
		{static_cast<const bf16 *>(c->b), (size_t)c->ldb, c->n, c->k},
		static_cast<Out *>(c->d),
		static_cast<Out *>(c->aux),
		c->epilogue == GEMM_BIAS || c->epilogue == GEMM_GELU ? static_cast<const bf16 *>(c->bias) : nullptr,
		(size_t)c->ldd,
		c->epilogue,
		c->accumulate,
		c->row_sums};
	const int tiles_down = (int)blocks_for((size_t)c->m, TILE), tiles_across = (int)blocks_for((size_t)c->n, TILE);
	LAUNCH((product_mma_kernel<A_ALONG_K, B_ALONG_K, SUMS, Out>), (unsigned)(tiles_down * tiles_across), THREADS,
		   STAGES * 2 * SLICE * sizeof(bf16), stream, p, tiles_down, tiles_across);
}

template <class Out> static void launch_typed(cudaStream_t stream, const struct gemm_call *c) {
	if (!c->a_transposed && c->b_transposed)
		launch_layout<true, true, Out>(stream, c);
	else if (!c->a_transposed)
		launch_layout<true, false, Out>(stream, c);
	else if (c->b_transposed)
		launch_layout<false, true, Out>(stream, c);
	else
		launch_layout<false, false, Out>(stream, c);
}

extern "C" void launch_product_mma(cudaStream_t stream, const struct gemm_call *c) {
	if (c->epilogue == GEMM_SUMS)
		launch_layout<false, false, float, true>(stream, c);
	else if (c->out == DTYPE_F32)
		launch_typed<float>(stream, c);
	else
		launch_typed<bf16>(stream, c);
}
