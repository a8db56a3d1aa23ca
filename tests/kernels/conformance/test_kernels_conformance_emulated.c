/* test_kernels_conformance_emulated.c: the CUDA backend, its kernels run by the emulator
 * (tests/emu/runtime.h), against `ref`: in fp32 and bf16, with the threads of a block in several
 * orders, and with streams that run at once or as late as they may. `--long`: all sizes in every
 * way, several seeds. */
#include "kernels/cuda/cuda_backend.h"
#include "tests/emu/runtime.h"
#include "tests/emu/sanitizer.h"
#include "tests/kernels/conformance/conformance.h"

#include <string.h>
#include <time.h>

static bool long_run;

static const struct {
	const char *name;
	struct emu_options options;
} ways[] = {{"forward, eager", {EMU_FORWARD, EMU_EAGER, 0}}, {"reverse, eager", {EMU_REVERSE, EMU_EAGER, 0}},
			{"random, eager", {EMU_RANDOM, EMU_EAGER, 1}},   {"forward, lazy", {EMU_FORWARD, EMU_LAZY, 0}},
			{"reverse, lazy", {EMU_REVERSE, EMU_LAZY, 0}},   {"random, lazy", {EMU_RANDOM, EMU_LAZY, 2}}};

static double now_s(void) {
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct backend *open_cuda(enum dtype compute) {
	struct rv_errtext et = {0};
	struct backend *be = NULL;
	const struct backend_options opt = {.threads = 1, .compute = compute};
	if (cuda_ops.open(&opt, &be, &et) != RV_OK)
		fail_msg("%s", et.text);
	assert_int_equal(be->act, compute);
	return be;
}

/* Returns the digest of all that was computed. */
static uint64_t run(enum dtype compute, int way, bool all_sizes) {
	struct conformance_count count = {0};
	double begin = now_s();
	emu_configure(&ways[way].options);
	struct backend *be = open_cuda(compute);
	conformance_run(be, all_sizes, &count);
	backend_close(be);
	print_message("%s, %s, %s: %ld operations x sizes, %ld arrays compared, %.1f s\n",
				  compute == DTYPE_F32 ? "fp32" : "bf16", ways[way].name, all_sizes ? "all sizes" : "light ones",
				  count.runs, count.arrays, now_s() - begin);
	return count.digest;
}

#ifdef EMU_ASAN
enum { APART = COUNT(ways) - 1 };
#else
enum { APART = 1 };
#endif

/* What is right has the same bits whichever thread comes first: a difference is a race, if only in
 * global memory, which the emulator does not watch. All ways, and all sizes once, where a fiber
 * costs little; under a sanitizer the first and the last, and the light sizes alone. */
static void run_ways(enum dtype compute) {
	uint64_t first = run(compute, 0, long_run);
	for (int i = APART; i < COUNT(ways); i += APART)
		if (run(compute, i, long_run) != first)
			fail_msg("%s: other bits than %s", ways[i].name, ways[0].name);
#ifndef EMU_ASAN
	if (!long_run)
		(void)run(compute, 0, true);
#endif
}

static void fp32_conforms(void **state) {
	(void)state;
	run_ways(DTYPE_F32);
}

static void bf16_conforms(void **state) {
	(void)state;
	run_ways(DTYPE_BF16);
}

int main(int argc, char **argv) {
	long_run = argc > 1 && strcmp(argv[1], "--long") == 0;
	const struct CMUnitTest tests[] = {cmocka_unit_test(fp32_conforms), cmocka_unit_test(bf16_conforms)};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	struct emu_counters c = emu_count();
	print_message("emulator: %llu launches, %llu blocks, %llu threads, %llu switches\n", (unsigned long long)c.launches,
				  (unsigned long long)c.blocks, (unsigned long long)c.threads, (unsigned long long)c.switches);
	return failed;
}
