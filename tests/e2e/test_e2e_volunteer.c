/* test_e2e_volunteer.c: what a person does with a worker, right or wrong: a text that is not there,
 * Ctrl-C at any time, twice, before the join; and what the worker says. */
#include "e2e.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Two are needed. */
static const char pair[] = "n-layer = 1\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 2\n"
						   "min-workers = 2\nsteps-per-round = 2\nrounds = 100000\nsnapshot-every = 4\n"
						   "grace-ms = 2000\nsilence-ms = 2500\n";

static void run_worker(struct e2e *e, const char *data, const char *option, int status) {
	char dir[E2E_PATH];
	e2e_worker_dir(e, 0, dir);
	const char *const argv[] = {"rivulet-worker", e->links[0], "--yes", "--dir", dir, "--data", data, option, NULL};
	e2e_run(e, "wrong", argv, status);
}

/* Runs a worker in a directory of its own. */
static void run_worker_at(struct e2e *e, const char *name, int status) {
	char dir[E2E_PATH];
	e2e_path(e, name, dir);
	const char *const argv[] = {"rivulet-worker", e->links[0], "--yes", "--dir", dir, "--data", e->data, NULL};
	e2e_run(e, "wrong", argv, status);
}

static void assert_said(const struct e2e *e, const char *log_name, const char *text) {
	char path[E2E_PATH + 16], line[2048];
	snprintf(path, sizeof path, "%s/%s", e->dir, log_name);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	bool said = false;
	while (fgets(line, sizeof line, f))
		said = said || strstr(line, text);
	fclose(f);
	if (!said)
		fail_msg("%s does not say: %s", path, text);
}

static bool joined(const struct e2e *e, int i) {
	char dir[E2E_PATH], path[E2E_PATH + 16];
	struct stat st;
	e2e_worker_dir(e, i, dir);
	snprintf(path, sizeof path, "%s/run.conf", dir);
	return stat(path, &st) == 0;
}

/* Three ask by one link: one call approves two, another all that are left. */
static void several_are_approved_at_once(void **state) {
	static struct e2e e;
	char dir[E2E_PATH], log[E2E_PATH];
	*state = &e;
	e2e_open(&e, pair, 3);
	e2e_path(&e, "coordinator", dir);
	e2e_path(&e, "approve-link.log", log);
	e2e_run(&e, "approve-link",
			(const char *[]){"rivulet-coordinator", "invite", "--dir", dir, "--uses", "3", "--approve", NULL}, 0);
	char *link = scratch_read(log, NULL), prefix[3][17];
	link[strcspn(link, "\n")] = '\0';
	for (int i = 0; i < 3; i++) {
		snprintf(e.links[i], sizeof e.links[i], "%s", link);
		e2e_launch_worker(&e, i);
		json_t *j = e2e_wait_event(&e.workers[i], "waiting", NULL, 0, NULL);
		const char *at = strstr(e2e_text(j, "text"), "fingerprint ");
		assert_non_null(at);
		snprintf(prefix[i], sizeof prefix[i], "%.16s", at + strlen("fingerprint "));
		json_decref(j);
	}
	free(link);
	e2e_run(&e, "two",
			(const char *[]){"rivulet-coordinator", "members", "approve", prefix[0], "beef00", prefix[1], "--dir", dir,
							 NULL},
			1);
	assert_said(&e, "two.log", "beef00: no computer that asks");
	assert_said(&e, "two.log", "1 of 3 were not decided");
	for (int i = 0; i < 2; i++)
		json_decref(e2e_wait_event(&e.workers[i], "joined", NULL, 0, NULL));
	e2e_run(&e, "all", (const char *[]){"rivulet-coordinator", "members", "approve", "--all", "--dir", dir, NULL}, 0);
	json_decref(e2e_wait_event(&e.workers[2], "joined", NULL, 0, NULL));
	e2e_run(&e, "none", (const char *[]){"rivulet-coordinator", "members", "approve", "--all", "--dir", dir, NULL}, 0);
	assert_said(&e, "none.log", "nobody asks");
}

/* Without a terminal and without --yes the terms are printed, and nothing is spent. */
static void nothing_is_spent_without_consent(void **state) {
	static struct e2e e;
	char dir[E2E_PATH], config[1024];
	*state = &e;
	(void)snprintf(config, sizeof config, "%spurpose = To learn what a volunteer is told.\noperator = Ada\n", pair);
	e2e_open(&e, config, 1);
	e2e_worker_dir(&e, 0, dir);
	const char *const argv[] = {"rivulet-worker", e.links[0], "--dir", dir, "--data", e.data, NULL};
	e2e_run(&e, "asked", argv, 4);
	assert_said(&e, "asked.log", "purpose:    To learn what a volunteer is told.");
	assert_said(&e, "asked.log", "operator:   Ada; coordinator 127.0.0.1:");
	assert_said(&e, "asked.log", "start it with --yes, if you agree");
	assert_false(joined(&e, 0));
	json_t *status = e2e_status(&e);
	assert_int_equal(json_array_size(json_object_get(status, "members")), 0);
	assert_string_equal(json_string_value(json_object_get(json_object_get(status, "about"), "operator")), "Ada");
	json_decref(status);
	e2e_start_worker(&e, 0, NULL, NULL); /* with --yes, by the same link */
	assert_true(joined(&e, 0));
}

static void a_bad_text_costs_no_invite(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, pair, 1);
	run_worker(&e, "/nowhere/text", NULL, 1);
	assert_said(&e, "wrong.log", "/nowhere/text");
	run_worker(&e, "/dev/null", NULL, 1);
	assert_false(joined(&e, 0));
	e2e_start_worker(&e, 0, NULL, NULL); /* the same link, the right text */
	json_decref(e2e_wait_event(&e.workers[0], "started", NULL, 0, NULL));
}

static void copy_file(const char *from, const char *to) {
	char command[3 * E2E_PATH];
	snprintf(command, sizeof command, "cp %s %s", from, to);
	assert_int_equal(system(command), 0);
}

/* Whatever is inside. The worker's invite is not spent. */
static void what_is_no_text_is_refused_by_every_program(void **state) {
	static struct e2e e;
	char table[E2E_PATH], weights[E2E_PATH], out[E2E_PATH];
	*state = &e;
	e2e_open(&e, pair, 1);
	e2e_path(&e, "text.csv", table);
	e2e_path(&e, "weights", weights);
	e2e_path(&e, "out", out);
	copy_file(e.data, table);
	run_worker(&e, table, NULL, 1);
	assert_said(&e, "wrong.log", "text.csv: a table");
	assert_false(joined(&e, 0));
	const char *const good[] = {"rivulet",           "train", "--data",    e.data, "--out",    weights,
								"--n-layer",         "1",     "--n-embd",  "32",   "--n-head", "2",
								"--rounds",          "1",     "--context", "32",   "--batch",  "2",
								"--steps-per-round", "1",     NULL};
	e2e_run(&e, "good", good, 0);
	const char *const programs[][10] = {
		{"rivulet", "train", "--data", table, "--out", out},
		{"rivulet", "eval", weights, "--data", table, "--split", "all"},
		{"rivulet", "eval", weights, "--data", table, "--split", "heldout"},
		{"rivulet", "sweep", "--data", table, "--out", out, "--seed", "1"},
		{"rivulet", "tokenize", "--tokenizer", "bytes", "--data", table, "--out", out},
		{"rivulet", "tokenizer", "train", "--data", table, "--vocab", "300", "--out", out},
	};
	for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
		assert_int_not_equal(e2e_run(&e, "refused", programs[i], -1), 0);
		assert_said(&e, "refused.log", "text.csv: a table");
	}
}

/* The run has two. What was spent would be a member's number, too. */
static void a_shard_out_of_range_costs_no_invite(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, pair, 1);
	run_worker(&e, e.data, "--shard=2", 1);
	assert_said(&e, "wrong.log", "--shard 2: the run has 2 data shards, numbered from 0: give one of [0, 1]");
	assert_false(joined(&e, 0));
	e.worker_args[0] = "--shard=1";
	e2e_start_worker(&e, 0, NULL, NULL);
	json_decref(e2e_wait_event(&e.workers[0], "started", NULL, 0, NULL));
	process_signal(&e.workers[0], SIGTERM);
	process_assert_exit(&e.workers[0], 0);
	run_worker(&e, e.data, "--shard=1023", 1); /* a member now */
	assert_said(&e, "wrong.log", "--shard 1023: the run has 2 data shards");
}

/* Its chunks would not pass in time: the others would take this worker for dead. */
static void a_cap_that_is_too_low_costs_no_invite(void **state) {
	static const char wide[] = "n-layer = 1\nn-head = 2\nn-embd = 256\ncontext = 32\nbatch = 1\ndata-shards = 1\n"
							   "min-workers = 1\nsteps-per-round = 1\nrounds = 2\nsilence-ms = 250\n";
	static struct e2e e;
	*state = &e;
	e2e_open(&e, wide, 1);
	run_worker(&e, e.data, "--max-up=100kbit", 1);
	assert_said(&e, "wrong.log", "max-up is too low for this run");
	assert_false(joined(&e, 0));
}

static void a_later_text_replaces_the_one_that_is_gone(void **state) {
	static struct e2e e;
	char dir[E2E_PATH], moved[E2E_PATH + 16];
	*state = &e;
	e2e_open(&e, pair, 1);
	e2e_start_worker(&e, 0, NULL, NULL);
	json_decref(e2e_wait_event(&e.workers[0], "started", NULL, 0, NULL));
	process_signal(&e.workers[0], SIGTERM);
	process_assert_exit(&e.workers[0], 0);
	snprintf(moved, sizeof moved, "%s.moved", e.data);
	assert_int_equal(rename(e.data, moved), 0);
	e2e_worker_dir(&e, 0, dir);
	const char *const without[] = {"rivulet-worker", "--dir", dir, NULL};
	e2e_run(&e, "gone", without, 1);
	assert_said(&e, "gone.log", "--data names another");
	run_worker(&e, "/nowhere/text", NULL, 1); /* is not remembered */
	snprintf(e.data, sizeof e.data, "%.*s", (int)sizeof e.data - 1, moved);
	long from = 0;
	json_decref(e2e_wait_event(&e.workers[0], "stopped", NULL, 0, &from));
	e2e_start_worker(&e, 0, NULL, NULL);
	json_decref(e2e_wait_event(&e.workers[0], "started", NULL, 0, &from));
}

static void one_too_few_is_said_and_ctrl_c_ends_the_wait(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, pair, 2);
	e2e_start_worker(&e, 0, NULL, NULL);
	long from = 0;
	json_t *j = e2e_wait_event(&e.workers[0], "waiting", "missing", 1, &from);
	assert_int_equal(e2e_int(j, "min_workers"), 2);
	json_decref(j);
	/* A terminal and its shell may both pass it on: one wish. It gets both at once. */
	process_freeze(&e.workers[0]);
	process_signal(&e.workers[0], SIGINT);
	process_signal(&e.workers[0], SIGTERM);
	process_signal(&e.workers[0], SIGCONT);
	process_assert_exit(&e.workers[0], 0);
	json_decref(e2e_wait_event(&e.workers[0], "stopped", NULL, 0, &from));
	e2e_start_worker(&e, 0, NULL, NULL);
	json_decref(e2e_wait_event(&e.workers[0], "waiting", "missing", 1, &from));
	e2e_start_worker(&e, 1, NULL, NULL);
	json_decref(e2e_wait_event(&e.workers[0], "enough_workers", NULL, 0, &from));
	json_decref(e2e_wait_event(&e.workers[0], "round", NULL, 0, &from));
	process_signal(&e.workers[0], SIGINT);
	process_assert_exit(&e.workers[0], 0);
	j = e2e_wait_event(&e.workers[0], "stopped", "round", 1, &from);
	assert_non_null(strstr(e2e_text(j, "text"), "--dir"));
	json_decref(j);
}

static void ctrl_c_before_the_join_keeps_the_link(void **state) {
	static struct e2e e;
	char dir[E2E_PATH];
	*state = &e;
	e2e_open(&e, pair, 1);
	process_signal(&e.coordinator, SIGKILL);
	process_assert_exit(&e.coordinator, 128 + SIGKILL);
	e2e_worker_dir(&e, 0, dir);
	e2e_launch_worker(&e, 0);
	long from = 0;
	json_t *j = e2e_wait_event(&e.workers[0], "coordinator_away", NULL, 0, &from);
	assert_non_null(strstr(e2e_text(j, "text"), "cannot join yet"));
	json_decref(j);
	process_signal(&e.workers[0], SIGINT);
	process_assert_exit(&e.workers[0], 0);
	json_decref(e2e_wait_event(&e.workers[0], "stopped", NULL, 0, &from));
	assert_false(joined(&e, 0));
	e2e_start_coordinator(&e);
	e2e_start_worker(&e, 0, NULL, NULL);
	json_decref(e2e_wait_event(&e.workers[0], "started", NULL, 0, &from));
}

/* Coordinator and workers have no other addresses. */
static void where_there_is_only_ipv6(void **state) {
	static const struct e2e_site sites[] = {{"", "[::1]"}, {"", "[::1]"}, {"", "[::1]"}};
	static struct e2e e;
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct sockaddr_in6 here = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	bool has = fd >= 0 && bind(fd, (const struct sockaddr *)&here, sizeof here) == 0;
	if (fd >= 0)
		close(fd);
	if (!has)
		skip();
	*state = &e;
	e2e_open_at(&e, sites, pair, 2);
	e2e_start_workers(&e, 2);
	json_decref(e2e_wait_event(&e.workers[0], "round", "round", 2, NULL));
	json_decref(e2e_wait_event(&e.workers[1], "round", "round", 2, NULL));
}

/* A worker that was away for some rounds has no loss of them. */
static void rounds_caught_up_have_no_loss(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, pair, 3);
	e2e_start_workers(&e, 2);
	for (int i = 0; i < 2; i++)
		json_decref(e2e_wait_event(&e.workers[i], "round", "round", 6, NULL));
	e2e_start_worker(&e, 2, NULL, NULL);
	json_t *j = e2e_wait_event(&e.workers[2], "round", NULL, 0, NULL); /* the first one that it applied */
	json_t *loss = json_object_get(j, "loss");
	assert_true(json_is_null(loss) || json_real_value(loss) > 0);
	json_decref(j);
}

/* The run waits for a second member, which a copy is not. */
static const char waiting[] = "n-layer = 1\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 2\n"
							  "min-workers = 2\nsteps-per-round = 2\nrounds = 100000\nsnapshot-every = 4\n" E2E_PATIENT;

static void copy_worker_dir(struct e2e *e, int from, int to) {
	char source[E2E_PATH], target[E2E_PATH], command[2 * E2E_PATH + 16];
	e2e_worker_dir(e, from, source);
	e2e_worker_dir(e, to, target);
	snprintf(command, sizeof command, "cp -r %s %s", source, target);
	assert_int_equal(system(command), 0);
}

static void stop_worker(struct e2e *e, int i) {
	process_signal(&e->workers[i], SIGTERM);
	process_assert_exit(&e->workers[i], 0);
}

static void a_directory_that_was_copied_runs_once(void **state) {
	static struct e2e e;
	long read_to = 0;
	*state = &e;
	e2e_open(&e, waiting, 2);
	e2e_start_worker(&e, 0, NULL, NULL);
	json_decref(e2e_wait_event(&e.workers[0], "started", NULL, 0, &read_to));
	stop_worker(&e, 0); /* a worker that runs replaces files while they are copied */
	copy_worker_dir(&e, 0, 1);
	e2e_start_worker(&e, 0, NULL, NULL);
	json_decref(e2e_wait_event(&e.workers[0], "started", NULL, 0, &read_to));
	e2e_start_worker(&e, 1, NULL, NULL);
	process_assert_exit(&e.workers[0], 4); /* the one that was there first; not to be started again */
	assert_said(&e, "worker0.log", "another process runs as member 0 since 20");
	json_decref(e2e_wait_event(&e.coordinator, "twice", NULL, 0, NULL));
	stop_worker(&e, 1); /* the other one ran on */
	e2e_start_worker(&e, 0, NULL, NULL);
	json_decref(e2e_wait_event(&e.workers[0], "started", NULL, 0, &read_to));
	stop_worker(&e, 0);
}

/* Makes a link for worker 0 with these options of `invite`. */
static void make_link(struct e2e *e, const char *option, const char *value) {
	char dir[E2E_PATH], log[E2E_PATH], line[sizeof e->links[0]];
	e2e_path(e, "coordinator", dir);
	const char *const argv[] = {"rivulet-coordinator", "invite", "--dir", dir, option, value, NULL};
	e2e_run(e, "link", argv, 0);
	e2e_path(e, "link.log", log);
	FILE *f = fopen(log, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof line, f));
	fclose(f);
	line[strcspn(line, "\n")] = '\0';
	memcpy(e->links[0], line, sizeof line);
}

static void operate(struct e2e *e, const char *command, const char *what, const char *argument) {
	char dir[E2E_PATH];
	e2e_path(e, "coordinator", dir);
	e2e_run(e, "operate", (const char *const[]){"rivulet-coordinator", command, what, argument, "--dir", dir, NULL}, 0);
}

static size_t n_members(struct e2e *e) {
	json_t *status = e2e_status(e);
	size_t n = json_array_size(json_object_get(status, "members"));
	json_decref(status);
	return n;
}

/* It waits, without a number, until the operator has approved its fingerprint; once the link is
 * revoked, nobody else comes by it. */
static void an_invite_may_need_approval(void **state) {
	static struct e2e e;
	char print[17] = "";
	*state = &e;
	e2e_open(&e, pair, 1);
	make_link(&e, "--approve", "--uses=2");
	e2e_launch_worker(&e, 0);
	json_t *event = e2e_wait_event(&e.workers[0], "waiting", NULL, 0, NULL);
	const char *at = strstr(e2e_text(event, "text"), "fingerprint ");
	assert_non_null(at);
	memcpy(print, at + strlen("fingerprint "), sizeof print - 1);
	json_decref(event);
	assert_int_equal(n_members(&e), 0);
	json_decref(e2e_wait_event(&e.workers[0], "reach", NULL, 0, NULL)); /* tested before */
	operate(&e, "members", "approve", print);
	json_decref(e2e_wait_event(&e.workers[0], "started", NULL, 0, NULL));
	assert_int_equal(n_members(&e), 1);
	process_signal(&e.workers[0], SIGTERM);
	process_assert_exit(&e.workers[0], 0);
	operate(&e, "invite", "revoke", "2");
	run_worker_at(&e, "other", 4);
	assert_said(&e, "wrong.log", "has revoked this invite: ask for a new one");
	assert_int_equal(n_members(&e), 1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(several_are_approved_at_once, e2e_teardown),
		cmocka_unit_test_teardown(an_invite_may_need_approval, e2e_teardown),
		cmocka_unit_test_teardown(nothing_is_spent_without_consent, e2e_teardown),
		cmocka_unit_test_teardown(a_bad_text_costs_no_invite, e2e_teardown),
		cmocka_unit_test_teardown(what_is_no_text_is_refused_by_every_program, e2e_teardown),
		cmocka_unit_test_teardown(a_shard_out_of_range_costs_no_invite, e2e_teardown),
		cmocka_unit_test_teardown(a_cap_that_is_too_low_costs_no_invite, e2e_teardown),
		cmocka_unit_test_teardown(a_later_text_replaces_the_one_that_is_gone, e2e_teardown),
		cmocka_unit_test_teardown(one_too_few_is_said_and_ctrl_c_ends_the_wait, e2e_teardown),
		cmocka_unit_test_teardown(ctrl_c_before_the_join_keeps_the_link, e2e_teardown),
		cmocka_unit_test_teardown(a_directory_that_was_copied_runs_once, e2e_teardown),
		cmocka_unit_test_teardown(where_there_is_only_ipv6, e2e_teardown),
		cmocka_unit_test_teardown(rounds_caught_up_have_no_loss, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
