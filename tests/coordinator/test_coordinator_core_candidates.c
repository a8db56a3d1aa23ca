/* Which addresses of a member the document names: all that were confirmed, a private one only while
 * another live member is seen at the same host. */
#include <stdio.h>
#include <string.h>

#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"

/* Sends a report of `who`, seen at `host`, with a private address as well. */
static void say_at(struct rig *r, uint32_t who, enum worker_phase phase, const char *host) {
	struct report rep = rig_report(r, who, phase);
	rep.n_candidates = 2;
	rep.candidates[0].kind = CANDIDATE_PRIVATE;
	(void)snprintf(rep.candidates[0].addr, NET_ADDR_BYTES, "192.168.1.%u:7434", who + 1);
	rep.candidates[1].kind = CANDIDATE_SEEN;
	(void)snprintf(rep.candidates[1].addr, NET_ADDR_BYTES, "%s:%u", host, 7434 + who);
	rig_send(r, who, &rep);
}

/* Returns the kinds of the addresses of `who` in the document, in their order: "ps". */
static const char *kinds_of(const struct rig *r, uint32_t who) {
	static char kinds[NET_MAX_CANDIDATES + 1];
	const struct document *d = rig_doc(r);
	int at = document_find(d, who), n = 0;
	assert_true(at >= 0);
	for (; n < d->members[at].n_candidates; n++)
		kinds[n] = candidate_kind_name(d->members[at].candidates[n].kind)[0];
	kinds[n] = '\0';
	return kinds;
}

static void test_two_in_one_house(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 1, 3);
	say_at(&r, 0, WORKER_TRAINING, "198.51.100.1");
	assert_string_equal(kinds_of(&r, 0), "s");
	say_at(&r, 1, WORKER_TRAINING, "198.51.100.2");
	assert_string_equal(kinds_of(&r, 0), "s");
	assert_string_equal(kinds_of(&r, 1), "s");
	say_at(&r, 2, WORKER_TRAINING, "198.51.100.1");
	assert_string_equal(kinds_of(&r, 0), "ps");
	assert_string_equal(kinds_of(&r, 1), "s");
	assert_string_equal(kinds_of(&r, 2), "ps");
	assert_string_equal(rig_doc(&r)->members[0].candidates[0].addr, "192.168.1.1:7434");
	rig_release(&r);
}

/* Hosts are compared whole. */
static void test_a_similar_host_is_another_house(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 1, 3);
	say_at(&r, 0, WORKER_TRAINING, "198.51.100.1");
	say_at(&r, 1, WORKER_TRAINING, "198.51.100.11");
	say_at(&r, 2, WORKER_TRAINING, "8.51.100.1");
	for (uint32_t i = 0; i < 3; i++)
		assert_string_equal(kinds_of(&r, i), "s");
	rig_release(&r);
}

/* One reports by IPv4, the other by IPv6; a relay has seen the other one's IPv4 mapping. */
static void test_a_house_with_two_families(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 1, 2);
	say_at(&r, 0, WORKER_TRAINING, "198.51.100.1");
	struct report rep = rig_report(&r, 1, WORKER_TRAINING);
	rep.n_candidates = 3;
	rep.candidates[0] = (struct candidate){.kind = CANDIDATE_PRIVATE, .addr = "192.168.1.2:7434"};
	rep.candidates[1] = (struct candidate){.kind = CANDIDATE_SEEN, .addr = "[2001:db8::2]:7434"};
	rep.candidates[2] = (struct candidate){.kind = CANDIDATE_REFLECTED, .addr = "198.51.100.1:40002"};
	rig_send(&r, 1, &rep);
	assert_string_equal(kinds_of(&r, 0), "ps");
	assert_string_equal(kinds_of(&r, 1), "psr");
	rep.candidates[2].kind = CANDIDATE_GIVEN; /* proves nothing about the house */
	rig_send(&r, 1, &rep);
	assert_string_equal(kinds_of(&r, 0), "s");
	rig_release(&r);
}

static void test_a_housemate_that_leaves_takes_the_private_address_along(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 1, 3);
	for (uint32_t i = 0; i < 3; i++)
		say_at(&r, i, WORKER_TRAINING, i < 2 ? "198.51.100.1" : "198.51.100.2");
	assert_string_equal(kinds_of(&r, 0), "ps");
	say_at(&r, 1, WORKER_TRAINING, "198.51.100.3"); /* moves out */
	assert_string_equal(kinds_of(&r, 0), "s");
	say_at(&r, 1, WORKER_TRAINING, "198.51.100.1");
	assert_string_equal(kinds_of(&r, 0), "ps");
	for (int i = 0; i < 4; i++) { /* dies */
		rig_wait(&r, 3 * RIG_S);
		say_at(&r, 0, WORKER_TRAINING, "198.51.100.1");
		say_at(&r, 2, WORKER_TRAINING, "198.51.100.2");
	}
	assert_string_equal(kinds_of(&r, 0), "s");
	say_at(&r, 1, WORKER_TRAINING, "198.51.100.1");
	assert_string_equal(kinds_of(&r, 0), "ps");
	assert_int_equal(core_ban(r.core, r.now_us, 1, true, NULL), RV_OK);
	rig_pump(&r);
	assert_string_equal(kinds_of(&r, 0), "s");
	rig_release(&r);
}

/* Addresses are durable: until members report again, a restarted coordinator names the same. */
static void test_a_restart_keeps_all_addresses(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, 1, 2);
	say_at(&r, 0, WORKER_TRAINING, "198.51.100.1");
	say_at(&r, 1, WORKER_TRAINING, "198.51.100.1");
	assert_int_equal(rig_last(&r, CORE_MEMBER)->n_candidates, 2);
	rig_restart(&r);
	say_at(&r, 0, WORKER_TRAINING, "198.51.100.1");
	assert_string_equal(kinds_of(&r, 0), "ps"); /* member 1 has not reported yet */
	rig_release(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_in_one_house),
		cmocka_unit_test(test_a_similar_host_is_another_house),
		cmocka_unit_test(test_a_house_with_two_families),
		cmocka_unit_test(test_a_housemate_that_leaves_takes_the_private_address_along),
		cmocka_unit_test(test_a_restart_keeps_all_addresses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
