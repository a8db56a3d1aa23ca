/* test_sdpa_plans.c: cuDNN accepts our graphs of attention, has an engine for each, compiles it, and makes the plan:
 * without a GPU, for devices that are only described. The driver is stand_in_driver.c: that the compiled kernel runs is
 * ./dev gpu's to show. */
#include "kernels/cuda/sdpa_graph.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* By compute capability; the figures are public ones of an A100, an RTX 4090 and an H100. */
static const struct device {
	const char *name;
	int version, multiprocessors, shared_per_sm, shared_optin, l2_bytes;
} devices[] = {{"sm_80", 800, 108, 167936, 166912, 41943040},
			   {"sm_89", 890, 128, 102400, 101376, 75497472},
			   {"sm_90", 900, 132, 233472, 232448, 52428800}};

static const struct attention_shape shapes[] = {
	{.b = 4, .t = 1024, .heads = 12, .kv_heads = 12, .head_dim = 64},
	{.b = 2, .t = 2048, .heads = 16, .kv_heads = 16, .head_dim = 128},
	{.b = 2, .t = 1024, .heads = 32, .kv_heads = 8, .head_dim = 64},
	{.b = 2, .t = 512, .heads = 8, .kv_heads = 2, .head_dim = 128},
};

/* What cuDNN asks to know of a device. */
static void describe(const struct device *d, char *json, size_t cap) {
	int n = snprintf(json, cap,
					 "{\"version\": 91900, \"schemaVersion\": 1, \"cudnnVersion\": 91900, \"deviceName\": \"%s\", "
					 "\"deviceVer\": %d, \"driverVer\": 13000, \"multiProcessorCount\": %d, \"warpSize\": 32, "
					 "\"maxThreadsPerBlock\": 1024, \"maxThreadsPerSM\": 2048, \"maxCtasPerSM\": 32, "
					 "\"maxBlockSize\": [1024, 1024, 64], \"maxGridSize\": [2147483647, 65535, 65535], "
					 "\"regsPerBlock\": 65536, \"maxRegistersPerSM\": 65536, \"maxSharedMemoryPerBlock\": 49152, "
					 "\"maxSharedMemoryPerBlockOptin\": %d, \"reservedSharedMemoryPerBlock\": 1024, "
					 "\"maxSharedMemoryPerSM\": %d, \"sharedMemPerSM\": %d, \"l2CacheSize\": %d, "
					 "\"totalGlobalMem\": 25769803776, \"smClockRateKHz\": 1410000, \"memClockRateKHz\": 1215000, "
					 "\"supportCoopLaunch\": 1, \"isTccDriver\": 0, \"pciDeviceId\": 0, \"cudaDeviceId\": 0}",
					 d->name, d->version, d->multiprocessors, d->shared_optin, d->shared_per_sm, d->shared_per_sm,
					 d->l2_bytes);
	assert_in_range(n, 1, cap - 1);
}

static void load(struct cudnn_api *api) {
	void *library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fail_msg("%s", dlerror());
#define VENDOR_FUNCTION(result, name, parameters) assert_non_null(*(void **)&api->name = dlsym(library, #name));
#include "kernels/cuda/vendor/cudnn.def"
}

static void check_device(const struct device *d) {
	struct cudnn_api api;
	char json[2048];
	load(&api);
	describe(d, json, sizeof json);
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		for (int backward = 0; backward < 2; backward++) {
			struct sdpa_plan plan;
			const char *why = NULL;
			if (!sdpa_plan_make(&api, NULL, json, shapes[i], backward == 1, &plan, &why))
				fail_msg("%s, shape %zu, %s: no plan: %s", d->name, i, backward ? "backward" : "forward", why);
			assert_non_null(plan.plan);
			assert_true(plan.workspace_bytes >= 0);
			sdpa_plan_release(&api, &plan);
			assert_int_equal(plan.n, 0);
		}
}

static void test_plans_sm_80(void **state) {
	(void)state;
	check_device(&devices[0]);
}

static void test_plans_sm_89(void **state) {
	(void)state;
	check_device(&devices[1]);
}

static void test_plans_sm_90(void **state) {
	(void)state;
	check_device(&devices[2]);
}

/* A shape that no engine takes is refused with the step's name, and nothing is left. */
static void test_refused(void **state) {
	(void)state;
	const struct attention_shape odd = {.b = 1, .t = 64, .heads = 3, .kv_heads = 3, .head_dim = 20};
	struct cudnn_api api;
	struct sdpa_plan plan;
	const char *why = NULL;
	char json[2048];
	load(&api);
	describe(&devices[1], json, sizeof json);
	assert_false(sdpa_plan_make(&api, NULL, json, odd, false, &plan, &why));
	assert_non_null(why);
	assert_int_equal(plan.n, 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_plans_sm_80), cmocka_unit_test(test_plans_sm_89),
									   cmocka_unit_test(test_plans_sm_90), cmocka_unit_test(test_refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
