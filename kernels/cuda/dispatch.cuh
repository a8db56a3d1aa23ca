// dispatch.cuh: host code that chooses a kernel's instance: by the activation type, and by whether
// rows can be moved in 16-byte vectors.
#ifndef RV_CUDA_DISPATCH_CUH
#define RV_CUDA_DISPATCH_CUH

#include "kernels/backend.h"
#include "kernels/cuda/vec.cuh"

// A type and the elements of it per access.
template <class Elem, int Width> struct access {
	typedef Elem T;
	static constexpr int V = Width;
};

// Calls f(access<T, V>()) for the type that `act` names; V is a 16-byte vector's width if all
// addresses and the row length `n` allow it, else 1.
template <class F, class... P> inline void dispatch(enum dtype act, int n, F f, P... pointers) {
	bool bf16_rows = act == DTYPE_BF16;
	bool vectors = vectors_fit(n, bf16_rows ? vec_width<bf16> : vec_width<float>, pointers...);
	if (bf16_rows && vectors)
		f(access<bf16, vec_width<bf16>>());
	else if (bf16_rows)
		f(access<bf16, 1>());
	else if (vectors)
		f(access<float, vec_width<float>>());
	else
		f(access<float, 1>());
}

template <class T> inline T *as(act_t *p) {
	return reinterpret_cast<T *>(p);
}

template <class T> inline const T *as(const act_t *p) {
	return reinterpret_cast<const T *>(p);
}

// Returns the blocks of `per_block` that cover n.
inline unsigned blocks_for(size_t n, size_t per_block) {
	return static_cast<unsigned>((n + per_block - 1) / per_block);
}

#endif
