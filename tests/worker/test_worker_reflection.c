/* Two plain reflections from the port on which a worker listens: what the relay's ports saw, and
 * what comes of relays that answer otherwise (worker/join/reflection.h). The relay here is one in
 * this process. */
#include "worker/join/reflection.h"

#include "net/mesh/probe_answer.h"
#include "tests/common/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TURNS = 20000, TURN_MS = 1, MAIN = 0, SECOND = 1 };

struct relay {
	int listener[REFLECTION_PORTS], line[REFLECTION_PORTS];
	uint16_t port[REFLECTION_PORTS], seen[REFLECTION_PORTS]; /* seen: the port from which it was dialed */
	bool hangs_up, other_nonce, garbage, no_second;
};

static struct relay relay;
static struct probe_answer *answer; /* what listens at the worker */
static struct reflection reflection;

static int listen_somewhere(uint16_t *port) {
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof sa;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, n), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &n), 0);
	*port = ntohs(sa.sin_port);
	return fd;
}

static int set_up(void **state) {
	(void)state;
	const uint8_t seed[IDENTITY_SEED_BYTES] = {1};
	struct identity id;
	identity_of_seed(seed, &id);
	const struct probe_answer_config cfg = {.identity = &id, .listen = "127.0.0.1:0"};
	assert_ok(probe_answer_new(&cfg, &answer, &et));
	relay = (struct relay){.line = {-1, -1}};
	for (int i = 0; i < REFLECTION_PORTS; i++)
		relay.listener[i] = listen_somewhere(&relay.port[i]);
	return 0;
}

static int tear_down(void **state) {
	(void)state;
	reflection_close(&reflection);
	probe_answer_free(answer);
	for (int i = 0; i < REFLECTION_PORTS; i++) {
		close(relay.listener[i]);
		if (relay.line[i] >= 0)
			close(relay.line[i]);
	}
	return 0;
}

static void reply(int i, const uint8_t preamble[RELAY_PREAMBLE_BYTES]) {
	uint8_t bytes[NET_MAX_RELAY_FRAME_BYTES];
	struct relay_preamble shown;
	struct relay_frame m = {.type = RELAY_SEEN, .seen.at = {.host = "11.0.0.9", .port = relay.seen[i]}};
	assert_ok(relay_preamble_decode(preamble, &shown, &et));
	assert_int_equal(shown.kind, RELAY_REFLECT);
	memcpy(m.seen.nonce, shown.token, sizeof m.seen.nonce);
	m.seen.nonce[0] ^= relay.other_nonce;
	m.seen.second_port = relay.no_second ? 0 : relay.port[SECOND];
	size_t n = relay_frame_encode(&m, bytes);
	bytes[0] ^= relay.garbage ? 0x80 : 0;
	assert_int_equal(send(relay.line[i], bytes, 5, MSG_NOSIGNAL), 5); /* a frame may come in parts */
	assert_int_equal(send(relay.line[i], bytes + 5, n - 5, MSG_NOSIGNAL), n - 5);
}

static void relay_turn(void) {
	for (int i = 0; i < REFLECTION_PORTS; i++) {
		struct sockaddr_in from;
		socklen_t n = sizeof from;
		uint8_t preamble[RELAY_PREAMBLE_BYTES];
		int fd = accept4(relay.listener[i], (struct sockaddr *)&from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			relay.line[i] = fd;
			relay.seen[i] = ntohs(from.sin_port);
			if (relay.hangs_up)
				shutdown(fd, SHUT_RDWR);
		}
		if (relay.line[i] >= 0 && !relay.hangs_up &&
			recv(relay.line[i], preamble, sizeof preamble, 0) == sizeof preamble)
			reply(i, preamble);
	}
}

/* Runs both until the reflections have ended. */
static void reflect(void) {
	const struct address at = {.host = "127.0.0.1", .port = relay.port[MAIN]};
	reflection_open(&reflection, probe_answer_port(answer), &at);
	for (int i = 0; i < TURNS && !reflection_ended(&reflection); i++) {
		struct pollfd fds[REFLECTION_PORTS];
		int n = reflection_pollfds(&reflection, fds);
		(void)poll(fds, (nfds_t)n, TURN_MS);
		reflection_handle(&reflection, fds, n);
		relay_turn();
	}
	assert_true(reflection_ended(&reflection));
}

static void both_ports_see_the_port_on_which_the_worker_listens(void **state) {
	(void)state;
	reflect();
	for (int i = 0; i < REFLECTION_PORTS; i++) {
		assert_string_equal(reflection.lines[i].seen.host, "11.0.0.9");
		assert_int_equal(reflection.lines[i].seen.port, probe_answer_port(answer));
	}
}

static void they_stay_open_until_they_are_closed(void **state) {
	(void)state;
	uint8_t byte;
	reflect();
	for (int i = 0; i < REFLECTION_PORTS; i++)
		assert_int_equal(recv(relay.line[i], &byte, 1, 0), -1);
	reflection_close(&reflection);
	struct pollfd closed = {.fd = relay.line[MAIN], .events = POLLIN};
	assert_int_equal(poll(&closed, 1, 10000), 1);
	assert_int_equal(recv(relay.line[MAIN], &byte, 1, 0), 0);
	reflection_close(&reflection); /* harmless */
}

static void nothing_is_learnt_from(void) {
	reflect();
	for (int i = 0; i < REFLECTION_PORTS; i++)
		assert_string_equal(reflection.lines[i].seen.host, "");
	assert_int_equal(relay.line[SECOND], -1);
}

static void a_relay_that_hangs_up_teaches_nothing(void **state) {
	(void)state;
	relay.hangs_up = true;
	nothing_is_learnt_from();
}

static void an_answer_to_another_question_teaches_nothing(void **state) {
	(void)state;
	relay.other_nonce = true;
	nothing_is_learnt_from();
}

static void garbage_teaches_nothing(void **state) {
	(void)state;
	relay.garbage = true;
	nothing_is_learnt_from();
}

static void nobody_there_teaches_nothing(void **state) {
	(void)state;
	close(relay.listener[MAIN]);
	relay.listener[MAIN] = dup(relay.listener[SECOND]);
	const struct address at = {.host = "127.0.0.1", .port = relay.port[MAIN]};
	reflection_open(&reflection, probe_answer_port(answer), &at);
	for (int i = 0; i < TURNS && !reflection_ended(&reflection); i++) {
		struct pollfd fds[REFLECTION_PORTS];
		int n = reflection_pollfds(&reflection, fds);
		(void)poll(fds, (nfds_t)n, TURN_MS);
		reflection_handle(&reflection, fds, n);
	}
	assert_true(reflection_ended(&reflection));
	assert_string_equal(reflection.lines[MAIN].seen.host, "");
}

static void a_relay_without_a_second_port_shows_one_address(void **state) {
	(void)state;
	relay.no_second = true;
	reflect();
	assert_string_equal(reflection.lines[MAIN].seen.host, "11.0.0.9");
	assert_string_equal(reflection.lines[SECOND].seen.host, "");
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(both_ports_see_the_port_on_which_the_worker_listens),
		T(they_stay_open_until_they_are_closed),
		T(a_relay_that_hangs_up_teaches_nothing),
		T(an_answer_to_another_question_teaches_nothing),
		T(garbage_teaches_nothing),
		T(nobody_there_teaches_nothing),
		T(a_relay_without_a_second_port_shows_one_address),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
