/* test_e2e_device.c: workers on GPUs and on processors share a run: the GPU's is the CUDA plugin,
 * its kernels run by the emulator. One of them, one on two of these devices, and one on the CPU end
 * with the same bits, and a replay computes each on what it had. And a GPU is used for no more time
 * and memory than a worker's person allows, looked at from outside (emu/watch.h). */

#include "tests/common/check.h"
#include "tests/common/deadline.h"
#include "tests/e2e/ends.h"
#include "tests/e2e/told.h"
#include "tests/emu/watch.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TINY_RUN                                                                                                       \
	"n-layer = 1\nn-head = 2\nn-embd = 16\ncontext = 16\nbatch = 2\nrounds = 3\n"                                      \
	"steps-per-round = 2\nmin-workers = 3\ndata-shards = 3\nholdout-every = 20\n"                                      \
	"snapshot-every = 2\n" E2E_PATIENT

#define OWN_RUN                                                                                                        \
	"n-layer = 1\nn-head = 1\nn-embd = 8\ncontext = 8\nbatch = 2\nrounds = 100000\n"                                   \
	"steps-per-round = 4\nmin-workers = 1\ndata-shards = 1\n" E2E_PATIENT

#define FEW_ROUNDS                                                                                                     \
	"n-layer = 1\nn-head = 1\nn-embd = 8\ncontext = 8\nbatch = 2\nrounds = 8\n"                                        \
	"steps-per-round = 4\nmin-workers = 1\ndata-shards = 1\nholdout-every = 20\n" E2E_PATIENT

static void start_as(struct e2e *e, int i, const char *program, const char *device, bool streams) {
	const char *const args[] = {"--device", device, "--eval-every", "0", "--stream-state", streams ? "yes" : "no"};
	memcpy(e->worker_args, args, sizeof args);
	e2e_start_worker(e, i, program, "RIVULET_CUDA_PLUGIN=" EMULATED_PLUGIN);
}

static void start_on(struct e2e *e, int i, const char *device) {
	start_as(e, i, NULL, device, false);
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

/* ---- what its person allows of a GPU ---- */

/* Starts a worker on the emulated GPU in a run of its own; returns what the emulator shows. */
static const struct emu_watch *open_watched(struct e2e *e, const char *config, const char *program, bool streams) {
	char path[E2E_PATH], env[E2E_PATH + 32];
	e2e_open(e, config, 1);
	e2e_path(e, "gpu", path);
	const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && ftruncate(fd, sizeof(struct emu_watch)) == 0);
	const struct emu_watch *w = mmap(NULL, sizeof *w, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(w != MAP_FAILED);
	(void)close(fd);
	snprintf(env, sizeof env, EMU_WATCH_ENV "=%s", path);
	assert_int_equal(putenv(env), 0);
	start_as(e, 0, program, "cuda", streams); /* without a sandbox: the emulator writes that file */
	assert_int_equal(unsetenv(EMU_WATCH_ENV), 0);
	return w;
}

static uint64_t now_of(const uint64_t *field) {
	return __atomic_load_n(field, __ATOMIC_ACQUIRE);
}

/* Waits until the GPU works for `least` to `most` percent of the time, while it works for BUSY_NS.
 * A window may have begun before a setting was in force, and on a computer with other work to do
 * any of them may be longer. */
static void wait_for_share(const struct emu_watch *w, double least, double most) {
	enum { BUSY_NS = 100 * 1000 * 1000 };
	double percent = -1;
	for (struct deadline d = deadline_in(PROCESS_WAIT_S, "that share of the GPU's time");
		 percent < least || percent > most;) {
		const uint64_t busy = now_of(&w->busy_ns), since = now_of(&w->ended_ns);
		while (now_of(&w->busy_ns) - busy < BUSY_NS)
			deadline_pause(&d);
		percent = 100 * (double)(now_of(&w->busy_ns) - busy) / (double)(now_of(&w->ended_ns) - since);
	}
}

static void gpu_share_is_kept(const struct e2e *e, const struct emu_watch *w) {
	enum { UNLIMITED = 30, ALLOWED = 10, SLACK = 5 };
	wait_for_share(w, UNLIMITED, 100);
	e2e_tell_ok(e, 0, "set gpu-share=10", "In force now");
	wait_for_share(w, 0, ALLOWED + SLACK);
}

/* It plans anew, for one byte less than it took. */
static void gpu_memory_is_kept(const struct e2e *e, const struct emu_watch *w) {
	const int64_t driver_bytes = 512 << 20; /* MEMORY_DEVICE_OVERHEAD_BYTES */
	char out[2048];
	long from = 0;
	json_t *plan = e2e_wait_event(&e->workers[0], "device_memory", NULL, 0, &from);
	const int64_t planned = e2e_int(plan, "bytes");
	const uint64_t took = now_of(&w->peak_bytes);
	json_decref(plan);
	assert_true(took > 0 && took <= (uint64_t)planned);
	assert_int_not_equal(e2e_tell(e, 0, out, sizeof out, "set gpu-memory=1MiB"), 0);
	assert_non_null(strstr(out, "--gpu-memory allows 1"));
	snprintf(out, sizeof out, "set gpu-share=100 gpu-memory=%lld", (long long)(driver_bytes + planned - 1));
	e2e_tell_ok(e, 0, out, "goes on with it in a moment");
	json_decref(e2e_wait_event(&e->workers[0], "savings", NULL, 0, &from));
	e2e_wait_counted(e, 0);
	assert_true(now_of(&w->peak_bytes) > 0 && now_of(&w->peak_bytes) < took); /* since it was all free */
}

static void wait_for_no_memory(const struct emu_watch *w) {
	for (struct deadline d = deadline_in(PROCESS_WAIT_S, "a GPU without the worker's memory");
		 now_of(&w->device_bytes) + now_of(&w->pinned_bytes) > 0;)
		deadline_pause(&d);
}

static void gpu_memory_is_given_back(const struct e2e *e, const struct emu_watch *w) {
	const uint64_t launches = now_of(&w->launches);
	e2e_tell_ok(e, 0, "set free-memory-after=-1", "In force now"); /* of a GPU it is free at once all the same */
	e2e_tell_ok(e, 0, "pause", "Paused");
	wait_for_no_memory(w);
	const uint64_t at_rest = now_of(&w->launches);
	json_decref(e2e_worker_status(e, 0)); /* a while later */
	assert_true(at_rest >= launches && now_of(&w->launches) == at_rest);
	e2e_tell_ok(e, 0, "resume", "Going on");
	e2e_wait_counted(e, 0);
	assert_true(now_of(&w->device_bytes) > 0);
}

/* What is set while it trains, and a pause, as another process sees them. */
static void a_gpu_stays_its_owners(void **state) {
	static struct e2e e;
	*state = &e;
	const struct emu_watch *w = open_watched(&e, OWN_RUN, "rivulet-worker", true);
	e2e_wait_counted(&e, 0);
	gpu_share_is_kept(&e, w);
	gpu_memory_is_kept(&e, w);
	gpu_memory_is_given_back(&e, w);
}

/* The storage thread stays at a failpoint, for longer than the test: a pause gives the GPU back all
 * the same. The worker that is killed then goes on from what the disk has, and a replay has its
 * bits. */
static void check_a_blocked_disk(void **state, bool streams) {
	static struct e2e e;
	char chain[65], full[65];
	*state = &e;
	assert_int_equal(setenv("RIVULET_FAILPOINT", "replica.begin@3=delay:600000", 1), 0);
	const struct emu_watch *w = open_watched(&e, FEW_ROUNDS, "rivulet-worker-failpoint", streams);
	assert_int_equal(unsetenv("RIVULET_FAILPOINT"), 0);
	json_decref(e2e_wait_event(&e.workers[0], "failpoint", NULL, 0, NULL));
	assert_true(now_of(&w->device_bytes) > 0);
	e2e_tell_ok(&e, 0, "pause", "Paused");
	wait_for_no_memory(w);
	json_decref(e2e_worker_status(&e, 0)); /* it answers */
	process_kill(&e.workers[0]);
	start_as(&e, 0, NULL, "cuda", streams);
	json_decref(e2e_worker_status(&e, 0)); /* as soon as it answers */
	e2e_tell_ok(&e, 0, "resume", "Going on");
	e2e_assert_same_end(&e, (const int[]){0}, 1, chain, full);
	assert_int_equal(setenv("RIVULET_CUDA_PLUGIN", EMULATED_PLUGIN, 1), 0);
	e2e_assert_replayed(&e, 1, chain, full);
	assert_int_equal(unsetenv("RIVULET_CUDA_PLUGIN"), 0);
	e2e_close(&e);
	*state = NULL;
}

static void a_blocked_disk_keeps_no_gpu(void **state) {
	check_a_blocked_disk(state, false);
	check_a_blocked_disk(state, true);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(gpus_and_processors_end_with_the_same_bits, e2e_teardown),
		cmocka_unit_test_teardown(in_sixteen_bits_they_do_too, e2e_teardown),
		cmocka_unit_test_teardown(with_eager_updates_they_do_too, e2e_teardown),
		cmocka_unit_test_teardown(a_gpu_stays_its_owners, e2e_teardown),
		cmocka_unit_test_teardown(a_blocked_disk_keeps_no_gpu, e2e_teardown),
	};
	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
