/* The addresses of a member: their order, and how often one is dialed that never answered
 * (net/mesh/book.c). */
#include "net/mesh/book.h"

#include "base/clock.h"
#include "tests/common/check.h"

#include <stdio.h>
#include <string.h>

#define S    INT64_C(1000000)
#define HOUR (3600 * S)

static struct candidate_ref ref(enum candidate_kind kind, const char *addr) {
	struct candidate_ref c = {.kind = (uint8_t)kind};
	snprintf(c.addr, sizeof c.addr, "%s", addr);
	return c;
}

static enum book_news set3(struct book *b, const char *x, const char *y, const char *z) {
	const struct candidate_ref list[3] = {ref(CANDIDATE_SEEN, x), ref(CANDIDATE_REFLECTED, y), ref(CANDIDATE_GIVEN, z)};
	return book_set(b, list, 3);
}

static const char *host_at(const struct book *b, int i) {
	return i < b->n ? b->entries[i].at.host : "";
}

static const struct book_entry *dial(struct book *b, int64_t now_us) {
	const struct book_entry *e = book_next(b, now_us, ADDRESS_PUBLIC);
	if (e != NULL)
		book_dialed(b, e, now_us);
	return e;
}

/* Dials an address that refuses at once. Returns false if none may be dialed. */
static bool is_refused(struct book *b, int64_t now_us) {
	const struct book_entry *e = dial(b, now_us);
	if (e == NULL)
		return false;
	const struct address at = e->at;
	book_failed(b, &at, now_us, 1.0);
	return true;
}

static void addresses_are_dialed_in_order(void **state) {
	(void)state;
	struct book b = {0};
	assert_int_equal(set3(&b, "192.0.0.99:1", "1.2.3.4:5", "[2600::1]:7"), BOOK_CHANGED);
	assert_string_equal(dial(&b, 0)->at.host, "192.0.0.99");
	assert_string_equal(dial(&b, 0)->at.host, "1.2.3.4");
	assert_string_equal(dial(&b, 0)->at.host, "2600::1");
	assert_null(dial(&b, 0));
	book_rewind(&b);
	assert_string_equal(dial(&b, 0)->at.host, "192.0.0.99");
}

static void the_address_that_answered_is_first_from_then_on(void **state) {
	(void)state;
	struct book b = {0};
	set3(&b, "9.9.9.1:1", "9.9.9.2:1", "9.9.9.3:1");
	const struct address second = {.host = "9.9.9.2", .port = 1}, third = {.host = "9.9.9.3", .port = 1};
	assert_false(book_is_proven(&b));
	book_answered(&b, &second);
	book_answered(&b, &third);
	assert_true(book_is_proven(&b) && book_has_answered(&b, &second));
	for (int i = 0; i < 3; i++) {
		assert_string_equal(host_at(&b, 0), "9.9.9.3");
		assert_string_equal(host_at(&b, 1), "9.9.9.2");
		assert_string_equal(host_at(&b, 2), "9.9.9.1");
		assert_int_equal(set3(&b, "9.9.9.1:1", "9.9.9.2:1", "9.9.9.3:1"), BOOK_SAME);
	}
	assert_int_equal(set3(&b, "9.9.9.2:1", "9.9.9.4:1", "9.9.9.4:1"), BOOK_CHANGED); /* twice: once */
	assert_int_equal(b.n, 2);
	assert_string_equal(host_at(&b, 0), "9.9.9.2");
	assert_int_equal(set3(&b, "9.9.9.5:1", "nowhere", "9.9.9.6:1"), BOOK_MOVED);
	assert_int_equal(b.n, 2);
	assert_false(book_is_proven(&b));
	assert_int_equal(book_set(&b, NULL, 0), BOOK_MOVED);
	assert_null(book_next(&b, 0, ADDRESS_PUBLIC));
	assert_true(book_ready_us(&b, ADDRESS_PUBLIC) == INT64_MAX);
}

/* Dials whenever it may, for an hour; nobody answers within 2.9 s, or it refuses at once. */
static void an_address_that_never_answers_is_dialed_ever_more_seldom(void **state) {
	(void)state;
	static const int pauses_s[] = {30, 60, 120, 240, 480, 900, 900};
	for (int refused = 0; refused < 2; refused++) {
		struct book b = {0};
		const struct candidate_ref one = ref(CANDIDATE_SEEN, "9.9.9.1:1");
		int64_t ended_us[64] = {0};
		int n = 0;
		book_set(&b, &one, 1);
		for (int64_t now_us = 0; now_us < HOUR; now_us += S / 10) {
			const struct book_entry *e = dial(&b, now_us);
			book_rewind(&b);
			if (e == NULL)
				continue;
			bool is_brief = book_is_brief(e);
			now_us += refused ? 0 : is_brief ? S * 9 / 10 : S * 29 / 10;
			const struct address at = e->at;
			book_failed(&b, &at, now_us, 1.0);
			assert_int_equal(is_brief, n == 0 || n >= (refused ? 10 : 4));
			ended_us[n++] = now_us;
		}
		for (int i = refused ? 10 : 4; i < n; i++) {
			int64_t pause_us = ended_us[i] - ended_us[i - 1] - (refused ? 0 : S * 9 / 10);
			int64_t expected_us = pauses_s[i - (refused ? 10 : 4)] * S;
			assert_in_range(pause_us, expected_us, expected_us + S / 10);
		}
		assert_int_equal(n, (refused ? 10 : 4) + 7);
		book_answered(&b, &b.entries[0].at);
		for (int i = 0; i < 20; i++, book_rewind(&b))
			assert_true(is_refused(&b, HOUR)); /* it is the member's own */
	}
}

/* Other addresses each second, of which none ever answers. */
static void a_member_with_many_addresses_gets_no_more_attempts(void **state) {
	(void)state;
	struct book b = {0};
	char text[3][NET_ADDR_BYTES];
	int n = 0;
	for (int s = 0; s < 3600; s++) {
		for (int i = 0; i < 3; i++)
			snprintf(text[i], sizeof text[i], "9.9.%d.%d:%d", s % 7, i, 1 + s % 1000);
		set3(&b, text[0], text[1], text[2]);
		book_retry(&b);
		book_forgive(&b);
		while (is_refused(&b, s * S))
			n++;
		book_rewind(&b);
	}
	assert_in_range(n, 40 + 119, 40 + 120);
}

static void a_narrow_address_is_dialed_if_it_is_of_this_network(void **state) {
	(void)state;
	struct book b = {0};
	const struct candidate_ref list[] = {ref(CANDIDATE_SEEN, "192.168.1.5:1"), ref(CANDIDATE_PRIVATE, "127.0.0.1:2"),
										 ref(CANDIDATE_PRIVATE, "169.254.1.1:3"),
										 ref(CANDIDATE_PRIVATE, "192.168.1.5:4")};
	book_set(&b, list, 3);
	assert_null(book_next(&b, 0, ADDRESS_PUBLIC));
	assert_true(book_ready_us(&b, ADDRESS_PUBLIC) == INT64_MAX);
	assert_string_equal(book_too_narrow(&b, ADDRESS_PUBLIC)->host, "192.168.1.5");
	book_set(&b, list, 4);
	assert_int_equal(book_next(&b, 0, ADDRESS_PUBLIC)->at.port, 4);
	assert_null(book_too_narrow(&b, ADDRESS_PUBLIC));
	assert_int_equal(book_next(&b, 0, ADDRESS_PRIVATE)->at.port, 1);
	assert_int_equal(b.entries[0].kind, CANDIDATE_SEEN);
}

/* What failed while this machine had another address, or none, says nothing of the others. */
static void a_change_of_the_own_network_forgives(void **state) {
	(void)state;
	struct book b = {0};
	const struct candidate_ref one = ref(CANDIDATE_SEEN, "9.9.9.1:1");
	book_set(&b, &one, 1);
	for (int i = 0; i < 11; i++, book_rewind(&b))
		assert_int_equal(is_refused(&b, 0), i < 10);
	assert_true(book_ready_us(&b, ADDRESS_PUBLIC) == 30 * S);
	assert_int_equal(book_set(&b, &one, 1), BOOK_SAME);
	assert_true(book_ready_us(&b, ADDRESS_PUBLIC) == 30 * S);
	book_retry(&b); /* the member is there again: one attempt */
	assert_true(is_refused(&b, S));
	book_rewind(&b);
	assert_true(book_ready_us(&b, ADDRESS_PUBLIC) == S + 60 * S);
	book_forgive(&b);
	for (int i = 0; i < 11; i++, book_rewind(&b))
		assert_int_equal(is_refused(&b, 2 * S), i < 10);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_dialed_in_order),
		cmocka_unit_test(the_address_that_answered_is_first_from_then_on),
		cmocka_unit_test(an_address_that_never_answers_is_dialed_ever_more_seldom),
		cmocka_unit_test(a_member_with_many_addresses_gets_no_more_attempts),
		cmocka_unit_test(a_narrow_address_is_dialed_if_it_is_of_this_network),
		cmocka_unit_test(a_change_of_the_own_network_forgives),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
