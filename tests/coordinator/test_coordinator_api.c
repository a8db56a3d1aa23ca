/* The coordinator's API over real TLS: what it serves, and what it refuses, by a named error and
 * without harm. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "net/control/reach_test.h"
#include "tests/common/check.h"
#include "tests/coordinator/coordinator_process.h"
#include "tests/coordinator/run_chunks.h"

enum { RAW_REPLY_BYTES = 65536, FORGED_JOINS = 1000, REACH_QUESTIONS = 5000 };

static const char config[] = "rounds = 10\nmin-workers = 2\nsilence-ms = 3600000\n";

static int set_up(void **state) {
	struct coordinator *c = calloc(1, sizeof *c);
	*state = c;
	coordinator_make(c, config);
	return 0;
}

static int tear_down(void **state) {
	struct coordinator *c = *state;
	coordinator_remove(c);
	free(c);
	return 0;
}

/* ---- what it serves ---- */

static void test_a_round_by_hand(void **state) {
	struct coordinator *c = *state;
	struct client k[2];
	struct join_reply reply;
	struct invite in;
	static struct document d;
	for (uint32_t i = 0; i < 2; i++) {
		client_init(&k[i], c, i, NULL);
		coordinator_invite(c, &in);
		assert_int_equal(client_join(&k[i], c, &in, &reply), 200);
		assert_int_equal(reply.member, i);
		assert_true(ticket_verify(c->serving, c->run_id, i, k[i].id.key, reply.ticket));
		assert_non_null(strstr(reply.config, "rounds = 10\n"));
	}
	memset(&d, 0, sizeof d);
	struct report rep = {.boot = 1,
						 .seq = 1,
						 .phase = WORKER_SYNCING,
						 .n_chunks = run_chunks("", 0),
						 .n_candidates = 1,
						 .candidates[0].addr = ":7000"};
	for (int i = 0; i < 2; i++)
		assert_int_equal(client_report(&k[i], &rep), 204);
	assert_int_equal(client_document(&k[0], 0, &d), 200);
	assert_int_equal(d.phase, RUN_OPEN);
	const enum worker_phase phases[] = {WORKER_TRAINING, WORKER_READY, WORKER_VOTED};
	for (uint64_t p = 0; p < 3; p++) {
		uint64_t before = d.seq;
		rep = plain_report(&d, "", p + 2, phases[p]);
		for (int i = 0; i < 2; i++)
			assert_int_equal(client_report(&k[i], &rep), 204);
		assert_int_equal(client_document(&k[1], before, &d), 200);
		assert_true(d.seq > before);
	}
	assert_int_equal(d.round, 1);
	assert_string_equal(d.members[0].candidates[0].addr, "127.0.0.1:7000");
	client_release(&k[0]);
	client_release(&k[1]);
}

struct late {
	bool done;
	int status;
};

static void on_late(void *ctx, const struct http_reply *r) {
	struct late *l = ctx;
	l->done = true;
	l->status = r->status;
}

/* A document request for news that are not there yet is held, and answered when there are. */
static void test_long_poll(void **state) {
	struct coordinator *c = *state;
	struct client waiting, k;
	struct invite in;
	struct late late = {.done = false};
	static struct document d;
	char path[64];
	client_init(&waiting, c, 0, NULL);
	client_init(&k, c, 1, NULL);
	coordinator_invite(c, &in);
	assert_int_equal(client_join(&waiting, c, &in, NULL), 200);
	coordinator_invite(c, &in);
	assert_int_equal(client_join(&k, c, &in, NULL), 200);
	struct report rep = {.boot = 1,
						 .seq = 1,
						 .phase = WORKER_SYNCING,
						 .n_chunks = run_chunks("", 0),
						 .n_candidates = 1,
						 .candidates[0].addr = ":7000"};
	assert_int_equal(client_report(&waiting, &rep), 204);
	assert_int_equal(client_report(&k, &rep), 204);
	assert_int_equal(client_document(&k, 0, &d), 200);
	(void)snprintf(path, sizeof path, "/v1/document?after=%llu", (unsigned long long)d.seq);
	struct http_request rq = {
		.path = path, .max_reply_bytes = IDENTITY_SIGNED_MAX_BYTES, .timeout_ms = 60000, .done = on_late, .ctx = &late};
	assert_ok(http_client_start(waiting.http, &rq, NULL, &et));
	for (int i = 0; i < 20; i++)
		assert_ok(http_client_poll(waiting.http, NULL, 0, 10000, &et));
	assert_false(late.done);
	rep = plain_report(&d, "", 2, WORKER_TRAINING);
	assert_int_equal(client_report(&k, &rep), 204); /* a donor more: news */
	while (!late.done)
		assert_ok(http_client_poll(waiting.http, NULL, 0, 1000000, &et));
	assert_int_equal(late.status, 200);
	client_release(&waiting);
	client_release(&k);
}

static void test_pages_for_people(void **state) {
	struct coordinator *c = *state;
	struct client k;
	client_init(&k, c, 5, NULL);
	const struct answer *a = client_ask(&k, "/", NULL, 0);
	assert_int_equal(a->status, 200);
	assert_non_null(strstr((const char *)a->body, "<html"));
	a = client_ask(&k, "/v1/status", NULL, 0);
	assert_int_equal(a->status, 200);
	assert_int_equal(a->body[0], '{');
	a = client_ask(&k, "/metrics", NULL, 0);
	assert_int_equal(a->status, 200);
	assert_non_null(strstr((const char *)a->body, "rivulet_round 0\n"));
	client_release(&k);
}

/* ---- what it refuses ---- */

static void test_joins_that_are_refused(void **state) {
	struct coordinator *c = *state;
	struct client k[3];
	struct invite in, forged;
	struct join_reply reply;
	for (uint32_t i = 0; i < 3; i++)
		client_init(&k[i], c, i, NULL);
	coordinator_invite(c, &in);
	forged = in;
	forged.token[3] ^= 1;
	assert_int_equal(client_join(&k[0], c, NULL, &reply), 403);    /* no token */
	assert_int_equal(client_join(&k[0], c, &forged, &reply), 403); /* not one of ours */
	assert_int_equal(client_join(&k[0], c, &in, &reply), 200);
	assert_int_equal(client_join(&k[1], c, &in, &reply), 403); /* spent */
	assert_int_equal(client_join(&k[0], c, &in, &reply), 200); /* the same worker may repeat it */
	assert_int_equal(reply.member, 0);
	assert_int_equal(client_join(&k[0], c, NULL, &reply), 200);
	struct coordinator other = *c;
	other.run_id[0] ^= 1;
	assert_int_equal(client_join(&k[1], &other, &in, &reply), 409);
	bool limited = false;
	for (int i = 0; i < FORGED_JOINS && !limited; i++) /* one more is allowed every second */
		limited = client_join(&k[2], c, &forged, &reply) == 429;
	assert_true(limited);
	assert_int_equal(client_join(&k[0], c, NULL, &reply), 200); /* members are not held up by that */
	for (uint32_t i = 0; i < 3; i++)
		client_release(&k[i]);
}

static int ask_reach(struct client *k, const struct coordinator *c, const struct invite *in,
					 struct reach_test_reply *out) {
	uint8_t body[256];
	struct reach_test_request rq = {.has_token = in != NULL, .n = 1, .addrs = {{":7434"}}};
	struct rv_writer w = rv_writer_of(body, sizeof body);
	memcpy(rq.run_id, c->run_id, sizeof rq.run_id);
	if (in != NULL)
		memcpy(rq.token, in->token, sizeof rq.token);
	reach_test_request_encode(&rq, CONTROL_VERSION, &w);
	const struct answer *a = client_ask(k, "/v1/reach-test", body, rv_writer_len(&w));
	if (a->status == 200)
		assert_ok(reach_test_reply_decode(a->body, a->n, out, &et));
	return a->status;
}

/* The token is as good afterwards; and whoever asks without end is asked to wait. */
static void test_how_a_worker_is_reached(void **state) {
	struct coordinator *c = *state;
	struct client k, other;
	struct invite in;
	struct reach_test_reply reply;
	client_init(&k, c, 0, NULL);
	client_init(&other, c, 1, NULL);
	coordinator_invite(c, &in);
	assert_int_equal(ask_reach(&k, c, NULL, &reply), 403);
	assert_int_equal(ask_reach(&k, c, &in, &reply), 200);
	assert_string_equal(reply.seen, "127.0.0.1");
	assert_int_equal(reply.n_probers, 0); /* nobody is there */
	assert_true(reply.done);
	assert_int_equal(client_join(&k, c, &in, NULL), 200);
	assert_int_equal(ask_reach(&k, c, NULL, &reply), 200);
	assert_int_equal(ask_reach(&other, c, &in, &reply), 403); /* spent */
	bool limited = false;
	for (int i = 0; i < REACH_QUESTIONS && !limited; i++)
		limited = ask_reach(&k, c, NULL, &reply) == 429;
	assert_true(limited);
	assert_int_equal(client_join(&k, c, NULL, NULL), 200);
	client_release(&k);
	client_release(&other);
}

static void test_strangers_get_nothing(void **state) {
	struct coordinator *c = *state;
	struct client k;
	static struct document d;
	struct report rep = {.boot = 1,
						 .seq = 1,
						 .phase = WORKER_SYNCING,
						 .n_chunks = run_chunks("", 0),
						 .n_candidates = 1,
						 .candidates[0].addr = ":7000"};
	client_init(&k, c, 7, NULL);
	assert_int_equal(client_report(&k, &rep), 403);
	assert_int_equal(client_document(&k, 0, &d), 403);
	assert_int_equal(client_ask(&k, "/v1/admin/status", NULL, 0)->status, 403);
	assert_int_equal(client_ask(&k, "/v1/admin/invite", "count=1", 7)->status, 403);
	assert_int_equal(client_ask(&k, "/v1/admin/ban", "member=0&banned=1", 17)->status, 403);
	client_release(&k);
}

static void test_a_server_with_another_key_is_not_believed(void **state) {
	struct coordinator *c = *state;
	struct client k;
	uint8_t other[NET_KEY_BYTES];
	memcpy(other, c->root, sizeof other);
	other[0] ^= 1;
	client_init(&k, c, 7, other);
	const struct answer *a = client_ask(&k, "/v1/status", NULL, 0);
	assert_int_equal(a->err, RV_E_AUTH);
	client_release(&k);
}

static void test_garbage(void **state) {
	struct coordinator *c = *state;
	struct client k;
	struct invite in;
	uint8_t junk[1500];
	memset(junk, 0xa5, sizeof junk);
	client_init(&k, c, 0, NULL);
	coordinator_invite(c, &in);
	assert_int_equal(client_join(&k, c, &in, NULL), 200);
	for (size_t n = 1; n < sizeof junk; n = n * 3 + 1) {
		assert_int_equal(client_ask(&k, "/v1/join", junk, n)->status, 400);
		assert_int_equal(client_ask(&k, "/v1/report", junk, n)->status, 400);
	}
	assert_int_equal(client_ask(&k, "/v1/document?after=x", NULL, 0)->status, 400);
	assert_int_equal(client_ask(&k, "/v1/document?after=-1", NULL, 0)->status, 400);
	assert_int_equal(client_ask(&k, "/v1/document?after=99999999999999999999", NULL, 0)->status, 400);
	assert_int_equal(client_ask(&k, "/v1/document?after=1&after=2", NULL, 0)->status, 400);
	assert_int_equal(client_ask(&k, "/v1/nothing", NULL, 0)->status, 404);
	assert_int_equal(client_ask(&k, "/v1/../etc/passwd", NULL, 0)->status, 404);
	assert_int_equal(client_ask(&k, "/v1/join", NULL, 0)->status, 405);
	assert_int_equal(client_ask(&k, "/v1/document", junk, 10)->status, 405);
	assert_int_equal(client_join(&k, c, NULL, NULL), 200);
	client_release(&k);
}

static void test_oversized_bodies(void **state) {
	struct coordinator *c = *state;
	struct client k;
	const size_t n = 1 << 20;
	uint8_t *junk = calloc(1, n);
	client_init(&k, c, 0, NULL);
	const struct answer *a = client_ask(&k, "/v1/report", junk, n);
	assert_true(a->err != RV_OK || a->status == 413); /* told, or cut off before all was read */
	client_release(&k);
	client_init(&k, c, 0, NULL);
	assert_int_equal(client_ask(&k, "/v1/status", NULL, 0)->status, 200);
	client_release(&k);
	free(junk);
}

/* Bodies as long as evidence are read from members only, on a connection that has shown the key;
 * and a member does not send them without end. */
static void test_evidence_is_of_members_at_a_pace(void **state) {
	enum { LONG = 8192, MOST = 10000 };
	struct coordinator *c = *state;
	struct client k;
	struct invite in;
	uint8_t junk[LONG];
	memset(junk, 0xa5, sizeof junk);
	client_init(&k, c, 7, NULL);
	assert_int_equal(client_ask(&k, "/v1/evidence", junk, 10)->status, 403);
	const struct answer *a = client_ask(&k, "/v1/evidence", junk, sizeof junk);
	assert_true(a->err != RV_OK || a->status == 413);
	client_release(&k);
	client_init(&k, c, 0, NULL);
	coordinator_invite(c, &in);
	assert_int_equal(client_join(&k, c, &in, NULL), 200);
	int status = client_ask(&k, "/v1/evidence", junk, 10)->status; /* the connection is a member's now */
	assert_int_equal(status, 400);
	assert_int_equal(client_ask(&k, "/v1/evidence", junk, sizeof junk)->status, 400);
	for (int i = 0; i < MOST && status == 400; i++)
		status = client_ask(&k, "/v1/evidence", junk, 10)->status;
	assert_int_equal(status, 429);
	client_release(&k);
}

/* ---- below HTTP ---- */

static int tcp_connect(const struct coordinator *c) {
	struct sockaddr_storage sa;
	socklen_t n;
	assert_true(address_to_socket(&c->at, &sa, &n));
	int fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, n), 0);
	return fd;
}

static char raw_reply[RAW_REPLY_BYTES];

/* Sends `text` over TLS without a client certificate; the status of the reply (in raw_reply), 0:
 * none, -1: no handshake. */
static int raw_request(const struct coordinator *c, int max_version, const char *text) {
	char *reply = raw_reply;
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	assert_int_equal(SSL_CTX_set_max_proto_version(ctx, max_version), 1);
	SSL *ssl = SSL_new(ctx);
	int fd = tcp_connect(c), status = -1, n = 0;
	assert_int_equal(SSL_set_fd(ssl, fd), 1);
	if (SSL_connect(ssl) == 1) {
		(void)SSL_write(ssl, text, (int)strlen(text));
		for (int k; n + 1 < RAW_REPLY_BYTES && (k = SSL_read(ssl, reply + n, RAW_REPLY_BYTES - 1 - n)) > 0;)
			n += k;
		reply[n] = '\0';
		status = n > 12 ? atoi(reply + 9) : 0;
	}
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	(void)close(fd);
	return status;
}

#define ENDING "Host: x\r\nConnection: close\r\n\r\n"

static void test_without_a_certificate(void **state) {
	struct coordinator *c = *state;
	assert_int_equal(raw_request(c, TLS1_3_VERSION, "GET / HTTP/1.1\r\n" ENDING), 200);
	assert_int_equal(raw_request(c, TLS1_3_VERSION, "GET /v1/status HTTP/1.1\r\n" ENDING), 200);
	assert_int_equal(raw_request(c, TLS1_3_VERSION, "GET /v1/chart?width=99999999 HTTP/1.1\r\n" ENDING), 200);
	assert_int_equal(raw_request(c, TLS1_3_VERSION, "GET /v1/chart?width=wide HTTP/1.1\r\n" ENDING), 400);
	assert_int_equal(raw_request(c, TLS1_3_VERSION, "GET /v1/document?after=0 HTTP/1.1\r\n" ENDING), 401);
	assert_int_equal(raw_request(c, TLS1_3_VERSION, "POST /v1/join HTTP/1.1\r\nContent-Length: 0\r\n" ENDING), 401);
	assert_int_equal(raw_request(c, TLS1_3_VERSION, "POST /v1/report HTTP/1.1\r\nContent-Length: 0\r\n" ENDING), 401);
	assert_int_equal(raw_request(c, TLS1_3_VERSION, "GET /v1/admin/status HTTP/1.1\r\n" ENDING), 401);
	assert_int_equal(raw_request(c, TLS1_3_VERSION, "DELETE / HTTP/1.1\r\n" ENDING), 501);
}

/* The headers of GET, its Content-Length among them, and no body. */
static void test_head_is_get_without_the_body(void **state) {
	struct coordinator *c = *state;
	const char *const paths[] = {"/", "/v1/status", "/v1/chart?width=400", "/metrics"};
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
		char text[128], headers[RAW_REPLY_BYTES];
		(void)snprintf(text, sizeof text, "HEAD %s HTTP/1.1\r\n" ENDING, paths[i]);
		assert_int_equal(raw_request(c, TLS1_3_VERSION, text), 200);
		const char *end = strstr(raw_reply, "\r\n\r\n"), *length = strstr(raw_reply, "Content-Length: ");
		assert_non_null(end);
		assert_int_equal(strlen(end), 4);
		assert_non_null(length);
		assert_true(atoi(length + strlen("Content-Length: ")) > 0);
		(void)snprintf(headers, sizeof headers, "%s", raw_reply);
		(void)snprintf(text, sizeof text, "GET %s HTTP/1.1\r\n" ENDING, paths[i]);
		assert_int_equal(raw_request(c, TLS1_3_VERSION, text), 200);
		assert_true(strlen(raw_reply) > strlen(headers));
	}
	assert_int_equal(raw_request(c, TLS1_3_VERSION, "HEAD /v1/nothing HTTP/1.1\r\n" ENDING), 404);
	assert_int_equal(raw_request(c, TLS1_3_VERSION, "HEAD /v1/join HTTP/1.1\r\n" ENDING), 405);
	assert_int_equal(raw_request(c, TLS1_3_VERSION, "HEAD /v1/document HTTP/1.1\r\n" ENDING), 401);
}

/* GET / as a client that knows only these signature algorithms; the certificate's kind of key must
 * be `kind`. */
static void check_offer(const struct coordinator *c, const char *sigalgs, int kind) {
	static const char text[] = "GET / HTTP/1.1\r\n" ENDING;
	char reply[64] = "";
	uint8_t key[NET_KEY_BYTES];
	size_t n = sizeof key;
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	assert_int_equal(SSL_CTX_set1_sigalgs_list(ctx, sigalgs), 1);
	SSL *ssl = SSL_new(ctx);
	int fd = tcp_connect(c);
	assert_int_equal(SSL_set_fd(ssl, fd), 1);
	assert_int_equal(SSL_connect(ssl), 1);
	EVP_PKEY *shown = X509_get0_pubkey(SSL_get0_peer_certificate(ssl));
	assert_int_equal(EVP_PKEY_get_id(shown), kind);
	if (kind == EVP_PKEY_ED25519) {
		assert_int_equal(EVP_PKEY_get_raw_public_key(shown, key, &n), 1);
		assert_memory_equal(key, c->serving, sizeof key);
	}
	assert_int_equal(SSL_write(ssl, text, sizeof text - 1), sizeof text - 1);
	assert_true(SSL_read(ssl, reply, sizeof reply - 1) > 12);
	assert_int_equal(strncmp(reply, "HTTP/1.1 200", 12), 0);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	(void)close(fd);
}

/* Browsers do not take Ed25519; whoever does gets the run's key, whatever it would rather have. */
static void test_certificates_by_what_is_offered(void **state) {
	check_offer(*state, "ECDSA+SHA256", EVP_PKEY_EC);
	check_offer(*state, "ECDSA+SHA256:RSA-PSS+SHA256:RSA+SHA256", EVP_PKEY_EC);
	check_offer(*state, "ed25519", EVP_PKEY_ED25519);
	check_offer(*state, "ECDSA+SHA256:RSA-PSS+SHA256:ed25519", EVP_PKEY_ED25519);
}

/* Sends `text` on a connection without TLS, and reads the answer to its end. */
static void plain_answer(struct coordinator *c, const char *text, char *out, size_t cap) {
	int fd = tcp_connect(c);
	size_t n = 0;
	ssize_t k;
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	while (n + 1 < cap && (k = read(fd, out + n, cap - 1 - n)) > 0)
		n += (size_t)k;
	out[n] = '\0';
	(void)close(fd);
}

/* Plain HTTP on the port of HTTPS is told so, as soon as it can be known, and nothing else is. */
static void test_old_tls_and_plain_text(void **state) {
	struct coordinator *c = *state;
	char answer[2048], where[96];
	assert_int_equal(raw_request(c, TLS1_2_VERSION, "GET / HTTP/1.1\r\n" ENDING), -1);
	(void)snprintf(where, sizeof where, "speaks HTTPS: https://127.0.0.1:%u/\n", c->at.port);
	static const char *const requests[] = {"GET / HTTP/1.1\r\n" ENDING, "HEAD / HTTP/1.1\r\n" ENDING,
										   "POST /v1/join HTTP/1.1\r\n"};
	for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
		plain_answer(c, requests[i], answer, sizeof answer);
		assert_true(strncmp(answer, "HTTP/1.1 400 Bad Request\r\n", 26) == 0 && strstr(answer, where));
	}
	plain_answer(c, "SSH-2.0-nobody\r\n", answer, sizeof answer); /* at most a TLS alert */
	assert_true(strlen(answer) < 64 && !strchr(answer, 'H'));
	assert_int_equal(raw_request(c, TLS1_3_VERSION, "GET / HTTP/1.1\r\n" ENDING), 200);
}

/* More silent connections than may be open: the oldest give way, and everybody is served
 * meanwhile. */
static void test_many_connections(void **state) {
	struct coordinator *c = *state;
	int fds[300];
	struct invite in;
	struct client k;
	coordinator_invite(c, &in);
	client_init(&k, c, 1, NULL);
	assert_int_equal(client_join(&k, c, &in, NULL), 200);
	for (int i = 0; i < 300; i++)
		fds[i] = tcp_connect(c);
	assert_int_equal(raw_request(c, TLS1_3_VERSION, "GET / HTTP/1.1\r\n" ENDING), 200);
	assert_int_equal(client_join(&k, c, NULL, NULL), 200);
	client_release(&k);
	for (int i = 0; i < 300; i++)
		(void)close(fds[i]);
	assert_int_equal(raw_request(c, TLS1_3_VERSION, "GET / HTTP/1.1\r\n" ENDING), 200);
}

/* The operator's requests with the run's key, and a ban that bites. */
static void test_ban(void **state) {
	struct coordinator *c = *state;
	struct client k;
	struct invite in;
	char out[1024];
	struct report rep = {.boot = 1,
						 .seq = 1,
						 .phase = WORKER_SYNCING,
						 .n_chunks = run_chunks("", 0),
						 .n_candidates = 1,
						 .candidates[0].addr = ":7000"};
	client_init(&k, c, 0, NULL);
	coordinator_invite(c, &in);
	assert_int_equal(client_join(&k, c, &in, NULL), 200);
	assert_int_equal(client_report(&k, &rep), 204);
	assert_int_equal(coordinator_command(out, sizeof out, (const char *const[]){"ban", "--dir", c->dir, "0", NULL}), 0);
	assert_string_equal(out, "member 0 is banned\n");
	rep.seq++;
	assert_int_equal(client_report(&k, &rep), 403);
	assert_int_equal(client_join(&k, c, NULL, NULL), 403);
	const struct answer *last = client_ask(&k, "/v1/document", NULL, 0);
	assert_int_equal(last->status, 403);
	assert_non_null(memmem(last->body, last->n, "operator to take the ban back (`unban`)", 39));
	assert_int_equal(
		coordinator_command(out, sizeof out, (const char *const[]){"unban", "--dir", c->dir, "nobody", NULL}), 1);
	assert_non_null(strstr(out, "nobody"));
	assert_int_equal(
		coordinator_command(out, sizeof out, (const char *const[]){"unban", "--dir", c->dir, "tester", NULL}), 0);
	assert_int_equal(client_report(&k, &rep), 204);
	client_release(&k);
}

/* What is a number is no name: volunteers choose these. */
static void test_a_member_cannot_be_named_like_another(void **state) {
	struct coordinator *c = *state;
	static const char *const numbers[] = {"1000", "4294967294"};
	char out[1024];
	for (uint32_t i = 0; i < 2; i++) {
		struct client k;
		struct invite in;
		client_init(&k, c, i, NULL);
		k.name = numbers[i];
		coordinator_invite(c, &in);
		assert_int_equal(client_join(&k, c, &in, NULL), 200);
		for (int ban = 1; ban >= 0; ban--) {
			const char *const argv[] = {ban ? "ban" : "unban", "--dir", c->dir, numbers[i], NULL};
			assert_int_equal(coordinator_command(out, sizeof out, argv), 1);
			assert_non_null(strstr(out, numbers[i]));
			assert_non_null(strstr(out, "there are members 0 to "));
		}
		assert_int_equal(client_ask(&k, "/v1/document", NULL, 0)->status, 200);
		client_release(&k);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_round_by_hand, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_long_poll, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_pages_for_people, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_joins_that_are_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_how_a_worker_is_reached, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_strangers_get_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_server_with_another_key_is_not_believed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_garbage, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_oversized_bodies, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_evidence_is_of_members_at_a_pace, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_without_a_certificate, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_head_is_get_without_the_body, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_certificates_by_what_is_offered, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_old_tls_and_plain_text, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many_connections, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ban, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_member_cannot_be_named_like_another, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
