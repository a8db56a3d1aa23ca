// epilogue.cu: bias, GELU, its derivative and sums of rows behind a product that was computed
// without them.
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/gelu.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/launch_epilogue.h"

enum { EPILOGUE_THREADS = 256 };

struct epilogue_shape {
	size_t m, n, ld;
};

template <class In, class Out>
__global__ void __launch_bounds__(EPILOGUE_THREADS)
	epilogue_kernel(Out *d, Out *aux, const In *bias, struct epilogue_shape s, enum gemm_epilogue kind) {
	size_t i = (size_t)blockIdx.x * EPILOGUE_THREADS + threadIdx.x;
	if (i >= s.m * s.n)
		return;
	size_t column = i % s.n, at = i / s.n * s.ld + column;
	float x = to_float(kind == GEMM_GELU ? aux[at] : d[at]);
	if (kind != GEMM_DGELU && bias)
		x += to_float(bias[column]);
	if (kind == GEMM_GELU) {
		aux[at] = from_float<Out>(x);
		x = gelu_of(x);
	}
	if (kind == GEMM_DGELU)
		x *= gelu_slope(to_float(aux[at]));
	d[at] = from_float<Out>(x);
}

template <class In, class Out> static void launch_typed(cudaStream_t stream, const struct gemm_call *c) {
	const struct epilogue_shape s = {(size_t)c->m, (size_t)c->n, (size_t)c->ldd};
	const enum gemm_epilogue kind = c->epilogue;
	Out *d = static_cast<Out *>(c->d), *aux = static_cast<Out *>(c->aux);
	const In *bias = static_cast<const In *>(c->bias);
	LAUNCH((epilogue_kernel<In, Out>), blocks_for(s.m * s.n, EPILOGUE_THREADS), EPILOGUE_THREADS, 0, stream, d, aux,
		   bias, s, kind);
}

extern "C" void launch_epilogue(cudaStream_t stream, const struct gemm_call *c) {
	if (c->epilogue == GEMM_SUMS)
		launch_column_sum(stream, c->in, c->row_sums, static_cast<const act_t *>(c->a), c->scratch, c->k, c->m);
	else if (c->in == DTYPE_F32)
		launch_typed<float, float>(stream, c);
	else if (c->out == DTYPE_F32)
		launch_typed<bf16, float>(stream, c);
	else
		launch_typed<bf16, bf16>(stream, c);
}

template <class T, int V>
__global__ void __launch_bounds__(EPILOGUE_THREADS) gelu_kernel(T *out, const T *pre, size_t n) {
	size_t at = ((size_t)blockIdx.x * EPILOGUE_THREADS + threadIdx.x) * V;
	if (at >= n)
		return;
	float x[V];
	load<V>(x, pre + at);
#pragma unroll
	for (int i = 0; i < V; i++)
		x[i] = gelu_of(x[i]);
	store<V>(out + at, x);
}

extern "C" void launch_gelu_forward(cudaStream_t stream, enum dtype act, act_t *out, const act_t *pre, size_t n) {
	dispatch(
		act, (int)(n % WARP), // a multiple of a vector's width where n is one
		[=](auto a) {
			typedef typename decltype(a)::T T;
			constexpr int V = decltype(a)::V;
			LAUNCH((gelu_kernel<T, V>), blocks_for(n, EPILOGUE_THREADS * V), EPILOGUE_THREADS, 0, stream, as<T>(out),
				   as<T>(pre), n);
		},
		out, pre);
}
