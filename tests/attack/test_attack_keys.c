/* test_attack_keys.c: rows 21 and 23 of docs/security.md beside real workers. One member holds all
 * the long polls that it can get; an attacker makes over a thousand members of one link, of which
 * the operator bans some. Rounds go on, the operator is obeyed, and newcomers join. */
#include "tests/common/check.h"
#include "tests/common/deadline.h"
#include "tests/coordinator/poll_flood.h"

#include <stdio.h>
#include <string.h>

enum { WORKERS = 2, NEWCOMER = 2, FLOODER = 4000, SYBIL = 5000, SYBILS = 1002, BANNED = 12, OUT_BYTES = 1 << 20 };

static const char config[] = "n-layer = 1\nn-head = 1\nn-embd = 32\ncontext = 16\nbatch = 1\ndata-shards = 3\n"
							 "min-workers = 2\nsteps-per-round = 2\nrounds = 1000000\n" E2E_STEADY;

static char out[OUT_BYTES];

static int operator_says(const struct coordinator *c, const char *command, const char *argument) {
	return coordinator_command(out, sizeof out, (const char *const[]){command, "--dir", c->dir, argument, NULL});
}

/* Waits until rounds are committed that were not when it was called. */
static void expect_more_rounds(struct coordinator *c, int64_t more) {
	json_t *round = e2e_status_of(&c->e, "round");
	const int64_t from = json_integer_value(round);
	json_decref(round);
	json_decref(e2e_wait_event(&c->e.workers[0], "round", "round", from + more, NULL));
}

static void expect_newcomer(struct coordinator *c) {
	e2e_make_links(&c->e, NEWCOMER, 1);
	e2e_start_worker(&c->e, NEWCOMER, NULL, NULL);
	json_decref(e2e_wait_event(&c->e.workers[NEWCOMER], "round", NULL, 0, NULL));
}

static void expect_banned(struct coordinator *c, const char *number) {
	if (operator_says(c, "ban", number) != 0)
		fail_msg("ban %s: %s", number, out);
	print_message("%s\n", out);
}

static void long_polls_of_one_member_stop_nobody(void **state) {
	static struct coordinator c;
	static struct poll_flood f;
	struct client evil;
	struct invite in;
	struct join_reply reply;
	char number[16];
	*state = &c.e;
	coordinator_make_for(&c, config, WORKERS);
	e2e_start_workers(&c.e, WORKERS);
	coordinator_invite_many(&c, 1, &in);
	client_init(&evil, &c, FLOODER, NULL);
	assert_int_equal(client_join(&evil, &c, &in, &reply), 200);
	poll_flood_begin(&f, &c, FLOODER, 0);
	print_message("of %d long polls %d are open\n", f.started, f.started - f.ended);
	assert_true(f.started > POLL_FLOOD_CLIENTS);
	for (int i = 0; i < 3; i++) {
		expect_more_rounds(&c, 2);
		poll_flood_go_on(&f, 0);
	}
	assert_int_equal(operator_says(&c, "status", NULL), 0);
	expect_newcomer(&c);
	poll_flood_go_on(&f, 0);
	(void)snprintf(number, sizeof number, "%u", (unsigned)reply.member);
	expect_banned(&c, number);
	expect_more_rounds(&c, 2);
	client_release(&evil);
	poll_flood_end(&f);
}

/* A key that joins and then says nothing more. Returns its number. */
static uint32_t join_and_go(struct coordinator *c, const struct invite *in, uint32_t who) {
	struct client k;
	static struct join_reply reply;
	client_init(&k, c, who, NULL);
	assert_int_equal(client_join(&k, c, in, &reply), 200);
	client_release(&k);
	return reply.member;
}

static void a_thousand_keys_of_one_link_stop_nobody(void **state) {
	static struct coordinator c;
	struct invite in;
	uint32_t last = 0;
	char number[16];
	*state = &c.e;
	coordinator_make_for(&c, config, WORKERS);
	e2e_start_workers(&c.e, WORKERS);
	coordinator_invite_many(&c, SYBILS, &in);
	for (uint32_t i = 0; i < SYBILS; i++) {
		last = join_and_go(&c, &in, SYBIL + i);
		(void)snprintf(number, sizeof number, "%u", (unsigned)last);
		if (i < BANNED)
			expect_banned(&c, number);
	}
	print_message("the last of them is member %u\n", (unsigned)last);
	assert_true(last >= 1000);
	expect_banned(&c, number);
	assert_int_equal(operator_says(&c, "status", NULL), 0);
	expect_newcomer(&c);
	expect_more_rounds(&c, 2);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(long_polls_of_one_member_stop_nobody, e2e_teardown),
		cmocka_unit_test_teardown(a_thousand_keys_of_one_link_stop_nobody, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
