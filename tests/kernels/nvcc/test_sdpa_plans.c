/* test_sdpa_plans.c: cuDNN accepts our graphs of attention, has an engine for each, compiles it,
 * and makes the plan: without a GPU, for devices that are only described. The driver is
 * stand_in_driver.c: that the compiled kernel runs is ./dev gpu's to show. */
#include "kernels/cuda/sdpa_faults.h"
#include "kernels/cuda/sdpa_graph.h"
#include "tests/common/check.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { LEAST_SM = 80 };

/* By compute capability; the figures are public ones of an RTX 2080 Ti, A100, RTX 3080, RTX 4090,
 * H100, B200 and RTX 5090. A plan takes 0.6 s to make: each device has some of the shapes, each
 * shape is for two devices at least. */
static const struct device {
	const char *name;
	int sm, multiprocessors, shared_per_sm, shared_optin, l2_bytes;
	unsigned shapes; /* bit i: shapes[i] */
} sm_75 = {"sm_75", 75, 68, 65536, 65536, 5767168, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4},
  sm_80 = {"sm_80", 80, 108, 167936, 166912, 41943040, 1 << 0 | 1 << 2},
  sm_86 = {"sm_86", 86, 68, 102400, 101376, 5242880, 1 << 1 | 1 << 3},
  sm_89 = {"sm_89", 89, 128, 102400, 101376, 75497472, 1 << 0 | 1 << 4},
  sm_90 = {"sm_90", 90, 132, 233472, 232448, 52428800, 1 << 0 | 1 << 1 | 1 << 4},
  sm_100 = {"sm_100", 100, 148, 233472, 232448, 132120576, 1 << 2 | 1 << 3},
  sm_120 = {"sm_120", 120, 170, 102400, 101376, 100663296, 1 << 1 | 1 << 2 | 1 << 3};

/* Head sizes 32 to 128, shared heads, lengths that are no multiples of a tile, and two tokens. */
static const struct attention_shape shapes[] = {
	{.b = 4, .t = 1024, .heads = 12, .kv_heads = 12, .head_dim = 64},
	{.b = 2, .t = 2048, .heads = 16, .kv_heads = 4, .head_dim = 128},
	{.b = 1, .t = 1023, .heads = 2, .kv_heads = 1, .head_dim = 32},
	{.b = 2, .t = 129, .heads = 6, .kv_heads = 2, .head_dim = 80},
	{.b = 1, .t = 2, .heads = 8, .kv_heads = 8, .head_dim = 96},
};

/* What cuDNN asks to know of a device. */
static void describe(const struct cudnn_api *api, const struct device *d, char *json, size_t cap) {
	int version = (int)api->cudnnGetVersion();
	int n = snprintf(json, cap,
					 "{\"version\": %d, \"schemaVersion\": 1, \"cudnnVersion\": %d, \"deviceName\": \"%s\", "
					 "\"deviceVer\": %d, \"driverVer\": 13000, \"multiProcessorCount\": %d, \"warpSize\": 32, "
					 "\"maxThreadsPerBlock\": 1024, \"maxThreadsPerSM\": 2048, \"maxCtasPerSM\": 32, "
					 "\"maxBlockSize\": [1024, 1024, 64], \"maxGridSize\": [2147483647, 65535, 65535], "
					 "\"regsPerBlock\": 65536, \"maxRegistersPerSM\": 65536, \"maxSharedMemoryPerBlock\": 49152, "
					 "\"maxSharedMemoryPerBlockOptin\": %d, \"reservedSharedMemoryPerBlock\": 1024, "
					 "\"maxSharedMemoryPerSM\": %d, \"sharedMemPerSM\": %d, \"l2CacheSize\": %d, "
					 "\"totalGlobalMem\": 25769803776, \"smClockRateKHz\": 1410000, \"memClockRateKHz\": 1215000, "
					 "\"supportCoopLaunch\": 1, \"isTccDriver\": 0, \"pciDeviceId\": 0, \"cudaDeviceId\": 0}",
					 version, version, d->name, 10 * d->sm, d->multiprocessors, d->shared_optin, d->shared_per_sm,
					 d->shared_per_sm, d->l2_bytes);
	assert_in_range(n, 1, cap - 1);
}

static void load(struct cudnn_api *api) {
	void *library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fail_msg("%s", dlerror());
#define VENDOR_FUNCTION(result, name, parameters) assert_non_null(*(void **)&api->name = dlsym(library, #name));
#include "kernels/cuda/vendor/cudnn.def"
}

/* Makes the plan where our table of cuDNN's faults allows it, as sdpa.c does. Returns whether there
 * is one. */
static bool has_plan(const struct cudnn_api *api, const struct device *d, const char *json,
					 struct attention_shape shape, bool backward, const char **why) {
	const struct sdpa_question q = {api->cudnnGetVersion(), d->sm, backward, shape};
	struct sdpa_plan plan;
	*why = sdpa_fault(&q);
	if (*why || !sdpa_plan_make(api, NULL, json, shape, backward, &plan, why))
		return false;
	assert_non_null(plan.plan);
	assert_true(plan.workspace_bytes >= 0);
	sdpa_plan_release(api, &plan);
	assert_int_equal(plan.n, 0);
	return true;
}

static void check_device(void **state) {
	const struct device *d = *state;
	struct cudnn_api api;
	char json[2048];
	const char *why;
	load(&api);
	describe(&api, d, json, sizeof json);
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		for (int backward = 0; backward < 2 && (d->shapes >> i & 1); backward++) {
			bool expected = d->sm >= LEAST_SM;
			if (has_plan(&api, d, json, shapes[i], backward, &why) != expected)
				fail_msg("%s, shape %zu, %s: %s", d->name, i, backward ? "backward" : "forward",
						 expected ? why : "there is a plan");
		}
}

/* cuDNN makes plans for one token (seen with 9.19) that it does not support: it is not asked. */
static void one_token_is_not_asked(void **state) {
	(void)state;
	struct cudnn_api api;
	char json[2048];
	const char *why;
	const struct attention_shape one = {.b = 1, .t = 1, .heads = 1, .kv_heads = 1, .head_dim = 32};
	load(&api);
	describe(&api, &sm_90, json, sizeof json);
	for (int backward = 0; backward < 2; backward++) {
		assert_false(has_plan(&api, &sm_90, json, one, backward, &why));
		assert_non_null(strstr(why, "single token"));
	}
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
	describe(&api, &sm_89, json, sizeof json);
	assert_false(sdpa_plan_make(&api, NULL, json, odd, false, &plan, &why));
	assert_non_null(why);
	assert_int_equal(plan.n, 0);
}

#define DEVICE(d) cmocka_unit_test_prestate(check_device, (void *)(uintptr_t) & (d))

int main(void) {
	const struct CMUnitTest tests[] = {
		DEVICE(sm_75),
		DEVICE(sm_80),
		DEVICE(sm_86),
		DEVICE(sm_89),
		DEVICE(sm_90),
		DEVICE(sm_100),
		DEVICE(sm_120),
		cmocka_unit_test(one_token_is_not_asked),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
