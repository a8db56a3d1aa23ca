/* test_train_data.c: who sees which byte, and when.
 *
 * To see where a sequence came from, the text encodes positions: each 4-byte word is a hash of its
 * index, so that any window of 8 bytes is found at one place only. */
#include "tests/train/train_fixture.h"

#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SHARDS = 3, EVERY = 5, CONTEXT = 100, BLOCKS = 23, PER_BLOCK = (DATA_BLOCK - 1) / CONTEXT };
enum { BYTES = BLOCKS * DATA_BLOCK + 777 };

struct fixture {
	char dir[256], path[300];
	uint8_t *text;
	struct dataset *data;
};

static enum rv_err open_as(const char *path, uint32_t n_shards, uint32_t holdout_every, uint32_t context, uint64_t seed,
						   struct dataset **out, struct rv_errtext *et) {
	const struct dataset_config cfg = {
		.path = path, .n_shards = n_shards, .holdout_every = holdout_every, .context = context, .seed = seed};
	return dataset_open(&cfg, out, et);
}

static struct dataset *open_dataset(const char *path, uint64_t seed) {
	struct dataset *d = NULL;
	assert_ok(open_as(path, SHARDS, EVERY, CONTEXT, seed, &d, &et));
	return d;
}

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof *f);
	assert_non_null(f);
	f->text = malloc(BYTES);
	assert_non_null(f->text);
	for (uint64_t i = 0; i < BYTES; i++) {
		uint32_t x[4];
		rv_philox(99, 0, i / 4, x);
		f->text[i] = (uint8_t)(x[0] >> 8 * (i % 4) | 0x80); /* text has no control characters */
	}
	scratch_make(f->dir, sizeof f->dir);
	fixture_write(f->dir, "text", f->text, BYTES, f->path, sizeof f->path);
	f->data = open_dataset(f->path, 1);
	*state = f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	dataset_close(f->data);
	scratch_remove(f->dir);
	free(f->text);
	free(f);
	return 0;
}

/* Position of the sequence in the text; asserts that inputs and targets are one run of it, shifted
 * by one. */
static uint64_t locate(const struct fixture *f, const int32_t *inputs, const int32_t *targets) {
	uint8_t bytes[CONTEXT + 1];
	for (int i = 0; i < CONTEXT; i++) {
		bytes[i] = (uint8_t)inputs[i];
		assert_int_equal(bytes[i], inputs[i]);
		if (i > 0)
			assert_int_equal(targets[i - 1], inputs[i]);
	}
	bytes[CONTEXT] = (uint8_t)targets[CONTEXT - 1];
	const uint8_t *found = memmem(f->text, BYTES, bytes, sizeof bytes);
	assert_non_null(found);
	return (uint64_t)(found - f->text);
}

static bool is_heldout(uint64_t position) {
	return position / DATA_BLOCK % EVERY == EVERY - 1;
}

static void test_counts(void **state) {
	struct fixture *f = *state;
	assert_int_equal(dataset_mapped_bytes(f->data), BYTES);
	assert_int_equal(dataset_heldout_sequences(f->data), BLOCKS / EVERY * PER_BLOCK);
	uint64_t blocks = 0;
	for (uint32_t s = 0; s < SHARDS; s++)
		blocks += dataset_train_sequences(f->data, s) / PER_BLOCK;
	assert_int_equal(blocks, BLOCKS - BLOCKS / EVERY);
}

/* One epoch of each shard: no held-out byte, no byte of another shard, no input byte twice. */
static void test_an_epoch_covers_a_shard_once_and_never_the_heldout(void **state) {
	struct fixture *f = *state;
	int32_t in[CONTEXT], out[CONTEXT];
	uint8_t *owner = calloc(BYTES, 1);
	assert_non_null(owner);
	for (uint32_t s = 0; s < SHARDS; s++) {
		for (uint64_t i = 0; i < dataset_train_sequences(f->data, s); i++) {
			dataset_train_sequence(f->data, s, i, in, out, NULL);
			uint64_t at = locate(f, in, out);
			assert_int_equal(at / DATA_BLOCK, (at + CONTEXT) / DATA_BLOCK);
			assert_false(is_heldout(at));
			for (uint64_t b = at; b < at + CONTEXT; b++) {
				assert_int_equal(owner[b], 0);
				owner[b] = (uint8_t)(s + 1);
			}
			assert_true(owner[at + CONTEXT] == 0 || owner[at + CONTEXT] == s + 1);
		}
	}
	for (uint64_t block = 0; block < BLOCKS; block++) /* a block belongs to one shard */
		for (uint64_t b = block * DATA_BLOCK; b < (block + 1) * DATA_BLOCK; b++)
			assert_true(owner[b] == 0 || owner[b] == owner[block * DATA_BLOCK + DATA_BLOCK / 2]);
	free(owner);
}

static void test_later_epochs_too_and_in_another_order(void **state) {
	struct fixture *f = *state;
	int32_t in[CONTEXT], out[CONTEXT];
	uint64_t n = dataset_train_sequences(f->data, 1), same = 0;
	uint8_t *seen = calloc(BYTES, 1);
	assert_non_null(seen);
	for (uint64_t i = 0; i < n; i++) {
		dataset_train_sequence(f->data, 1, 1000 * n + i, in, out, NULL);
		uint64_t at = locate(f, in, out);
		assert_false(is_heldout(at) || is_heldout(at + CONTEXT));
		assert_int_equal(seen[at], 0);
		seen[at] = 1;
		dataset_train_sequence(f->data, 1, i, in, out, NULL);
		same += locate(f, in, out) / CONTEXT == at / CONTEXT;
	}
	assert_in_range(same, 0, n / 20);
	free(seen);
}

static void test_heldout_sequences_are_the_heldout_blocks(void **state) {
	struct fixture *f = *state;
	int32_t in[CONTEXT], out[CONTEXT];
	uint64_t last = 0;
	for (uint64_t i = 0; i < dataset_heldout_sequences(f->data); i++) {
		dataset_heldout_sequence(f->data, i, in, out, NULL);
		uint64_t at = locate(f, in, out);
		assert_true(is_heldout(at) && is_heldout(at + CONTEXT));
		assert_true(i == 0 || at >= last + CONTEXT);
		last = at;
	}
}

static void test_order_depends_on_seed_and_cursor_alone(void **state) {
	struct fixture *f = *state;
	int32_t a[CONTEXT], b[CONTEXT], out[CONTEXT];
	struct dataset *again = open_dataset(f->path, 1), *other = open_dataset(f->path, 2);
	int differ = 0;
	for (uint64_t i = 20; i-- > 0;) { /* backwards: nothing depends on what was read before */
		dataset_train_sequence(f->data, 0, i, a, out, NULL);
		dataset_train_sequence(again, 0, i, b, out, NULL);
		assert_memory_equal(a, b, sizeof a);
		dataset_train_sequence(other, 0, i, b, out, NULL);
		differ += memcmp(a, b, sizeof a) != 0;
	}
	assert_true(differ > 15);
	dataset_close(again);
	dataset_close(other);
}

/* Cut at awkward places and with an empty file between, a directory reads like the one file. */
static void test_a_directory_is_the_concatenation_of_its_files(void **state) {
	struct fixture *f = *state;
	char dir[256], path[300];
	scratch_make(dir, sizeof dir);
	fixture_write(dir, "c", f->text + 70001, BYTES - 70001, path, sizeof path);
	fixture_write(dir, "a", f->text, 33, path, sizeof path);
	fixture_write(dir, "b", f->text + 33, 70001 - 33, path, sizeof path);
	fixture_write(dir, "aa", f->text, 0, path, sizeof path);
	snprintf(path, sizeof path, "%s/d", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof path, "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	struct dataset *d = open_dataset(dir, 1);
	assert_int_equal(dataset_mapped_bytes(d), BYTES);
	int32_t a[CONTEXT], a_out[CONTEXT], b[CONTEXT], b_out[CONTEXT];
	for (uint64_t i = 0; i < dataset_train_sequences(d, 2); i++) {
		dataset_train_sequence(f->data, 2, i, a, a_out, NULL);
		dataset_train_sequence(d, 2, i, b, b_out, NULL);
		assert_memory_equal(a, b, sizeof a);
		assert_memory_equal(a_out, b_out, sizeof a_out);
	}
	dataset_close(d);
	scratch_remove(dir);
}

static void test_too_little_text_names_the_size_needed(void **state) {
	struct fixture *f = *state;
	struct rv_errtext et = {0};
	struct dataset *d;
	char path[300];
	fixture_write(f->dir, "small", f->text, 5 * DATA_BLOCK - 1, path, sizeof path);
	assert_fault(open_as(path, 3, EVERY, CONTEXT, 1, &d, &et), RV_E_RANGE, &et, "at least 81920: use more text");
	assert_null(d);
	fixture_write(f->dir, "small", f->text, 5 * DATA_BLOCK, path, sizeof path);
	assert_int_equal(open_as(path, 4, EVERY, CONTEXT, 1, &d, &et), RV_OK);
	for (uint32_t s = 0; s < 4; s++)
		assert_int_equal(dataset_train_sequences(d, s), PER_BLOCK);
	dataset_close(d);
	assert_fault(open_as(path, 5, EVERY, CONTEXT, 1, &d, &et), RV_E_RANGE, &et, "at least 98304: use more text");
	assert_null(strstr(et.text, "fewer")); /* a worker cannot change its run */
}

/* Only what could be changed, and would do, is advised. */
static void test_the_advice_can_be_followed(void **state) {
	struct fixture *f = *state;
	char path[400];
	struct rv_errtext et = {0};
	struct dataset *d;
	static const struct {
		int blocks;
		uint32_t shards, every;
		const char *advice;
	} cases[] = {{5, 8, 50, ": use more text, or fewer data-shards and a smaller holdout-every"},
				 {5, 8, 4, ": use more text or fewer data-shards"},
				 {2, 1, 50, ": use more text or a smaller holdout-every"},
				 {1, 1, 2, ": use more text"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		fixture_write(f->dir, "small", f->text, (size_t)cases[i].blocks * DATA_BLOCK, path, sizeof path);
		struct dataset_config cfg = {.path = path,
									 .n_shards = cases[i].shards,
									 .holdout_every = cases[i].every,
									 .context = 8,
									 .refusal = DATA_TO_CHOOSE};
		assert_int_equal(dataset_open(&cfg, &d, &et), RV_E_RANGE);
		assert_string_equal(strstr(et.text, ": use"), cases[i].advice);
		cfg.refusal = DATA_OF_ANY_RUN;
		assert_int_equal(dataset_open(&cfg, &d, &et), RV_E_RANGE);
		assert_non_null(strstr(et.text, "any run needs at least"));
		assert_null(strstr(et.text, "data-shards"));
	}
}

static void test_faults_name_the_path_or_the_limit(void **state) {
	struct fixture *f = *state;
	struct rv_errtext et = {0};
	struct dataset *d;
	assert_fault(open_as("/nonexistent/text", 1, 2, 8, 1, &d, &et), RV_E_NOTFOUND, &et, "/nonexistent/text");
	assert_fault(open_as("/dev/null", 1, 2, 8, 1, &d, &et), RV_E_INVALID, &et, "/dev/null");
	assert_fault(open_as(f->path, 0, 2, 8, 1, &d, &et), RV_E_RANGE, &et, "shards");
	assert_fault(open_as(f->path, 1, 1, 8, 1, &d, &et), RV_E_RANGE, &et, "held out");
	assert_fault(open_as(f->path, 1, 2, DATA_BLOCK, 1, &d, &et), RV_E_RANGE, &et, "16383");
}

static void test_the_longest_context_fits_a_block(void **state) {
	struct fixture *f = *state;
	struct dataset *d;
	assert_ok(open_as(f->path, 1, 2, DATA_BLOCK - 1, 1, &d, &et));
	int32_t *in = malloc(DATA_BLOCK * sizeof *in), *out = malloc(DATA_BLOCK * sizeof *out);
	assert_true(in && out);
	dataset_heldout_sequence(d, 0, in, out, NULL);
	assert_int_equal(in[0], f->text[DATA_BLOCK]);
	assert_int_equal(out[DATA_BLOCK - 2], f->text[2 * DATA_BLOCK - 1]);
	free(in);
	free(out);
	dataset_close(d);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_an_epoch_covers_a_shard_once_and_never_the_heldout),
		cmocka_unit_test(test_later_epochs_too_and_in_another_order),
		cmocka_unit_test(test_heldout_sequences_are_the_heldout_blocks),
		cmocka_unit_test(test_order_depends_on_seed_and_cursor_alone),
		cmocka_unit_test(test_a_directory_is_the_concatenation_of_its_files),
		cmocka_unit_test(test_too_little_text_names_the_size_needed),
		cmocka_unit_test(test_the_advice_can_be_followed),
		cmocka_unit_test(test_faults_name_the_path_or_the_limit),
		cmocka_unit_test(test_the_longest_context_fits_a_block),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
