/* What encoding means lost: sent later, not consumed by an attempt that fails, lost with a change
 * of owner, and the same after a restart. */
#include "outer/mean_residual.h"
#include "tests/common/check.h"
#include "tests/outer/vectors.h"

#include <stdlib.h>
#include <string.h>

enum { N = 20000, CHUNK = 4096, N_CHUNKS = 5, LONGEST = 4 * N };

struct world {
	struct run_config run;
	struct global_config g;
	struct mean_residual m;
};

static float mean[N], decoded[N], a[N], theta[N];
static uint8_t out[LONGEST], again[LONGEST];

static void begin(struct world *w, const char *codec, double beta, const char *fragments) {
	const struct rv_hash nameless = {{0}};
	const struct fragment_layers layers = {.begin = 0, .layer_elems = CHUNK, .n = 4};
	run_config_defaults(&w->run);
	(void)rv_options_set(run_config_options, &w->run, "mean-codec", codec, NULL);
	(void)rv_options_set(run_config_options, &w->run, "fragments", fragments, NULL);
	w->run.mean_feedback = beta;
	w->run.chunk_elems = CHUNK;
	assert_ok(global_config_of(&w->run, N, &layers, &nameless, &w->g, &et));
	assert_ok(mean_residual_init(&w->m, &w->run, &w->g, &et));
}

static void end(struct world *w) {
	mean_residual_release(&w->m);
}

static size_t at_of(const struct world *w, uint32_t i) {
	const struct chunking c = global_round_chunks(&w->g, w->m.round);
	return chunking_offset_bytes(&c, w->g.codec, i);
}

/* Encodes the mean of chunk i, drawn from `seed`, into `to`; leaves what was to be encoded in
 * `a`. */
static void encode(struct world *w, uint32_t i, uint64_t seed, uint8_t *to) {
	struct feedback room;
	const struct chunking c = global_round_chunks(&w->g, w->m.round);
	const size_t n = chunking_len(&c, i), at = (size_t)i * CHUNK;
	fill_normal(mean + at, n, 1000 * seed + i);
	memcpy(a + at, mean + at, n * sizeof *a);
	assert_ok(feedback_encode(w->g.codec, a + at, n, mean_residual_of(&w->m, &w->g, i, &room), to + at_of(w, i), &et));
}

static void attempt(struct world *w, uint64_t round, uint32_t number, uint64_t seed, uint8_t *to) {
	mean_residual_begin(&w->m, &w->g, round, number);
	const uint32_t n = global_round_chunks(&w->g, round).n_chunks;
	for (uint32_t i = 0; i < n; i++)
		encode(w, i, seed, to);
}

static void decode(const struct world *w) {
	for (uint32_t i = 0; i < N_CHUNKS; i++)
		assert_ok(w->g.codec->decode(w->g.codec, out + at_of(w, i), chunking_len(&w->g.chunks, i),
									 decoded + (size_t)i * CHUNK, &et));
}

/* decoded + e' = mean + beta e, in every round, to the bit, for every codec. */
static void test_nothing_is_lost(void **state) {
	(void)state;
	for (const struct codec *const *c = codec_registry; *c; c++)
		for (int b = 0; b < 2; b++) {
			const float beta = b ? 0.9f : 1;
			static float before[N];
			struct world w;
			begin(&w, (*c)->name, (double)beta, "1");
			for (uint64_t round = 0; round < 6; round++) {
				memcpy(before, w.m.kept, sizeof before);
				attempt(&w, round, 1, round, out);
				assert_memory_equal(before, w.m.kept, sizeof before); /* until it is committed */
				decode(&w);
				mean_residual_commit(&w.m, &w.g, round, 1);
				for (size_t i = 0; i < N; i++) {
					assert_true(a[i] == beta * before[i] + mean[i]);
					assert_true(w.m.kept[i] == a[i] - decoded[i]);
				}
			}
			end(&w);
		}
}

/* Sends the same mean `rounds` times with topk64; returns how much of all of it arrives,
 * squared. */
static double share_that_arrives(double beta, int rounds) {
	struct world w;
	double got = 0, meant = 0;
	begin(&w, "topk64", beta, "1");
	memset(theta, 0, sizeof theta);
	for (int round = 0; round < rounds; round++) {
		attempt(&w, (uint64_t)round, 1, 1, out);
		decode(&w);
		mean_residual_commit(&w.m, &w.g, (uint64_t)round, 1);
		for (size_t i = 0; i < N; i++)
			theta[i] += decoded[i];
	}
	for (size_t i = 0; i < N; i++) {
		const double off = (double)theta[i] / rounds - (double)mean[i];
		got += off * off;
		meant += (double)mean[i] * (double)mean[i];
	}
	end(&w);
	return 1 - got / meant;
}

static void test_the_rest_arrives_later(void **state) {
	(void)state;
	assert_true(share_that_arrives(1, 300) > 0.99);
	assert_true(share_that_arrives(0, 300) < 0.6); /* the same 64 of 4096 again and again */
}

/* Attempts that fail leave no mark: the committed one has the bytes that it would have had
 * alone. */
static void test_a_failed_attempt_consumes_nothing(void **state) {
	(void)state;
	struct world w, other;
	begin(&w, "topk64", 1, "1");
	begin(&other, "topk64", 1, "1");
	for (uint64_t round = 0; round < 5; round++) {
		attempt(&w, round, 1, 100 + round, again);
		if (round % 2) /* stopped in the middle */
			mean_residual_begin(&w.m, &w.g, round, 2);
		attempt(&w, round, 3, round, out);
		mean_residual_commit(&w.m, &w.g, round, 3);
		attempt(&other, round, 1, round, again);
		mean_residual_commit(&other.m, &other.g, round, 1);
		assert_memory_equal(out, again, at_of(&w, N_CHUNKS - 1));
		assert_memory_equal(w.m.kept, other.m.kept, N * sizeof(float));
	}
	end(&w);
	end(&other);
}

/* The result of another attempt, or a fetched one, is not what the encoding here left. */
static void test_of_another_attempt_all_is_lost(void **state) {
	(void)state;
	for (uint32_t committed = 0; committed < 4; committed++) {
		struct world w;
		begin(&w, "topk64", 1, "1");
		attempt(&w, 0, 1, 1, out);
		mean_residual_commit(&w.m, &w.g, 0, 1);
		attempt(&w, 1, 2, 2, out);
		mean_residual_commit(&w.m, &w.g, 1, committed);
		assert_int_equal(mean_residual_holds(&w.m, &w.g, 2), committed == 2);
		end(&w);
	}
}

/* A chunk whose mean another member made in between has no residual; the others keep theirs. */
static void test_what_moved_is_lost(void **state) {
	(void)state;
	struct world w;
	struct feedback room;
	begin(&w, "topk64", 1, "1");
	attempt(&w, 0, 1, 1, out);
	mean_residual_commit(&w.m, &w.g, 0, 1);
	mean_residual_begin(&w.m, &w.g, 1, 1);
	encode(&w, 2, 7, out);
	mean_residual_commit(&w.m, &w.g, 1, 1);
	mean_residual_begin(&w.m, &w.g, 2, 1);
	for (uint32_t i = 0; i < N_CHUNKS; i++)
		assert_int_equal(mean_residual_of(&w.m, &w.g, i, &room)->kept != NULL, i == 2);
	mean_residual_lose(&w.m, &w.g, 2, 2);
	assert_null(mean_residual_of(&w.m, &w.g, 2, &room)->kept);
	end(&w);
}

/* The bytes of another attempt were the same, and it was that one which was committed. */
static void test_what_the_coordinator_does_not_confirm_is_lost(void **state) {
	(void)state;
	struct world w;
	struct feedback room;
	static const uint32_t named[] = {2, 3, 1, 0};
	for (int k = 0; k < 4; k++) {
		begin(&w, "topk64", 1, "3");
		for (uint64_t round = 0; round < 3; round++) {
			attempt(&w, round, round == 0 ? 2 : 1, round, out);
			mean_residual_commit(&w.m, &w.g, round, round == 0 ? 2 : 1);
		}
		mean_residual_prove(&w.m, &w.g, 3, named[k]);
		mean_residual_begin(&w.m, &w.g, 3, 1);
		for (uint32_t i = 0; i < global_round_chunks(&w.g, 3).n_chunks; i++)
			assert_int_equal(mean_residual_of(&w.m, &w.g, i, &room)->kept != NULL, named[k] == 2);
		assert_true(mean_residual_holds(&w.m, &w.g, 4) && mean_residual_holds(&w.m, &w.g, 5));
		end(&w);
	}
}

/* Rounds that exchange other fragments change nothing of this one's. */
static void test_each_fragment_has_its_own(void **state) {
	(void)state;
	struct world w;
	begin(&w, "topk64", 1, "3");
	for (uint64_t round = 0; round < 3; round++) {
		attempt(&w, round, 1, round, out);
		mean_residual_commit(&w.m, &w.g, round, 1);
	}
	static float before[N];
	memcpy(before, w.m.kept, sizeof before);
	for (uint64_t round = 3; round < 6; round++)
		assert_true(mean_residual_holds(&w.m, &w.g, round));
	mean_residual_commit(&w.m, &w.g, 4, 0);
	assert_true(mean_residual_holds(&w.m, &w.g, 3));
	assert_false(mean_residual_holds(&w.m, &w.g, 4));
	assert_true(mean_residual_holds(&w.m, &w.g, 5));
	mean_residual_forget(&w.m, &w.g);
	assert_false(mean_residual_holds(&w.m, &w.g, 3));
	assert_memory_equal(before, w.m.kept, sizeof before);
	end(&w);
}

/* Another process goes on with the same bits: with what was committed, and with an attempt that
 * is. */
static void test_goes_on_after_a_restart(void **state) {
	(void)state;
	struct world w, after;
	begin(&w, "topk128", 0.5, "3");
	attempt(&w, 7, 2, 1, out);
	encode(&w, 0, 3, out); /* made again */
	const size_t n = mean_residual_saved_bytes(&w.m, &w.g);
	assert_true(n <= mean_residual_max_bytes(&w.g));
	uint8_t *file = malloc(n);
	mean_residual_save(&w.m, &w.g, file);
	mean_residual_commit(&w.m, &w.g, 7, 2);
	begin(&after, "topk128", 0.5, "3");
	assert_ok(mean_residual_load(&after.m, &after.g, file, n, &et));
	mean_residual_commit(&after.m, &after.g, 7, 2);
	attempt(&w, 10, 1, 5, out);
	attempt(&after, 10, 1, 5, again);
	assert_memory_equal(out, again, at_of(&w, 1));
	free(file);
	end(&w);
	end(&after);
}

/* Returns what load says of the bytes with one of them changed, or fewer of them. */
static enum rv_err load_changed(struct world *w, const uint8_t *file, size_t n, size_t at, uint8_t to) {
	static uint8_t copy[LONGEST + 1000];
	struct rv_errtext et = {0};
	memcpy(copy, file, n);
	if (at < n)
		copy[at] = to;
	const enum rv_err e = mean_residual_load(&w->m, &w->g, copy, n, &et);
	assert_true(e == RV_OK || et.text[0]);
	assert_true(e == RV_OK || w->m.attempt == 0);
	return e;
}

static void test_refuses_what_is_none(void **state) {
	(void)state;
	enum { FIRST = MEAN_RESIDUAL_HEAD_BYTES, VALUES = FIRST + 2 * 4 };
	static uint8_t file[LONGEST + 1000];
	struct world w;
	begin(&w, "topk64", 1, "1");
	mean_residual_begin(&w.m, &w.g, 3, 1);
	encode(&w, 1, 1, out);
	encode(&w, 4, 1, out);
	const size_t n = mean_residual_saved_bytes(&w.m, &w.g);
	mean_residual_save(&w.m, &w.g, file);
	assert_int_equal(load_changed(&w, file, n, n, 0), RV_OK);
	assert_int_equal(load_changed(&w, file, n - 1, n, 0), RV_E_CORRUPT);
	assert_int_equal(load_changed(&w, file, 15, n, 0), RV_E_CORRUPT);
	assert_int_equal(load_changed(&w, file, n, 8, 0), RV_E_CORRUPT);         /* no attempt */
	assert_int_equal(load_changed(&w, file, n, 12, 3), RV_E_CORRUPT);        /* more chunks than there are bytes for */
	assert_int_equal(load_changed(&w, file, n, 13, 1), RV_E_CORRUPT);        /* more than the round has */
	assert_int_equal(load_changed(&w, file, n, FIRST, 4), RV_E_CORRUPT);     /* 4, 4 */
	assert_int_equal(load_changed(&w, file, n, FIRST + 4, 5), RV_E_CORRUPT); /* beyond the last */
	assert_int_equal(load_changed(&w, file, n, FIRST, 0), RV_OK);            /* another chunk */
	memcpy(file + VALUES, &(float){INFINITY}, sizeof(float));
	assert_int_equal(load_changed(&w, file, n, n, 0), RV_E_CORRUPT);
	end(&w);
}

static void test_off(void **state) {
	(void)state;
	struct world w;
	struct feedback room;
	begin(&w, "topk64", 0, "1");
	assert_false(mean_residual_is_on(&w.m));
	mean_residual_begin(&w.m, &w.g, 0, 1);
	assert_null(mean_residual_of(&w.m, &w.g, 0, &room));
	mean_residual_commit(&w.m, &w.g, 0, 1);
	mean_residual_lose(&w.m, &w.g, 0, 0);
	mean_residual_forget(&w.m, &w.g);
	assert_false(mean_residual_holds(&w.m, &w.g, 0));
	end(&w);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_lost),
		cmocka_unit_test(test_the_rest_arrives_later),
		cmocka_unit_test(test_a_failed_attempt_consumes_nothing),
		cmocka_unit_test(test_of_another_attempt_all_is_lost),
		cmocka_unit_test(test_what_moved_is_lost),
		cmocka_unit_test(test_what_the_coordinator_does_not_confirm_is_lost),
		cmocka_unit_test(test_each_fragment_has_its_own),
		cmocka_unit_test(test_goes_on_after_a_restart),
		cmocka_unit_test(test_refuses_what_is_none),
		cmocka_unit_test(test_off),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
