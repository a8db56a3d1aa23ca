/* test_worker_text_donor_store.c: a member asks for one shard after the other, more than are kept
 * open: each is hashed once, as long as its file stays as it is. */
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "tests/worker/text_fixture.h"
#include "train/text/published/file_hash.h"
#include "worker/text/text_donor_store.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { SHARDS = TEXT_DONOR_STORE_FILES + 1, TIMES = 3 };

static char dir[256];
static struct manifest text;
static struct text_donor_store *store;
static struct text_donor_source source;
static atomic_int hashed;

enum rv_err __real_file_hash_open(int fd, const char *path, uint64_t bytes, struct rv_hash *out, struct rv_errtext *et);
enum rv_err __wrap_file_hash_open(int fd, const char *path, uint64_t bytes, struct rv_hash *out, struct rv_errtext *et);
enum rv_err __wrap_file_hash_open(int fd, const char *path, uint64_t bytes, struct rv_hash *out,
								  struct rv_errtext *et) {
	(void)atomic_fetch_add(&hashed, 1);
	return __real_file_hash_open(fd, path, bytes, out, et);
}

static void nothing(void *ctx) {
	(void)ctx;
}

static int set_up(void **state) {
	struct rv_hash data_hash;
	(void)state;
	scratch_make_in_memory(dir, sizeof dir);
	text_fixture_make(dir, SHARDS, &text, &data_hash);
	assert_ok(text_donor_store_open(dir, &text, nothing, NULL, &store, &et));
	source = text_donor_store_source(store);
	atomic_store(&hashed, 0);
	return 0;
}

static int tear_down(void **state) {
	(void)state;
	text_donor_store_close(store);
	scratch_remove(dir);
	return 0;
}

/* Returns true if the last bytes of the shard are given. */
static bool is_given(uint64_t shard, int64_t now_us) {
	struct frame_piece p = {.of = {.kind = FRAME_FETCH_TEXT, .round = shard, .index = 4}};
	while (!source.pieces.may_look(source.pieces.ctx, now_us, &p.of)) {
		(void)usleep(200);
		text_donor_store_reap(store, now_us);
	}
	return source.pieces.find(source.pieces.ctx, now_us, &p);
}

static void each_shard_is_hashed_once(void **state) {
	(void)state;
	for (int i = 0; i < TIMES * SHARDS; i++)
		assert_true(is_given((uint64_t)i % SHARDS, 0));
	assert_int_equal(atomic_load(&hashed), SHARDS);
}

/* Damage on the disk is found the next time that the file is opened. */
static void one_that_was_changed_is_hashed_again(void **state) {
	enum { LATER_US = 60 * 1000 * 1000 };
	char path[600], name[32];
	(void)state;
	for (uint64_t i = 0; i < SHARDS; i++)
		assert_true(is_given(i, 0));
	manifest_shard_name(0, name);
	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "r+b");
	assert_non_null(f);
	assert_int_equal(fseek(f, 5000, SEEK_SET), 0);
	assert_int_not_equal(fputc('!', f), EOF);
	assert_int_equal(fclose(f), 0);
	assert_false(is_given(0, LATER_US));
	assert_int_equal(atomic_load(&hashed), SHARDS + 1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_shard_is_hashed_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_that_was_changed_is_hashed_again, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
