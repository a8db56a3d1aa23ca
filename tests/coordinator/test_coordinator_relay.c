/* test_coordinator_relay.c: `rivulet-coordinator relay` as a process: bytes both ways in bounded
 * memory, ends that close, break and do not read, strangers; it dials nobody. */
#include "coordinator/store/run_keys.h"
#include "tests/coordinator/coordinator_process.h"
#include "tests/coordinator/relay_client.h"
#include "tests/coordinator/run_chunks.h"

#include "tests/common/check.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MB = 1000 * 1000, BLOCK = 1 << 14, GROWTH_KIB = 4096, BLOCKED_MS = 1000 };

struct world {
	struct relay_process p;
	struct relay_station a, b;
	int ends[2];
};

static void open_world(struct world *w, const char *const *args) {
	relay_process_start(&w->p, args);
	assert_true(relay_station_open(&w->a, &w->p, 0, NULL, &w->p.run));
	assert_true(relay_station_open(&w->b, &w->p, 1, NULL, &w->p.run));
	relay_link(&w->a, &w->b, &w->p, w->ends);
}

static void close_world(struct world *w) {
	relay_station_close(&w->a);
	relay_station_close(&w->b);
	for (int e = 0; e < 2; e++)
		if (w->ends[e] >= 0)
			(void)close(w->ends[e]);
	assert_int_equal(relay_process_stop(&w->p), 0);
}

#define NO_ARGS ((const char *const[]){NULL})

/* ---- what is sent: each byte follows from its place and a seed ---- */

static uint8_t byte_at(uint64_t i, uint8_t seed) {
	return (uint8_t)((i * UINT64_C(0x9e3779b97f4a7c15) >> 56) + seed);
}

static void fill(uint8_t *block, size_t n, uint64_t from, uint8_t seed) {
	for (size_t i = 0; i < n; i++)
		block[i] = byte_at(from + i, seed);
}

struct stream {
	int fd;
	uint64_t n, done; /* to be sent or read; what was */
	uint8_t seed;
	bool wrong;
};

static void *send_stream(void *stream) {
	struct stream *s = stream;
	uint8_t block[BLOCK];
	while (s->done < s->n) {
		size_t most = s->n - s->done < BLOCK ? (size_t)(s->n - s->done) : BLOCK;
		fill(block, most, s->done, s->seed);
		ssize_t n = send(s->fd, block, most, MSG_NOSIGNAL);
		if (n <= 0)
			return NULL;
		s->done += (uint64_t)n;
	}
	return NULL;
}

/* Reads n bytes, or to the end. */
static void *read_stream(void *stream) {
	struct stream *s = stream;
	uint8_t block[BLOCK], want[BLOCK];
	while (s->done < s->n && !s->wrong) {
		ssize_t n = recv(s->fd, block, s->n - s->done < BLOCK ? (size_t)(s->n - s->done) : BLOCK, 0);
		if (n <= 0)
			return NULL;
		fill(want, (size_t)n, s->done, s->seed);
		s->wrong = memcmp(block, want, (size_t)n) != 0;
		s->done += (uint64_t)n;
	}
	return NULL;
}

static void assert_closed(int fd) {
	uint8_t byte;
	assert_true(recv(fd, &byte, 1, 0) <= 0);
}

/* ---- tests ---- */

static void fifty_megabytes_each_way(void **state) {
	(void)state;
	struct world w;
	open_world(&w, NO_ARGS);
	long before = relay_process_kib(&w.p, "VmRSS");
	struct stream s[4] = {{.fd = w.ends[0], .n = 50 * MB, .seed = 1},
						  {.fd = w.ends[1], .n = 50 * MB, .seed = 1},
						  {.fd = w.ends[1], .n = 50 * MB, .seed = 2},
						  {.fd = w.ends[0], .n = 50 * MB, .seed = 2}};
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, i % 2 == 0 ? send_stream : read_stream, &s[i]), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < 4; i++)
		assert_true(s[i].done == s[i].n && !s[i].wrong);
	long most = relay_process_kib(&w.p, "VmHWM");
	print_message("RSS: %ld KiB before, at most %ld KiB\n", before, most);
	assert_true(most - before < GROWTH_KIB);
	int accepted;
	assert_int_equal(relay_process_dialed(&w.p, &accepted), 0);
	assert_int_equal(accepted, 5); /* the listener, two stations, two ends */
	close_world(&w);
}

/* A sends as long as anything is taken; B does not read until then. */
static void a_reader_that_does_not_read_stops_the_sender(void **state) {
	(void)state;
	struct world w;
	uint8_t block[BLOCK];
	uint64_t sent = 0;
	open_world(&w, NO_ARGS);
	long before = relay_process_kib(&w.p, "VmRSS");
	struct pollfd writable = {.fd = w.ends[0], .events = POLLOUT};
	while (sent < UINT64_C(200) * MB && poll(&writable, 1, BLOCKED_MS) > 0) {
		fill(block, sizeof block, sent, 3);
		ssize_t n = send(w.ends[0], block, sizeof block, MSG_DONTWAIT | MSG_NOSIGNAL);
		sent += n > 0 ? (uint64_t)n : 0;
	}
	long most = relay_process_kib(&w.p, "VmHWM");
	print_message("%llu bytes on the way, RSS: %ld KiB before, at most %ld KiB\n", (unsigned long long)sent, before,
				  most);
	assert_true(sent < UINT64_C(200) * MB && most - before < GROWTH_KIB);
	struct stream in = {.fd = w.ends[1], .n = sent, .seed = 3};
	(void)read_stream(&in);
	assert_true(in.done == sent && !in.wrong);
	close_world(&w);
}

static void a_half_closed_end_still_receives(void **state) {
	(void)state;
	struct world w;
	open_world(&w, NO_ARGS);
	struct stream out = {.fd = w.ends[0], .n = 1000, .seed = 1}, in = {.fd = w.ends[1], .n = 2000, .seed = 1};
	(void)send_stream(&out);
	assert_int_equal(shutdown(w.ends[0], SHUT_WR), 0);
	(void)read_stream(&in);
	assert_int_equal(in.done, 1000); /* then the end of the stream */
	struct stream back = {.fd = w.ends[1], .n = 3 * MB, .seed = 2},
				  received = {.fd = w.ends[0], .n = 4 * MB, .seed = 2};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, read_stream, &received), 0);
	(void)send_stream(&back);
	assert_int_equal(shutdown(w.ends[1], SHUT_WR), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(received.done, 3 * MB);
	close_world(&w);
}

static void an_end_that_breaks_off_ends_the_other(void **state) {
	(void)state;
	struct world w;
	const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
	open_world(&w, NO_ARGS);
	assert_int_equal(setsockopt(w.ends[0], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
	(void)close(w.ends[0]);
	w.ends[0] = -1;
	assert_closed(w.ends[1]);
	(void)close(w.ends[1]);
	relay_link(&w.b, &w.a, &w.p, w.ends); /* and a new call works */
	assert_int_equal(send(w.ends[0], "x", 1, 0), 1);
	char got;
	assert_int_equal(recv(w.ends[1], &got, 1, 0), 1);
	close_world(&w);
}

static void a_spent_budget_cuts_the_link(void **state) {
	(void)state;
	struct world w;
	open_world(&w, (const char *const[]){"--relay-bytes-per-day", "1MB", NULL});
	struct stream out = {.fd = w.ends[0], .n = 50 * MB, .seed = 1}, in = {.fd = w.ends[1], .n = 50 * MB, .seed = 1};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, send_stream, &out), 0);
	(void)read_stream(&in);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(in.done <= MB && !in.wrong);
	relay_station_call(&w.b, &w.p, &w.a, 1);
	struct relay_frame m;
	assert_true(relay_station_read(&w.b, &m));
	assert_int_equal(m.type, RELAY_REFUSED);
	assert_int_equal(m.refused.reason, RELAY_REFUSE_BUDGET);
	close_world(&w);
}

static void strangers_get_nothing(void **state) {
	(void)state;
	struct world w;
	struct relay_station other;
	enum { CONNECTIONS = 10000, KEPT = 500 };
	int kept[KEPT];
	const uint8_t wrong[NET_TOKEN_BYTES] = {1};
	open_world(&w, NO_ARGS);
	int fd = relay_data(w.p.port, RELAY_DATA, wrong);
	assert_closed(fd);
	(void)close(fd);
	fd = relay_connect(w.p.port);
	assert_int_equal(send(fd, "GET / HTTP/1.1\r\nHost: relay\r\n\r\n", 31, 0), 31);
	assert_closed(fd);
	(void)close(fd);
	assert_false(relay_station_open(&other, &w.p, 2, NULL, &other.id)); /* a ticket that it signed itself */
	relay_station_close(&other);
	long before = relay_process_kib(&w.p, "VmRSS");
	for (int i = 0; i < CONNECTIONS; i++) {
		if (i >= KEPT)
			(void)close(kept[i % KEPT]);
		kept[i % KEPT] = relay_connect(w.p.port);
	}
	long most = relay_process_kib(&w.p, "VmHWM");
	print_message("%d connections, RSS: %ld KiB before, at most %ld KiB\n", CONNECTIONS, before, most);
	assert_true(most - before < GROWTH_KIB);
	assert_int_equal(send(w.ends[0], "x", 1, 0), 1); /* the link is not disturbed */
	char got;
	assert_int_equal(recv(w.ends[1], &got, 1, 0), 1);
	for (int i = 0; i < KEPT; i++) { /* and all are closed, by their number or after their time */
		assert_closed(kept[i]);
		(void)close(kept[i]);
	}
	assert_true(relay_station_open(&other, &w.p, 2, NULL, &w.p.run));
	relay_station_close(&other);
	close_world(&w);
}

/* It filters system calls, beside what the machine of this test filters. */
static void it_is_in_its_sandbox(void **state) {
	(void)state;
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
	skip(); /* a sanitizer makes calls that a sandbox refuses */
#else
	struct world w;
	const struct relay_process self = {.pid = getpid()};
	const long filters = relay_process_kib(&self, "Seccomp_filters");
	if (filters < 0)
		skip(); /* Linux before 5.9, or without seccomp */
	open_world(&w, NO_ARGS);
	const bool lacks = w.p.lacks_filter;
	const long now = relay_process_kib(&w.p, "Seccomp_filters");
	close_world(&w);
	if (lacks)
		skip(); /* the relay says so */
	assert_int_equal(now, filters + 1);
#endif
}

/* ---- the relay of `serve` ---- */

enum { MEMBERS = 3 };

struct run {
	struct coordinator c;
	struct client clients[MEMBERS];
	struct join_reply joined[MEMBERS];
	struct relay_station stations[MEMBERS];
	struct relay_process relay; /* as the document names it */
};

static struct document document;

static void report(struct run *r, int i, uint8_t relay, uint8_t phase) {
	struct report rep = {.boot = 1,
						 .seq = 1,
						 .phase = phase,
						 .n_chunks = run_chunks("", 0),
						 .n_candidates = 1,
						 .candidates[0].addr = ":7000",
						 .relay = relay};
	assert_int_equal(client_report(&r->clients[i], &rep), 204);
}

/* Members 0 .. MEMBERS - 1 have joined; all but the last one are live, and have a station. */
static void open_run(struct run *r) {
	char path[96];
	memset(r, 0, sizeof *r);
	coordinator_make(&r->c, "rounds = 10\nmin-workers = 1\nsilence-ms = 3600000\n");
	(void)snprintf(path, sizeof path, "%s/run.key", r->c.dir);
	struct run_keys keys;
	assert_ok(run_keys_load(path, &keys, &et));
	r->relay.run = keys.serving;
	r->relay.cert = keys.cert;
	for (int i = 0; i < MEMBERS; i++) {
		struct invite in;
		coordinator_invite(&r->c, &in);
		client_init(&r->clients[i], &r->c, (uint32_t)i, NULL);
		assert_int_equal(client_join(&r->clients[i], &r->c, &in, &r->joined[i]), 200);
		if (i < MEMBERS - 1)
			report(r, i, (uint8_t)(i + 1), WORKER_SYNCING);
	}
	assert_int_equal(client_document(&r->clients[0], 0, &document), 200);
	assert_int_equal(document.n_relays, 1);
	struct address at;
	assert_ok(address_parse(document.relays[0].addr, &at, &et));
	assert_string_equal(at.host, "127.0.0.1");
	r->relay.port = at.port;
	memcpy(r->relay.run_id, r->c.run_id, NET_RUN_ID_BYTES);
	memcpy(r->relay.key, document.relays[0].key, NET_KEY_BYTES);
	assert_memory_equal(r->relay.key, r->c.serving, NET_KEY_BYTES);
	for (uint32_t i = 0; i < MEMBERS - 1; i++)
		assert_true(relay_station_open(&r->stations[i], &r->relay, i, &r->clients[i].id, &r->relay.run));
}

static void close_run(struct run *r) {
	for (int i = 0; i < MEMBERS; i++)
		client_release(&r->clients[i]);
	for (int i = 0; i < MEMBERS - 1; i++)
		relay_station_close(&r->stations[i]);
	coordinator_remove(&r->c);
}

/* Returns the status. */
static int ask_for_tickets(struct run *r, int who, uint64_t peers, struct pair_reply *out) {
	struct pair_request rq = {0};
	uint8_t bytes[8 + 1 + 4 * NET_MAX_ROW];
	for (uint32_t m = 0; m < 64; m++)
		if ((peers >> m & 1) != 0)
			rq.peers[rq.n++] = m;
	struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
	pair_request_encode(&rq, CONTROL_VERSION, &w);
	const struct answer *a = client_ask(&r->clients[who], "/v1/pair-tickets", bytes, rv_writer_len(&w));
	if (a->status == 200)
		assert_ok(pair_reply_decode(a->body, a->n, out, &et));
	return a->status;
}

static void two_members_meet_by_a_ticket_of_the_coordinator(void **state) {
	(void)state;
	struct run r;
	struct pair_reply reply;
	int ends[2];
	open_run(&r);
	assert_int_equal(ask_for_tickets(&r, 0, UINT64_MAX, &reply), 200);
	assert_int_equal(reply.n, 1); /* not for itself, nor for a member that never reported */
	assert_int_equal(reply.tickets[0].peer, 1);
	struct relay_frame call = {.type = RELAY_CALL,
							   .call = {.peer = 1, .way = WAY_FORWARD, .term = reply.term, .round = reply.round}};
	memcpy(call.call.ticket, reply.tickets[0].signature, NET_SIG_BYTES);
	relay_station_send(&r.stations[0], &call);
	relay_join(&r.stations[0], &r.stations[1], &r.relay, ends);
	assert_int_equal(send(ends[0], "x", 1, 0), 1);
	char got, out[512], text[32];
	assert_int_equal(recv(ends[1], &got, 1, 0), 1);
	const struct answer *a = client_ask(&r.clients[0], "/metrics", NULL, 0);
	const char *found = strstr((const char *)a->body, "rivulet_relay_links 1\n");
	assert_true(a->status == 200 && found != NULL);
	assert_non_null(strstr((const char *)a->body, "rivulet_relay_calls_refused_total{reason=\"budget\"} 0\n"));
	assert_non_null(strstr((const char *)a->body, "rivulet_relay_openings_total 0\n"));
	a = client_ask(&r.clients[0], "/v1/status", NULL, 0);
	assert_non_null(strstr((const char *)a->body, "\"relay\":{\"stations\":2,\"links\":1,"));
	(void)snprintf(text, sizeof text, "%d", 1);
	assert_int_equal(coordinator_command(out, sizeof out, (const char *const[]){"ban", "--dir", r.c.dir, text, NULL}),
					 0);
	assert_closed(ends[0]); /* by the ban */
	assert_false(relay_station_read(&r.stations[1], &call));
	assert_int_equal(ask_for_tickets(&r, 0, 2, &reply), 200);
	assert_int_equal(reply.n, 0);
	assert_int_equal(ask_for_tickets(&r, 1, 1, &reply), 403);
	(void)close(ends[0]);
	(void)close(ends[1]);
	close_run(&r);
}

static void documents_say_where_stations_are(void **state) {
	(void)state;
	struct run r;
	open_run(&r);
	assert_int_equal(document.n_members + document.n_syncing, 2);
	for (int i = 0; i < document.n_members; i++) /* member 1 reported a relay that is not listed */
		assert_int_equal(document.members[i].relay, document.members[i].member == 0);
	for (int i = 0; i < document.n_syncing; i++)
		assert_int_equal(document.syncing[i].relay, document.syncing[i].member == 0);
	uint64_t seq = document.seq;
	struct report rep = {.boot = 1,
						 .seq = 2,
						 .phase = WORKER_SYNCING,
						 .n_chunks = run_chunks("", 0),
						 .n_candidates = 1,
						 .candidates[0].addr = ":7000"};
	assert_int_equal(client_report(&r.clients[0], &rep), 204); /* it leaves its relay: a new document */
	assert_int_equal(client_document(&r.clients[0], seq, &document), 200);
	close_run(&r);
}

static void tickets_have_a_pace(void **state) {
	(void)state;
	struct run r;
	struct pair_reply reply;
	int status = 200, n = 0;
	open_run(&r);
	for (; status == 200 && n < 1000; n++)
		status = ask_for_tickets(&r, 0, 2, &reply);
	assert_int_equal(status, 429);
	assert_int_equal(ask_for_tickets(&r, 1, 1, &reply), 200); /* for that member alone */
	assert_int_equal(client_ask(&r.clients[1], "/v1/pair-tickets", "x", 1)->status, 400);
	close_run(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fifty_megabytes_each_way),
		cmocka_unit_test(a_reader_that_does_not_read_stops_the_sender),
		cmocka_unit_test(a_half_closed_end_still_receives),
		cmocka_unit_test(an_end_that_breaks_off_ends_the_other),
		cmocka_unit_test(a_spent_budget_cuts_the_link),
		cmocka_unit_test(strangers_get_nothing),
		cmocka_unit_test(it_is_in_its_sandbox),
		cmocka_unit_test(two_members_meet_by_a_ticket_of_the_coordinator),
		cmocka_unit_test(documents_say_where_stations_are),
		cmocka_unit_test(tickets_have_a_pace),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
