// fiber.cpp: see fiber.h. x86-64 switches with its own few instructions, all else through ucontext.
#include "tests/emu/fiber.h"

#include "tests/emu/sanitizer.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#ifndef EMU_ASAN
static void __sanitizer_start_switch_fiber(void **, const void *, size_t) {}
static void __sanitizer_finish_switch_fiber(void *, const void **, size_t *) {}
#endif
#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace emu {

#ifdef EMU_ASAN
static const size_t stack_bytes = 256 << 10; // red zones make frames large
#else
static const size_t stack_bytes = 64 << 10;
#endif

static std::vector<void *> free_stacks;
static fiber *running;
static void *scheduler_context, *scheduler_asan_stack;
static const void *scheduler_stack;
static size_t scheduler_stack_bytes;
static uint64_t switches;

static void *take_stack() {
	if (!free_stacks.empty()) {
		void *stack = free_stacks.back();
		free_stacks.pop_back();
		return stack;
	}
	size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
	void *p = mmap(nullptr, stack_bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED || mprotect(p, page, PROT_NONE) != 0) {
		perror("emulator: a fiber's stack");
		abort();
	}
	return static_cast<char *>(p) + page;
}

#ifdef __x86_64__
// Saves what a call must keep on the current stack, its pointer in *save, and takes the other stack
// up the same way.
extern "C" void emu_switch(void **save, void *to);
asm(R"(
	.text
	.globl emu_switch
	.type emu_switch, @function
emu_switch:
	pushq %rbp
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	movq %rsp, (%rdi)
	movq %rsi, %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	popq %rbp
	ret
	.size emu_switch, .-emu_switch
)");

enum { SAVED_REGISTERS = 6 };

// A stack as emu_switch leaves one: zeroes for the registers, then `start` as the address to return
// to, above which the stack is aligned as after a call.
static void *new_context(void *stack, void (*start)()) {
	void **top = reinterpret_cast<void **>(static_cast<char *>(stack) + stack_bytes);
	*--top = nullptr;
	*--top = reinterpret_cast<void *>(start);
	top -= SAVED_REGISTERS;
	memset(top, 0, SAVED_REGISTERS * sizeof *top);
	return top;
}

static void switch_context(void **save, void *to) {
	emu_switch(save, to);
}

static void drop_context(void *) {}
#else
static void *new_context(void *stack, void (*start)()) {
	ucontext_t *u = new ucontext_t;
	getcontext(u);
	u->uc_stack.ss_sp = stack;
	u->uc_stack.ss_size = stack_bytes;
	u->uc_link = nullptr;
	makecontext(u, start, 0);
	return u;
}

static void switch_context(void **save, void *to) {
	if (!*save)
		*save = new ucontext_t;
	swapcontext(static_cast<ucontext_t *>(*save), static_cast<ucontext_t *>(to));
}

static void drop_context(void *context) {
	delete static_cast<ucontext_t *>(context);
}
#endif

static void (*fiber_entry)();

static void start() {
	__sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_stack_bytes);
	fiber_entry();
	abort(); // entry ends with fiber_exit()
}

void fiber_resume(fiber *f, void (*entry)()) {
	if (!f->context) {
		f->stack = take_stack();
		f->context = new_context(f->stack, start);
	}
	fiber_entry = entry;
	running = f;
	switches++;
	__sanitizer_start_switch_fiber(&scheduler_asan_stack, f->stack, stack_bytes);
	switch_context(&scheduler_context, f->context);
	__sanitizer_finish_switch_fiber(scheduler_asan_stack, nullptr, nullptr);
	running = nullptr;
}

void fiber_yield() {
	fiber *f = running;
	__sanitizer_start_switch_fiber(&f->asan_stack, scheduler_stack, scheduler_stack_bytes);
	switch_context(&f->context, scheduler_context);
	__sanitizer_finish_switch_fiber(f->asan_stack, nullptr, nullptr);
}

void fiber_exit() {
	__sanitizer_start_switch_fiber(nullptr, scheduler_stack, scheduler_stack_bytes);
	switch_context(&running->context, scheduler_context);
	abort(); // nobody resumes it
}

void fiber_release(fiber *f) {
	drop_context(f->context);
	free_stacks.push_back(f->stack);
	*f = fiber();
}

uint64_t fiber_switches() {
	return switches;
}

} // namespace emu
