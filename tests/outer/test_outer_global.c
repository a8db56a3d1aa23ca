/* The shared state: encode, digest, the atomic outer step, the chain and the full hash. */
#include "outer/global.h"

#include "base/chain.h"
#include "tests/common/check.h"
#include "tests/outer/vectors.h"

#include <stdio.h>
#include <string.h>

enum { N = 3000, CHUNK = 512, BYTES_CAP = 5 * N };

static float theta0[N], local[N];
static uint8_t reduced[BYTES_CAP], other[BYTES_CAP];

static struct global_config config(const struct codec *c, const struct outer_optimizer *o) {
	return (struct global_config){.n = N,
								  .chunks = chunking_of(N, CHUNK),
								  .codec = c,
								  .optimizer = o,
								  .params = {.lr = 0.7f, .momentum = 0.9f, .beta2 = 0.99f, .eps = 1e-3f, .delay = 2},
								  .run_hash = rv_hash_of("a run", 5)};
}

static struct global_state start(const struct codec *c, const struct outer_optimizer *o) {
	struct global_state g;
	struct global_config cfg = config(c, o);
	fill_normal(theta0, N, 1);
	assert_int_equal(global_init(&g, &cfg, theta0, NULL), RV_OK);
	return g;
}

/* One round in which all workers ended at `local`. */
static void one_round(struct global_state *g, uint64_t seed) {
	fill_normal(local, N, seed);
	assert_int_equal(global_encode_delta(g, local, reduced, NULL), RV_OK);
	struct rv_hash digest = global_digest(g, g->round, reduced);
	assert_int_equal(global_apply(g, reduced, &digest, NULL), RV_OK);
}

static void test_start(void **state) {
	(void)state;
	struct global_state g = start(&codec_int8, &outer_nesterov);
	const float zeros[N] = {0};
	struct rv_hash chain = rv_chain_start(&g.cfg.run_hash);
	assert_memory_equal(g.theta, theta0, sizeof theta0);
	assert_memory_equal(g.state[0], zeros, sizeof zeros);
	assert_null(g.state[1]);
	assert_int_equal(g.round, 0);
	assert_true(rv_hash_equal(&g.chain, &chain));
	global_release(&g);
	assert_null(g.theta);
	global_release(&g);
}

/* What a joiner checks of round 0: states as they start, whatever they start from, and not after a
 * step. */
static void test_initial_states_are_known(void **state) {
	(void)state;
	enum { PIECES_MAX = 1 + GLOBAL_MAX_STATES };
	for (int o = 0; outer_registry[o]; o++) {
		struct global_state g = start(&codec_int8, outer_registry[o]);
		struct rv_hash pieces[PIECES_MAX];
		struct rv_errtext et = {0};
		for (int stepped = 0; stepped < 2; stepped++) {
			for (uint32_t i = 0; i < global_pieces(&g.cfg); i++) {
				size_t n;
				const float *piece = global_piece(&g, i, &n);
				pieces[i] = rv_hash_of(piece, n * sizeof *piece);
			}
			bool moved = stepped && outer_registry[o]->n_states > 0;
			assert_int_equal(global_check_initial(&g.cfg, pieces, &et), moved ? RV_E_CORRUPT : RV_OK);
			one_round(&g, 3);
		}
		global_release(&g);
	}
}

static void test_refuses_too_many_chunks(void **state) {
	(void)state;
	struct global_state g;
	struct rv_errtext et = {0};
	struct global_config cfg = config(&codec_int8, &outer_sgd);
	cfg.n = (size_t)(GLOBAL_MAX_CHUNKS + 1) * 256;
	cfg.chunks = chunking_of(cfg.n, 256);
	assert_int_equal(global_init(&g, &cfg, theta0, &et), RV_E_RANGE);
	assert_non_null(strstr(et.text, "larger chunks"));
	cfg.n = 0;
	cfg.chunks = chunking_of(0, 256);
	assert_int_equal(global_init(&g, &cfg, theta0, &et), RV_E_RANGE);
	global_release(&g);
}

static void test_encodes_chunk_by_chunk(void **state) {
	(void)state;
	for (int k = 0; codec_registry[k]; k++) {
		struct global_state g = start(codec_registry[k], &outer_nesterov);
		fill_normal(local, N, 2);
		assert_int_equal(global_encode_delta(&g, local, reduced, NULL), RV_OK);
		for (uint32_t i = 0; i < g.cfg.chunks.n_chunks; i++) {
			size_t at = chunking_offset_bytes(&g.cfg.chunks, g.cfg.codec, i), len = chunking_len(&g.cfg.chunks, i);
			g.cfg.codec->encode_delta(g.cfg.codec, theta0 + i * CHUNK, local + i * CHUNK, len, other, NULL);
			assert_memory_equal(reduced + at, other, g.cfg.codec->encoded_bytes(g.cfg.codec, len));
		}
		global_release(&g);
	}
}

static void test_divergence_is_named(void **state) {
	(void)state;
	struct global_state g = start(&codec_int8, &outer_nesterov);
	struct rv_errtext et = {0};
	memcpy(local, theta0, sizeof local);
	local[2345] = NAN;
	assert_int_equal(global_encode_delta(&g, local, reduced, &et), RV_E_RANGE);
	assert_non_null(strstr(et.text, "parameter 2345 is not a number"));
	assert_non_null(strstr(et.text, "diverged"));
	global_release(&g);
}

/* The step of the whole is the optimizer's step on the decoded whole. */
static void test_apply(void **state) {
	(void)state;
	static float theta[N], kept[2][N], delta[N];
	float *const states[] = {kept[0], kept[1]};
	for (int o = 0; outer_registry[o]; o++) {
		struct global_state g = start(&codec_int8, outer_registry[o]);
		memcpy(theta, theta0, sizeof theta);
		memset(kept, 0, sizeof kept);
		if (outer_registry[o]->start)
			outer_registry[o]->start(states, N, &g.cfg.params);
		for (uint64_t r = 0; r < 3; r++) {
			struct rv_hash before = g.chain;
			one_round(&g, 10 + r);
			for (uint32_t i = 0; i < g.cfg.chunks.n_chunks; i++)
				codec_int8.decode(&codec_int8, reduced + chunking_offset_bytes(&g.cfg.chunks, &codec_int8, i),
								  chunking_len(&g.cfg.chunks, i), delta + i * CHUNK, NULL);
			g.cfg.params.turn = r;
			outer_registry[o]->step(theta, states, delta, N, &g.cfg.params);
			assert_memory_equal(g.theta, theta, sizeof theta);
			struct rv_hash digest = global_digest(&g, r, reduced);
			struct rv_hash chain = rv_chain_next(&before, &digest);
			assert_true(rv_hash_equal(&g.chain, &chain));
			assert_int_equal(g.round, r + 1);
		}
		for (int k = 0; k < outer_registry[o]->n_states; k++)
			assert_memory_equal(g.state[k], kept[k], sizeof kept[k]);
		global_release(&g);
	}
}

/* With two fragments every second round is a fragment's turn: after twice as many rounds it is
 * where the whole is. */
static void test_fragments_take_turns(void **state) {
	(void)state;
	for (int o = 0; outer_registry[o]; o++) {
		struct global_state whole = start(&codec_fp32, outer_registry[o]), parts;
		struct global_config cfg = config(&codec_fp32, outer_registry[o]);
		cfg.fragments = (struct fragments){.n = 2, .n_ranges = 2, .ranges = {{0, 2, 0}, {2, 4, 1}}};
		assert_int_equal(global_init(&parts, &cfg, theta0, NULL), RV_OK);
		for (uint64_t r = 0; r < 6; r++) {
			one_round(&whole, 20 + r);
			one_round(&parts, 20 + r);
			one_round(&parts, 20 + r);
			assert_memory_equal(whole.theta, parts.theta, N * sizeof(float));
		}
		global_release(&whole);
		global_release(&parts);
	}
}

/* A fault in the very last chunk: nothing has changed, not even a bit of the first. */
static void test_apply_is_all_or_nothing(void **state) {
	(void)state;
	struct global_state g = start(&codec_int8, &outer_nesterov);
	one_round(&g, 5);
	fill_normal(local, N, 6);
	assert_int_equal(global_encode_delta(&g, local, reduced, NULL), RV_OK);
	struct rv_hash before = global_full_hash(&g), digest = global_digest(&g, 1, reduced);
	for (uint32_t i = 0; i < g.cfg.chunks.n_chunks; i++) {
		struct rv_errtext et = {0};
		char name[32];
		snprintf(name, sizeof name, "reduced chunk %u of round 1", i);
		size_t at = chunking_offset_bytes(&g.cfg.chunks, &codec_int8, i);
		reduced[at + 3] ^= 0x80; /* the sign of its first scale */
		assert_int_equal(global_apply(&g, reduced, &digest, &et), RV_E_CORRUPT);
		assert_non_null(strstr(et.text, name));
		reduced[at + 3] ^= 0x80;
		struct rv_hash after = global_full_hash(&g);
		assert_true(rv_hash_equal(&before, &after));
	}
	assert_int_equal(global_apply(&g, reduced, &digest, NULL), RV_OK);
	global_release(&g);
}

static void test_digest_covers_everything(void **state) {
	(void)state;
	struct global_state g = start(&codec_int8, &outer_nesterov);
	fill_normal(local, N, 6);
	assert_int_equal(global_encode_delta(&g, local, reduced, NULL), RV_OK);
	struct rv_hash first = global_digest(&g, 0, reduced), later = global_digest(&g, 1, reduced);
	assert_false(rv_hash_equal(&first, &later));
	size_t bytes = chunking_total_bytes(&g.cfg.chunks, &codec_int8);
	for (size_t i = 0; i < bytes; i += 97) {
		reduced[i] ^= 1;
		struct rv_hash changed = global_digest(&g, 0, reduced);
		assert_false(rv_hash_equal(&first, &changed));
		reduced[i] ^= 1;
	}
	global_release(&g);
}

static void test_full_hash_covers_everything(void **state) {
	(void)state;
	struct global_state g = start(&codec_int8, &outer_nesterov);
	struct rv_hash first = global_full_hash(&g), changed;
	g.theta[N - 1] += 1;
	changed = global_full_hash(&g);
	assert_false(rv_hash_equal(&first, &changed));
	g.theta[N - 1] = theta0[N - 1];
	g.state[0][17] = 1e-30f;
	changed = global_full_hash(&g);
	assert_false(rv_hash_equal(&first, &changed));
	g.state[0][17] = 0;
	g.round = 1;
	changed = global_full_hash(&g);
	assert_false(rv_hash_equal(&first, &changed));
	g.round = 0;
	changed = global_full_hash(&g);
	assert_true(rv_hash_equal(&first, &changed));
	global_release(&g);
}

/* Two states that see the same rounds are the same, whatever happened in between to one of them. */
static void test_replay(void **state) {
	(void)state;
	struct global_state g = start(&codec_int8, &outer_nesterov), h = start(&codec_int8, &outer_nesterov);
	for (uint64_t r = 0; r < 5; r++) {
		one_round(&g, 20 + r);
		struct rv_hash digest = global_digest(&h, h.round, reduced);
		assert_int_equal(global_apply(&h, reduced, &digest, NULL), RV_OK);
	}
	struct rv_hash a = global_full_hash(&g), b = global_full_hash(&h);
	assert_true(rv_hash_equal(&a, &b));
	global_release(&g);
	global_release(&h);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_initial_states_are_known),
		cmocka_unit_test(test_refuses_too_many_chunks),
		cmocka_unit_test(test_encodes_chunk_by_chunk),
		cmocka_unit_test(test_divergence_is_named),
		cmocka_unit_test(test_apply),
		cmocka_unit_test(test_fragments_take_turns),
		cmocka_unit_test(test_apply_is_all_or_nothing),
		cmocka_unit_test(test_digest_covers_everything),
		cmocka_unit_test(test_full_hash_covers_everything),
		cmocka_unit_test(test_replay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
