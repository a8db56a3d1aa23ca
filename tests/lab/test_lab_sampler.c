/* From logits to tokens: the limits of temperature, top-k and top-p, and the frequencies in
 * between. */
#include "tests/lab/lab_fixture.h"

#include "lab/model/sampler.h"

#include <math.h>

enum { VOCAB = 5, DRAWS = 20000 };

/* Probabilities 1/2, 1/4, 1/8, 1/16, 1/16 in a shuffled order. */
static const float logits[VOCAB] = {-2.0794415f, -0.6931472f, -2.7725887f, -1.3862944f, -2.7725887f};

static void draw(struct sampler_params p, int *counts) {
	struct sampler *s;
	struct rv_rng rng = rv_rng_of(1, 2);
	assert_int_equal(sampler_new(&p, VOCAB, &s, NULL), RV_OK);
	for (int i = 0; i < VOCAB; i++)
		counts[i] = 0;
	for (int i = 0; i < DRAWS; i++)
		counts[sampler_next(s, logits, &rng)]++;
	sampler_free(s);
}

static void assert_share(int count, double share) {
	assert_true(fabs((double)count / DRAWS - share) < 5 * sqrt(share * (1 - share) / DRAWS) + 1e-12);
}

static void test_frequencies(void **state) {
	(void)state;
	int n[VOCAB];
	draw((struct sampler_params){.temperature = 1, .top_p = 1}, n);
	assert_share(n[1], 0.5);
	assert_share(n[3], 0.25);
	assert_share(n[0], 0.125);
	assert_share(n[2], 0.0625);
	assert_share(n[4], 0.0625);
	draw((struct sampler_params){.temperature = 0.5, .top_p = 1}, n); /* probabilities squared */
	assert_share(n[1], 0.25 / (0.25 + 0.0625 + 0.015625 + 2 * 0.00390625));
}

static void test_greedy(void **state) {
	(void)state;
	int n[VOCAB];
	draw((struct sampler_params){.temperature = 0, .top_p = 1}, n);
	assert_int_equal(n[1], DRAWS);
	draw((struct sampler_params){.temperature = 1, .top_k = 1, .top_p = 1}, n);
	assert_int_equal(n[1], DRAWS);
	draw((struct sampler_params){.temperature = 1, .top_p = 0.0001}, n);
	assert_int_equal(n[1], DRAWS);
}

static void test_top_k(void **state) {
	(void)state;
	int n[VOCAB];
	draw((struct sampler_params){.temperature = 1, .top_k = 2, .top_p = 1}, n);
	assert_share(n[1], 2.0 / 3);
	assert_share(n[3], 1.0 / 3);
	draw((struct sampler_params){.temperature = 1, .top_k = 4, .top_p = 1}, n);
	assert_int_equal(n[4], 0); /* as likely as 2, but of the larger number */
	assert_true(n[2] > 0);
}

static void test_top_p(void **state) {
	(void)state;
	int n[VOCAB];
	draw((struct sampler_params){.temperature = 1, .top_p = 0.7}, n); /* 1/2 + 1/4 reach it */
	assert_share(n[1], 2.0 / 3);
	assert_share(n[3], 1.0 / 3);
}

/* Of a large vocabulary, nothing but the likeliest is drawn, and each of them is. */
static void test_large_vocabulary(void **state) {
	(void)state;
	enum { MANY = 1000, K = 5 };
	static float many[MANY];
	int seen[MANY] = {0}, distinct = 0;
	struct rv_rng rng = rv_rng_of(3, 0);
	for (int i = 0; i < MANY; i++)
		many[i] = (float)rv_rng_normal(&rng);
	static const struct sampler_params limits[] = {{.temperature = 3, .top_k = K, .top_p = 1},
												   {.temperature = 3, .top_k = 50, .top_p = 0.1}};
	for (int l = 0; l < 2; l++) {
		struct sampler *s;
		assert_int_equal(sampler_new(&limits[l], MANY, &s, NULL), RV_OK);
		for (int i = 0; i < DRAWS / 10; i++)
			seen[sampler_next(s, many, &rng)] |= 1 << l;
		sampler_free(s);
	}
	for (int i = 0; i < MANY; i++) {
		int above = 0;
		for (int j = 0; j < MANY; j++)
			above += many[j] > many[i];
		assert_int_equal(seen[i] & 1, above < K);
		assert_true((seen[i] & 2) == 0 || above < 10); /* 50 candidates of similar weight: a tenth of it is few */
		distinct += (seen[i] & 2) != 0;
	}
	assert_in_range(distinct, 2, 10);
}

static void test_same_seed_same_tokens(void **state) {
	(void)state;
	const struct sampler_params p = {.temperature = 1, .top_p = 1};
	struct sampler *s;
	struct rv_rng a = rv_rng_of(9, 0), b = rv_rng_of(9, 0);
	assert_int_equal(sampler_new(&p, VOCAB, &s, NULL), RV_OK);
	for (int i = 0; i < 100; i++)
		assert_int_equal(sampler_next(s, logits, &a), sampler_next(s, logits, &b));
	sampler_free(s);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frequencies),
		cmocka_unit_test(test_greedy),
		cmocka_unit_test(test_top_k),
		cmocka_unit_test(test_top_p),
		cmocka_unit_test(test_large_vocabulary),
		cmocka_unit_test(test_same_seed_same_tokens),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
