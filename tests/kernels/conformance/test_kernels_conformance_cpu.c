/* test_kernels_conformance_cpu.c: the cases that every backend has to pass, on `cpu`: what they ask
 * is what the host can do. */
#include "tests/kernels/conformance/conformance.h"

static void body(struct backend *ref, struct backend *cpu, const void *ctx) {
	(void)ref;
	(void)ctx;
	struct conformance_count count = {0};
	conformance_run(cpu, true, &count);
	print_message("%ld operations x sizes, %ld arrays compared\n", count.runs, count.arrays);
}

static void cpu_conforms(void **state) {
	(void)state;
	for_each_variant(body, NULL);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(cpu_conforms)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
