/* What goes out when, on links in memory: the mesh's pull (net/mesh/pace.c). */
#include "mesh_world.h"
#include "tests/common/check.h"

#include <stdlib.h>
#include <string.h>

enum { MS = 1000, BULK_BYTES = 66560, LOST_SHARE = 500, UP_BYTES_PER_S = 1000 * 1000, FRAMES = 60 };

/* Sends frames from node 0 to node 1, too close together for the link to rest. */
static void send_frames(struct world *w, int n) {
	struct node *from = &w->nodes[0];
	if (from->bulk_body == NULL)
		from->bulk_body = calloc(1, BULK_BYTES);
	assert_non_null(from->bulk_body);
	from->bulk_bytes = BULK_BYTES;
	for (int i = 0; i < n; i++) {
		from->bulk[1]++;
		assert_true(world_until(w, world_quiet_bulk, NULL));
		world_advance(w, 50 * MS);
	}
}

/* Sets what node 0's connection to node 1 shows from now on; returns that connection. */
static struct memory_end *set_loss(struct world *w, uint64_t lost_share) {
	struct memory_end *busiest = NULL;
	for (int i = 0; i < w->memory->n; i++) {
		struct memory_end *e = &w->memory->ends[i];
		if (e->used && !e->listens && (busiest == NULL || e->written > busiest->written))
			busiest = e;
	}
	assert_non_null(busiest);
	busiest->lost_share = lost_share;
	return busiest;
}

static void a_link_that_loses_packets_without_a_queue_gets_bbr(void **state) {
	(void)state;
	struct world w;
	world_link_in_memory(&w, 2);
	send_frames(&w, 20);
	struct memory_end *e = set_loss(&w, 0);
	assert_string_equal(e->congestion, "cubic");
	(void)set_loss(&w, LOST_SHARE);
	send_frames(&w, 40);
	assert_string_equal(e->congestion, "bbr");
	world_release(&w);
}

/* Returns node 0's connection to node 1, over which some frames have gone. */
static struct memory_end *link_with_bulk(struct world *w) {
	world_link_in_memory(w, 2);
	send_frames(w, 20);
	return set_loss(w, 0);
}

/* The kernel lets a connection with CUBIC begin anew after a pause. */
static void a_link_rests_with_bbr_and_bulk_wakes_it(void **state) {
	(void)state;
	struct world w;
	struct memory_end *e = link_with_bulk(&w);
	assert_string_equal(e->congestion, "cubic");
	world_advance(&w, 200 * MS);
	assert_string_equal(e->congestion, "bbr");
	world_advance(&w, 60 * 1000 * MS);
	assert_string_equal(e->congestion, "bbr");
	send_frames(&w, 1);
	assert_string_equal(e->congestion, "cubic");
	world_release(&w);
}

/* What a path carried is no guess for long. */
static void a_rest_ends_after_minutes(void **state) {
	(void)state;
	struct world w;
	struct memory_end *e = link_with_bulk(&w);
	world_advance(&w, 310 * 1000 * MS);
	assert_string_equal(e->congestion, "cubic");
	world_release(&w);
}

/* Nothing is asked of a link that rests. */
static void a_link_that_rests_costs_nothing(void **state) {
	(void)state;
	struct world w;
	(void)link_with_bulk(&w);
	world_advance(&w, 1000 * MS);
	w.memory->infos = 0;
	world_advance(&w, 5000 * MS);
	assert_int_equal(w.memory->infos, 0);
	world_release(&w);
}

static void caps_the_first(struct peers_config *cfg, int node) {
	cfg->max_up = node == 0 ? UP_BYTES_PER_S : 0;
}

static void world_of_three(struct world *w) {
	world_init_in_memory(w, 3, caps_the_first);
	world_allow_all(w);
	assert_true(world_until(w, world_all_linked, NULL));
	w->nodes[0].bulk_body = calloc(1, BULK_BYTES);
	assert_non_null(w->nodes[0].bulk_body);
	w->nodes[0].bulk_bytes = BULK_BYTES;
	w->nodes[0].bulk[1] = w->nodes[0].bulk[2] = FRAMES;
}

static bool has_all(struct world *w, void *node) {
	const uint32_t *got = ((struct node *)node)->got_bulk;
	(void)w;
	return got[0] == FRAMES;
}

static bool has_two_thirds(struct world *w, void *node) {
	(void)w;
	return ((struct node *)node)->got_bulk[0] >= FRAMES * 2 / 3;
}

/* The line is what is scarce: 15 frames a second. */
static void what_others_wait_for_goes_first(void **state) {
	(void)state;
	struct world w;
	world_of_three(&w);
	w.nodes[0].awaited[2] = true;
	assert_true(world_until(&w, has_all, &w.nodes[2]));
	assert_true(w.nodes[1].got_bulk[0] < FRAMES * 2 / 3);
	assert_true(world_until(&w, has_all, &w.nodes[1]));
	world_release(&w);
}

static void without_that_links_take_turns(void **state) {
	(void)state;
	struct world w;
	world_of_three(&w);
	assert_true(world_until(&w, has_all, &w.nodes[2]));
	assert_true(w.nodes[1].got_bulk[0] >= FRAMES - 2);
	world_release(&w);
}

/* Node 2 gets a third of what node 1 gets, and a third of the line: both have all at one time. */
static void links_that_have_more_left_get_more_of_the_line(void **state) {
	(void)state;
	struct world w;
	world_of_three(&w);
	w.nodes[0].bulk[2] = FRAMES / 3;
	w.nodes[0].of_bulk[1] = FRAMES;
	w.nodes[0].of_bulk[2] = FRAMES / 3;
	assert_true(world_until(&w, has_two_thirds, &w.nodes[1]));
	assert_in_range(w.nodes[2].got_bulk[0], FRAMES * 2 / 9 - 1, FRAMES * 2 / 9 + 1);
	assert_true(world_until(&w, has_all, &w.nodes[1]));
	assert_in_range(w.nodes[2].got_bulk[0], FRAMES / 3 - 1, FRAMES / 3);
	world_release(&w);
}

/* Bulk for the other one is not put off for so long that its end would miss it. */
static void nothing_is_put_off_for_long(void **state) {
	(void)state;
	struct world w;
	world_of_three(&w);
	w.nodes[0].awaited[2] = true;
	for (int s = 0; s < 3; s++) {
		int parts = w.nodes[1].parts[0];
		world_advance(&w, 1000 * MS);
		assert_true(w.nodes[2].got_bulk[0] < FRAMES);
		assert_true(w.nodes[1].parts[0] > parts);
	}
	world_release(&w);
}

/* Of links that have nothing on the way nothing is asked, whatever happens on others. */
static void nothing_is_asked_of_idle_links(void **state) {
	(void)state;
	struct world w;
	world_link_in_memory(&w, 5);
	world_advance(&w, 1000 * MS);
	w.memory->infos = 0;
	world_advance(&w, 10000 * MS);
	assert_int_equal(w.memory->infos, 0);
	world_release(&w);
}

/* What the owner of the mesh has chosen stays. */
static void chooses_reno(struct peers_config *cfg, int node) {
	(void)node;
	cfg->congestion = "reno";
}

static void a_chosen_congestion_control_stays(void **state) {
	(void)state;
	struct world w;
	world_init_in_memory(&w, 2, chooses_reno);
	world_allow_all(&w);
	assert_true(world_until(&w, world_all_linked, NULL));
	send_frames(&w, 20);
	struct memory_end *e = set_loss(&w, LOST_SHARE);
	send_frames(&w, 40);
	assert_string_equal(e->congestion, "reno");
	world_release(&w);
}

/* A system without BBR keeps what it has; the link works on. */
static void a_system_without_bbr_goes_on(void **state) {
	(void)state;
	struct world w;
	world_link_in_memory(&w, 2);
	send_frames(&w, 20);
	struct memory_end *e = set_loss(&w, LOST_SHARE);
	e->lacks_congestion = true;
	send_frames(&w, 40);
	assert_string_equal(e->congestion, "cubic");
	assert_int_equal(w.nodes[1].got_bulk[0], 60);
	world_release(&w);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_link_that_loses_packets_without_a_queue_gets_bbr),
		cmocka_unit_test(what_others_wait_for_goes_first),
		cmocka_unit_test(without_that_links_take_turns),
		cmocka_unit_test(links_that_have_more_left_get_more_of_the_line),
		cmocka_unit_test(nothing_is_put_off_for_long),
		cmocka_unit_test(nothing_is_asked_of_idle_links),
		cmocka_unit_test(a_link_rests_with_bbr_and_bulk_wakes_it),
		cmocka_unit_test(a_rest_ends_after_minutes),
		cmocka_unit_test(a_link_that_rests_costs_nothing),
		cmocka_unit_test(a_chosen_congestion_control_stays),
		cmocka_unit_test(a_system_without_bbr_goes_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
