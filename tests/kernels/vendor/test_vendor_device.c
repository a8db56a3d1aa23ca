/* test_vendor_device.c: --device on a machine with a GPU whose libraries are missing: the GPU is
 * taken, multiplies by our own kernel, and the line for the log says how to install them, to its
 * end. */

#include "kernels/device.h"
#include "tests/common/check.h"

#include <stdlib.h>
#include <string.h>

/* c (2, 2) = a b on the device that `c` is. */
static void check_product(const struct device_choice *choice) {
	const struct backend_options options = {.threads = 1, .compute = DTYPE_F32};
	const float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8};
	struct backend *be;
	float *on_device[3], c[4] = {0};
	assert_ok(device_open(choice, 0, &options, &be, &et));
	for (int i = 0; i < 3; i++)
		assert_ok(be->ops->alloc(be, sizeof a, (void **)&on_device[i], &et));
	be->ops->upload(be, on_device[0], a, sizeof a);
	be->ops->upload(be, on_device[1], b, sizeof b);
	be->ops->product(be, on_device[2], on_device[0], on_device[1], (struct product_shape){.m = 2, .n = 2, .k = 2});
	be->ops->download(be, c, on_device[2], sizeof c);
	be->ops->close(be);
	assert_true(c[0] == 19 && c[1] == 22 && c[2] == 43 && c[3] == 50);
}

static void test_without_cublaslt(void **state) {
	(void)state;
	struct device_choice c;
	assert_ok(device_choose("auto", &c, &et));
	assert_string_equal(c.backend, "cuda");
	assert_string_equal(c.why_not_gpu, "");
	assert_true(device_has_gpu());
	const char *libraries = device_libraries(&c);
	assert_non_null(strstr(libraries, "no cuBLASLt: libcublasLt.so.13"));
	assert_non_null(strstr(libraries, "matrix products are computed by Rivulet's own kernel, slower"));
	assert_non_null(strstr(libraries, "pip install nvidia-cublas nvidia-cudnn-cu13"));
	assert_non_null(strstr(libraries, "sudo dnf install libcublas-13-0"));
	check_product(&c);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_without_cublaslt)};
	(void)setenv("RIVULET_CUDA_PLUGIN", PLUGIN_WITHOUT_CUBLASLT, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
