/* test_net_grid_planted.c: bugs planted in the cores of a grid (base/planted.h) are found by the
 * checks of test_net_grid.c: wrong bytes, honest ones accused, or an assertion. Each runs in a
 * process of its own. */
#include "grid_world.h"
#include "tests/common/check.h"

#include "base/planted.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *planted;

bool rv_planted_bug(const char *name) {
	return planted != NULL && strcmp(name, planted) == 0;
}

static bool accuses_only_the_dead(const struct grid_world *w) {
	for (int i = 0; i < w->n; i++) {
		struct grid_suspects s = {.n = 0};
		if (w->nodes[i].alive && w->nodes[i].grid)
			s = grid_suspects(w->nodes[i].grid);
		for (int k = 0; k < s.n; k++)
			if (w->nodes[w->node_at[s.places[k]]].alive)
				return false;
	}
	return true;
}

/* One death in 16 workers, 4 x 4, of which the others hear when a peer has been silent. */
static bool goes_well(uint64_t seed) {
	enum { ACCUSED = 9 };
	struct grid_world *w = grid_world_new(16, 4, 24, &merge_mean, seed);
	(void)grid_world_step(w, rv_rng_below(&w->rng, 900));
	for (int i = 0; i < w->n; i++)
		grid_world_start(w, i);
	grid_world_kill(w, (int)rv_rng_below(&w->rng, 16), false);
	bool well = grid_world_run(w, ACCUSED) || accuses_only_the_dead(w);
	grid_world_next_attempt(w, 0);
	well = well && grid_world_run(w, ACCUSED) && grid_world_is_right(w);
	grid_world_free(w);
	return well;
}

static bool all_go_well(const char *bug) {
	const pid_t child = fork();
	if (child == 0) {
		planted = bug;
		if (freopen("/dev/null", "w", stderr) == NULL) /* the text of an assertion */
			_exit(0);
		for (uint64_t seed = 0; seed < 40; seed++)
			if (!goes_well(seed))
				_exit(1);
		_exit(0);
	}
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void test_without_a_bug_all_goes_well(void **state) {
	(void)state;
	assert_true(all_go_well(NULL));
}

static void test_each_bug_is_found(void **state) {
	(void)state;
	static const char *const bugs[] = {"keep-void-sums", "keep-former-sums", "send-unmade-sums", "accuse-the-waiting"};
	for (size_t i = 0; i < sizeof bugs / sizeof bugs[0]; i++)
		if (all_go_well(bugs[i]))
			fail_msg("%s was not found", bugs[i]);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_a_bug_all_goes_well),
		cmocka_unit_test(test_each_bug_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
