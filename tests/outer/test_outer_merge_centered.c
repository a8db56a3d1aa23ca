/* The rule "centered": its steps written out, when it is the weighted mean to the bit, what liars
 * can move, and the last mean in the shared state, from which it starts. */
#include "outer/global.h"

#include "base/hash.h"
#include "base/hex.h"
#include "tests/common/check.h"
#include "tests/outer/vectors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4099, MAX_IN = 8 };

static float x[MAX_IN][N], center[N], mean[N], scratch[3 * N];
static uint8_t in[MAX_IN][5 * N], out[5 * N], plain[5 * N];
static const uint8_t *const ins[MAX_IN] = {in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7]};
static const uint32_t ones[MAX_IN] = {1, 1, 1, 1, 1, 1, 1, 1};

/* Contribution i is s[i] times (a part that all share + one of its own of half the size). */
static void contribute(const struct codec *c, const float *s, int n_in) {
	for (int i = 0; i < n_in; i++) {
		for (int k = 0; k < N; k++) {
			const float shared = (float)(k * 7919 % 2001 - 1000), own = (float)((k * 31 + i * 104729) % 1001 - 500);
			x[i][k] = s[i] * (shared + own) * 0x1p-10f;
		}
		assert_int_equal(c->encode(c, x[i], N, in[i], NULL), RV_OK);
	}
	for (int k = 0; k < N; k++)
		center[k] = 0.75f * (float)(k * 7919 % 2001 - 1000) * 0x1p-10f;
}

static void merge(const struct merge_ops *ops, const struct codec *c, const float *from, double clip,
				  const uint32_t *weights, int n_in, uint8_t *to, struct merge_measured *measured) {
	const struct merge_rule rule = {
		.ops = ops, .contributions = c, .mean = &codec_fp32, .params = {.clip = clip}, .center = from};
	assert_true(merge_scratch(&rule, N, n_in) <= COUNT_OF(scratch));
	assert_int_equal(merge_chunk(&rule, ins, weights, n_in, N, scratch, NULL, to, measured, NULL), RV_OK);
}

/* As merge.h says it: sums of squares in 16 lanes. */
static double norm_in_lanes(const float *v) {
	double lanes[16] = {0};
	for (int k = 0; k < N; k++)
		lanes[k % 16] += (double)v[k] * (double)v[k];
	for (int half = 8; half > 0; half /= 2)
		for (int l = 0; l < half; l++)
			lanes[l] += lanes[l + half];
	return sqrt(lanes[0]);
}

static double nth_smallest(const double *v, int n, int nth) {
	for (int i = 0; i < n; i++) {
		int below = 0, equal = 0;
		for (int k = 0; k < n; k++) {
			below += v[k] < v[i];
			equal += v[k] == v[i];
		}
		if (below <= nth && nth < below + equal)
			return v[i];
	}
	return NAN;
}

/* One step, value by value. */
static void step_plainly(float *v, double clip, const uint32_t *weights, int n_in) {
	static float difference[N];
	double distance[MAX_IN], all = 0;
	float factor[MAX_IN], weight = 0;
	bool limited = false;
	for (int i = 0; i < n_in; i++) {
		for (int k = 0; k < N; k++)
			difference[k] = x[i][k] - v[k];
		distance[i] = norm_in_lanes(difference);
	}
	const double limit = clip * nth_smallest(distance, n_in, (n_in - 1) / 2);
	for (int i = 0; i < n_in; i++) {
		limited = limited || distance[i] > limit;
		factor[i] = distance[i] > limit ? (float)(limit / distance[i] * weights[i]) : (float)weights[i];
		all += (double)factor[i];
		weight += (float)weights[i];
	}
	for (int k = 0; k < N; k++) {
		float sum = 0;
		for (int i = 0; i < n_in; i++)
			sum = sum + factor[i] * x[i][k];
		v[k] = limited ? v[k] + (sum - (float)all * v[k]) / weight : sum / weight;
	}
}

static void test_it_is_these_steps(void **state) {
	(void)state;
	const float s[] = {1, -77, 1.5f, 0.75f, 1.2f, 3, 1, 0};
	const uint32_t weights[] = {3, 2, 1, 4, 2, 9, 1, 1};
	const double clips[] = {1, 1.25, 100};
	for (int n_in = MERGE_CLIP_MIN; n_in <= MAX_IN; n_in++)
		for (size_t c = 0; c < COUNT_OF(clips); c++)
			for (int from_zero = 0; from_zero < 2; from_zero++) {
				static float v[N];
				contribute(&codec_fp32, s, n_in);
				memcpy(v, center, sizeof v);
				if (from_zero)
					memset(v, 0, sizeof v);
				for (int i = 0; i < MERGE_CENTER_STEPS; i++)
					step_plainly(v, clips[c], weights, n_in);
				merge(&merge_centered, &codec_fp32, from_zero ? NULL : center, clips[c], weights, n_in, out, NULL);
				assert_memory_equal(out, v, sizeof v);
			}
}

/* Whatever the codec, the weights and the center. */
static void test_without_an_outlier_it_is_the_mean(void **state) {
	(void)state;
	const float alike[] = {1, 1, 1, 1, 1, 1, 1, 1};
	const uint32_t weights[] = {61440, 30720, 1, 123457, 5, 5, 5, 9};
	for (int c = 0; codec_registry[c]; c++)
		for (int n_in = 1; n_in <= MAX_IN; n_in++) {
			struct merge_measured m = {.values = mean};
			contribute(codec_registry[c], alike, n_in);
			merge(&merge_mean, codec_registry[c], NULL, 1, weights, n_in, plain, NULL);
			merge(&merge_centered, codec_registry[c], center, 100, weights, n_in, out, &m);
			assert_memory_equal(out, plain, sizeof mean);
			assert_int_equal(m.clipped[0] + m.clipped[n_in - 1], 0);
		}
}

/* Two of eight, or one of four: what they move is less than they can move by "clipped", and they
 * are counted. */
static void test_liars_are_held_to_the_spread(void **state) {
	(void)state;
	static const float attacks[][MAX_IN] = {{1, 1, -4, 1}, {1, 1, 1, 1, -4, 1, 1, -4}, {100, 1, 1, 1}};
	static float honest[N], difference[N];
	for (size_t a = 0; a < COUNT_OF(attacks); a++) {
		const int n_in = attacks[a][4] == 0 ? 4 : 8;
		double off[2] = {0, 0};
		contribute(&codec_fp32, (const float[MAX_IN]){1, 1, 1, 1, 1, 1, 1, 1}, n_in);
		merge(&merge_mean, &codec_fp32, NULL, 1, ones, n_in, out, NULL);
		memcpy(honest, out, sizeof honest);
		contribute(&codec_fp32, attacks[a], n_in);
		for (int r = 0; r < 2; r++) {
			struct merge_measured m = {.values = mean};
			static float got[N];
			merge(r == 0 ? &merge_clipped : &merge_centered, &codec_fp32, center, 1.25, ones, n_in, out, &m);
			memcpy(got, out, sizeof got);
			for (int k = 0; k < N; k++)
				difference[k] = got[k] - honest[k];
			off[r] = norm_in_lanes(difference) / norm_in_lanes(honest);
			for (int i = 0; i < n_in; i++)
				assert_int_equal(m.clipped[i], attacks[a][i] != 1);
		}
		const bool flipped = a < 2; /* what is too large but right does "clipped" little harm */
		if (!(off[1] < 0.3 && (!flipped || off[1] < 0.75 * off[0])))
			fail_msg("attack %zu: off by %.3f, clipped by %.3f", a, off[1], off[0]);
	}
}

static void test_it_names_what_is_no_encoding(void **state) {
	(void)state;
	const struct merge_rule rule = {
		.ops = &merge_centered, .contributions = &codec_int8, .mean = &codec_int8, .params = {.clip = 2}};
	struct rv_errtext et = {0};
	contribute(&codec_int8, (const float[]){1, 1, 1, 1}, 4);
	in[2][3] = 0xff;
	assert_int_equal(merge_chunk(&rule, ins, ones, 4, N, scratch, NULL, out, NULL, &et), RV_E_CORRUPT);
	assert_non_null(strstr(et.text, "contribution 2 of 4"));
}

/* Bytes of this processor must be those of all others. */
static void test_golden(void **state) {
	(void)state;
	const float s[] = {1, -9, 1.25f, 0.5f, 3};
	const uint32_t weights[] = {3, 1, 2, 7, 5};
	char hex[2 * 8 + 1];
	contribute(&codec_int8, s, 5);
	merge(&merge_centered, &codec_int8, center, 1.5, weights, 5, out, NULL);
	const struct rv_hash hash = rv_hash_of(out, sizeof mean);
	rv_hex_encode(hash.b, 8, hex);
	assert_string_equal(hex, "2da171da3b427634");
}

/* ---- the shared state ---- */

enum { CHUNK = 512, CHUNKS = 9, FRAGMENTS = 3 };

static struct global_config config_of(const struct merge_ops *merge) {
	struct global_config c = {.n = (size_t)CHUNKS * CHUNK - 100,
							  .chunks = chunking_of((size_t)CHUNKS * CHUNK - 100, CHUNK),
							  .codec = &codec_int8,
							  .merge = merge,
							  .merge_params = {.clip = 1.25},
							  .optimizer = &outer_nesterov,
							  .params = {.lr = 0.7f, .momentum = 0.9f}};
	const struct fragment_layers layers = {.begin = 0, .layer_elems = 2 * CHUNK, .n = 4};
	assert_int_equal(fragments_make(&c.chunks, FRAGMENTS, &layers, &c.fragments, NULL), RV_OK);
	return c;
}

/* Applies a mean of values `value` to the next round. */
static void apply(struct global_state *g, float value) {
	static uint8_t reduced[2 * CHUNKS * CHUNK];
	float values[CHUNK];
	const struct chunking c = global_round_chunks(&g->cfg, g->round);
	for (int i = 0; i < CHUNK; i++)
		values[i] = value;
	for (uint32_t i = 0; i < c.n_chunks; i++)
		assert_int_equal(codec_int8.encode(&codec_int8, values, chunking_len(&c, i),
										   reduced + chunking_offset_bytes(&c, &codec_int8, i), NULL),
						 RV_OK);
	const struct rv_hash digest = global_digest(g, g->round, reduced);
	assert_int_equal(global_apply(g, reduced, &digest, NULL), RV_OK);
}

/* Every fragment has the mean of its own last round, and zero before its first; the hash of the
 * state covers it. */
static void test_the_state_keeps_the_last_mean(void **state) {
	(void)state;
	static float theta0[CHUNKS * CHUNK];
	struct global_config with = config_of(&merge_centered), without = config_of(&merge_clipped);
	struct global_state g, other;
	assert_int_equal(global_states(&with), 2);
	assert_int_equal(global_states(&without), 1);
	assert_int_equal(global_init(&other, &without, theta0, NULL), RV_OK);
	assert_null(global_last_mean(&other));
	assert_int_equal(global_init(&g, &with, theta0, NULL), RV_OK);
	for (uint64_t round = 0; round < 7; round++) {
		apply(&g, 127 * (float)(round + 1)); /* int8 has these values exactly */
		for (uint64_t later = round + 1; later <= round + FRAGMENTS; later++) {
			const struct chunking c = global_round_chunks(&with, later);
			const float before = later >= FRAGMENTS ? 127 * (float)(later - FRAGMENTS + 1) : 0;
			for (uint32_t i = 0; i < c.n_chunks; i++) {
				const float *from = global_center(&with, global_last_mean(&g), later, i);
				assert_true(from[0] == before && from[chunking_len(&c, i) - 1] == before);
			}
		}
	}
	assert_null(global_center(&without, global_last_mean(&other), 0, 0));
	const struct rv_hash full = global_full_hash(&g);
	g.state[1][17] += 1;
	const struct rv_hash changed = global_full_hash(&g);
	assert_false(rv_hash_equal(&full, &changed));
	global_release(&g);
	global_release(&other);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_is_these_steps),
		cmocka_unit_test(test_without_an_outlier_it_is_the_mean),
		cmocka_unit_test(test_liars_are_held_to_the_spread),
		cmocka_unit_test(test_it_names_what_is_no_encoding),
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_the_state_keeps_the_last_mean),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
