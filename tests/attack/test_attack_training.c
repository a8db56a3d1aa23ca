/* test_attack_training.c: audits of training (net/control/score.h) find a member that does not
 * train, and never honest ones, on whatever hardware. Real processes on loopback; ./dev attack has
 * more that do not train. */
#include "net/control/control.h"
#include "tests/common/check.h"
#include "tests/e2e/ends.h"

#include <stdio.h>
#include <string.h>

enum { BLOCKS = 8, WORKERS = 5, EVIL = 4 };

/* Each of five members trains 32 sequences in a round: 3.75 scores a round. */
#define MODEL                                                                                                          \
	"n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 64\nbatch = 8\nsteps-per-round = 4\n"                             \
	"min-workers = 4\nsnapshot-every = 10\nlr = 0.002\nwarmup-steps = 4\n"                                             \
	"audit-training = 1\n"
#define RUN MODEL "audit-window = 15\n" E2E_STEADY

static const char run_config[] = RUN "rounds = 11\nouter-momentum = 0.5\n";
/* Far from its end for all of a test: in a run that stands still nothing can be measured. Who lies
 * naps, and rounds last as long: auditors have the time that they need within the window. */
static const char slow_run_config[] = RUN "rounds = 1000\nouter-lr = 0.05\nouter-momentum = 0\n";

static void assert_same_hardware_is_not_needed(struct e2e *e) {
	json_t *scores = e2e_status_of(e, "scores");
	print_message("%d worthy, %d worthless, %d without an answer of %d\n", (int)e2e_int(scores, "worthy"),
				  (int)e2e_int(scores, "worthless"), (int)e2e_int(scores, "unresolved"), (int)e2e_int(scores, "drawn"));
	assert_true(e2e_int(scores, "worthy") >= 3);
	assert_int_equal(e2e_int(scores, "worthless"), 0);
	json_decref(scores);
	for (size_t m = 0; m < WORKERS; m++)
		assert_int_equal(e2e_strikes(e, m), 0);
}

/* The dtype and kernels of the machine's choice, portable ones with fp32, bf16, moments of 8 bits,
 * the reference's kernels. */
static void honest_members_on_other_hardware_are_worth_their_place(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open_published(&e, run_config, BLOCKS, WORKERS);
	e2e_start_worker(&e, 0, NULL, NULL);
	e2e_start_worker(&e, 1, "rivulet-worker-evil", "RIVULET_EVIL=portable=1,bf16=0");
	e2e_start_worker(&e, 2, "rivulet-worker-evil", "RIVULET_EVIL=bf16=1");
	e.worker_args[0] = "--moments";
	e.worker_args[1] = "int8";
	e2e_start_worker(&e, 3, NULL, NULL);
	e.worker_args[0] = "--device";
	e.worker_args[1] = "ref";
	e2e_start_worker(&e, 4, NULL, NULL);
	for (int i = 0; i < WORKERS; i++)
		process_assert_exit(&e.workers[i], 0);
	assert_same_hardware_is_not_needed(&e);
}

/* The last of so many sends zeros, from the first round that is audited on: it alone is struck, and
 * learns of it. */
static void find_one_that_sends_zeros(struct e2e *e, const char *config, int all) {
	const int liar = all - 1;
	char named[32];
	e2e_open_published(e, config, BLOCKS, all);
	e2e_gate_at(e, 1);
	e2e_start_gated_workers(e, liar);
	e2e_start_worker(e, liar, "rivulet-worker-evil", "RIVULET_EVIL=zero=1,nap=1");
	e2e_open_gate(e);
	json_t *found = e2e_wait_event(&e->coordinator, "training_worthless", NULL, 0, NULL);
	print_message("%s\n", e2e_text(found, "text"));
	(void)snprintf(named, sizeof named, "member %d: ", liar);
	assert_non_null(strstr(e2e_text(found, "text"), named));
	json_decref(found);
	json_decref(e2e_wait_event(&e->workers[liar], "quarantine", NULL, 0, NULL));
	for (int m = 0; m < liar; m++)
		assert_int_equal(e2e_strikes(e, (size_t)m), 0);
	assert_true(e2e_strikes(e, (size_t)liar) > 0);
}

static void one_that_sends_zeros_is_found(void **state) {
	static struct e2e e;
	*state = &e;
	find_one_that_sends_zeros(&e, slow_run_config, WORKERS);
}

/* Nine in rows of three: those of its row find it, and nobody else is asked. */
static void one_that_sends_zeros_is_found_in_its_row(void **state) {
	static struct e2e e;
	char config[512];
	*state = &e;
	(void)snprintf(config, sizeof config, "%srow-size = 4\n", slow_run_config);
	find_one_that_sends_zeros(&e, config, 9);
}

/* Two of six lie about the others' training: where both are among the first three auditors, an
 * honest member is struck. It appeals by itself, and the two that are left clear it. */
static void an_honest_member_appeals_and_is_cleared(void **state) {
	enum { HONEST = 4, ALL = 6 };
	static struct e2e e;
	unsigned member = 0;
	*state = &e;
	e2e_open_published(&e, slow_run_config, BLOCKS, ALL);
	for (int i = 0; i < ALL; i++)
		e2e_start_worker(&e, i, i < HONEST ? NULL : "rivulet-worker-evil",
						 i < HONEST ? NULL : "RIVULET_EVIL=false_score=4,nap=1");
	json_t *cleared = e2e_wait_event(&e.coordinator, "appeal_cleared", NULL, 0, NULL);
	print_message("%s\n", e2e_text(cleared, "text"));
	assert_int_equal(sscanf(e2e_text(cleared, "text"), "member %u", &member), 1);
	assert_true(member < HONEST);
	json_decref(cleared);
	json_decref(e2e_wait_event(&e.workers[member], "quarantine", NULL, 0, NULL));
}

/* It sends zeros, and ends its link with each that asks for them; rounds go on with it. */
static void one_that_cuts_its_links_to_auditors_is_struck(void **state) {
	static struct e2e e;
	*state = &e;
	e2e_open_published(&e, slow_run_config, BLOCKS, WORKERS);
	e2e_gate_at(&e, 1); /* all are there from then on */
	e2e_start_gated_workers(&e, EVIL);
	e2e_start_worker(&e, EVIL, "rivulet-worker-evil", "RIVULET_EVIL=cut=1,zero=1,nap=1");
	e2e_open_gate(&e);
	json_t *found = e2e_wait_event(&e.workers[EVIL], "quarantine", NULL, 0, NULL);
	print_message("%s\n", e2e_text(found, "text"));
	assert_int_equal(e2e_int(found, "reason"), NOTICE_STRUCK_EVADED);
	json_decref(found);
	for (size_t m = 0; m < EVIL; m++)
		assert_int_equal(e2e_strikes(&e, m), 0);
	assert_true(e2e_strikes(&e, EVIL) > 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(an_honest_member_appeals_and_is_cleared, e2e_teardown),
		cmocka_unit_test_teardown(honest_members_on_other_hardware_are_worth_their_place, e2e_teardown),
		cmocka_unit_test_teardown(one_that_cuts_its_links_to_auditors_is_struck, e2e_teardown),
		cmocka_unit_test_teardown(one_that_sends_zeros_is_found, e2e_teardown),
		cmocka_unit_test_teardown(one_that_sends_zeros_is_found_in_its_row, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
