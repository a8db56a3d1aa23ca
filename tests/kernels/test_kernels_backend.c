/* test_kernels_backend.c: the registry, opening, and the memory of a backend. */
#include "tests/kernels/fixture.h"

#include <stdio.h>
#include <string.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

static void registry_lists_cpu_first_and_ref_last(void **state) {
	(void)state;
	int n = 0;
	while (backend_registry[n])
		n++;
	assert_string_equal(backend_registry[0]->name, "cpu");
	assert_string_equal(backend_registry[n - 1]->name, "ref");
}

static void unknown_name_lists_what_there_is(void **state) {
	(void)state;
	struct backend *be;
	struct rv_errtext et = {0};
	const struct backend_options opt = {.threads = 1};
	assert_int_equal(backend_open("tpu", &opt, &be, &et), RV_E_NOTFOUND);
	assert_null(be);
	assert_non_null(strstr(et.text, "tpu"));
	assert_non_null(strstr(et.text, "cpu, ref"));
}

static void options_outside_their_range_are_refused(void **state) {
	(void)state;
	struct backend *be;
	struct rv_errtext et = {0};
	const struct backend_options threads = {.threads = 257}, negative = {.threads = -1},
								 isa = {.threads = 1, .isa = "avx1024"};
	assert_int_equal(backend_open("cpu", &threads, &be, &et), RV_E_RANGE);
	assert_non_null(strstr(et.text, "257"));
	assert_int_equal(backend_open("cpu", &negative, &be, &et), RV_E_RANGE);
	assert_int_equal(backend_open("cpu", &isa, &be, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "avx1024"));
	assert_null(be);
}

static void ref_refuses_bf16(void **state) {
	(void)state;
	struct backend *be;
	struct rv_errtext et = {0};
	const struct backend_options opt = {.threads = 1, .compute = DTYPE_BF16};
	assert_int_equal(backend_open("ref", &opt, &be, &et), RV_E_UNSUPPORTED);
	assert_null(be);
}

#if defined(__aarch64__)
/* The kernel's word for it: an emulator shows the host's /proc/cpuinfo. */
static bool processor_multiplies_bf16(void) {
	return (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0;
}
#else
/* /proc/cpuinfo is the judge: what the kernel says of the processor. */
static bool cpuinfo_names(const char *field, const char *what) {
	char line[8192], word[64];
	bool found = false;
	FILE *f = fopen("/proc/cpuinfo", "r");
	assert_non_null(f);
	snprintf(word, sizeof word, " %s ", what);
	while (!found && fgets(line, sizeof line, f))
		if (strncmp(line, field, strlen(field)) == 0) {
			line[strcspn(line, "\n")] = ' ';
			found = strstr(line, word) != NULL;
		}
	(void)fclose(f);
	return found;
}

static bool processor_multiplies_bf16(void) {
	if (!cpuinfo_names("flags", "avx512dq"))
		return false;
	if (cpuinfo_names("flags", "amx_bf16"))
		return true;
	return cpuinfo_names("flags", "avx512_bf16") && !cpuinfo_names("vendor_id", "GenuineIntel");
}
#endif

static void bf16_is_the_faster_dtype_only_where_the_device_multiplies_it(void **state) {
	(void)state;
	enum dtype of_this_cpu = processor_multiplies_bf16() ? DTYPE_BF16 : DTYPE_F32;
	assert_int_equal(backend_faster_dtype("cpu", "auto"), of_this_cpu);
	assert_int_equal(backend_faster_dtype("cpu", NULL), of_this_cpu);
	assert_int_equal(backend_faster_dtype("cpu", "avx2"), DTYPE_F32);
	assert_int_equal(backend_faster_dtype("cpu", "portable"), DTYPE_F32);
	assert_int_equal(backend_faster_dtype("ref", "auto"), DTYPE_F32);
	assert_int_equal(backend_faster_dtype("cuda", "auto"), DTYPE_BF16);
}

static void memory_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	(void)ref;
	const size_t bytes = *(const size_t *)ctx;
	struct rv_errtext et = {0};
	void *p;
	assert_int_equal(cpu->ops->alloc(cpu, bytes, &p, &et), RV_OK);
	assert_int_equal((uintptr_t)p % 64, 0);
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(((char *)p)[i], 0);
	char in[3] = "abc", out[3] = "";
	if (bytes >= sizeof in) {
		cpu->ops->upload(cpu, p, in, sizeof in);
		cpu->ops->download(cpu, out, p, sizeof out);
		assert_memory_equal(in, out, sizeof in);
	}
	cpu->ops->zero(cpu, p, bytes);
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(((char *)p)[i], 0);
	cpu->ops->sync(cpu);
	cpu->ops->free(cpu, p);
}

static void memory_is_zeroed_aligned_and_copied(void **state) {
	(void)state;
	const size_t sizes[] = {0, 1, 65, (3 << 20) + 1};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for_each_variant(memory_body, &sizes[i]);
}

static void too_much_memory_is_a_fault(void **state) {
	(void)state;
	struct backend *be = open_ref();
	struct rv_errtext et = {0};
	void *p = be;
	assert_int_equal(be->ops->alloc(be, PTRDIFF_MAX, &p, &et), RV_E_NOMEM);
	assert_null(p);
	assert_int_equal(be->ops->alloc(be, SIZE_MAX, &p, &et), RV_E_NOMEM);
	assert_non_null(strstr(et.text, "no memory"));
	backend_close(be);
	backend_close(NULL);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registry_lists_cpu_first_and_ref_last),
		cmocka_unit_test(unknown_name_lists_what_there_is),
		cmocka_unit_test(options_outside_their_range_are_refused),
		cmocka_unit_test(ref_refuses_bf16),
		cmocka_unit_test(bf16_is_the_faster_dtype_only_where_the_device_multiplies_it),
		cmocka_unit_test(memory_is_zeroed_aligned_and_copied),
		cmocka_unit_test(too_much_memory_is_a_fault),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
