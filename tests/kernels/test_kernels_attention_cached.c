/* test_kernels_attention_cached.c: attention over a cache gives attention_forward's rows, however
 * the tokens come. */
#include "tests/kernels/fixture.h"

#include <math.h>
#include <stdlib.h>

/* Around a vector of keys (16, 8, 4), the few queries that are not packed (4), the queries of a
 * task (32) and the block of keys (64); head dimensions that are and are not whole tiles; grouped
 * heads, also more than a task's queries. */
static const struct attention_shape shapes[] = {{1, 1, 1, 1, 2},     {1, 3, 2, 2, 6},     {1, 7, 4, 1, 8},
												{1, 17, 6, 2, 64},   {1, 33, 2, 1, 80},   {1, 65, 3, 3, 17},
												{1, 127, 4, 2, 128}, {1, 200, 2, 1, 130}, {1, 64, 8, 8, 1},
												{1, 1023, 1, 1, 16}, {1, 5, 40, 1, 8}};

static size_t token_width(struct attention_shape s) {
	return (size_t)(s.heads + 2 * s.kv_heads) * s.head_dim;
}

static size_t out_count(struct attention_shape s) {
	return (size_t)s.t * s.heads * s.head_dim;
}

static size_t cache_count(struct attention_shape s) {
	return (size_t)s.t * s.kv_heads * s.head_dim;
}

struct cache {
	float *k, *v, *out;
};

/* The caches start as NaN: a row that is read before it was appended spoils the output. */
static struct cache new_cache(struct attention_shape s) {
	struct cache c = {zero_floats(cache_count(s)), zero_floats(cache_count(s)), zero_floats(out_count(s))};
	for (size_t i = 0; i < cache_count(s); i++)
		c.k[i] = c.v[i] = NAN;
	return c;
}

static void release(struct cache *c) {
	free(c->k);
	free(c->v);
	free(c->out);
}

/* Tokens [first, first + n). */
static void feed(struct backend *be, struct cache *c, float *qkv, struct attention_shape s, int first, int n) {
	struct attention_shape part = s;
	part.t = n;
	be->ops->attention_cached(be, as_act(c->out + (size_t)first * s.heads * s.head_dim), as_act(c->k), as_act(c->v),
							  as_act(qkv + (size_t)first * token_width(s)), part, first);
}

/* Calls of n, n + step, n + 2 step, ... tokens. */
static struct cache feed_all(struct backend *be, float *qkv, struct attention_shape s, int n, int step) {
	struct cache c = new_cache(s);
	for (int first = 0; first < s.t; first += n, n += step)
		feed(be, &c, qkv, s, first, n < s.t - first ? n : s.t - first);
	return c;
}

static void check_appended(const struct cache *c, const float *qkv, struct attention_shape s) {
	size_t width = (size_t)s.kv_heads * s.head_dim, q_width = (size_t)s.heads * s.head_dim;
	for (int t = 0; t < s.t; t++) {
		const float *token = qkv + (size_t)t * token_width(s);
		check_same("k", c->k + (size_t)t * width, token + q_width, width);
		check_same("v", c->v + (size_t)t * width, token + q_width + width, width);
	}
}

static void cached_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	struct attention_shape s = *(const struct attention_shape *)ctx;
	float *qkv = random_floats((size_t)s.t * token_width(s), 1, 2);
	float *want = zero_floats(out_count(s)), *lse = zero_floats((size_t)s.heads * s.t);
	ref->ops->attention_forward(ref, as_act(want), lse, as_act(qkv), s);
	struct cache whole = feed_all(cpu, qkv, s, s.t, 0);
	check_close("cpu", whole.out, want, out_count(s), TOL_ATTENTION);
	check_appended(&whole, qkv, s);
	const int splits[][2] = {{1, 0}, {5, 0}, {1, 1}, {s.t / 2 + 1, 0}};
	for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
		struct cache parts = feed_all(cpu, qkv, s, splits[i][0], splits[i][1]);
		check_same("cpu, in parts", parts.out, whole.out, out_count(s));
		check_appended(&parts, qkv, s);
		release(&parts);
	}
	release(&whole);
	free(qkv);
	free(want);
	free(lse);
}

static void any_split_gives_the_rows_of_attention_forward(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		for_each_variant(cached_body, &shapes[i]);
}

static void ref_in_parts_equals_ref(void **state) {
	(void)state;
	struct backend *ref = open_ref();
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
		struct attention_shape s = shapes[i];
		float *qkv = random_floats((size_t)s.t * token_width(s), 1, 2);
		float *want = zero_floats(out_count(s)), *lse = zero_floats((size_t)s.heads * s.t);
		ref->ops->attention_forward(ref, as_act(want), lse, as_act(qkv), s);
		struct cache parts = feed_all(ref, qkv, s, 1, 1);
		check_same("ref", parts.out, want, out_count(s));
		check_appended(&parts, qkv, s);
		release(&parts);
		free(qkv);
		free(want);
		free(lse);
	}
	backend_close(ref);
}

/* Going back: a token fed again at an earlier position replaces what was there, and later rows are
 * not looked at. */
static void rewind_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	(void)ref;
	(void)ctx;
	enum { T = 37, AT = 20 };
	const struct attention_shape s = {1, T, 4, 2, 24};
	size_t row = (size_t)s.heads * s.head_dim, known = (AT + 1) * row;
	float *qkv = random_floats(T * token_width(s), 1, 1), *other = random_floats(T * token_width(s), 2, 1);
	struct cache c = feed_all(cpu, qkv, s, T, 0);
	float *want = copy_floats(c.out, known);
	feed(cpu, &c, other, s, AT, T - AT);
	feed(cpu, &c, qkv, s, AT, 1);
	check_same("out", c.out, want, known);
	release(&c);
	free(qkv);
	free(other);
	free(want);
}

static void a_position_can_be_taken_again(void **state) {
	(void)state;
	for_each_variant(rewind_body, NULL);
}

static void large_body(struct backend *ref, struct backend *cpu, const void *ctx) {
	(void)ctx;
	const struct attention_shape s = {1, 40, 2, 2, 16};
	float *qkv = random_floats((size_t)s.t * token_width(s), 1, 60);
	struct cache want = feed_all(ref, qkv, s, s.t, 0), got = feed_all(cpu, qkv, s, 3, 0);
	check_close("out", got.out, want.out, out_count(s), TOL_LARGE_SCORES);
	release(&want);
	release(&got);
	free(qkv);
}

static void large_scores_do_not_overflow(void **state) {
	(void)state;
	for_each_variant(large_body, NULL);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_split_gives_the_rows_of_attention_forward), cmocka_unit_test(ref_in_parts_equals_ref),
		cmocka_unit_test(a_position_can_be_taken_again), cmocka_unit_test(large_scores_do_not_overflow)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
