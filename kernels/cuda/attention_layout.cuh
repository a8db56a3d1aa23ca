// attention_layout.cuh: offsets in packed projections: qkv (B*T, (heads + 2*kv_heads) * head_dim)
// holds q, then k, then v of a token.
#ifndef RV_CUDA_ATTENTION_LAYOUT_CUH
#define RV_CUDA_ATTENTION_LAYOUT_CUH

#include "kernels/backend.h"
#include "kernels/cuda/portable.cuh"

// Return the elements from one token to the next.
__host__ __device__ __forceinline__ size_t qkv_width(const attention_shape &s) {
	return (size_t)(s.heads + 2 * s.kv_heads) * s.head_dim;
}

__host__ __device__ __forceinline__ size_t out_width(const attention_shape &s) {
	return (size_t)s.heads * s.head_dim;
}

// Return the offset of the first token of batch row b: q of head h; k and v of key/value head kv.
__device__ __forceinline__ size_t q_start(const attention_shape &s, int b, int h) {
	return (size_t)b * s.t * qkv_width(s) + (size_t)h * s.head_dim;
}

__device__ __forceinline__ size_t k_start(const attention_shape &s, int b, int kv) {
	return q_start(s, b, s.heads + kv);
}

__device__ __forceinline__ size_t v_start(const attention_shape &s, int b, int kv) {
	return q_start(s, b, s.heads + s.kv_heads + kv);
}

__device__ __forceinline__ size_t out_start(const attention_shape &s, int b, int h) {
	return (size_t)b * s.t * out_width(s) + (size_t)h * s.head_dim;
}

// Returns the offset in lse and delta (B, heads, T).
__device__ __forceinline__ size_t row_start(const attention_shape &s, int b, int h) {
	return ((size_t)b * s.heads + h) * s.t;
}

#endif
