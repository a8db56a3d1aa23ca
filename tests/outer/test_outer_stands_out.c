/* test_outer_stands_out.c: which mean stands out beside a worker's own contribution, and that none
 * does among those that honest owners make. */
#include "outer/merge.h"
#include "outer/stands_out.h"
#include "tests/common/check.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

enum { CHUNKS = 32, ELEMS = 256, MOST = 64 };

static double own[CHUNKS], mean[CHUNKS], cosine[CHUNKS], work[CHUNKS];

/* Sets ordinary ones: of four contributions that are partly alike. */
static void make_ordinary(double scale) {
	for (int i = 0; i < CHUNKS; i++) {
		own[i] = scale * (1 + 0.1 * (i % 7));
		mean[i] = 0.5 * (1 + 0.1 * (i % 5));
		cosine[i] = 0.2 + 0.1 * (i % 6);
	}
}

static int64_t look(void) {
	struct stands_out_chunk chunks[CHUNKS];
	for (int i = 0; i < CHUNKS; i++)
		chunks[i] = (struct stands_out_chunk){.own = own[i],
											  .mean = mean[i],
											  .both = mean[i] < 0 ? 0 : cosine[i] * sqrt(own[i] * mean[i]),
											  .known = mean[i] >= 0};
	return stands_out(chunks, CHUNKS, work);
}

static void the_largest_beside_the_own_one_is_found(void **state) {
	(void)state;
	make_ordinary(1);
	assert_int_equal(look(), -1);
	mean[9] *= 64 * 64;
	assert_int_equal(look(), 9);
	mean[30] *= 5000.0 * 5000.0;
	assert_int_equal(look(), 30);
	mean[30] = -1; /* its own: nobody lies to itself */
	assert_int_equal(look(), 9);
}

static void a_quarter_of_all_does_not_hide_itself(void **state) {
	(void)state;
	make_ordinary(1);
	for (int i = 0; i < CHUNKS / 4; i++)
		mean[i] *= (9 + i) * (9 + i);
	assert_int_equal(look(), CHUNKS / 4 - 1);
}

/* It has trained for one step where others did 500. */
static void a_small_contribution_names_what_stands_out_and_no_honest_mean(void **state) {
	(void)state;
	make_ordinary(1.0 / (500 * 500));
	assert_int_equal(look(), -1);
	mean[9] *= 64 * 64;
	assert_int_equal(look(), 9);
}

static void rows_that_it_has_not_read_do_not_stand_out(void **state) {
	(void)state;
	make_ordinary(1);
	own[3] = 0;
	own[4] = 1e-9;
	assert_int_equal(look(), -1);
	mean[3] *= 64 * 64;
	assert_int_equal(look(), 3);
}

static void nothing_is_known_of_zeros_or_of_one_chunk(void **state) {
	(void)state;
	make_ordinary(0);
	assert_int_equal(look(), -1);
	make_ordinary(1);
	for (int i = 0; i < CHUNKS; i++)
		mean[i] = -1;
	assert_int_equal(look(), -1);
	mean[0] = 1e6; /* nothing to compare it with */
	assert_int_equal(look(), -1);
}

static void one_that_points_the_other_way_is_found(void **state) {
	(void)state;
	make_ordinary(1);
	cosine[4] = -0.1; /* of what this worker alone has read in another way */
	assert_int_equal(look(), -1);
	cosine[11] = -0.9;
	assert_int_equal(look(), 11);
	mean[3] *= 64 * 64; /* does more harm */
	assert_int_equal(look(), 3);
	make_ordinary(1);
	own[11] = 1e-9;
	cosine[11] = -0.9; /* it has read next to nothing there */
	assert_int_equal(look(), -1);
	make_ordinary(1);
	for (int i = 0; i < CHUNKS; i++)
		cosine[i] = i % 3 == 0 ? 0.1 : -0.3; /* its own contribution is what is unlike the others */
	assert_int_equal(look(), -1);
}

/* Chunks of contributions in which everybody has a share, from 0 to all, in common. */
static void draw(struct rv_rng *rng, int n_in, float x[][ELEMS], double alike) {
	for (int k = 0; k < ELEMS; k++) {
		const double common = rv_rng_normal(rng);
		for (int i = 0; i < n_in; i++)
			x[i][k] = (float)(sqrt(alike) * common + sqrt(1 - alike) * rv_rng_normal(rng));
	}
}

static double product(const float *x, const float *y) {
	double sum = 0;
	for (int k = 0; k < ELEMS; k++)
		sum += (double)x[k] * (double)y[k];
	return sum / ELEMS;
}

/* By every rule of merging that audits are for, whatever chunks have in common: so a false alarm
 * needs two that trained less than the others. */
static void no_mean_of_usual_contributions_stands_out(void **state) {
	(void)state;
	static float x[MOST][ELEMS], scratch[(MOST + 4) * ELEMS], decoded[ELEMS];
	static const struct merge_ops *const rules[] = {&merge_mean, &merge_clipped, &merge_agreed};
	static uint8_t encoded[ELEMS * 4];
	struct rv_rng rng = rv_rng_of(21, 7);
	for (int n_in = 3; n_in <= MOST; n_in = n_in * 2 + 1)
		for (int rule = 0; rule < 3; rule++) {
			for (int c = 0; c < CHUNKS; c++) {
				const uint8_t *in[MOST];
				uint32_t weights[MOST];
				draw(&rng, n_in, x, c % 4 == 0 ? 1 : c % 4 == 1 ? 0.3 : 0);
				for (int i = 0; i < n_in; i++) {
					in[i] = (const uint8_t *)(const void *)x[i];
					weights[i] = 1;
				}
				const struct merge_rule r = {
					.ops = rules[rule], .contributions = &codec_fp32, .mean = &codec_fp32, .params = {.clip = 1.25}};
				assert_int_equal(merge_chunk(&r, in, weights, n_in, ELEMS, scratch, NULL, encoded, NULL, NULL), RV_OK);
				memcpy(decoded, encoded, sizeof decoded);
				own[c] = product(x[0], x[0]);
				mean[c] = product(decoded, decoded);
				cosine[c] = product(x[0], decoded) / sqrt(own[c] * mean[c]);
			}
			assert_int_equal(look(), -1);
			cosine[4] *= -1; /* all have this in common */
			assert_int_equal(look(), 4);
			mean[5] *= 64 * 64;
			assert_int_equal(look(), 5);
		}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_largest_beside_the_own_one_is_found),
		cmocka_unit_test(a_quarter_of_all_does_not_hide_itself),
		cmocka_unit_test(a_small_contribution_names_what_stands_out_and_no_honest_mean),
		cmocka_unit_test(rows_that_it_has_not_read_do_not_stand_out),
		cmocka_unit_test(nothing_is_known_of_zeros_or_of_one_chunk),
		cmocka_unit_test(one_that_points_the_other_way_is_found),
		cmocka_unit_test(no_mean_of_usual_contributions_stands_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
