/* test_e2e_ended.c: who comes to a run that has ended, or waits when it ends. */
#include "e2e.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const char two_rounds[] = "n-layer = 1\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 1\n"
								 "min-workers = 1\nsteps-per-round = 2\nrounds = 2\n" E2E_PATIENT;

/* Makes the link of worker i with these options of `invite`. */
static void make_approved_link(struct e2e *e, int i) {
	char dir[E2E_PATH], log[E2E_PATH];
	e2e_path(e, "coordinator", dir);
	const char *const argv[] = {"rivulet-coordinator", "invite", "--dir", dir, "--approve", NULL};
	e2e_run(e, "link", argv, 0);
	e2e_path(e, "link.log", log);
	FILE *f = fopen(log, "r");
	assert_non_null(f);
	assert_non_null(fgets(e->links[i], sizeof e->links[i], f));
	fclose(f);
	e->links[i][strcspn(e->links[i], "\n")] = '\0';
}

static void assert_last_says(const struct process *p, const char *event, const char *text) {
	json_t *last = e2e_find_event(p->log, event, NULL, 0, NULL);
	assert_non_null(last);
	if (!strstr(e2e_text(last, "text"), text))
		fail_msg("%s does not say \"%s\": %s", event, text, e2e_text(last, "text"));
	json_decref(last);
}

static void assert_unspent(struct e2e *e, const char *id) {
	char dir[E2E_PATH], log[E2E_PATH], text[4096], cells[64];
	e2e_path(e, "coordinator", dir);
	e2e_run(e, "list", (const char *[]){"rivulet-coordinator", "invite", "list", "--dir", dir, NULL}, 0);
	e2e_path(e, "list.log", log);
	FILE *f = fopen(log, "r");
	assert_non_null(f);
	text[fread(text, 1, sizeof text - 1, f)] = '\0';
	fclose(f);
	(void)snprintf(cells, sizeof cells, "%6s  open      1 of 1", id);
	if (!strstr(text, cells))
		fail_msg("invite %s is spent: %s", id, text);
}

/* The run ends under one worker. One that waited to be approved ends, and not as at fault; one that
 * comes later is told so, and its link is not spent. */
static void nobody_joins_a_run_that_has_ended(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, two_rounds, 3);
	make_approved_link(&e, 1);
	e2e_launch_worker(&e, 1);
	json_decref(e2e_wait_event(&e.workers[1], "waiting", NULL, 0, NULL));
	e2e_start_worker(&e, 0, NULL, NULL);
	process_assert_exit(&e.workers[0], 0);
	process_assert_exit(&e.workers[1], 0);
	assert_last_says(&e.workers[1], "over", "the run has ended: all 2 rounds are done");
	e2e_launch_worker(&e, 2);
	process_assert_exit(&e.workers[2], 4);
	assert_last_says(&e.workers[2], "failed", "For its weights ask the run's operator");
	assert_null(e2e_find_event(e.workers[2].log, "joined", NULL, 0, NULL));
	assert_unspent(&e, "3");
}

/* A member that is behind when all others have finished waits for one that has the end, and ends
 * when none comes. */
static void a_member_that_nobody_gives_the_end_ends(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open(&e, two_rounds, 2);
	e2e_gate_at(&e, 1);
	e2e_start_gated_workers(&e, 1);
	e2e_start_worker(&e, 1, NULL, NULL);
	json_decref(e2e_wait_event(&e.workers[1], "round", NULL, 0, NULL));
	process_signal(&e.workers[1], SIGTERM);
	process_assert_exit(&e.workers[1], 0);
	e2e_open_gate(&e);
	process_assert_exit(&e.workers[0], 0);
	e2e_start_worker(&e, 1, NULL, NULL);
	json_decref(e2e_wait_event(&e.workers[1], "alone", NULL, 0, NULL));
	process_assert_exit(&e.workers[1], 0);
	assert_last_says(&e.workers[1], "over", "It has the state after 1, and no member gives it the rest");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(nobody_joins_a_run_that_has_ended, e2e_teardown),
		cmocka_unit_test_teardown(a_member_that_nobody_gives_the_end_ends, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
