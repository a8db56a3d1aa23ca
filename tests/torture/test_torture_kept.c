/* test_torture_kept.c: inner states are kept for auditors, and dropped, while every call that can
 * fail fails in turn: a round that was acknowledged is there, nothing else than what was written
 * ever is, and the next rounds are kept as if nothing had been. */
#include "tests/common/scratch.h"
#include "tests/torture/kept_scene.h"
#include "tests/torture/torture.h"

#include <string.h>

enum { TRIALS = 100 };

static void begin(void *ctx) {
	struct kept_scene *s = ctx;
	scratch_empty(s->store.dir);
	memset(&s->promises, 0, sizeof s->promises);
}

static void keep(void *ctx) {
	struct kept_scene *s = ctx;
	kept_scene_write(s, &s->promises, false);
}

static void keep_and_drop(void *ctx) {
	struct kept_scene *s = ctx;
	kept_scene_write(s, &s->promises, true);
}

static void check(void *ctx) {
	struct kept_scene *s = ctx;
	kept_scene_check(s, &s->promises);
}

static void kept(void **state) {
	(void)state;
	struct kept_scene *s = kept_scene_new();
	torture(&(struct torture){"inner states", begin, keep, check, s, TRIALS});
	kept_scene_free(s);
}

static void dropped(void **state) {
	(void)state;
	struct kept_scene *s = kept_scene_new();
	torture(&(struct torture){"dropped inner states", begin, keep_and_drop, check, s, TRIALS});
	kept_scene_free(s);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kept),
		cmocka_unit_test(dropped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
