// adamw.cuh: AdamW's arithmetic on one parameter, with the processor's bits (kernels/adamw.h),
// shared by moments in fp32 (adamw.cu) and in 8 bits (adamw8.cu).
#ifndef RV_CUDA_ADAMW_CUH
#define RV_CUDA_ADAMW_CUH

#include "kernels/adamw.h"
#include "kernels/cuda/portable.cuh"

// Returns the span that holds element i.
__device__ __forceinline__ int span_of(const size_t *ends, int n_spans, size_t i) {
	int low = 0, high = n_spans - 1;
	while (low < high) {
		int middle = (low + high) / 2;
		if (i < ends[middle])
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

// fmaf says what is fused, so that no compiler chooses.
__device__ __forceinline__ void adamw_element(float *p, float *m, float *v, float g, bool decay, adamw_consts a) {
	*m = fmaf(a.beta1, *m, a.m_new * g);
	*v = fmaf(a.beta2, *v, a.v_new * (g * g));
	const float update = *m / fmaf(sqrtf(*v), a.v_hat, a.eps);
	*p = fmaf(-a.step_size, update, (decay ? a.keep : 1) * *p);
}

#endif
