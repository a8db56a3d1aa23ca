/* test_attack_repeat.c: audits that repeat a member's steps (docs/decisions/0106) name those that a
 * score does not tell from honest ones, and never honest ones. Real processes on loopback. */
#include "net/control/control.h"
#include "tests/common/check.h"
#include "tests/e2e/ends.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 8, WORKERS = 5 };

/* Two audits in each round: all repeat that can. */
#define RUN                                                                                                            \
	"n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 64\nbatch = 8\nsteps-per-round = 4\n"                             \
	"min-workers = 4\nsnapshot-every = 10\nlr = 0.002\nwarmup-steps = 4\n"                                             \
	"audit-training = 1\naudit-repeat = 1\naudit-window = 8\n" E2E_STEADY

static const char short_run[] = RUN "rounds = 14\n";
/* Who lies naps, and rounds last as long: auditors have the time that they need within the window.
 * */
static const char long_run[] = RUN "rounds = 1000\nouter-lr = 0.05\nouter-momentum = 0\n";

static bool has_state(const struct e2e *e, int worker) {
	char dir[E2E_PATH], path[E2E_PATH + 32];
	bool has = false;
	e2e_worker_dir(e, worker, dir);
	for (int slot = 0; slot < 16; slot++) {
		(void)snprintf(path, sizeof path, "%s/inner-%d.rvi", dir, slot);
		has |= access(path, F_OK) == 0;
	}
	return has;
}

/* The dtype and kernels of the machine's choice, portable ones with fp32, bf16, the reference's
 * kernels; one with moments of 8 bits is scored. */
static void honest_members_on_other_hardware_are_named_by_none(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open_published(&e, short_run, BLOCKS, WORKERS);
	e2e_start_worker(&e, 0, NULL, NULL);
	e2e_start_worker(&e, 1, "rivulet-worker-evil", "RIVULET_EVIL=portable=1,bf16=0,nap=1");
	e2e_start_worker(&e, 2, "rivulet-worker-evil", "RIVULET_EVIL=bf16=1");
	e.worker_args[0] = "--moments";
	e.worker_args[1] = "int8";
	e2e_start_worker(&e, 3, NULL, NULL);
	e.worker_args[0] = "--device";
	e.worker_args[1] = "ref";
	e2e_start_worker(&e, 4, NULL, NULL);
	for (int i = 0; i < WORKERS; i++)
		process_assert_exit(&e.workers[i], 0);
	json_t *scores = e2e_status_of(&e, "scores");
	print_message("%d repeat of %d; %d worthy, %d worthless, %d without an answer\n", (int)e2e_int(scores, "repeats"),
				  (int)e2e_int(scores, "drawn"), (int)e2e_int(scores, "worthy"), (int)e2e_int(scores, "worthless"),
				  (int)e2e_int(scores, "unresolved"));
	assert_true(e2e_int(scores, "repeats") >= 4 && e2e_int(scores, "worthy") >= 4);
	assert_int_equal(e2e_int(scores, "worthless"), 0);
	json_decref(scores);
	for (size_t m = 0; m < WORKERS; m++)
		assert_int_equal(e2e_strikes(&e, m), 0);
	for (int i = 0; i < WORKERS; i++)
		assert_false(has_state(&e, i)); /* the run is over */
}

/* A smaller model, as the emulated GPU is slow. */
static const char device_run[] = "n-layer = 1\nn-head = 2\nn-embd = 16\ncontext = 16\nbatch = 4\n"
								 "steps-per-round = 4\nmin-workers = 4\nsnapshot-every = 10\nlr = 0.002\n"
								 "warmup-steps = 4\naudit-training = 1\naudit-repeat = 1\naudit-window = 8\n"
								 "rounds = 12\n" E2E_PATIENT;

static void start_on(struct e2e *e, int i, const char *device, const char *option, const char *value) {
	const char *const args[] = {"--device", device, option, value};
	memset(e->worker_args, 0, sizeof e->worker_args);
	memcpy(e->worker_args, args, sizeof args);
#ifdef EMULATED_PLUGIN
	e2e_start_worker(e, i, NULL, "RIVULET_CUDA_PLUGIN=" EMULATED_PLUGIN);
#else
	e2e_start_worker(e, i, NULL, NULL);
#endif
}

/* Members whose state is divided among devices, or lies in the computer's memory, give theirs and
 * repeat the steps of the others. */
static void members_on_several_devices_repeat_too(void **state) {
	static struct e2e e;
	enum { MEMBERS = 4 };
	*state = &e;
	e2e_open_published(&e, device_run, BLOCKS, MEMBERS);
	start_on(&e, 0, "cpu:2", "--zero", "2");
	start_on(&e, 1, "cpu:2", "--zero", "3");
#ifdef EMULATED_PLUGIN
	start_on(&e, 2, "cuda", "--offload", "yes");
	start_on(&e, 3, "cuda:0,1", "--zero", "3");
#else
	start_on(&e, 2, "cpu", "--zero", "auto");
	start_on(&e, 3, "cpu", "--zero", "auto");
#endif
	for (int i = 0; i < MEMBERS; i++)
		process_assert_exit(&e.workers[i], 0);
	json_t *scores = e2e_status_of(&e, "scores");
	print_message("%d repeat of %d; %d worthy, %d worthless, %d without an answer\n", (int)e2e_int(scores, "repeats"),
				  (int)e2e_int(scores, "drawn"), (int)e2e_int(scores, "worthy"), (int)e2e_int(scores, "worthless"),
				  (int)e2e_int(scores, "unresolved"));
	assert_true(e2e_int(scores, "repeats") >= 2 && e2e_int(scores, "worthy") >= 2);
	assert_int_equal(e2e_int(scores, "worthless"), 0);
	json_decref(scores);
	for (size_t m = 0; m < MEMBERS; m++)
		assert_int_equal(e2e_strikes(&e, m), 0);
}

/* The last of `workers` lies. */
static void assert_named_of(void **state, const char *config, int workers, const char *evil) {
	static struct e2e e;
	const int liar = workers - 1;
	char name[16];
	*state = &e;
	(void)snprintf(name, sizeof name, "member %d: ", liar);
	e2e_open_published(&e, config, BLOCKS, workers);
	e2e_gate_at(&e, 1); /* the liar is there from then on */
	e2e_start_gated_workers(&e, liar);
	e2e_start_worker(&e, liar, "rivulet-worker-evil", evil);
	e2e_open_gate(&e);
	json_t *found = e2e_wait_event(&e.coordinator, "training_not_repeated", NULL, 0, NULL);
	print_message("%s\n", e2e_text(found, "text"));
	assert_non_null(strstr(e2e_text(found, "text"), name));
	json_decref(found);
	json_decref(e2e_wait_event(&e.workers[liar], "quarantine", NULL, 0, NULL));
	for (int m = 0; m < liar; m++)
		assert_int_equal(e2e_strikes(&e, (size_t)m), 0);
	assert_true(e2e_strikes(&e, (size_t)liar) > 0);
	process_signal(&e.workers[0], SIGTERM);
	process_assert_exit(&e.workers[0], 0);
	assert_true(has_state(&e, 0)); /* it may go on */
}

static void assert_named(void **state, const char *evil) {
	assert_named_of(state, long_run, WORKERS, evil);
}

static void one_that_makes_half_of_its_steps_is_named(void **state) {
	assert_named(state, "RIVULET_EVIL=lazy=1,nap=1");
}

/* Six in two rows: the two others of its row make its steps again. */
static void one_that_makes_half_of_its_steps_is_named_in_its_row(void **state) {
	enum { SIX = 6 };
	char config[sizeof long_run + 16];
	(void)snprintf(config, sizeof config, "%srow-size = 5\n", long_run);
	assert_named_of(state, config, SIX, "RIVULET_EVIL=lazy=1,nap=1");
}

static void one_that_sends_an_old_contribution_is_named(void **state) {
	assert_named(state, "RIVULET_EVIL=stale=1,nap=1");
}

static void one_that_trains_on_few_sequences_is_named(void **state) {
	assert_named(state, "RIVULET_EVIL=other=8,nap=1");
}

static void one_that_trains_in_every_other_round_is_named(void **state) {
	assert_named(state, "RIVULET_EVIL=half=1,nap=1");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(honest_members_on_other_hardware_are_named_by_none, e2e_teardown),
		cmocka_unit_test_teardown(members_on_several_devices_repeat_too, e2e_teardown),
		cmocka_unit_test_teardown(one_that_makes_half_of_its_steps_is_named, e2e_teardown),
		cmocka_unit_test_teardown(one_that_makes_half_of_its_steps_is_named_in_its_row, e2e_teardown),
		cmocka_unit_test_teardown(one_that_sends_an_old_contribution_is_named, e2e_teardown),
		cmocka_unit_test_teardown(one_that_trains_in_every_other_round_is_named, e2e_teardown),
		cmocka_unit_test_teardown(one_that_trains_on_few_sequences_is_named, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
