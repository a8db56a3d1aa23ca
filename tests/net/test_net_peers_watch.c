/* Links that stand but deliver nothing, members that move, and how often other people's addresses
 * are dialed (net/mesh/watch.c, net/mesh/dial.c). */
#include "mesh_world.h"
#include "net/stranded.h"
#include "tcp_proxy.h"
#include "tests/common/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MS = 1000, S = 1000 * MS, SILENT_US = 800 * MS, BULK_BYTES = 66560, MANY_FRAMES = 1000 };

static void first_dials_and_watches(struct peers_config *cfg, int node) {
	if (node == 0)
		cfg->silent_us = SILENT_US;
	if (node == 0)
		cfg->listen = NULL;
}

/* Node 0 dials node 1 through the proxy, and has bulk for it. */
static void link_with_bulk(struct world *w, struct tcp_proxy *proxy) {
	world_init(w, 2, first_dials_and_watches);
	proxy_init(proxy, peers_port(w->nodes[1].peers));
	world_actor(w, proxy_step, proxy);
	snprintf(w->nodes[1].ref.candidates[0].addr, sizeof w->nodes[1].ref.candidates[0].addr, "127.0.0.1:%u",
			 proxy->port);
	world_allow_all(w);
	assert_true(world_until(w, world_all_linked, NULL));
	w->nodes[0].bulk_bytes = BULK_BYTES;
	w->nodes[0].bulk_body = calloc(1, BULK_BYTES);
	assert_non_null(w->nodes[0].bulk_body);
	w->nodes[0].bulk[1] = MANY_FRAMES;
}

static void world_end(struct world *w, struct tcp_proxy *proxy) {
	world_release(w);
	proxy_release(proxy);
}

static bool is_down(struct world *w, void *ctx) {
	(void)ctx;
	return w->nodes[0].downs[1] > 0;
}

static bool is_linked_anew(struct world *w, void *ctx) {
	(void)ctx;
	return w->nodes[0].ups[1] == 2;
}

/* Others than the frozen lines are free: what a healed path looks like to a fresh connection. */
static void a_link_that_delivers_nothing_gets_another_beside_it(void **state) {
	(void)state;
	struct world w;
	struct tcp_proxy proxy;
	link_with_bulk(&w, &proxy);
	proxy_freeze(&proxy);
	int64_t frozen_us = w.now_us;
	assert_true(world_until(&w, is_linked_anew, NULL));
	assert_true(w.now_us - frozen_us >= SILENT_US / 2);
	assert_true(w.now_us - frozen_us < SILENT_US); /* before the old one was given up */
	assert_int_equal(w.nodes[0].downs[1], 1);
	assert_int_equal(w.nodes[0].fatals[1], 0);
	assert_non_null(strstr(w.nodes[0].down_text[1], "a newer link took its place"));
	assert_true(peers_linked(w.nodes[0].peers, 1) && peers_linked(w.nodes[1].peers, 0));
	world_end(&w, &proxy);
}

static void a_link_that_delivers_nothing_is_given_up(void **state) {
	(void)state;
	struct world w;
	struct tcp_proxy proxy;
	link_with_bulk(&w, &proxy);
	proxy_freeze(&proxy);
	close(proxy.listener); /* there is no other way */
	int64_t frozen_us = w.now_us;
	assert_true(world_until(&w, is_down, NULL));
	assert_in_range(w.now_us - frozen_us, SILENT_US, 2 * SILENT_US);
	assert_int_equal(w.nodes[0].down_why[1], RV_E_TIMEOUT);
	assert_non_null(strstr(w.nodes[0].down_text[1], "nothing was delivered or came for 0."));
	assert_false(peers_linked(w.nodes[0].peers, 1));
	proxy.listener = dup(0);
	world_end(&w, &proxy);
}

/* Stopped for an hour, say: what came meanwhile is unread, and the link is as good as it was. */
static void our_own_absence_is_nobodys_silence(void **state) {
	(void)state;
	struct world w;
	struct tcp_proxy proxy;
	link_with_bulk(&w, &proxy);
	for (int i = 0; i < 20; i++) {
		world_step(&w);
		w.now_us += 3600 * (int64_t)S;
	}
	assert_int_equal(w.nodes[0].downs[1], 0);
	assert_true(peers_linked(w.nodes[0].peers, 1));
	world_end(&w, &proxy);
}

/* ---- a machine that sleeps ---- */

/* How often the mesh wants to be called at one moment: it must not spin. */
static void check_settles(struct world *w) {
	struct peers *p = w->nodes[0].peers;
	for (int i = 0; i < 20 && peers_deadline_us(p) <= w->now_us; i++)
		peers_handle(p, w->now_us, NULL, 0);
	assert_true(peers_deadline_us(p) > w->now_us);
}

/* To the mesh its link looks open, and the other end has forgotten it. The monotonic clock may have
 * stood still meanwhile, or gone on for an hour. */
static void a_machine_that_slept_makes_its_links_anew(void **state) {
	(void)state;
	for (int clock_goes_on = 0; clock_goes_on < 2; clock_goes_on++) {
		struct world w;
		struct tcp_proxy proxy;
		link_with_bulk(&w, &proxy);
		w.nodes[0].bulk[1] = 0;
		assert_true(world_until(&w, world_quiet_bulk, NULL));
		world_advance(&w, 5 * S);
		proxy_freeze(&proxy);
		w.now_us += clock_goes_on ? 3600 * (int64_t)S : 0;
		for (int i = 0; i < 50; i++)
			world_step(&w);
		assert_int_equal(w.nodes[0].ups[1], 1); /* nothing tells the mesh */
		int64_t woke_us = w.now_us;
		peers_woke(w.nodes[0].peers, w.now_us);
		assert_true(world_until(&w, is_linked_anew, NULL));
		assert_in_range(w.now_us - woke_us, 0, 200 * MS);
		assert_int_equal(w.nodes[0].fatals[1] + w.nodes[1].fatals[0], 0);
		check_settles(&w);
		w.nodes[0].bulk[1] = 3;
		assert_true(world_until(&w, world_quiet_bulk, NULL));
		world_end(&w, &proxy);
	}
}

/* A dial, a greeting and a question for a route that were under way are over after an hour. */
static void what_was_under_way_before_the_sleep_ends(void **state) {
	(void)state;
	struct world w;
	struct tcp_proxy proxy;
	world_init(&w, 2, first_dials_and_watches);
	proxy_init(&proxy, peers_port(w.nodes[1].peers));
	snprintf(w.nodes[1].ref.candidates[0].addr, sizeof w.nodes[1].ref.candidates[0].addr, "127.0.0.1:%u", proxy.port);
	world_allow_all(&w);
	for (int i = 0; i < 20; i++)
		world_step(&w); /* connected, and nobody answers: the proxy does not run */
	assert_int_equal(w.nodes[0].ups[1], 0);
	w.now_us += 3600 * (int64_t)S;
	peers_woke(w.nodes[0].peers, w.now_us);
	check_settles(&w);
	world_actor(&w, proxy_step, &proxy);
	int64_t woke_us = w.now_us;
	assert_true(world_until(&w, world_all_linked, NULL));
	assert_in_range(w.now_us - woke_us, 0, 1 * S);
	world_end(&w, &proxy);
}

/* ---- members that move ---- */

static void a_member_that_moved_is_dialed_beside_its_link(void **state) {
	(void)state;
	struct world w;
	struct tcp_proxy proxy;
	link_with_bulk(&w, &proxy);
	w.nodes[0].bulk[1] = 0;
	assert_true(world_until(&w, world_quiet_bulk, NULL));
	world_advance(&w, 5 * S); /* nothing came for a while */
	proxy_freeze(&proxy);
	snprintf(w.nodes[1].ref.candidates[0].addr, sizeof w.nodes[1].ref.candidates[0].addr, "127.0.0.1:%u",
			 peers_port(w.nodes[1].peers));
	world_allow(&w, 0, 3);
	assert_true(world_until(&w, is_linked_anew, NULL));
	assert_int_equal(proxy_open_lines(&proxy), 1); /* it went another way */
	world_end(&w, &proxy);
}

/* One dial finds out; where nobody answers, the link that stands is not given up for it. */
static void a_move_to_nowhere_costs_no_link(void **state) {
	(void)state;
	struct world w;
	struct tcp_proxy proxy;
	link_with_bulk(&w, &proxy);
	w.nodes[0].bulk[1] = 0;
	assert_true(world_until(&w, world_quiet_bulk, NULL));
	world_advance(&w, 5 * S);
	snprintf(w.nodes[1].ref.candidates[0].addr, sizeof w.nodes[1].ref.candidates[0].addr, "127.0.0.1:1");
	world_allow(&w, 0, 3);
	world_advance(&w, 30 * S);
	assert_int_equal(w.nodes[0].downs[1], 0);
	assert_int_equal(w.nodes[0].troubles, 1);
	w.nodes[0].bulk[1] = 3;
	assert_true(world_until(&w, world_quiet_bulk, NULL));
	world_end(&w, &proxy);
}

/* ---- other people's addresses ---- */

/* Takes every connection, counts it and closes it: a third party that others are sent to. */
struct victim {
	int fd;
	uint16_t port;
	int dials;
};

static void victim_step(void *self) {
	struct victim *v = self;
	for (int fd; (fd = accept(v->fd, NULL, NULL)) >= 0; v->dials++)
		close(fd);
}

static void victim_open(struct world *w, struct victim *v) {
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof sa;
	*v = (struct victim){.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
	assert_int_equal(bind(v->fd, (struct sockaddr *)&sa, n), 0);
	assert_int_equal(listen(v->fd, SOMAXCONN), 0);
	assert_int_equal(getsockname(v->fd, (struct sockaddr *)&sa, &n), 0);
	v->port = ntohs(sa.sin_port);
	world_actor(w, victim_step, v);
}

/* Row 19 of the attacks: a member that states two addresses in turns, 100 times a second. */
static void alternating_addresses_are_not_dialed_each_time(void **state) {
	(void)state;
	enum { SECONDS = 40, EACH = 100 };
	struct world w;
	struct victim v[2];
	world_init(&w, 2, NULL);
	for (int i = 0; i < 2; i++)
		victim_open(&w, &v[i]);
	world_stop(&w, 1);
	for (int i = 0; i < SECONDS * EACH; i++) {
		snprintf(w.nodes[1].ref.candidates[0].addr, sizeof w.nodes[1].ref.candidates[0].addr, "127.0.0.1:%u",
				 v[i % 2].port);
		world_allow(&w, 0, 3);
		w.now_us += S / EACH;
		world_step(&w);
	}
	/* 0.1, 0.2, 0.4 ... s between dials, as with one address; and four that a new address
	 * hurried. */
	assert_in_range(v[0].dials + v[1].dials, 4, 9 + 4);
	for (int i = 0; i < 2; i++)
		close(v[i].fd);
	world_release(&w);
}

/* ---- members that are back where nobody had answered ---- */

enum { BOTH = 3, ALONE = 1 };

/* Node 0 has dialed node 1 in vain, at the victim's door, until its pauses last minutes. */
static void dial_in_vain(struct world *w, struct victim *v) {
	world_init(w, 2, NULL);
	victim_open(w, v);
	world_stop(w, 1);
	snprintf(w->nodes[1].ref.candidates[0].addr, sizeof w->nodes[1].ref.candidates[0].addr, "127.0.0.1:%u", v->port);
	w->nodes[1].ref.boot = 1 * (uint64_t)S;
	world_allow(w, 0, BOTH);
	world_advance(w, 60 * S);
	world_advance(w, 600 * S);
	v->dials = 0;
	world_advance(w, 1 * S);
	assert_int_equal(v->dials, 0);
}

static void end_in_vain(struct world *w, struct victim *v) {
	close(v->fd);
	world_release(w);
}

static void a_restart_without_a_link_hurries_a_dial(void **state) {
	(void)state;
	struct world w;
	struct victim v;
	dial_in_vain(&w, &v);
	for (int i = 2; i <= 4; i++) {
		v.dials = 0;
		w.nodes[1].ref.boot = (uint64_t)i * S;
		world_allow(&w, 0, BOTH);
		world_advance(&w, 1 * S);
		assert_int_equal(v.dials, 1);
		world_allow(&w, 0, BOTH); /* the same process: no news */
		world_advance(&w, 11 * S);
		assert_int_equal(v.dials, 1);
	}
	end_in_vain(&w, &v);
}

static void early_news_hurries_a_dial_later(void **state) {
	(void)state;
	struct world w;
	struct victim v;
	dial_in_vain(&w, &v);
	for (int i = 0; i < 4; i++) { /* away and back, again and again */
		world_allow(&w, 0, ALONE);
		world_advance(&w, 500 * MS);
		world_allow(&w, 0, BOTH);
		world_advance(&w, 500 * MS);
	}
	assert_int_equal(v.dials, 1);
	world_advance(&w, 10 * S); /* 10 s after the first time */
	assert_int_equal(v.dials, 2);
	world_advance(&w, 20 * S);
	assert_int_equal(v.dials, 2);
	end_in_vain(&w, &v);
}

static void news_of_a_member_that_is_gone_again_hurries_no_dial(void **state) {
	(void)state;
	struct world w;
	struct victim v;
	dial_in_vain(&w, &v);
	for (int i = 0; i < 2; i++) {
		world_allow(&w, 0, ALONE);
		world_advance(&w, 500 * MS);
		world_allow(&w, 0, BOTH);
		world_advance(&w, 500 * MS);
	}
	world_allow(&w, 0, ALONE);
	world_advance(&w, 30 * S);
	assert_int_equal(v.dials, 1);
	check_settles(&w);
	end_in_vain(&w, &v);
}

/* The dial under way began before the member was back, and may have gone to its former process. */
static void news_during_a_dial_hurries_the_next_one(void **state) {
	(void)state;
	struct world w;
	struct victim v;
	dial_in_vain(&w, &v);
	w.n_actors = 0; /* the door takes connections and says nothing: a dial lasts */
	w.nodes[1].ref.boot = 2 * (uint64_t)S;
	world_allow(&w, 0, BOTH);
	world_advance(&w, 500 * MS);
	w.now_us += 11 * S; /* HURRY_EVERY_US is over, and so is the dial at the next step */
	w.nodes[1].ref.boot = 3 * (uint64_t)S;
	world_allow(&w, 0, BOTH);
	check_settles(&w);
	world_actor(&w, victim_step, &v);
	world_advance(&w, 1 * S);
	assert_int_equal(v.dials, 2);
	world_advance(&w, 11 * S);
	assert_int_equal(v.dials, 2);
	end_in_vain(&w, &v);
}

/* A member that names another's door and restarts all the time, or says so: its packets are paid
 * for. */
static void restarts_without_end_have_the_budget_of_the_member(void **state) {
	(void)state;
	enum { MINUTES = 20, EACH_S = 10 };
	struct world w;
	struct victim v;
	dial_in_vain(&w, &v);
	for (int i = 0; i < MINUTES * 60 / EACH_S; i++) {
		w.nodes[1].ref.boot += S;
		world_allow(&w, 0, BOTH);
		world_advance(&w, EACH_S * S);
	}
	assert_in_range(v.dials, MINUTES, 40 + 2 * MINUTES);
	end_in_vain(&w, &v);
}

/* All together: 200 at once, and 10 a second. */
static void many_members_at_one_door_share_a_budget(void **state) {
	(void)state;
	struct world w;
	struct victim v;
	struct member_ref refs[NET_MAX_ROW] = {0};
	world_init(&w, 1, NULL);
	victim_open(&w, &v);
	for (uint32_t m = 0; m < NET_MAX_ROW; m++) {
		refs[m].member = m;
		refs[m].key[0] = (uint8_t)(m + 1);
		refs[m].n_candidates = 1;
		snprintf(refs[m].candidates[0].addr, sizeof refs[m].candidates[0].addr, "127.0.0.1:%u", v.port);
	}
	int64_t began_us = w.now_us;
	peers_allow(w.nodes[0].peers, w.now_us, refs, NET_MAX_ROW);
	for (int i = 0; i < 1000; i++) {
		w.now_us += 10 * MS;
		world_step(&w);
	}
	assert_in_range(v.dials, 200, 200 + (w.now_us - began_us) / (100 * MS) + 1);
	close(v.fd);
	world_release(&w);
}

static void addresses_of_a_narrower_range_are_not_dialed(void **state) {
	(void)state;
	for (int met = ADDRESS_PUBLIC; met <= ADDRESS_LOOPBACK; met++) {
		struct world w;
		struct victim v;
		world_init(&w, 2, NULL);
		victim_open(&w, &v);
		world_stop(&w, 1);
		snprintf(w.nodes[1].ref.candidates[0].addr, sizeof w.nodes[1].ref.candidates[0].addr, "127.0.0.1:%u", v.port);
		peers_set_reach(w.nodes[0].peers, (enum address_reach)met);
		world_allow(&w, 0, 3);
		world_advance(&w, 20 * S);
		assert_int_equal(v.dials > 0, met == ADDRESS_LOOPBACK);
		bool told = strstr(w.nodes[0].trouble_text, "is not dialed: that is a loopback address") != NULL;
		assert_int_equal(told, met != ADDRESS_LOOPBACK);
		close(v.fd);
		world_release(&w);
	}
}

/* ---- the network changes ---- */

static bool is_dialed_twice(struct world *w, void *victim) {
	(void)w;
	return ((struct victim *)victim)->dials == 2;
}

static void a_hurry_dials_whoever_waits_for_the_next_try(void **state) {
	(void)state;
	struct world w;
	struct victim v;
	world_init(&w, 2, NULL);
	victim_open(&w, &v);
	world_stop(&w, 1);
	snprintf(w.nodes[1].ref.candidates[0].addr, sizeof w.nodes[1].ref.candidates[0].addr, "127.0.0.1:%u", v.port);
	world_allow(&w, 0, 3);
	world_advance(&w, 200 * S);
	v.dials = 0;
	for (int i = 1; i <= 2; i++) {
		int64_t before_us = w.now_us;
		peers_hurry(w.nodes[0].peers, w.now_us);
		v.dials = 1;
		assert_true(world_until(&w, is_dialed_twice, &v));
		assert_true(w.now_us - before_us < 1 * S);
	}
	close(v.fd);
	world_release(&w);
}

static void a_local_address_that_is_gone_is_noticed(void **state) {
	(void)state;
	int fds[2], on = 1;
	struct sockaddr_in sa = {.sin_family = AF_INET};
	static const char *const addresses[2] = {"127.0.0.1", "192.0.2.1"}; /* RFC 5737: of no machine */
	for (int i = 0; i < 2; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(setsockopt(fds[i], IPPROTO_IP, IP_FREEBIND, &on, sizeof on), 0);
		assert_int_equal(inet_pton(AF_INET, addresses[i], &sa.sin_addr), 1);
		assert_int_equal(bind(fds[i], (struct sockaddr *)&sa, sizeof sa), 0);
	}
	assert_false(socket_is_stranded(fds[0]));
	assert_true(socket_is_stranded(fds[1]));
	close(fds[0]);
	close(fds[1]);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_link_that_delivers_nothing_gets_another_beside_it),
		cmocka_unit_test(a_link_that_delivers_nothing_is_given_up),
		cmocka_unit_test(our_own_absence_is_nobodys_silence),
		cmocka_unit_test(a_machine_that_slept_makes_its_links_anew),
		cmocka_unit_test(what_was_under_way_before_the_sleep_ends),
		cmocka_unit_test(a_member_that_moved_is_dialed_beside_its_link),
		cmocka_unit_test(a_move_to_nowhere_costs_no_link),
		cmocka_unit_test(alternating_addresses_are_not_dialed_each_time),
		cmocka_unit_test(a_restart_without_a_link_hurries_a_dial),
		cmocka_unit_test(early_news_hurries_a_dial_later),
		cmocka_unit_test(news_of_a_member_that_is_gone_again_hurries_no_dial),
		cmocka_unit_test(news_during_a_dial_hurries_the_next_one),
		cmocka_unit_test(restarts_without_end_have_the_budget_of_the_member),
		cmocka_unit_test(many_members_at_one_door_share_a_budget),
		cmocka_unit_test(addresses_of_a_narrower_range_are_not_dialed),
		cmocka_unit_test(a_hurry_dials_whoever_waits_for_the_next_try),
		cmocka_unit_test(a_local_address_that_is_gone_is_noticed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
