/* test_train_run_tokenizer.c: a run's tokenizer is the file whose hash it has; everything else is
 * refused with what to do. And a dataset of text through it, from the option to the tokens. */
#include "tests/tokenizer/tokenizer_fixture.h"
#include "tests/train/train_fixture.h"

#include "base/hex.h"
#include "train/text/run_tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VOCAB = 300, COPIES = 3000 };

struct fixture {
	char dir[256], file[300], other[300], text[300], cache[300], hash[65];
	struct run_config run; /* of that tokenizer */
};

static void write_json(const struct fixture *f, const char *name, uint32_t vocab, char path[300], char hash[65]) {
	char *json = fixture_json(vocab);
	fixture_write(f->dir, name, (const uint8_t *)json, strlen(json), path, 300);
	struct rv_hash h = rv_hash_of(json, strlen(json));
	rv_hex_encode(h.b, RV_HASH_BYTES, hash);
	free(json);
}

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof *f);
	char hash[65];
	size_t bytes;
	uint8_t *text = fixture_copies(COPIES, &bytes);
	assert_non_null(f);
	scratch_make(f->dir, sizeof f->dir);
	fixture_write(f->dir, "text", text, bytes, f->text, sizeof f->text);
	free(text);
	write_json(f, "a.json", VOCAB, f->file, f->hash);
	write_json(f, "b.json", VOCAB + 1, f->other, hash);
	snprintf(f->cache, sizeof f->cache, "%s/cache", f->dir);
	f->run = fixture_config();
	f->run.vocab = VOCAB;
	snprintf(f->run.tokenizer_hash, sizeof f->run.tokenizer_hash, "%s", f->hash);
	*state = f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	scratch_remove(f->dir);
	free(f);
	return 0;
}

static void assert_refused(const struct run_config *run, const char *option, enum rv_err wanted, const char *says) {
	struct rv_errtext et = {0};
	struct tokenizer *t;
	assert_fault(run_tokenizer_open(run, option, &t, &et), wanted, &et, says);
	assert_null(t);
}

static void test_the_right_file_opens(void **state) {
	struct fixture *f = *state;
	struct tokenizer *t;
	assert_ok(run_tokenizer_open(&f->run, f->file, &t, &et));
	assert_int_equal(tokenizer_vocab(t), VOCAB);
	tokenizer_free(t);
	assert_ok(run_tokenizer_open(&f->run, "", &t, &et)); /* token shards need none */
	assert_null(t);
}

static void test_others_are_refused_with_what_to_do(void **state) {
	struct fixture *f = *state;
	char says[80];
	struct run_config run = f->run;
	snprintf(says, sizeof says, "expects the file with hash %.16s", f->hash);
	assert_refused(&run, f->other, RV_E_INVALID, says);
	assert_refused(&run, "bytes", RV_E_INVALID, "give that file");
	assert_refused(&run, "/nonexistent.json", RV_E_NOTFOUND, "/nonexistent.json");
	run.vocab = VOCAB - 1;
	assert_refused(&run, f->file, RV_E_RANGE, "set vocab to at least 300");
	run.tokenizer_hash[0] = '\0';
	assert_refused(&run, f->file, RV_E_INVALID, "leave out --tokenizer");
}

static void test_a_run_of_bytes(void **state) {
	struct fixture *f = *state;
	struct tokenizer *t;
	struct run_config run = f->run;
	run.tokenizer_hash[0] = '\0';
	assert_ok(run_tokenizer_open(&run, "", &t, &et));
	assert_null(t);
	assert_ok(run_tokenizer_open(&run, "bytes", &t, &et));
	assert_null(t);
	assert_ok(run_tokenizer_adopt(&run, false, "bytes", &t, &et));
	assert_null(t);
	assert_string_equal(run.tokenizer_hash, "");
	assert_int_equal(run.vocab, VOCAB);
}

static void test_a_new_run_adopts_it(void **state) {
	struct fixture *f = *state;
	struct rv_errtext et_vocab = {0};
	struct tokenizer *t;
	struct run_config run = fixture_config();
	assert_fault(run_tokenizer_adopt(&run, true, f->file, &t, &et_vocab), RV_E_RANGE, &et_vocab, "at least 300");
	assert_null(t);
	assert_string_equal(run.tokenizer_hash, "");
	assert_ok(run_tokenizer_adopt(&run, false, f->file, &t, &et));
	assert_string_equal(run.tokenizer_hash, f->hash);
	assert_int_equal(run.vocab, VOCAB);
	tokenizer_free(t);
	assert_ok(run_tokenizer_adopt(&run, false, f->file, &t, &et)); /* what it has already */
	tokenizer_free(t);
	assert_fault(run_tokenizer_adopt(&run, false, f->other, &t, &et_vocab), RV_E_INVALID, &et_vocab, "expects");
}

static void test_text_of_a_run_with_a_tokenizer(void **state) {
	struct fixture *f = *state;
	struct dataset_config data = dataset_config_of(&f->run, f->text);
	struct rv_errtext et_data = {0};
	struct dataset *d;
	struct tokenizer *t, *other;
	assert_fault(dataset_open(&data, &d, &et_data), RV_E_INVALID, &et_data, "--tokenizer FILE");
	assert_ok(tokenizer_open(f->other, "auto", &other, &et));
	data.tokenizer = other;
	data.cache_dir = f->cache;
	assert_fault(dataset_open(&data, &d, &et_data), RV_E_INVALID, &et_data, "not the given one");
	assert_int_equal(access(f->cache, F_OK), -1); /* before anything was done */
	assert_ok(run_tokenizer_open(&f->run, f->file, &t, &et));
	data.tokenizer = t;
	assert_ok(dataset_open(&data, &d, &et));
	assert_true(dataset_mapped_bytes(d) / 2 < strlen(fixture_text) * COPIES); /* 16 bits a token */
	dataset_close(d);
	data.tokenizer_hash = "";
	assert_fault(dataset_open(&data, &d, &et_data), RV_E_INVALID, &et_data, "bytes of text");
	tokenizer_free(t);
	tokenizer_free(other);
}

static void test_bytes_of_a_token(void **state) {
	struct fixture *f = *state;
	struct tokenizer *t;
	struct encoder *e;
	assert_ok(tokenizer_open(f->file, "auto", &t, &et));
	assert_ok(encoder_new(t, &e, &et));
	struct token_list ids = encode_text(e, fixture_text, strlen(fixture_text), SPECIALS_AS_TEXT);
	size_t n = 0;
	for (size_t i = 0; i < ids.n; i++)
		n += tokenizer_token_bytes(t, ids.ids[i]);
	assert_int_equal(n, strlen(fixture_text));
	assert_int_equal(tokenizer_token_bytes(t, tokenizer_end_of_text(t)), 0);
	assert_int_equal(tokenizer_token_bytes(t, VOCAB), 0);
	assert_int_equal(tokenizer_token_bytes(t, UINT32_MAX), 0);
	token_list_release(&ids);
	encoder_free(e);
	tokenizer_free(t);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_right_file_opens),
		cmocka_unit_test(test_others_are_refused_with_what_to_do),
		cmocka_unit_test(test_a_run_of_bytes),
		cmocka_unit_test(test_a_new_run_adopts_it),
		cmocka_unit_test(test_text_of_a_run_with_a_tokenizer),
		cmocka_unit_test(test_bytes_of_a_token),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
