/* Routes that the owner finds: links by a relay, links that both ends dial at one moment, and which
 * link of a pair stays (net/mesh/offer.c, net/mesh/socket_route.c). */
#include "mesh_world.h"
#include "tests/common/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MS = 1000, S = 1000 * MS, BULK_BYTES = 66560, PREAMBLE_BYTES = 25, MAX_LINES = 16 };

/* ---- a relay for one pair: forwards between the two latest connections ---- */

struct relay {
	int fd;
	uint16_t port;
	uint8_t answer; /* 0: none */
	bool hangs_up;  /* after the preamble */
	int lines[MAX_LINES], n, go;
	uint8_t shown[MAX_LINES][PREAMBLE_BYTES];
	size_t got[MAX_LINES];
	uint64_t forwarded;
	bool saw_the_text;
};

/* Whole segments: on loopback there is room in the socket for what little these tests send at
 * once, and the rest is left in the source's buffer. */
static void forward(struct relay *r, int from, int to) {
	uint8_t bytes[16384];
	ssize_t n = recv(from, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
	if (n <= 0)
		return;
	ssize_t sent = send(to, bytes, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent <= 0)
		return;
	assert_int_equal(recv(from, bytes, (size_t)sent, 0), sent);
	r->forwarded += (uint64_t)sent;
	r->saw_the_text = r->saw_the_text || memmem(bytes, (size_t)sent, "plain text of a frame", 21) != NULL;
}

static bool is_whole(const struct relay *r, int i) {
	return r->got[i] == PREAMBLE_BYTES;
}

static void relay_step(void *self) {
	struct relay *r = self;
	for (int fd; r->n < MAX_LINES && (fd = accept4(r->fd, NULL, NULL, SOCK_NONBLOCK)) >= 0;)
		r->lines[r->n++] = fd;
	for (int i = 0; i < r->n; i++) {
		ssize_t n = is_whole(r, i) ? 0 : recv(r->lines[i], r->shown[i] + r->got[i], PREAMBLE_BYTES - r->got[i], 0);
		r->got[i] += n > 0 ? (size_t)n : 0;
		if (r->hangs_up && is_whole(r, i))
			shutdown(r->lines[i], SHUT_RDWR);
	}
	int a = r->n - 2, b = r->n - 1;
	if (r->hangs_up || a < 0 || !is_whole(r, a) || !is_whole(r, b))
		return;
	if (r->go != r->n && r->answer != 0) {
		assert_memory_equal(r->shown[a], r->shown[b], PREAMBLE_BYTES);
		assert_int_equal(send(r->lines[a], &r->answer, 1, 0), 1);
		assert_int_equal(send(r->lines[b], &r->answer, 1, 0), 1);
		r->go = r->n;
	}
	if (r->go == r->n) {
		forward(r, r->lines[a], r->lines[b]);
		forward(r, r->lines[b], r->lines[a]);
	}
}

static void relay_open(struct world *w, struct relay *r) {
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof sa;
	*r = (struct relay){.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), .answer = 1};
	assert_int_equal(bind(r->fd, (struct sockaddr *)&sa, n), 0);
	assert_int_equal(listen(r->fd, SOMAXCONN), 0);
	assert_int_equal(getsockname(r->fd, (struct sockaddr *)&sa, &n), 0);
	r->port = ntohs(sa.sin_port);
	world_actor(w, relay_step, r);
}

static void relay_cut(struct relay *r) {
	for (int i = 0; i < r->n; i++)
		shutdown(r->lines[i], SHUT_RDWR);
}

static void relay_release(struct relay *r) {
	for (int i = 0; i < r->n; i++)
		close(r->lines[i]);
	close(r->fd);
}

/* ---- two nodes that cannot be dialed ---- */

static int asked[WORLD_MAX_NODES];
static int64_t asked_us[WORLD_MAX_NODES][64];

static void note_asked(void *ctx, uint32_t member) {
	const struct node *n = ctx;
	assert_int_equal(member, 1 - n->member);
	if (asked[n->member] < 64)
		asked_us[n->member][asked[n->member]] = n->world->now_us;
	asked[n->member]++;
}

static void ask_owner(struct peers_config *cfg, int node) {
	cfg->owner.on_unreached = note_asked;
	asked[node] = 0;
}

static void probe_soon(struct peers_config *cfg, int node) {
	ask_owner(cfg, node);
	cfg->redial_max_us = S;
}

static void two_behind_routers(struct world *w, struct relay *r, void (*tweak)(struct peers_config *, int)) {
	world_init(w, 2, tweak);
	relay_open(w, r);
	for (int i = 0; i < 2; i++)
		w->nodes[i].ref.n_candidates = 0;
	world_allow_all(w);
}

static int lower_of(const struct world *w) {
	return memcmp(w->nodes[0].id.key, w->nodes[1].id.key, NET_KEY_BYTES) < 0 ? 0 : 1;
}

static struct route by_relay(const struct relay *r, uint8_t call) {
	struct route route = {.kind = ROUTE_RELAY, .at = {.host = "127.0.0.1", .port = r->port}};
	memset(route.token, call, sizeof route.token);
	return route;
}

static void offer_both(struct world *w, const struct route *route, bool taken) {
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(peers_offer_route(w->nodes[i].peers, w->now_us, 1 - i, route), taken);
}

static void link_by_relay(struct world *w, struct relay *r, void (*tweak)(struct peers_config *, int)) {
	two_behind_routers(w, r, tweak);
	const struct route route = by_relay(r, 7);
	offer_both(w, &route, true);
	assert_true(world_until(w, world_all_linked, NULL));
}

static enum path_kind path_at(const struct world *w, uint32_t node) {
	return peers_path(w->nodes[node].peers, 1 - node);
}

static void end(struct world *w, struct relay *r) {
	world_release(w);
	relay_release(r);
}

static bool is_down(struct world *w, void *ctx) {
	(void)ctx;
	return w->nodes[0].downs[1] > 0 && w->nodes[1].downs[0] > 0;
}

static bool both_had_trouble(struct world *w, void *ctx) {
	(void)ctx;
	return w->nodes[0].troubles > 0 && w->nodes[1].troubles > 0;
}

/* ---- the owner is asked ---- */

static void the_owner_is_asked_for_a_route_after_two_seconds(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	two_behind_routers(&w, &r, ask_owner);
	int64_t began_us = w.now_us;
	int lower = lower_of(&w);
	world_advance(&w, 120 * S);
	assert_in_range(asked_us[lower][0] - began_us, 2 * S, 9 * S); /* world_advance goes in steps of 6 s */
	assert_true(asked_us[lower][0] <= asked_us[1 - lower][0]);
	for (int i = 0; i < 2; i++)
		assert_in_range(asked[i], 6, 14); /* 2, 4, 8, 15, 15 ... s */
	assert_int_equal(peers_path(w.nodes[0].peers, 1), PATH_APART);
	end(&w, &r);
}

static void a_linked_member_needs_no_route(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	link_by_relay(&w, &r, ask_owner);
	asked[0] = asked[1] = 0;
	world_advance(&w, 60 * S);
	assert_int_equal(asked[0] + asked[1], 0);
	end(&w, &r);
}

/* ---- by a relay ---- */

static void a_pair_that_nobody_can_dial_meets_at_a_relay(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	link_by_relay(&w, &r, ask_owner);
	assert_int_equal(path_at(&w, 0), PATH_RELAYED);
	assert_int_equal(path_at(&w, 1), PATH_RELAYED);
	assert_memory_equal(r.shown[0], "RVLRELAY\x02\x07\x07", 11);
	for (int i = 0; i < 2; i++) {
		w.nodes[i].bulk_bytes = BULK_BYTES;
		w.nodes[i].bulk_body = calloc(1, BULK_BYTES);
		assert_non_null(w.nodes[i].bulk_body);
		memcpy(w.nodes[i].bulk_body + 1000, "plain text of a frame", 21);
		w.nodes[i].bulk[1 - i] = 5;
	}
	assert_true(world_until(&w, world_quiet_bulk, NULL));
	assert_false(w.nodes[0].bad_body || w.nodes[1].bad_body || r.saw_the_text);
	const struct peers_traffic all = peers_total(w.nodes[0].peers), relayed = peers_relayed(w.nodes[0].peers);
	assert_true(relayed.tx_bytes > 5 * BULK_BYTES && relayed.tx_bytes == all.tx_bytes);
	assert_int_equal(relayed.rx_bytes, all.rx_bytes);
	end(&w, &r);
}

static void a_relay_that_hangs_up_is_named(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	two_behind_routers(&w, &r, ask_owner);
	r.hangs_up = true;
	const struct route route = by_relay(&r, 7);
	offer_both(&w, &route, true);
	assert_true(world_until(&w, both_had_trouble, NULL));
	assert_non_null(strstr(w.nodes[0].trouble_text, "by the relay 127.0.0.1:"));
	assert_non_null(strstr(w.nodes[0].trouble_text, "the relay ended the call"));
	assert_int_equal(w.nodes[0].fatals[1] + w.nodes[0].downs[1], 0);
	offer_both(&w, &route, true); /* the attempt is over */
	end(&w, &r);
}

static void a_relay_that_answers_something_else_is_named(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	two_behind_routers(&w, &r, ask_owner);
	r.answer = 'H';
	const struct route route = by_relay(&r, 7);
	offer_both(&w, &route, true);
	assert_true(world_until(&w, both_had_trouble, NULL));
	assert_non_null(strstr(w.nodes[1].trouble_text, "the relay answers 72, must be 1"));
	end(&w, &r);
}

static void one_that_waits_alone_at_the_relay_gives_up(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	two_behind_routers(&w, &r, ask_owner);
	const struct route route = by_relay(&r, 7);
	assert_true(peers_offer_route(w.nodes[0].peers, w.now_us, 1, &route));
	assert_false(peers_offer_route(w.nodes[0].peers, w.now_us, 1, &route)); /* one at a time */
	world_advance(&w, 14 * S);
	assert_int_equal(w.nodes[0].troubles, 0);
	world_advance(&w, 4 * S);
	assert_non_null(strstr(w.nodes[0].trouble_text, "the other side did not come to the relay in time"));
	end(&w, &r);
}

static void a_relayed_link_that_breaks_is_asked_for_again_and_accuses_nobody(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	link_by_relay(&w, &r, ask_owner);
	world_advance(&w, 20 * S);
	asked[0] = asked[1] = 0;
	relay_cut(&r);
	assert_true(world_until(&w, is_down, NULL));
	world_advance(&w, 2 * S);
	assert_int_equal(asked[lower_of(&w)], 1); /* at once, for it had been steady */
	assert_int_equal(w.nodes[0].fatals[1] + w.nodes[1].fatals[0], 0);
	const struct route route = by_relay(&r, 8);
	offer_both(&w, &route, true);
	assert_true(world_until(&w, world_all_linked, NULL));
	assert_int_equal(w.nodes[0].ups[1], 2);
	end(&w, &r);
}

static void routes_to_strangers_and_to_the_banned_are_not_taken(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	two_behind_routers(&w, &r, ask_owner);
	const struct route route = by_relay(&r, 7);
	assert_false(peers_offer_route(w.nodes[0].peers, w.now_us, 5, &route));
	peers_ban(w.nodes[0].peers, w.now_us, 1u << 1);
	assert_false(peers_offer_route(w.nodes[0].peers, w.now_us, 1, &route));
	end(&w, &r);
}

/* ---- a direct link beside a relayed one ---- */

static bool is_direct(struct world *w, void *ctx) {
	(void)ctx;
	return world_all_linked(w, NULL) && path_at(w, 0) != PATH_RELAYED && path_at(w, 1) != PATH_RELAYED;
}

static void can_be_dialed_again(struct world *w) {
	for (int i = 0; i < 2; i++) {
		struct member_ref *ref = &w->nodes[i].ref;
		ref->n_candidates = 1;
		snprintf(ref->candidates[0].addr, NET_ADDR_BYTES, "127.0.0.1:%u", peers_port(w->nodes[i].peers));
	}
	world_allow_all(w);
}

static void a_direct_link_replaces_a_relayed_one(void **state) {
	(void)state;
	struct world w;
	struct relay r;
	link_by_relay(&w, &r, probe_soon);
	can_be_dialed_again(&w);
	assert_true(world_until(&w, is_direct, NULL));
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(w.nodes[i].downs[1 - i], 1);
		assert_int_equal(w.nodes[i].fatals[1 - i], 0);
	}
	const struct route route = by_relay(&r, 8);
	w.nodes[0].pings[1] = w.nodes[1].pings[0] = 1;
	assert_true(world_until(&w, world_quiet_bulk, NULL));
	offer_both(&w, &route, false); /* a link that delivers is not given up for a relay */
	end(&w, &r);
}

/* Both ends keep it, whichever of them is still busy. */
static void a_relayed_link_stays_while_paths_are_kept(void **state) {
	(void)state;
	for (unsigned busy = 1; busy <= 3; busy++) {
		struct world w;
		struct relay r;
		link_by_relay(&w, &r, probe_soon);
		for (uint32_t i = 0; i < 2; i++)
			peers_keep_paths(w.nodes[i].peers, busy >> i & 1);
		can_be_dialed_again(&w);
		for (int i = 0; i < 12; i++) { /* something is exchanged all the time */
			w.nodes[0].pings[1] = w.nodes[1].pings[0] = 1;
			world_advance(&w, S / 2);
		}
		assert_int_equal(path_at(&w, 0), PATH_RELAYED);
		assert_int_equal(w.nodes[0].downs[1] + w.nodes[1].downs[0], 0);
		for (uint32_t i = 0; i < 2; i++)
			peers_keep_paths(w.nodes[i].peers, false);
		for (int i = 0; i < 100 && !is_direct(&w, NULL); i++)
			world_advance(&w, S);
		assert_true(is_direct(&w, NULL));
		end(&w, &r);
	}
}

/* An address that refuses, beside a link that works: 15, 30, 60 ... 300 s between dials. */
static void an_address_beside_a_relayed_link_is_seldom_dialed(void **state) {
	(void)state;
	struct world w;
	struct relay r, stranger;
	link_by_relay(&w, &r, ask_owner);
	relay_open(&w, &stranger);
	stranger.hangs_up = true;
	w.nodes[1].ref.n_candidates = 1;
	snprintf(w.nodes[1].ref.candidates[0].addr, NET_ADDR_BYTES, "127.0.0.1:%u", stranger.port);
	world_allow_all(&w);
	for (int i = 0; i < 30; i++)
		world_advance(&w, 120 * S);
	assert_in_range(stranger.n, 5, 16);
	assert_int_equal(w.nodes[0].downs[1], 0);
	relay_release(&stranger);
	end(&w, &r);
}

/* ---- both at one moment ---- */

static struct route punch_to(const struct world *w, int node, int64_t begin_us) {
	return (struct route){.kind = ROUTE_PUNCH,
						  .at = {.host = "127.0.0.1", .port = peers_port(w->nodes[node].peers)},
						  .begin_us = begin_us};
}

/* On one machine the first packet finds the other's listener: its connection counts there as
 * accepted, and the lower key is the TLS client all the same. */
static void both_dial_at_the_moment_given(void **state) {
	(void)state;
	for (int first = 0; first < 2; first++) {
		struct world w;
		struct relay r;
		two_behind_routers(&w, &r, ask_owner);
		int64_t at_us = w.now_us + S;
		for (int i = 0; i < 2; i++) {
			const struct route route = punch_to(&w, 1 - i, i == first ? at_us : at_us + 1);
			assert_true(peers_offer_route(w.nodes[i].peers, w.now_us, (uint32_t)(1 - i), &route));
		}
		world_step(&w);
		assert_int_equal(w.nodes[0].troubles + w.nodes[1].troubles, 0);
		assert_false(world_all_linked(&w, NULL)); /* not before its time */
		assert_true(world_until(&w, world_all_linked, NULL));
		assert_true(w.now_us >= at_us);
		assert_int_equal(path_at(&w, (uint32_t)first), PATH_PUNCHED);
		assert_int_equal(path_at(&w, (uint32_t)(1 - first)), PATH_ACCEPTED);
		assert_int_equal(w.nodes[0].troubles + w.nodes[1].troubles, 0);
		assert_int_equal(w.nodes[0].ups[1] + w.nodes[1].ups[0], 2);
		end(&w, &r);
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
		cmocka_unit_test(the_owner_is_asked_for_a_route_after_two_seconds),
		cmocka_unit_test(a_linked_member_needs_no_route),
		cmocka_unit_test(a_pair_that_nobody_can_dial_meets_at_a_relay),
		cmocka_unit_test(a_relay_that_hangs_up_is_named),
		cmocka_unit_test(a_relay_that_answers_something_else_is_named),
		cmocka_unit_test(one_that_waits_alone_at_the_relay_gives_up),
		cmocka_unit_test(a_relayed_link_that_breaks_is_asked_for_again_and_accuses_nobody),
		cmocka_unit_test(routes_to_strangers_and_to_the_banned_are_not_taken),
		cmocka_unit_test(a_direct_link_replaces_a_relayed_one),
		cmocka_unit_test(a_relayed_link_stays_while_paths_are_kept),
		cmocka_unit_test(an_address_beside_a_relayed_link_is_seldom_dialed),
		cmocka_unit_test(both_dial_at_the_moment_given),
		cmocka_unit_test(the_port_is_still_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
