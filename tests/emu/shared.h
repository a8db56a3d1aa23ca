// shared.h: the shared memory of a block, every access checked.
//
// A kernel sees it through emu::shared<T>, which stands where device code has T *. Found, with
// kernel, block, thread and line: access out of the array's bounds; reading what nobody wrote;
// misaligned vectors; and races: two threads touch the same element, at least one writes, and no
// barrier (of the block, or of the warp that both are in) lies between. Races are found in any
// order of threads, because what is checked is the barrier, not the value.
#ifndef RV_TESTS_EMU_SHARED_H
#define RV_TESTS_EMU_SHARED_H

#include "tests/emu/block.h"

#include <cstring>
#include <type_traits>

namespace emu {

constexpr size_t max_static_shared_bytes = 48 << 10, max_dynamic_shared_bytes = 163 << 10; // of sm_80

void shared_begin_block(size_t dynamic_bytes);
// The array that `key` stands for in this block; made at the first call.
shared_region static_shared(const void *key, size_t bytes);
shared_region dynamic_shared();

// Fault if the running thread may not; else take note. `bytes` from `p`, which lies in `r`.
void shared_read(const shared_region &r, const char *p, size_t bytes, place at);
void shared_write(const shared_region &r, const char *p, size_t bytes, place at);

template <class T> class shared_element;

// An index that knows where it was written: the line in reports of what was wrong there.
struct source_index {
	ptrdiff_t n;
	place at;
	template <class I, class = std::enable_if_t<std::is_integral_v<I>>>
	source_index(I n_, const char *file = __builtin_FILE(), int line = __builtin_LINE())
		: n(static_cast<ptrdiff_t>(n_)), at{file, line} {}
};

// A pointer into shared memory.
template <class T> class shared {
  public:
	explicit shared(shared_region r) : shared(r, r.begin) {}
	shared(shared_region r, char *p) : region(r), address(p) {}
	shared operator+(ptrdiff_t n) const { return shared(region, address + n * static_cast<ptrdiff_t>(sizeof(T))); }
	shared_element<T> operator[](source_index i) const { return shared_element<T>(*this + i.n, i.at); }
	template <class U> shared<U> as() const { return shared<U>(region, address); }

	T load(place at) const {
		shared_read(region, address, sizeof(T), at);
		T value;
		memcpy(&value, address, sizeof value);
		return value;
	}
	void store(const T &value, place at) const {
		shared_write(region, address, sizeof(T), at);
		memcpy(address, &value, sizeof value);
	}

	shared_region region;
	char *address;
};

// What shared<T>::operator[] gives: reads as a T, assigned as a T.
template <class T> class shared_element {
  public:
	shared_element(shared<T> p_, place at_) : p(p_), at(at_) {}
	shared_element(const shared_element &) = default;
	operator T() const { return p.load(at); }
	T operator=(const T &value) const {
		p.store(value, at);
		return value;
	}
	T operator=(const shared_element &other) const { return *this = static_cast<T>(other); }
	T operator+=(const T &value) const { return *this = static_cast<T>(*this) + value; }
	shared<T> operator&() const { return p; }

  private:
	shared<T> p;
	place at;
};

} // namespace emu

#endif
