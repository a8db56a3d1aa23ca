/* Tokenizing files: the tokens of the whole text in order, whatever the threads and wherever it was
 * broken off. */
#include "tests/common/scratch.h"
#include "tests/tokenizer/tokenizer_fixture.h"

#include "train/text/tokenizer/shard.h"
#include "train/text/tokenizer/text_blocks.h"
#include "train/text/tokenizer/tokenize_job.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPIES = 700, SHARD_TOKENS = 40000 };

struct world {
	char dir[64];
	struct tokenizer *t;
	struct encoder *e;
	uint8_t *text;
	struct mapped_file list[2];
	uint64_t begin[2];
	struct data_files files;
	struct text_blocks blocks;
	struct block_source source;
	struct token_list wanted;
};

static int setup(void **state) {
	struct world *w = calloc(1, sizeof *w);
	size_t n = strlen(fixture_text), bytes = n * COPIES;
	*state = w;
	assert_non_null(w);
	scratch_make(w->dir, sizeof w->dir);
	fixture_tokenizer(350, &w->t, &w->e);
	w->text = malloc(bytes);
	assert_non_null(w->text);
	for (size_t i = 0; i < bytes; i++)
		w->text[i] = (uint8_t)fixture_text[i % n];
	w->list[0] = (struct mapped_file){.path = "a", .at = w->text, .bytes = bytes};
	w->list[1] = (struct mapped_file){.path = "b", .at = w->text + 5, .bytes = 1000};
	w->begin[1] = bytes;
	w->files = (struct data_files){.files = w->list, .begin = w->begin, .n_files = 2, .bytes = bytes + 1000};
	assert_ok(text_blocks_init(&w->blocks, &w->files, &et));
	w->source = text_blocks_source(&w->blocks);
	const uint32_t separator = tokenizer_end_of_text(w->t);
	for (int i = 0; i < 2; i++) {
		assert_ok(token_list_append(&w->wanted, &separator, 1, &et));
		assert_ok(tokenizer_encode(w->e, w->list[i].at, w->list[i].bytes, SPECIALS_AS_TEXT, &w->wanted, &et));
	}
	return 0;
}

static int teardown(void **state) {
	struct world *w = *state;
	scratch_remove(w->dir);
	text_blocks_release(&w->blocks);
	token_list_release(&w->wanted);
	encoder_free(w->e);
	tokenizer_free(w->t);
	free(w->text);
	free(w);
	return 0;
}

static struct tokenize_config config(struct world *w, const char *name, int threads, char out[128]) {
	snprintf(out, 128, "%s/%s", w->dir, name);
	assert_ok(rv_dir_make(out, 0700, &et));
	return (struct tokenize_config){.tokenizer = w->t,
									.blocks = &w->source,
									.out = out,
									.made_of = rv_hash_of("text", 4),
									.separator = tokenizer_end_of_text(w->t),
									.shard_tokens = SHARD_TOKENS,
									.threads = threads};
}

static void assert_output(const struct world *w, const struct tokenize_config *c, const struct tokenize_state *s) {
	struct token_list all = {0};
	assert_true(s->done);
	assert_int_equal(s->tokens, w->wanted.n);
	assert_int_equal(s->shards, (w->wanted.n + SHARD_TOKENS - 1) / SHARD_TOKENS);
	for (uint64_t i = 0; i < s->shards; i++) {
		char path[200];
		struct shard shard;
		snprintf(path, sizeof path, "%s/tokens-%06d.bin", c->out, (int)i);
		assert_ok(shard_open(&shard, path, &et));
		assert_true(shard.n_tokens == SHARD_TOKENS || i + 1 == s->shards);
		assert_ok(token_list_reserve(&all, shard.n_tokens, &et));
		assert_ok(shard_read(&shard, 350, 0, shard.n_tokens, (int32_t *)all.ids + all.n, &et));
		all.n += shard.n_tokens;
		shard_close(&shard);
	}
	assert_int_equal(all.n, w->wanted.n);
	assert_memory_equal(all.ids, w->wanted.ids, all.n * sizeof *all.ids);
	token_list_release(&all);
}

static void the_tokens_are_those_of_the_whole_text(void **state) {
	struct world *w = *state;
	for (int threads = 1; threads <= 3; threads++) {
		char out[128], name[16];
		struct tokenize_state s;
		snprintf(name, sizeof name, "t%d", threads);
		struct tokenize_config c = config(w, name, threads, out);
		assert_ok(tokenize_job_run(&c, &s, &et));
		assert_output(w, &c, &s);
		assert_ok(tokenize_job_run(&c, &s, &et)); /* again: there is nothing to do */
		assert_output(w, &c, &s);
	}
}

/* A directory where a shard is to be: writing it fails, like a full disk, as often as one likes. */
static void it_goes_on_where_it_was_broken_off(void **state) {
	struct world *w = *state;
	char out[128];
	struct tokenize_state s;
	struct tokenize_config c = config(w, "broken", 2, out);
	for (uint64_t i = 0; i * SHARD_TOKENS < w->wanted.n; i += 3) {
		char path[200];
		struct rv_errtext why = {0};
		snprintf(path, sizeof path, "%s/tokens-%06d.bin", out, (int)i);
		assert_int_equal(mkdir(path, 0700), 0);
		assert_int_not_equal(tokenize_job_run(&c, &s, &why), RV_OK);
		assert_non_null(strstr(why.text, path));
		assert_int_equal(s.shards, i);
		assert_int_equal(rmdir(path), 0);
		c.threads = 1 + (int)(i % 3);
	}
	assert_ok(tokenize_job_run(&c, &s, &et));
	assert_output(w, &c, &s);
}

static bool stop(void *ctx, uint64_t bytes_done, uint64_t shards) {
	(void)bytes_done;
	(void)shards;
	return ++*(int *)ctx % 2 == 0;
}

/* Where it stops depends on the clock; what comes out at the end does not. */
static void it_goes_on_after_being_stopped(void **state) {
	struct world *w = *state;
	char out[128];
	struct tokenize_state s;
	struct tokenize_config c = config(w, "stopped", 2, out);
	int ticks = 0;
	c.tick = stop;
	c.ctx = &ticks;
	enum rv_err e;
	for (int i = 0; i < 100 && (e = tokenize_job_run(&c, &s, NULL)) != RV_OK; i++)
		assert_int_equal(e, RV_E_CANCELLED);
	c.tick = NULL;
	assert_ok(tokenize_job_run(&c, &s, &et));
	assert_output(w, &c, &s);
}

/* ---- progress ---- */

/* Compressed text: blocks of BLOCK_BYTES from FILE_BYTES each of the files. More blocks than a
 * batch; the last one waits for two reports: the second is of all blocks but itself. */
enum { PACKED_BLOCKS = 20, BLOCK_BYTES = 1000, FILE_BYTES = 10 };

struct packed {
	struct world *w;
	atomic_bool is_last;
	sem_t reported;
	uint64_t most; /* bytes in the largest report */
	int shrank;    /* number of reports of less than one before */
};

static enum rv_err packed_load(void *ctx, uint64_t begin, uint64_t want, uint64_t *n, struct rv_errtext *et) {
	(void)ctx;
	(void)et;
	uint64_t left = PACKED_BLOCKS - begin;
	*n = left < want ? left : want;
	return RV_OK;
}

static enum rv_err packed_get(const void *ctx, uint64_t i, uint8_t buffer[TEXT_BLOCK_BUFFER_BYTES],
							  struct text_block *out, struct rv_errtext *et) {
	struct packed *p = (void *)(uintptr_t)ctx;
	(void)buffer;
	(void)et;
	*out = (struct text_block){.at = p->w->text, .n = BLOCK_BYTES};
	if (i + 1 < PACKED_BLOCKS)
		return RV_OK;
	atomic_store(&p->is_last, true);
	for (int k = 0; k < 2; k++)
		(void)sem_wait(&p->reported);
	return RV_OK;
}

static uint64_t packed_bytes_before(const void *ctx, uint64_t i) {
	(void)ctx;
	return i * FILE_BYTES;
}

static bool note_report(void *ctx, uint64_t bytes_done, uint64_t shards) {
	struct packed *p = ctx;
	(void)shards;
	p->shrank += bytes_done < p->most;
	p->most = bytes_done > p->most ? bytes_done : p->most;
	if (atomic_load(&p->is_last))
		sem_post(&p->reported);
	return true;
}

static void progress_is_in_bytes_of_the_files(void **state) {
	struct world *w = *state;
	char out[128];
	struct tokenize_state s;
	struct packed p = {.w = w};
	const struct block_source source = {
		.ctx = &p, .load = packed_load, .get = packed_get, .bytes_before = packed_bytes_before};
	struct tokenize_config c = config(w, "packed", 1, out);
	assert_int_equal(sem_init(&p.reported, 0, 0), 0);
	c.blocks = &source;
	c.tick = note_report;
	c.ctx = &p;
	assert_ok(tokenize_job_run(&c, &s, &et));
	assert_in_range(p.most, (PACKED_BLOCKS - 1) * FILE_BYTES, PACKED_BLOCKS * FILE_BYTES);
	assert_int_equal(p.shrank, 0);
	sem_destroy(&p.reported);
}

static void another_job_is_refused(void **state) {
	struct world *w = *state;
	char out[128], path[200];
	struct tokenize_state s;
	struct rv_errtext why = {0};
	struct tokenize_config c = config(w, "other", 1, out);
	assert_ok(tokenize_job_run(&c, &s, &et));
	c.made_of = rv_hash_of("other", 5);
	assert_int_equal(tokenize_job_run(&c, &s, &why), RV_E_PROTOCOL);
	assert_non_null(strstr(why.text, out));
	snprintf(path, sizeof path, "%s/tokens.json", out);
	assert_ok(rv_file_write_atomic(path, "{}", 2, 0600, &et));
	assert_int_equal(tokenize_job_run(&c, &s, &why), RV_E_CORRUPT);
	assert_non_null(strstr(why.text, path));
	s = (struct tokenize_state){.made_of = c.made_of, .block = w->blocks.n + 1};
	assert_ok(tokenize_state_write(out, &s, &et));
	assert_int_equal(tokenize_job_run(&c, &s, &why), RV_E_CORRUPT);
	s = (struct tokenize_state){.made_of = c.made_of, .skip = 1 << 30};
	assert_ok(tokenize_state_write(out, &s, &et));
	assert_int_equal(tokenize_job_run(&c, &s, &why), RV_E_PROTOCOL);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_tokens_are_those_of_the_whole_text),
		cmocka_unit_test(it_goes_on_where_it_was_broken_off),
		cmocka_unit_test(it_goes_on_after_being_stopped),
		cmocka_unit_test(progress_is_in_bytes_of_the_files),
		cmocka_unit_test(another_job_is_refused),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
