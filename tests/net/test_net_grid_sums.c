/* test_net_grid_sums.c: seals of partial sums (net/reduce/sums.c): a final owner can show what each
 * row has given it, and seals no mean without that. */
#include "base/merkle.h"
#include "grid_world.h"
#include "tests/common/check.h"

static const struct size {
	int n, row_size;
	uint32_t n_chunks;
} sizes[] = {{4, 2, 9}, {9, 3, 16}, {16, 4, 24}, {65, 64, 40}};
enum { SIZES = sizeof sizes / sizeof sizes[0], SEEDS = 6, LIAR = 1 };

static struct grid_world *world_of(const struct size *s, uint64_t seed) {
	struct grid_world *w = grid_world_new(s->n, s->row_size, s->n_chunks, merge_registry[seed % 4], seed);
	grid_world_seal(w);
	return w;
}

/* Counts the chunks of which the node can show all sums, and checks their leaves and lists. */
static uint32_t count_shown(const struct grid_world *w, const struct grid *g) {
	uint32_t shown = 0;
	for (int j = 0; j < NET_MAX_ROW; j++) {
		struct grid_sums s;
		if (!grid_sums(g, j, &s))
			continue;
		assert_int_equal(s.n_rows, w->plan.n_rows);
		for (int row = 0; row < s.n_rows; row++) {
			struct merkle_sum sum = {.n = 0};
			for (uint32_t c = s.first; c < s.first + s.count; c++) {
				size_t bytes;
				if (!grid_is_final(g, j, c))
					continue;
				const uint8_t *data = grid_sum_data(g, j, row, c, &bytes);
				const struct rv_hash leaf = merkle_leaf(c, data, bytes), noted = grid_sum_leaf(g, j, row, c);
				assert_true(rv_hash_equal(&leaf, &noted));
				merkle_add(&sum, &leaf);
				shown += row == 0;
			}
			const struct rv_hash root = merkle_sum_root(&sum);
			assert_true(rv_hash_equal(&root, &s.seals[row]->root));
		}
	}
	return shown;
}

/* Each chunk has one final owner, which has the seal of every row. */
static void assert_all_is_shown(const struct grid_world *w) {
	uint32_t shown = 0;
	for (int i = 0; i < w->n; i++)
		if (w->nodes[i].alive && w->nodes[i].grid)
			shown += count_shown(w, w->nodes[i].grid);
	assert_int_equal(shown, w->chunks.n_chunks);
}

static void every_sum_can_be_shown(void **state) {
	(void)state;
	for (int i = 0; i < SIZES; i++)
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			struct grid_world *w = world_of(&sizes[i], seed);
			assert_true(grid_world_run(w, 0));
			assert_true(grid_world_is_right(w));
			assert_all_is_shown(w);
			grid_world_free(w);
		}
}

/* Seals are of an attempt: after a death, with links that break, they are made again. */
static void later_attempts_have_seals_of_their_own(void **state) {
	(void)state;
	for (int i = 1; i < SIZES; i++)
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			struct grid_world *w = world_of(&sizes[i], 100 + seed);
			(void)grid_world_step(w, (uint64_t)w->n * 20 * (seed + 1));
			grid_world_flap(w, 0.3);
			for (int k = 0; k < w->n; k++)
				grid_world_start(w, k);
			grid_world_kill(w, (int)seed, true);
			grid_world_next_attempt(w, 0);
			assert_true(grid_world_run(w, 20));
			assert_true(grid_world_is_right(w));
			assert_all_is_shown(w);
			grid_world_free(w);
		}
}

static int place_of(const struct grid_world *w, int node) {
	int place = 0;
	while (w->node_at[place] != node)
		place++;
	return place;
}

/* One that signs none, or others than it sends, is accused by final owners, and nobody else is. */
static void without_its_seal_no_mean_is_sealed(void **state) {
	enum { TICKS = 40 };
	(void)state;
	for (int mute = 0; mute < 2; mute++) {
		bool accused = false;
		struct grid_world *w = world_of(&sizes[1], 7);
		w->liar = LIAR;
		w->mute = mute == 1;
		assert_false(grid_world_run(w, 0));
		for (int i = 0; i < TICKS && !accused; i++) {
			grid_world_pass_time(w);
			(void)grid_world_run(w, 0);
			for (int k = 0; k < w->n; k++) {
				const struct grid_suspects s = grid_suspects(w->nodes[k].grid);
				if (k == LIAR)
					continue;
				assert_true(s.n == 0 || (s.n == 1 && s.places[0] == place_of(w, LIAR)));
				accused |= s.n > 0;
			}
		}
		assert_true(accused && (w->refused > 0) == !w->mute);
		grid_world_free(w);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_sum_can_be_shown),
		cmocka_unit_test(later_attempts_have_seals_of_their_own),
		cmocka_unit_test(without_its_seal_no_mean_is_sealed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
