/* At which addresses a member is announced, whatever it reports: a test for each lie. */
#include <stdio.h>
#include <string.h>

#include "coordinator/service/member_address.h"
#include "net/identity.h"
#include "tests/common/check.h"

static const char SITE[] = "203.0.113.7"; /* where the coordinator is advertised */
enum { PORT = 7433, NOW_S = 1800000000, DAY_S = 24 * 3600 };

struct scene {
	struct member_sight sight;
	struct relay_ref relays[2];
	struct identity relay[2], stranger, member, other;
	struct member_facts facts;
};

static void make_identity(uint8_t seed, struct identity *out) {
	const uint8_t bytes[IDENTITY_SEED_BYTES] = {seed};
	identity_of_seed(bytes, out);
}

static void see(struct scene *s, const char *host, const char *own, const char *site) {
	memset(&s->sight, 0, sizeof s->sight);
	memcpy(s->sight.host, host, strlen(host) + 1);
	memcpy(s->sight.own, own, strlen(own) + 1);
	s->facts.site = site;
}

/* A member at home, and a run with two relays. */
static int open_scene(void **state) {
	static struct scene scene;
	struct scene *s = &scene;
	memset(s, 0, sizeof *s);
	make_identity(1, &s->relay[0]);
	make_identity(2, &s->relay[1]);
	make_identity(3, &s->stranger);
	make_identity(4, &s->member);
	make_identity(5, &s->other);
	for (int i = 0; i < 2; i++)
		memcpy(s->relays[i].key, s->relay[i].key, NET_KEY_BYTES);
	s->facts = (struct member_facts){
		.sight = &s->sight, .port = PORT, .run_id = {7}, .relays = s->relays, .n_relays = 2, .unix_s = NOW_S};
	memcpy(s->facts.key, s->member.key, NET_KEY_BYTES);
	see(s, "198.51.100.9", "192.0.2.1", SITE);
	*state = s;
	return 0;
}

/* ---- seen ---- */

/* Seen at `host` by the coordinator's end `own`, it is announced as `expected`. */
static void check_seen(struct scene *s, const char *host, const char *own, const char *site, const char *expected) {
	struct rv_errtext et = {0};
	char out[NET_ADDR_BYTES];
	see(s, host, own, site);
	if (member_address_seen(&s->facts, ":7000", out, &et) != RV_OK)
		fail_msg("%s: %s", host, et.text);
	assert_string_equal(out, expected);
}

static void test_a_public_member_is_where_it_is_seen(void **state) {
	struct scene *s = *state;
	check_seen(s, "198.51.100.9", "192.0.2.1", SITE, "198.51.100.9:7000");
	check_seen(s, "2001:db8::9", "2001:db8::1", SITE, "[2001:db8::9]:7000");
	check_seen(s, "198.51.100.9", "10.0.0.1", SITE, "198.51.100.9:7000"); /* a forwarded port here */
}

static void test_private_is_announced_where_the_coordinator_is(void **state) {
	struct scene *s = *state;
	check_seen(s, "192.168.0.5", "192.168.0.1", "192.168.0.1", "192.168.0.5:7000");
	check_seen(s, "192.168.0.5", "192.168.0.1", SITE, "192.168.0.5:7000");
	check_seen(s, "10.1.0.5", "192.168.0.1", "", "10.1.0.5:7000");
	check_seen(s, "fd00::5", "fd00::1", "", "[fd00::5]:7000");
	check_seen(s, "169.254.3.4", "169.254.1.1", "", "169.254.3.4:7000");
	check_seen(s, "192.168.0.5", "198.51.100.1", SITE, "203.0.113.7:7000"); /* the other side of its router */
	check_seen(s, "192.168.0.5", "198.51.100.1", "", "198.51.100.1:7000");
}

static void test_loopback_is_the_coordinators_machine(void **state) {
	struct scene *s = *state;
	check_seen(s, "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1:7000");
	check_seen(s, "127.0.0.1", "127.0.0.1", "", "127.0.0.1:7000");
	check_seen(s, "127.0.0.1", "127.0.0.1", SITE, "203.0.113.7:7000");
	check_seen(s, "127.0.0.1", "127.0.0.1", "192.168.0.1", "192.168.0.1:7000");
	check_seen(s, "::1", "::1", "2001:db8::1", "[2001:db8::1]:7000");
}

static void check_not_seen(struct scene *s, const char *host, const char *port, const char *text) {
	struct rv_errtext et = {0};
	char out[NET_ADDR_BYTES];
	see(s, host, "192.0.2.1", SITE);
	assert_int_equal(member_address_seen(&s->facts, port, out, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, text));
}

static void test_what_cannot_be_dialed_is_refused(void **state) {
	check_not_seen(*state, "", ":7000", "cannot be dialed");
	check_not_seen(*state, "0.0.0.0", ":7000", "cannot be dialed");
	check_not_seen(*state, "224.0.0.9", ":7000", "cannot be dialed");
}

/* Behind one router with the coordinator, its own forwarded port. */
static void test_the_coordinators_port_is_refused(void **state) {
	check_not_seen(*state, SITE, ":7433", "is the coordinator's");
	check_not_seen(*state, "192.0.2.1", ":7433", "is the coordinator's");
	check_seen(*state, SITE, "192.0.2.1", SITE, "203.0.113.7:7000");
}

/* ---- the other kinds ---- */

static enum member_verdict judge(struct scene *s, const struct candidate *c, char out[NET_ADDR_BYTES],
								 struct rv_errtext *why) {
	char seen[NET_ADDR_BYTES];
	assert_ok(member_address_seen(&s->facts, ":7434", seen, &et));
	return member_address_judge(&s->facts, seen, c, out, why);
}

static struct candidate at(uint8_t kind, const char *addr) {
	struct candidate c = {.kind = kind};
	(void)snprintf(c.addr, sizeof c.addr, "%s", addr);
	return c;
}

static void check_refused(struct scene *s, uint8_t kind, const char *addr, const char *text) {
	const struct candidate c = at(kind, addr);
	struct rv_errtext why = {0};
	char out[NET_ADDR_BYTES];
	if (judge(s, &c, out, &why) != MEMBER_REFUSED)
		fail_msg("%s %s is not refused", candidate_kind_name(kind), addr);
	if (strstr(why.text, text) == NULL)
		fail_msg("%s: '%s' is not in '%s'", addr, text, why.text);
}

static void check_confirmed(struct scene *s, uint8_t kind, const char *addr, const char *expected) {
	const struct candidate c = at(kind, addr);
	struct rv_errtext why = {0};
	char out[NET_ADDR_BYTES];
	if (judge(s, &c, out, &why) != MEMBER_CONFIRMED)
		fail_msg("%s %s: %s", candidate_kind_name(kind), addr, why.text);
	assert_string_equal(out, expected);
}

static void check_needs_probe(struct scene *s, const char *addr) {
	const struct candidate c = at(CANDIDATE_GIVEN, addr);
	struct rv_errtext why = {0};
	char out[NET_ADDR_BYTES];
	assert_int_equal(judge(s, &c, out, &why), MEMBER_NEEDS_PROBE);
	assert_non_null(strstr(why.text, "another host"));
}

/* The victim of row 19: any host that one member names, all would dial. */
static void test_somebody_elses_address_is_not_believed(void **state) {
	check_needs_probe(*state, "8.8.8.8:53");
	check_needs_probe(*state, "[2001:db8::7]:443");
	check_refused(*state, CANDIDATE_PRIVATE, "8.8.8.8:7434", "private range");
	check_refused(*state, CANDIDATE_PRIVATE, "[2001:db8::7]:7434", "private range");
}

static void test_a_narrow_address_is_given_to_nobody_outside(void **state) {
	static const char *const narrow[] = {"127.0.0.1:7434",   "[::1]:7434",     "169.254.169.254:7434",
										 "192.168.0.1:7434", "0.0.0.0:7434",   "255.255.255.255:7434",
										 "224.0.0.1:7434",   "[ff02::1]:7434", "[::ffff:10.0.0.1]:7434"};
	for (size_t i = 0; i < sizeof narrow / sizeof narrow[0]; i++)
		check_refused(*state, CANDIDATE_GIVEN, narrow[i], "nobody outside");
}

static void test_another_port_of_its_own_host_may_be_given(void **state) {
	struct scene *s = *state;
	check_confirmed(s, CANDIDATE_GIVEN, "198.51.100.9:7001", "198.51.100.9:7001");
	check_confirmed(s, CANDIDATE_GIVEN, "[::ffff:198.51.100.9]:7001", "198.51.100.9:7001");
}

/* The operator's own machines behind the router whose ports it forwards. */
static void test_at_the_coordinators_site_its_host_may_be_given(void **state) {
	struct scene *s = *state;
	see(s, "192.168.0.5", "192.168.0.1", SITE);
	check_confirmed(s, CANDIDATE_GIVEN, "203.0.113.7:7001", "203.0.113.7:7001");
	see(s, "127.0.0.1", "127.0.0.1", SITE);
	check_confirmed(s, CANDIDATE_GIVEN, "203.0.113.7:7001", "203.0.113.7:7001");
	see(s, "198.51.100.9", "192.0.2.1", SITE);
	check_needs_probe(s, "203.0.113.7:7001");
	see(s, "192.168.0.5", "192.168.0.1", "192.168.0.1");
	check_needs_probe(s, "192.168.0.1:7001");
}

static void test_the_coordinator_is_no_members_address(void **state) {
	struct scene *s = *state;
	check_refused(s, CANDIDATE_GIVEN, "203.0.113.7:7433", "the coordinator itself");
	check_refused(s, CANDIDATE_GIVEN, "192.0.2.1:7433", "the coordinator itself");
	check_refused(s, CANDIDATE_REFLECTED, "203.0.113.7:7433", "the coordinator itself");
	see(s, "192.168.0.5", "192.168.0.1", SITE);
	check_refused(s, CANDIDATE_PRIVATE, "192.168.0.1:7433", "the coordinator itself");
	check_refused(s, CANDIDATE_PRIVATE, "192.168.0.1:8080", "the coordinator's host");
	see(s, "192.168.0.1", "192.168.0.1", SITE); /* a worker on the coordinator's machine */
	check_confirmed(s, CANDIDATE_PRIVATE, "192.168.0.1:7434", "192.168.0.1:7434");
}

static void test_private_ranges(void **state) {
	struct scene *s = *state;
	check_confirmed(s, CANDIDATE_PRIVATE, "192.168.1.17:7434", "192.168.1.17:7434");
	check_confirmed(s, CANDIDATE_PRIVATE, "10.1.2.3:7434", "10.1.2.3:7434");
	check_confirmed(s, CANDIDATE_PRIVATE, "172.31.0.9:1024", "172.31.0.9:1024");
	check_confirmed(s, CANDIDATE_PRIVATE, "100.64.3.4:7434", "100.64.3.4:7434");
	check_confirmed(s, CANDIDATE_PRIVATE, "[fd12:0::9]:7434", "[fd12::9]:7434");
}

static void test_what_is_no_machine_of_a_house_is_refused(void **state) {
	static const char *const wrong[] = {"127.0.0.1:7434",     "[::1]:7434",       "0.0.0.0:7434",
										"169.254.3.4:7434",   "[fe80::9]:7434",   "255.255.255.255:7434",
										"224.0.0.1:7434",     "239.255.1.1:7434", "[ff02::1]:7434",
										"192.168.1.255:7434", "192.168.1.0:7434", "10.0.255.255:7434"};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		check_refused(*state, CANDIDATE_PRIVATE, wrong[i], "a machine in a private range");
	check_refused(*state, CANDIDATE_PRIVATE, "192.168.1.1:80", "below 1024");
	check_refused(*state, CANDIDATE_PRIVATE, "192.168.1.1:1023", "below 1024");
}

/* ---- proofs ---- */

static struct candidate reflected(const struct scene *s, const struct identity *relay, uint8_t place,
								  const struct identity *member, const char *addr, uint64_t unix_s) {
	struct candidate c = at(CANDIDATE_REFLECTED, addr);
	c.relay = place;
	c.unix_s = unix_s;
	seen_sign(relay, s->facts.run_id, member->key, addr, unix_s, c.signature);
	return c;
}

/* Returns true if the candidate is announced. */
static bool is_announced(struct scene *s, const struct candidate *c, const char *text) {
	struct rv_errtext why = {0};
	char out[NET_ADDR_BYTES];
	enum member_verdict v = judge(s, c, out, &why);
	assert_true(v == MEMBER_NEEDS_PROOF || v == MEMBER_UNPROVEN || v == MEMBER_REFUSED);
	if (v != MEMBER_NEEDS_PROOF && (text == NULL || strstr(why.text, text) == NULL))
		fail_msg("'%s' is not '%s'", why.text, text != NULL ? text : "announced");
	return v == MEMBER_NEEDS_PROOF && member_proof_check(&s->facts, c);
}

static void test_what_the_operators_relay_has_seen_is_announced(void **state) {
	struct scene *s = *state;
	for (uint8_t i = 0; i < 2; i++) {
		struct candidate c =
			reflected(s, &s->relay[i], (uint8_t)(i + 1), &s->member, "[2001:db8::9]:40001", NOW_S - DAY_S);
		assert_true(is_announced(s, &c, NULL));
		c.unix_s = NOW_S - DAY_S + 1; /* signed is another time */
		assert_false(is_announced(s, &c, NULL));
	}
}

static void test_an_old_proof_is_refused(void **state) {
	struct scene *s = *state;
	struct candidate c = reflected(s, &s->relay[0], 1, &s->member, "198.51.100.9:40001", NOW_S - DAY_S - 1);
	assert_false(is_announced(s, &c, "older than a day"));
	c = reflected(s, &s->relay[0], 1, &s->member, "198.51.100.9:40001", 0);
	assert_false(is_announced(s, &c, "older than a day"));
}

static void test_a_proof_of_a_time_to_come_is_refused(void **state) {
	struct scene *s = *state;
	struct candidate c = reflected(s, &s->relay[0], 1, &s->member, "198.51.100.9:40001", NOW_S + 3600);
	assert_true(is_announced(s, &c, NULL)); /* a clock that is a little ahead */
	c = reflected(s, &s->relay[0], 1, &s->member, "198.51.100.9:40001", NOW_S + 3601);
	assert_false(is_announced(s, &c, "time to come"));
	c = reflected(s, &s->relay[0], 1, &s->member, "198.51.100.9:40001", UINT64_MAX);
	assert_false(is_announced(s, &c, "time to come"));
}

static void test_another_members_proof_is_refused(void **state) {
	struct scene *s = *state;
	struct candidate c = reflected(s, &s->relay[0], 1, &s->other, "198.51.100.77:40001", NOW_S);
	assert_false(is_announced(s, &c, NULL));
}

static void test_a_proof_is_of_one_address_and_run(void **state) {
	struct scene *s = *state;
	struct candidate c = reflected(s, &s->relay[0], 1, &s->member, "198.51.100.9:40001", NOW_S);
	memcpy(c.addr, "198.51.100.8:40001", sizeof "198.51.100.8:40001");
	assert_false(is_announced(s, &c, NULL));
	c = reflected(s, &s->relay[0], 1, &s->member, "198.51.100.9:40001", NOW_S);
	s->facts.run_id[0]++;
	assert_false(is_announced(s, &c, NULL));
}

/* Relays that volunteers offer are in the list behind the operator's. */
static void test_a_volunteers_relay_proves_nothing(void **state) {
	struct scene *s = *state;
	struct candidate c = reflected(s, &s->relay[1], 2, &s->member, "198.51.100.9:40001", NOW_S);
	s->facts.n_relays = 1;
	assert_false(is_announced(s, &c, "not the operator's"));
	struct rv_errtext why;
	char out[NET_ADDR_BYTES];
	assert_int_equal(judge(s, &c, out, &why), MEMBER_UNPROVEN); /* honest members have their home there */
	c = reflected(s, &s->stranger, 1, &s->member, "198.51.100.9:40001", NOW_S);
	assert_false(is_announced(s, &c, NULL));
}

static void test_what_is_not_public_is_not_reflected(void **state) {
	struct scene *s = *state;
	static const char *const narrow[] = {"192.168.1.17:7434", "127.0.0.1:7434", "224.0.0.1:7434", "[fd00::1]:7434"};
	for (size_t i = 0; i < sizeof narrow / sizeof narrow[0]; i++) {
		struct candidate c = reflected(s, &s->relay[0], 1, &s->member, narrow[i], NOW_S);
		assert_false(is_announced(s, &c, "not public"));
	}
}

/* On one machine, and in one network, a relay sees what the coordinator sees: nothing is amiss. */
static void test_a_relay_beside_a_member_is_no_news(void **state) {
	struct scene *s = *state;
	static const struct {
		const char *seen, *reflected;
		bool is_refused;
	} cases[] = {{"127.0.0.1", "127.0.0.1:7434", false},   {"192.168.1.5", "192.168.1.17:7434", false},
				 {"fd00::5", "[fd00::1]:7434", false},     {"127.0.0.1", "192.168.1.17:7434", true},
				 {"198.51.100.9", "127.0.0.1:7434", true}, {"127.0.0.1", "224.0.0.1:7434", true}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct rv_errtext why;
		char out[NET_ADDR_BYTES];
		see(s, cases[i].seen, cases[i].seen, cases[i].seen);
		struct candidate c = reflected(s, &s->relay[0], 1, &s->member, cases[i].reflected, NOW_S);
		assert_int_equal(judge(s, &c, out, &why), cases[i].is_refused ? MEMBER_REFUSED : MEMBER_UNPROVEN);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_relay_beside_a_member_is_no_news, open_scene),
		cmocka_unit_test_setup(test_a_public_member_is_where_it_is_seen, open_scene),
		cmocka_unit_test_setup(test_private_is_announced_where_the_coordinator_is, open_scene),
		cmocka_unit_test_setup(test_loopback_is_the_coordinators_machine, open_scene),
		cmocka_unit_test_setup(test_what_cannot_be_dialed_is_refused, open_scene),
		cmocka_unit_test_setup(test_the_coordinators_port_is_refused, open_scene),
		cmocka_unit_test_setup(test_somebody_elses_address_is_not_believed, open_scene),
		cmocka_unit_test_setup(test_a_narrow_address_is_given_to_nobody_outside, open_scene),
		cmocka_unit_test_setup(test_another_port_of_its_own_host_may_be_given, open_scene),
		cmocka_unit_test_setup(test_at_the_coordinators_site_its_host_may_be_given, open_scene),
		cmocka_unit_test_setup(test_the_coordinator_is_no_members_address, open_scene),
		cmocka_unit_test_setup(test_private_ranges, open_scene),
		cmocka_unit_test_setup(test_what_is_no_machine_of_a_house_is_refused, open_scene),
		cmocka_unit_test_setup(test_what_the_operators_relay_has_seen_is_announced, open_scene),
		cmocka_unit_test_setup(test_an_old_proof_is_refused, open_scene),
		cmocka_unit_test_setup(test_a_proof_of_a_time_to_come_is_refused, open_scene),
		cmocka_unit_test_setup(test_another_members_proof_is_refused, open_scene),
		cmocka_unit_test_setup(test_a_proof_is_of_one_address_and_run, open_scene),
		cmocka_unit_test_setup(test_a_volunteers_relay_proves_nothing, open_scene),
		cmocka_unit_test_setup(test_what_is_not_public_is_not_reflected, open_scene),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
