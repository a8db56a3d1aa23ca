/* test_e2e_attacks.c: strangers, liars and broken members against real processes: each is refused
 * with a named error, and the run goes on as if nothing had been. */
#include "ends.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/hex.h"
#include "net/http_client.h"
#include "net/invite.h"
#include "tests/common/check.h"
#include "tests/net/raw_client.h"

#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Three are needed, two are there: it waits, until the tests are through. */
static const char three_workers[] = "n-layer = 1\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 4\n"
									"min-workers = 3\nsteps-per-round = 2\nrounds = 3\nsnapshot-every = 2\n"
									"grace-ms = 600000\nsilence-ms = 30000\n";

enum { VICTIM = 0, CAPTURED = 2, WAIT_US = PROCESS_WAIT_S * RV_US_PER_S };

struct scene {
	struct e2e e;
	struct invite invite;
	uint16_t port;          /* the victim's */
	struct identity member; /* worker 2's, in the wrong hands */
	uint8_t ticket[NET_SIG_BYTES];
	long seen; /* lines of the victim's log */
	struct raw_client c;
};

static struct scene scene;

/* The member file's ticket: what worker 2 was given at its join. */
static void read_ticket(struct scene *s, const char *dir) {
	char path[E2E_PATH + 16];
	uint8_t *text;
	size_t n;
	snprintf(path, sizeof path, "%s/member.conf", dir);
	assert_int_equal(rv_file_read(path, 4096, &text, &n, NULL), RV_OK);
	char *at = strstr((char *)text, "ticket = ");
	assert_non_null(at);
	at += strlen("ticket = ");
	at += *at == '"';
	assert_true(rv_base64url_decode(at, strcspn(at, "\"\n"), s->ticket, NET_SIG_BYTES));
	free(text);
}

static int setup(void **state) {
	struct scene *s = &scene;
	char dir[E2E_PATH], path[E2E_PATH + 16];
	*state = s;
	e2e_open(&s->e, three_workers, 4);
	e2e_start_workers(&s->e, 3);
	process_signal(&s->e.workers[CAPTURED], SIGKILL);
	(void)process_wait(&s->e.workers[CAPTURED]);
	e2e_worker_dir(&s->e, CAPTURED, dir);
	snprintf(path, sizeof path, "%s/identity.key", dir);
	assert_int_equal(identity_load(path, &s->member, NULL), RV_OK);
	read_ticket(s, dir);
	assert_int_equal(invite_parse(s->e.links[3], &s->invite, NULL), RV_OK);
	json_t *started = e2e_wait_event(&s->e.workers[VICTIM], "started", NULL, 0, &s->seen);
	s->port = (uint16_t)e2e_int(started, "port");
	json_decref(started);
	return 0;
}

static int teardown(void **state) {
	e2e_close(&((struct scene *)*state)->e);
	return 0;
}

/* ---- on the peer link ---- */

static void step_until(struct raw_client *c, bool *flag) {
	for (int64_t end = rv_clock_monotonic_us() + WAIT_US; !*flag && !c->closed;) {
		raw_step(c);
		assert_true(rv_clock_monotonic_us() < end);
	}
}

static void connect_as(struct scene *s, const struct identity *id) {
	struct raw_options o = {.id = id, .alpn = "\x09rivulet/1", .max_version = TLS1_3_VERSION};
	raw_open(&s->c, s->port, &o);
	step_until(&s->c, &s->c.secured);
}

/* The victim said so, in the event `name`, with that error; and closed the link. */
static void expect_refusal(struct scene *s, const char *name, const char *text) {
	for (;;) {
		json_t *j = e2e_wait_event(&s->e.workers[VICTIM], name, NULL, 0, &s->seen);
		bool found = strstr(e2e_text(j, "text"), text) != NULL;
		if (found)
			print_message("%s: %s: %s\n", name, e2e_text(j, "error"), e2e_text(j, "text"));
		json_decref(j);
		if (found)
			break;
	}
	if (s->c.ssl)
		step_until(&s->c, &s->c.closed);
	raw_close(&s->c);
}

static void hello_as_member(struct scene *s) {
	struct frame_hello hello;
	connect_as(s, &s->member);
	assert_true(s->c.secured);
	raw_make_hello(&s->c, &s->member, s->invite.run_id, CAPTURED, &hello);
	memcpy(hello.ticket, s->ticket, NET_SIG_BYTES);
	raw_send_hello(&s->c, &hello, s->invite.run_id);
}

static void garbage_instead_of_tls(void **state) {
	struct scene *s = *state;
	raw_open(&s->c, s->port, NULL);
	raw_send(&s->c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27);
	expect_refusal(s, "peer_refused", "");
}

static void a_key_that_is_no_members(void **state) {
	struct scene *s = *state;
	static const uint8_t seed[IDENTITY_SEED_BYTES] = {1, 2, 3};
	struct identity stranger;
	struct frame_hello hello;
	identity_of_seed(seed, &stranger);
	connect_as(s, &stranger);
	raw_make_hello(&s->c, &stranger, s->invite.run_id, 3, &hello);
	raw_send_hello(&s->c, &hello, s->invite.run_id);
	expect_refusal(s, "peer_refused", "ticket");
}

static void somebody_elses_ticket(void **state) {
	struct scene *s = *state;
	static const uint8_t seed[IDENTITY_SEED_BYTES] = {4, 5, 6};
	struct identity stranger;
	struct frame_hello hello;
	identity_of_seed(seed, &stranger);
	connect_as(s, &stranger);
	raw_make_hello(&s->c, &stranger, s->invite.run_id, CAPTURED, &hello);
	memcpy(hello.ticket, s->ticket, NET_SIG_BYTES);
	raw_send_hello(&s->c, &hello, s->invite.run_id);
	expect_refusal(s, "peer_refused", "");
}

static void a_hello_of_another_connection(void **state) {
	struct scene *s = *state;
	struct frame_hello recorded;
	connect_as(s, &s->member);
	raw_make_hello(&s->c, &s->member, s->invite.run_id, CAPTURED, &recorded);
	raw_close(&s->c);
	memcpy(recorded.ticket, s->ticket, NET_SIG_BYTES);
	connect_as(s, &s->member);
	raw_send_hello(&s->c, &recorded, s->invite.run_id);
	expect_refusal(s, "peer_refused", "sign");
}

static void an_oversized_frame(void **state) {
	struct scene *s = *state;
	hello_as_member(s);
	struct frame_header h = frame_header_of(FRAME_SCATTER, frame_run_tag(s->invite.run_id), NET_MAX_CHUNK_BYTES + 1);
	h.attempt = 1;
	raw_send_frame(&s->c, &h, NULL, 0);
	expect_refusal(s, "link_down", "body");
}

static void a_frame_with_a_broken_header(void **state) {
	struct scene *s = *state;
	uint8_t head[FRAME_HEADER_BYTES];
	hello_as_member(s);
	struct frame_header h = frame_header_of(FRAME_PING, frame_run_tag(s->invite.run_id), 0);
	h.attempt = 1;
	frame_header_encode(&h, head);
	head[17] ^= 1;
	raw_send(&s->c, head, sizeof head);
	expect_refusal(s, "link_down", "check");
}

static void too_many_requests_for_state(void **state) {
	struct scene *s = *state;
	uint8_t body[FRAME_FETCH_BYTES], all[64 * (FRAME_HEADER_BYTES + FRAME_FETCH_BYTES)];
	struct frame_fetch f = {.kind = FRAME_FETCH_LOG, .round = 7};
	hello_as_member(s);
	struct frame_header h = frame_fetch_encode(&f, frame_run_tag(s->invite.run_id), body);
	size_t n = 0;
	for (int i = 0; i < 64; i++) { /* in one record: they arrive together */
		frame_header_encode(&h, all + n);
		memcpy(all + n + FRAME_HEADER_BYTES, body, sizeof body);
		n += FRAME_HEADER_BYTES + sizeof body;
	}
	raw_send(&s->c, all, n);
	expect_refusal(s, "link_down", "FETCH");
}

/* ---- at the coordinator ---- */

struct answer {
	bool done;
	enum rv_err err;
	int status;
	char text[256];
};

static void on_answer(void *ctx, const struct http_reply *r) {
	struct answer *a = ctx;
	a->done = true;
	a->err = r->err;
	a->status = r->status;
	snprintf(a->text, sizeof a->text, "%.*s", (int)(r->body_bytes < 200 ? r->body_bytes : 200),
			 r->body ? (const char *)r->body : "");
}

static struct answer post(struct scene *s, const struct identity *id, const char *path, const void *body, size_t n) {
	struct http_client *http;
	struct answer a = {0};
	struct http_client_config cfg = {
		.server = s->invite.coordinator, .identity = id, .connect_timeout_ms = WAIT_US / RV_US_PER_MS};
	cfg.trust = run_trust_of(s->invite.run_id, s->invite.key);
	assert_int_equal(http_client_new(&cfg, &http, NULL), RV_OK);
	struct http_request rq = {.path = path,
							  .body = body,
							  .body_bytes = n,
							  .max_reply_bytes = 4096,
							  .timeout_ms = WAIT_US / RV_US_PER_MS,
							  .done = on_answer,
							  .ctx = &a};
	assert_int_equal(http_client_start(http, &rq, NULL, NULL), RV_OK);
	while (!a.done)
		assert_int_equal(http_client_poll(http, NULL, 0, RV_US_PER_S, NULL), RV_OK);
	http_client_free(http);
	print_message("%s: %d %s", path, a.status, a.text);
	return a;
}

static void requests_that_the_coordinator_refuses(void **state) {
	struct scene *s = *state;
	static const uint8_t seed[IDENTITY_SEED_BYTES] = {9};
	struct identity stranger;
	struct report r = {
		.boot = 1, .seq = 1, .phase = WORKER_TRAINING, .n_chunks = 1, .n_candidates = 1, .candidates[0].addr = ":1"};
	uint8_t report[NET_MAX_REPORT_BYTES], *huge = calloc(1, 1 << 20);
	struct rv_writer w = rv_writer_of(report, sizeof report);
	identity_of_seed(seed, &stranger);
	report_encode(&r, CONTROL_VERSION, &w);
	assert_false(w.failed);
	assert_int_equal(post(s, &stranger, "/v1/report", report, rv_writer_len(&w)).status, 403);
	assert_int_equal(post(s, &s->member, "/v1/report", "what?", 5).status, 400);
	struct answer a = post(s, &s->member, "/v1/report", huge, 1 << 20);
	assert_true(a.err != RV_OK || a.status >= 400);
	free(huge);
}

enum { REFUSED = 4 }; /* the exit status: not to be started again */

static void expect_worker_refused(struct scene *s, const char *link, const char *why) {
	char dir[E2E_PATH];
	json_t *failed = NULL;
	long from = 0;
	snprintf(dir, sizeof dir, "%s/refused", s->e.dir);
	const char *const argv[] = {"rivulet-worker", link, "--yes", "--dir", dir, "--data", s->e.data, NULL};
	e2e_run(&s->e, "refused", argv, REFUSED);
	snprintf(dir, sizeof dir, "%s/refused.log", s->e.dir);
	while ((failed = e2e_find_event(dir, "failed", NULL, 0, &from)) && !strstr(e2e_text(failed, "text"), why))
		json_decref(failed);
	assert_non_null(failed);
	print_message("%s\n", e2e_text(failed, "text"));
	json_decref(failed);
}

static void links_that_are_spent_or_forged(void **state) {
	struct scene *s = *state;
	char forged[INVITE_MAX_BYTES];
	struct invite wrong = s->invite;
	expect_worker_refused(s, s->e.links[0], "spent");
	wrong.key[5] ^= 1;
	invite_format(&wrong, forged);
	expect_worker_refused(s, forged, "key");
}

/* ---- and the run goes on ---- */

static void the_run_goes_on(void **state) {
	struct scene *s = *state;
	char chain[65], full[65];
	e2e_start_worker(&s->e, CAPTURED, NULL, NULL);
	e2e_assert_same_end(&s->e, (const int[]){0, 1, 2}, 3, chain, full);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(garbage_instead_of_tls),
		cmocka_unit_test(a_key_that_is_no_members),
		cmocka_unit_test(somebody_elses_ticket),
		cmocka_unit_test(a_hello_of_another_connection),
		cmocka_unit_test(an_oversized_frame),
		cmocka_unit_test(a_frame_with_a_broken_header),
		cmocka_unit_test(too_many_requests_for_state),
		cmocka_unit_test(requests_that_the_coordinator_refuses),
		cmocka_unit_test(links_that_are_spent_or_forged),
		cmocka_unit_test(the_run_goes_on),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, setup, teardown);
}
