/* Weights that a run wrote predict, when loaded, what the run predicted. */
#include "tests/lab/lab_fixture.h"

#include "lab/model/loaded_model.h"
#include "train/files/hf_tokenizer.h"
#include "train/files/weights_save.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct loaded_model_options model_in(const char *where) {
	return (struct loaded_model_options){
		.where = where, .tokenizer = "", .dtype = RUN_DTYPE_AUTO, .max_batch = 1, .threads = 1};
}

/* A tokenizer beside the weights is the run's, or it is refused; that of others is taken for what
 * it is. */
static void tokenizer_beside_is_checked(struct lab_fixture *f, const char *weights, const struct model *trained,
										const float *theta) {
	char path[300];
	struct loaded_model *m;
	struct rv_errtext et = {0};
	struct run_config cfg = f->cfg.run;
	const struct loaded_model_options options = model_in(weights);
	char *text = hf_tokenizer_of_bytes();
	size_t n = strlen(text);
	fixture_write(f->dir, "tokenizer.json", (const uint8_t *)text, n, path, sizeof path);
	assert_int_equal(loaded_model_open(&options, &m, &et), RV_OK);
	assert_string_equal(tokenizer_kind(m->tokenizer), "bytes");
	loaded_model_close(m);
	text[n] = ' '; /* in place of the NUL: another file, with 256 tokens */
	fixture_write(f->dir, "tokenizer.json", (const uint8_t *)text, n + 1, path, sizeof path);
	assert_int_equal(loaded_model_open(&options, &m, &et), RV_OK);
	assert_string_equal(tokenizer_kind(m->tokenizer), "huggingface");
	loaded_model_close(m);
	memset(cfg.tokenizer_hash, 'a', sizeof cfg.tokenizer_hash - 1);
	const struct weights_source of_other = {.cfg = &cfg, .layout = &trained->layout, .params = theta};
	assert_int_equal(weights_save_files(f->dir, &of_other, NULL), RV_OK);
	assert_fault(loaded_model_open(&options, &m, &et), RV_E_INVALID, &et, "the run expects the file with hash");
	free(text);
}

static void test_predicts_the_same(void **state) {
	(void)state;
	struct lab_fixture f;
	lab_fixture_init(&f);
	f.cfg.run.rounds = 1;
	struct lab_run *r = lab_fixture_finished(&f);
	char path[300];
	snprintf(path, sizeof path, "%s/" WEIGHTS_FILE, f.dir);
	const struct model *trained = replica_model(r->replicas[0]);
	assert_int_equal(
		weights_save_files(
			f.dir, &(struct weights_source){.cfg = &f.cfg.run, .layout = &trained->layout, .params = r->global.theta},
			NULL),
		RV_OK);

	struct loaded_model *m;
	struct rv_errtext et = {0};
	const struct loaded_model_options by_directory = model_in(f.dir), by_file = model_in(path);
	int32_t inputs[16], targets[16];
	float losses[16];
	double loss = 0, sum = 0;
	uint64_t n = dataset_heldout_sequences(f.data);
	assert_int_equal(loaded_model_open(&by_directory, &m, &et), RV_OK); /* by directory */
	assert_int_equal(m->cfg.n_embd, 16);
	for (uint64_t i = 0; i < n; i++) {
		dataset_heldout_sequence(f.data, i, inputs, targets, NULL);
		model_forward(m->model, m->params, inputs, 1, 16);
		model_loss(m->model, m->params, targets, losses);
		for (int t = 0; t < 16; t++)
			sum += (double)losses[t] / 16;
	}
	assert_int_equal(lab_run_eval(r, &loss, NULL), RV_OK);
	assert_true(fabs(sum / (double)n - loss) < 1e-4);
	loaded_model_close(m);
	assert_int_equal(loaded_model_open(&by_file, &m, &et), RV_OK); /* by file */
	loaded_model_close(m);
	tokenizer_beside_is_checked(&f, path, trained, r->global.theta);
	lab_run_free(r);
	lab_fixture_release(&f);
}

static void test_refusals(void **state) {
	(void)state;
	struct loaded_model *m;
	struct rv_errtext et = {0};
	const struct loaded_model_options nowhere = model_in("/nonexistent");
	assert_fault(loaded_model_open(&nowhere, &m, &et), RV_E_NOTFOUND, &et, "/nonexistent");
	assert_null(m);
	loaded_model_close(m);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_predicts_the_same),
		cmocka_unit_test(test_refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
