/* What one invited member can do to a real coordinator over TLS: it lies in its reports, moves,
 * floods, and holds every connection. Meanwhile the run, its operator, newcomers and the dashboard
 * must be served, and the store must open. What each attack reached is printed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <sqlite3.h>

#include "base/clock.h"
#include "tests/common/check.h"
#include "tests/common/deadline.h"
#include "tests/coordinator/coordinator_process.h"
#include "tests/coordinator/poll_flood.h"
#include "tests/coordinator/run_chunks.h"

enum { MOVES = 1000, GUESSES = 300, GHOST = 90, HONEST = 10, NEWCOMER = 40 };

static const char config[] = "rounds = 10\nmin-workers = 1\ngrace-ms = 500\nsilence-ms = 3600000\n";

struct scene {
	struct coordinator c;
	struct client evil;
	uint64_t seq;
	struct document d;
};

static int set_up(void **state) {
	struct scene *s = calloc(1, sizeof *s);
	struct invite in;
	*state = s;
	coordinator_make(&s->c, config);
	coordinator_invite(&s->c, &in);
	client_init(&s->evil, &s->c, GHOST, NULL);
	assert_int_equal(client_join(&s->evil, &s->c, &in, NULL), 200);
	return 0;
}

static int tear_down(void **state) {
	struct scene *s = *state;
	client_release(&s->evil);
	coordinator_remove(&s->c);
	free(s);
	return 0;
}

/* ---- what the tests are made of ---- */

static struct report a_report(struct scene *s, enum worker_phase phase) {
	return plain_report(&s->d, config, ++s->seq, phase);
}

static void learn(struct scene *s, struct client *k) {
	char path[64];
	const uint8_t *bytes;
	size_t n;
	(void)snprintf(path, sizeof path, "/v1/document?version=%d", (int)CONTROL_VERSION);
	const struct answer *a = client_ask(k, path, NULL, 0);
	assert_int_equal(a->status, 200);
	assert_ok(signed_open(s->c.serving, IDENTITY_DOCUMENT_DOMAIN, a->body, a->n, &bytes, &n, &et));
	assert_ok(document_decode(bytes, n, &s->d, &et));
}

/* Its answer is not looked at: attacks are refused, delayed or taken. */
static int tell(struct client *k, const struct report *rep) {
	return client_report(k, rep);
}

/* Sends this in all phases of a round, alone. */
static void lie_for_a_round(struct scene *s, void (*lie)(struct report *rep)) {
	static const enum worker_phase phases[] = {WORKER_SYNCING, WORKER_TRAINING, WORKER_READY, WORKER_VOTED};
	for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
		learn(s, &s->evil);
		struct report rep = a_report(s, phases[i]);
		lie(&rep);
		(void)tell(&s->evil, &rep);
	}
	learn(s, &s->evil);
}

static int run(const struct scene *s, const char *command, char *out, size_t cap) {
	return coordinator_command(out, cap, (const char *const[]){command, "--dir", s->c.dir, NULL});
}

static void pause_ms(int ms) {
	const struct timespec t = {.tv_nsec = ms * 1000000L};
	(void)nanosleep(&t, NULL);
}

static const char *page(struct client *k, const char *path) {
	const struct answer *a = client_ask(k, path, NULL, 0);
	assert_int_equal(a->status, 200);
	return (const char *)a->body;
}

static long file_bytes(const struct scene *s, const char *name) {
	char path[96];
	struct stat st;
	(void)snprintf(path, sizeof path, "%s/%s", s->c.dir, name);
	return stat(path, &st) == 0 ? (long)st.st_size : 0;
}

/* Of a coordinator that does not run. */
static int64_t sql(const struct scene *s, const char *text) {
	char path[96];
	sqlite3 *db;
	sqlite3_stmt *st;
	(void)snprintf(path, sizeof path, "%s/store.db", s->c.dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, text, -1, &st, NULL), SQLITE_OK);
	int64_t v = sqlite3_step(st) == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
	(void)sqlite3_finalize(st);
	(void)sqlite3_close(db);
	return v;
}

static void restart(struct scene *s) {
	assert_int_equal(coordinator_stop(&s->c), 0);
	coordinator_start(&s->c);
	client_release(&s->evil);
	client_init(&s->evil, &s->c, GHOST, NULL);
}

/* An honest worker joins and is ready; returns whether round 0 is averaged with it, of the run's
 * number of chunks. */
static bool honest_worker_gets_on(struct scene *s) {
	struct client k;
	struct invite in;
	bool on = false;
	coordinator_invite(&s->c, &in);
	client_init(&k, &s->c, HONEST, NULL);
	assert_int_equal(client_join(&k, &s->c, &in, NULL), 200);
	for (struct deadline d = deadline_in(PROCESS_WAIT_S, "a round with it"); !on && !deadline_is_over(&d);) {
		learn(s, &k);
		int at = document_find(&s->d, 1);
		on = s->d.phase == RUN_REDUCE && at >= 0 && s->d.n_chunks == run_chunks(config, s->d.round);
		struct report rep = a_report(s, WORKER_READY);
		assert_int_equal(tell(&k, &rep), 204);
		pause_ms(100);
	}
	client_release(&k);
	return on;
}

/* ---- lies ---- */

static void claim_tokens(struct report *rep) {
	rep->tokens = UINT64_C(1) << 62;
}

/* Row 1. */
static void test_tokens_do_not_stop_the_run(void **state) {
	struct scene *s = *state;
	static char out[1 << 16];
	for (int i = 0; i < 3; i++)
		lie_for_a_round(s, claim_tokens);
	assert_int_equal(s->d.round, 3);
	const char *total = strstr(page(&s->evil, "/v1/status"), "\"total_tokens\":");
	assert_non_null(total);
	const long long tokens = atoll(total + strlen("\"total_tokens\":"));
	print_message("row 1: total_tokens after three rounds of 2^62: %lld\n", tokens);
	assert_true(tokens > 0 && tokens <= 3 * 8 * 64 * 30);
	restart(s);
	assert_int_equal(coordinator_stop(&s->c), 0);
	assert_int_equal(run(s, "status", out, sizeof out), 0);
	coordinator_start(&s->c);
}

static void claim_seven_chunks(struct report *rep) {
	rep->n_chunks = 7;
}

/* Row 2. */
static void test_n_chunks_is_not_believed(void **state) {
	struct scene *s = *state;
	lie_for_a_round(s, claim_seven_chunks);
	print_message("row 2: after READY with 7 chunks: phase %u, round %llu, %u chunks\n", s->d.phase,
				  (unsigned long long)s->d.round, s->d.n_chunks);
	assert_true(honest_worker_gets_on(s));
	assert_non_null(strstr(page(&s->evil, "/v1/status"), "member 0 divides the model into another number of chunks"));
}

static void claim_a_loss(struct report *rep) {
	rep->loss = 3.3e38f;
}

/* Row 13. */
static void test_a_loss_is_bounded(void **state) {
	struct scene *s = *state;
	lie_for_a_round(s, claim_a_loss);
	const char *loss = strstr(page(&s->evil, "/metrics"), "\nrivulet_loss ");
	assert_non_null(loss);
	const double v = atof(loss + strlen("\nrivulet_loss "));
	print_message("row 13: rivulet_loss of a run with one member that reports 3.3e38: %g\n", v);
	assert_true(v <= 1e6);
}

/* Row 18. */
static void test_a_claim_is_called_a_claim(void **state) {
	struct scene *s = *state;
	(void)honest_worker_gets_on(s);
	learn(s, &s->evil);
	struct report rep = a_report(s, WORKER_TRAINING);
	rep.round = 9;
	assert_int_equal(tell(&s->evil, &rep), 204);
	const char *status = page(&s->evil, "/v1/status");
	print_message("row 18: \"serve the newest\" in events: %s\n",
				  strstr(status, "serve the newest") != NULL ? "yes" : "no");
	assert_null(strstr(status, "serve the newest"));
	assert_non_null(strstr(status, "member 0 claims to have the state of round 9"));
}

/* ---- addresses ---- */

/* Row 19: given, reflected without a proof that holds, private. */
static void test_an_address_is_the_one_seen(void **state) {
	struct scene *s = *state;
	static const char *const lies[] = {"198.51.100.7:80",      "169.254.169.254:80", "[2001:db8::7]:443",
									   "255.255.255.255:7434", "224.0.0.1:7434",     "192.168.1.255:7434"};
	static const uint8_t kinds[] = {CANDIDATE_GIVEN, CANDIDATE_REFLECTED, CANDIDATE_PRIVATE};
	for (size_t i = 0; i < sizeof lies / sizeof lies[0] * sizeof kinds; i++) {
		learn(s, &s->evil);
		struct report rep = a_report(s, WORKER_TRAINING);
		rep.n_candidates = 2;
		rep.candidates[1] =
			(struct candidate){.kind = kinds[i % sizeof kinds], .relay = 1, .unix_s = UINT64_C(1800000000)};
		(void)snprintf(rep.candidates[1].addr, NET_ADDR_BYTES, "%s", lies[i / sizeof kinds]);
		assert_int_equal(tell(&s->evil, &rep), 204);
		learn(s, &s->evil);
		assert_int_equal(s->d.n_members, 1);
		assert_int_equal(s->d.members[0].n_candidates, 1);
		assert_string_equal(s->d.members[0].candidates[0].addr, "127.0.0.1:7000");
	}
	print_message("row 19: %zu lies, announced as %s\n", sizeof lies / sizeof lies[0] * sizeof kinds,
				  s->d.members[0].candidates[0].addr);
}

/* Row 20. */
static void test_moves_are_not_stored_at_the_movers_pace(void **state) {
	struct scene *s = *state;
	long log_before = file_bytes(s, "log");
	int64_t from_us = rv_clock_monotonic_us();
	for (int i = 0; i < MOVES; i++) {
		struct report rep = a_report(s, WORKER_TRAINING);
		(void)snprintf(rep.candidates[0].addr, NET_ADDR_BYTES, ":%d", 7000 + i % 2);
		(void)tell(&s->evil, &rep);
	}
	const double took_s = (double)(rv_clock_monotonic_us() - from_us) / 1e6;
	const long log_bytes = file_bytes(s, "log") - log_before;
	assert_int_equal(coordinator_stop(&s->c), 0);
	const int64_t records = sql(s, "SELECT count(*) FROM records WHERE type = 1");
	print_message("row 20: %d moves in %.1f s (%.0f reports/s): %lld member records, log +%ld bytes\n", MOVES, took_s,
				  MOVES / took_s, (long long)records, log_bytes);
	coordinator_start(&s->c);
	assert_true(records <= 6 + (int64_t)(took_s / 10));
	assert_true(log_bytes < 10000);
}

/* ---- floods ---- */

/* Row 21: everybody else is served while one member holds what it can. */
static void test_long_polls_lock_nobody_out(void **state) {
	struct scene *s = *state;
	static struct poll_flood f;
	static char out[1 << 16];
	struct client k;
	struct invite in;
	learn(s, &s->evil);
	poll_flood_begin(&f, &s->c, GHOST, s->d.seq);
	print_message("row 21: of %d long polls by one member %d are open\n", f.started, f.started - f.ended);
	client_init(&k, &s->c, NEWCOMER, NULL);
	const struct answer *a = client_ask(&k, "/", NULL, 0);
	print_message("row 21: dashboard: %d %s\n", a->status, a->text);
	assert_int_equal(a->status, 200);
	assert_int_equal(client_ask(&k, "/metrics", NULL, 0)->status, 200);
	coordinator_invite(&s->c, &in);
	assert_int_equal(client_join(&k, &s->c, &in, NULL), 200);
	assert_int_equal(run(s, "status", out, sizeof out), 0);
	assert_non_null(strstr(out, "\"online\":true"));
	assert_int_equal(coordinator_command(out, sizeof out, (const char *const[]){"ban", "--dir", s->c.dir, "0", NULL}),
					 0);
	client_release(&k);
	poll_flood_end(&f);
}

/* Row 21 with 43 invites: so many members that six connections each are all that there are. */
static void test_members_together_lock_nobody_out(void **state) {
	enum { MEMBERS = 43 };
	struct scene *s = *state;
	static struct client many[MEMBERS];
	static char out[1 << 16];
	static struct poll_flood f;
	struct invite in;
	struct client k;
	assert_int_equal(
		coordinator_command(out, sizeof out, (const char *const[]){"invite", "--dir", s->c.dir, "--count", "43", NULL}),
		0);
	char *line = out;
	for (uint32_t i = 0; i < MEMBERS; i++, line += strlen(line) + 1) {
		line[strcspn(line, "\n")] = '\0';
		assert_ok(invite_parse(line, &in, &et));
		client_init(&many[i], &s->c, 1000 + i, NULL);
		assert_int_equal(client_join(&many[i], &s->c, &in, NULL), 200);
		for (int poll = 0; poll < 6; poll++)
			(void)poll_flood_start(&f, &many[i], 1000000);
		for (int turn = 0; turn < 8; turn++)
			assert_ok(http_client_poll(many[i].http, NULL, 0, 1000, &et));
	}
	client_init(&k, &s->c, NEWCOMER, NULL);
	const struct answer *a = client_ask(&k, "/", NULL, 0);
	print_message("row 21: %d members, 6 long polls each: dashboard: %d %s\n", MEMBERS, a->status, a->text);
	assert_int_equal(a->status, 200);
	assert_int_equal(run(s, "status", out, sizeof out), 0);
	assert_int_equal(coordinator_command(out, sizeof out, (const char *const[]){"ban", "--dir", s->c.dir, "0", NULL}),
					 0);
	client_release(&k);
	for (int i = 0; i < MEMBERS; i++)
		client_release(&many[i]);
}

/* A member asks for the whole document as fast as it can: the operator's line carries few of them,
 * and the others are served. */
static void test_documents_are_not_had_at_the_askers_pace(void **state) {
	enum { ASKED = 3000, BURST = 200 };
	struct scene *s = *state;
	int given = 0, refused = 0;
	size_t bytes = 0;
	const int64_t from_us = rv_clock_monotonic_us();
	for (int i = 0; i < ASKED; i++) {
		const struct answer *a = client_ask(&s->evil, "/v1/document?version=1", NULL, 0);
		given += a->status == 200;
		refused += a->status == 429;
		bytes += a->status == 200 ? a->n : 0;
	}
	const double took_s = (double)(rv_clock_monotonic_us() - from_us) / 1e6;
	print_message("documents: %d asked for in %.1f s: %d given (%zu bytes), %d refused\n", ASKED, took_s, given, bytes,
				  refused);
	assert_int_equal(given + refused, ASKED);
	assert_true(given <= BURST + 1 + (int)(4 * took_s));
	assert_true(honest_worker_gets_on(s));
}

static void claim_to_have_read_all(struct report *rep) {
	rep->lease_first = 0;
	rep->lease_count = rep->phase >= WORKER_READY ? 1u << 30 : 0;
}

/* In a run without leases, a claim to have read some: nothing comes of it. */
static void test_reads_that_nobody_leased(void **state) {
	struct scene *s = *state;
	lie_for_a_round(s, claim_to_have_read_all);
	assert_true(honest_worker_gets_on(s));
}

/* A link that needs approval, and keys without end: those that wait fill the places of those who
 * wait by that link, no others, and the operator is asked no more often. */
static void test_keys_that_wait_for_approval(void **state) {
	enum { KEYS = 80 };
	struct scene *s = *state;
	static char out[1 << 16];
	struct invite approved, open;
	int waiting = 0, refused = 0;
	const char *const argv[] = {"invite", "--dir", s->c.dir, "--approve", "--uses", "1000", NULL};
	assert_int_equal(coordinator_command(out, sizeof out, argv), 0);
	char *link = strstr(out, "rivulet://");
	assert_non_null(link);
	link[strcspn(link, " \r\n\"")] = '\0';
	assert_ok(invite_parse(link, &approved, &et));
	long log_before = file_bytes(s, "log");
	for (uint32_t i = 0; i < KEYS; i++) {
		struct client k;
		client_init(&k, &s->c, 2000 + i, NULL);
		const int status = client_join(&k, &s->c, &approved, NULL);
		waiting += status == 202;
		refused += status >= 400;
		client_release(&k);
	}
	print_message("approval: %d keys by one link: %d wait, %d refused, log +%ld bytes\n", KEYS, waiting, refused,
				  file_bytes(s, "log") - log_before);
	assert_int_equal(waiting + refused, KEYS);
	struct client k;
	coordinator_invite(&s->c, &open);
	client_init(&k, &s->c, NEWCOMER, NULL);
	assert_int_equal(client_join(&k, &s->c, &open, NULL), 200);
	client_release(&k);
	assert_true(file_bytes(s, "log") - log_before < 40000);
}

/* One that has no member's key, and one whose member is banned, learn nothing and cost nothing. */
static void test_a_banned_member_is_let_go(void **state) {
	struct scene *s = *state;
	static char out[1 << 16];
	assert_int_equal(coordinator_command(out, sizeof out, (const char *const[]){"ban", "--dir", s->c.dir, "0", NULL}),
					 0);
	struct report rep = a_report(s, WORKER_TRAINING);
	assert_int_equal(tell(&s->evil, &rep), 403);
	assert_int_equal(client_ask(&s->evil, "/v1/document?version=1", NULL, 0)->status, 403);
	assert_true(client_ask(&s->evil, "/v1/text/data.idx", NULL, 0)->status >= 400);
	assert_true(client_ask(&s->evil, "/v1/pair-tickets", "x", 1)->status >= 400);
	assert_true(honest_worker_gets_on(s));
}

/* A guesser behind the same address does not hold up who has a token. */
static void test_guessers_do_not_lock_out_a_newcomer(void **state) {
	struct scene *s = *state;
	struct client guesser, k;
	struct invite in, forged;
	long log_before = file_bytes(s, "log");
	coordinator_invite(&s->c, &in);
	forged = in;
	forged.token[3] ^= 1;
	client_init(&guesser, &s->c, NEWCOMER + 1, NULL);
	client_init(&k, &s->c, NEWCOMER, NULL);
	int limited = 0;
	for (int i = 0; i < GUESSES; i++)
		limited += client_join(&guesser, &s->c, &forged, NULL) == 429;
	assert_true(limited > 0);
	const int status = client_join(&k, &s->c, &in, NULL);
	print_message("guesses: %d, of which %d were answered 429; then a valid token: %d\n", GUESSES, limited, status);
	assert_int_equal(status, 200);
	assert_non_null(strstr(page(&k, "/metrics"), "\nrivulet_joins_refused_total 300\n"));
	assert_true(file_bytes(s, "log") - log_before < 4096);
	client_release(&guesser);
	client_release(&k);
}

/* A stranger reads pages without pause: it is told to wait, after a second, and those with a key
 * are not. */
static void test_pages_are_read_at_a_pace(void **state) {
	enum { ASKED = 5000, BURST = 256, PER_S = 16 };
	struct scene *s = *state;
	struct client k;
	char out[1 << 16];
	int given = 0, status = 200;
	client_init(&k, &s->c, NEWCOMER, NULL);
	const int64_t began_us = rv_clock_monotonic_us();
	int64_t last_us = began_us;
	for (int i = 0; i < ASKED && status == 200; i++) {
		last_us = rv_clock_monotonic_us();
		status = client_ask(&k, i % 2 ? "/v1/status" : "/metrics", NULL, 0)->status;
		given += status == 200;
	}
	const int64_t now_us = rv_clock_monotonic_us();
	print_message("a stranger: %d pages in %lld ms\n", given, (long long)(now_us - began_us) / 1000);
	assert_true(given <= BURST + 1 + (int)((now_us - began_us) * PER_S / RV_US_PER_S));
	if (status != 200) /* on a machine that asks more often than it may */
		assert_true(status == 429 && now_us - last_us >= RV_US_PER_S);
	for (int i = 0; i < BURST + PER_S; i++)
		assert_int_equal(client_ask(&s->evil, "/v1/status", NULL, 0)->status, 200); /* a member */
	assert_int_equal(run(s, "status", out, sizeof out), 0);
	client_release(&k);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_tokens_do_not_stop_the_run, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_n_chunks_is_not_believed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_loss_is_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_claim_is_called_a_claim, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_address_is_the_one_seen, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_moves_are_not_stored_at_the_movers_pace, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_long_polls_lock_nobody_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_members_together_lock_nobody_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_documents_are_not_had_at_the_askers_pace, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reads_that_nobody_leased, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_keys_that_wait_for_approval, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_banned_member_is_let_go, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_guessers_do_not_lock_out_a_newcomer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_pages_are_read_at_a_pace, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
