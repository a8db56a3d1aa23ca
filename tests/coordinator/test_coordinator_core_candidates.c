/* Which addresses of a member the document names: all that were confirmed, a private one only while
 * another live member is seen at the same host. */
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "net/control/candidate.h"
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

/* ---- many, in few houses ---- */

enum { TOWN = 90, HOSTS = 24 };

/* Where a member says that it is: at a host, and perhaps another one where a relay has seen it. */
struct home {
	int host, other; /* other < 0: none */
	bool has_private;
};

static void say_home(struct rig *r, uint32_t who, const struct home *h) {
	struct report rep = rig_report(r, who, WORKER_TRAINING);
	int n = 0;
	if (h->has_private) {
		rep.candidates[n].kind = CANDIDATE_PRIVATE;
		(void)snprintf(rep.candidates[n++].addr, NET_ADDR_BYTES, "192.168.1.%u:7434", who + 1);
	}
	rep.candidates[n].kind = CANDIDATE_SEEN;
	(void)snprintf(rep.candidates[n++].addr, NET_ADDR_BYTES, "198.51.100.%d:%u", h->host, 7434 + who);
	if (h->other >= 0) {
		rep.candidates[n].kind = CANDIDATE_REFLECTED;
		(void)snprintf(rep.candidates[n++].addr, NET_ADDR_BYTES, "198.51.100.%d:%u", h->other, 40000 + who);
	}
	rep.n_candidates = (uint8_t)n;
	rig_send(r, who, &rep);
}

static bool is_there(const struct rig *r, uint32_t who) {
	const struct core_member_view v = rig_view(r, who);
	return v.alive && !v.banned && v.last->phase != WORKER_LEAVING;
}

/* Looks at all others, by what they have reported. */
static bool has_housemate(const struct rig *r, uint32_t who) {
	const struct report *own = rig_view(r, who).last;
	struct candidate_ref a[NET_MAX_CANDIDATES], b[NET_MAX_CANDIDATES];
	for (int i = 0; i < own->n_candidates; i++) {
		a[i].kind = own->candidates[i].kind;
		memcpy(a[i].addr, own->candidates[i].addr, sizeof a[i].addr);
	}
	for (uint32_t other = 0; other < TOWN; other++) {
		const struct report *rep = rig_view(r, other).last;
		for (int i = 0; i < rep->n_candidates; i++) {
			b[i].kind = rep->candidates[i].kind;
			memcpy(b[i].addr, rep->candidates[i].addr, sizeof b[i].addr);
		}
		if (other != who && is_there(r, other) && candidates_share_host(a, own->n_candidates, b, rep->n_candidates))
			return true;
	}
	return false;
}

/* Every document names a private address of those, and only those, that have a housemate. Returns
 * how many were named. */
static int check_town(const struct rig *r) {
	static struct document d;
	int named = 0;
	for (uint32_t reader = 0; reader < TOWN; reader += 7) {
		assert_true(core_document_of(r->core, rig_view(r, reader).slot, &d));
		for (int i = 0; i < d.n_members; i++) {
			bool is_private = d.members[i].candidates[0].kind == CANDIDATE_PRIVATE;
			const struct report *rep = rig_view(r, d.members[i].member).last;
			bool has_private = rep->candidates[0].kind == CANDIDATE_PRIVATE;
			assert_int_equal(is_private, has_private && has_housemate(r, d.members[i].member));
			named += is_private;
		}
	}
	return named;
}

/* Members move, fall silent, come back and are banned; what documents say is what a look at all of
 * them says. */
static void test_a_town(void **state) {
	(void)state;
	struct rig r;
	struct rv_rng rng = rv_rng_of(31, 7);
	struct home homes[TOWN];
	bool silent[TOWN] = {false}, banned[TOWN] = {false};
	int named = 0;
	rig_init(&r, 2);
	r.cfg.max_here = 128;
	rig_start(&r);
	rig_join(&r, TOWN);
	for (int turn = 0; turn < 60; turn++) {
		for (uint32_t who = 0; who < TOWN; who++) {
			if (turn == 0 || rv_rng_below(&rng, 40) == 0)
				homes[who] = (struct home){.host = (int)rv_rng_below(&rng, HOSTS),
										   .other = (int)rv_rng_below(&rng, 2 * HOSTS) - HOSTS,
										   .has_private = rv_rng_below(&rng, 4) > 0};
			if (turn > 0 && rv_rng_below(&rng, 20) == 0)
				silent[who] = !silent[who];
			if (turn > 0 && rv_rng_below(&rng, 200) == 0) {
				banned[who] = !banned[who];
				assert_int_equal(core_ban(r.core, r.now_us, who, banned[who], NULL), RV_OK);
				rig_pump(&r);
			}
			if (turn == 0 || (!silent[who] && !banned[who]))
				say_home(&r, who, &homes[who]);
		}
		rig_wait(&r, 40 * RIG_S / 10);
		rig_pump(&r);
		named += check_town(&r);
	}
	assert_true(named > 100);
	rig_release(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_in_one_house),
		cmocka_unit_test(test_a_similar_host_is_another_house),
		cmocka_unit_test(test_a_house_with_two_families),
		cmocka_unit_test(test_a_housemate_that_leaves_takes_the_private_address_along),
		cmocka_unit_test(test_a_restart_keeps_all_addresses),
		cmocka_unit_test(test_a_town),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
