/* test_torture_coordinator.c: the real coordinator at work, with clients over TLS, while every call
 * of its own that can fail fails in turn. It may refuse, break off a connection or end with a fault
 * that it names; it never crashes, and whatever it answered is true when it is started again. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "tests/coordinator/coordinator_process.h"
#include "tests/coordinator/run_chunks.h"

enum {
	TRIALS = 18,
	TIMEOUT_MS = 1500,
	STATUS_OK = 200,
	EXIT_FAULT = 1,
	EXIT_REFUSED = 4,
	FIRST_STRANGER = 10,
	NEIGHBOURS = 800,
	PATH_BYTES = 128
};

struct scene {
	struct coordinator c;
	struct invite invite; /* for the stranger of the trial */
	char log[PATH_BYTES], count[PATH_BYTES], copy[PATH_BYTES];
	uint32_t stranger;
	long trials, ended, answered;
};

/* An end that it has named: any fault, or a key that it could not read. */
static bool is_fault(int status) {
	return status == EXIT_FAULT || status == EXIT_REFUSED;
}

static long size_of(const char *path) {
	struct stat st;
	return stat(path, &st) == 0 ? (long)st.st_size : 0;
}

static bool has_answer(const struct answer *a) {
	return a->status != 0;
}

/* A member, which is known: as far as it is answered. */
static bool talk_as_member(struct scene *s, struct client *k) {
	static struct document doc;
	struct report rep = {
		.boot = 1, .seq = (uint64_t)s->trials + 1, .phase = WORKER_TRAINING, .n_chunks = run_chunks("", 0)};
	rep.n_candidates = 1;
	(void)snprintf(rep.candidates[0].addr, sizeof rep.candidates[0].addr, ":7000");
	if (client_report(k, &rep) == 0)
		return false;
	s->answered++;
	if (client_document(k, 0, &doc) == 0) /* what comes is signed and decodes, or the test fails */
		return false;
	const struct answer *a = client_ask(k, "/v1/status", NULL, 0);
	assert_true(a->status != STATUS_OK || (a->n > 2 && a->body[0] == '{'));
	return has_answer(a) && has_answer(client_ask(k, "/metrics", NULL, 0)) && has_answer(client_ask(k, "/", NULL, 0));
}

/* And a stranger with a link. Returns whether it was told that it is a member. */
static bool talk(struct scene *s) {
	struct client known, stranger;
	struct join_reply reply;
	client_init(&known, &s->c, 0, NULL);
	client_init(&stranger, &s->c, s->stranger, NULL);
	bool joined = talk_as_member(s, &known) && client_join(&stranger, &s->c, &s->invite, &reply) == STATUS_OK;
	client_release(&known);
	client_release(&stranger);
	return joined;
}

/* Started without faults: it opens what is there, and knows whom it has accepted. */
static void check_afterwards(struct scene *s, bool joined) {
	struct client k;
	struct join_reply reply;
	coordinator_start(&s->c);
	client_init(&k, &s->c, s->stranger, NULL);
	int status = client_join(&k, &s->c, joined ? NULL : &s->invite, &reply);
	if (status != STATUS_OK)
		fail_msg("afterwards: member %u, who was %s, is answered %d", s->stranger, joined ? "accepted" : "not answered",
				 status);
	client_release(&k);
	coordinator_invite(&s->c, &s->invite);
	s->stranger = s->stranger + 1;
	assert_int_equal(coordinator_stop(&s->c), 0);
}

/* An end with a fault has a reason in the log. */
static void check_end(struct scene *s, int status, long log_before, const char *plan) {
	if (status != 0 && !is_fault(status) && status != 128 + SIGTERM) /* ours, which it could not read */
		fail_msg("RIVULET_FAULT=%s: it ended with %d (a signal when over 128)", plan, status);
	if (is_fault(status) && size_of(s->log) == log_before)
		fail_msg("RIVULET_FAULT=%s: it ended without a word", plan);
	s->ended += is_fault(status);
}

static void trial(struct scene *s, long nth, bool from_then) {
	char plan[32];
	bool joined = false;
	int status;
	long log_before = size_of(s->log);
	(void)snprintf(plan, sizeof plan, "%ld%s", nth, from_then ? "+" : "");
	assert_int_equal(setenv("RIVULET_FAULT", plan, 1), 0);
	bool up = coordinator_try_start(&s->c, &status);
	assert_int_equal(unsetenv("RIVULET_FAULT"), 0);
	if (getenv("RIVULET_TORTURE_VERBOSE") != NULL)
		print_message("RIVULET_FAULT=%s\n", plan);
	if (up) {
		s->c.timeout_ms = TIMEOUT_MS;
		joined = talk(s);
		s->c.timeout_ms = 0;
		status = coordinator_stop(&s->c);
	}
	check_end(s, status, log_before, plan);
	s->trials++;
	check_afterwards(s, joined);
}

/* What the last process that counted says. */
static long read_count(struct scene *s) {
	long calls = 0, last;
	FILE *f = fopen(s->count, "r");
	assert_non_null(f);
	while (fscanf(f, " calls %ld", &last) == 1)
		calls = last;
	(void)fclose(f);
	(void)unlink(s->count);
	assert_true(calls > 0);
	return calls;
}

static long count_calls(struct scene *s) {
	assert_int_equal(setenv("RIVULET_FAULT_COUNT", s->count, 1), 0);
	trial(s, 0, false);
	assert_int_equal(unsetenv("RIVULET_FAULT_COUNT"), 0);
	return read_count(s);
}

/* A run with one member and an invite for a stranger; it does not run. */
static void make_run(struct scene *s) {
	struct client known;
	struct invite in;
	s->stranger = FIRST_STRANGER;
	coordinator_make(&s->c, "rounds = 900\nmin-workers = 2\n");
	(void)snprintf(s->log, sizeof s->log, "%s/coordinator.log", s->c.e.dir);
	(void)snprintf(s->count, sizeof s->count, "%s-count", s->c.dir);
	(void)snprintf(s->copy, sizeof s->copy, "%s-copy", s->c.dir);
	coordinator_invite(&s->c, &in);
	client_init(&known, &s->c, 0, NULL);
	assert_int_equal(client_join(&known, &s->c, &in, NULL), STATUS_OK);
	client_release(&known);
	coordinator_invite(&s->c, &s->invite);
	assert_int_equal(coordinator_stop(&s->c), 0);
}

/* Another run now and then, so that it stays small. */
static void next_trial(struct scene *s, long nth, bool from_then) {
	if (s->stranger >= FIRST_STRANGER + NET_MAX_ROW / 2) {
		coordinator_remove(&s->c);
		make_run(s);
	}
	trial(s, nth, from_then);
}

static void the_coordinator_at_work(void **state) {
	(void)state;
	static struct scene s;
	make_run(&s);
	long calls = count_calls(&s);
	long step = calls <= TRIALS || getenv("RIVULET_TORTURE_ALL") != NULL ? 1 : (calls + TRIALS - 1) / TRIALS;
	for (int from_then = 0; from_then <= 1; from_then++)
		for (long nth = 1; nth <= calls; nth += step)
			next_trial(&s, nth, from_then != 0);
	assert_true(s.ended > 0 && s.answered > 0);
	print_message("coordinator: %ld fallible calls, %ld trials; %ld ended it with a fault that it named\n", calls,
				  s.trials, s.ended);
	coordinator_remove(&s.c);
}

/* ---- the operator's commands ---- */

static int make_a_copy(struct scene *s, long nth) {
	char text[1024], plan[32];
	(void)snprintf(plan, sizeof plan, "%ld", nth);
	assert_int_equal(setenv("RIVULET_FAULT", plan, 1), 0);
	int rc = coordinator_command(text, sizeof text, (const char *const[]){"backup", "--dir", s->c.dir, s->copy, NULL});
	assert_int_equal(unsetenv("RIVULET_FAULT"), 0);
	if (rc != 0 && !is_fault(rc))
		fail_msg("RIVULET_FAULT=%s: backup ended with %d", plan, rc);
	if (rc != 0 && size_of(s->copy) > 0) /* whole, but not known to outlast a power cut: the reason says so */
		assert_non_null(strstr(text, "the directory"));
	else
		assert_int_equal(rc == 0, size_of(s->copy) > 0);
	(void)unlink(s->copy);
	return rc;
}

/* Files beside the copy, among which a backup looks for what a killed one left: a listing that
 * fails is no reason to refuse. */
static void add_neighbours(const struct scene *s) {
	char name[32];
	for (int i = 0; i < NEIGHBOURS; i++) {
		(void)snprintf(name, sizeof name, "neighbour%d", i);
		scratch_write(s->c.e.dir, name, "", 0);
	}
}

/* Of a run that nobody serves: there is a copy, whole, or none and a reason. What is left of one
 * that failed does not keep the next from being made. */
static void a_copy_of_the_run(void **state) {
	(void)state;
	static struct scene s;
	long made = 0, refused = 0;
	make_run(&s);
	add_neighbours(&s);
	assert_int_equal(setenv("RIVULET_FAULT_COUNT", s.count, 1), 0);
	assert_int_equal(make_a_copy(&s, 0), 0);
	assert_int_equal(unsetenv("RIVULET_FAULT_COUNT"), 0);
	long calls = read_count(&s);
	long step = getenv("RIVULET_TORTURE_ALL") != NULL ? 1 : (calls + 4 * TRIALS - 1) / (4 * TRIALS);
	for (long nth = 1; nth <= calls; nth += step) {
		int rc = make_a_copy(&s, nth);
		made += rc == 0;
		refused += rc != 0;
	}
	assert_int_equal(make_a_copy(&s, 0), 0);
	print_message("backup: %ld fallible calls; %ld trials made a copy, %ld refused to\n", calls, made, refused);
	assert_true(made > 0 && refused > 0);
	coordinator_remove(&s.c);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_coordinator_at_work),
		cmocka_unit_test(a_copy_of_the_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
