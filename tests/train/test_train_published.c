/* test_train_published.c: what is published is read back, damage is named, a broken-off job ends in
 * the same bytes, and a terabyte costs no more than a megabyte. */
#include "tests/tokenizer/tokenizer_fixture.h"
#include "tests/train/train_fixture.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/hex.h"
#include "train/text/data.h"
#include "train/text/published/index_pages.h"
#include "train/text/published/publish_job.h"
#include "train/text/published/published.h"
#include "train/text/token_source.h"
#include "train/text/tokenizer/shard.h"
#include "train/text/tokenizer/text_blocks.h"
#include "train/text/tokenizer/tokenize_job.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPIES = 1200, VOCAB = 350, SHARD_TOKENS = 16384 };

/* The text of the last fault. */
static struct rv_errtext why;
/* Whether the job has called tick(). */
static atomic_bool has_ticked;

struct fixture {
	char dir[256], text_path[300], tokenizer_path[300];
	struct tokenizer *t;
	struct encoder *e;
	struct data_files files;
	struct text_blocks blocks;
	struct block_source source;
	struct token_list wanted;
	struct manifest stated;
	int ticks; /* until the job is stopped; negative: never */
	void (*repaired)(void *ctx, uint64_t shard);
};

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof *f);
	size_t bytes;
	uint8_t *text = fixture_copies(COPIES, &bytes);
	assert_non_null(f);
	scratch_make_in_memory(f->dir, sizeof f->dir);
	fixture_write(f->dir, "text", text, bytes, f->text_path, sizeof f->text_path);
	char *json = fixture_json(VOCAB);
	fixture_write(f->dir, "t.json", (const uint8_t *)json, strlen(json), f->tokenizer_path, sizeof f->tokenizer_path);
	free(json);
	assert_ok(tokenizer_open(f->tokenizer_path, "auto", &f->t, &et));
	assert_ok(encoder_new(f->t, &f->e, &et));
	assert_ok(data_files_init(&f->files, f->text_path, NULL, &et));
	assert_ok(text_blocks_init(&f->blocks, &f->files, &et));
	f->source = text_blocks_source(&f->blocks);
	fixture_wanted(f->t, f->e, text, bytes, &f->wanted);
	assert_true(f->wanted.n > 5 * SHARD_TOKENS);
	f->stated = (struct manifest){.shard_tokens = SHARD_TOKENS,
								  .separator = tokenizer_end_of_text(f->t),
								  .holdout_every = 50,
								  .license = "cc0-1.0",
								  .description = "A \"text\"\n\tof \xc3\xa9t\xc3\xa9",
								  .sources = {"text"},
								  .n_named = 1,
								  .n_sources = 1};
	f->ticks = -1;
	free(text);
	*state = f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	text_blocks_release(&f->blocks);
	data_files_release(&f->files);
	token_list_release(&f->wanted);
	encoder_free(f->e);
	tokenizer_free(f->t);
	scratch_remove(f->dir);
	free(f);
	return 0;
}

static void path_in(const struct fixture *f, const char *name, const char *file, char path[600]) {
	snprintf(path, 600, "%s/%s%s%s", f->dir, name, file[0] ? "/" : "", file);
}

static bool tick(void *ctx, uint64_t bytes_done, uint64_t shards) {
	struct fixture *f = ctx;
	(void)bytes_done;
	(void)shards;
	atomic_store(&has_ticked, true);
	return f->ticks < 0 || f->ticks-- > 0;
}

static enum rv_err publish(struct fixture *f, const char *name, int threads, struct manifest *m) {
	char out[600];
	uint64_t shards;
	path_in(f, name, "", out);
	assert_ok(rv_dir_make(out, 0700, &et));
	const struct publish_config c = {.tokenizer = f->t,
									 .tokenizer_file = f->tokenizer_path,
									 .blocks = &f->source,
									 .out = out,
									 .threads = threads,
									 .stated = &f->stated,
									 .tick = tick,
									 .repaired = f->repaired,
									 .ctx = f};
	return publish_job_run(&c, m, &shards, &why);
}

static void assert_same(const struct fixture *f, const char *a, const char *b, const char *file) {
	char path[600];
	size_t n_a, n_b;
	path_in(f, a, file, path);
	char *x = scratch_read(path, &n_a);
	path_in(f, b, file, path);
	char *y = scratch_read(path, &n_b);
	if (!x || !y || n_a != n_b || memcmp(x, y, n_a) != 0)
		fail_msg("%s differs between %s and %s", file, a, b);
	free(x);
	free(y);
}

static void assert_same_directories(const struct fixture *f, const char *a, const char *b, const struct manifest *m) {
	char name[32], path[600];
	assert_same(f, a, b, MANIFEST_NAME);
	assert_same(f, a, b, "tokenizer.json");
	assert_same(f, a, b, "index-0-000000.hashes");
	for (int64_t i = 0; i < m->n_shards; i++) {
		manifest_shard_name((uint64_t)i, name);
		assert_same(f, a, b, name);
	}
	path_in(f, b, "", path);
	assert_int_equal(scratch_count(path), m->n_shards + 3);
}

static void assert_reads(const struct fixture *f, const char *name) {
	char dir[600];
	struct published *p;
	int32_t *got = malloc(f->wanted.n * sizeof *got);
	path_in(f, name, "", dir);
	assert_ok(published_open(dir, &p, &et));
	assert_int_equal(published_manifest(p)->n_tokens, f->wanted.n);
	assert_ok(published_read(p, 0, f->wanted.n, got, &et));
	assert_memory_equal(got, f->wanted.ids, f->wanted.n * sizeof *got);
	assert_ok(published_read(p, SHARD_TOKENS - 3, 7, got, &et)); /* across two shards */
	assert_memory_equal(got, f->wanted.ids + SHARD_TOKENS - 3, 7 * sizeof *got);
	assert_ok(published_check_tokenizer(p, &et));
	published_close(p);
	free(got);
}

static void what_is_published_is_read_back(void **state) {
	struct fixture *f = *state;
	struct manifest one, two;
	char dir[600];
	struct token_source s;
	assert_int_equal(publish(f, "one", 1, &one), RV_OK);
	assert_int_equal(publish(f, "two", 3, &two), RV_OK);
	assert_same_directories(f, "one", "two", &one);
	assert_reads(f, "two");
	path_in(f, "one", "", dir);
	scratch_write(dir, "publish.log", "x", 1); /* killed just before it would have been removed */
	assert_int_equal(publish(f, "one", 1, &one), RV_E_INVALID);
	assert_int_equal(scratch_count(dir), two.n_shards + 3);
	assert_true(strstr(why.text, "published already") != NULL);
	path_in(f, "one", "", dir);
	assert_ok(token_source_open(&s, dir, 0, &et)); /* as --data */
	assert_int_equal(s.n_tokens, f->wanted.n);
	assert_false(token_source_is_text(&s));
	token_source_release(&s);
	assert_fault(token_source_open(&s, dir, VOCAB - 1, &why), RV_E_RANGE, &why, "vocabulary of 350");
}

static int n_repaired;
static uint64_t repaired_last;

static void on_repaired(void *ctx, uint64_t shard) {
	(void)ctx;
	n_repaired++;
	repaired_last = shard;
}

static enum rv_err publish_again(struct fixture *f, const char *name, struct manifest *m) {
	n_repaired = 0;
	f->repaired = on_repaired;
	const enum rv_err e = publish(f, name, 2, m);
	f->repaired = NULL;
	return e;
}

static void damage(const struct fixture *f, const char *name, uint64_t shard, long at) {
	char path[600], file[32];
	manifest_shard_name(shard, file);
	path_in(f, name, file, path);
	FILE *o = fopen(path, "r+b");
	assert_non_null(o);
	assert_int_equal(fseek(o, at, SEEK_SET), 0);
	const int c = fgetc(o);
	assert_int_equal(fseek(o, at, SEEK_SET), 0);
	assert_int_not_equal(fputc(c ^ 1, o), EOF);
	assert_int_equal(fclose(o), 0);
}

/* A byte that flipped, a file that was cut and one that is gone: made again, and nothing else. */
static void damaged_shards_are_made_again(void **state) {
	struct fixture *f = *state;
	struct manifest m, again;
	char path[600], dir[600], file[32];
	assert_int_equal(publish(f, "whole", 1, &m), RV_OK);
	assert_int_equal(publish(f, "worn", 1, &again), RV_OK);
	assert_fault(publish_again(f, "worn", &again), RV_E_INVALID, &why, "and all of its shards are whole");
	assert_int_equal(n_repaired, 0);
	damage(f, "worn", 1, 1500);
	assert_fault(publish(f, "worn", 1, &again), RV_E_INVALID, &why, "published already:"); /* who did not ask */
	manifest_shard_name(2, file);
	path_in(f, "worn", file, path);
	assert_int_equal(truncate(path, 100), 0);
	manifest_shard_name((uint64_t)m.n_shards - 1, file);
	path_in(f, "worn", file, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(publish_again(f, "worn", &again), RV_OK);
	assert_int_equal(n_repaired, 3);
	assert_int_equal(repaired_last, m.n_shards - 1);
	assert_int_equal(again.n_tokens, m.n_tokens);
	assert_same_directories(f, "whole", "worn", &m);
	path_in(f, "worn", "repair", dir);
	assert_int_equal(access(dir, F_OK), -1);
}

/* Other options make another text, which takes no shard's place. */
static void another_text_repairs_nothing(void **state) {
	struct fixture *f = *state;
	struct manifest m, again;
	const int64_t separator = f->stated.separator;
	assert_int_equal(publish(f, "worn", 1, &m), RV_OK);
	damage(f, "worn", 0, 1500);
	f->stated.separator = -1;
	assert_fault(publish_again(f, "worn", &again), RV_E_INVALID, &why, "make another one");
	assert_int_equal(n_repaired, 0);
	f->stated.separator = separator;
	f->ticks = 0;
	assert_int_equal(publish_again(f, "worn", &again), RV_E_CANCELLED);
	f->ticks = -1;
	assert_int_equal(publish_again(f, "worn", &again), RV_OK);
	assert_int_equal(n_repaired, 1);
}

/* A run that names its text takes no other: not a text that is not published, nor another one. */
static void a_run_takes_the_text_that_it_names(void **state) {
	struct fixture *f = *state;
	char dir[600], hex[2 * RV_HASH_BYTES + 1];
	struct manifest m;
	struct rv_hash hash;
	struct dataset *d;
	f->stated.holdout_every = 5;
	assert_int_equal(publish(f, "named", 1, &m), RV_OK);
	assert_ok(manifest_hash(&m, &hash, &et));
	rv_hex_encode(hash.b, sizeof hash.b, hex);
	path_in(f, "named", "", dir);
	struct dataset_config cfg = {.path = dir,
								 .data_hash = hex,
								 .vocab = VOCAB,
								 .n_shards = 1,
								 .holdout_every = (uint32_t)f->stated.holdout_every,
								 .context = 64,
								 .order = true};
	assert_ok(dataset_open(&cfg, &d, &et));
	dataset_close(d);
	cfg.path = f->text_path;
	assert_fault(dataset_open(&cfg, &d, &why), RV_E_INVALID, &why, "and this is not published");
	cfg.path = dir;
	hex[5] = hex[5] == 'a' ? 'b' : 'a';
	assert_fault(dataset_open(&cfg, &d, &why), RV_E_INVALID, &why, "use a copy of that text");
	assert_null(d);
	cfg.data_hash = ""; /* a run whose members bring their texts */
	assert_ok(dataset_open(&cfg, &d, &et));
	dataset_close(d);
}

/* A directory where a shard is to be: writing it fails, as on a full disk. */
static void break_off_at(struct fixture *f, const char *name, int shard) {
	char path[600], file[32];
	struct manifest m;
	path_in(f, name, "", path);
	assert_ok(rv_dir_make(path, 0700, &et));
	manifest_shard_name((uint64_t)shard, file);
	path_in(f, name, file, path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_not_equal(publish(f, name, 1, &m), RV_OK);
	assert_int_equal(rmdir(path), 0);
	path_in(f, name, MANIFEST_NAME, path);
	assert_int_not_equal(access(path, F_OK), 0);
}

/* Gives a block once the job has ticked: on a fast machine a job may end before its first tick. */
static enum rv_err get_after_a_tick(const void *ctx, uint64_t i, uint8_t buffer[TEXT_BLOCK_BUFFER_BYTES],
									struct text_block *out, struct rv_errtext *e) {
	while (!atomic_load(&has_ticked))
		(void)sched_yield();
	return text_blocks_get(ctx, i, buffer, out, e);
}

static void a_broken_off_job_ends_in_the_same_bytes(void **state) {
	struct fixture *f = *state;
	struct manifest m, whole;
	assert_int_equal(publish(f, "whole", 2, &whole), RV_OK);
	for (int i = 0; i < whole.n_shards; i++)
		break_off_at(f, "broken", i);
	f->ticks = 0;
	f->source.get = get_after_a_tick;
	atomic_store(&has_ticked, false);
	assert_int_equal(publish(f, "broken", 1, &m), RV_E_CANCELLED);
	f->source = text_blocks_source(&f->blocks);
	f->ticks = -1;
	assert_int_equal(publish(f, "broken", 1, &m), RV_OK);
	assert_same_directories(f, "whole", "broken", &whole);
}

static void a_torn_shard_is_made_again(void **state) {
	struct fixture *f = *state;
	struct manifest m, whole;
	char path[600];
	assert_int_equal(publish(f, "whole", 1, &whole), RV_OK);
	for (int kind = 0; kind < 4; kind++) {
		char name[16];
		snprintf(name, sizeof name, "torn%d", kind);
		break_off_at(f, name, 4);
		path_in(f, name, kind == 3 ? "publish.log" : "shard-000001.bin", path);
		if (kind == 0)
			assert_int_equal(truncate(path, 5000), 0);
		else if (kind == 2)
			assert_int_equal(unlink(path), 0);
		else
			scratch_flip(path, 70);
		assert_int_equal(publish(f, name, 2, &m), RV_OK);
		assert_same_directories(f, "whole", name, &whole);
	}
}

/* A directory of `rivulet tokenize` of the same text, with what publishing has in its place. */
static void tokens_of_another_job_are_left_alone(void **state) {
	struct fixture *f = *state;
	struct manifest m;
	char dir[600];
	struct tokenize_state done, after;
	path_in(f, "tokens", "", dir);
	assert_ok(rv_dir_make(dir, 0700, &et));
	struct tokenize_config c = {.tokenizer = f->t,
								.blocks = &f->source,
								.out = dir,
								.separator = tokenizer_end_of_text(f->t),
								.shard_tokens = SHARD_TOKENS,
								.threads = 1};
	assert_ok(tokenize_made_of(&c, &c.made_of, &et));
	assert_ok(tokenize_job_run(&c, &done, &et));
	assert_int_equal(publish(f, "tokens", 1, &m), RV_E_PROTOCOL);
	assert_true(strstr(why.text, "choose another directory") != NULL);
	assert_ok(tokenize_state_read(dir, &after, &et));
	assert_true(after.done && after.shards == done.shards && rv_hash_equal(&after.made_of, &c.made_of));
}

static void damage_is_named(void **state) {
	struct fixture *f = *state;
	struct manifest m;
	char dir[600], path[600];
	struct published *p;
	int32_t got[8];
	assert_int_equal(publish(f, "a", 1, &m), RV_OK);
	path_in(f, "a", "", dir);
	assert_ok(published_open(dir, &p, &et));
	path_in(f, "a", "shard-000002.bin", path);
	scratch_flip(path, 3000);
	assert_ok(published_read(p, SHARD_TOKENS, 8, got, &et));
	assert_fault(published_read(p, 2 * SHARD_TOKENS, 8, got, &why), RV_E_CORRUPT, &why, "shard-000002.bin");
	scratch_flip(path, 3000);
	assert_ok(published_read(p, 2 * SHARD_TOKENS, 8, got, &et));
	path_in(f, "a", "shard-000003.bin", path);
	assert_int_equal(truncate(path, 2000), 0);
	assert_fault(published_read(p, 3 * SHARD_TOKENS, 8, got, &why), RV_E_CORRUPT, &why, "shard-000003.bin: 2000 bytes");
	assert_int_equal(unlink(path), 0);
	assert_fault(published_read(p, 3 * SHARD_TOKENS, 8, got, &why), RV_E_NOTFOUND, &why, "shard-000003.bin");
	path_in(f, "a", "index-0-000000.hashes", path);
	scratch_flip(path, 33);
	assert_fault(published_read(p, 4 * SHARD_TOKENS, 8, got, &why), RV_E_CORRUPT, &why, "index-0-000000.hashes");
	path_in(f, "a", "tokenizer.json", path);
	scratch_flip(path, 33);
	assert_fault(published_check_tokenizer(p, &why), RV_E_CORRUPT, &why, "tokenizer.json");
	published_close(p);
	assert_fault(published_open(dir, &p, &why), RV_E_CORRUPT, &why, "index-0-000000.hashes");
}

static struct manifest valid(void) {
	struct manifest m = {.n_tokens = 40000,
						 .n_shards = 3,
						 .shard_tokens = SHARD_TOKENS,
						 .vocab = 256,
						 .separator = -1,
						 .holdout_every = 50,
						 .root = rv_hash_of("x", 1),
						 .n_mirrors = 2,
						 .mirrors = {"https://example.org/a", "http://example.org:80/b/"}};
	return m;
}

/* One who has the text in another directory, and gives damaged bytes the first `lies` times. */
struct getter {
	const struct fixture *f;
	int calls, lies;
	bool stops;
};

static enum rv_err get_shard(void *ctx, uint64_t shard, struct rv_errtext *e) {
	struct getter *g = ctx;
	char name[32], path[600];
	size_t n;
	g->calls++;
	if (g->stops)
		return rv_fail(e, RV_E_CANCELLED, "stopped");
	manifest_shard_name(shard, name);
	path_in(g->f, "whole", name, path);
	char *bytes = scratch_read(path, &n);
	path_in(g->f, "part", "", path);
	scratch_write(path, name, bytes, n);
	path_in(g->f, "part", name, path);
	if (g->calls <= g->lies)
		scratch_flip(path, 2000);
	free(bytes);
	return RV_OK;
}

static void copy_without_shards(const struct fixture *f) {
	static const char *const files[] = {MANIFEST_NAME, "tokenizer.json", "index-0-000000.hashes"};
	char from[600], to[600];
	path_in(f, "part", "", to);
	assert_ok(rv_dir_make(to, 0700, &et));
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		size_t n;
		path_in(f, "whole", files[i], from);
		char *bytes = scratch_read(from, &n);
		scratch_write(to, files[i], bytes, n);
		free(bytes);
	}
}

static void missing_shards_are_got_when_they_are_read(void **state) {
	struct fixture *f = *state;
	struct manifest m;
	struct published *p;
	struct getter g = {.f = f};
	char dir[600], path[600];
	int32_t got[SHARD_TOKENS];
	assert_int_equal(publish(f, "whole", 2, &m), RV_OK);
	copy_without_shards(f);
	path_in(f, "part", "", dir);
	assert_ok(published_open(dir, &p, &et));
	assert_fault(published_read(p, 0, 8, got, &why), RV_E_NOTFOUND, &why, "shard-000000.bin");
	published_on_missing(p, &(struct published_missing){.get = get_shard, .ctx = &g});
	assert_fault(published_read_present(p, SHARD_TOKENS - 4, 8, got, &why), RV_E_NOTFOUND, &why, "shard-000000.bin");
	assert_int_equal(g.calls, 0);
	assert_ok(published_read(p, SHARD_TOKENS - 4, 8, got, &et));
	assert_memory_equal(got, f->wanted.ids + SHARD_TOKENS - 4, 8 * sizeof *got);
	assert_int_equal(g.calls, 2);
	memset(got, 0, sizeof got);
	assert_ok(published_read_present(p, SHARD_TOKENS - 4, 8, got, &et));
	assert_memory_equal(got, f->wanted.ids + SHARD_TOKENS - 4, 8 * sizeof *got);
	assert_ok(published_read(p, 0, 8, got, &et));
	assert_int_equal(g.calls, 2);
	/* What was checked, then evicted, is got and checked again. */
	g.lies = 4;
	path_in(f, "part", "shard-000001.bin", path);
	assert_int_equal(unlink(path), 0);
	assert_ok(published_read(p, SHARD_TOKENS, SHARD_TOKENS, got, &et));
	assert_memory_equal(got, f->wanted.ids + SHARD_TOKENS, sizeof got);
	assert_int_equal(g.calls, 5);
	g.lies = 100;
	assert_fault(published_read(p, 2 * SHARD_TOKENS, 8, got, &why), RV_E_CORRUPT, &why, "shard-000002.bin");
	g.stops = true;
	assert_int_equal(published_read(p, 3 * SHARD_TOKENS, 8, got, &why), RV_E_CANCELLED);
	published_close(p);
}

/* Of a run's text too: a sequence in a shard that is missing is read only by one that waits. */
static void sequences_that_are_here_are_read_without_waiting(void **state) {
	struct fixture *f = *state;
	struct manifest m;
	struct dataset *d;
	struct getter g = {.f = f};
	char dir[600];
	int32_t in[2][64], out[2][64];
	f->stated.holdout_every = 5;
	assert_int_equal(publish(f, "whole", 1, &m), RV_OK);
	copy_without_shards(f);
	path_in(f, "part", "", dir);
	const struct dataset_config cfg = {.path = dir,
									   .data_hash = "",
									   .vocab = VOCAB,
									   .n_shards = 1,
									   .holdout_every = (uint32_t)f->stated.holdout_every,
									   .context = 64,
									   .order = true,
									   .missing = {.get = get_shard, .ctx = &g}};
	assert_ok(dataset_open(&cfg, &d, &et));
	const int calls = g.calls;
	assert_int_equal(dataset_present_sequence_at(d, 0, in[0], out[0], &why), RV_E_NOTFOUND);
	assert_int_equal(dataset_present_train_sequence(d, 0, 0, in[0], out[0], &why), RV_E_NOTFOUND);
	assert_int_equal(g.calls, calls);
	assert_ok(dataset_sequence_at(d, 0, in[0], out[0], &et));
	assert_ok(dataset_present_sequence_at(d, 0, in[1], out[1], &et));
	assert_int_equal(g.calls, calls + 1);
	assert_memory_equal(in[0], in[1], sizeof in[0]);
	assert_memory_equal(out[0], out[1], sizeof out[0]);
	assert_ok(dataset_train_sequence(d, 0, 0, in[0], out[0], &et));
	assert_ok(dataset_present_train_sequence(d, 0, 0, in[1], out[1], &et));
	assert_memory_equal(in[0], in[1], sizeof in[0]);
	dataset_close(d);
}

static void a_manifest_is_checked(void **state) {
	(void)state;
	struct manifest m = valid(), got;
	struct rv_hash a, b;
	char *text;
	assert_ok(manifest_print(&m, &text, &et));
	assert_ok(manifest_parse("m", (const uint8_t *)text, strlen(text), &got, &et));
	assert_memory_equal(&m, &got, sizeof m);
	assert_ok(manifest_hash(&m, &a, &et));
	m.n_mirrors = 0;
	assert_ok(manifest_hash(&m, &b, &et));
	assert_true(rv_hash_equal(&a, &b));
	m.holdout_every++;
	assert_ok(manifest_hash(&m, &b, &et));
	assert_false(rv_hash_equal(&a, &b));
	static const struct {
		const char *from, *to, *says;
	} cases[] = {
		{"\"version\": 1", "\"version\": 2", "version 2"},
		{"\"tokens\": 40000", "\"tokens\": 30000", "tokens = 30000"},
		{"\"tokens\": 40000", "\"tokens\": -1", "tokens = -1"},
		{"\"tokens\": 40000", "\"tokens\": 4e4", "'tokens' is not a whole number"},
		{"\"shards\": 3", "\"shards\": 1073741825", "shards"},
		{"\"shard_tokens\": 16384", "\"shard_tokens\": 16385", "multiple of 16384"},
		{"\"vocab\": 256", "\"vocab\": 0", "vocab = 0"},
		{"\"separator\": -1", "\"separator\": 256", "separator = 256"},
		{"\"license\"", "\"licence\"", "unknown key 'licence'"},
		{"\"license\": \"\"", "\"license\": \"a\\u001b[2J\"", "control character 0x1b"},
		{"\"license\": \"\"", "\"license\": \"a\\u009b31m\"", "a control character"},
		{"\"license\": \"\"", "\"license\": \"a\\u202eb\"", "direction of writing"},
		{"\"license\": \"\"", "\"license\": \"a\", \"license\": \"b\"", "duplicate"},
		{"\"license\": \"\",", "", "'license' is missing"},
		{"https://example.org/a", "file:///etc/passwd", "must be https://"},
		{"\"tokenizer_file\": \"\"", "\"tokenizer_file\": \"../../etc/passwd\"", "tokenizer_file"},
		{"\"tokenizer_file\": \"\"", "\"tokenizer_file\": \"tokenizer.json\"", "tokenizer_hash"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char bad[8192];
		const char *at = strstr(text, cases[i].from);
		assert_non_null(at);
		snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - text), text, cases[i].to, at + strlen(cases[i].from));
		enum rv_err e = manifest_parse("m", (const uint8_t *)bad, strlen(bad), &got, &why);
		if (e == RV_OK || !strstr(why.text, cases[i].says))
			fail_msg("%s: \"%s\"", cases[i].to, why.text);
	}
	free(text);
}

static enum rv_err made_up_hash(void *ctx, uint64_t shard, struct rv_hash *out, struct rv_errtext *et) {
	(void)ctx;
	(void)et;
	*out = rv_hash_of(&shard, sizeof shard);
	return RV_OK;
}

/* One terabyte of 16-bit tokens in shards of 4 MiB, two levels of pages, and three levels. */
static void a_terabyte_is_opened_at_once(void **state) {
	struct fixture *f = *state;
	static const int64_t shards[] = {1, 1024, 1025, 250000};
	for (size_t i = 0; i < sizeof shards / sizeof shards[0]; i++) {
		char dir[600], name[16];
		struct published *p;
		struct rv_hash hash, want;
		struct manifest m = valid();
		m.shard_tokens = MANIFEST_SHARD_TOKENS;
		m.n_shards = shards[i];
		m.n_tokens = m.n_shards * m.shard_tokens - 5;
		snprintf(name, sizeof name, "big%d", (int)i);
		path_in(f, name, "", dir);
		assert_ok(rv_dir_make(dir, 0700, &et));
		assert_ok(index_pages_write(dir, &m, made_up_hash, NULL, &et));
		assert_ok(manifest_write(dir, &m, &et));
		assert_ok(published_open(dir, &p, &et));
		for (uint64_t k = 0; k < 40; k++) {
			const uint64_t shard = k * ((uint64_t)m.n_shards - 1) / 39;
			assert_ok(index_shard_hash(dir, published_manifest(p), shard, &hash, &et));
			assert_ok(made_up_hash(NULL, shard, &want, &et));
			assert_true(rv_hash_equal(&hash, &want));
		}
		const struct manifest_place last = manifest_place(&m, (uint64_t)m.n_tokens - 1);
		assert_int_equal(last.shard, m.n_shards - 1);
		assert_int_equal(last.token, m.shard_tokens - 6);
		assert_int_equal(manifest_shard_bytes(&m, last.shard), 1024 + 2 * (m.shard_tokens - 5));
		published_close(p);
	}
}

/* A page of a lower level that is damaged, and one that another page replaces. */
static void pages_are_checked_with_those_above(void **state) {
	struct fixture *f = *state;
	char dir[600], path[600], other[600];
	struct index_page page;
	struct manifest m = valid();
	m.n_shards = 3000;
	m.n_tokens = m.n_shards * m.shard_tokens;
	path_in(f, "pages", "", dir);
	assert_ok(rv_dir_make(dir, 0700, &et));
	assert_ok(index_pages_write(dir, &m, made_up_hash, NULL, &et));
	const struct index_shape shape = index_shape_of(&m);
	assert_int_equal(shape.levels, 2);
	assert_int_equal(shape.n[0], 3);
	assert_int_equal(index_page_hashes(&shape, 0, 2), 3000 - 2 * 1024);
	assert_int_equal(index_page_hashes(&shape, 1, 0), 3);
	path_in(f, "pages", "index-0-000001.hashes", path);
	scratch_flip(path, 10);
	assert_ok(index_page_read(dir, &m, 0, 0, &page, &et));
	assert_fault(index_page_read(dir, &m, 0, 1, &page, &why), RV_E_CORRUPT, &why, "index-0-000001.hashes");
	path_in(f, "pages", "index-0-000000.hashes", other);
	assert_int_equal(rename(other, path), 0);
	assert_fault(index_page_read(dir, &m, 0, 1, &page, &why), RV_E_CORRUPT, &why, "index-0-000001.hashes");
	assert_fault(index_page_read(dir, &m, 0, 0, &page, &why), RV_E_NOTFOUND, &why, "index-0-000000.hashes");
	path_in(f, "pages", "index-1-000000.hashes", path);
	scratch_flip(path, 10);
	assert_fault(index_page_read(dir, &m, 0, 2, &page, &why), RV_E_CORRUPT, &why, "index-1-000000.hashes");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_published_is_read_back, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_shards_are_made_again, setup, teardown),
		cmocka_unit_test_setup_teardown(another_text_repairs_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_run_takes_the_text_that_it_names, setup, teardown),
		cmocka_unit_test_setup_teardown(a_broken_off_job_ends_in_the_same_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(a_torn_shard_is_made_again, setup, teardown),
		cmocka_unit_test_setup_teardown(tokens_of_another_job_are_left_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(damage_is_named, setup, teardown),
		cmocka_unit_test_setup_teardown(missing_shards_are_got_when_they_are_read, setup, teardown),
		cmocka_unit_test_setup_teardown(sequences_that_are_here_are_read_without_waiting, setup, teardown),
		cmocka_unit_test(a_manifest_is_checked),
		cmocka_unit_test_setup_teardown(a_terabyte_is_opened_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(pages_are_checked_with_those_above, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
