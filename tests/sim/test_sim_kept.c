/* test_sim_kept.c: universes that broke once (tests/sim/kept/, each says why) hold; and a file
 * keeps all of one. */
#include "sim_kept.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct trial {
	struct sim_options opt;
	struct sim_plan plan;
};

static struct trial *trial_new(void **state) {
	struct trial *t = sim_alloc(sizeof *t);
	*state = t;
	return t;
}

static int teardown(void **state) {
	free(*state);
	return 0;
}

static void read_kept(const char *path, struct trial *t) {
	struct rv_errtext et = {0};
	if (sim_kept_read(path, &t->opt, &t->plan, &et) != RV_OK)
		fail_msg("%s", et.text);
}

static void run_all(void **state, const char *dir, int least) {
	struct trial *t = trial_new(state);
	struct dirent **names;
	int n = scandir(dir, &names, NULL, alphasort), universes = 0;
	assert_true(n > 0);
	for (int i = 0; i < n; i++) {
		char path[1024], why[1024];
		struct sim_stats stats;
		(void)snprintf(path, sizeof path, "%s/%s", dir, names[i]->d_name);
		bool hidden = names[i]->d_name[0] == '.';
		free(names[i]);
		if (hidden)
			continue;
		read_kept(path, t);
		if (!sim_run(&t->opt, &t->plan, false, &stats, why))
			fail_msg("%s: %s: rivulet-sim --universe %s --verbose", path, why, path);
		universes++;
	}
	free(names);
	assert_true(universes >= least);
}

static void test_kept_universes_hold(void **state) {
	run_all(state, RV_SIM_KEPT, 3);
}

static void test_planted_universes_hold(void **state) {
	run_all(state, RV_SIM_PLANTED, 6);
}

/* A planted universe whose demand is not met, or whose fault never comes, does not hold. */
static void test_what_is_demanded_is_looked_at(void **state) {
	static const char *const lines[] = {"expect = commits least=21", "expect = suspected set=15 least=1",
										"expect = commits most=20\nfault = kind=killed host=1 on=log round=99"};
	struct trial *t = trial_new(state);
	char path[] = "/tmp/sim-planted-XXXXXX", why[1024];
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
		struct sim_stats stats;
		FILE *f = fopen(path, "we");
		assert_non_null(f);
		(void)fprintf(f, "rest = plain\n%s\n", lines[i]);
		assert_int_equal(fclose(f), 0);
		read_kept(path, t);
		assert_false(sim_run(&t->opt, &t->plan, false, &stats, why));
		assert_non_null(strstr(why, "planted: "));
	}
	assert_int_equal(unlink(path), 0);
}

/* A seed's universe, written and read, is the same to the last event. */
static void test_a_file_keeps_all_of_a_universe(void **state) {
	struct trial *t = trial_new(state);
	char path[] = "/tmp/sim-kept-XXXXXX", why[1024], text[1024], again[1024];
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct sim_stats before, after;
		struct rv_errtext et = {0};
		t->opt = sim_options_of(seed);
		sim_plan_of(&t->opt, &t->plan);
		sim_options_text(&t->opt, text, sizeof text);
		assert_true(sim_run(&t->opt, &t->plan, false, &before, why));
		assert_int_equal(sim_kept_write(path, &t->opt, &t->plan, "a test", &et), RV_OK);
		read_kept(path, t);
		sim_options_text(&t->opt, again, sizeof again);
		assert_true(sim_run(&t->opt, &t->plan, false, &after, why));
		assert_int_equal(before.trace, after.trace);
		assert_string_equal(text, again);
	}
	assert_int_equal(unlink(path), 0);
}

static void refuse(const char *path, const char *line, const char *because) {
	struct rv_errtext et = {0};
	struct trial *t = sim_alloc(sizeof *t);
	FILE *f = fopen(path, "we");
	assert_non_null(f);
	(void)fprintf(f, "%s\n", line);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(sim_kept_read(path, &t->opt, &t->plan, &et), RV_E_INVALID);
	if (strstr(et.text, because) == NULL)
		fail_msg("'%s' does not say '%s'", et.text, because);
	free(t);
}

static void test_what_is_no_universe_is_refused(void **state) {
	(void)state;
	char path[] = "/tmp/sim-kept-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	refuse(path, "seed = 1", "missing");
	refuse(path, "seed = 1\nseed = 1", ":2: ");
	refuse(path, "seed = one", ":1: ");
	refuse(path, "calm = 2", ":1: ");
	refuse(path, "codec = int9", ":1: ");
	refuse(path, "rounds", " = ");
	refuse(path, "fault = kind=killed host=99", "no such host");
	refuse(path, "fault = kind=kild host=1", "kind");
	refuse(path, "fault = kind=killed host=300", "host");
	refuse(path, "fault = killed", "without a value");
	refuse(path, "fault = kind=killed on=monday", ":1: on");
	refuse(path, "expect = luck", "counted");
	refuse(path, "seed = 1\nrest = plain", "2: ");
	assert_int_equal(unlink(path), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_kept_universes_hold, teardown),
		cmocka_unit_test_teardown(test_planted_universes_hold, teardown),
		cmocka_unit_test_teardown(test_what_is_demanded_is_looked_at, teardown),
		cmocka_unit_test_teardown(test_a_file_keeps_all_of_a_universe, teardown),
		cmocka_unit_test(test_what_is_no_universe_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
