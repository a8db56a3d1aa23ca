/* test_e2e_memory.c: the memory that a worker takes is what its plan says, also where its state
 * goes to the disk without a copy: in a run from its beginning, started again from its directory,
 * and after it joined and fetched the state. And what it may write to is little more, so that it
 * runs where memory is not overcommitted. */
#include "e2e.h"
#include "tests/common/check.h"
#include "tests/common/deadline.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { PERCENT = 10, STACKS_MIB = 256 /* of threads, 8 MiB each, and arenas of malloc */ };

static const char config[] = "n-layer = 8\nn-head = 4\nn-embd = 256\ncontext = 32\nbatch = 2\ndata-shards = 2\n"
							 "min-workers = 1\nsteps-per-round = 2\nrounds = 100000\nsnapshot-every = 2\n" E2E_PATIENT;

/* A sanitizer takes memory of its own. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
static const bool sanitized = true;
#else
static const bool sanitized = false;
#endif

static long peak_kib(const struct process *p) {
	char path[64], line[256];
	long kib = 0;
	snprintf(path, sizeof path, "/proc/%d/status", (int)p->pid);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (kib == 0 && fgets(line, sizeof line, f))
		(void)sscanf(line, "VmHWM: %ld", &kib);
	fclose(f);
	return kib;
}

/* Returns the addresses that are the process's own to write to: with vm.overcommit_memory = 2 the
 * system has to have as much memory and swap for them, those that are mapped without a reserve
 * included. */
static long committed_kib(const struct process *p) {
	char path[64], line[256];
	long kib = 0;
	snprintf(path, sizeof path, "/proc/%d/maps", (int)p->pid);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		unsigned long long from, to;
		char may[5];
		if (sscanf(line, "%llx-%llx %4s", &from, &to, may) == 3 && may[1] == 'w' && may[3] == 'p')
			kib += (long)((to - from) / 1024);
	}
	fclose(f);
	return kib;
}

/* Waits until the process that runs now has trained so many rounds, and compares its peak with its
 * plan, in the log from *from on. */
static void check_peak(const struct process *p, const char *when, long *from) {
	enum { ROUNDS = 5 }; /* two snapshots */
	json_t *plan = e2e_wait_event(p, "memory", NULL, 0, from);
	for (int i = 0; i < ROUNDS; i++)
		json_decref(e2e_wait_event(p, "round", NULL, 0, from));
	const double planned = (double)e2e_int(plan, "total_bytes") / (1 << 20), peak = (double)peak_kib(p) / 1024;
	const double committed = (double)committed_kib(p) / 1024;
	json_decref(plan);
	print_message("%s: planned %.1f MiB, peak %.1f MiB, committed %.1f MiB\n", when, planned, peak, committed);
	assert_true(sanitized || committed <= planned * (100 + PERCENT) / 100 + STACKS_MIB);
	assert_true(sanitized || peak <= planned * (100 + PERCENT) / 100);
	assert_true(sanitized || peak >= planned * (100 - 2 * PERCENT) / 100); /* a lone worker receives nothing */
}

static void begin(struct e2e *e, void **state, const char *stream, long *from) {
	*state = e;
	e2e_open(e, config, 2);
	e->worker_args[0] = "--stream-state";
	e->worker_args[1] = stream;
	e2e_start_worker(e, 0, NULL, NULL);
	check_peak(&e->workers[0], "from the beginning", from);
}

static void a_worker_that_streams_takes_what_is_planned(void **state) {
	static struct e2e e;
	long first = 0, second = 0;
	begin(&e, state, "yes", &first);
	process_kill(&e.workers[0]);
	e2e_launch_worker(&e, 0);
	check_peak(&e.workers[0], "started again", &first);
	e2e_start_worker(&e, 1, NULL, NULL);
	check_peak(&e.workers[1], "joined", &second);
}

static void a_worker_that_copies_takes_what_is_planned(void **state) {
	static struct e2e e;
	long from = 0;
	begin(&e, state, "no", &from);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_worker_that_streams_takes_what_is_planned, e2e_teardown),
		cmocka_unit_test_teardown(a_worker_that_copies_takes_what_is_planned, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
