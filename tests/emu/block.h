// block.h: a block of CUDA threads: where each is, barriers, and what a warp does together.
//
// Stricter than the hardware where a strict kernel loses nothing: a block is a number of whole
// warps; every thread of the block reaches every barrier, at the same place in the source; every
// lane of a warp takes part in every shuffle.
#ifndef RV_TESTS_EMU_BLOCK_H
#define RV_TESTS_EMU_BLOCK_H

#include "tests/emu/fiber.h"
#include "tests/emu/runtime.h"

#include <functional>
#include <vector>

struct uint3 {
	unsigned x, y, z;
};

struct dim3 {
	unsigned x, y, z;
	dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
	dim3(int x_) : dim3(static_cast<unsigned>(x_)) {}
	size_t count() const { return static_cast<size_t>(x) * y * z; }
};

namespace emu {

constexpr unsigned warp_size = 32, max_block_threads = 1024, full_mask = 0xffffffffu;

// A place in a kernel's source.
struct place {
	const char *file;
	int line;
};

enum class waiting { nothing, barrier, warp, ended };

// An array in shared memory.
struct shared_region {
	char *begin, *end;
};

// A copy of 16 bytes into shared memory that cp.async has started and no wait has completed; from
// NULL: zeroes.
struct async_copy {
	shared_region region;
	char *to;
	const void *from;
	unsigned group;
};

struct thread {
	uint3 index; // threadIdx
	unsigned linear, lane, warp;
	waiting state;
	place at; // of its last barrier, collective or access to shared memory
	fiber f;
	unsigned copy_group; // of the copies that no commit has closed
	std::vector<async_copy> copies;
};

extern thread *self; // the thread that runs now; null outside kernels
extern uint3 block_index;
extern dim3 block_shape, grid_shape;

void run_kernel(const char *name, dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &body);
// To be called by the thread that runs now.
void block_barrier(place at);
// Each lane of the warp brings `arg`; the last to come runs fn(args) for all 32.
using collective_fn = void (*)(void **args);
void collective(collective_fn fn, void *arg, place at);
// As collective, and orders the warp's accesses to shared memory.
void warp_barrier(place at);

// How far a block, and a warp in it, have come: the count of their barriers.
unsigned block_epoch();
unsigned warp_epoch(unsigned warp);

[[noreturn]] void fault(place at, const char *format, ...) __attribute__((format(printf, 2, 3)));

void block_configure(const emu_options &o);
emu_counters block_counters();

} // namespace emu

#endif
