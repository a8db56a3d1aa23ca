/* test_e2e_device.c: workers on GPUs and on processors share a run: the GPU's is the CUDA plugin,
 * its kernels run by the emulator. One of them, one on two of these devices, and one on the CPU end
 * with the same bits, and a replay computes each on what it had. */

#include "tests/common/check.h"
#include "tests/e2e/ends.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TINY_RUN                                                                                                       \
	"n-layer = 1\nn-head = 2\nn-embd = 16\ncontext = 16\nbatch = 2\nrounds = 3\n"                                      \
	"steps-per-round = 2\nmin-workers = 3\ndata-shards = 3\nholdout-every = 20\n"                                      \
	"snapshot-every = 2\n" E2E_PATIENT

static void start_on(struct e2e *e, int i, const char *device) {
	const char *const args[] = {"--device", device, "--eval-every", "0"};
	memcpy(e->worker_args, args, sizeof args);
	e2e_start_worker(e, i, NULL, "RIVULET_CUDA_PLUGIN=" EMULATED_PLUGIN);
}

static void runs_on(const struct e2e *e, int i, const char *device) {
	json_t *started = e2e_wait_event(&e->workers[i], "started", NULL, 0, NULL);
	assert_non_null(strstr(e2e_text(started, "device"), device));
	json_decref(started);
}

/* Which libraries the GPU is used with is logged at the start. */
static void logs_libraries(const struct e2e *e, int i) {
	json_t *found = e2e_wait_event(&e->workers[i], "gpu_libraries", NULL, 0, NULL);
	assert_non_null(strstr(e2e_text(found, "found"), "no libraries of NVIDIA"));
	json_decref(found);
}

/* Other bits than the recorded ones would be blamed on the run. */
static void check_replay_without_a_gpu(struct e2e *e) {
	char log[E2E_PATH + 16], text[4096] = "";
	e2e_replay(e, 3, "replay-cpu", 1);
	snprintf(log, sizeof log, "%s/replay-cpu.log", e->dir);
	FILE *f = fopen(log, "r");
	assert_non_null(f);
	size_t n = fread(text, 1, sizeof text - 1, f);
	(void)fclose(f);
	text[n] = 0;
	assert_non_null(strstr(text, "member 1 computed on cuda"));
}

/* Only where a GPU computes a run of dtype fp32. */
static void says_what_fp32_costs(const struct e2e *e, int i) {
	json_t *notice = e2e_wait_event(&e->workers[i], "fp32_on_gpu", NULL, 0, NULL);
	assert_non_null(strstr(e2e_text(notice, "text"), "a worker cannot change it"));
	json_decref(notice);
}

static void check_a_run(void **state, const char *config, bool fp32) {
	static struct e2e e;
	*state = &e;
	char chain[65], full[65];
	e2e_open(&e, config, 3);
	start_on(&e, 0, "cpu");
	start_on(&e, 1, "cuda");
	start_on(&e, 2, "cuda:0,1");
	runs_on(&e, 0, "cpu");
	runs_on(&e, 1, "emulator");
	if (fp32)
		says_what_fp32_costs(&e, 1);
	runs_on(&e, 2, "2 x cuda:0 emulator");
	logs_libraries(&e, 1);
	logs_libraries(&e, 2);
	assert_null(e2e_find_event(e.workers[0].log, "gpu_libraries", NULL, 0, NULL));
	e2e_assert_same_end(&e, (const int[]){0, 1, 2}, 3, chain, full);
	assert_int_equal(setenv("RIVULET_CUDA_PLUGIN", EMULATED_PLUGIN, 1), 0);
	e2e_assert_replayed(&e, 3, chain, full); /* each worker on the device that it had */
	assert_int_equal(unsetenv("RIVULET_CUDA_PLUGIN"), 0);
	check_replay_without_a_gpu(&e);
	e2e_close(&e);
	*state = NULL;
}

static void gpus_and_processors_end_with_the_same_bits(void **state) {
	check_a_run(state, TINY_RUN, false);
}

static void in_sixteen_bits_they_do_too(void **state) {
	check_a_run(state, TINY_RUN "codec = int16\n", false);
}

/* A worker's own start lies on the host, and its share of an outer step is made there. */
static void with_eager_updates_they_do_too(void **state) {
	check_a_run(state, TINY_RUN "updates = eager\neager-share = 0.25\ndtype = fp32\n", true);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(gpus_and_processors_end_with_the_same_bits, e2e_teardown),
		cmocka_unit_test_teardown(in_sixteen_bits_they_do_too, e2e_teardown),
		cmocka_unit_test_teardown(with_eager_updates_they_do_too, e2e_teardown),
	};
	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
