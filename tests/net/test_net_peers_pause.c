/* test_net_peers_pause.c: a mesh that its owner pauses, and caps that change while links are up. */
#include "mesh_world.h"
#include "net/mesh/rate.h"
#include "tests/common/check.h"

#include <stdlib.h>
#include <string.h>

static uint64_t all_bytes(const struct world *w, int node) {
	const struct peers_traffic t = peers_total(w->nodes[node].peers);
	return t.tx_bytes + t.rx_bytes;
}

static bool is_alone(struct world *w, void *node) {
	const struct node *n = node;
	for (int i = 0; i < w->n; i++)
		if (peers_linked(n->peers, (uint32_t)i) || (i != (int)n->member && peers_linked(w->nodes[i].peers, n->member)))
			return false;
	return true;
}

/* Others dial it all the while; not a byte passes. Then it is linked again with those that a
 * document names. */
static void a_pause_ends_all_links(void **state) {
	(void)state;
	struct world w;
	world_link(&w, 3);
	struct node *n = &w.nodes[0];
	peers_pause(n->peers, w.now_us, true);
	assert_true(world_until(&w, is_alone, n));
	assert_int_equal(n->downs[1] + n->downs[2], 2);
	assert_int_equal(n->fatals[1] + n->fatals[2], 0);
	assert_int_equal(w.nodes[1].fatals[0] + w.nodes[2].fatals[0], 0); /* a BYE: not a fault of its */
	const uint64_t bytes = all_bytes(&w, 0);
	world_allow_all(&w);
	world_advance(&w, 30 * 1000000LL);
	assert_true(is_alone(&w, n));
	assert_int_equal(all_bytes(&w, 0), bytes);
	assert_true(peers_linked(w.nodes[1].peers, 2));
	peers_pause(n->peers, w.now_us, false);
	world_allow_all(&w);
	assert_true(world_until(&w, world_all_linked, NULL));
	world_release(&w);
}

static void a_pause_without_links(void **state) {
	(void)state;
	struct world w;
	const int fds = count_fds();
	world_init(&w, 2, NULL);
	peers_pause(w.nodes[0].peers, w.now_us, true);
	peers_pause(w.nodes[0].peers, w.now_us, true);
	world_allow_all(&w);
	world_advance(&w, 1000000);
	peers_pause(w.nodes[0].peers, w.now_us, false);
	world_allow_all(&w);
	assert_true(world_until(&w, world_all_linked, NULL));
	world_release(&w);
	assert_int_equal(count_fds(), fds);
}

enum { CAP_BYTES_PER_S = 500 * 1000, FRAME_BYTES = 8000, FRAMES = 25 };

static void queue(struct node *n, uint32_t to) {
	free(n->bulk_body);
	n->bulk_body = calloc(1, FRAME_BYTES);
	assert_non_null(n->bulk_body);
	n->bulk_bytes = FRAME_BYTES;
	n->bulk[to] = FRAMES;
}

/* Returns how long the frames take from node 0 to node 1, or back. */
static int64_t bulk_us(struct world *w, int from) {
	const int64_t began_us = w->now_us;
	queue(&w->nodes[from], (uint32_t)(1 - from));
	assert_true(world_until(w, world_quiet_bulk, NULL));
	return w->now_us - began_us;
}

/* The least that the frames take under the cap, a full bucket less. */
static int64_t least_us(void) {
	return FRAMES * (int64_t)FRAME_BYTES * 1000000 / CAP_BYTES_PER_S - RATE_DEPTH_US;
}

static void an_upload_cap_changes(void **state) {
	(void)state;
	struct world w;
	world_link(&w, 2);
	struct peers *p = w.nodes[0].peers;
	assert_true(bulk_us(&w, 0) < least_us() / 2);
	assert_int_equal(peers_set_caps(p, w.now_us, CAP_BYTES_PER_S, 0, NULL), RV_OK);
	assert_true(bulk_us(&w, 0) >= least_us());
	assert_int_equal(w.nodes[0].downs[1], 0);
	assert_int_equal(peers_set_caps(p, w.now_us, 0, 0, NULL), RV_OK);
	assert_true(bulk_us(&w, 0) < least_us() / 2);
	world_release(&w);
}

/* The receive buffers have to be others: it is linked anew, on the port that others know. */
static void a_download_cap_changes(void **state) {
	(void)state;
	struct world w;
	world_link(&w, 2);
	struct peers *p = w.nodes[0].peers;
	const uint16_t port = peers_port(p);
	assert_int_equal(peers_set_caps(p, w.now_us, 0, CAP_BYTES_PER_S, NULL), RV_OK);
	assert_int_equal(w.nodes[0].downs[1], 1);
	assert_int_equal(peers_port(p), port);
	assert_true(world_until(&w, world_all_linked, NULL));
	assert_true(bulk_us(&w, 1) >= least_us());
	assert_int_equal(peers_set_caps(p, w.now_us, 0, 0, NULL), RV_OK);
	assert_true(world_until(&w, world_all_linked, NULL));
	assert_true(bulk_us(&w, 1) < least_us() / 2);
	world_release(&w);
}

/* What something else sends over the line, the mesh does not. */
static void other_bytes_are_charged(void **state) {
	(void)state;
	struct world w;
	world_link(&w, 2);
	struct peers *p = w.nodes[0].peers;
	assert_int_equal(peers_set_caps(p, w.now_us, CAP_BYTES_PER_S, 0, NULL), RV_OK);
	peers_charge(p, 2 * CAP_BYTES_PER_S, 0);
	assert_true(bulk_us(&w, 0) >= 2 * 1000000 + least_us());
	world_release(&w);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pause_ends_all_links),  cmocka_unit_test(a_pause_without_links),
		cmocka_unit_test(an_upload_cap_changes),   cmocka_unit_test(a_download_cap_changes),
		cmocka_unit_test(other_bytes_are_charged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
