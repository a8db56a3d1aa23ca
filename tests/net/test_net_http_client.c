/* The HTTPS client: replies, the pinned key, our certificate, limits, timeouts, and the wait of the
 * event loop. */
#include "net/http_client.h"
#include "web_server.h"

#include "base/clock.h"
#include "mesh_world.h"
#include "tests/common/check.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 90000 }; /* only a hang takes so long */

static const uint8_t run_id[NET_RUN_ID_BYTES] = {5};

struct outcome {
	int calls;
	enum rv_err err;
	int status;
	size_t body_bytes;
	uint8_t body[1 << 16];
	char text[RV_ERRTEXT_BYTES];
	struct http_client *again; /* start one more from the callback */
};

struct scene {
	struct identity worker, run;
	struct web_server server;
	struct http_client *c;
	struct outcome out;
};

static uint8_t blob[1 << 15];

/* /echo: the body back; /who: the client's key; /big: 32 KiB; /hang: nothing; /teapot: 418. */
static void handle(void *ctx, const struct web_request *rq, struct web_reply *reply) {
	(void)ctx;
	if (strcmp(rq->path, "/echo") == 0) {
		reply->body = rq->body;
		reply->body_bytes = rq->body_bytes;
		reply->status = strcmp(rq->method, "POST") == 0 ? 200 : 405;
	} else if (strcmp(rq->path, "/who") == 0) {
		reply->body = rq->client_key;
		reply->body_bytes = rq->has_client_key ? NET_KEY_BYTES : 0;
	} else if (strcmp(rq->path, "/big") == 0 || strcmp(rq->path, "/endless") == 0) {
		reply->body = blob;
		reply->body_bytes = sizeof blob;
		reply->no_length = strcmp(rq->path, "/endless") == 0;
	} else if (strcmp(rq->path, "/hang") == 0) {
		reply->hang = true;
	} else if (strcmp(rq->path, "/cut") == 0) {
		reply->body = blob;
		reply->body_bytes = sizeof blob;
		reply->cut_after = 100;
	} else if (strcmp(rq->path, "/away") == 0) {
		reply->status = 302;
		reply->headers = "Location: /echo\r\n";
	} else {
		reply->status = 418;
	}
}

static void client_new(struct scene *s, const uint8_t key[NET_KEY_BYTES], uint16_t port) {
	struct http_client_config cfg = {
		.server = {.host = "127.0.0.1", .port = port}, .identity = &s->worker, .connect_timeout_ms = PATIENCE_MS};
	cfg.trust = run_trust_of(run_id, key);
	assert_ok(http_client_new(&cfg, &s->c, &et));
}

static void scene_init(struct scene *s) {
	static const uint8_t seeds[2][IDENTITY_SEED_BYTES] = {{1}, {2}};
	*s = (struct scene){0};
	identity_of_seed(seeds[0], &s->worker);
	identity_of_seed(seeds[1], &s->run);
	web_start(&s->server, &s->run, handle, s);
	client_new(s, s->run.key, s->server.port);
}

static void scene_release(struct scene *s) {
	http_client_free(s->c);
	web_stop(&s->server);
}

static void done(void *ctx, const struct http_reply *reply);

static uint32_t start(struct http_client *c, const char *path, const char *body, size_t max, int64_t timeout_ms,
					  struct outcome *out) {
	uint32_t id = 0;
	struct http_request rq = {.path = path,
							  .body = body,
							  .body_bytes = body != NULL ? strlen(body) : 0,
							  .max_reply_bytes = max,
							  .timeout_ms = timeout_ms,
							  .done = done,
							  .ctx = out};
	assert_ok(http_client_start(c, &rq, &id, &et));
	assert_int_not_equal(id, 0);
	return id;
}

static void done(void *ctx, const struct http_reply *reply) {
	struct outcome *o = ctx;
	o->calls++;
	o->err = reply->err;
	o->status = reply->status;
	o->body_bytes = reply->body_bytes;
	assert_true(reply->body_bytes < sizeof o->body);
	memcpy(o->body, reply->body, reply->body_bytes + 1);
	assert_int_equal(o->body[reply->body_bytes], 0);
	snprintf(o->text, sizeof o->text, "%s", reply->text);
	if (o->again != NULL) {
		struct http_client *c = o->again;
		o->again = NULL;
		start(c, "/who", NULL, 100, 0, o);
	}
}

static void until_calls(struct scene *s, int calls) {
	for (int i = 0; i < 2000 && s->out.calls < calls; i++)
		assert_int_equal(http_client_poll(s->c, NULL, 0, 50000, NULL), RV_OK);
	assert_int_equal(s->out.calls, calls);
}

static void fetch(struct scene *s, const char *path, const char *body, size_t max) {
	int calls = s->out.calls;
	start(s->c, path, body, max, PATIENCE_MS, &s->out);
	until_calls(s, calls + 1);
}

/* ---- tests ---- */

static void posts_and_gets(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	fetch(&s, "/echo", "hello, coordinator", 100);
	assert_int_equal(s.out.err, RV_OK);
	assert_int_equal(s.out.status, 200);
	assert_string_equal((char *)s.out.body, "hello, coordinator");
	fetch(&s, "/echo", "", 100);
	assert_int_equal(s.out.status, 200);
	assert_int_equal(s.out.body_bytes, 0);
	fetch(&s, "/big", NULL, sizeof blob);
	assert_int_equal(s.out.body_bytes, sizeof blob);
	assert_memory_equal(s.out.body, blob, sizeof blob);
	fetch(&s, "/nothing", NULL, 100);
	assert_int_equal(s.out.err, RV_OK);
	assert_int_equal(s.out.status, 418);
	fetch(&s, "/away", NULL, 100);
	assert_int_equal(s.out.status, 302); /* not followed */
	assert_int_equal(s.server.n_connections, 1);
	scene_release(&s);
}

static void shows_our_key(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	fetch(&s, "/who", NULL, 100);
	assert_int_equal(s.out.body_bytes, NET_KEY_BYTES);
	assert_memory_equal(s.out.body, s.worker.key, NET_KEY_BYTES);
	scene_release(&s);
}

static void wrong_pin_fails(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	http_client_free(s.c);
	client_new(&s, s.worker.key, s.server.port);
	fetch(&s, "/echo", "secret", 100);
	assert_int_equal(s.out.err, RV_E_AUTH);
	assert_int_equal(s.out.status, 0);
	assert_non_null(strstr(s.out.text, "coordinator 127.0.0.1:"));
	assert_non_null(strstr(s.out.text, "has another key than the invite link says"));
	scene_release(&s);
}

static void long_replies_are_refused(void **state) {
	(void)state;
	static const char *const paths[] = {"/big", "/endless"};
	struct scene s;
	scene_init(&s);
	for (int i = 0; i < 2; i++) {
		fetch(&s, paths[i], NULL, sizeof blob - 1);
		assert_int_equal(s.out.err, RV_E_RANGE);
		assert_non_null(strstr(s.out.text, "longer than 32767 bytes"));
	}
	fetch(&s, "/endless", NULL, sizeof blob);
	assert_int_equal(s.out.err, RV_OK);
	scene_release(&s);
}

static void cut_reply_is_no_reply(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	fetch(&s, "/cut", NULL, sizeof blob);
	assert_int_equal(s.out.err, RV_E_CLOSED);
	assert_int_equal(s.out.body_bytes, 0);
	scene_release(&s);
}

/* Returns a socket with a port of its own on which nobody listens, nor will. */
static int unused_port(uint16_t *port) {
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&at, n), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	*port = ntohs(at.sin_port);
	return fd;
}

static void nobody_there(void **state) {
	(void)state;
	struct scene s;
	uint16_t port;
	scene_init(&s);
	web_stop(&s.server);
	http_client_free(s.c);
	int fd = unused_port(&port);
	client_new(&s, s.run.key, port);
	fetch(&s, "/echo", "x", 100);
	assert_int_equal(s.out.err, RV_E_CLOSED);
	char words[64];
	snprintf(words, sizeof words, "coordinator 127.0.0.1:%u refused the connection", port);
	assert_non_null(strstr(s.out.text, words));
	http_client_free(s.c);
	close(fd);
}

static void plain_http_server(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	web_stop(&s.server);
	http_client_free(s.c);
	web_start(&s.server, NULL, handle, &s);
	client_new(&s, s.run.key, s.server.port);
	start(s.c, "/echo", "x", 100, 300, &s.out);
	until_calls(&s, 1);
	assert_true(s.out.err == RV_E_PROTOCOL || s.out.err == RV_E_TIMEOUT);
	scene_release(&s);
}

static void silence_times_out_and_cancel_is_silent(void **state) {
	(void)state;
	struct scene s;
	struct outcome *other = calloc(1, sizeof *other);
	assert_non_null(other);
	scene_init(&s);
	uint32_t id = start(s.c, "/hang", NULL, 100, 0, other);
	start(s.c, "/hang", NULL, 100, 200, &s.out);
	until_calls(&s, 1);
	assert_int_equal(s.out.err, RV_E_TIMEOUT);
	assert_non_null(strstr(s.out.text, "does not answer"));
	http_client_cancel(s.c, id);
	http_client_cancel(s.c, id);
	http_client_cancel(s.c, 0);
	fetch(&s, "/who", NULL, 100);
	assert_int_equal(other->calls, 0);
	scene_release(&s);
	free(other);
}

/* How long the kernel lets what was sent go unacknowledged, of our one connection to that port; -1:
 * there is none yet. */
static int user_timeout_now_ms(uint16_t port) {
	for (int fd = 3; fd < 1024; fd++) {
		struct sockaddr_in peer;
		socklen_t n = sizeof peer, size = sizeof(int);
		int ms = 0;
		if (getpeername(fd, (struct sockaddr *)&peer, &n) == 0 && peer.sin_family == AF_INET &&
			peer.sin_port == htons(port) && getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, &size) == 0)
			return ms;
	}
	return -1;
}

/* The same, of the connection of the request that waits. */
static int user_timeout_ms(struct scene *s) {
	int ms = -1;
	for (int i = 0; i < 2000 && ms < 0; i++) {
		assert_ok(http_client_poll(s->c, NULL, 0, 50000, &et));
		ms = user_timeout_now_ms(s->server.port);
	}
	return ms;
}

/* A request that waits sends nothing but keepalive probes: Linux's usual nine of them are more than
 * half a minute. */
static void a_host_that_vanished_is_noticed_while_a_request_waits(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	start(s.c, "/hang", NULL, 100, 0, &s.out);
	assert_in_range(user_timeout_ms(&s), 1, 15000);
	scene_release(&s);
}

static void what_stays_unacknowledged_is_borne_for_as_long_as_was_set(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	http_client_set_unacknowledged(s.c, 2500);
	start(s.c, "/hang", NULL, 100, 0, &s.out);
	assert_int_equal(user_timeout_ms(&s), 2500);
	scene_release(&s);
}

/* A held request does not keep others waiting; the table of requests is bounded; callbacks may
 * start requests. */
static void many_at_once(void **state) {
	(void)state;
	struct scene s;
	struct outcome *held = calloc(1, sizeof *held);
	struct rv_errtext et = {0};
	assert_non_null(held);
	scene_init(&s);
	for (int i = 0; i < HTTP_MAX_REQUESTS - 1; i++)
		start(s.c, "/hang", NULL, 100, 0, held);
	s.out.again = s.c;
	start(s.c, "/echo", "x", 100, 0, &s.out);
	struct http_request rq = {.path = "/echo", .done = done, .ctx = held};
	assert_int_equal(http_client_start(s.c, &rq, NULL, &et), RV_E_FULL);
	until_calls(&s, 2);
	assert_memory_equal(s.out.body, s.worker.key, NET_KEY_BYTES);
	rq.path = "no-slash";
	assert_int_equal(http_client_start(s.c, &rq, NULL, &et), RV_E_INVALID);
	scene_release(&s);
	assert_int_equal(held->calls, 0);
	free(held);
}

static void environment_plays_no_part(void **state) {
	(void)state;
	struct scene s;
	setenv("https_proxy", "http://127.0.0.1:1", 1);
	setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
	setenv("SSL_CERT_FILE", "/nonexistent", 1);
	scene_init(&s);
	fetch(&s, "/who", NULL, 100);
	assert_int_equal(s.out.err, RV_OK);
	scene_release(&s);
	unsetenv("https_proxy");
	unsetenv("ALL_PROXY");
	unsetenv("SSL_CERT_FILE");
}

static void *wake(void *client) {
	http_client_wakeup(client);
	return NULL;
}

/* The wait ends for a readable fd, for a hang-up, and for a wakeup from another thread: never by
 * its timeout here. */
static void waits_for_files_and_wakeups(void **state) {
	(void)state;
	struct scene s;
	int ends[2];
	pthread_t thread;
	scene_init(&s);
	assert_int_equal(pipe(ends), 0);
	struct pollfd fds[2] = {{.fd = ends[0], .events = POLLIN}, {.fd = ends[1], .events = POLLOUT}};
	assert_int_equal(http_client_poll(s.c, fds, 2, 60000000, NULL), RV_OK);
	assert_int_equal(fds[0].revents, 0);
	assert_int_equal(fds[1].revents, POLLOUT);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(http_client_poll(s.c, fds, 1, 60000000, NULL), RV_OK);
	assert_int_equal(fds[0].revents, POLLIN);
	char byte;
	assert_int_equal(read(ends[0], &byte, 1), 1);
	int64_t before = rv_clock_monotonic_us();
	assert_int_equal(pthread_create(&thread, NULL, wake, s.c), 0);
	assert_int_equal(http_client_poll(s.c, fds, 1, 60000000, NULL), RV_OK);
	pthread_join(thread, NULL);
	assert_true(rv_clock_monotonic_us() - before < 50 * 1000000LL);
	close(ends[1]);
	assert_int_equal(http_client_poll(s.c, fds, 1, 60000000, NULL), RV_OK);
	assert_true((fds[0].revents & POLLHUP) != 0);
	close(ends[0]);
	scene_release(&s);
}

static void leaves_nothing_open(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s); /* the first use of a library may keep a file open */
	fetch(&s, "/who", NULL, 100);
	scene_release(&s);
	int fds = count_fds();
	scene_init(&s);
	fetch(&s, "/who", NULL, 100);
	start(s.c, "/hang", NULL, 100, 0, &s.out);
	http_client_poll(s.c, NULL, 0, 0, NULL);
	scene_release(&s);
	assert_int_equal(count_fds(), fds);
}

int main(void) {
	for (size_t i = 0; i < sizeof blob; i++)
		blob[i] = (uint8_t)(i * 37 + (i >> 7));
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(posts_and_gets),
		cmocka_unit_test(shows_our_key),
		cmocka_unit_test(wrong_pin_fails),
		cmocka_unit_test(long_replies_are_refused),
		cmocka_unit_test(cut_reply_is_no_reply),
		cmocka_unit_test(nobody_there),
		cmocka_unit_test(plain_http_server),
		cmocka_unit_test(silence_times_out_and_cancel_is_silent),
		cmocka_unit_test(a_host_that_vanished_is_noticed_while_a_request_waits),
		cmocka_unit_test(what_stays_unacknowledged_is_borne_for_as_long_as_was_set),
		cmocka_unit_test(many_at_once),
		cmocka_unit_test(environment_plays_no_part),
		cmocka_unit_test(waits_for_files_and_wakeups),
		cmocka_unit_test(leaves_nothing_open),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
