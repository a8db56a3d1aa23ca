// convert.cu: fp32 to bf16: 6 B per element.
#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/launch.h"

enum { CONVERT_THREADS = 256 };

template <int V>
__global__ void __launch_bounds__(CONVERT_THREADS) to_bf16_kernel(bf16 *out, const float *in, size_t n) {
	size_t at = ((size_t)blockIdx.x * CONVERT_THREADS + threadIdx.x) * V;
	if (at + V <= n) {
		float x[V];
		load<V>(x, in + at);
		store<V>(out + at, x);
		return;
	}
	for (size_t i = at; i < n; i++)
		out[i] = from_float<bf16>(in[i]);
}

extern "C" void launch_to_bf16(cudaStream_t stream, void *out, const float *in, size_t n) {
	constexpr int V = vec_width<bf16>;
	bf16 *to = static_cast<bf16 *>(out);
	if (vectors_fit(0, V, out, in))
		LAUNCH(to_bf16_kernel<V>, blocks_for(n, CONVERT_THREADS * V), CONVERT_THREADS, 0, stream, to, in, n);
	else
		LAUNCH(to_bf16_kernel<1>, blocks_for(n, CONVERT_THREADS), CONVERT_THREADS, 0, stream, to, in, n);
}
