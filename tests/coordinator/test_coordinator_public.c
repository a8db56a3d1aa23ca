/* Pages of a run that anybody may read, without a key: a real coordinator whose members join, are
 * refused, wait for approval, move, fail, accuse and are banned. After each step every public page,
 * and every answer that refuses the rest, is searched for addresses, host names, keys and paths;
 * docs/privacy.md names every field that /v1/status has. */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/hex.h"
#include "tests/common/check.h"
#include "tests/coordinator/coordinator_process.h"
#include "tests/coordinator/privacy_page.h"
#include "tests/coordinator/run_chunks.h"

enum { MEMBERS = 3, ASKER = 10, REFUSED = 11, READER = 12, KEYS = MEMBERS + 4, KEY_DIGITS = 8, HOST_BYTES = 65 };

static const char config[] = "rounds = 10\nmin-workers = 2\ngrace-ms = 3600000\nsilence-ms = 8000\n";

/* What members report, and nobody but the operator may read. */
static const char *const addresses[] = {"127.0.0.1", "203.0.113.9", "192.168.77.5", "2001:db8::77"};

struct scene {
	struct coordinator c;
	struct client members[MEMBERS], reader; /* the reader has a key that nobody knows */
	uint8_t keys[KEYS][NET_KEY_BYTES];
	int n_keys;
	uint64_t seq;
	struct document d;
};

static void keep_key(struct scene *s, const uint8_t key[NET_KEY_BYTES]) {
	assert_true(s->n_keys < KEYS);
	memcpy(s->keys[s->n_keys++], key, NET_KEY_BYTES);
}

static int set_up(void **state) {
	struct scene *s = calloc(1, sizeof *s);
	struct invite in;
	*state = s;
	coordinator_make(&s->c, config);
	keep_key(s, s->c.root);
	keep_key(s, s->c.serving);
	client_init(&s->reader, &s->c, READER, NULL);
	for (uint32_t i = 0; i < MEMBERS; i++) {
		client_init(&s->members[i], &s->c, i, NULL);
		coordinator_invite(&s->c, &in);
		assert_int_equal(client_join(&s->members[i], &s->c, &in, NULL), 200);
		keep_key(s, s->members[i].id.key);
	}
	return 0;
}

static int tear_down(void **state) {
	struct scene *s = *state;
	client_release(&s->reader);
	for (int i = 0; i < MEMBERS; i++)
		client_release(&s->members[i]);
	coordinator_remove(&s->c);
	free(s);
	return 0;
}

/* ---- the search ---- */

static void expect_absent(const char *path, const char *text, const char *secret) {
	if (strstr(text, secret))
		fail_msg("%s shows %s: %s", path, secret, strstr(text, secret));
}

/* The same where digits begin: among a number's a key's may stand by chance. */
static void expect_no_key(const char *path, const char *text, const char *digits) {
	for (const char *at = text; (at = strstr(at, digits)) != NULL; at++)
		if (at == text || !isxdigit((unsigned char)at[-1]))
			fail_msg("%s shows %s: %s", path, digits, at);
}

static bool is_of_word(char c) {
	return isalnum((unsigned char)c) || c == '_';
}

/* The same for a whole word: a host's name may be a part of another one. */
static void expect_no_word(const char *path, const char *text, const char *word) {
	for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
		if ((at == text || !is_of_word(at[-1])) && !is_of_word(at[strlen(word)]))
			fail_msg("%s shows %s: %s", path, word, at);
}

static void search(const struct scene *s, const char *path, const char *text) {
	char host[HOST_BYTES] = "", digits[2 * NET_KEY_BYTES + 1];
	for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++)
		expect_absent(path, text, addresses[i]);
	for (int i = 0; i < s->n_keys; i++) {
		rv_hex_encode(s->keys[i], NET_KEY_BYTES, digits);
		digits[KEY_DIGITS] = '\0';
		expect_no_key(path, text, digits);
	}
	expect_absent(path, text, s->c.dir);
	assert_int_equal(gethostname(host, sizeof host - 1), 0);
	if (strlen(host) > 3) /* a shorter one may be a word of the page */
		expect_no_word(path, text, host);
}

/* Asserts that volunteers are told of all that strangers read of them, and that these do not read
 * who shares a house. */
static void expect_named(const char *text) {
	json_t *status = json_loads(text, 0, NULL);
	assert_non_null(status);
	privacy_page_names(status);
	const json_t *member = json_array_get(json_object_get(status, "members"), 0);
	assert_true(json_is_object(json_object_get(member, "paths")) && json_is_array(json_object_get(member, "ipv6")));
	assert_null(json_object_get(member, "lan"));
	json_decref(status);
}

/* Fetches what anybody gets, by the routes of web/api.h. */
static void search_all(struct scene *s) {
	static const char *const pages[] = {"/",
										"/v1/status",
										"/v1/chart?width=600",
										"/v1/config",
										"/metrics",
										"/v1/document?after=0",
										"/v1/text/manifest",
										"/v1/admin/status",
										"/v1/admin/invites",
										"/v1/admin/pending",
										"/v1/join",
										"/v1/report",
										"/missing"};
	enum { PUBLIC = 5 };
	static char text[IDENTITY_SIGNED_MAX_BYTES + 1];
	for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
		const struct answer *a = client_ask(&s->reader, pages[i], NULL, 0);
		assert_int_equal(a->status == 200, i < PUBLIC);
		memcpy(text, a->body, a->n);
		text[a->n] = '\0';
		search(s, pages[i], text);
		if (strcmp(pages[i], "/v1/status") == 0)
			expect_named(text);
	}
}

/* Asserts that an event happened: what was not caused was not searched. */
static void expect_event(const struct scene *s, const char *name) {
	json_decref(e2e_wait_event(&s->c.e.coordinator, name, NULL, 0, NULL));
}

/* ---- what happens ---- */

static void report_all(struct scene *s, enum worker_phase phase, void (*alter)(struct report *rep, int who)) {
	for (int i = 0; i < MEMBERS; i++) {
		struct report rep = plain_report(&s->d, config, ++s->seq, phase);
		(void)snprintf(rep.candidates[0].addr, sizeof rep.candidates[0].addr, ":61234");
		rep.attempt = phase == WORKER_REDUCING ? s->d.attempt : 0;
		if (alter)
			alter(&rep, i);
		assert_int_equal(client_report(&s->members[i], &rep), 204);
	}
	assert_int_equal(client_document(&s->members[0], 0, &s->d), 200);
}

static void name_addresses(struct report *rep, int who) {
	static const enum candidate_kind kinds[] = {CANDIDATE_SEEN, CANDIDATE_REFLECTED, CANDIDATE_PRIVATE,
												CANDIDATE_GIVEN};
	for (int i = 1; who == 1 && i < 4; i++) {
		struct candidate *c = &rep->candidates[rep->n_candidates++];
		c->kind = (uint8_t)kinds[i];
		c->relay = kinds[i] == CANDIDATE_REFLECTED; /* without its proof */
		(void)snprintf(c->addr, sizeof c->addr, i == 3 ? "[%s]:4000" : "%s:4000", addresses[i]);
	}
}

static void fail_to_store(struct report *rep, int who) {
	rep->storage = who == 2 ? REPORT_STORAGE_FULL | REPORT_STORAGE_ROUNDS : 0;
}

/* All but the last in the roster accuse it. */
static void accuse(struct report *rep, int who) {
	rep->n_suspects = who < MEMBERS - 1;
	rep->suspects[0] = MEMBERS - 1;
}

static int command(const struct scene *s, char *out, size_t cap, const char *name, const char *arg,
				   const char *option) {
	return coordinator_command(out, cap, (const char *const[]){name, "--dir", s->c.dir, arg, option, NULL});
}

/* One that waits for approval, one that was refused and asks again, and one with a wrong token. */
static void ask_to_join(struct scene *s) {
	struct client asker, refused;
	struct invite in;
	char out[2048], digits[2 * NET_KEY_BYTES + 1];
	assert_int_equal(command(s, out, sizeof out, "invite", "--approve", "--uses=5"), 0);
	char *link = strstr(out, "rivulet://");
	assert_non_null(link);
	link[strcspn(link, " \r\n\"")] = '\0';
	assert_ok(invite_parse(link, &in, &et));
	client_init(&asker, &s->c, ASKER, NULL);
	client_init(&refused, &s->c, REFUSED, NULL);
	keep_key(s, asker.id.key);
	keep_key(s, refused.id.key);
	assert_int_equal(client_join(&asker, &s->c, &in, NULL), 202);
	assert_int_equal(client_join(&refused, &s->c, &in, NULL), 202);
	rv_hex_encode(refused.id.key, NET_KEY_BYTES, digits);
	digits[2 * KEY_DIGITS] = '\0';
	assert_int_equal(command(s, out, sizeof out, "members", "refuse", digits), 0);
	assert_int_equal(client_join(&refused, &s->c, &in, NULL), 403);
	in.token[0] ^= 1;
	assert_int_equal(client_join(&s->reader, &s->c, &in, NULL), 403);
	client_release(&asker);
	client_release(&refused);
}

static void nobody_reads_where_or_who_members_are(void **state) {
	struct scene *s = *state;
	char out[2048];
	search_all(s);
	ask_to_join(s);
	search_all(s);
	report_all(s, WORKER_SYNCING, NULL);
	report_all(s, WORKER_TRAINING, name_addresses);
	search_all(s);
	report_all(s, WORKER_TRAINING, fail_to_store);
	search_all(s);
	report_all(s, WORKER_TRAINING, NULL);
	report_all(s, WORKER_READY, NULL);
	assert_int_equal(s->d.phase, RUN_REDUCE);
	report_all(s, WORKER_REDUCING, accuse);
	expect_event(s, "suspected");
	search_all(s);
	assert_int_equal(command(s, out, sizeof out, "ban", "2", NULL), 0);
	search_all(s);
	static const char *const caused[] = {"member",  "asks",           "refused", "join_refused", "address",
										 "invited", "member_storage", "roster",  "banned"};
	for (size_t i = 0; i < sizeof caused / sizeof caused[0]; i++)
		expect_event(s, caused[i]);
}

/* The operator reads what others do not. */
static void the_operator_reads_them(void **state) {
	struct scene *s = *state;
	struct client operator;
	char digits[2 * NET_KEY_BYTES + 1];
	report_all(s, WORKER_SYNCING, NULL);
	client_init_operator(&operator, & s->c);
	const struct answer *a = client_ask(&operator, "/v1/admin/status", NULL, 0);
	assert_int_equal(a->status, 200);
	json_t *status = json_loadb((const char *)a->body, a->n, 0, NULL);
	const json_t *member = json_array_get(json_object_get(status, "members"), 0);
	rv_hex_encode(s->members[0].id.key, NET_KEY_BYTES, digits);
	assert_string_equal(e2e_text(member, "key"), digits);
	assert_string_equal(e2e_text(member, "addr"), "127.0.0.1:61234");
	assert_true(json_is_array(json_object_get(member, "lan")));
	json_decref(status);
	client_release(&operator);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nobody_reads_where_or_who_members_are, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_operator_reads_them, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
