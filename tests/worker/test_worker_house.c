/* Private addresses of members: only those in this worker's own network are kept
 * (worker/mesh/house.c). */
#include "tests/common/check.h"
#include "worker/mesh/house.h"

#include <stdio.h>
#include <string.h>

enum { SELF = 3, OTHER = 5 };

static struct member_ref at(uint32_t member, const char *seen, const char *private) {
	struct member_ref r = {.member = member, .n_candidates = 3};
	const char *const texts[3] = {seen, private, "198.51.100.1:9"};
	static const uint8_t kinds[3] = {CANDIDATE_SEEN, CANDIDATE_PRIVATE, CANDIDATE_GIVEN};
	for (int i = 0; i < 3; i++) {
		r.candidates[i].kind = kinds[i];
		snprintf(r.candidates[i].addr, sizeof r.candidates[i].addr, "%s", texts[i]);
	}
	return r;
}

static int kept(const struct house *h, const char *seen) {
	struct member_ref r = at(OTHER, seen, "192.168.1.7:7434");
	house_filter(h, &r);
	if (r.n_candidates == 2)
		assert_int_equal(r.candidates[1].kind, CANDIDATE_GIVEN);
	return r.n_candidates;
}

static void only_the_own_network_is_dialed_privately(void **state) {
	(void)state;
	struct house h = {0};
	static struct document d;
	assert_int_equal(kept(&h, "203.0.113.1:7434"), 2); /* nothing is known yet */
	assert_int_equal(kept(&h, ""), 2);
	d = (struct document){.n_members = 2,
						  .members = {at(1, "203.0.113.9:1", ":1"), at(SELF, "203.0.113.1:40000", ":1")}};
	house_follow(&h, &d, SELF);
	assert_int_equal(kept(&h, "203.0.113.1:7434"), 3); /* any port */
	assert_int_equal(kept(&h, "203.0.113.9:7434"), 2);
	assert_int_equal(kept(&h, ""), 2);
	d.n_members = 1; /* it is in no roster: what it knows stays */
	house_follow(&h, &d, SELF);
	assert_int_equal(kept(&h, "203.0.113.1:7434"), 3);
	d = (struct document){.n_syncing = 1, .syncing = {at(SELF, "[2001:db8::1]:7", ":1")}}; /* it moved */
	house_follow(&h, &d, SELF);
	assert_int_equal(kept(&h, "203.0.113.1:7434"), 2);
	assert_int_equal(kept(&h, "[2001:db8::1]:7434"), 3);
}

/* One machine is seen by IPv6, the other by IPv4; relays have seen both families. */
static void a_relay_tells_who_is_in_the_house(void **state) {
	(void)state;
	struct house h = {0};
	static struct document d;
	d = (struct document){.n_members = 1, .members = {at(SELF, "[2001:db8::1]:7", "192.168.1.3:7434")}};
	d.members[0].candidates[2] = (struct candidate_ref){CANDIDATE_REFLECTED, "203.0.113.1:40000"};
	house_follow(&h, &d, SELF);
	assert_int_equal(kept(&h, "203.0.113.1:7434"), 3);
	assert_int_equal(kept(&h, "203.0.113.11:7434"), 2);
	d.members[0].candidates[2].kind = CANDIDATE_GIVEN; /* its person's statement */
	house_follow(&h, &d, SELF);
	assert_int_equal(kept(&h, "203.0.113.1:7434"), 2);
}

/* Two houses behind one carrier's translation have the same private addresses. */
static void the_own_address_is_not_dialed(void **state) {
	(void)state;
	struct house h = {0};
	static struct document d;
	d = (struct document){.n_members = 1, .members = {at(SELF, "203.0.113.1:7", "192.168.1.7:7434")}};
	house_follow(&h, &d, SELF);
	assert_int_equal(kept(&h, "203.0.113.1:8"), 2);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(only_the_own_network_is_dialed_privately),
									   cmocka_unit_test(a_relay_tells_who_is_in_the_house),
									   cmocka_unit_test(the_own_address_is_not_dialed)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
