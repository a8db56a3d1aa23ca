/* test_coordinator_relay_ports.c: the two ports of a relay as a process: reflections that stay
 * open, proofs and openings; and the ports that `serve` keeps across restarts. */
#include "net/relay/relay_core.h"
#include "tests/coordinator/coordinator_process.h"
#include "tests/coordinator/relay_client.h"

#include "tests/common/check.h"
#include "tests/common/scratch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MEMBERS = 2, DAY_S = 86400 };

#define NO_ARGS ((const char *const[]){NULL})

/* ---- reflections, proofs, openings ---- */

struct world {
	struct relay_process p;
	struct relay_station s[MEMBERS];
	int seen[MEMBERS][RELAY_PORTS]; /* reflections */
	uint16_t from[MEMBERS];         /* their local ports */
};

static void open_world(struct world *w, const char *const *args) {
	memset(w, 0, sizeof *w);
	relay_process_start(&w->p, args);
	for (uint32_t i = 0; i < MEMBERS; i++) {
		assert_true(relay_station_open(&w->s[i], &w->p, i, NULL, &w->p.run));
		assert_int_equal(w->s[i].second_port, w->p.second_port);
	}
}

static void close_world(struct world *w) {
	for (int i = 0; i < MEMBERS; i++) {
		relay_station_close(&w->s[i]);
		for (int port = 0; port < RELAY_PORTS; port++)
			if (w->seen[i][port] > 0)
				(void)close(w->seen[i][port]);
	}
	assert_int_equal(relay_process_stop(&w->p), 0);
}

/* All that was sent to the relay before is done after it. */
static void ping(struct relay_station *s) {
	struct relay_frame m = {.type = RELAY_PING, .number = 1};
	relay_station_send(s, &m);
	assert_true(relay_station_read(s, &m));
	assert_int_equal(m.type, RELAY_PONG);
}

static void assert_open(int fd) {
	uint8_t byte;
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
}

static void assert_closed(int fd) {
	uint8_t byte;
	assert_true(recv(fd, &byte, 1, 0) <= 0);
}

static void assert_proof(const struct world *w, int i, const struct relay_frame *m) {
	char at[NET_ADDR_BYTES], text[NET_ADDR_BYTES];
	assert_int_equal(m->type, RELAY_PROOF);
	assert_true(address_format(&m->proof.at, at));
	(void)snprintf(text, sizeof text, "127.0.0.1:%d", w->from[i]);
	assert_string_equal(at, text);
	assert_true(llabs((long long)m->proof.unix_s - (long long)time(NULL)) < DAY_S);
	assert_true(seen_verify(w->p.key, w->p.run_id, w->s[i].id.key, at, m->proof.unix_s, m->proof.signature));
}

static void reflect(struct world *w, int i) {
	struct relay_frame m;
	w->seen[i][RELAY_MAIN_PORT] = relay_reflect(w->p.port, &w->from[i], w->s[i].token, &m);
	assert_int_equal(m.seen.second_port, w->p.second_port);
	assert_true(relay_station_read(&w->s[i], &m));
	assert_proof(w, i, &m);
	w->seen[i][RELAY_SECOND_PORT] = relay_reflect(w->p.second_port, &w->from[i], w->s[i].token, &m);
}

static void call_until_unmapped(struct world *w) {
	struct relay_frame m = {.type = RELAY_OPEN};
	for (int i = 0; i < 100 && (m.type != RELAY_REFUSED || m.refused.reason != RELAY_REFUSE_UNMAPPED); i++) {
		relay_station_call_way(&w->s[0], &w->p, &w->s[1], WAY_OPEN_V4, 1);
		assert_true(relay_station_read(&w->s[0], &m));
	}
	assert_int_equal(m.type, RELAY_REFUSED);
	assert_int_equal(m.refused.reason, RELAY_REFUSE_UNMAPPED);
	assert_int_equal(m.refused.whose, RELAY_CALLED);
}

static void both_ends_learn_where_the_other_is_seen(void **state) {
	(void)state;
	struct world w;
	struct relay_frame m[MEMBERS];
	open_world(&w, NO_ARGS);
	for (int i = 0; i < MEMBERS; i++)
		reflect(&w, i);
	ping(&w.s[0]);
	for (int i = 0; i < MEMBERS; i++)
		for (int port = 0; port < RELAY_PORTS; port++)
			assert_open(w.seen[i][port]);
	relay_station_call_way(&w.s[0], &w.p, &w.s[1], WAY_OPEN_V4, 1);
	for (int i = 0; i < MEMBERS; i++) {
		assert_true(relay_station_read(&w.s[i], &m[i]));
		assert_int_equal(m[i].type, RELAY_OPEN);
		assert_int_equal(m[i].open.peer, !i);
		assert_string_equal(m[i].open.at.host, "127.0.0.1");
		assert_int_equal(m[i].open.at.port, w.from[!i]);
		assert_in_range(m[i].open.delay_us, 20000, NET_RELAY_OPEN_DELAY_MS * 1000);
	}
	(void)close(w.seen[1][RELAY_MAIN_PORT]); /* and no longer */
	w.seen[1][RELAY_MAIN_PORT] = -1;
	call_until_unmapped(&w);
	int accepted;
	assert_int_equal(relay_process_dialed(&w.p, &accepted), 0);
	close_world(&w);
}

static void a_reflection_ends_with_its_station(void **state) {
	(void)state;
	struct world w;
	open_world(&w, NO_ARGS);
	reflect(&w, 0);
	relay_station_send(&w.s[0], &(struct relay_frame){.type = RELAY_LEAVE});
	for (int port = 0; port < RELAY_PORTS; port++)
		assert_closed(w.seen[0][port]);
	close_world(&w);
}

static void a_byte_on_a_reflection_closes_it(void **state) {
	(void)state;
	struct world w;
	open_world(&w, NO_ARGS);
	reflect(&w, 0);
	assert_int_equal(send(w.seen[0][RELAY_MAIN_PORT], "x", 1, MSG_NOSIGNAL), 1);
	assert_closed(w.seen[0][RELAY_MAIN_PORT]);
	ping(&w.s[0]);
	assert_open(w.seen[0][RELAY_SECOND_PORT]);
	close_world(&w);
}

/* A worker that is no member yet asks both ports: any bytes do for a token. */
static void anybody_is_answered_and_closed(void **state) {
	(void)state;
	struct world w;
	const uint8_t nonce[NET_TOKEN_BYTES] = {9, 8, 7};
	struct relay_frame m;
	uint16_t from = 0;
	open_world(&w, NO_ARGS);
	int main = relay_reflect(w.p.port, &from, nonce, &m);
	assert_int_equal(m.seen.second_port, w.p.second_port);
	assert_closed(main);
	int second = relay_reflect(w.p.second_port, &(uint16_t){0}, nonce, &m);
	assert_closed(second);
	(void)close(main);
	(void)close(second);
	close_world(&w);
}

static void the_second_port_takes_nothing_else(void **state) {
	(void)state;
	struct world w;
	const uint8_t token[NET_TOKEN_BYTES] = {1};
	const uint8_t tls[RELAY_PREAMBLE_BYTES] = {0x16, 3, 1};
	open_world(&w, NO_ARGS);
	int fds[] = {relay_data(w.p.second_port, RELAY_DATA, token), relay_connect(w.p.second_port)};
	assert_int_equal(send(fds[1], tls, sizeof tls, MSG_NOSIGNAL), sizeof tls);
	for (int i = 0; i < 2; i++) {
		assert_closed(fds[i]);
		(void)close(fds[i]);
	}
	close_world(&w);
}

static void a_relay_works_without_a_second_port(void **state) {
	(void)state;
	struct world w;
	struct relay_frame m;
	open_world(&w, (const char *const[]){"--second-port", "none", NULL});
	assert_int_equal(w.p.second_port, 0);
	for (int i = 0; i < MEMBERS; i++) {
		w.seen[i][RELAY_MAIN_PORT] = relay_reflect(w.p.port, &w.from[i], w.s[i].token, &m);
		assert_int_equal(m.seen.second_port, 0);
		assert_true(relay_station_read(&w.s[i], &m));
		assert_int_equal(m.type, RELAY_PROOF);
	}
	relay_station_call_way(&w.s[1], &w.p, &w.s[0], WAY_OPEN_V4, 1);
	assert_true(relay_station_read(&w.s[0], &m));
	assert_int_equal(m.type, RELAY_OPEN);
	close_world(&w);
}

/* ---- ports that are kept ---- */

/* Binds a port of 127.0.0.1, on which others may listen until listen(). */
static int hold_port(uint16_t *port) {
	const int yes = 1;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	*port = ntohs(at.sin_port);
	return fd;
}

static void a_second_port_that_is_asked_for_is_had_or_refused(void **state) {
	(void)state;
	char dir[64], state_dir[80], port[8], out[1024];
	uint16_t taken;
	struct relay_process p;
	scratch_make(dir, sizeof dir);
	(void)snprintf(state_dir, sizeof state_dir, "%s/relay", dir);
	int fd = hold_port(&taken);
	(void)snprintf(port, sizeof port, "%d", taken);
	relay_process_start(&p, (const char *const[]){"--second-port", port, NULL});
	assert_int_equal(p.second_port, taken);
	assert_int_equal(relay_process_stop(&p), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(coordinator_command(
						 out, sizeof out,
						 (const char *const[]){
							 "relay", "--run-key", "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
							 "--state", state_dir, "--listen", "127.0.0.1:0", "--second-port", port, NULL}),
					 1);
	assert_non_null(strstr(out, "is taken: choose another one, next, or none"));
	(void)close(fd);
	scratch_remove(dir);
}

struct ports {
	int main, second;
};

/* Returns the ports in the next `relays` event of the log. */
static struct ports logged_ports(struct coordinator *c, long *from) {
	json_t *e = e2e_wait_event(&c->e.coordinator, "relays", NULL, 0, from);
	struct address at;
	assert_ok(address_parse(json_string_value(json_object_get(e, "first")), &at, &et));
	struct ports p = {at.port, (int)json_integer_value(json_object_get(e, "second_port"))};
	json_decref(e);
	return p;
}

static struct ports kept_in_file(const struct coordinator *c) {
	char path[E2E_PATH + 16];
	struct ports p;
	(void)snprintf(path, sizeof path, "%s/relay-ports", c->dir);
	char *text = scratch_read(path, NULL);
	assert_int_equal(sscanf(text, "%d %d", &p.main, &p.second), 2);
	free(text);
	return p;
}

static void assert_same(struct ports a, struct ports b) {
	assert_int_equal(a.main, b.main);
	assert_int_equal(a.second, b.second);
}

static struct ports restarted(struct coordinator *c, long *from) {
	coordinator_start(c);
	struct ports now = logged_ports(c, from);
	assert_same(kept_in_file(c), now);
	(void)close(relay_connect((uint16_t)now.main));
	(void)close(relay_connect((uint16_t)now.second));
	return now;
}

static void serve_keeps_its_relays_ports(void **state) {
	(void)state;
	struct coordinator c;
	uint16_t held[2];
	char line[32];
	long from = 0;
	int fds[2] = {hold_port(&held[0]), hold_port(&held[1])}; /* which no other program is given */
	coordinator_make(&c, "rounds = 1\n");
	assert_same(kept_in_file(&c), logged_ports(&c, &from));
	assert_int_equal(coordinator_stop(&c), 0);
	(void)snprintf(line, sizeof line, "%d %d\n", held[0], held[1]);
	scratch_write(c.dir, "relay-ports", line, strlen(line));
	for (int i = 0; i < 2; i++) {
		assert_same(restarted(&c, &from), (struct ports){held[0], held[1]});
		assert_int_equal(coordinator_stop(&c), 0);
	}
	long warned_from = from;
	assert_null(e2e_find_event(c.e.coordinator.log, "relay_port", "taken", held[0], NULL));
	assert_int_equal(listen(fds[0], 1), 0); /* somebody else has it now */
	struct ports now = restarted(&c, &from);
	assert_true(now.main != held[0]);
	assert_int_equal(now.second, held[1]);
	json_t *e = e2e_wait_event(&c.e.coordinator, "relay_port", "taken", held[0], &warned_from);
	assert_int_equal(json_integer_value(json_object_get(e, "port")), now.main);
	json_decref(e);
	assert_int_equal(coordinator_stop(&c), 0);
	scratch_write(c.dir, "relay-ports", "99999 x\n", 8); /* what nobody wrote counts as nothing */
	(void)restarted(&c, &from);
	coordinator_remove(&c);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

static void serve_says_where_workers_meet(void **state) {
	(void)state;
	struct coordinator c;
	coordinator_make(&c, "rounds = 1\n");
	assert_int_equal(coordinator_stop(&c), 0);
	c.e.coordinator_option = "--no-relay";
	coordinator_start(&c);
	assert_int_equal(coordinator_stop(&c), 0);
	c.e.coordinator_option =
		"--relay-at=relay.example:7435=00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
	coordinator_start(&c);
	char *log = scratch_read(c.e.coordinator.log, NULL);
	assert_non_null(strstr(log, "workers that do not reach each other meet at the relay 127.0.0.1:"));
	assert_non_null(strstr(log, "no relay: two workers that do not reach each other do not meet; for one on another"));
	assert_non_null(strstr(log, ", and 1 more; second port "));
	free(log);
	coordinator_remove(&c);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_learn_where_the_other_is_seen),
		cmocka_unit_test(a_reflection_ends_with_its_station),
		cmocka_unit_test(a_byte_on_a_reflection_closes_it),
		cmocka_unit_test(anybody_is_answered_and_closed),
		cmocka_unit_test(the_second_port_takes_nothing_else),
		cmocka_unit_test(a_relay_works_without_a_second_port),
		cmocka_unit_test(a_second_port_that_is_asked_for_is_had_or_refused),
		cmocka_unit_test(serve_keeps_its_relays_ports),
		cmocka_unit_test(serve_says_where_workers_meet),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
