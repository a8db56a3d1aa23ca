/* A run that has its text: `new-run --data` publishes files, or takes what is published, and
 * refuses what contradicts it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "tests/coordinator/coordinator_process.h"
#include "train/text/published/published.h"

enum { OUT_BYTES = 65536, TEXT_BYTES = 900000 };
static char out[OUT_BYTES];

#define RUN(...) coordinator_command(out, sizeof out, (const char *const[]){__VA_ARGS__, NULL})

static void expect(const char *part) {
	if (strstr(out, part) == NULL)
		fail_msg("'%s' is not in: %s", part, out);
}

static void expect_not(const char *part) {
	if (strstr(out, part) != NULL)
		fail_msg("'%s' is in: %s", part, out);
}

struct place {
	char dir[SCRATCH_PATH]; /* scratch */
	char text[SCRATCH_PATH + 16], lines[SCRATCH_PATH + 16], run[SCRATCH_PATH + 16], other[SCRATCH_PATH + 16],
		small[SCRATCH_PATH + 16];
	char published[SCRATCH_PATH + 32]; /* of `run` */
};

static int set_up(void **state) {
	struct place *p = calloc(1, sizeof *p);
	char *bytes = malloc(TEXT_BYTES);
	*state = p;
	for (int i = 0; i < TEXT_BYTES; i++)
		bytes[i] = (char)(i % 61 == 60 ? '\n' : 'a' + (i * 7 + i / 61) % 26);
	scratch_make(p->dir, sizeof p->dir);
	scratch_write(p->dir, "text.txt", bytes, TEXT_BYTES);
	scratch_write(p->dir, "lines.jsonl", "{\"body\": \"one\"}\n{\"body\": \"two\"}\n", 32);
	free(bytes);
	(void)snprintf(p->text, sizeof p->text, "%s/text.txt", p->dir);
	(void)snprintf(p->lines, sizeof p->lines, "%s/lines.jsonl", p->dir);
	(void)snprintf(p->run, sizeof p->run, "%s/run", p->dir);
	(void)snprintf(p->other, sizeof p->other, "%s/other", p->dir);
	(void)snprintf(p->small, sizeof p->small, "%s/small", p->dir);
	(void)snprintf(p->published, sizeof p->published, "%s/text", p->run);
	return 0;
}

static int tear_down(void **state) {
	struct place *p = *state;
	scratch_remove(p->dir);
	free(p);
	return 0;
}

static void data_hash_of(const char *dir, char line[static 128]) {
	struct manifest m;
	struct rv_hash hash;
	int n = snprintf(line, 128, "data-hash = ");
	assert_ok(manifest_read(dir, &m, &et));
	assert_ok(manifest_hash(&m, &hash, &et));
	for (int i = 0; i < RV_HASH_BYTES; i++)
		n += snprintf(line + n, (size_t)(128 - n), "%02x", hash.b[i]);
}

static void test_files_are_published(void **state) {
	struct place *p = *state;
	struct published *text;
	char line[128];
	assert_int_equal(RUN("new-run", "--dir", p->run, "--data", p->text, "--data", p->lines, "--data-field", "body",
						 "--mirror", "https://a.example/x", "--mirror", "http://b.example", "--holdout-every", "9",
						 "--license", "MIT"),
					 0);
	expect("Published 900032 bytes as 900006 tokens in 1 shards");
	assert_ok(published_open(p->published, &text, &et));
	const struct manifest *m = published_manifest(text);
	assert_int_equal(m->n_mirrors, 2);
	assert_string_equal(m->mirrors[1], "http://b.example");
	assert_int_equal(m->holdout_every, 9);
	assert_string_equal(m->license, "MIT");
	int32_t tokens[3];
	assert_ok(published_read(text, 900003, 3, tokens, &et));
	assert_int_equal(tokens[0], 't');
	published_close(text);
	/* Another run takes it as it is. */
	data_hash_of(p->published, line);
	assert_int_equal(RUN("new-run", "--dir", p->other, "--data", p->published, "--check"), 0);
	expect(line);
	expect("holdout-every = 9\n");
	assert_int_equal(RUN("new-run", "--dir", p->other, "--data", p->published), 0);
}

static void test_what_contradicts_the_text_is_refused(void **state) {
	struct place *p = *state;
	char path[SCRATCH_PATH + 64];
	static const char hash[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
	assert_int_equal(RUN("new-run", "--dir", p->run, "--data", p->text), 0);
	expect("no license is stated");
	assert_int_equal(RUN("new-run", "--dir", p->other, "--data", p->published, "--data-hash", hash), 2);
	expect("data-hash = 0011");
	assert_int_equal(RUN("new-run", "--dir", p->other, "--data", p->published, "--tokenizer-hash", hash), 2);
	expect("tokenizer-hash = 0011");
	assert_int_equal(RUN("new-run", "--dir", p->other, "--data", p->published, "--holdout-every", "7"), 2);
	expect("was published with 50");
	assert_int_equal(RUN("new-run", "--dir", p->other, "--data", p->published, "--data-shards", "7"), 2);
	expect("data-shards = 7: the run hands its text out");
	assert_int_equal(RUN("new-run", "--dir", p->other, "--data", p->text, "--data-split", "contiguous"), 2);
	expect("data-split: the run hands its text out");
	assert_int_equal(RUN("new-run", "--dir", p->other, "--data", p->published, "--mirror", "http://b"), 2);
	expect("--mirror: is for files that are published here");
	assert_int_equal(RUN("new-run", "--dir", p->other, "--data", p->text, "--data-hash", hash), 2);
	expect("leave it out");
	assert_int_equal(RUN("new-run", "--dir", p->other, "--license", "MIT"), 2);
	expect("--license: is for files that are published here, and there is no --data");
	assert_int_equal(RUN("new-run", "--dir", p->other, "--data", p->lines), 1);
	expect("body"); /* the fields that there are */
	assert_int_equal(RUN("new-run", "--dir", p->other, "--data", p->text, "--mirror", "ftp://b"), 1);
	expect("must be https://");
	assert_int_equal(RUN("new-run", "--dir", p->small, "--data", p->lines, "--data-field", "body"), 1);
	expect("6 tokens, and holdout-every = 50 needs at least 819200: give more text");
	(void)snprintf(path, sizeof path, "%s/text", p->small);
	assert_int_not_equal(access(path, F_OK), 0); /* the same command with more text is not in its own way */
	assert_int_equal(RUN("new-run", "--dir", p->other, "--data", p->published, "--vocab", "50257", "--check"), 0);
	expect("note: vocab = 50257, and all tokens of the text are below ");
	assert_int_equal(RUN("new-run", "--dir", p->other, "--data", p->published, "--vocab", "320", "--check"), 0);
	expect_not("note: vocab");
	assert_int_equal(RUN("new-run", "--dir", p->other, "--data-hash", hash), 0);
	expect("data-hash without --data");
}

/* A shard, and the run, are there or not; after a kill between them the text can be taken. */
static void test_an_interrupted_publication_continues(void **state) {
	struct place *p = *state;
	char path[SCRATCH_PATH + 64];
	assert_int_equal(RUN("new-run", "--dir", p->run, "--data", p->text), 0);
	(void)snprintf(path, sizeof path, "%s/store.db", p->run);
	assert_int_equal(remove(path), 0);
	assert_int_equal(RUN("new-run", "--dir", p->run, "--data", p->text), 1);
	expect("a text is published there already: take it with --data");
	assert_int_equal(RUN("new-run", "--dir", p->run, "--data", p->published), 0);
	assert_int_equal(RUN("new-run", "--dir", p->run, "--data", p->published), 1);
	expect("there is a run already");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_files_are_published, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_contradicts_the_text_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_interrupted_publication_continues, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
