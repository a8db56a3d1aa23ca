// block.cpp: see block.h.
#include "tests/emu/block.h"

#include "tests/emu/sanitizer.h"
#include "tests/emu/shared.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>
#include <unistd.h>

namespace emu {

thread *self;
uint3 block_index;
dim3 block_shape, grid_shape;

struct warp_state {
	unsigned arrived = 0, epoch = 0; // lanes at the collective; barriers passed
	collective_fn fn = nullptr;
	place at = {};
	void *args[warp_size];
};

static struct {
	const char *kernel = nullptr;
	const std::function<void()> *body = nullptr;
	std::vector<thread> threads;
	std::vector<warp_state> warps;
	unsigned at_barrier = 0, ended = 0, epoch = 0;
	place barrier = {};
} block;

static emu_options options;
static std::mt19937_64 random_order;
static emu_counters counters;

// "x of kernel k, block (0,0,0), thread 5 (k.cu:12)": what a person needs to find the line.
static void print_where(place at) {
	fprintf(stderr, "emulator: kernel %s, block (%u,%u,%u)", block.kernel, block_index.x, block_index.y, block_index.z);
	if (self)
		fprintf(stderr, ", thread %u", self->linear);
	if (at.file)
		fprintf(stderr, ", %s:%d", strrchr(at.file, '/') ? strrchr(at.file, '/') + 1 : at.file, at.line);
}

void fault(place at, const char *format, ...) {
	print_where(at);
	fprintf(stderr, ": ");
	va_list args;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	fflush(nullptr);
	_exit(EMU_FAULT_STATUS);
}

#ifdef EMU_ASAN
// After AddressSanitizer's own report, which has the kernel's source line.
static void on_sanitizer_death() {
	if (block.kernel) {
		print_where(self ? self->at : place{});
		fprintf(stderr, ": the access reported above\n");
	}
}
#endif

void block_configure(const emu_options &o) {
	options = o;
	random_order.seed(o.seed);
#ifdef EMU_ASAN
	__sanitizer_set_death_callback(on_sanitizer_death);
#endif
}

emu_counters block_counters() {
	counters.switches = fiber_switches();
	return counters;
}

unsigned block_epoch() {
	return block.epoch;
}

unsigned warp_epoch(unsigned warp) {
	return block.warps[warp].epoch;
}

void block_barrier(place at) {
	self->at = at;
	if (block.ended)
		fault(at, "a barrier that %u threads of the block have left the kernel before", block.ended);
	if (block.at_barrier && block.barrier.line != at.line)
		fault(at, "a barrier, while other threads of the block wait at another one, in line %d", block.barrier.line);
	block.barrier = at;
	block.at_barrier++;
	self->state = waiting::barrier;
	fiber_yield();
}

void collective(collective_fn fn, void *arg, place at) {
	self->at = at;
	warp_state &w = block.warps[self->warp];
	if (w.arrived && w.fn != fn)
		fault(at, "lanes of a warp do different things together: others are in line %d", w.at.line);
	w.fn = fn;
	w.at = at;
	w.args[self->lane] = arg;
	w.arrived |= 1u << self->lane;
	if (w.arrived != full_mask) {
		self->state = waiting::warp;
		fiber_yield();
		return;
	}
	fn(w.args);
	w.arrived = 0;
	for (unsigned i = 0; i < warp_size; i++)
		block.threads[self->warp * warp_size + i].state = waiting::nothing;
}

static void pass_warp_barrier(void **) {
	block.warps[self->warp].epoch++;
}

void warp_barrier(place at) {
	collective(pass_warp_barrier, nullptr, at);
}

static void thread_entry() {
	(*block.body)();
	if (!self->copies.empty())
		fault(self->at, "the kernel ends with %zu asynchronous copies that nobody waited for", self->copies.size());
	self->state = waiting::ended;
	fiber_exit();
}

// Orders the numbers below its size as the options ask.
static void permute(std::vector<unsigned> &v) {
	std::iota(v.begin(), v.end(), 0u);
	if (options.order == EMU_REVERSE)
		std::reverse(v.begin(), v.end());
	if (options.order == EMU_RANDOM)
		std::shuffle(v.begin(), v.end(), random_order);
}

static void end_thread(thread *t) {
	fiber_release(&t->f);
	block.ended++;
	self = t;
	if (block.at_barrier)
		fault(block.barrier, "a barrier where %u threads of the block wait, and this one ended without it",
			  block.at_barrier);
	if (block.warps[t->warp].arrived)
		fault(block.warps[t->warp].at, "lanes of a warp wait for this one, which has ended");
	self = nullptr;
}

// Gives every thread that can go on a turn. False: there was none.
static bool sweep(std::vector<unsigned> &turns) {
	bool any = false;
	permute(turns);
	for (unsigned i : turns) {
		thread *t = &block.threads[i];
		if (t->state != waiting::nothing)
			continue;
		any = true;
		self = t;
		fiber_resume(&t->f, thread_entry);
		self = nullptr;
		if (t->state == waiting::ended)
			end_thread(t);
	}
	return any;
}

static void open_barrier() {
	block.at_barrier = 0;
	block.epoch++;
	for (thread &t : block.threads)
		t.state = waiting::nothing;
}

[[noreturn]] static void fault_stuck() {
	for (thread &t : block.threads)
		if (t.state == waiting::warp) {
			self = &t;
			fault(t.at, "waits for lanes of its warp that do not come: %u threads of the block wait at a barrier",
				  block.at_barrier);
		}
	fault(block.barrier, "%u of %zu threads wait at a barrier that the others do not reach", block.at_barrier,
		  block.threads.size());
}

static void place_thread(thread *t, unsigned linear) {
	*t = thread();
	t->linear = linear;
	t->lane = linear % warp_size;
	t->warp = linear / warp_size;
	t->index = {linear % block_shape.x, linear / block_shape.x % block_shape.y,
				linear / (block_shape.x * block_shape.y)};
}

static void run_block(size_t shared_bytes, std::vector<unsigned> &turns) {
	size_t n = block_shape.count();
	block.threads.resize(n);
	for (size_t i = 0; i < n; i++)
		place_thread(&block.threads[i], static_cast<unsigned>(i));
	block.warps.assign(n / warp_size, warp_state());
	block.at_barrier = block.ended = block.epoch = 0;
	shared_begin_block(shared_bytes);
	while (block.ended < n) {
		bool any = sweep(turns);
		if (block.at_barrier == n)
			open_barrier();
		else if (!any)
			fault_stuck();
	}
	counters.blocks++;
	counters.threads += n;
}

void run_kernel(const char *name, dim3 grid, dim3 shape, size_t shared_bytes, const std::function<void()> &body) {
	block.kernel = name;
	block.body = &body;
	grid_shape = grid;
	block_shape = shape;
	block_index = {};
	size_t n = shape.count();
	if (!n || n > max_block_threads || n % warp_size)
		fault({}, "blocks of %zu threads: must be 32 to 1024, whole warps", n);
	if (!grid.count() || grid.y > 65535 || grid.z > 65535)
		fault({}, "a grid of (%u,%u,%u) blocks: x 1 to 2^31-1, y and z 1 to 65535", grid.x, grid.y, grid.z);
	counters.launches++;
	std::vector<unsigned> blocks(grid.count()), turns(n);
	permute(blocks);
	for (unsigned i : blocks) {
		block_index = {i % grid.x, i / grid.x % grid.y, i / (grid.x * grid.y)};
		run_block(shared_bytes, turns);
	}
	block.kernel = nullptr;
}

} // namespace emu
