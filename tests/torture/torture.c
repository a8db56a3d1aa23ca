/* torture.c: trial after trial; see torture.h. */
#include "tests/torture/torture.h"
#include "tests/common/check.h"

#include <dirent.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CLOSE_TRIES = 400, CLOSE_PAUSE_US = 5000 };

static int open_files(void) {
	int n = 0;
	DIR *d = opendir("/proc/self/fd");
	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

/* For whoever reads a crash: which trial it was. */
static char now_trying[160];

static void on_abort(int signal) {
	(void)signal;
	ssize_t written = write(STDERR_FILENO, now_trying, strlen(now_trying));
	(void)written;
}

static void announce(const struct torture *t, long nth, enum faults_mode mode) {
	(void)snprintf(now_trying, sizeof now_trying, "torture: %s: call %ld fails (%s)\n", t->name, nth,
				   mode == FAULTS_ONCE ? "once" : "from then on");
	if (getenv("RIVULET_TORTURE_VERBOSE") != NULL)
		on_abort(0);
	(void)sigaction(SIGABRT, &(struct sigaction){.sa_handler = on_abort, .sa_flags = (int)SA_RESETHAND}, NULL);
}

/* Returns how many calls failed. */
static long trial(const struct torture *t, long nth, enum faults_mode mode) {
	int before = open_files();
	if (t->begin != NULL)
		t->begin(t->ctx);
	announce(t, nth, mode);
	faults_arm(nth, mode);
	t->run(t->ctx);
	long failed = faults_disarm();
	if (t->check != NULL)
		t->check(t->ctx);
	for (int i = 0; i < CLOSE_TRIES && open_files() > before; i++) /* the other side may close its own late */
		(void)usleep(CLOSE_PAUSE_US);
	if (open_files() > before)
		fail_msg("%s%d descriptors are left open", now_trying, open_files() - before);
	return failed;
}

void torture(const struct torture *t) {
	long trials = 0, injected = 0, calls, step;
	(void)trial(t, 0, FAULTS_ONCE); /* what is opened once and for all */
	(void)trial(t, 0, FAULTS_ONCE);
	calls = faults_calls();
	step = getenv("RIVULET_TORTURE_ALL") != NULL || calls <= t->limit ? 1 : (calls + t->limit - 1) / t->limit;
	for (enum faults_mode mode = FAULTS_ONCE; mode <= FAULTS_FROM_THEN; mode++)
		for (long nth = 1; nth <= calls; nth += step) {
			injected += trial(t, nth, mode);
			trials++;
		}
	assert_true(injected > 0);
	print_message("%s: %ld fallible calls, %ld trials, %ld failures injected; %d call sites so far\n", t->name, calls,
				  trials, injected, faults_sites());
}

/* ---- what scenarios share ---- */

bool torture_ok(enum rv_err e, struct rv_errtext *et) {
	if (e != RV_OK && et->text[0] == '\0')
		fail_msg("%s%s without a text", now_trying, rv_err_name(e));
	et->text[0] = '\0';
	return e == RV_OK;
}
