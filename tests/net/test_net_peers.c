/* The mesh among honest workers: links come up, carry bulk and control, break, come back, and are
 * counted. */
#include "mesh_world.h"
#include "net/mesh/rate.h"
#include "tcp_proxy.h"
#include "tests/common/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void queue_bulk(struct node *n, uint32_t to, uint32_t frames, uint32_t bytes, uint8_t salt) {
	free(n->bulk_body);
	n->bulk_body = malloc(bytes);
	assert_non_null(n->bulk_body);
	for (uint32_t i = 0; i < bytes; i++)
		n->bulk_body[i] = (uint8_t)(i * 7 + (i >> 8) + salt);
	n->bulk_bytes = bytes;
	n->bulk[to] = frames;
}

static void both_dial_at_once(struct peers_config *cfg, int node) {
	(void)node;
	cfg->courtesy_us = -1;
}

static void dial_only_second(struct peers_config *cfg, int node) {
	if (node == 1)
		cfg->listen = NULL;
}

/* Two nodes, linked; node 0 dials node 1 through the proxy, which records what passes when
 * `record`. */
static void link_through(struct world *w, struct tcp_proxy *proxy, bool record) {
	world_init(w, 2, NULL);
	proxy_init(proxy, peers_port(w->nodes[1].peers));
	proxy->record = record;
	world_actor(w, proxy_step, proxy);
	snprintf(w->nodes[1].ref.candidates[0].addr, sizeof w->nodes[1].ref.candidates[0].addr, "127.0.0.1:%u",
			 proxy->port);
	world_allow(w, 0, 3);
	assert_true(world_until(w, world_all_linked, NULL));
}

static bool is_down(struct world *w, void *node) {
	(void)w;
	struct node *n = node;
	return n->downs[0] + n->downs[1] > 0;
}

static bool is_fatal(struct world *w, void *node) {
	(void)w;
	struct node *n = node;
	return n->fatals[0] + n->fatals[1] > 0;
}

/* ---- tests ---- */

static void five_link_up_and_stay(void **state) {
	(void)state;
	int fds = count_fds();
	struct world w;
	world_link(&w, 5);
	world_advance(&w, 120 * 1000000LL);
	assert_true(world_all_linked(&w, NULL));
	for (int i = 0; i < 5; i++)
		for (int j = 0; j < 5; j++)
			if (i != j)
				assert_int_equal(w.nodes[i].downs[j], 0);
	world_release(&w);
	assert_int_equal(count_fds(), fds);
}

/* Both dial: whichever of the two comes first, in the end there is one link, dialed by the lower
 * key, on both sides. */
static void both_dial_one_link_stays(void **state) {
	(void)state;
	struct world w;
	world_init(&w, 2, both_dial_at_once);
	world_allow_all(&w);
	assert_true(world_until(&w, world_all_linked, NULL));
	world_advance(&w, 30 * 1000000LL);
	assert_true(world_all_linked(&w, NULL));
	struct pollfd fds[PEERS_MAX_FDS];
	for (int i = 0; i < 2; i++) {
		assert_int_equal(peers_pollfds(w.nodes[i].peers, fds, PEERS_MAX_FDS), 2); /* listener, one link */
		assert_int_equal(w.nodes[i].fatals[1 - i], 0);
		assert_int_equal(w.nodes[i].ups[1 - i], w.nodes[i].downs[1 - i] + 1);
	}
	world_release(&w);
}

/* Two nodes that dial each other, each through its own proxy, with both HELLOs on their way and
 * held. */
struct crossing {
	struct world w;
	struct tcp_proxy proxy[2]; /* proxy[i]: dialed by node i */
	int lower;
};

static bool both_hold(struct world *w, void *ctx) {
	(void)w;
	struct crossing *c = ctx;
	return proxy_holds(&c->proxy[0]) && proxy_holds(&c->proxy[1]);
}

static bool one_line_left(struct world *w, void *ctx) {
	struct crossing *c = ctx;
	return world_all_linked(w, NULL) && proxy_open_lines(&c->proxy[0]) + proxy_open_lines(&c->proxy[1]) == 1;
}

static void crossing_init(struct crossing *c) {
	world_init(&c->w, 2, both_dial_at_once);
	c->lower = memcmp(c->w.nodes[0].id.key, c->w.nodes[1].id.key, NET_KEY_BYTES) < 0 ? 0 : 1;
	for (int i = 0; i < 2; i++) {
		struct node *to = &c->w.nodes[1 - i];
		proxy_init(&c->proxy[i], peers_port(to->peers));
		c->proxy[i].hold = true;
		world_actor(&c->w, proxy_step, &c->proxy[i]);
		snprintf(to->ref.candidates[0].addr, sizeof to->ref.candidates[0].addr, "127.0.0.1:%u", c->proxy[i].port);
	}
	world_allow_all(&c->w);
	assert_true(world_until(&c->w, both_hold, c));
}

static void crossing_release(struct crossing *c) {
	world_release(&c->w);
	for (int i = 0; i < 2; i++)
		proxy_release(&c->proxy[i]);
}

/* Whichever HELLO comes first: the link that the lower key dialed is the one that stays. */
static void crossed_dials_end_in_the_lower_keys_link(void **state) {
	(void)state;
	for (int first = 0; first < 2; first++) {
		struct crossing c;
		crossing_init(&c);
		c.proxy[first].hold = false;
		assert_true(world_until(&c.w, world_all_linked, NULL));
		c.proxy[1 - first].hold = false;
		assert_true(world_until(&c.w, one_line_left, &c));
		assert_int_equal(proxy_open_lines(&c.proxy[c.lower]), 1);
		world_advance(&c.w, 5 * 1000000LL);
		assert_true(one_line_left(&c.w, &c));
		/* When the right link was there first, it never broke. */
		if (first == c.lower)
			for (int i = 0; i < 2; i++)
				assert_int_equal(c.w.nodes[i].ups[1 - i], 1);
		crossing_release(&c);
	}
}

/* Ten pairs at once, several times over: every pair ends with one link, whoever was first. */
static void all_dial_at_once_one_link_per_pair(void **state) {
	(void)state;
	for (int run = 0; run < 4; run++) {
		struct world w;
		struct pollfd fds[PEERS_MAX_FDS];
		world_init_in_memory(&w, 5, both_dial_at_once);
		for (int i = 0; i < run; i++)
			world_step(&w);
		world_allow_all(&w);
		assert_true(world_until(&w, world_all_linked, NULL));
		world_advance(&w, 30 * 1000000LL);
		assert_true(world_all_linked(&w, NULL));
		for (int i = 0; i < 5; i++)
			assert_int_equal(peers_pollfds(w.nodes[i].peers, fds, PEERS_MAX_FDS), 1 + 4);
		world_release(&w);
	}
}

static void undialable_worker_dials(void **state) {
	(void)state;
	struct world w;
	world_init_in_memory(&w, 2, dial_only_second);
	snprintf(w.nodes[1].ref.candidates[0].addr, sizeof w.nodes[1].ref.candidates[0].addr,
			 "127.0.0.1:1"); /* nobody listens there */
	world_allow_all(&w);
	assert_true(world_until(&w, world_all_linked, NULL));
	assert_int_equal(peers_port(w.nodes[1].peers), 0);
	world_release(&w);
}

static void bulk_and_control_interleave(void **state) {
	(void)state;
	struct world w;
	world_link_in_memory(&w, 2);
	queue_bulk(&w.nodes[0], 1, 200, 66560, 1);
	queue_bulk(&w.nodes[1], 0, 30, NET_MAX_CHUNK_BYTES, 2);
	for (int i = 0; i < 5; i++)
		world_step(&w);
	uint32_t before = w.nodes[1].got_bulk[0];
	w.nodes[0].pings[1] = 1;
	assert_true(world_until(&w, world_quiet_bulk, NULL));
	assert_int_equal(w.nodes[1].got_pings[0], 1);
	assert_int_equal(w.nodes[1].got_bulk[0], 200);
	assert_int_equal(w.nodes[0].got_bulk[1], 30);
	assert_false(w.nodes[0].bad_body || w.nodes[1].bad_body);
	/* The ping overtook what the owner still had to send. */
	assert_true(before < 200 && w.nodes[1].bulk_at_ping[0] < 200);
	world_release(&w);
}

static bool a_part_came(struct world *w, void *ctx) {
	(void)ctx;
	return w->nodes[1].parts[0] > 0;
}

static bool a_ping_came(struct world *w, void *ctx) {
	(void)ctx;
	return w->nodes[1].got_pings[0] > 0;
}

/* While nobody knows how fast the line is, slices are short: PING goes between those of one
 * frame. */
static void a_ping_overtakes_the_frame_under_way(void **state) {
	(void)state;
	struct world w;
	world_link_in_memory(&w, 2);
	queue_bulk(&w.nodes[0], 1, 1, NET_MAX_CHUNK_BYTES, 3);
	assert_true(world_until(&w, a_part_came, NULL));
	w.nodes[0].pings[1] = 1;
	assert_true(world_until(&w, a_ping_came, NULL));
	assert_int_equal(w.nodes[1].got_bulk[0], 0);
	assert_true(world_until(&w, world_quiet_bulk, NULL));
	assert_false(w.nodes[1].bad_body);
	world_release(&w);
}

static void awkward_sizes_arrive(void **state) {
	(void)state;
	static const uint32_t sizes[] = {1, 63, 16320, 16321, 16384, 65535, 65537, NET_MAX_CHUNK_BYTES};
	struct world w;
	world_link_in_memory(&w, 2);
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		queue_bulk(&w.nodes[0], 1, 3, sizes[i], (uint8_t)i);
		assert_true(world_until(&w, world_quiet_bulk, NULL));
	}
	assert_false(w.nodes[1].bad_body);
	assert_int_equal(w.nodes[1].got_bulk[0], 3 * sizeof sizes / sizeof sizes[0]);
	world_release(&w);
}

/* What one side sends is what the other receives, to the byte, handshakes included; bulk costs
 * little more than itself. */
static void bytes_are_counted_at_the_socket(void **state) {
	(void)state;
	struct world w;
	world_link(&w, 2);
	queue_bulk(&w.nodes[0], 1, 64, 66560, 3);
	assert_true(world_until(&w, world_quiet_bulk, NULL));
	struct peers_traffic a = peers_total(w.nodes[0].peers), b = peers_total(w.nodes[1].peers);
	assert_int_equal(a.tx_bytes, b.rx_bytes);
	assert_int_equal(a.rx_bytes, b.tx_bytes);
	assert_int_equal(a.tx_frames, b.rx_frames);
	uint64_t payload = 64 * 66560;
	assert_true(a.tx_bytes > payload && a.tx_bytes < payload + payload / 200 + 4096);
	world_release(&w);
}

static bool all_is_delivered(struct world *w, void *ctx) {
	return peers_delivered(w->nodes[0].peers) >= *(const uint64_t *)ctx;
}

/* What the line has carried is what was acknowledged: never more than was written. */
static void delivered_bytes_follow_written_ones(void **state) {
	(void)state;
	struct world w;
	uint64_t payload = 64 * 66560;
	world_link(&w, 2);
	queue_bulk(&w.nodes[0], 1, 64, 66560, 3);
	uint64_t first = 1;
	assert_true(world_until(&w, all_is_delivered, &first));
	assert_true(peers_delivered(w.nodes[0].peers) <= peers_total(w.nodes[0].peers).tx_bytes);
	assert_true(world_until(&w, all_is_delivered, &payload));
	assert_true(peers_delivered(w.nodes[0].peers) <= peers_total(w.nodes[0].peers).tx_bytes);
	assert_true(peers_delivered(w.nodes[1].peers) < payload / 8);
	world_release(&w);
}

/* ---- caps: virtual time, so how fast the machine is does not matter ---- */

enum { CAP_BYTES_PER_S = 500 * 1000, CAP_FRAME_BYTES = 8000, CAP_FRAMES = 25 };

static void cap_upload_of_first(struct peers_config *cfg, int node) {
	cfg->max_up = node == 0 ? CAP_BYTES_PER_S : 0;
}

static void cap_download_of_first(struct peers_config *cfg, int node) {
	cfg->max_down = node == 0 ? CAP_BYTES_PER_S : 0;
}

static uint64_t capped_bytes(const struct world *w) {
	struct peers_traffic t = peers_total(w->nodes[0].peers);
	return w->nodes[0].cfg.max_up > 0 ? t.tx_bytes : t.rx_bytes;
}

struct cap_watch {
	int64_t from_us;
	uint64_t from_bytes;
};

/* Checks at every step that no more has passed than the cap allows, a full bucket and a ping
 * included. */
static bool watch_cap(struct world *w, void *ctx) {
	const struct cap_watch *c = ctx;
	double seconds = (double)(w->now_us - c->from_us) / 1e6;
	double most = CAP_BYTES_PER_S * (seconds + RATE_DEPTH_US / 1e6) + 1000;
	assert_true((double)(capped_bytes(w) - c->from_bytes) * 1500 / 1448 <= most);
	return world_quiet_bulk(w, NULL);
}

static bool ping_came(struct world *w, void *ctx) {
	(void)watch_cap(w, ctx);
	return w->nodes[2].got_pings[0] > 0;
}

static void an_upload_keeps_its_cap_and_control_its_pace(void **state) {
	(void)state;
	struct world w;
	world_init_in_memory(&w, 3, cap_upload_of_first);
	world_allow_all(&w);
	assert_true(world_until(&w, world_all_linked, NULL));
	struct cap_watch c = {w.now_us, capped_bytes(&w)};
	queue_bulk(&w.nodes[0], 1, CAP_FRAMES, CAP_FRAME_BYTES, 5);
	w.nodes[0].bulk[2] = CAP_FRAMES;
	for (int i = 0; i < 100; i++)
		world_step(&w);
	uint32_t before = w.nodes[2].got_bulk[0];
	w.nodes[0].pings[2] = 1;
	assert_true(world_until(&w, ping_came, &c));
	/* The frame that was under way, and one that the loop may have brought meanwhile. */
	assert_true(before < CAP_FRAMES / 2 && w.nodes[2].bulk_at_ping[0] <= before + 2);
	assert_true(world_until(&w, watch_cap, &c));
	/* Both links had their share all the time. */
	assert_int_equal(w.nodes[1].got_bulk[0], CAP_FRAMES);
	assert_false(w.nodes[1].bad_body || w.nodes[2].bad_body);
	assert_true(w.now_us - c.from_us > 600 * 1000);
	world_release(&w);
}

static void a_download_keeps_its_cap(void **state) {
	(void)state;
	struct world w;
	world_init_in_memory(&w, 3, cap_download_of_first);
	world_allow_all(&w);
	assert_true(world_until(&w, world_all_linked, NULL));
	struct cap_watch c = {w.now_us, capped_bytes(&w)};
	queue_bulk(&w.nodes[1], 0, CAP_FRAMES, CAP_FRAME_BYTES, 6);
	queue_bulk(&w.nodes[2], 0, CAP_FRAMES, CAP_FRAME_BYTES, 7);
	assert_true(world_until(&w, watch_cap, &c));
	assert_false(w.nodes[0].bad_body);
	assert_int_equal(w.nodes[0].downs[1] + w.nodes[0].downs[2], 0);
	assert_true(w.now_us - c.from_us > 600 * 1000);
	world_release(&w);
}

static bool many_parts_came(struct world *w, void *ctx) {
	(void)ctx;
	return w->nodes[1].parts[0] >= 4 || w->nodes[1].got_bulk[0] > 0;
}

static bool ten_pings_came(struct world *w, void *ctx) {
	(void)ctx;
	return w->nodes[1].got_pings[0] == 10;
}

/* What takes long to come is told of before it is whole. */
static void parts_of_a_frame_are_told(void **state) {
	(void)state;
	struct world w;
	world_init_in_memory(&w, 2, cap_upload_of_first);
	world_allow_all(&w);
	assert_true(world_until(&w, world_all_linked, NULL));
	queue_bulk(&w.nodes[0], 1, 1, NET_MAX_CHUNK_BYTES, 9);
	assert_true(world_until(&w, many_parts_came, NULL));
	assert_int_equal(w.nodes[1].got_bulk[0], 0);
	assert_true(world_until(&w, world_quiet_bulk, NULL));
	int whole = w.nodes[1].parts[0];
	assert_true(whole <= NET_MAX_CHUNK_BYTES / PEERS_PART_BYTES + 1);
	w.nodes[0].pings[1] = 10; /* small frames have no parts */
	assert_true(world_until(&w, ten_pings_came, NULL));
	assert_true(w.nodes[1].parts[0] <= whole + 1);
	world_release(&w);
}

/* It only ever dialed us: its address may be one that refuses always; but it does not come back
 * either. */
static void who_refuses_and_does_not_dial_is_gone(void **state) {
	(void)state;
	struct world w;
	world_init_in_memory(&w, 2, NULL);
	world_allow(&w, 1, 1u << 0);
	assert_true(world_until(&w, world_all_linked, NULL));
	world_allow(&w, 0, 1u << 1);
	world_advance(&w, 10 * 1000000LL);
	world_stop(&w, 1);
	assert_true(world_until(&w, is_down, &w.nodes[0]));
	world_advance(&w, 300 * 1000);
	assert_int_equal(w.nodes[0].downs[1], 1);
	assert_int_equal(w.nodes[0].fatals[1], 0);
	world_advance(&w, 2 * 1000000LL);
	assert_int_equal(w.nodes[0].fatals[1], 1);
	world_release(&w);
}

static void killed_link_comes_back(void **state) {
	(void)state;
	struct world w;
	struct tcp_proxy proxy;
	link_through(&w, &proxy, false);
	for (int i = 1; i <= 3; i++) {
		proxy_cut(&proxy);
		w.nodes[0].downs[1] = 0;
		assert_true(world_until(&w, is_down, &w.nodes[0]));
		assert_int_equal(w.nodes[0].down_why[1], RV_E_CLOSED);
		assert_int_equal(w.nodes[0].fatals[1], 0);
		assert_true(world_until(&w, world_all_linked, NULL));
	}
	queue_bulk(&w.nodes[0], 1, 5, 1000, 4);
	assert_true(world_until(&w, world_quiet_bulk, NULL));
	world_release(&w);
	proxy_release(&proxy);
}

/* kill -9 of a peer: the kernel closes its sockets and nobody listens any more: fatal, at the first
 * redial. */
static void dead_peer_is_fatal_at_the_redial(void **state) {
	(void)state;
	struct world w;
	world_init_in_memory(&w, 2, both_dial_at_once);
	world_allow_all(&w);
	assert_true(world_until(&w, world_all_linked, NULL));
	world_advance(&w, 20 * 1000000LL);
	int survivor = memcmp(w.nodes[0].id.key, w.nodes[1].id.key, NET_KEY_BYTES) < 0 ? 0 : 1; /* dialed it */
	int64_t killed_us = w.now_us;
	world_stop(&w, 1 - survivor);
	assert_true(world_until(&w, is_fatal, &w.nodes[survivor]));
	assert_int_equal(w.nodes[survivor].down_why[1 - survivor], RV_E_NOTFOUND);
	assert_non_null(strstr(w.nodes[survivor].down_text[1 - survivor], "nobody listens"));
	assert_true(w.now_us - killed_us < 1000000);
	world_start(&w, 1 - survivor);
	world_allow_all(&w);
	assert_true(world_until(&w, world_all_linked, NULL));
	world_release(&w);
}

/* A joiner is in nobody's roster: its ticket lets it in; idle for long, it is shown out. */
static void joiner_comes_in_by_its_ticket(void **state) {
	(void)state;
	struct world w;
	world_init_in_memory(&w, 2, NULL);
	world_allow(&w, 1, 1);
	assert_true(world_until(&w, world_all_linked, NULL));
	queue_bulk(&w.nodes[0], 1, 2, 5000, 5);
	assert_true(world_until(&w, world_quiet_bulk, NULL));
	world_allow(&w, 1, 0);
	w.nodes[0].downs[1] = 0;
	world_advance(&w, 61 * 1000000LL);
	assert_true(w.nodes[0].downs[1] > 0);
	assert_false(peers_linked(w.nodes[0].peers, 1));
	world_release(&w);
}

/* A ban closes the link at once and lets the member in no more, neither by the roster nor by its
 * ticket, until it is taken back. Others are not touched. */
static void the_banned_are_out(void **state) {
	(void)state;
	struct world w;
	world_link_in_memory(&w, 3);
	for (int in_roster = 0; in_roster < 2; in_roster++) {
		struct node *n = &w.nodes[0];
		n->downs[1] = n->fatals[1] = n->troubles = 0;
		peers_ban(n->peers, w.now_us, &(struct banned){2, {0, 1}}); /* our own number does not matter */
		assert_int_equal(n->fatals[1], 1);
		assert_int_equal(n->down_why[1], RV_E_AUTH);
		world_allow(&w, 0, in_roster ? 7 : 5);
		assert_true(world_until(&w, world_trouble, n)); /* it dials again */
		assert_non_null(strstr(n->trouble_text, "member 1"));
		assert_non_null(strstr(n->trouble_text, "is banned from this run"));
		world_advance(&w, 5 * 1000000LL);
		assert_false(peers_linked(n->peers, 1));
		assert_true(peers_linked(n->peers, 2));
		assert_int_equal(n->downs[2], 0);
		peers_ban(n->peers, w.now_us, &(struct banned){0});
		world_allow(&w, 0, 7);
		assert_true(world_until(&w, world_all_linked, NULL));
	}
	world_release(&w);
}

static void owner_may_ban_in_a_callback(void **state) {
	(void)state;
	struct world w;
	world_link_in_memory(&w, 2);
	w.nodes[1].ban_on_message = true;
	w.nodes[0].pings[1] = 1;
	assert_true(world_until(&w, is_down, &w.nodes[1]));
	assert_int_equal(w.nodes[1].down_why[0], RV_E_AUTH);
	assert_true(world_until(&w, is_down, &w.nodes[0]));
	assert_non_null(strstr(w.nodes[0].down_text[1], "closes the link"));
	w.nodes[1].ban_on_message = false;
	peers_ban(w.nodes[1].peers, w.now_us, &(struct banned){0});
	world_allow(&w, 1, 3);
	assert_true(world_until(&w, world_all_linked, NULL));
	world_release(&w);
}

/* A message that the owner refuses costs its sender the link, fatally, with the owner's words. */
static void owner_refuses_a_message(void **state) {
	(void)state;
	struct world w;
	world_link_in_memory(&w, 2);
	w.nodes[1].answer = RV_E_CORRUPT;
	w.nodes[0].pings[1] = 1;
	assert_true(world_until(&w, is_fatal, &w.nodes[1]));
	assert_int_equal(w.nodes[1].down_why[0], RV_E_CORRUPT);
	assert_string_equal(w.nodes[1].down_text[0], "this owner takes no ping");
	world_release(&w);
}

static void changed_key_loses_its_link(void **state) {
	(void)state;
	struct world w;
	world_link_in_memory(&w, 2);
	w.nodes[1].ref.key[3] ^= 1;
	world_allow(&w, 0, 3);
	assert_int_equal(w.nodes[0].fatals[1], 1);
	assert_int_equal(w.nodes[0].down_why[1], RV_E_AUTH);
	assert_true(world_until(&w, world_trouble, &w.nodes[0]));
	assert_false(peers_linked(w.nodes[0].peers, 1));
	world_release(&w);
}

/* A frozen peer's socket fills up: the link holds a bounded amount, and the rest of the world goes
 * on. */
static void frozen_peer_blocks_nobody(void **state) {
	(void)state;
	struct world w;
	world_link_in_memory(&w, 3);
	struct peers *frozen = w.nodes[2].peers;
	w.nodes[2].peers = NULL;
	queue_bulk(&w.nodes[0], 2, 2000, 66560, 6);
	w.nodes[0].bulk[1] = 50;
	for (int i = 0; i < WORLD_MAX_STEPS && w.nodes[1].got_bulk[0] < 50; i++)
		world_step(&w);
	assert_int_equal(w.nodes[1].got_bulk[0], 50);
	assert_true(w.nodes[0].bulk[2] > 0);
	w.nodes[2].peers = frozen;
	assert_true(world_until(&w, world_quiet_bulk, NULL));
	assert_false(w.nodes[2].bad_body);
	world_release(&w);
}

/* What travels is encrypted: the payload is on no wire, in either direction, and neither is
 * HELLO. */
static void wire_shows_nothing(void **state) {
	(void)state;
	struct world w;
	struct tcp_proxy proxy;
	link_through(&w, &proxy, true);
	queue_bulk(&w.nodes[0], 1, 4, 66560, 7);
	queue_bulk(&w.nodes[1], 0, 4, 66560, 8);
	assert_true(world_until(&w, world_quiet_bulk, NULL));
	assert_true(proxy.log_bytes > 8 * 66560);
	for (int i = 0; i < 2; i++)
		for (size_t at = 0; at + 16 <= 66560; at += 16)
			assert_null(memmem(proxy.log, proxy.log_bytes, w.nodes[i].bulk_body + at, 16));
	assert_null(memmem(proxy.log, proxy.log_bytes, w.run_id, NET_RUN_ID_BYTES));
	assert_null(memmem(proxy.log, proxy.log_bytes, "RVL1", 4));
	assert_null(memmem(proxy.log, proxy.log_bytes, w.nodes[0].id.key, NET_KEY_BYTES));
	world_release(&w);
	proxy_release(&proxy);
}

static void changed_bytes_are_noticed(void **state) {
	(void)state;
	struct world w;
	struct tcp_proxy proxy;
	link_through(&w, &proxy, false);
	proxy.flip_next = true;
	w.nodes[0].pings[1] = 1;
	assert_true(world_until(&w, is_down, &w.nodes[1]));
	assert_int_equal(w.nodes[1].down_why[0], RV_E_PROTOCOL);
	assert_int_equal(w.nodes[1].got_pings[0], 0);
	world_release(&w);
	proxy_release(&proxy);
}

static void taken_port_is_named(void **state) {
	(void)state;
	struct world w;
	struct peers *second;
	struct rv_errtext et = {0};
	world_init(&w, 1, NULL);
	struct peers_config cfg = w.nodes[0].cfg;
	cfg.listen = w.nodes[0].ref.candidates[0].addr;
	assert_int_equal(peers_new(&cfg, &second, &et), RV_E_BUSY);
	assert_non_null(strstr(et.text, w.nodes[0].ref.candidates[0].addr));
	cfg.listen = "somewhere";
	assert_int_equal(peers_new(&cfg, &second, &et), RV_E_INVALID);
	world_release(&w);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(five_link_up_and_stay),
		cmocka_unit_test(both_dial_one_link_stays),
		cmocka_unit_test(crossed_dials_end_in_the_lower_keys_link),
		cmocka_unit_test(all_dial_at_once_one_link_per_pair),
		cmocka_unit_test(undialable_worker_dials),
		cmocka_unit_test(bulk_and_control_interleave),
		cmocka_unit_test(a_ping_overtakes_the_frame_under_way),
		cmocka_unit_test(awkward_sizes_arrive),
		cmocka_unit_test(bytes_are_counted_at_the_socket),
		cmocka_unit_test(delivered_bytes_follow_written_ones),
		cmocka_unit_test(an_upload_keeps_its_cap_and_control_its_pace),
		cmocka_unit_test(a_download_keeps_its_cap),
		cmocka_unit_test(parts_of_a_frame_are_told),
		cmocka_unit_test(who_refuses_and_does_not_dial_is_gone),
		cmocka_unit_test(killed_link_comes_back),
		cmocka_unit_test(dead_peer_is_fatal_at_the_redial),
		cmocka_unit_test(joiner_comes_in_by_its_ticket),
		cmocka_unit_test(the_banned_are_out),
		cmocka_unit_test(owner_may_ban_in_a_callback),
		cmocka_unit_test(owner_refuses_a_message),
		cmocka_unit_test(changed_key_loses_its_link),
		cmocka_unit_test(frozen_peer_blocks_nobody),
		cmocka_unit_test(wire_shows_nothing),
		cmocka_unit_test(changed_bytes_are_noticed),
		cmocka_unit_test(taken_port_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
