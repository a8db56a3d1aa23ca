// adamw.cuh: AdamW's arithmetic on one parameter, shared by moments in fp32 (adamw.cu) and in 8
// bits (adamw8.cu).
#ifndef RV_CUDA_ADAMW_CUH
#define RV_CUDA_ADAMW_CUH

#include "kernels/backend.h"
#include "kernels/cuda/portable.cuh"

#include <math.h>

struct adamw_constants {
	float lr, beta1, beta2, eps, weight_decay, grad_scale, correct1, correct2;
};

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

__device__ __forceinline__ void adamw_element(float *p, float *m, float *v, float g, bool decay, adamw_constants a) {
	g *= a.grad_scale;
	*m = a.beta1 * *m + (1 - a.beta1) * g;
	*v = a.beta2 * *v + (1 - a.beta2) * g * g;
	float step = (*m * a.correct1) / (sqrtf(*v * a.correct2) + a.eps);
	*p -= a.lr * (step + (decay ? a.weight_decay * *p : 0));
}

static inline adamw_constants adamw_constants_of(const struct adamw_params *a) {
	const double steps = (double)a->step;
	return {a->lr,
			a->beta1,
			a->beta2,
			a->eps,
			a->weight_decay,
			a->grad_scale,
			(float)(1 / (1 - pow((double)a->beta1, steps))),
			(float)(1 / (1 - pow((double)a->beta2, steps)))};
}

#endif
