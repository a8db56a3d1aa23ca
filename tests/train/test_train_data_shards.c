/* test_train_data_shards.c: a dataset of token shards: who sees which token, across files and
 * across a stop; and what names a dataset.
 *
 * Token i is i times an odd number modulo 2^20: a bijection, so a token says where it stands. */
#include "tests/train/train_fixture.h"

#include "train/text/tokenizer/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHARDS = 3, EVERY = 5, CONTEXT = 100, BLOCKS = 23, PER_BLOCK = (DATA_BLOCK - 1) / CONTEXT };
enum { TOKENS = BLOCKS * DATA_BLOCK + 777, VOCAB = 1 << 20, ODD = 0x9e375, FILES = 3 };

struct fixture {
	char dir[256];
	uint32_t *tokens;
	int32_t *where; /* (VOCAB) position of a token */
};

static void write_shard(const struct fixture *f, const char *name, size_t from, size_t to) {
	char path[300];
	struct shard_writer w;
	snprintf(path, sizeof path, "%s/%s", f->dir, name);
	assert_int_equal(shard_writer_begin(&w, path, VOCAB, NULL), RV_OK);
	assert_int_equal(shard_writer_append(&w, f->tokens + from, to - from, NULL), RV_OK);
	assert_int_equal(shard_writer_commit(&w, NULL), RV_OK);
}

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof *f);
	assert_non_null(f);
	f->tokens = malloc(TOKENS * sizeof *f->tokens);
	f->where = malloc(VOCAB * sizeof *f->where);
	assert_true(f->tokens && f->where);
	for (uint32_t i = 0; i < TOKENS; i++) {
		f->tokens[i] = i * ODD % VOCAB;
		f->where[f->tokens[i]] = (int32_t)i;
	}
	scratch_make(f->dir, sizeof f->dir);
	write_shard(f, "a.bin", 0, 70001); /* borders within blocks */
	write_shard(f, "b.bin", 70001, 70013);
	write_shard(f, "c.bin", 70013, TOKENS);
	*state = f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	scratch_remove(f->dir);
	free(f->tokens);
	free(f->where);
	free(f);
	return 0;
}

static struct dataset_config config_of(const struct fixture *f) {
	return (struct dataset_config){
		.path = f->dir, .vocab = VOCAB, .n_shards = SHARDS, .holdout_every = EVERY, .context = CONTEXT, .seed = 1};
}

static struct dataset *open_config(const struct dataset_config *cfg) {
	struct dataset *d;
	assert_ok(dataset_open(cfg, &d, &et));
	return d;
}

/* Position of a sequence's first token; asserts that inputs and targets are one run of tokens. */
static uint32_t locate(const struct fixture *f, const int32_t *inputs, const int32_t *targets) {
	uint32_t at = (uint32_t)f->where[inputs[0]];
	for (uint32_t i = 0; i < CONTEXT; i++) {
		assert_int_equal(inputs[i], f->tokens[at + i]);
		assert_int_equal(targets[i], f->tokens[at + i + 1]);
	}
	return at;
}

static uint32_t read_train(const struct fixture *f, const struct dataset *d, uint32_t shard, uint64_t cursor) {
	int32_t in[CONTEXT], out[CONTEXT];
	assert_ok(dataset_train_sequence(d, shard, cursor, in, out, &et));
	return locate(f, in, out);
}

/* Workers stop and start again in the middle of an epoch, with nothing but their cursor: after it
 * no token was skipped or seen twice, none of another's, and never a held-out one. */
static void check_an_epoch(struct fixture *f, bool contiguous) {
	uint8_t *owner = calloc(TOKENS, 1);
	assert_non_null(owner);
	struct dataset_config cfg = config_of(f);
	cfg.contiguous = contiguous;
	uint64_t seen = 0;
	for (uint32_t s = 0; s < SHARDS; s++) {
		struct dataset *d = open_config(&cfg);
		uint64_t n = dataset_train_sequences(d, s);
		for (uint64_t cursor = 0; cursor < n; cursor++) {
			if (cursor % (n / 3) == n / 5) {
				dataset_close(d);
				d = open_config(&cfg);
			}
			uint32_t at = read_train(f, d, s, cursor);
			assert_int_equal(at / DATA_BLOCK, (at + CONTEXT) / DATA_BLOCK);
			assert_int_not_equal(at / DATA_BLOCK % EVERY, EVERY - 1);
			for (uint32_t i = at; i < at + CONTEXT; i++) {
				assert_int_equal(owner[i], 0);
				owner[i] = (uint8_t)(s + 1);
			}
			seen++;
		}
		dataset_close(d);
	}
	assert_int_equal(seen, (uint64_t)(BLOCKS - BLOCKS / EVERY) * PER_BLOCK);
	for (uint32_t block = 0; block < BLOCKS; block++) /* a block belongs to one shard */
		for (uint32_t i = block * DATA_BLOCK; i < (block + 1) * DATA_BLOCK; i++)
			assert_true(owner[i] == 0 || owner[i] == owner[block * DATA_BLOCK + DATA_BLOCK / 2]);
	uint8_t last = 0;
	int changes = 0;
	for (uint32_t i = 0; i < TOKENS; i++)
		if (owner[i] != 0 && owner[i] != last) {
			last = owner[i];
			changes++;
		}
	assert_true(contiguous ? changes == SHARDS : changes > SHARDS);
	free(owner);
}

static void test_an_epoch_across_stops_is_each_shard_once(void **state) {
	check_an_epoch(*state, false);
	check_an_epoch(*state, true);
}

/* A replica on shards: saved in the middle of an epoch and of a micro-batch's run, continued by
 * another over files opened again, bit for bit as if it had never stopped. */
static void test_a_replica_resumes_on_shards(void **state) {
	struct fixture *f = *state;
	struct run_config run = fixture_config();
	const struct dataset_config cfg = {.path = f->dir, .n_shards = 2, .holdout_every = 4, .context = 16, .seed = 7};
	const struct backend_options opt = {.threads = 1, .compute = DTYPE_F32, .isa = "auto"};
	const struct replica_options mine = {.shard = 1, .n_shards = 2};
	struct backend *be;
	struct replica *r, *resumed;
	struct step_stats stats;
	char straight[65], stopped[65];
	run.vocab = VOCAB;
	run.n_embd = 8;
	run.n_layer = 1;
	run.batch = 3;
	assert_int_equal(backend_open("cpu", &opt, &be, NULL), RV_OK);
	struct dataset *a = open_config(&cfg), *b = open_config(&cfg);
	assert_int_equal(replica_new(&run, a, &mine, be, &r, NULL), RV_OK);
	assert_int_equal(replica_step(r, &stats, NULL), RV_OK);
	uint8_t *saved = malloc(replica_state_bytes(r));
	assert_non_null(saved);
	replica_save(r, saved);
	assert_int_equal(replica_step(r, &stats, NULL), RV_OK);
	fixture_theta_hash(r, straight);
	assert_int_equal(replica_new(&run, b, &mine, be, &resumed, NULL), RV_OK);
	assert_int_equal(replica_load(resumed, saved, replica_state_bytes(resumed), NULL), RV_OK);
	assert_int_equal(replica_step(resumed, &stats, NULL), RV_OK);
	fixture_theta_hash(resumed, stopped);
	assert_string_equal(straight, stopped);
	free(saved);
	replica_free(r);
	replica_free(resumed);
	dataset_close(a);
	dataset_close(b);
	backend_close(be);
}

static struct rv_hash identity_of(const struct dataset_config *cfg) {
	struct dataset *d = open_config(cfg);
	struct rv_hash h = dataset_identity(d);
	dataset_close(d);
	return h;
}

static struct data_content content_of(const struct dataset_config *cfg) {
	struct dataset *d = open_config(cfg);
	struct data_content c;
	assert_int_equal(dataset_content(d, &c, NULL), RV_OK);
	dataset_close(d);
	return c;
}

/* Whatever file it is in, and however it is dealt out; every token counts. */
static void test_the_content_is_that_of_tokens(void **state) {
	struct fixture *f = *state;
	char path[300];
	struct dataset_config cfg = config_of(f), other = cfg;
	const struct data_content c = content_of(&cfg);
	assert_int_equal(strncmp(c.text, "sha256:", 7), 0);
	assert_int_equal(strlen(c.text), 7 + 64);
	write_shard(f, "whole", 0, TOKENS);
	snprintf(path, sizeof path, "%s/whole", f->dir);
	other.path = path;
	other.seed++;
	other.n_shards++;
	other.holdout_every++;
	other.context++;
	assert_string_equal(content_of(&other).text, c.text);
	f->tokens[9 * DATA_BLOCK + 5000] ^= 1; /* none that dataset_identity looks at */
	write_shard(f, "whole", 0, TOKENS);
	f->tokens[9 * DATA_BLOCK + 5000] ^= 1;
	assert_string_not_equal(content_of(&other).text, c.text);
	assert_int_equal(unlink(path), 0);
}

/* Of so much text that hashing it would take long: a sample, and it says so. */
static void test_the_content_of_much_text(void **state) {
	struct fixture *f = *state;
	char path[300];
	struct dataset_config cfg = config_of(f);
	snprintf(path, sizeof path, "%s/large", f->dir);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	char letters[DATA_BLOCK];
	memset(letters, 'a', sizeof letters);
	for (int i = 0; i < DATA_CONTENT_BLOCKS; i++)
		assert_int_equal(fwrite(letters, 1, sizeof letters, file), sizeof letters);
	assert_int_equal(fflush(file), 0);
	cfg.path = path;
	cfg.vocab = 256;
	const struct data_content whole = content_of(&cfg);
	assert_int_equal(strncmp(whole.text, "sha256:", 7), 0);
	assert_int_equal(fputc('b', file), 'b');
	assert_int_equal(fflush(file), 0);
	const struct data_content sample = content_of(&cfg);
	assert_int_equal(strncmp(sample.text, "sample:", 7), 0);
	assert_int_equal(fputc('b', file), 'b');
	assert_int_equal(fflush(file), 0);
	assert_string_not_equal(content_of(&cfg).text, sample.text);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(unlink(path), 0);
}

static void test_the_identity_is_that_of_tokens_and_their_dealing(void **state) {
	struct fixture *f = *state;
	char path[300];
	struct dataset_config cfg = config_of(f), other = cfg;
	const struct rv_hash h = identity_of(&cfg), again = identity_of(&cfg);
	assert_true(rv_hash_equal(&h, &again));
	write_shard(f, "whole", 0, TOKENS); /* the same tokens in one file */
	snprintf(path, sizeof path, "%s/whole", f->dir);
	other.path = path;
	const struct rv_hash whole = identity_of(&other);
	assert_true(rv_hash_equal(&h, &whole));
	f->tokens[9 * DATA_BLOCK + 5] ^= 1;
	write_shard(f, "whole", 0, TOKENS);
	f->tokens[9 * DATA_BLOCK + 5] ^= 1;
	struct rv_hash differs = identity_of(&other);
	assert_false(rv_hash_equal(&h, &differs));
	write_shard(f, "whole", 0, TOKENS - 1);
	differs = identity_of(&other);
	assert_false(rv_hash_equal(&h, &differs));
	assert_int_equal(unlink(path), 0);
	struct dataset_config changed[] = {cfg, cfg, cfg, cfg};
	changed[0].seed++;
	changed[1].n_shards++;
	changed[2].holdout_every++;
	changed[3].context++;
	for (int i = 0; i < 4; i++) {
		differs = identity_of(&changed[i]);
		assert_false(rv_hash_equal(&h, &differs));
	}
}

/* Another tokenizer's tokens are refused at once; a stray one when it is met, and by name. */
static void test_tokens_beyond_the_vocabulary(void **state) {
	struct fixture *f = *state;
	struct dataset_config cfg = config_of(f);
	struct rv_errtext et = {0};
	struct dataset *d;
	int32_t in[CONTEXT], out[CONTEXT];
	char path[300];
	cfg.vocab = VOCAB / 2;
	assert_fault(dataset_open(&cfg, &d, &et), RV_E_RANGE, &et, "made with another tokenizer");
	assert_null(d);
	uint32_t *tokens = f->tokens, stray = 3 * DATA_BLOCK + 9000, faults = 0;
	f->tokens = calloc(TOKENS, sizeof *tokens);
	assert_non_null(f->tokens);
	f->tokens[stray] = 500;
	write_shard(f, "stray", 0, TOKENS);
	free(f->tokens);
	f->tokens = tokens;
	snprintf(path, sizeof path, "%s/stray", f->dir);
	cfg.path = path;
	cfg.vocab = 500;
	d = open_config(&cfg);
	for (uint32_t s = 0; s < SHARDS; s++)
		for (uint64_t i = 0; i < dataset_train_sequences(d, s); i++) {
			enum rv_err e = dataset_train_sequence(d, s, i, in, out, &et);
			faults += e != RV_OK;
			if (e != RV_OK)
				assert_fault(e, RV_E_CORRUPT, &et, "stray: token 58152 is 500");
		}
	assert_in_range(faults, 1, 2); /* as a target of one and an input of the next */
	dataset_close(d);
	assert_int_equal(unlink(path), 0);
}

static void test_a_file_cut_short_stops_with_a_reason(void **state) {
	struct fixture *f = *state;
	struct dataset_config cfg = config_of(f);
	struct rv_errtext et = {0};
	int32_t in[CONTEXT], out[CONTEXT];
	char path[300];
	write_shard(f, "shrinks", 0, TOKENS);
	snprintf(path, sizeof path, "%s/shrinks", f->dir);
	cfg.path = path;
	struct dataset *d = open_config(&cfg);
	assert_int_equal(truncate(path, 4096), 0);
	assert_fault(dataset_train_sequence(d, 0, 0, in, out, &et), RV_E_IO, &et, "cut short");
	assert_fault(dataset_heldout_sequence(d, 0, in, out, &et), RV_E_IO, &et, path);
	dataset_close(d);
	assert_int_equal(unlink(path), 0);
}

static void test_heldout_sequences_are_spread(void **state) {
	struct fixture *f = *state;
	struct dataset_config cfg = config_of(f);
	struct dataset *d;
	char path[300];
	uint64_t all;
	uint8_t *text = calloc(TOKENS, 1);
	assert_non_null(text);
	memset(text, 'a', TOKENS);
	fixture_write(f->dir, "text", text, TOKENS, path, sizeof path);
	free(text);
	cfg.path = path;
	d = open_config(&cfg);
	all = dataset_heldout_sequences(d);
	assert_int_equal(dataset_heldout_spread(d, 0, 10), 0);
	assert_int_equal(dataset_heldout_spread(d, 9, 10), 9 * all / 10);
	assert_int_equal(dataset_heldout_spread(d, all - 1, all), all - 1);
	dataset_close(d);
	assert_int_equal(unlink(path), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_epoch_across_stops_is_each_shard_once),
		cmocka_unit_test(test_a_replica_resumes_on_shards),
		cmocka_unit_test(test_the_content_is_that_of_tokens),
		cmocka_unit_test(test_the_content_of_much_text),
		cmocka_unit_test(test_the_identity_is_that_of_tokens_and_their_dealing),
		cmocka_unit_test(test_tokens_beyond_the_vocabulary),
		cmocka_unit_test(test_a_file_cut_short_stops_with_a_reason),
		cmocka_unit_test(test_heldout_sequences_are_spread),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
