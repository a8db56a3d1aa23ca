/* A probe says what answers at an address, dials it once, and ends in time whatever is there
 * (net/mesh/probe.h); a worker without a mesh answers it (net/mesh/probe_answer.h). */
#include "net/mesh/probe.h"

#include "mesh_world.h"
#include "net/mesh/probe_answer.h"
#include "tests/common/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { S = 1000 * 1000, TURNS = 20000, TURN_MS = 1 };

/* The system's sockets, with a count of what is dialed; `no_way` waits for ever. */
struct net {
	struct pipe_ops ops;
	int dials, open_pipes;
	int silent[2]; /* the ends of a pipe that is never ready */
};
static struct net net;

static enum rv_err count_connect(void *ctx, const struct route *to, int receive_bytes, int *pipe,
								 struct rv_errtext *et) {
	net.dials++;
	if (strcmp(to->at.host, "127.0.0.9") == 0) {
		*pipe = dup(net.silent[0]);
		return RV_OK;
	}
	return socket_pipe.connect(ctx, to, receive_bytes, pipe, et);
}

struct scene {
	struct identity asker, other, member;
	struct prober *prober;
	struct probe_answer *answer;
	int64_t now_us;
	struct probes probes; /* one */
};

static struct identity identity_of(uint8_t n) {
	const uint8_t seed[IDENTITY_SEED_BYTES] = {n};
	struct identity id;
	identity_of_seed(seed, &id);
	return id;
}

static int set_up(void **state) {
	static struct scene s;
	s = (struct scene){.asker = identity_of(1), .other = identity_of(2), .member = identity_of(3), .now_us = 7};
	net = (struct net){.ops = socket_pipe};
	net.ops.connect = count_connect;
	assert_int_equal(pipe(net.silent), 0);
	const struct prober_config prober = {.identity = &s.member, .pipe = &net.ops};
	const struct probe_answer_config answer = {.identity = &s.asker, .listen = "127.0.0.1:0"};
	assert_int_equal(prober_new(&prober, &s.prober, NULL), RV_OK);
	assert_int_equal(probe_answer_new(&answer, &s.answer, NULL), RV_OK);
	memcpy(s.probes.list[0].key, s.asker.key, NET_KEY_BYTES);
	s.probes.n = 1;
	s.probes.list[0].id = 1;
	*state = &s;
	return 0;
}

static int tear_down(void **state) {
	struct scene *s = *state;
	prober_free(s->prober);
	probe_answer_free(s->answer);
	close(net.silent[0]);
	close(net.silent[1]);
	return 0;
}

static void add_address(struct scene *s, const char *host, uint16_t port) {
	(void)snprintf(s->probes.list[0].addrs[s->probes.list[0].n++].addr, NET_ADDR_BYTES, "%s:%u", host, port);
}

/* Waits for the sockets of both, a moment at a time; the clock stands still. */
static bool turn(struct scene *s) {
	struct pollfd fds[PROBE_MAX_FDS + PROBE_ANSWER_FDS];
	int n = prober_pollfds(s->prober, fds, PROBE_MAX_FDS);
	int n_answer = probe_answer_pollfds(s->answer, fds + n);
	assert_true(poll(fds, (nfds_t)(n + n_answer), TURN_MS) >= 0);
	probe_answer_handle(s->answer, s->now_us, fds + n, n_answer);
	return prober_handle(s->prober, s->now_us, fds, n);
}

/* Returns the result of the probe with the highest number. */
static const struct probed *newest(const struct scene *s) {
	const struct probed_list *all = prober_results(s->prober);
	const struct probed *r = &all->list[0];
	for (int i = 1; i < all->n; i++)
		r = all->list[i].id > r->id ? &all->list[i] : r;
	return r;
}

static const struct probed *finish(struct scene *s) {
	bool done = false;
	for (int i = 0; i < TURNS && !done; i++)
		done = turn(s);
	assert_true(done);
	const struct probed *r = newest(s);
	assert_int_equal(r->id, s->probes.list[0].id);
	assert_int_equal(r->n, s->probes.list[0].n);
	return r;
}

static uint16_t closed_port(void) {
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof sa;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, n), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &n), 0);
	close(fd);
	return ntohs(sa.sin_port);
}

static void a_program_with_the_expected_key_is_open_and_nothing_else(void **state) {
	struct scene *s = *state;
	struct probe_answer *impostor;
	const struct probe_answer_config cfg = {.identity = &s->other, .listen = "127.0.0.1:0"};
	assert_int_equal(probe_answer_new(&cfg, &impostor, NULL), RV_OK);
	add_address(s, "127.0.0.1", probe_answer_port(s->answer));
	add_address(s, "127.0.0.1", closed_port());
	add_address(s, "127.0.0.1", probe_answer_port(impostor));
	prober_take(s->prober, s->now_us, &s->probes, ADDRESS_LOOPBACK);
	for (int i = 0; i < TURNS; i++) {
		struct pollfd fds[PROBE_ANSWER_FDS];
		int n = probe_answer_pollfds(impostor, fds);
		(void)poll(fds, (nfds_t)n, 0);
		probe_answer_handle(impostor, s->now_us, fds, n);
		if (turn(s))
			break;
	}
	const struct probed *r = newest(s);
	assert_int_equal(r->n, 3);
	assert_int_equal(r->results[0], PROBE_OPEN);
	assert_int_equal(r->results[1], PROBE_REFUSED);
	assert_int_equal(r->results[2], PROBE_OTHER_KEY);
	probe_answer_free(impostor);
}

static void the_listener_of_a_mesh_answers_as_it_is(void **state) {
	struct scene *s = *state;
	static struct world w;
	world_init(&w, 1, NULL);
	memcpy(s->probes.list[0].key, w.nodes[0].id.key, NET_KEY_BYTES);
	add_address(s, "127.0.0.1", peers_port(w.nodes[0].peers));
	prober_take(s->prober, s->now_us, &s->probes, ADDRESS_LOOPBACK);
	bool done = false;
	for (int i = 0; i < TURNS && !done; i++) {
		world_step(&w);
		done = turn(s);
	}
	assert_true(done);
	assert_int_equal(newest(s)->results[0], PROBE_OPEN);
	for (int i = 0; i < 200; i++)
		world_step(&w);
	assert_int_equal(w.nodes[0].troubles, 0); /* and its log keeps silent about it */
	world_release(&w);
}

static void silence_ends_in_time_and_was_dialed_once(void **state) {
	struct scene *s = *state;
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof sa;
	int mute = socket(AF_INET, SOCK_STREAM, 0); /* accepts, and says nothing */
	assert_int_equal(bind(mute, (struct sockaddr *)&sa, n), 0);
	assert_int_equal(listen(mute, 1), 0);
	assert_int_equal(getsockname(mute, (struct sockaddr *)&sa, &n), 0);
	add_address(s, "127.0.0.9", 9);
	add_address(s, "127.0.0.1", ntohs(sa.sin_port));
	prober_take(s->prober, s->now_us, &s->probes, ADDRESS_LOOPBACK);
	assert_int_equal(prober_deadline_us(s->prober), s->now_us + PROBE_US);
	for (int i = 0; i < 200; i++)
		assert_false(turn(s));
	s->now_us += PROBE_US - 1;
	assert_false(turn(s));
	s->now_us++;
	assert_false(turn(s)); /* the other one, which has accepted, has longer */
	assert_int_equal(prober_deadline_us(s->prober), s->now_us - PROBE_US + PROBE_TLS_US);
	s->now_us += PROBE_TLS_US - PROBE_US;
	const struct probed *r = finish(s);
	assert_int_equal(r->results[0], PROBE_SILENT);
	assert_int_equal(r->results[1], PROBE_OTHER_KEY);
	assert_int_equal(net.dials, 2);
	assert_int_equal(prober_deadline_us(s->prober), INT64_MAX);
	close(mute);
}

static void a_repeated_probe_is_not_dialed_again(void **state) {
	struct scene *s = *state;
	add_address(s, "127.0.0.1", probe_answer_port(s->answer));
	prober_take(s->prober, s->now_us, &s->probes, ADDRESS_LOOPBACK);
	prober_take(s->prober, s->now_us, &s->probes, ADDRESS_LOOPBACK);
	assert_int_equal(finish(s)->results[0], PROBE_OPEN);
	for (int i = 0; i < 5; i++)
		prober_take(s->prober, s->now_us += PROBE_EVERY_US, &s->probes, ADDRESS_LOOPBACK);
	assert_int_equal(net.dials, 1);
}

/* Makes `n` probes of one address, from number `id` on. */
static void add_probes(struct scene *s, uint64_t id, int n) {
	s->probes = (struct probes){.n = (uint8_t)n};
	for (int i = 0; i < n; i++) {
		struct probe *p = &s->probes.list[i];
		*p = (struct probe){.id = id + (uint64_t)i, .n = 1};
		memcpy(p->key, s->asker.key, NET_KEY_BYTES);
		(void)snprintf(p->addrs[0].addr, NET_ADDR_BYTES, "127.0.0.1:%u", probe_answer_port(s->answer));
	}
}

static void four_are_under_way_and_others_not_at_once(void **state) {
	struct scene *s = *state;
	add_probes(s, 1, PROBES_AT_ONCE);
	prober_take(s->prober, s->now_us, &s->probes, ADDRESS_LOOPBACK);
	assert_int_equal(net.dials, PROBES_AT_ONCE);
	for (int i = 0; i < TURNS && prober_results(s->prober)->n < PROBES_AT_ONCE; i++)
		(void)turn(s);
	for (int i = 0; i < PROBES_AT_ONCE; i++)
		assert_int_equal(prober_results(s->prober)->list[i].results[0], PROBE_OPEN);
	add_probes(s, 10, PROBES_AT_ONCE);
	prober_take(s->prober, s->now_us + PROBE_EVERY_US - 1, &s->probes, ADDRESS_LOOPBACK);
	assert_int_equal(net.dials, PROBES_AT_ONCE);
	prober_take(s->prober, s->now_us + PROBE_EVERY_US, &s->probes, ADDRESS_LOOPBACK);
	assert_int_equal(net.dials, 2 * PROBES_AT_ONCE);
}

static void narrow_addresses_are_not_dialed_from_the_internet(void **state) {
	struct scene *s = *state;
	add_address(s, "127.0.0.1", 80);
	add_address(s, "192.168.1.1", 80);
	add_address(s, "169.254.169.254", 80);
	add_address(s, "[fd00::1]", 80);
	prober_take(s->prober, s->now_us, &s->probes, ADDRESS_PUBLIC);
	assert_true(prober_handle(s->prober, s->now_us, NULL, 0));
	const struct probed *r = newest(s);
	assert_int_equal(r->n, 4);
	for (int i = 0; i < r->n; i++)
		assert_int_equal(r->results[i], PROBE_UNABLE);
	assert_int_equal(net.dials, 0);
}

static int dial_answer(struct scene *s) {
	struct sockaddr_in sa = {.sin_family = AF_INET,
							 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
							 .sin_port = htons(probe_answer_port(s->answer))};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
	return fd;
}

static bool is_closed(int fd) {
	char byte;
	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void silent_strangers_make_room_and_are_closed_in_time(void **state) {
	struct scene *s = *state;
	int fds[PROBE_ANSWERS + 1];
	for (int i = 0; i <= PROBE_ANSWERS; i++) {
		fds[i] = dial_answer(s);
		s->now_us++;
		for (int k = 0; k < 20; k++)
			(void)turn(s);
	}
	assert_true(is_closed(fds[0]));
	assert_false(is_closed(fds[1]));
	add_address(s, "127.0.0.1", probe_answer_port(s->answer));
	prober_take(s->prober, s->now_us, &s->probes, ADDRESS_LOOPBACK);
	assert_int_equal(finish(s)->results[0], PROBE_OPEN);
	assert_int_not_equal(probe_answer_deadline_us(s->answer), INT64_MAX);
	s->now_us += PROBE_ANSWER_US;
	(void)turn(s);
	assert_int_equal(probe_answer_deadline_us(s->answer), INT64_MAX);
	for (int i = 0; i <= PROBE_ANSWERS; i++) {
		assert_true(is_closed(fds[i]));
		close(fds[i]);
	}
}

static void garbage_is_no_handshake(void **state) {
	struct scene *s = *state;
	static const char text[] = "GET / HTTP/1.1\r\n\r\n";
	int fd = dial_answer(s);
	assert_int_equal(send(fd, text, sizeof text, 0), sizeof text);
	for (int i = 0; i < TURNS && probe_answer_deadline_us(s->answer) == INT64_MAX; i++)
		(void)turn(s);
	for (int i = 0; i < TURNS && probe_answer_deadline_us(s->answer) != INT64_MAX; i++)
		(void)turn(s);
	assert_int_equal(probe_answer_deadline_us(s->answer), INT64_MAX);
	close(fd);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(a_program_with_the_expected_key_is_open_and_nothing_else),
		T(the_listener_of_a_mesh_answers_as_it_is),
		T(silence_ends_in_time_and_was_dialed_once),
		T(a_repeated_probe_is_not_dialed_again),
		T(four_are_under_way_and_others_not_at_once),
		T(narrow_addresses_are_not_dialed_from_the_internet),
		T(silent_strangers_make_room_and_are_closed_in_time),
		T(garbage_is_no_handshake),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
