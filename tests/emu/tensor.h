// tensor.h: the emulated twins of kernels/cuda/ptx.cuh: 2^x, tensor-core products and asynchronous
// copies, with fragments laid out among the lanes as the PTX ISA says (sections mma.m16n8k16,
// ldmatrix, cp.async).
#ifndef RV_TESTS_EMU_TENSOR_H
#define RV_TESTS_EMU_TENSOR_H

#include "tests/emu/device.h"

#include <cfloat>

namespace emu {

struct mma_arg {
	float *d;
	const uint32_t *a, *b;
};

// d (16 x 8) += a (16 x 16) b (16 x 8).
void mma_warp(void **args);

struct ldmatrix_arg {
	uint32_t rows[4]; // the 8 bf16 that this lane points at
	uint32_t *out;
};

// Four 8 x 8 matrices: lanes 8 i .. 8 i + 7 point at the rows of matrix i; each lane gets two
// neighbouring elements of a row (`transposed`: of a column) of each.
void ldmatrix_warp(void **args);
void ldmatrix_transposed_warp(void **args);

void start_copy(shared<uint4> to, const void *from);
// Does the running thread's copies of all groups but the newest `groups_left`.
void finish_copies(unsigned groups_left, place at);

} // namespace emu

inline float exp2_ftz(float x) {
	float y = exp2f(x);
	return y < FLT_MIN ? 0 : y;
}

inline void mma_bf16(float d[4], const uint32_t a[4], const uint32_t b[2], EMU_HERE) {
	emu::mma_arg arg{d, a, b};
	emu::collective(emu::mma_warp, &arg, {file, line});
}

template <class T> void ldmatrix_x4(uint32_t out[4], emu::shared<T> row, EMU_HERE) {
	emu::ldmatrix_arg arg{{}, out};
	uint4 loaded = row.template as<uint4>().load({file, line});
	memcpy(arg.rows, &loaded, sizeof loaded);
	emu::collective(emu::ldmatrix_warp, &arg, {file, line});
}

template <class T> void ldmatrix_x4_transposed(uint32_t out[4], emu::shared<T> row, EMU_HERE) {
	emu::ldmatrix_arg arg{{}, out};
	uint4 loaded = row.template as<uint4>().load({file, line});
	memcpy(arg.rows, &loaded, sizeof loaded);
	emu::collective(emu::ldmatrix_transposed_warp, &arg, {file, line});
}

// from == NULL fills with zeroes.
template <class T> void cp_async16(emu::shared<T> to, const void *from) {
	emu::start_copy(to.template as<uint4>(), from);
}

inline void cp_async_commit() {
	emu::self->copy_group++;
}

template <int GROUPS_LEFT> void cp_async_wait(EMU_HERE) {
	emu::finish_copies(GROUPS_LEFT, {file, line});
}

#endif
