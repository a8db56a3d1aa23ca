/* test_net_grid.c: real grids of up to 1,024 workers on a virtual network: every worker ends with
 * the lab's bytes, whatever is late, lost, or dies. */
#include "grid_world.h"
#include "tests/common/check.h"

#include <string.h>

static const struct size {
	int n, row_size;
	uint32_t n_chunks;
	int seeds;
} sizes[] = {{1, 64, 5, 2},   {3, 2, 7, 20},    {4, 2, 9, 40},    {9, 3, 16, 20},   {16, 4, 24, 10},
			 {65, 64, 33, 3}, {100, 64, 40, 2}, {256, 64, 32, 1}, {1024, 64, 64, 1}};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static struct grid_world *world_of(const struct size *s, uint64_t seed) {
	return grid_world_new(s->n, s->row_size, s->n_chunks, merge_registry[seed % 4], seed);
}

static void test_every_size_gives_the_labs_bytes(void **state) {
	(void)state;
	for (int i = 0; i < SIZES; i++)
		for (int seed = 0; seed < sizes[i].seeds; seed++) {
			struct grid_world *w = world_of(&sizes[i], (uint64_t)seed);
			assert_true(grid_world_run(w, 0));
			assert_true(grid_world_is_right(w));
			/* A mean is encoded once, whatever the layout. */
			assert_int_equal(w->encodings, sizes[i].n_chunks);
			const struct reduce_info info = grid_world_info(w);
			assert_int_equal(info.world, sizes[i].n);
			assert_int_equal(info.resent_bytes, 0);
			assert_int_equal(info.tx_bytes, info.rx_bytes);
			grid_world_free(w);
		}
}

/* Sums of sparse contributions are mostly zero: in three rows of three they travel in a seventh of
 * fp32, and arrive to the bit, also where a worker dies and links break. */
static void test_sparse_sums_travel_short(void **state) {
	(void)state;
	for (uint64_t seed = 0; seed < 6; seed++) {
		struct grid_world *w = grid_world_of(9, 3, 6, &merge_mean, &codec_topk64, seed);
		if (seed > 0) {
			(void)grid_world_step(w, 100 * seed);
			grid_world_flap(w, 0.2);
		}
		if (seed > 2) {
			for (int i = 0; i < 9; i++)
				grid_world_start(w, i);
			grid_world_kill(w, (int)seed, true);
			grid_world_next_attempt(w, 0);
		}
		assert_true(grid_world_run(w, 20));
		assert_true(grid_world_is_right(w));
		if (seed == 0) { /* of each chunk two rows send their sums to the third */
			const struct reduce_info info = grid_world_info(w);
			const uint64_t payload = chunking_total_bytes(&w->chunks, w->cfg.codec),
						   sums = 2 * merge_partial_bytes(w->chunks.n);
			const uint64_t others = (9 * 2 * 2 / 3 + 3 * 2 * 2 / 3) * payload + w->data_frames * REDUCE_HEADER_BYTES;
			assert_int_equal(info.tx_bytes, info.rx_bytes);
			assert_in_range(info.tx_bytes, others, others + sums / 7 + 4 * payload);
		}
		grid_world_free(w);
	}
}

static void test_up_to_row_size_it_is_the_single_core(void **state) {
	(void)state;
	struct grid_world *w = grid_world_new(64, 64, 64, &merge_mean, 1);
	assert_int_equal(w->plan.n_rows, 1);
	assert_true(grid_world_run(w, 0));
	assert_true(grid_world_is_right(w));
	assert_int_equal(grid_world_most_links(w), 63);
	/* 2 (N-1) payloads in all, and a header a chunk: nothing more is sent. */
	const uint64_t payload = chunking_total_bytes(&w->chunks, w->cfg.codec);
	assert_int_equal(grid_world_info(w).tx_bytes, 2 * 63 * (payload + 64 * REDUCE_HEADER_BYTES));
	grid_world_free(w);
}

static void test_losses_and_late_links_lose_nothing(void **state) {
	(void)state;
	for (int i = 1; i < SIZES - 2; i++)
		for (int seed = 0; seed < sizes[i].seeds; seed++) {
			struct grid_world *w = world_of(&sizes[i], 1000 + (uint64_t)seed);
			grid_world_delay(w, 0.2);
			for (int k = 0; k < 6; k++) {
				(void)grid_world_step(w, (uint64_t)sizes[i].n * 8);
				grid_world_flap(w, 0.1);
			}
			assert_true(grid_world_run(w, 20));
			assert_true(grid_world_is_right(w));
			assert_int_equal(w->encodings, sizes[i].n_chunks);
			grid_world_free(w);
		}
}

/* ---- deaths ---- */

enum { ACCUSED = 9 }; /* ticks, of a PING's second: the silent are accused, those that wait for them are not yet */

static int place_of(const struct grid_world *w, int node) {
	for (int place = 0; place < w->plan.first[w->plan.n_rows]; place++)
		if (w->node_at[place] == node)
			return place;
	return -1;
}

static bool is_dead(const struct grid_world *w, int place) {
	return !w->nodes[w->node_at[place]].alive;
}

/* Nobody accuses one that lives, and each dead one of which something is owed is accused. */
static void check_suspects(const struct grid_world *w, bool all) {
	bool accused[GRID_MAX_NODES] = {false};
	for (int i = 0; i < w->n; i++) {
		if (!w->nodes[i].alive || !w->nodes[i].grid)
			continue;
		const struct grid_suspects s = grid_suspects(w->nodes[i].grid);
		for (int k = 0; k < s.n; k++) {
			assert_true(k == 0 || s.places[k] > s.places[k - 1]);
			assert_true(is_dead(w, s.places[k]));
			accused[s.places[k]] = true;
		}
	}
	for (int place = 0; all && place < w->plan.first[w->plan.n_rows]; place++)
		assert_true(!is_dead(w, place) || accused[place]);
}

static void start_all(struct grid_world *w) {
	for (int i = 0; i < w->n; i++)
		grid_world_start(w, i);
}

static void test_deaths_at_any_time(void **state) {
	(void)state;
	for (int i = 1; i < SIZES - 1; i++)
		for (int seed = 0; seed < 3 * sizes[i].seeds; seed++) {
			struct grid_world *w = world_of(&sizes[i], 5000 + (uint64_t)seed);
			const uint64_t n = (uint64_t)w->n;
			(void)grid_world_step(w, rv_rng_below(&w->rng, n * 40));
			start_all(w);
			for (int deaths = 0; deaths < 1 + seed % 2; deaths++)
				grid_world_kill(w, (int)rv_rng_below(&w->rng, n), seed % 3 == 0);
			if (!grid_world_run(w, ACCUSED)) {
				check_suspects(w, false);
				grid_world_next_attempt(w, 0);
			}
			const bool anybody = w->plan.first[w->plan.n_rows] > 0;
			assert_true(!anybody || grid_world_run(w, ACCUSED));
			assert_true(!anybody || grid_world_is_right(w));
			grid_world_free(w);
		}
}

/* A contributor and an owner die in different rows before anything has moved: each is accused by
 * somebody, nobody else is. */
static void test_the_dead_are_accused_and_nobody_else(void **state) {
	(void)state;
	for (int reset = 0; reset < 2; reset++) {
		struct grid_world *w = grid_world_new(16, 4, 16, &merge_mean, 3);
		start_all(w);
		grid_world_kill(w, 1, reset);
		grid_world_kill(w, 11, reset);
		assert_false(grid_world_run(w, ACCUSED));
		check_suspects(w, true);
		assert_int_equal(place_of(w, 11), 11);
		grid_world_free(w);
	}
}

/* The last frames of an attempt are under way when an owner dies: contributions of other rows, and
 * their partial sums, are not sent again. */
static void test_a_death_costs_its_row_and_the_means(void **state) {
	(void)state;
	struct grid_world *w = grid_world_new(64, 8, 64, &merge_mean, 7);
	assert_int_equal(w->plan.n_rows, 8);
	assert_true(grid_world_run(w, 0));
	const uint64_t all = grid_world_info(w).tx_bytes;
	grid_world_kill(w, 9, true);
	const uint64_t before = grid_world_info(w).tx_bytes;
	grid_world_next_attempt(w, 0);
	assert_true(grid_world_run(w, 0));
	assert_true(grid_world_is_right(w));
	const uint64_t sent = grid_world_info(w).tx_bytes - before;
	/* The means are others now: their gathers are about half of everything. Of contributions only
	 * those to the dead one's chunks, and of partial sums those of its row and its column. */
	assert_in_range(sent * 100 / all, 40, 60);
	grid_world_free(w);
}

/* A row that fails is out of the mean; the others' round commits. */
static void test_a_row_that_fails_is_left_out(void **state) {
	(void)state;
	for (int seed = 0; seed < 20; seed++) {
		struct grid_world *w = grid_world_new(16, 4, 24, &merge_mean, (uint64_t)seed);
		(void)grid_world_step(w, rv_rng_below(&w->rng, 600));
		start_all(w);
		grid_world_next_attempt(w, 1u << seed % 4);
		assert_true(grid_world_run(w, 0));
		assert_true(grid_world_is_right(w));
		assert_int_equal(w->plan.first[4], 12);
		grid_world_next_attempt(w, (1u << seed % 4) | (1u << (seed + 1) % 4));
		assert_true(grid_world_run(w, 0));
		assert_true(grid_world_is_right(w));
		grid_world_free(w);
	}
}

/* ---- what a check must find ---- */

/* If the coordinator did not announce that a row has changed, partial sums of its former roster
 * would be counted: the bytes are wrong, and this test's own check says so. */
static void test_the_check_finds_sums_of_a_former_roster(void **state) {
	(void)state;
	int wrong = 0;
	for (int seed = 0; seed < 20; seed++) {
		struct grid_world *w = grid_world_new(16, 4, 24, &merge_mean, (uint64_t)seed);
		w->forget_since = true;
		(void)grid_world_step(w, 400);
		start_all(w);
		grid_world_kill(w, 2, true);
		grid_world_next_attempt(w, 0);
		wrong += !grid_world_run(w, 0) || !grid_world_is_right(w);
		grid_world_free(w);
	}
	assert_true(wrong > 0);
}

static void test_messages_of_others_are_refused(void **state) {
	(void)state;
	struct grid_world *w = grid_world_new(16, 4, 16, &merge_mean, 3);
	uint8_t data[512] = {0};
	struct rv_errtext et = {0};
	start_all(w);
	struct grid *g = w->nodes[0].grid;
	const int row_mate = grid_peer_of(g, w->nodes[1].member), owner = grid_peer_of(g, w->nodes[4].member);
	assert_int_equal(grid_peer_of(g, w->nodes[5].member), -1); /* another column's */
	struct reduce_msg m = {.type = REDUCE_SCATTER, .round = 5, .attempt = 2, .data = data, .data_bytes = 512};
	assert_int_equal(grid_receive(g, 1, owner, &m, &et), RV_OK); /* another attempt's layout may be another */
	m.attempt = 1;
	assert_int_equal(grid_receive(g, 1, owner, &m, &et), RV_E_PROTOCOL);
	assert_non_null(strstr(et.text, "a row that is not its own"));
	m.column = true;
	assert_int_equal(grid_receive(g, 1, row_mate, &m, &et), RV_E_PROTOCOL);
	assert_non_null(strstr(et.text, "which the two do not share"));
	m.section = 4;
	assert_int_equal(grid_receive(g, 1, owner, &m, &et), RV_E_PROTOCOL);
	m.section = 0;
	m.chunk = 5; /* not in the column */
	assert_int_equal(grid_receive(g, 1, owner, &m, &et), RV_E_PROTOCOL);
	assert_non_null(strstr(et.text, "chunk 5 of 4"));
	const struct grid_suspects s = grid_suspects(g);
	assert_int_equal(s.n, 1); /* the other's link is dropped for it */
	assert_int_equal(s.places[0], 4);
	grid_world_free(w);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_size_gives_the_labs_bytes),
		cmocka_unit_test(test_sparse_sums_travel_short),
		cmocka_unit_test(test_up_to_row_size_it_is_the_single_core),
		cmocka_unit_test(test_losses_and_late_links_lose_nothing),
		cmocka_unit_test(test_deaths_at_any_time),
		cmocka_unit_test(test_the_dead_are_accused_and_nobody_else),
		cmocka_unit_test(test_a_death_costs_its_row_and_the_means),
		cmocka_unit_test(test_a_row_that_fails_is_left_out),
		cmocka_unit_test(test_the_check_finds_sums_of_a_former_roster),
		cmocka_unit_test(test_messages_of_others_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
