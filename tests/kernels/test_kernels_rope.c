/* test_kernels_rope.c: rotary embedding of `cpu` against `ref`, and what a rotation must keep. */
#include "tests/kernels/fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct rope_case {
	struct attention_shape s;
	int first;
};

static const struct rope_case cases[] = {{{1, 1, 1, 1, 2}, 0},     {{1, 3, 2, 2, 6}, 5},    {{2, 17, 3, 1, 8}, 0},
										 {{3, 33, 4, 2, 64}, 7},   {{1, 127, 2, 1, 80}, 1}, {{2, 7, 6, 2, 128}, 0},
										 {{1, 1023, 1, 1, 10}, 3}, {{1, 1, 8, 2, 34}, 1000}};

static size_t token_width(struct attention_shape s) {
	return (size_t)(s.heads + 2 * s.kv_heads) * s.head_dim;
}

static size_t qkv_count(struct attention_shape s) {
	return (size_t)s.b * s.t * token_width(s);
}

/* (positions, head_dim/2, 2) to the byte, so that AddressSanitizer sees a read past the last
 * position. */
static float *new_table(int positions, int head_dim) {
	float *table = zero_floats((size_t)positions * head_dim);
	for (int p = 0; p < positions; p++)
		for (int i = 0; i < head_dim / 2; i++) {
			double angle = p * pow(10000, -2.0 * i / head_dim);
			float *pair = table + (size_t)p * head_dim + 2 * (size_t)i;
			pair[0] = (float)cos(angle);
			pair[1] = (float)sin(angle);
		}
	return table;
}

static void rope_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	const struct rope_case *k = ctx;
	size_t n = qkv_count(k->s);
	float *table = new_table(k->first + k->s.t, k->s.head_dim);
	float *x = random_floats(n, 1, 2), *want = copy_floats(x, n), *got = copy_floats(x, n);
	for (int inverse = 0; inverse < 2; inverse++) {
		memcpy(want, x, n * sizeof *x);
		memcpy(got, x, n * sizeof *x);
		ref->ops->rope(ref, as_act(want), table, k->s, k->first, inverse);
		cpu->ops->rope(cpu, as_act(got), table, k->s, k->first, inverse);
		check_close(inverse ? "inverse" : "rope", got, want, n, TOL_ELEMENTWISE);
		cpu->ops->rope(cpu, as_act(got), table, k->s, k->first, !inverse);
		check_close("there and back", got, x, n, TOL_ELEMENTWISE);
	}
	float *all[] = {table, x, want, got};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
}

static void rope_equals_ref_and_its_inverse_undoes_it(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for_each_variant(rope_body, &cases[i]);
}

/* A quarter turn of (1, 2 | 3, 4) is (-3, -4 | 1, 2): pairs are half a head apart, not
 * neighbours. */
static void values_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	(void)ctx;
	const struct attention_shape s = {1, 1, 1, 1, 4};
	const float quarter[4] = {0, 1, 0, 1}, want[12] = {-3, -4, 1, 2, -7, -8, 5, 6, 9, 10, 11, 12};
	struct backend *both[] = {ref, cpu};
	for (int i = 0; i < 2; i++) {
		float qkv[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
		both[i]->ops->rope(both[i], as_act(qkv), quarter, s, 0, false);
		check_close("qkv", qkv, want, 12, TOL_EXACT);
	}
}

static void pairs_are_half_a_head_apart(void **state) {
	(void)state;
	for_each_variant(values_body, NULL);
}

/* The last `T - first` tokens of a sequence alone, at position `first`, turn as they do within
 * it. */
static void position_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	(void)ref;
	(void)ctx;
	enum { T = 29, HD = 24 };
	const struct attention_shape s = {1, T, 3, 1, HD};
	size_t n = qkv_count(s);
	float *table = new_table(T, HD), *whole = random_floats(n, 1, 1), *x = copy_floats(whole, n);
	cpu->ops->rope(cpu, as_act(whole), table, s, 0, false);
	for (int first = 0; first < T; first += 7) {
		struct attention_shape rest = s;
		rest.t = T - first;
		size_t at = (size_t)first * token_width(s);
		float *part = copy_floats(x + at, n - at);
		cpu->ops->rope(cpu, as_act(part), table, rest, first, false);
		check_same("part", part, whole + at, n - at);
		free(part);
	}
	free(table);
	free(whole);
	free(x);
}

static void first_is_the_position_of_the_first_token(void **state) {
	(void)state;
	for_each_variant(position_body, NULL);
}

/* What the rotation is for: q . k depends on the distance of their positions alone. */
static void distance_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	(void)ref;
	(void)ctx;
	enum { HD = 16, POSITIONS = 40, DISTANCE = 9 };
	const struct attention_shape s = {1, 1, 1, 1, HD};
	float *table = new_table(POSITIONS, HD), *x = random_floats(3 * HD, 1, 1), scores[2];
	for (int i = 0; i < 2; i++) {
		float *at_q = copy_floats(x, 3 * HD), *at_k = copy_floats(x, 3 * HD);
		int position = i ? POSITIONS - 1 : DISTANCE;
		cpu->ops->rope(cpu, as_act(at_q), table, s, position, false);
		cpu->ops->rope(cpu, as_act(at_k), table, s, position - DISTANCE, false);
		double score = 0;
		for (int d = 0; d < HD; d++)
			score += (double)at_q[d] * (double)at_k[HD + d];
		scores[i] = (float)score;
		free(at_q);
		free(at_k);
	}
	check_close("score", scores + 1, scores, 1, TOL_PRODUCT);
	free(table);
	free(x);
}

static void scores_depend_on_distance_alone(void **state) {
	(void)state;
	for_each_variant(distance_body, NULL);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rope_equals_ref_and_its_inverse_undoes_it), cmocka_unit_test(pairs_are_half_a_head_apart),
		cmocka_unit_test(first_is_the_position_of_the_first_token), cmocka_unit_test(scores_depend_on_distance_alone)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
