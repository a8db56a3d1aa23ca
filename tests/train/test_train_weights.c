/* Weights to a safetensors file and back, bit for bit; and files that are not what they should
 * be. */
#include "tests/train/find_tensor.h"
#include "tests/train/train_fixture.h"

#include "train/files/safetensors.h"
#include "train/files/weights.h"
#include "train/files/weights_save.h"
#include "train/model/model.h"

#include <stdio.h>
#include <stdlib.h>

struct saved {
	struct fixture_run run;
	const struct model_layout *layout;
	char path[300];
};

static int setup(void **state) {
	struct saved *s = calloc(1, sizeof *s);
	assert_non_null(s);
	fixture_run_init(&s->run, NULL, "ref");
	s->layout = &replica_model(s->run.replica)->layout;
	snprintf(s->path, sizeof s->path, "%s/" WEIGHTS_FILE, s->run.dir);
	const struct weights_origin origin = {.round = 3, .step = 12, .tokens = 999};
	const struct weights_source source = {
		.cfg = &s->run.cfg, .layout = s->layout, .params = replica_theta(s->run.replica), .origin = origin};
	assert_int_equal(weights_save_files(s->run.dir, &source, NULL), RV_OK);
	*state = s;
	return 0;
}

static int teardown(void **state) {
	struct saved *s = *state;
	fixture_run_release(&s->run);
	free(s);
	return 0;
}

static void test_round_trip(void **state) {
	struct saved *s = *state;
	struct run_config cfg;
	struct model_layout layout;
	float *params;
	assert_ok(weights_load(s->path, &s->run.cfg, &layout, &params, &et));
	assert_memory_equal(params, replica_theta(s->run.replica), s->layout->n_params * sizeof *params);
	free(params);
	model_layout_release(&layout);
	assert_ok(weights_load_config(s->path, &cfg, &et));
	char want[4096], got[4096];
	rv_options_print(run_config_options, &s->run.cfg, want, sizeof want);
	rv_options_print(run_config_options, &cfg, got, sizeof got);
	assert_string_equal(got, want);
}

/* Names, shapes and orientation are those of Hugging Face's GPT-2. */
static void test_file_is_as_the_ecosystem_has_it(void **state) {
	struct saved *s = *state;
	struct safetensors *f;
	float matrix[16 * 48];
	assert_int_equal(safetensors_open(s->path, &f, NULL), RV_OK);
	assert_int_equal(safetensors_count(f), s->layout->n_tensors);
	assert_string_equal(safetensors_metadata(f, "format"), "pt");
	assert_string_equal(safetensors_metadata(f, "rivulet.round"), "3");
	const struct safetensors_tensor *t = find_tensor(f, "transformer.h.1.attn.c_attn.weight");
	assert_non_null(t);
	assert_int_equal(t->n_dims, 2);
	assert_int_equal(t->dims[0], 16); /* (in, out) */
	assert_int_equal(t->dims[1], 48);
	assert_int_equal(safetensors_read_f32(f, t, 0, 16 * 48, matrix, NULL), RV_OK);
	const float *flat =
		replica_theta(s->run.replica) + model_find_tensor(s->layout, "h.1.attn.c_attn.weight")->offset; /* (out, in) */
	for (int in = 0; in < 16; in++)
		for (int out = 0; out < 48; out++)
			assert_true(matrix[in * 48 + out] == flat[out * 16 + in]);
	t = find_tensor(f, "transformer.wte.weight");
	assert_int_equal(t->dims[0], 256);
	t = find_tensor(f, "transformer.ln_f.bias");
	assert_int_equal(t->n_dims, 1);
	safetensors_close(f);
}

static void test_other_shape_is_refused(void **state) {
	struct saved *s = *state;
	struct rv_errtext et = {0};
	struct run_config cfg = s->run.cfg;
	struct model_layout layout;
	float *params;
	cfg.n_embd = 32;
	assert_fault(weights_load(s->path, &cfg, &layout, &params, &et), RV_E_CORRUPT, &et, "is not of shape");
	assert_null(params);
	cfg = s->run.cfg;
	cfg.n_layer = 3;
	assert_fault(weights_load(s->path, &cfg, &layout, &params, &et), RV_E_CORRUPT, &et,
				 "has no tensor 'h.2.ln_1.weight'");
}

static void test_missing_file(void **state) {
	struct saved *s = *state;
	struct rv_errtext et = {0};
	struct run_config cfg;
	struct model_layout layout;
	float *params;
	assert_fault(weights_load("/nonexistent/w", &s->run.cfg, &layout, &params, &et), RV_E_NOTFOUND, &et,
				 "/nonexistent/w");
	assert_fault(weights_load_config("/nonexistent/w", &cfg, &et), RV_E_NOTFOUND, &et, "/nonexistent/w");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
		cmocka_unit_test_setup_teardown(test_file_is_as_the_ecosystem_has_it, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_shape_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_missing_file, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
