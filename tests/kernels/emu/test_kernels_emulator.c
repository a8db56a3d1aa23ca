/* test_kernels_emulator.c: the emulator finds planted bugs, in every order of threads, and finds
 * none where there is none. A bug that it finds ends the process that runs the kernel: a child of
 * this one, whose words are read. */
#include "tests/emu/runtime.h"
#include "tests/emu/sanitizer.h"
#include "tests/kernels/emu/buggy.h"
#include "tests/kernels/emu/child.h"
#include "tests/kernels/fixture.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#ifdef EMU_ASAN
#define SANITIZED true
#else
#define SANITIZED false
#endif

enum { RIGHT = 0, WRONG = 1 };

struct kernel_run {
	const struct buggy *b;
	bool planted;
	const struct emu_options *options;
};

static int run_kernel(const void *ctx) {
	const struct kernel_run *r = ctx;
	emu_configure(r->options);
	return r->b->run(r->planted) ? RIGHT : WRONG;
}

static void check_found(const struct buggy *b, const struct emu_options *options) {
	struct child_outcome o = child_run(run_kernel, &(struct kernel_run){b, true, options});
	if (WIFEXITED(o.status) && WEXITSTATUS(o.status) == RIGHT)
		fail_msg("%s: not found (order %d, streams %d)", b->name, options->order, options->streams);
	if (!b->found) {
		assert_int_equal(WEXITSTATUS(o.status), WRONG);
		return;
	}
	if (!b->sanitizer)
		assert_int_equal(WEXITSTATUS(o.status), EMU_FAULT_STATUS);
	if (!strstr(o.text, b->found) || !strstr(o.text, "kernel ") || !strstr(o.text, "block (0,0,0)") ||
		!strstr(o.text, "buggy.cu:"))
		fail_msg("%s: the text lacks \"%s\", the kernel, the block or the line:\n%s", b->name, b->found, o.text);
	if (options->order == EMU_FORWARD)
		print_message("%s\n  %s", b->name, strstr(o.text, "emulator: "));
}

static void planted_bugs_are_found(void **state) {
	(void)state;
	int found = 0;
	for (const struct buggy *b = buggy_kernels; b->name; b++)
		for (int order = EMU_FORWARD; order <= EMU_RANDOM; order++) {
			if (b->sanitizer && !SANITIZED)
				continue;
			const struct emu_options options = {(enum emu_order)order, b->lazy_streams ? EMU_LAZY : EMU_EAGER, 7};
			check_found(b, &options);
			found++;
		}
	print_message("%d of %d\n", found, found);
}

static void what_is_right_stays_right(void **state) {
	(void)state;
	for (const struct buggy *b = buggy_kernels; b->name; b++)
		for (int way = 0; way < 6; way++) {
			const struct emu_options options = {(enum emu_order)(way % 3), way < 3 ? EMU_EAGER : EMU_LAZY, 7};
			emu_configure(&options);
			if (!b->run(false))
				fail_msg("%s: wrong without a bug (order %d, streams %d)", b->name, options.order, options.streams);
		}
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(planted_bugs_are_found),
									   cmocka_unit_test(what_is_right_stays_right)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
