/* test_train_token_cache.c: text is tokenized once, whoever asks and however often it was broken
 * off; the cache heals and stays within its bounds. */
#include "tests/tokenizer/tokenizer_fixture.h"
#include "tests/train/train_fixture.h"

#include "train/text/token_cache.h"
#include "train/text/tokenizer/tokenize_job.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COPIES = 600, VOCAB = 350, SHARD_TOKENS = 20000 };

struct fixture {
	char dir[256], text_path[300], cache_dir[300];
	struct tokenizer *t;
	struct encoder *e;
	struct data_files text;
	struct token_list wanted;
	int reports; /* of progress */
	int wrong;   /* of these, without a name, or of more bytes than there are */
};

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof *f);
	size_t bytes;
	uint8_t *text = fixture_copies(COPIES, &bytes);
	assert_non_null(f);
	scratch_make(f->dir, sizeof f->dir);
	snprintf(f->cache_dir, sizeof f->cache_dir, "%s/cache", f->dir);
	fixture_write(f->dir, "text", text, bytes, f->text_path, sizeof f->text_path);
	fixture_tokenizer(VOCAB, &f->t, &f->e);
	assert_ok(data_files_init(&f->text, f->text_path, NULL, &et));
	fixture_wanted(f->t, f->e, text, bytes, &f->wanted);
	free(text);
	*state = f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	data_files_release(&f->text);
	token_list_release(&f->wanted);
	encoder_free(f->e);
	tokenizer_free(f->t);
	scratch_remove(f->dir);
	free(f);
	return 0;
}

/* Asserts nothing: a failure would leave the job under way, and its entry locked. */
static bool count_reports(void *ctx, const char *what, uint64_t done_bytes, uint64_t total_bytes) {
	struct fixture *f = ctx;
	f->wrong += !what || done_bytes > total_bytes;
	f->reports++;
	return true;
}

static struct token_cache cache_of(struct fixture *f) {
	return (struct token_cache){.dir = f->cache_dir,
								.tokenizer = f->t,
								.threads = 2,
								.shard_tokens = SHARD_TOKENS,
								.progress = count_reports,
								.progress_ctx = f};
}

static void assert_source(const struct fixture *f, struct token_source *s) {
	int32_t *got = malloc(f->wanted.n * sizeof *got);
	assert_non_null(got);
	assert_int_equal(s->n_tokens, f->wanted.n);
	assert_ok(token_source_read(s, 0, f->wanted.n, got, &et));
	assert_memory_equal(got, f->wanted.ids, f->wanted.n * sizeof *got);
	free(got);
	token_source_release(s);
}

static void open_and_compare(struct fixture *f) {
	const struct token_cache c = cache_of(f);
	struct token_source s;
	assert_ok(token_cache_open(&c, &f->text, VOCAB, &s, &et));
	assert_source(f, &s);
	assert_int_equal(f->wrong, 0);
}

/* The only entry of the cache, or with `n` the number of entries. */
static int find_entry(const struct fixture *f, char entry[600]) {
	int n = 0;
	DIR *dir = opendir(f->cache_dir);
	assert_non_null(dir);
	for (struct dirent *d; (d = readdir(dir));)
		if (strncmp(d->d_name, "tokens-", 7) == 0 && ++n)
			snprintf(entry, 600, "%s/%s", f->cache_dir, d->d_name);
	closedir(dir);
	return n;
}

static bool stop_every_other(void *ctx, const char *what, uint64_t done_bytes, uint64_t total_bytes) {
	return count_reports(ctx, what, done_bytes, total_bytes) && ((struct fixture *)ctx)->reports % 2 == 0;
}

/* Where it stops depends on the clock; what comes out at the end does not. */
static void test_it_goes_on_after_being_stopped(void **state) {
	struct fixture *f = *state;
	struct token_cache c = cache_of(f);
	struct token_source s;
	c.progress = stop_every_other;
	c.threads = 1;
	enum rv_err e = RV_E_CANCELLED;
	for (int i = 0; i < 200 && (e = token_cache_open(&c, &f->text, VOCAB, &s, NULL)) != RV_OK; i++)
		assert_int_equal(e, RV_E_CANCELLED);
	if (e == RV_OK)
		token_source_release(&s);
	open_and_compare(f);
}

static void test_the_second_time_nothing_is_tokenized(void **state) {
	struct fixture *f = *state;
	char entry[600], before[600];
	open_and_compare(f);
	assert_int_equal(find_entry(f, before), 1);
	f->reports = 0;
	open_and_compare(f);
	assert_int_equal(f->reports, 0);
	assert_int_equal(find_entry(f, entry), 1);
	assert_string_equal(entry, before);
}

static void test_another_tokenizer_has_another_entry(void **state) {
	struct fixture *f = *state;
	struct tokenizer *other;
	struct encoder *e;
	struct token_source s;
	char entry[600];
	open_and_compare(f);
	fixture_tokenizer(300, &other, &e);
	struct token_cache c = cache_of(f);
	c.tokenizer = other;
	assert_ok(token_cache_open(&c, &f->text, 300, &s, &et));
	assert_true(s.n_tokens > f->wanted.n);
	token_source_release(&s);
	assert_int_equal(find_entry(f, entry), 2);
	c.max_bytes = 1; /* the one in use stays */
	assert_ok(token_cache_open(&c, &f->text, 300, &s, &et));
	token_source_release(&s);
	assert_int_equal(find_entry(f, entry), 1);
	encoder_free(e);
	tokenizer_free(other);
	f->reports = 0;
	open_and_compare(f); /* made again */
}

static void spoil(const struct fixture *f, const char *name, bool remove) {
	char entry[600], path[700];
	assert_true(find_entry(f, entry) >= 1);
	snprintf(path, sizeof path, "%s/%s", entry, name);
	assert_int_equal(remove ? unlink(path) : truncate(path, 3000), 0);
}

/* A fresh cache each time, so that there is one entry. */
static void test_what_is_spoilt_is_made_again(void **state) {
	struct fixture *f = *state;
	for (int i = 0; i < 4; i++) {
		snprintf(f->cache_dir, sizeof f->cache_dir, "%s/spoilt%d", f->dir, i);
		open_and_compare(f);
		spoil(f, i < 3 ? "tokens-000001.bin" : "tokens.json", i != 1);
		if (i == 2)
			spoil(f, "tokens-000000.bin", false);
		open_and_compare(f);
	}
	snprintf(f->cache_dir, sizeof f->cache_dir, "%s/cache", f->dir);
}

static void test_temporaries_of_a_killed_job_go(void **state) {
	struct fixture *f = *state;
	char entry[600], path[700];
	snprintf(f->cache_dir, sizeof f->cache_dir, "%s/killed", f->dir);
	open_and_compare(f);
	assert_int_equal(find_entry(f, entry), 1);
	spoil(f, "tokens.json", true);
	fixture_write(entry, "tokens-000002.bin.tmp-AbC123", (const uint8_t *)"x", 1, path, sizeof path);
	open_and_compare(f);
	assert_int_equal(access(path, F_OK), -1);
	snprintf(f->cache_dir, sizeof f->cache_dir, "%s/cache", f->dir);
}

static void *open_in_thread(void *ctx) {
	struct token_source *s = calloc(1, sizeof *s);
	struct fixture *f = ctx;
	struct token_cache c = cache_of(f);
	c.progress = NULL;
	if (s && token_cache_open(&c, &f->text, VOCAB, s, NULL) == RV_OK)
		return s;
	free(s);
	return NULL;
}

/* One makes the entry, the other waits for it; none sees half of it. */
static void test_two_at_once(void **state) {
	struct fixture *f = *state;
	pthread_t threads[2];
	snprintf(f->cache_dir, sizeof f->cache_dir, "%s/two", f->dir);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, open_in_thread, f), 0);
	for (int i = 0; i < 2; i++) {
		void *s;
		assert_int_equal(pthread_join(threads[i], &s), 0);
		assert_non_null(s);
		assert_source(f, s);
		free(s);
	}
	snprintf(f->cache_dir, sizeof f->cache_dir, "%s/cache", f->dir);
}

static void test_where_nothing_can_be_written(void **state) {
	struct fixture *f = *state;
	struct token_cache c = cache_of(f);
	struct token_source s;
	struct rv_errtext et = {0};
	c.dir = f->text_path; /* a file */
	assert_fault(token_cache_open(&c, &f->text, VOCAB, &s, &et), RV_E_IO, &et, f->text_path);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_goes_on_after_being_stopped),
		cmocka_unit_test(test_the_second_time_nothing_is_tokenized),
		cmocka_unit_test(test_another_tokenizer_has_another_entry),
		cmocka_unit_test(test_what_is_spoilt_is_made_again),
		cmocka_unit_test(test_temporaries_of_a_killed_job_go),
		cmocka_unit_test(test_two_at_once),
		cmocka_unit_test(test_where_nothing_can_be_written),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
