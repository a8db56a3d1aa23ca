// tensor.cpp: see tensor.h.
#include "tests/emu/tensor.h"

namespace emu {

static float low(uint32_t pair) {
	return __uint_as_float(pair << 16);
}

static float high(uint32_t pair) {
	return __uint_as_float(pair & 0xffff0000u);
}

// Lane 4 g + q holds columns 2 q and 2 q + 1 (and 8 more) of rows g and g + 8 of a; of column g of
// b the same of rows.
void mma_warp(void **args) {
	float a[16][16], b[16][8];
	for (unsigned lane = 0; lane < warp_size; lane++) {
		auto *arg = static_cast<const mma_arg *>(args[lane]);
		unsigned g = lane / 4, q = lane % 4 * 2;
		for (unsigned r = 0; r < 4; r++) {
			a[g + r % 2 * 8][q + r / 2 * 8] = low(arg->a[r]);
			a[g + r % 2 * 8][q + r / 2 * 8 + 1] = high(arg->a[r]);
		}
		for (unsigned r = 0; r < 2; r++) {
			b[q + r * 8][g] = low(arg->b[r]);
			b[q + r * 8 + 1][g] = high(arg->b[r]);
		}
	}
	for (unsigned lane = 0; lane < warp_size; lane++) {
		auto *arg = static_cast<const mma_arg *>(args[lane]);
		for (unsigned i = 0; i < 4; i++) {
			unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
			for (unsigned k = 0; k < 16; k++)
				arg->d[i] += a[row][k] * b[k][column];
		}
	}
}

static uint16_t element(void **args, unsigned matrix, unsigned row, unsigned column) {
	const uint32_t pair = static_cast<const ldmatrix_arg *>(args[matrix * 8 + row])->rows[column / 2];
	return static_cast<uint16_t>(column % 2 ? pair >> 16 : pair);
}

static void ldmatrix(void **args, bool transposed) {
	for (unsigned lane = 0; lane < warp_size; lane++)
		for (unsigned m = 0; m < 4; m++) {
			unsigned g = lane / 4, q = lane % 4 * 2;
			uint32_t first = transposed ? element(args, m, q, g) : element(args, m, g, q);
			uint32_t second = transposed ? element(args, m, q + 1, g) : element(args, m, g, q + 1);
			static_cast<ldmatrix_arg *>(args[lane])->out[m] = first | second << 16;
		}
}

void ldmatrix_warp(void **args) {
	ldmatrix(args, false);
}

void ldmatrix_transposed_warp(void **args) {
	ldmatrix(args, true);
}

void start_copy(shared<uint4> to, const void *from) {
	self->copies.push_back({to.region, to.address, from, self->copy_group});
}

void finish_copies(unsigned groups_left, place at) {
	std::vector<async_copy> kept;
	for (const async_copy &copy : self->copies) {
		if (copy.group + groups_left >= self->copy_group) {
			kept.push_back(copy);
			continue;
		}
		uint4 value = {};
		if (copy.from)
			value = *static_cast<const uint4 *>(copy.from);
		shared<uint4>(copy.region, copy.to).store(value, at);
	}
	self->copies.swap(kept);
}

} // namespace emu
