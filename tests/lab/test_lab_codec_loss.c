/* What a codec does to an outer gradient: nothing (fp32), as much as its rounding allows (int8),
 * fragment by fragment; and a run records it. */
#include "lab/run/codec_loss.h"
#include "tests/lab/lab_fixture.h"

#include <math.h>

enum { N = 3000, CHUNK = 256 };

static struct global_state g;
static float theta[N], local[N];
static uint8_t encoded[5 * N];

static void start(const struct codec *codec, uint32_t fragments) {
	struct global_config c = {.n = N, .chunks = chunking_of(N, CHUNK), .params = {.lr = 1}};
	const struct fragment_layers layers = {.begin = CHUNK, .layer_elems = 4 * CHUNK, .n = 2};
	c.codec = codec;
	c.optimizer = &outer_average;
	assert_int_equal(fragments_make(&c.chunks, fragments, &layers, &c.fragments, NULL), RV_OK);
	for (int i = 0; i < N; i++) {
		theta[i] = sinf((float)i);
		local[i] = theta[i] - 0.01F * cosf(7 * (float)i);
	}
	assert_int_equal(global_init(&g, &c, theta, NULL), RV_OK);
}

static struct codec_loss measure(void) {
	struct codec_loss loss;
	assert_int_equal(global_encode_delta(&g, local, encoded, NULL), RV_OK);
	assert_int_equal(codec_loss_measure(&g, local, encoded, &loss, NULL), RV_OK);
	return loss;
}

static int teardown(void **state) {
	(void)state;
	global_release(&g);
	return 0;
}

static void test_fp32_loses_nothing(void **state) {
	(void)state;
	start(&codec_fp32, 1);
	struct codec_loss loss = measure();
	assert_true(loss.error < 1e-6); /* theta - local is rounded once */
	assert_true(fabs(loss.cosine - 1) < 1e-12);
}

/* Rounding to steps of A / 127, evenly spread: sqrt(1 / 12) of a step; of a cosine wave the norm is
 * A / sqrt 2. */
static void test_int8_loses_its_rounding(void **state) {
	(void)state;
	start(&codec_int8, 1);
	struct codec_loss loss = measure();
	const double expected = sqrt(2.0 / 12) / 127;
	assert_true(loss.error > 0.8 * expected && loss.error < 1.2 * expected);
	assert_true(fabs(1 - loss.cosine - loss.error * loss.error / 2) < 1e-6);
}

/* Only what the round exchanges counts. */
static void test_of_a_fragment(void **state) {
	(void)state;
	start(&codec_int8, 3);
	for (int i = CHUNK; i < 5 * CHUNK; i++) /* the first fragment's layer has not moved */
		local[i] = theta[i];
	assert_true(measure().error == 0 && measure().cosine == 0);
	g.round = 1;
	assert_true(measure().error > 0 && measure().cosine > 0.999);
}

static void test_what_cannot_be_decoded_is_a_fault(void **state) {
	(void)state;
	struct codec_loss loss;
	struct rv_errtext et = {0};
	start(&codec_int8, 1);
	(void)measure();
	encoded[3] = 0x7f; /* a scale that is too large */
	encoded[2] = 0xff;
	assert_int_equal(codec_loss_measure(&g, local, encoded, &loss, &et), RV_E_CORRUPT);
}

static void test_a_round_has_it(void **state) {
	(void)state;
	struct lab_fixture f;
	struct lab_round round;
	lab_fixture_init(&f);
	struct lab_run *r = lab_fixture_start(&f);
	assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
	assert_true(round.codec_error > 0.001 && round.codec_error < 0.015);
	assert_true(round.codec_cosine > 0.9998 && round.codec_cosine < 1);
	lab_run_free(r);
	lab_fixture_release(&f);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_fp32_loses_nothing, teardown),
		cmocka_unit_test_teardown(test_int8_loses_its_rounding, teardown),
		cmocka_unit_test_teardown(test_of_a_fragment, teardown),
		cmocka_unit_test_teardown(test_what_cannot_be_decoded_is_a_fault, teardown),
		cmocka_unit_test(test_a_round_has_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
