/* What cannot become a GGUF file is refused with a reason, and leaves no file. (The files
 * themselves are read back in tests/export.) */
#include "tests/train/train_fixture.h"

#include "train/files/gguf.h"
#include "train/files/hf_tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct fixture_run run;
static char out[300], tokenizer[300];
static struct rv_errtext et;

static int setup(void **state) {
	(void)state;
	fixture_run_init(&run, NULL, "ref");
	snprintf(out, sizeof out, "%s/m.gguf", run.dir);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	fixture_run_release(&run);
	return 0;
}

static struct weights_source source(void) {
	return (struct weights_source){
		.cfg = &run.cfg, .layout = &replica_model(run.replica)->layout, .params = replica_theta(run.replica)};
}

/* The tokenizer of bytes with `from` replaced by `to`, in a file. */
static void write_tokenizer(const char *from, const char *to) {
	char *text = hf_tokenizer_of_bytes(), *at = strstr(text, from);
	assert_non_null(at);
	size_t n = strlen(text) + strlen(to);
	char *changed = malloc(n + 1);
	snprintf(changed, n + 1, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	fixture_write(run.dir, "t.json", (uint8_t *)changed, strlen(changed), tokenizer, sizeof tokenizer);
	free(changed);
	free(text);
}

static void refused(const struct weights_source *w, enum weights_format format, enum rv_err kind, const char *why) {
	assert_fault(gguf_save(out, w, format, &et), kind, &et, why);
	assert_int_not_equal(access(out, F_OK), 0);
}

static void test_tokenizers(void **state) {
	(void)state;
	struct weights_source w = source();
	w.tokenizer_file = tokenizer;
	write_tokenizer("\"use_regex\": true", "\"use_regex\": false");
	refused(&w, WEIGHTS_F32, RV_E_UNSUPPORTED, "neither GPT-2's nor Llama 3's");
	write_tokenizer("\"type\": \"BPE\"", "\"type\": \"Unigram\"");
	refused(&w, WEIGHTS_F32, RV_E_UNSUPPORTED, "only BPE");
	snprintf(tokenizer, sizeof tokenizer, "/nonexistent/t.json");
	refused(&w, WEIGHTS_F32, RV_E_NOTFOUND, "/nonexistent/t.json");
	w.tokenizer_file = NULL;
	assert_int_equal(gguf_save(out, &w, WEIGHTS_F32, &et), RV_OK);
}

static void test_numbers_that_do_not_fit(void **state) {
	(void)state;
	struct weights_source w = source();
	float *params = malloc(w.layout->n_params * sizeof *params);
	memcpy(params, w.params, w.layout->n_params * sizeof *params);
	w.params = params;
	params[w.layout->tensors[0].offset + 3] = 1e5f;
	refused(&w, WEIGHTS_F16, RV_E_RANGE, "tensor 'token_embd.weight': value 3 is 100000: F16 cannot hold it");
	assert_int_equal(gguf_save(out, &w, WEIGHTS_BF16, &et), RV_OK);
	free(params);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_tokenizers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_numbers_that_do_not_fit, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
