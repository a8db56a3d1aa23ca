/* device_conformance.c: every operation of the CUDA plugin, on the GPU that is there, against `ref`: fp32 and bf16. Not
 * of CTest: ./dev gpu runs it. Exit status 77: there is no GPU, or no plugin. `--light`: the small sizes alone, for
 * compute-sanitizer. */
#include "kernels/device.h"
#include "tests/kernels/conformance/conformance.h"

#include <stdio.h>
#include <string.h>

enum { EXIT_SKIPPED = 77 };

static bool all_sizes = true;

static void conforms(enum dtype compute) {
	struct device_choice device;
	struct backend *be;
	struct rv_errtext et = {0};
	struct conformance_count count = {0};
	const struct backend_options opt = {.compute = compute, .isa = "auto"};
	assert_int_equal(device_choose("cuda", &device, &et), RV_OK);
	if (device_open(&device, 0, &opt, &be, &et) != RV_OK)
		fail_msg("%s", et.text);
	print_message("%s\n", be->ops->describe(be));
	conformance_run(be, all_sizes, &count);
	backend_close(be);
	print_message("%ld operations x sizes, %ld arrays compared\n", count.runs, count.arrays);
}

static void fp32_conforms(void **state) {
	(void)state;
	conforms(DTYPE_F32);
}

static void bf16_conforms(void **state) {
	(void)state;
	conforms(DTYPE_BF16);
}

int main(int argc, char **argv) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(fp32_conforms), cmocka_unit_test(bf16_conforms)};
	struct device_choice device;
	struct rv_errtext et = {0};
	if (device_choose("cuda", &device, &et) != RV_OK) {
		fprintf(stderr, "%s\n", et.text);
		return EXIT_SKIPPED;
	}
	all_sizes = !(argc > 1 && strcmp(argv[1], "--light") == 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
