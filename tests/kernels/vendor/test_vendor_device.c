/* test_vendor_device.c: --device on a machine with a GPU whose libraries are missing: the CPU is taken where nothing
 * else was asked for, and the text says how to install them, to its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/device.h"

#include <stdlib.h>
#include <string.h>

static void test_without_cublaslt(void **state) {
	(void)state;
	struct device_choice c;
	struct rv_errtext et = {0};
	assert_int_equal(device_choose("auto", &c, &et), RV_OK);
	assert_string_equal(c.backend, "cpu");
	assert_non_null(strstr(c.why_not_gpu, "no cuBLASLt: libcublasLt.so.13"));
	assert_non_null(strstr(c.why_not_gpu, "pip install nvidia-cublas, then set RIVULET_PYTHON="));
	assert_non_null(strstr(c.why_not_gpu, "sudo dnf install libcublas-13-0"));
	assert_null(device_libraries(&c));
	assert_false(device_has_gpu());
	assert_int_equal(device_choose("cuda", &c, &et), RV_E_NOTFOUND);
	assert_non_null(strstr(et.text, "sudo dnf install libcublas-13-0; --device cpu trains without a GPU"));
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_without_cublaslt)};
	(void)setenv("RIVULET_CUDA_PLUGIN", PLUGIN_WITHOUT_CUBLASLT, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
