/* Documents on their way: whole at first, then as patches; nothing where nothing changed; and a
 * member that keeps something else gets a whole one. The reader is the worker's own. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/service/delivery.h"
#include "tests/common/check.h"
#include "worker/join/document_opener.h"

enum { SLOT = 3, SLOTS = 5 };

struct scene {
	struct identity run;
	struct delivery *delivery;
	struct document_opener reader;
	struct document_wish wish;
	struct document doc, got;
	bool was_patch;
};

static int set_up(void **state) {
	struct scene *s = calloc(1, sizeof *s);
	identity_of_seed((const uint8_t[IDENTITY_SEED_BYTES]){9}, &s->run);
	memcpy(s->reader.serving_key, s->run.key, NET_KEY_BYTES);
	assert_int_equal(delivery_new(&s->run, SLOTS, &s->delivery, NULL), RV_OK);
	s->wish = (struct document_wish){.version = CONTROL_VERSION, .any = true};
	s->doc = (struct document){.seq = 10, .phase = RUN_OPEN, .final_round = 30, .chain.b = {1}};
	*state = s;
	return 0;
}

static int tear_down(void **state) {
	struct scene *s = *state;
	delivery_free(s->delivery);
	document_opener_release(&s->reader);
	free(s);
	return 0;
}

/* Asks as a worker does; returns false if there is nothing new. */
static bool ask(struct scene *s, const struct document_wish *wish) {
	struct document_reply r;
	const uint8_t *bytes;
	size_t n;
	if (!delivery_needs(s->delivery, SLOT, wish, s->doc.seq))
		return false;
	assert_int_equal(delivery_make(s->delivery, SLOT, wish, &s->doc, &r, NULL), RV_OK);
	if (r.n == 0)
		return false;
	s->was_patch = r.is_patch;
	assert_int_equal(document_opener_open(&s->reader, r.is_patch, r.bytes, r.n, &bytes, &n, NULL), RV_OK);
	assert_int_equal(document_decode(bytes, n, &s->got, NULL), RV_OK);
	assert_int_equal(s->got.seq, s->doc.seq);
	s->wish =
		(struct document_wish){.version = CONTROL_VERSION, .after = s->got.seq, .has_base = true, .have = s->got.seq};
	return true;
}

static void change(struct scene *s) {
	s->doc.seq++;
	s->doc.final_round++;
}

static void test_whole_then_patches(void **state) {
	struct scene *s = *state;
	assert_true(ask(s, &s->wish));
	assert_false(s->was_patch);
	for (int i = 0; i < 4; i++) {
		assert_false(ask(s, &s->wish));
		change(s);
		assert_true(ask(s, &s->wish));
		assert_true(s->was_patch);
		assert_int_equal(s->got.final_round, s->doc.final_round);
	}
	delivery_forget(s->delivery, SLOT); /* another member has the slot */
	change(s);
	assert_true(ask(s, &s->wish));
	assert_false(s->was_patch);
}

/* The number alone is no news. */
static void test_what_says_the_same_is_not_sent(void **state) {
	struct scene *s = *state;
	assert_true(ask(s, &s->wish));
	s->doc.seq += 3;
	assert_true(delivery_needs(s->delivery, SLOT, &s->wish, s->doc.seq));
	assert_false(ask(s, &s->wish));
	assert_false(delivery_needs(s->delivery, SLOT, &s->wish, s->doc.seq)); /* not compared again */
	change(s);
	assert_true(ask(s, &s->wish));
	assert_true(s->was_patch);
	struct document_wish now = s->wish;
	now.any = true; /* after an absence: whatever it is */
	s->doc.seq++;
	assert_true(ask(s, &now));
}

/* A reply that did not arrive: the member asks with what it has, and gets a whole one. */
static void test_a_lost_reply(void **state) {
	struct scene *s = *state;
	assert_true(ask(s, &s->wish));
	const struct document_wish before = s->wish;
	struct document_reply lost;
	change(s);
	assert_int_equal(delivery_make(s->delivery, SLOT, &before, &s->doc, &lost, NULL), RV_OK);
	assert_true(lost.is_patch);
	assert_true(ask(s, &before));
	assert_false(s->was_patch);
	change(s);
	assert_int_equal(delivery_make(s->delivery, SLOT, &s->wish, &s->doc, &lost, NULL), RV_OK);
	change(s);
	assert_true(ask(s, &s->wish)); /* and one later */
	assert_false(s->was_patch);
	change(s);
	assert_true(ask(s, &s->wish));
	assert_true(s->was_patch);
}

static void test_a_member_that_keeps_nothing(void **state) {
	struct scene *s = *state;
	for (int i = 0; i < 3; i++) {
		assert_true(ask(s, &s->wish));
		assert_false(s->was_patch);
		s->wish.has_base = false;
		change(s);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_whole_then_patches, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_says_the_same_is_not_sent, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_lost_reply, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_member_that_keeps_nothing, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
