// shared.cpp: see shared.h. Every two bytes of shared memory (the smallest element that kernels
// keep there is a bf16) have a cell that says who touched them last.
#include "tests/emu/shared.h"

#include <vector>

namespace emu {

namespace {

constexpr size_t cell_bytes = 2, array_align = 128;
constexpr unsigned nobody = ~0u;

enum class readers { one, of_a_warp, of_the_block };

// One of the last accesses: by whom, and how far the block and the warp had come.
struct touch {
	unsigned thread = nobody, block_epoch = 0, warp_epoch = 0;
};

struct cell {
	unsigned generation = 0; // of the block that the rest is about
	touch write, read;
	readers read_by = readers::one;
};

struct static_array {
	const void *key;
	shared_region region;
};

struct {
	alignas(array_align) char bytes[max_static_shared_bytes + max_dynamic_shared_bytes];
	cell cells[(max_static_shared_bytes + max_dynamic_shared_bytes) / cell_bytes];
	unsigned generation;
	size_t static_used, dynamic_bytes;
	std::vector<static_array> arrays;
} memory;

touch touch_now() {
	return {self->linear, block_epoch(), warp_epoch(self->warp)};
}

// Does a barrier lie between `t` and the access `now`? (`several`: t stands for lanes of its warp.)
inline bool ordered(const touch &t, const touch &now, bool several) {
	if (t.thread == nobody || t.block_epoch != now.block_epoch)
		return true;
	if (t.thread == now.thread && !several)
		return true;
	return t.thread / warp_size == now.thread / warp_size && t.warp_epoch != now.warp_epoch;
}

inline bool reads_ordered(const cell &c, const touch &now) {
	if (c.read_by == readers::of_the_block)
		return c.read.block_epoch != now.block_epoch;
	return ordered(c.read, now, c.read_by == readers::of_a_warp);
}

inline cell *cell_of(const char *p) {
	cell *c = &memory.cells[static_cast<size_t>(p - memory.bytes) / cell_bytes];
	if (c->generation != memory.generation) {
		*c = cell();
		c->generation = memory.generation;
	}
	return c;
}

inline void note_read(cell *c, const touch &now) {
	bool same_time = c->read.thread != nobody && c->read.block_epoch == now.block_epoch;
	if (!same_time)
		c->read_by = readers::one;
	else if (c->read.thread / warp_size != now.thread / warp_size)
		c->read_by = readers::of_the_block;
	else if (c->read_by != readers::of_the_block)
		c->read_by = c->read.warp_epoch == now.warp_epoch && c->read.thread != now.thread ? readers::of_a_warp
					 : c->read.warp_epoch == now.warp_epoch                               ? c->read_by
																						  : readers::one;
	c->read = now;
}

void check_bounds(const shared_region &r, const char *p, size_t bytes, place at) {
	if (p < r.begin || p + bytes > r.end)
		fault(at, "shared memory out of bounds: bytes %td to %td of an array of %td", p - r.begin,
			  p - r.begin + static_cast<ptrdiff_t>(bytes) - 1, r.end - r.begin);
	size_t align = bytes & (~bytes + 1); // of T: the largest power of two in its size
	if (reinterpret_cast<uintptr_t>(p) % align)
		fault(at, "misaligned access to shared memory: %zu bytes at byte %td of its array", bytes, p - r.begin);
}

} // namespace

void shared_begin_block(size_t dynamic_bytes) {
	if (dynamic_bytes > max_dynamic_shared_bytes)
		fault({}, "%zu bytes of dynamic shared memory: at most %zu", dynamic_bytes, max_dynamic_shared_bytes);
	memory.generation++;
	memory.static_used = 0;
	memory.dynamic_bytes = dynamic_bytes;
	memory.arrays.clear();
}

shared_region static_shared(const void *key, size_t bytes) {
	for (const static_array &a : memory.arrays)
		if (a.key == key)
			return a.region;
	char *begin = memory.bytes + memory.static_used;
	memory.static_used += (bytes + array_align - 1) / array_align * array_align;
	if (memory.static_used > max_static_shared_bytes)
		fault(self->at, "more than %zu bytes of static shared memory", max_static_shared_bytes);
	memset(begin, 0xff, bytes); // NaN
	memory.arrays.push_back({key, {begin, begin + bytes}});
	return memory.arrays.back().region;
}

shared_region dynamic_shared() {
	static const char key = 0;
	for (const static_array &a : memory.arrays)
		if (a.key == &key)
			return a.region;
	char *begin = memory.bytes + max_static_shared_bytes;
	memset(begin, 0xff, memory.dynamic_bytes);
	memory.arrays.push_back({&key, {begin, begin + memory.dynamic_bytes}});
	return memory.arrays.back().region;
}

void shared_read(const shared_region &r, const char *p, size_t bytes, place at) {
	check_bounds(r, p, bytes, at);
	const touch now = touch_now();
	for (size_t i = 0; i < bytes; i += cell_bytes) {
		cell *c = cell_of(p + i);
		if (c->write.thread == nobody)
			fault(at, "reads shared memory that nobody wrote: byte %td of an array of %td", p - r.begin,
				  r.end - r.begin);
		if (!ordered(c->write, now, false))
			fault(at, "race: reads byte %td of a shared array, written by thread %u with no barrier since", p - r.begin,
				  c->write.thread);
		note_read(c, now);
	}
}

void shared_write(const shared_region &r, const char *p, size_t bytes, place at) {
	check_bounds(r, p, bytes, at);
	const touch now = touch_now();
	for (size_t i = 0; i < bytes; i += cell_bytes) {
		cell *c = cell_of(p + i);
		if (!ordered(c->write, now, false))
			fault(at, "race: writes byte %td of a shared array, as thread %u did with no barrier since", p - r.begin,
				  c->write.thread);
		if (!reads_ordered(*c, now))
			fault(at, "race: writes byte %td of a shared array, read by thread %u with no barrier since", p - r.begin,
				  c->read.thread);
		c->write = now;
	}
}

} // namespace emu
