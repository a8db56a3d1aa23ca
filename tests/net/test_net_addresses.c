/* A member with several addresses: in which order they are dialed, and for how long
 * (net/mesh/dial.c, net/mesh/book.c). */
#include "mesh_world.h"
#include "tests/common/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MS = 1000, S = 1000 * MS };

/* ---- an address that never answers: its queue is full, so the system drops what comes ---- */

struct hole {
	int fd, filler;
	uint16_t port;
};

static void hole_open(struct hole *h) {
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof sa;
	h->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(h->fd, (struct sockaddr *)&sa, n), 0);
	assert_int_equal(listen(h->fd, 0), 0);
	assert_int_equal(getsockname(h->fd, (struct sockaddr *)&sa, &n), 0);
	h->port = ntohs(sa.sin_port);
	h->filler = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(h->filler, (struct sockaddr *)&sa, n), 0);
}

static void hole_release(struct hole *h) {
	close(h->filler);
	close(h->fd);
}

/* ---- */

static void first_dials(struct peers_config *cfg, int node) {
	if (node == 0)
		cfg->listen = NULL;
}

static void set_addr(struct world *w, int place, enum candidate_kind kind, unsigned port) {
	struct member_ref *r = &w->nodes[1].ref;
	r->candidates[place].kind = (uint8_t)kind;
	snprintf(r->candidates[place].addr, sizeof r->candidates[place].addr, "127.0.0.1:%u", port);
	r->n_candidates = (uint8_t)(place < r->n_candidates ? r->n_candidates : place + 1);
}

/* Two addresses of nobody, and the member's third. */
static void behind_two_holes(struct world *w, struct hole h[2]) {
	world_init(w, 2, first_dials);
	for (int i = 0; i < 2; i++) {
		hole_open(&h[i]);
		set_addr(w, i, CANDIDATE_SEEN, h[i].port);
	}
	set_addr(w, 2, CANDIDATE_REFLECTED, peers_port(w->nodes[1].peers));
}

static void holes_end(struct world *w, struct hole h[2]) {
	for (int i = 0; i < 2; i++)
		hole_release(&h[i]);
	world_release(w);
}

static void the_third_address_is_dialed_within_two_seconds(void **state) {
	(void)state;
	struct world w;
	struct hole h[2];
	behind_two_holes(&w, h);
	int64_t began_us = w.now_us;
	world_allow(&w, 0, 3);
	assert_true(world_until(&w, world_all_linked, NULL));
	assert_in_range(w.now_us - began_us, 1800 * MS, 2400 * MS);
	const struct peers_way way = peers_way(w.nodes[0].peers, 1), back = peers_way(w.nodes[1].peers, 0);
	assert_true(way.path == PATH_DIALED && back.path == PATH_ACCEPTED);
	assert_int_equal(way.candidate, CANDIDATE_REFLECTED);
	assert_true(way.lan && back.lan && !way.ipv6 && !back.ipv6);
	holes_end(&w, h);
}

static bool is_linked_anew(struct world *w, void *ctx) {
	(void)ctx;
	return w->nodes[0].ups[1] == 2;
}

static void the_one_that_worked_is_dialed_first(void **state) {
	(void)state;
	struct world w;
	struct hole h[2];
	behind_two_holes(&w, h);
	world_allow(&w, 0, 3);
	assert_true(world_until(&w, world_all_linked, NULL));
	world_advance(&w, 6 * S);
	w.nodes[1].answer = RV_E_IO; /* ends the link */
	w.nodes[0].pings[1] = 1;
	for (int i = 0; i < 1000 && w.nodes[0].downs[1] == 0; i++)
		world_step(&w);
	w.nodes[1].answer = RV_OK;
	int64_t down_us = w.now_us;
	assert_true(world_until(&w, is_linked_anew, NULL));
	assert_in_range(w.now_us - down_us, 0, 500 * MS); /* a dial to a hole takes longer */
	holes_end(&w, h);
}

/* A program that restarts on another port refuses at the old one: that is an end for good only
 * where the member was once reached. */
static void a_refusal_at_another_address_is_no_end(void **state) {
	(void)state;
	struct world w;
	world_init(&w, 2, first_dials);
	set_addr(&w, 1, CANDIDATE_GIVEN, 1); /* nobody listens there */
	world_allow(&w, 0, 3);
	assert_true(world_until(&w, world_all_linked, NULL));
	world_advance(&w, 6 * S);
	uint16_t port = peers_port(w.nodes[1].peers);
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
	world_stop(&w, 1);
	struct hole silent = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
						  .filler = socket(AF_INET, SOCK_STREAM, 0)};
	int on = 1;
	assert_int_equal(setsockopt(silent.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
	assert_int_equal(bind(silent.fd, (struct sockaddr *)&sa, sizeof sa), 0);
	assert_int_equal(listen(silent.fd, 0), 0);
	assert_int_equal(connect(silent.filler, (struct sockaddr *)&sa, sizeof sa), 0);
	for (int i = 0; i < 10; i++)
		world_advance(&w, 2 * S); /* its own address is silent, the other one refuses */
	assert_int_equal(w.nodes[0].downs[1], 1);
	assert_int_equal(w.nodes[0].fatals[1], 0);
	hole_release(&silent);
	for (int i = 0; i < 10; i++)
		world_advance(&w, 2 * S); /* now its own refuses */
	assert_int_equal(w.nodes[0].fatals[1], 1);
	world_release(&w);
}

/* Each dial is one that took less than connect_us. */
static void a_dead_address_is_left_alone(void **state) {
	(void)state;
	struct world w;
	struct hole h;
	world_init(&w, 2, first_dials);
	hole_open(&h);
	world_stop(&w, 1);
	set_addr(&w, 0, CANDIDATE_SEEN, h.port);
	world_allow(&w, 0, 3);
	int64_t end_us = w.now_us + 3600 * (int64_t)S;
	int dials = 0, before = 0;
	while (w.now_us < end_us) {
		struct pollfd fds[PEERS_MAX_FDS];
		int n = peers_pollfds(w.nodes[0].peers, fds, PEERS_MAX_FDS);
		dials += n > before;
		before = n;
		int64_t due_us = peers_deadline_us(w.nodes[0].peers);
		w.now_us = due_us > w.now_us ? due_us : w.now_us + 1;
		peers_handle(w.nodes[0].peers, w.now_us, fds, 0);
	}
	assert_in_range(dials, 10, 14); /* 4 and, after pauses of 30 s to 15 min with jitter, 7 or so */
	hole_release(&h);
	world_release(&w);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_third_address_is_dialed_within_two_seconds),
		cmocka_unit_test(the_one_that_worked_is_dialed_first),
		cmocka_unit_test(a_refusal_at_another_address_is_no_end),
		cmocka_unit_test(a_dead_address_is_left_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
