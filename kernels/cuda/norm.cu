// norm.cu: LayerNorm and RMSNorm, with the residual add before them.
//
// The threads of a row (blockDim.x) hold it in registers: it is read once. Forward moves two
// activations per element (four with a residual); backward four (dout, x, and dx in and out) and,
// for dw and dbias, partial sums of groups of rows: at most NORM_PARTIALS rows of 2 c floats,
// written and read once and added in a fixed order (step_sizes.h).
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/reduce.cuh"

enum {
	NORM_THREADS_MAX = 512,
	NORM_EARLY = 8 // channels of a thread for which there are registers to load dx early
};

// An instance: a thread holds K runs of V channels of type T, in blocks of at most M threads.
template <class Elem, int Width, int Runs, int Max> struct norm_instance {
	typedef Elem T;
	static constexpr int V = Width, K = Runs, M = Max;
};

// Threads of a row, and rows of a block.
struct norm_block {
	int x, y;
	dim3 shape() const { return dim3((unsigned)x, (unsigned)y); }
	int slots() const { return x * y / WARP; }
};

static norm_block block_for(int c, int channels) {
	int x = ((c + channels - 1) / channels + WARP - 1) / WARP * WARP;
	return {x, x < NORM_THREADS ? NORM_THREADS / x : 1};
}

// Channels of a thread in a long row: as many as its registers hold. Single elements need more
// registers for their addresses.
template <int V> constexpr int long_row_channels = V > 1 ? 16 : 8;
static_assert(long_row_channels<4> * NORM_THREADS_MAX == NORM_WIDTH_MAX, "the widest rows");
static_assert(long_row_channels<1> * NORM_THREADS_MAX == NORM_ODD_WIDTH_MAX, "the widest rows of single elements");

// Calls f(instance) for the type and the row length: one run per thread, or long_row_channels where
// that takes more than NORM_THREADS of them.
template <class F, class... P> static void norm_dispatch(enum dtype act, int c, F f, P... pointers) {
	dispatch(
		act, c,
		[=](auto a) {
			typedef typename decltype(a)::T T;
			constexpr int V = decltype(a)::V;
			if (c > NORM_THREADS * V)
				f(norm_instance<T, V, long_row_channels<V> / V, NORM_THREADS_MAX>());
			else
				f(norm_instance<T, V, 1, NORM_THREADS>());
		},
		pointers...);
}

struct norm_row {
	float mean, rstd;
};

// Replaces channels beyond the row by the mean.
template <int K, int V>
__device__ __forceinline__ norm_row statistics(const float (&x)[K][V], norm_kind kind, float eps, int c,
											   shared_t<float> slots) {
	float sum = 0, squares = 0, mean = 0;
	if (kind == NORM_LAYER) {
#pragma unroll
		for (int k = 0; k < K; k++)
#pragma unroll
			for (int i = 0; i < V; i++)
				sum += x[k][i];
		mean = row_sum(sum, slots) / (float)c;
	}
#pragma unroll
	for (int k = 0; k < K; k++)
#pragma unroll
		for (int i = 0; i < V; i++) {
			int column = (k * (int)blockDim.x + (int)threadIdx.x) * V + i;
			float centred = column < c ? x[k][i] - mean : 0;
			squares += centred * centred;
		}
	squares = row_sum(squares, slots + (int)(blockDim.x * blockDim.y) / WARP);
	return {mean, 1.0f / sqrtf(squares / (float)c + eps)};
}

// Computes the norm of rows. Dynamic shared memory: two floats for each warp.
template <class I> __global__ void __launch_bounds__(I::M) norm_forward_kernel(norm_forward p) {
	typedef typename I::T T;
	constexpr int V = I::V, K = I::K;
	DSHMEM(float, slots);
	int row = (int)(blockIdx.x * blockDim.y + threadIdx.y);
	bool here = row < p.n;
	size_t at = (size_t)row * p.c;
	float x[K][V] = {};
#pragma unroll
	for (int k = 0; k < K; k++) {
		int column = (k * (int)blockDim.x + (int)threadIdx.x) * V;
		if (!here || column >= p.c)
			continue;
		load<V>(x[k], reinterpret_cast<const T *>(p.a) + at + column);
		if (p.sum) {
			float b[V];
			load<V>(b, reinterpret_cast<const T *>(p.b) + at + column);
#pragma unroll
			for (int i = 0; i < V; i++)
				x[k][i] = rounded<T>(x[k][i] + b[i]); // the norm is of the sum as it is kept
			store<V>(reinterpret_cast<T *>(p.sum) + at + column, x[k]);
		}
	}
	norm_row s = statistics(x, p.kind, p.eps, p.c, slots);
#pragma unroll
	for (int k = 0; k < K; k++) {
		int column = (k * (int)blockDim.x + (int)threadIdx.x) * V;
		if (!here || column >= p.c)
			continue;
		float w[V], bias[V] = {};
		load<V>(w, p.w + column);
		if (p.bias)
			load<V>(bias, p.bias + column);
#pragma unroll
		for (int i = 0; i < V; i++)
			x[k][i] = (x[k][i] - s.mean) * s.rstd * w[i] + bias[i];
		store<V>(reinterpret_cast<T *>(p.out) + at + column, x[k]);
	}
	if (here && threadIdx.x == 0) {
		p.rstd[row] = s.rstd;
		if (p.mean)
			p.mean[row] = s.mean;
	}
}

extern "C" void launch_norm_forward(cudaStream_t stream, enum dtype act, const struct norm_forward *args) {
	const norm_forward p = *args;
	norm_dispatch(
		act, p.c,
		[=](auto i) {
			typedef decltype(i) I;
			norm_block block = block_for(p.c, I::K * I::V);
			LAUNCH(norm_forward_kernel<I>, blocks_for((size_t)p.n, (size_t)block.y), block.shape(),
				   2 * sizeof(float) * block.slots(), stream, p);
		},
		p.sum, p.out, p.a, p.b, p.w, p.bias);
}

// Returns the blocks of the backward pass: a function of n alone, but for rounding up to the rows
// of a block.
static int norm_blocks(int n, int rows_of_block) {
	return (norm_partial_rows(n) + rows_of_block - 1) / rows_of_block;
}

// A thread's channels of a row in the backward pass.
template <class I> struct backward_row {
	bool here; // false: beyond the last row
	size_t at; // its first element
	float rstd;
	float xhat[I::K][I::V] = {}, g[I::K][I::V] = {}, dx[I::K][I::V];
};

// A thread's channels of what is the same for all rows: w, and the sums for dw and dbias.
template <class I> struct backward_columns { float w[I::K][I::V], dw[I::K][I::V], db[I::K][I::V]; };

// Returns the first channel of a thread's run k.
template <class I> __device__ __forceinline__ int first_channel(int k) {
	return (k * (int)blockDim.x + (int)threadIdx.x) * I::V;
}

// Loads a row, with dx only where there are registers for it, and adds it to dw and dbias. Returns
// the sums of g and of g xhat over this thread's channels.
template <class I>
__device__ __forceinline__ float2 begin_row(backward_row<I> &r, backward_columns<I> &all, const norm_backward &p,
											int row) {
	typedef typename I::T T;
	r.here = row < p.n;
	r.at = (size_t)row * p.c;
	r.rstd = r.here ? p.rstd[row] : 0;
	float mean = r.here && p.kind == NORM_LAYER ? p.mean[row] : 0;
	float2 sum = {0, 0};
#pragma unroll
	for (int k = 0; k < I::K; k++) {
		int column = first_channel<I>(k);
		if (!r.here || column >= p.c)
			continue;
		float dy[I::V], x[I::V];
		load<I::V>(dy, reinterpret_cast<const T *>(p.dout) + r.at + column);
		load<I::V>(x, reinterpret_cast<const T *>(p.x) + r.at + column);
		if constexpr (I::K * I::V <= NORM_EARLY)
			load<I::V>(r.dx[k], reinterpret_cast<const T *>(p.dx) + r.at + column);
#pragma unroll
		for (int i = 0; i < I::V; i++) {
			r.xhat[k][i] = (x[i] - mean) * r.rstd;
			all.dw[k][i] += dy[i] * r.xhat[k][i];
			all.db[k][i] += dy[i];
			r.g[k][i] = dy[i] * all.w[k][i];
			sum.x += r.g[k][i];
			sum.y += r.g[k][i] * r.xhat[k][i];
		}
	}
	return sum;
}

// Adds to dx, with the sums of the whole row.
template <class I> __device__ __forceinline__ void finish_row(backward_row<I> &r, const norm_backward &p, float2 sum) {
	typedef typename I::T T;
	float gx_mean = sum.y / (float)p.c, g_mean = p.kind == NORM_LAYER ? sum.x / (float)p.c : 0;
#pragma unroll
	for (int k = 0; k < I::K; k++) {
		int column = first_channel<I>(k);
		if (!r.here || column >= p.c)
			continue;
		T *to = reinterpret_cast<T *>(p.dx) + r.at + column;
		if constexpr (I::K * I::V > NORM_EARLY)
			load<I::V>(r.dx[k], to);
#pragma unroll
		for (int i = 0; i < I::V; i++)
			r.dx[k][i] += r.rstd * (r.g[k][i] - g_mean - r.xhat[k][i] * gx_mean);
		store<I::V>(to, r.dx[k]);
	}
}

// Computes, with xhat = (x - mean) rstd and g = dout w:  dx += rstd (g - mean(g) - xhat mean(g
// xhat)); RMSNorm: without mean, mean(g).
template <class I> __global__ void __launch_bounds__(I::M) norm_backward_kernel(norm_backward p) {
	DSHMEM(float, slots); // four for each warp: two sums, and two more while others still read those
	const int rows_at_once = (int)(gridDim.x * blockDim.y), group = (int)(blockIdx.x * blockDim.y + threadIdx.y);
	const int warps = (int)(blockDim.x * blockDim.y) / WARP;
	backward_columns<I> all = {};
#pragma unroll
	for (int k = 0; k < I::K; k++)
		if (first_channel<I>(k) < p.c)
			load<I::V>(all.w[k], p.w + first_channel<I>(k));
	for (int first = 0, parity = 0; first < p.n; first += rows_at_once, parity ^= 1) {
		backward_row<I> r;
		float2 sum = begin_row(r, all, p, first + group);
		finish_row(r, p, row_sums(sum, slots + parity * 2 * warps));
	}
#pragma unroll
	for (int k = 0; k < I::K; k++) {
		int column = first_channel<I>(k);
		if (column >= p.c)
			continue;
		store<I::V>(p.partial + (size_t)group * 2 * p.c + column, all.dw[k]);
		if (p.dbias)
			store<I::V>(p.partial + (size_t)group * 2 * p.c + p.c + column, all.db[k]);
	}
}

extern "C" void launch_norm_backward(cudaStream_t stream, enum dtype act, const struct norm_backward *args) {
	const norm_backward p = *args;
	norm_dispatch(
		act, p.c,
		[=](auto i) {
			typedef decltype(i) I;
			norm_block block = block_for(p.c, I::K * I::V);
			int blocks = norm_blocks(p.n, block.y);
			LAUNCH(norm_backward_kernel<I>, (unsigned)blocks, block.shape(), 4 * sizeof(float) * block.slots(), stream,
				   p);
			launch_reduce_partials(stream, p.dw, p.dbias, p.partial, blocks * block.y, p.c, 2 * p.c);
		},
		p.dx, p.dout, p.x, p.w, p.partial);
}
