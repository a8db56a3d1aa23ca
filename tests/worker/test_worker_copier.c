/* test_worker_copier.c: everything is copied, once, before `done` is called, whoever copies. */
#include "tests/common/check.h"
#include "worker/trainer/copier.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 5, ROUNDS = 40 };
static const size_t sizes[PARTS] = {3u << 20, 0, 1, (1u << 20) + 7, 0};

struct checked {
	const struct copy_part *parts;
	int n;
	atomic_int done;
	bool whole;
};

static void on_done(void *ctx) {
	struct checked *k = ctx;
	k->whole = true;
	for (int i = 0; i < k->n; i++)
		k->whole = k->whole && memcmp(k->parts[i].to, k->parts[i].from, k->parts[i].bytes) == 0;
	atomic_fetch_add(&k->done, 1);
}

static void test_everything_is_copied(void **state) {
	(void)state;
	struct copier *c = NULL;
	struct copy_part parts[PARTS];
	struct checked k = {.parts = parts, .n = PARTS};
	assert_int_equal(copier_new(&c, NULL), RV_OK);
	copier_wait(c);
	for (int i = 0; i < PARTS; i++)
		parts[i] = (struct copy_part){malloc(sizes[i] + 1), calloc(1, sizes[i] + 1), sizes[i]};
	for (int round = 1; round <= ROUNDS; round++) {
		for (int i = 0; i < PARTS; i++)
			memset((void *)(uintptr_t)parts[i].from, round + i, sizes[i]);
		copier_start(c, parts, PARTS, on_done, &k); /* the copier has its own list of them */
		copier_wait(c);
		assert_int_equal(atomic_load(&k.done), round);
		assert_true(k.whole);
	}
	copier_start(c, parts, 0, on_done, &k);
	copier_start(c, parts, PARTS, on_done, &k); /* waits for the one before */
	assert_true(atomic_load(&k.done) >= ROUNDS + 1);
	copier_free(c);
	assert_int_equal(atomic_load(&k.done), ROUNDS + 2);
	for (int i = 0; i < PARTS; i++) {
		free(parts[i].to);
		free((void *)(uintptr_t)parts[i].from);
	}
	copier_free(NULL);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_everything_is_copied)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
