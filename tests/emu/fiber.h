// fiber.h: stackful coroutines, resumed by one scheduler and yielding to it. Stacks are kept for
// the next fiber, end in a page that faults, and every switch is announced to AddressSanitizer.
#ifndef RV_TESTS_EMU_FIBER_H
#define RV_TESTS_EMU_FIBER_H

#include <cstddef>
#include <cstdint>

namespace emu {

struct fiber {
	void *context = nullptr; // where its registers are saved; null: not started
	void *stack = nullptr;
	void *asan_stack = nullptr; // AddressSanitizer's copy of its frames
};

// Starts `f`, or goes on where it yielded; returns when it yields or ends. A fiber runs `entry`,
// which ends with fiber_exit().
void fiber_resume(fiber *f, void (*entry)());
// To be called inside the fiber that runs now.
void fiber_yield();
[[noreturn]] void fiber_exit();
// After its fiber_exit(): its stack is free for others.
void fiber_release(fiber *f);
uint64_t fiber_switches();

} // namespace emu

#endif
