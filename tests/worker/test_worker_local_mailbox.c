/* mailbox.h: commands and answers between two threads; here both sides are this one. */
#include "tests/common/check.h"
#include "worker/local/mailbox.h"

#include <poll.h>
#include <string.h>

static struct mailbox *m;

static bool is_readable(int fd) {
	struct pollfd p = {.fd = fd, .events = POLLIN};
	return poll(&p, 1, 0) == 1;
}

static json_t *command(int i) {
	return json_pack("{s:i}", "i", i);
}

static uint64_t post(int i) {
	uint64_t ticket = 0;
	assert_true(mailbox_post(m, command(i), &ticket));
	return ticket;
}

/* Takes the oldest, which must be number i. */
static uint64_t take(int i) {
	uint64_t ticket = 0;
	json_t *c = mailbox_take(m, &ticket);
	assert_int_equal(json_integer_value(json_object_get(c, "i")), i);
	json_decref(c);
	return ticket;
}

static void answer(uint64_t ticket, const char *text) {
	struct local_answer a = {.ok = true};
	(void)strcpy(a.text, text);
	mailbox_answer(m, ticket, &a);
}

static void test_commands_come_in_order(void **state) {
	(void)state;
	uint64_t ticket;
	struct local_answer a;
	assert_false(is_readable(mailbox_owner_fd(m)));
	const uint64_t first = post(1), second = post(2);
	assert_true(is_readable(mailbox_owner_fd(m)));
	assert_int_equal(take(1), first);
	assert_true(is_readable(mailbox_owner_fd(m)));
	assert_int_equal(take(2), second);
	assert_null(mailbox_take(m, &ticket));
	assert_false(is_readable(mailbox_owner_fd(m)));
	assert_false(mailbox_collect(m, &ticket, &a));
	answer(second, "two");
	assert_true(is_readable(mailbox_receiver_fd(m)));
	assert_true(mailbox_collect(m, &ticket, &a));
	assert_int_equal(ticket, second);
	assert_string_equal(a.text, "two");
	answer(first, "one");
	assert_true(mailbox_collect(m, &ticket, &a));
	assert_int_equal(ticket, first);
	assert_false(mailbox_collect(m, &ticket, &a));
	assert_false(is_readable(mailbox_receiver_fd(m)));
}

static void test_what_is_given_up_is_not_done(void **state) {
	(void)state;
	uint64_t ticket;
	struct local_answer a;
	const uint64_t first = post(1);
	(void)post(2);
	assert_true(mailbox_give_up(m, first));
	const uint64_t second = take(2);
	assert_null(mailbox_take(m, &ticket));
	assert_false(mailbox_give_up(m, second)); /* the owner is at it */
	answer(second, "done, and nobody asks");
	assert_false(mailbox_collect(m, &ticket, &a));
}

static void test_it_is_bounded(void **state) {
	(void)state;
	uint64_t ticket;
	for (int i = 0; i < MAILBOX_MOST; i++)
		(void)post(i);
	assert_false(mailbox_post(m, command(9), &ticket));
	const uint64_t first = take(0);
	assert_false(mailbox_post(m, command(9), &ticket)); /* its answer needs the place */
	assert_false(mailbox_give_up(m, first));
	answer(first, "");
	(void)post(9);
}

static void test_closing_wakes_for_good(void **state) {
	(void)state;
	uint64_t ticket;
	struct local_answer a;
	assert_false(mailbox_is_closed(m));
	mailbox_close(m);
	assert_true(mailbox_is_closed(m));
	assert_false(mailbox_collect(m, &ticket, &a));
	assert_true(is_readable(mailbox_receiver_fd(m)));
}

static int set_up(void **state) {
	(void)state;
	return mailbox_new(&m, NULL) == RV_OK ? 0 : -1;
}

static int tear_down(void **state) {
	(void)state;
	mailbox_free(m);
	return 0;
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_commands_come_in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_given_up_is_not_done, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_it_is_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_closing_wakes_for_good, set_up, tear_down)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
