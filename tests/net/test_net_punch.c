/* Links that both ends dial at one moment: who is the TLS client, what becomes of a connection that
 * the listener has, and how often such a way is looked for (net/mesh/punch.c, net/mesh/offer.c). */
#include "pair_world.h"
#include "tests/common/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* After 1, 2, 4, 8, 16, 16 ... min, with jitter; and 0.2 s after a punch failed. */
static void a_relayed_member_needs_a_route_without_a_relay(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	link_by_relay(&w, &r, ask_owner);
	int64_t linked_us = w.now_us;
	asked[0].n = asked[1].n = 0;
	for (int i = 0; i < 3600 / 5; i++) {
		w.now_us += 5 * S;
		world_step(&w);
	}
	assert_int_equal(asked[0].n + asked[1].n, 0);
	assert_in_range(upgrades[0].n, 5, 8);
	assert_in_range(upgrades[0].at_us[0] - linked_us, 45 * S, 81 * S);
	for (int i = 0; i < 4; i++)
		assert_in_range(upgrades[0].at_us[i + 1] - upgrades[0].at_us[i], (45 * S) << i, (2 * 75 * S + 10 * S) << i);
	pair_end(&w, &r);
}

static void a_punch_that_fails_is_followed_by_the_next_way(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	two_behind_routers(&w, &r, ask_owner);
	const struct route nobody = {.kind = ROUTE_PUNCH, .at = {.host = "127.0.0.1", .port = 1}};
	assert_true(peers_offer_route(w.nodes[0].peers, w.now_us, 1, &nobody));
	int64_t began_us = w.now_us;
	for (int i = 0; i < 1000 && asked[0].n == 0; i++)
		world_step(&w);
	assert_int_equal(asked[0].n, 1);
	assert_in_range(asked[0].at_us[0] - began_us, 200 * MS, 300 * MS);
	assert_int_equal(peers_offer_route(w.nodes[0].peers, w.now_us, 1, &nobody), true);
	pair_end(&w, &r);
}

/* Nobody answers the punch: before it is over, a relay is there. */
static void a_relay_takes_the_place_of_a_punch_that_is_not_connected(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	two_behind_routers(&w, &r, ask_owner);
	const struct route later = {
		.kind = ROUTE_PUNCH, .at = {.host = "127.0.0.1", .port = 1}, .begin_us = w.now_us + 100 * S};
	offer_both(&w, &later, true);
	offer_both(&w, &later, false);
	const struct route route = by_relay(&r, 7);
	offer_both(&w, &route, true);
	assert_true(world_until(&w, world_all_linked, NULL));
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(path_at(&w, i), PATH_RELAYED);
	pair_end(&w, &r);
}

/* A listener whose queue is full: the packets are lost, as at a router that lets nobody in. */
static void one_attempt_lasts_a_second_and_a_half(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	two_behind_routers(&w, &r, ask_owner);
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof sa;
	int hole = socket(AF_INET, SOCK_STREAM, 0), filler = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(hole, (struct sockaddr *)&sa, n), 0);
	assert_int_equal(listen(hole, 0), 0);
	assert_int_equal(getsockname(hole, (struct sockaddr *)&sa, &n), 0);
	assert_int_equal(connect(filler, (struct sockaddr *)&sa, n), 0);
	const struct route route = {.kind = ROUTE_PUNCH, .at = {.host = "127.0.0.1", .port = ntohs(sa.sin_port)}};
	for (int relay_comes = 0; relay_comes < 2; relay_comes++) {
		int64_t began_us = w.now_us;
		ended[0] = (struct ended){0};
		assert_true(peers_offer_route(w.nodes[0].peers, w.now_us, 1, &route));
		for (int i = 0; i < 3000 && ended[0].n == 0; i++) {
			world_step(&w);
			if (relay_comes && i == 20) {
				const struct route by = by_relay(&r, 7);
				offer_both(&w, &by, true);
			}
		}
		assert_true(ended[0].n == 1 && ended[0].kind == ROUTE_PUNCH && ended[0].lived_us == -1);
		int64_t took_us = w.now_us - began_us;
		assert_in_range(took_us, relay_comes ? 0 : 1500 * MS, relay_comes ? 100 * MS : 1600 * MS);
	}
	assert_true(world_until(&w, world_all_linked, NULL));
	close(hole);
	close(filler);
	pair_end(&w, &r);
}

/* 8 at once: whatever a relay says, this mesh does not dial without end. */
static void punches_are_bounded(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	two_behind_routers(&w, &r, ask_owner);
	const struct route nobody = {.kind = ROUTE_PUNCH, .at = {.host = "127.0.0.1", .port = 1}};
	int taken = 0;
	for (int i = 0; i < 600; i++) {
		taken += peers_offer_route(w.nodes[0].peers, w.now_us, 1, &nobody);
		w.now_us += 100 * MS;
		world_step(&w);
		world_step(&w);
	}
	assert_in_range(taken, 8, 8 + 60 / 15 + 1);
	pair_end(&w, &r);
}

/* ---- both at one moment ---- */

static struct route punch_to(const struct world *w, int node, int64_t begin_us) {
	return (struct route){.kind = ROUTE_PUNCH,
						  .at = {.host = "127.0.0.1", .port = peers_port(w->nodes[node].peers)},
						  .begin_us = begin_us};
}

static void offer_punch(struct world *w, int node, int64_t begin_us) {
	const struct route route = punch_to(w, 1 - node, begin_us);
	assert_true(peers_offer_route(w->nodes[node].peers, w->now_us, (uint32_t)(1 - node), &route));
}

/* Within a second, as a greeting that waits for its timeout does not. */
static void check_punched(struct world *w) {
	int64_t end_us = w->now_us + 1 * S;
	while (w->now_us < end_us && !world_all_linked(w, NULL))
		world_step(w);
	if (!world_all_linked(w, NULL))
		fail_msg("no link after 1 s: \"%s\", \"%s\"", w->nodes[0].trouble_text, w->nodes[1].trouble_text);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(path_at(w, i), PATH_PUNCHED);
}

static void check_punched_quietly(struct world *w) {
	check_punched(w);
	assert_int_equal(w->nodes[0].troubles + w->nodes[1].troubles, 0);
	assert_int_equal(w->nodes[0].fatals[1] + w->nodes[1].fatals[0], 0);
}

/* On one machine the first packet finds the other's listener: the lower key is the TLS client all
 * the same. With both at one moment (first = 2) connect(2) fails at the second end, since the
 * listener has the connection, which no one has accepted yet. */
static void both_dial_at_the_moment_given(void **state) {
	(void)state;
	for (int first = 0; first < 3; first++) {
		struct world w;
		struct relay r;
		two_behind_routers(&w, &r, ask_owner);
		int64_t at_us = w.now_us + S;
		for (int i = 0; i < 2; i++)
			offer_punch(&w, i, i == first || first == 2 ? at_us : at_us + 1);
		world_step(&w);
		assert_int_equal(w.nodes[0].troubles + w.nodes[1].troubles, 0);
		assert_false(world_all_linked(&w, NULL)); /* not before its time */
		while (w.now_us < at_us)
			world_step(&w);
		check_punched_quietly(&w);
		assert_in_range(w.now_us - at_us, 0, 100 * MS);
		assert_int_equal(w.nodes[0].ups[1] + w.nodes[1].ups[0], 2);
		pair_end(&w, &r);
	}
}

/* The other end's connection is there before this side learns of the punch, and both would wait for
 * a TLS client. */
static void one_end_learns_of_it_late(void **state) {
	(void)state;
	for (int late = 0; late < 2; late++) {
		struct world w;
		struct relay r;
		two_behind_routers(&w, &r, ask_owner);
		offer_punch(&w, 1 - late, 0);
		if (lower_of(&w) != late) { /* the one that dialed is the client anyway */
			assert_true(world_until(&w, world_all_linked, NULL));
		} else {
			for (int i = 0; i < 200; i++) /* packets may be late on a busy machine */
				world_step(&w);
			assert_false(world_all_linked(&w, NULL));
			offer_punch(&w, late, 0);
			check_punched_quietly(&w);
		}
		assert_int_equal(w.nodes[0].troubles + w.nodes[1].troubles, 0);
		pair_end(&w, &r);
	}
}

/* The router of node `moved` gives it another port than the one that was named: the connection
 * comes from a port that nobody dialed. */
static void a_symmetric_router_calls_from_another_port(void **state) {
	(void)state;
	for (int moved = 0; moved < 2; moved++) {
		struct world w;
		struct relay r;
		two_behind_routers(&w, &r, ask_owner);
		struct route to_moved = punch_to(&w, moved, 0), from_moved = punch_to(&w, 1 - moved, 0);
		to_moved.at.port = 9; /* nobody listens there */
		from_moved.local_port = 0;
		assert_true(peers_offer_route(w.nodes[1 - moved].peers, w.now_us, (uint32_t)moved, &to_moved));
		assert_true(peers_offer_route(w.nodes[moved].peers, w.now_us, (uint32_t)(1 - moved), &from_moved));
		check_punched(&w);
		pair_end(&w, &r);
	}
}

/* A punched link that ended in order would leave its two addresses in TIME_WAIT. */
static void two_punch_again_between_the_same_addresses(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	two_behind_routers(&w, &r, ask_owner);
	for (int i = 0; i < 2; i++)
		offer_punch(&w, i, 0);
	check_punched(&w);
	for (int n = 2; n < 5; n++) {
		uint32_t breaker = (uint32_t)n % 2;
		w.nodes[breaker].answer = RV_E_IO;
		w.nodes[1 - breaker].pings[breaker] = 1;
		for (int i = 0; i < 100 && (peers_linked(w.nodes[0].peers, 1) || peers_linked(w.nodes[1].peers, 0)); i++)
			world_step(&w);
		w.nodes[breaker].answer = RV_OK;
		assert_false(peers_linked(w.nodes[0].peers, 1) || peers_linked(w.nodes[1].peers, 0));
		for (int i = 0; i < 2; i++)
			offer_punch(&w, i, w.now_us + i * MS);
		check_punched(&w);
		for (uint32_t i = 0; i < 2; i++)
			assert_int_equal(w.nodes[i].ups[1 - i], n);
	}
	pair_end(&w, &r);
}

static bool is_punched(struct world *w, void *ctx) {
	(void)ctx;
	return world_all_linked(w, NULL) && path_at(w, 0) == PATH_PUNCHED && path_at(w, 1) == PATH_PUNCHED;
}

/* Not in the middle of an all-reduce. */
static void a_punched_link_replaces_a_relayed_one(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	link_by_relay(&w, &r, ask_owner);
	const struct route again = by_relay(&r, 8);
	w.nodes[0].pings[1] = w.nodes[1].pings[0] = 1;
	assert_true(world_until(&w, world_quiet_bulk, NULL));
	offer_both(&w, &again, false); /* it has one */
	for (int i = 0; i < 2; i++)
		peers_keep_paths(w.nodes[i].peers, true);
	const struct route route = punch_to(&w, 1, 0);
	assert_false(peers_offer_route(w.nodes[0].peers, w.now_us, 1, &route));
	for (int i = 0; i < 2; i++)
		peers_keep_paths(w.nodes[i].peers, false);
	for (int i = 0; i < 2; i++)
		offer_punch(&w, i, 0);
	assert_true(world_until(&w, is_punched, NULL));
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(w.nodes[i].ups[1 - i], 2);
		assert_int_equal(w.nodes[i].fatals[1 - i], 0);
	}
	pair_end(&w, &r);
}

/* The other end does not read: in order, the connection would not end before it does, and no other
 * can be made between the two addresses. */
static void a_connection_that_ends_at_close_frees_its_addresses(void **state) {
	(void)state;
	const struct pipe_ops *s = &socket_pipe;
	static const char much[1 << 16];
	for (int at_once = 0; at_once < 2; at_once++) {
		int listeners[2], pipes[2], accepted;
		uint16_t ports[2];
		struct rv_errtext et;
		struct address from;
		for (int i = 0; i < 2; i++)
			assert_int_equal(s->listen(NULL, "127.0.0.1:0", 0, &listeners[i], &ports[i], &et), RV_OK);
		const struct route to = {
			.kind = ROUTE_PUNCH, .at = {.host = "127.0.0.1", .port = ports[1]}, .local_port = ports[0]};
		assert_int_equal(s->connect(NULL, &to, 0, &pipes[0], &et), RV_OK);
		while ((accepted = s->accept(NULL, listeners[1], &from)) < 0)
			assert_int_equal(errno, EAGAIN);
		assert_int_equal(from.port, ports[0]);
		while (s->write(NULL, pipes[0], much, sizeof much) > 0)
			;
		if (at_once)
			s->end_at_close(NULL, pipes[0]);
		s->close(NULL, pipes[0]);
		assert_int_equal(s->connect(NULL, &to, 0, &pipes[1], &et), at_once ? RV_OK : RV_E_BUSY);
		if (at_once)
			s->close(NULL, pipes[1]);
		s->close(NULL, accepted);
		for (int i = 0; i < 2; i++)
			s->close(NULL, listeners[i]);
	}
}

static int bind_at(uint32_t host, uint16_t *port) {
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(*port), .sin_addr.s_addr = htonl(host)};
	socklen_t n = sizeof sa;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, n), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &n), 0);
	*port = ntohs(sa.sin_port);
	return fd;
}

/* Another program uses the port: at another address of this machine, where it is in nobody's way;
 * or at this one, which is no sign of the other side's packet. */
static void a_port_that_another_program_uses(void **state) {
	(void)state;
	const struct pipe_ops *s = &socket_pipe;
	const uint32_t elsewhere = 0x7f800000 | ((uint32_t)getpid() & 0x7fffff); /* no other test's address */
	int listeners[2], pipe, others[2];
	uint16_t ports[2], taken = 0;
	struct rv_errtext et;
	for (int i = 0; i < 2; i++)
		assert_int_equal(s->listen(NULL, "127.0.0.1:0", 0, &listeners[i], &ports[i], &et), RV_OK);
	others[0] = bind_at(elsewhere, &ports[0]);
	others[1] = bind_at(INADDR_LOOPBACK, &taken);
	struct route to = {.kind = ROUTE_PUNCH, .at = {.host = "127.0.0.1", .port = ports[1]}, .local_port = ports[0]};
	assert_int_equal(s->connect(NULL, &to, 0, &pipe, &et), RV_OK);
	s->close(NULL, pipe);
	to.local_port = taken;
	assert_int_equal(s->connect(NULL, &to, 0, &pipe, &et), RV_E_IO);
	assert_non_null(strstr(et.text, "cannot dial from port"));
	for (int i = 0; i < 2; i++) {
		s->close(NULL, listeners[i]);
		close(others[i]);
	}
}

/* The port is shared with this mesh's own dials, and with nobody else. */
static void the_port_is_still_taken(void **state) {
	(void)state;
	struct world w;
	struct rv_errtext et;
	char listen[NET_ADDR_BYTES];
	world_init(&w, 1, NULL);
	snprintf(listen, sizeof listen, "127.0.0.1:%u", peers_port(w.nodes[0].peers));
	assert_int_equal(peers_check_listen(listen, &et), RV_E_BUSY);
	world_release(&w);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_relayed_member_needs_a_route_without_a_relay),
		cmocka_unit_test(a_punch_that_fails_is_followed_by_the_next_way),
		cmocka_unit_test(a_relay_takes_the_place_of_a_punch_that_is_not_connected),
		cmocka_unit_test(one_attempt_lasts_a_second_and_a_half),
		cmocka_unit_test(punches_are_bounded),
		cmocka_unit_test(both_dial_at_the_moment_given),
		cmocka_unit_test(one_end_learns_of_it_late),
		cmocka_unit_test(a_symmetric_router_calls_from_another_port),
		cmocka_unit_test(two_punch_again_between_the_same_addresses),
		cmocka_unit_test(a_punched_link_replaces_a_relayed_one),
		cmocka_unit_test(a_connection_that_ends_at_close_frees_its_addresses),
		cmocka_unit_test(a_port_that_another_program_uses),
		cmocka_unit_test(the_port_is_still_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
