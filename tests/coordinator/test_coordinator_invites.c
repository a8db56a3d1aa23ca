/* Invites as the service keeps them: uses, ends, approval, revocation, and what a volunteer reads
 * where one admits nobody. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hex.h"
#include "coordinator/service/service.h"
#include "net/control/reach_test.h"
#include "tests/common/check.h"
#include "tests/common/memory_store.h"
#include "tests/coordinator/joining.h"

struct bench {
	struct memory_store store;
	struct identity run;
	struct service *service;
	struct invite link; /* with which those who join come */
	char text[RV_ERRTEXT_BYTES];
};

static int set_up(void **state) {
	struct bench *b = calloc(1, sizeof *b);
	uint8_t seed[IDENTITY_SEED_BYTES] = {3};
	*state = b;
	identity_of_seed(seed, &b->run);
	memory_store_init(&b->store);
	struct service_config cfg = {.serving = &b->run,
								 .root = b->run.key,
								 .run_id = {5},
								 .config = "rounds = 4\nmin-workers = 2\nsilence-ms = 4000\n",
								 .store = &b->store.store,
								 .advertise = {.host = "train.example.org", .port = 7433}};
	assert_ok(service_new(&cfg, 1000000, &b->service, &et));
	return 0;
}

static int tear_down(void **state) {
	struct bench *b = *state;
	service_free(b->service);
	memory_store_release(&b->store);
	free(b);
	return 0;
}

static void invite(struct bench *b, int64_t uses, int64_t lasts_ms, bool approve) {
	const struct invite_terms terms = {.uses = uses, .lasts_ms = lasts_ms, .approve = approve};
	joining_invite(b->service, &terms, &b->link);
}

/* Its key: `who` at both ends, so that prefixes of two may be the same. */
static void key_of(uint32_t who, uint8_t key[NET_KEY_BYTES]) {
	memset(key, 0xab, NET_KEY_BYTES);
	key[2] = (uint8_t)who;
	key[3] = (uint8_t)(who >> 8);
}

static enum rv_err join(struct bench *b, uint32_t who) {
	uint8_t key[NET_KEY_BYTES];
	struct rv_errtext why = {0};
	key_of(who, key);
	enum rv_err e = joining_join(b->service, 1000000, key, &b->link, "it's \"me\"", NULL, &why);
	(void)snprintf(b->text, sizeof b->text, "%s", why.text);
	return e;
}

static void expect(struct bench *b, uint32_t who, enum rv_err e, const char *part) {
	assert_int_equal(join(b, who), e);
	if (strstr(b->text, part) == NULL)
		fail_msg("'%s' is not in: %s", part, b->text);
	assert_true(strlen(b->text) < 300); /* a worker shows as much */
}

/* A worker that asks before its person reads the terms gets the same answer. */
static void expect_foreseen(struct bench *b, uint32_t who, const char *part) {
	uint8_t key[NET_KEY_BYTES], body[JOINING_BYTES];
	struct rv_errtext why = {0};
	key_of(who, key);
	const size_t n = joining_request(&b->link, "", body);
	assert_int_equal(service_check_invite(b->service, 1000000, key, body, n, &why), RV_E_AUTH);
	if (strstr(why.text, part) == NULL)
		fail_msg("'%s' is not in: %s", part, why.text);
	expect(b, who, RV_E_AUTH, part);
}

static int members(const struct bench *b) {
	json_t *status = service_status(b->service, 1000000, true);
	int n = (int)json_array_size(json_object_get(status, "members"));
	json_decref(status);
	return n;
}

/* The invite is as good as before: nothing is spent. */
static void expect_welcome(struct bench *b, uint32_t who) {
	uint8_t key[NET_KEY_BYTES], body[JOINING_BYTES];
	const int before = members(b);
	key_of(who, key);
	assert_ok(service_check_invite(b->service, 1000000, key, body, joining_request(&b->link, "", body), &et));
	assert_int_equal(members(b), before);
}

static int pending(const struct bench *b) {
	json_t *status = service_status(b->service, 1000000, false);
	int n = (int)json_integer_value(json_object_get(status, "pending"));
	json_decref(status);
	return n;
}

static enum rv_err decide(struct bench *b, const char *prefix, bool approve) {
	char text[SERVICE_DECISION_BYTES];
	struct rv_errtext why = {0};
	enum rv_err e = service_decide(b->service, 1000000, prefix, approve, text, &why);
	(void)snprintf(b->text, sizeof b->text, "%s", e == RV_OK ? text : why.text);
	return e;
}

static enum rv_err revoke(struct bench *b, const char *name) {
	char text[SERVICE_DECISION_BYTES];
	struct rv_errtext why = {0};
	enum rv_err e = service_revoke(b->service, 1000000, name, text, &why);
	(void)snprintf(b->text, sizeof b->text, "%s", e == RV_OK ? text : why.text);
	return e;
}

static void test_terms_are_bounded(void **state) {
	struct bench *b = *state;
	const struct invite_terms wrong[] = {
		{.uses = 0}, {.uses = SERVICE_USES_MAX + 1}, {.uses = 1, .lasts_ms = -1}, {.uses = 1, .lasts_ms = INT64_MAX}};
	char links[1][INVITE_MAX_BYTES];
	struct rv_errtext why = {0};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		assert_int_equal(service_invite(b->service, &wrong[i], 1, links, &why), RV_E_RANGE);
	assert_int_equal(b->store.n_invites, 0);
}

static void test_n_uses(void **state) {
	struct bench *b = *state;
	invite(b, 3, 0, false);
	for (uint32_t who = 0; who < 3; who++) {
		expect_welcome(b, who);
		assert_int_equal(join(b, who), RV_OK);
		expect_welcome(b, who);
		assert_int_equal(join(b, who), RV_OK); /* a known key spends nothing */
	}
	expect_foreseen(b, 3, "was for 3 computers, and is spent");
	assert_int_equal(join(b, 1), RV_OK);
	assert_int_equal(members(b), 3);
}

/* A join that waits for the disk has its use: nobody else gets it when there is room again. */
static void test_a_use_that_waits_for_the_disk_is_nobody_elses(void **state) {
	struct bench *b = *state;
	invite(b, 1, 0, false);
	b->store.failing = RV_E_FULL;
	assert_int_equal(join(b, 1), RV_E_BUSY);
	assert_int_equal(join(b, 2), RV_E_BUSY);
	b->store.failing = RV_OK;
	expect(b, 2, RV_E_AUTH, "was for 1 computer, and is spent");
	assert_int_equal(join(b, 1), RV_OK);
	assert_int_equal(members(b), 1);
}

static void test_what_admits_nobody(void **state) {
	struct bench *b = *state;
	expect_foreseen(b, 1, "its link has no token");
	invite(b, 1, 0, false);
	assert_int_equal(revoke(b, "1"), RV_OK);
	expect_foreseen(b, 1, "has revoked this invite");
	b->link.token[0] ^= 1;
	expect_foreseen(b, 1, "not known here");
	assert_int_equal(revoke(b, "2"), RV_E_NOTFOUND);
	invite(b, 5, 1, false);
	while (rv_clock_wall_us() < b->store.invites[1].ends_us)
		;
	expect_foreseen(b, 1, "UTC by the coordinator's clock");
	invite(b, 5, 3600 * 1000, false);
	assert_int_equal(join(b, 1), RV_OK);
	assert_int_equal(members(b), 1);
}

/* The link that was passed on too far is what the operator has at hand. */
static void test_revoked_by_its_link(void **state) {
	struct bench *b = *state;
	char link[INVITE_MAX_BYTES];
	struct invite other;
	invite(b, 2, 0, false);
	invite(b, 2, 0, false);
	invite_format(&b->link, link);
	other = b->link;
	assert_int_equal(join(b, 1), RV_OK);
	assert_int_equal(revoke(b, link), RV_OK);
	assert_non_null(strstr(b->text, "invite 2 is revoked"));
	expect(b, 2, RV_E_AUTH, "has revoked this invite");
	assert_int_equal(b->store.invites[0].revoked_us, 0);
	other.token[0] ^= 1;
	invite_format(&other, link);
	assert_int_equal(revoke(b, link), RV_E_NOTFOUND);
	other.run_id[0] ^= 1;
	invite_format(&other, link);
	assert_int_equal(revoke(b, link), RV_E_INVALID);
	assert_non_null(strstr(b->text, "of another run"));
	other.run_id[0] ^= 1;
	other.has_token = false;
	invite_format(&other, link);
	assert_int_equal(revoke(b, link), RV_E_INVALID);
	const char *const wrong[] = {"", "x", "1x", "-1", "9999999999999999999", "rivulet://x"};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		assert_int_equal(revoke(b, wrong[i]), RV_E_INVALID);
}

static bool may_test(struct bench *b, uint32_t who) {
	uint8_t key[NET_KEY_BYTES], body[512], reply[REACH_TEST_REPLY_MAX_BYTES];
	const struct member_sight sight = {.host = "10.1.1.1", .own = "10.1.1.2"};
	struct reach_test_request rq = {.run_id = {5}, .has_token = true, .n = 1, .addrs = {{":7434"}}};
	struct rv_errtext why = {0};
	key_of(who, key);
	memcpy(rq.token, b->link.token, sizeof rq.token);
	struct rv_writer w = rv_writer_of(body, sizeof body), r = rv_writer_of(reply, sizeof reply);
	reach_test_request_encode(&rq, CONTROL_VERSION, &w);
	assert_false(w.failed);
	enum rv_err e = service_reach_test(b->service, 1000000, key, &sight, body, rv_writer_len(&w), &r, &why);
	return e != RV_E_AUTH;
}

static void test_approval(void **state) {
	struct bench *b = *state;
	invite(b, 2, 0, true);
	assert_true(may_test(b, 1));
	expect(b, 1, RV_E_WAITING, "has to approve this computer: fingerprint abab0100abababab");
	expect(b, 1, RV_E_WAITING, "fingerprint");
	expect(b, 257, RV_E_WAITING, "fingerprint abab0101abababab");
	assert_true(members(b) == 0 && b->store.n_records == 0 && pending(b) == 2);
	assert_true(may_test(b, 1));
	assert_int_equal(decide(b, "abab0", true), RV_E_INVALID);
	assert_int_equal(decide(b, "abab01zz", true), RV_E_INVALID);
	assert_int_equal(decide(b, "abab01", true), RV_E_INVALID);
	assert_non_null(strstr(b->text, "2 computers"));
	assert_int_equal(decide(b, "abab02", true), RV_E_NOTFOUND);
	assert_int_equal(decide(b, "ABAB0100", true), RV_OK);
	assert_true(members(b) == 0 && pending(b) == 1);
	assert_int_equal(join(b, 1), RV_OK);
	assert_int_equal(decide(b, "abab0101", false), RV_OK);
	expect(b, 257, RV_E_AUTH, "has refused this computer (fingerprint abab0101abababab)");
	assert_false(may_test(b, 257));
	assert_true(members(b) == 1 && pending(b) == 0);
	assert_int_equal(decide(b, "abab0101", true), RV_OK); /* the operator thinks better of it */
	assert_int_equal(join(b, 257), RV_OK);
	expect(b, 3, RV_E_AUTH, "is spent");
	assert_int_equal(b->store.n_askers, 0);
}

/* Its end keeps others from asking; a revocation keeps all out. */
static void test_approval_after_the_end(void **state) {
	struct bench *b = *state;
	invite(b, 3, 3600 * 1000, true);
	expect(b, 1, RV_E_WAITING, "fingerprint");
	expect(b, 2, RV_E_WAITING, "fingerprint");
	b->store.invites[0].ends_us = 1;
	expect(b, 1, RV_E_WAITING, "fingerprint");
	expect(b, 3, RV_E_AUTH, "this invite ended");
	assert_int_equal(decide(b, "abab0100", true), RV_OK);
	assert_int_equal(join(b, 1), RV_OK);
	assert_int_equal(revoke(b, "1"), RV_OK);
	assert_int_equal(pending(b), 0);
	expect(b, 2, RV_E_AUTH, "has revoked");
	assert_int_equal(join(b, 1), RV_OK);
}

static void test_who_waits_is_bounded(void **state) {
	struct bench *b = *state;
	struct invite first;
	invite(b, 1, 0, true);
	for (uint32_t who = 0; who < 1 + SERVICE_ASKERS_SPARE; who++)
		expect(b, who, RV_E_WAITING, "fingerprint");
	expect(b, 100, RV_E_WAITING, "until there is room");
	assert_int_equal(pending(b), 1 + SERVICE_ASKERS_SPARE);
	first = b->link;
	invite(b, SERVICE_USES_MAX, 0, true); /* another link has its own room */
	for (uint32_t who = 200; who < 200 + STORE_ASKERS_MAX; who++)
		assert_int_equal(join(b, who), RV_E_WAITING);
	assert_int_equal(pending(b), STORE_ASKERS_MAX);
	expect(b, 1000, RV_E_WAITING, "until there is room");
	assert_int_equal(decide(b, "abab0000", false), RV_OK);
	expect(b, 1000, RV_E_WAITING, "fingerprint"); /* who is refused makes room */
	assert_int_equal(b->store.n_askers, STORE_ASKERS_MAX);
	b->store.askers[5].asked_us -= (int64_t)8 * 24 * 3600 * RV_US_PER_S;
	b->link = first;
	expect(b, 2000, RV_E_WAITING, "fingerprint"); /* so does who asked long ago */
}

/* Its last use ends the asking of all others by it: nobody is approved for nothing. */
static void test_a_spent_invite_is_asked_by_nobody(void **state) {
	struct bench *b = *state;
	invite(b, 1, 0, true);
	expect(b, 1, RV_E_WAITING, "fingerprint");
	expect(b, 2, RV_E_WAITING, "fingerprint");
	assert_int_equal(decide(b, "abab0100", true), RV_OK);
	assert_int_equal(join(b, 1), RV_OK);
	assert_int_equal(pending(b), 0);
	assert_int_equal(decide(b, "abab0200", true), RV_E_NOTFOUND);
	expect(b, 2, RV_E_AUTH, "is spent");
}

static void come_back_later(struct bench *b) {
	for (int i = 0; i < b->store.n_askers; i++)
		b->store.askers[i].asked_us -= (int64_t)8 * 24 * 3600 * RV_US_PER_S;
}

/* Returns how many uses of the last invite are kept. */
static int kept(const struct bench *b) {
	json_t *list = NULL;
	assert_ok(service_list_invites(b->service, &list, &et));
	int n = (int)json_integer_value(json_object_get(json_array_get(list, 0), "kept"));
	json_decref(list);
	return n;
}

/* A use is kept for each that is approved: one more approval would be for nothing, and reads so. */
static void test_approval_keeps_a_use(void **state) {
	struct bench *b = *state;
	invite(b, 2, 0, true);
	for (uint32_t who = 1; who <= 4; who++)
		expect(b, who, RV_E_WAITING, "fingerprint");
	assert_int_equal(decide(b, "abab0100", true), RV_OK);
	assert_non_null(strstr(b->text, "a use of its invite is kept for it"));
	assert_int_equal(join(b, 1), RV_OK);
	assert_int_equal(decide(b, "abab0200", true), RV_OK);
	assert_int_equal(decide(b, "abab0200", true), RV_OK); /* said twice */
	assert_int_equal(decide(b, "abab0300", true), RV_E_INVALID);
	assert_non_null(strstr(b->text, "computer abab0300abababab is not approved: of the 2 uses of invite 1, 1 is spent "
									"and 1 kept for others"));
	expect(b, 3, RV_E_WAITING, "fingerprint");
	assert_int_equal(kept(b), 1);
	assert_int_equal(decide(b, "abab0200", false), RV_OK); /* its use is free again */
	assert_int_equal(kept(b), 0);
	assert_int_equal(decide(b, "abab0300", true), RV_OK);
	assert_int_equal(decide(b, "abab0200", true), RV_E_INVALID);
	come_back_later(b); /* so is that of one that did not come for a week */
	expect(b, 4, RV_E_WAITING, "fingerprint");
	assert_int_equal(decide(b, "abab0400", true), RV_OK);
	assert_int_equal(join(b, 4), RV_OK);
	assert_int_equal(members(b), 2);
}

/* A computer that was approved by another link does not take a use that is kept for others. */
static void test_a_kept_use_is_nobody_elses(void **state) {
	struct bench *b = *state;
	struct invite first;
	invite(b, 1, 0, true);
	first = b->link;
	expect(b, 1, RV_E_WAITING, "fingerprint");
	assert_int_equal(decide(b, "abab0100", true), RV_OK);
	invite(b, 1, 0, true);
	expect(b, 2, RV_E_WAITING, "fingerprint");
	assert_int_equal(decide(b, "abab0200", true), RV_OK);
	expect(b, 1, RV_E_AUTH, "are kept for other computers");
	assert_int_equal(join(b, 2), RV_OK);
	b->link = first;
	assert_int_equal(join(b, 1), RV_OK);
}

/* A store in which more were approved than there are uses, by an earlier release: the first
 * come. */
static void test_more_approved_than_uses(void **state) {
	struct bench *b = *state;
	invite(b, 1, 0, true);
	expect(b, 1, RV_E_WAITING, "fingerprint");
	expect(b, 2, RV_E_WAITING, "fingerprint");
	b->store.askers[0].state = b->store.askers[1].state = ASKER_APPROVED;
	assert_int_equal(join(b, 2), RV_OK);
	expect(b, 1, RV_E_AUTH, "is spent");
}

/* The operator approves a computer, not its link; and to ask by two links takes one place. */
static void test_approval_holds_with_another_link(void **state) {
	struct bench *b = *state;
	struct invite first;
	invite(b, 2, 0, true);
	first = b->link;
	expect(b, 1, RV_E_WAITING, "fingerprint");
	int64_t asked_us = b->store.askers[0].asked_us;
	invite(b, 2, 0, true);
	for (int i = 0; i < 3; i++) {
		expect(b, 1, RV_E_WAITING, "fingerprint");
		assert_true(b->store.n_askers == 1 && b->store.askers[0].invite == 1);
		assert_true(b->store.askers[0].asked_us == asked_us);
	}
	assert_int_equal(decide(b, "abab0100", true), RV_OK);
	assert_int_equal(join(b, 1), RV_OK);
	b->link = first;
	expect(b, 2, RV_E_WAITING, "fingerprint");
	expect(b, 3, RV_E_WAITING, "fingerprint");
}

static void test_who_asked_long_ago_is_forgotten(void **state) {
	struct bench *b = *state;
	invite(b, 2, 0, true);
	expect(b, 1, RV_E_WAITING, "fingerprint");
	assert_int_equal(decide(b, "abab0100", true), RV_OK);
	expect(b, 2, RV_E_WAITING, "fingerprint");
	come_back_later(b);
	assert_int_equal(pending(b), 0);
	expect(b, 1, RV_E_WAITING, "fingerprint"); /* approved long ago: asks anew */
	assert_true(pending(b) == 1 && b->store.n_askers == 1);
}

static void test_lists(void **state) {
	struct bench *b = *state;
	json_t *list = NULL;
	invite(b, 3, 0, false);
	assert_int_equal(join(b, 1), RV_OK);
	invite(b, 1, 60000, true);
	expect(b, 2, RV_E_WAITING, "");
	assert_ok(service_list_invites(b->service, &list, &et));
	assert_int_equal(json_array_size(list), 2);
	const json_t *later = json_array_get(list, 0), *earlier = json_array_get(list, 1);
	assert_int_equal(json_integer_value(json_object_get(later, "id")), 2);
	assert_true(json_is_integer(json_object_get(later, "ends_us")) && json_is_true(json_object_get(later, "approve")));
	assert_int_equal(json_integer_value(json_object_get(earlier, "used")), 1);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(earlier, "members"), 0)), 0);
	assert_string_equal(json_string_value(json_object_get(earlier, "state")), "open");
	assert_true(json_is_null(json_object_get(earlier, "ends_us")));
	json_decref(list);
	assert_ok(service_list_askers(b->service, &list, &et));
	assert_int_equal(json_array_size(list), 1);
	const json_t *a = json_array_get(list, 0);
	assert_string_equal(json_string_value(json_object_get(a, "state")), "asks");
	assert_string_equal(json_string_value(json_object_get(a, "name")), "it's \"me\"");
	assert_int_equal(strncmp(json_string_value(json_object_get(a, "key")), "abab0200ab", 10), 0);
	json_decref(list);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_terms_are_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_n_uses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_use_that_waits_for_the_disk_is_nobody_elses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_admits_nobody, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_approval, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_approval_after_the_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_who_waits_is_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_spent_invite_is_asked_by_nobody, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_approval_keeps_a_use, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_kept_use_is_nobody_elses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_more_approved_than_uses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_approval_holds_with_another_link, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_who_asked_long_ago_is_forgotten, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_revoked_by_its_link, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lists, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
