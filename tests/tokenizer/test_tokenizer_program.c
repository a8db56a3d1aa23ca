/* `rivulet tokenizer train` and `rivulet tokenize` as programs: the same files from any number of
 * threads, refusals. */
#include "tests/common/process.h"
#include "tests/common/scratch.h"
#include "tests/tokenizer/tokenizer_fixture.h"

#include "base/file.h"
#include "train/text/tokenizer/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static char dir[64];

static int setup(void **state) {
	char path[128];
	(void)state;
	scratch_make(dir, sizeof dir);
	snprintf(path, sizeof path, "%s/text", dir);
	return rv_file_write_atomic(path, fixture_text, strlen(fixture_text), 0600, NULL) == RV_OK ? 0 : -1;
}

/* Runs it in the directory; what it prints goes to `out`. Returns the exit status. */
static int rivulet(const char *args, char out[4096]) {
	return process_shell(out, 4096, "cd '%s' && '%s/rivulet' %s", dir, RV_TEST_BIN_DIR, args);
}

static void assert_runs(const char *args, const char *says) {
	char out[4096];
	int status = rivulet(args, out);
	if (status != 0 || !strstr(out, says))
		fail_msg("%s: status %d, \"%s\" does not say \"%s\"", args, status, out, says);
}

static void assert_same_file(const char *a, const char *b) {
	char path[128];
	uint8_t *x, *y;
	size_t n_x, n_y;
	snprintf(path, sizeof path, "%s/%s", dir, a);
	assert_ok(rv_file_read(path, 1 << 20, &x, &n_x, &et));
	snprintf(path, sizeof path, "%s/%s", dir, b);
	assert_ok(rv_file_read(path, 1 << 20, &y, &n_y, &et));
	assert_int_equal(n_x, n_y);
	assert_memory_equal(x, y, n_x);
	free(x);
	free(y);
}

static void from_text_to_tokens(void **state) {
	(void)state;
	char path[128];
	struct shard s;
	int32_t first;
	assert_runs("tokenizer train --vocab 300 --data text --out a.json --threads 1", "300 tokens");
	assert_runs("tokenizer train --vocab 300 --data text --out b.json --threads 3", "300 tokens");
	assert_same_file("a.json", "b.json");
	assert_runs("tokenize --tokenizer a.json --data text --out a --threads 1", "in 1 files");
	assert_runs("tokenize --tokenizer a.json --data text --out b --threads 2", "in 1 files");
	assert_same_file("a/tokens-000000.bin", "b/tokens-000000.bin");
	snprintf(path, sizeof path, "%s/a/tokens-000000.bin", dir);
	assert_ok(shard_open(&s, path, &et));
	assert_ok(shard_read(&s, 300, 0, 1, &first, &et));
	assert_int_equal(first, 299);
	for (uint64_t i = 1; i < s.n_tokens; i++)
		assert_ok(shard_read(&s, 300, i, 1, &first, &et));
	shard_close(&s);
	assert_runs("tokenize --tokenizer bytes --data text --out c", "1.000 bytes per token");
	assert_runs("tokenize --tokenizer bytes --data 'te*t' --out d", "1.000 bytes per token");
}

static void refusals_say_why(void **state) {
	(void)state;
	static const struct {
		const char *args, *says;
		int status;
	} cases[] = {
		{"tokenizer learn --vocab 300 --data text", "there is only `tokenizer train`", 2},
		{"tokenizer train --vocab 100 --data text", "vocab", 2},
		{"tokenizer train --vocab 100000 --data text --out x.json", "more text, or a smaller vocabulary", 1},
		{"tokenize --tokenizer text --data text --out x", "neither a tokenizer.json", 1},
		{"tokenize --tokenizer bytes --separator '<s>' --data text --out x", "no such special token", 1},
		{"tokenize --tokenizer bytes --data none --out x", "none", 1},
		{"tokenize --tokenizer bytes --data 'no*' --out x", "no file has this name or matches", 1},
		{"tokenize --tokenizer bytes --data a/tokens-000000.bin --out x", "tokens already", 1},
		{"tokenizer train --vocab 300 --data a/tokens-000000.bin --out x", "tokens already", 1},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char out[4096];
		int status = rivulet(cases[i].args, out);
		if (status != cases[i].status || !strstr(out, cases[i].says))
			fail_msg("%s: status %d, \"%s\"", cases[i].args, status, out);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(from_text_to_tokens),
		cmocka_unit_test(refusals_say_why),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
