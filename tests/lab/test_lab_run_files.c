/* What --init and --tokenizer say of a run's configuration. */
#include "tests/lab/lab_fixture.h"

#include "lab/run/run_files.h"
#include "train/files/weights_save.h"

#include <stdio.h>
#include <string.h>

static struct lab_fixture f;
static struct run_files files;

static int setup(void **state) {
	(void)state;
	lab_fixture_init(&f);
	f.cfg.run.rounds = 1;
	struct lab_run *r = lab_fixture_finished(&f);
	files = (struct run_files){.tokenizer = "auto"};
	snprintf(files.init, sizeof files.init, "%s/" WEIGHTS_FILE, f.dir);
	const struct weights_source source = {
		.cfg = &f.cfg.run, .layout = &replica_model(r->replicas[0])->layout, .params = r->global.theta};
	assert_int_equal(weights_save_files(f.dir, &source, NULL), RV_OK);
	lab_run_free(r);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	lab_fixture_release(&f);
	return 0;
}

static void test_the_model_is_that_of_the_weights(void **state) {
	(void)state;
	struct run_config c;
	struct rv_errtext et = {0};
	run_config_defaults(&c);
	c.lr = 0.5; /* not the model's: stays */
	if (run_files_adopt(&files, &c, &et) != RV_OK)
		fail_msg("%s", et.text);
	assert_int_equal(c.n_layer, f.cfg.run.n_layer);
	assert_int_equal(c.n_embd, f.cfg.run.n_embd);
	assert_int_equal(c.context, f.cfg.run.context);
	assert_true(c.lr == 0.5);
	assert_int_equal(strlen(c.init_hash), 2 * RV_HASH_BYTES);
	struct run_config again = c; /* as a run.conf that was made so */
	assert_int_equal(run_files_adopt(&files, &again, NULL), RV_OK);
	assert_string_equal(again.init_hash, c.init_hash);
}

static void test_what_contradicts_the_weights_is_refused(void **state) {
	(void)state;
	static const char *const asked[][2] = {{"n-layer", "7"}, {"n-embd", "64"}, {"vocab", "512"}, {"tied", "no"}};
	for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
		struct run_config c;
		struct rv_errtext et = {0};
		char want[32];
		run_config_defaults(&c);
		assert_int_equal(rv_options_set(run_config_options, &c, asked[i][0], asked[i][1], NULL), RV_OK);
		snprintf(want, sizeof want, "--%s %s", asked[i][0], asked[i][1]);
		assert_fault(run_files_adopt(&files, &c, &et), RV_E_INVALID, &et, want);
	}
}

static void test_without_files_nothing_changes(void **state) {
	(void)state;
	struct run_files none = {.tokenizer = "auto"};
	struct run_config c, usual;
	char a[16384], b[16384];
	run_config_defaults(&c);
	run_config_defaults(&usual);
	assert_int_equal(run_files_adopt(&none, &c, NULL), RV_OK);
	rv_options_print(run_config_options, &c, a, sizeof a);
	rv_options_print(run_config_options, &usual, b, sizeof b);
	assert_string_equal(a, b);
}

/* What a family cannot be is refused before a run is made of it. */
static void test_what_a_family_cannot_be(void **state) {
	(void)state;
	static const char *const bad[] = {"n-kv-head = 2\n", "tied = no\n", "model = llama\nn-embd = 12\nn-head = 4\n",
									  "norm-eps = 1e-3\n",

									  "n-layer = 3\nn-embd = 8\nn-head = 1\nfragments = 2\nchunk-elems = 65536\n"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct run_config c;
		struct rv_errtext et = {0};
		run_config_defaults(&c);
		assert_int_equal(rv_options_parse_text(run_config_options, &c, "run.conf", bad[i], &et), RV_OK);
		assert_int_equal(global_check_run(&c, &et), RV_E_RANGE);
		assert_true(et.text[0]);
	}
}

static void test_weights_that_are_named_must_be_given(void **state) {
	(void)state;
	struct run_files none = {.tokenizer = "auto"};
	struct run_config c;
	struct rv_errtext et = {0};
	run_config_defaults(&c);
	memset(c.init_hash, 'a', 64);
	c.init_hash[64] = '\0';
	assert_fault(run_files_adopt(&none, &c, &et), RV_E_INVALID, &et, "--init DIR");
}

/* A byte-level BPE of the 256 bytes and one merge. */
static void write_tokenizer(char path[300]) {
	static const char text[] =
		"{\"model\":{\"type\":\"BPE\",\"vocab\":{%s\"th\":256},\"merges\":[\"t h\"]},"
		"\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"decoder\":{\"type\":\"ByteLevel\"}}";
	char bytes[8192] = "", json[9000];
	size_t n = 0;
	int moved = 0; /* bytes that are no printable character stand as characters from U+0100 on */
	for (int b = 0; b < 256; b++) {
		bool plain = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || (b >= 0xae && b <= 0xff);
		n += (size_t)snprintf(bytes + n, sizeof bytes - n, "\"\\u%04x\":%d,", plain ? b : 0x100 + moved++, b);
	}
	int len = snprintf(json, sizeof json, text, bytes);
	fixture_write(f.dir, "tokenizer.json", (const uint8_t *)json, (size_t)len, path, 300);
}

static void test_the_vocabulary_is_at_least_the_tokenizers(void **state) {
	(void)state;
	static const int64_t asked[][2] = {{256, 257}, {300, 300}, {260, 260}, {257, 257}};
	struct run_files with = {.tokenizer = ""};
	char path[300];
	write_tokenizer(path);
	snprintf(with.tokenizer, sizeof with.tokenizer, "%s", path);
	for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
		struct run_config c;
		struct rv_errtext et = {0};
		run_config_defaults(&c);
		c.vocab = asked[i][0];
		if (run_files_adopt(&with, &c, &et) != RV_OK)
			fail_msg("%s", et.text);
		assert_int_equal(c.vocab, asked[i][1]);
		assert_int_equal(strlen(c.tokenizer_hash), 2 * RV_HASH_BYTES);
	}
	struct run_config named; /* a run.conf that names a tokenizer, and no file: token shards need none */
	struct run_files none = {.tokenizer = "auto"};
	run_config_defaults(&named);
	memset(named.tokenizer_hash, 'a', 64);
	assert_int_equal(run_files_adopt(&none, &named, NULL), RV_OK);
	assert_string_equal(none.tokenizer, "");
}

/* Where eval refuses, training does not go on with bytes. */
static void test_a_tokenizer_beside_the_weights_must_fit(void **state) {
	(void)state;
	char path[300];
	struct run_config c;
	struct rv_errtext et = {0};
	struct run_files with = files;
	snprintf(with.tokenizer, sizeof with.tokenizer, "auto");
	write_tokenizer(path);
	run_config_defaults(&c);
	assert_fault(run_files_adopt(&with, &c, &et), RV_E_RANGE, &et, "257 tokens, but the model's vocab is 256");
	run_config_defaults(&c);
	snprintf(with.tokenizer, sizeof with.tokenizer, "bytes"); /* asked for in words */
	assert_int_equal(run_files_adopt(&with, &c, &et), RV_OK);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_model_is_that_of_the_weights),
		cmocka_unit_test(test_what_contradicts_the_weights_is_refused),
		cmocka_unit_test(test_without_files_nothing_changes),
		cmocka_unit_test(test_what_a_family_cannot_be),
		cmocka_unit_test(test_weights_that_are_named_must_be_given),
		cmocka_unit_test(test_the_vocabulary_is_at_least_the_tokenizers),
		cmocka_unit_test(test_a_tokenizer_beside_the_weights_must_fit),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
