/* test_coordinator_text_turns.c: who has a place among the requests for text, and who makes way. */
#include "coordinator/web/text_turns.h"

#include "tests/common/check.h"

#include <string.h>

enum { MEMBERS = TEXT_REPLIES_MAX / TEXT_REPLIES_PER_MEMBER, MORE = 3 * TEXT_REPLIES_MAX, S = 1000 * 1000 };

struct world {
	struct text_turns turns;
	struct text_turn at[MORE];
	int n;
};

static const uint8_t *key_of(int member) {
	static uint8_t key[NET_KEY_BYTES];
	memset(key, 0, sizeof key);
	memcpy(key, &member, sizeof member);
	return key;
}

static struct text_turn *add(struct world *w, int member) {
	struct text_turn *t = &w->at[w->n++];
	text_turns_add(&w->turns, t, key_of(member));
	return t;
}

static int member_of(const struct text_turn *t) {
	int member;
	memcpy(&member, t->key, sizeof member);
	return member;
}

/* So many members that read nothing take two places each, and a part of each is on its way. */
static void take_all(struct world *w) {
	memset(w, 0, sizeof *w);
	text_turns_init(&w->turns, 0);
	for (int i = 0; i < MEMBERS; i++) {
		assert_true(text_turns_admits(&w->turns, key_of(i)));
		text_turns_sent(&w->turns, add(w, i), i);
		(void)add(w, i);
		assert_false(text_turns_admits(&w->turns, key_of(i)));
	}
}

static void a_second_request_makes_way(void **state) {
	static struct world w;
	(void)state;
	take_all(&w);
	for (int i = 0; i < MEMBERS; i++) {
		const int newcomer = 1000 + i;
		assert_false(text_turns_admits(&w.turns, key_of(newcomer)));
		struct text_turn *t = text_turns_gives_way(&w.turns, key_of(newcomer), S);
		assert_non_null(t);
		assert_false(t->leaves);
		assert_int_equal(member_of(t), MEMBERS - 1 - i);
		text_turns_remove(&w.turns, t);
		assert_true(text_turns_admits(&w.turns, key_of(newcomer)));
		text_turns_sent(&w.turns, add(&w, newcomer), S);
	}
	/* Everybody has one place. A member that has one gets no other at the cost of somebody. */
	assert_null(text_turns_gives_way(&w.turns, key_of(2000), S));
	assert_null(text_turns_gives_way(&w.turns, key_of(1000), 100 * S));
}

static void then_the_slowest_does(void **state) {
	static struct world w;
	(void)state;
	memset(&w, 0, sizeof w);
	text_turns_init(&w.turns, 0);
	for (int i = 0; i < TEXT_REPLIES_MAX; i++)
		text_turns_sent(&w.turns, add(&w, i), (i == 5 ? 1 : 2) * S);
	w.at[7].leaves = false; /* its part has left: it is served again when it is its turn */
	assert_null(text_turns_gives_way(&w.turns, key_of(100), TEXT_SLOW_US + S - 1));
	struct text_turn *t = text_turns_gives_way(&w.turns, key_of(100), TEXT_SLOW_US + S);
	assert_non_null(t);
	assert_int_equal(member_of(t), 5);
	for (int i = 0; i < TEXT_REPLIES_MAX - 1; i++) {
		t = text_turns_gives_way(&w.turns, key_of(100 + i), 100 * S);
		assert_true(t != NULL && member_of(t) != 7);
		text_turns_remove(&w.turns, t);
		(void)add(&w, 100 + i);
	}
	assert_null(text_turns_gives_way(&w.turns, key_of(999), 100 * S));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_second_request_makes_way),
		cmocka_unit_test(then_the_slowest_does),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
