/* kept_scene.c: see kept_scene.h. */
#include "tests/torture/kept_scene.h"

#include "base/merkle.h"
#include "tests/torture/torture.h"
#include "train/inner_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kept_scene *kept_scene_new(void) {
	struct kept_scene *s = calloc(1, sizeof *s);
	struct run_config cfg = fixture_config();
	cfg.n_embd = 64; /* an inner state of several pieces */
	fixture_run_init(&s->f, &cfg, "ref");
	s->n = replica_n_params(s->f.replica);
	s->theta = calloc(s->n, sizeof *s->theta);
	fixture_steps(s->f.replica, 2);
	s->store.cfg = (struct global_config){.n = s->n, .chunks = chunking_of(s->n, 512), .codec = &codec_int8};
	scratch_make_in_memory(s->store.dir, sizeof s->store.dir);
	return s;
}

void kept_scene_free(struct kept_scene *s) {
	scratch_remove(s->store.dir);
	fixture_run_release(&s->f);
	free(s->theta);
	free(s);
}

/* Sets the weights with which a round began. */
static void weights_of(const struct kept_scene *s, uint64_t round, float *theta) {
	for (size_t i = 0; i < s->n; i++)
		theta[i] = (float)round + (float)(i % 7);
}

static bool write_round(struct kept_scene *s, const struct kept_states *k, uint64_t round, struct rv_hash *root) {
	struct rv_errtext et = {0};
	weights_of(s, round, s->theta);
	return torture_ok(kept_states_write(k, round, s->f.replica, s->theta, root, &et), &et);
}

void kept_scene_write(struct kept_scene *s, struct kept_promises *acknowledged, bool drops) {
	struct kept_states *k = NULL;
	struct rv_errtext et = {0};
	if (!torture_ok(kept_states_new(&s->store, KEPT_SLOTS, &k, &et), &et))
		return;
	for (uint64_t round = KEPT_FIRST; round <= KEPT_LAST; round++) {
		struct rv_hash root;
		acknowledged->begun = round;
		if (!write_round(s, k, round, &root))
			continue;
		acknowledged->roots[round] = root;
		acknowledged->written[round] = true;
	}
	kept_states_free(k);
	acknowledged->drops = drops;
	if (drops)
		acknowledged->dropped = torture_ok(kept_states_drop(&s->store, KEPT_SLOTS, &et), &et);
}

/* Returns true if all pieces of the round are there, and right; fails if one is there and wrong. */
static bool has_round(struct kept_scene *s, struct kept_states *k, uint64_t round, const struct rv_hash *root) {
	const uint32_t pieces = inner_state_pieces(s->n);
	uint8_t *there = malloc(INNER_PIECE_BYTES);
	uint32_t n = 0;
	for (uint32_t i = 0; i < pieces; i++) {
		const size_t of_piece = inner_piece_bytes(s->n, i);
		const struct merkle_range range = {pieces, i, 1};
		struct rv_hash proof[MERKLE_MAX_PROOF];
		size_t bytes;
		const uint8_t *piece = kept_states_piece(k, round, i, &bytes);
		if (piece == NULL)
			continue;
		n++;
		inner_state_read(s->f.replica, (size_t)i * INNER_PIECE_BYTES, of_piece, there);
		assert_memory_equal(piece, there, of_piece);
		memcpy(proof, piece + of_piece, bytes - of_piece);
		const struct rv_hash leaf = merkle_leaf(i, piece, of_piece);
		assert_true(root == NULL || merkle_check(root, &range, &leaf, proof, merkle_proof_hashes(&range)));
	}
	free(there);
	return n == pieces;
}

static bool has_weights(const struct kept_scene *s, const struct kept_states *k, uint64_t round) {
	float *theta = calloc(s->n, sizeof *theta), *read = calloc(s->n, sizeof *read);
	weights_of(s, round, theta);
	const bool has = kept_states_theta(k, round, read, NULL) == RV_OK;
	if (has)
		assert_memory_equal(read, theta, s->n * sizeof *theta);
	free(theta);
	free(read);
	return has;
}

/* Returns true if a later round was written in the round's place, or has begun to be. */
static bool is_replaced(const struct kept_promises *a, uint64_t round) {
	return round + KEPT_SLOTS <= a->begun;
}

void kept_scene_check(struct kept_scene *s, const struct kept_promises *a) {
	struct kept_states *k;
	struct rv_hash root;
	assert_ok(kept_states_new(&s->store, KEPT_SLOTS, &k, &et));
	for (uint64_t round = KEPT_FIRST; round <= KEPT_LAST; round++) {
		const bool must = a->written[round] && !is_replaced(a, round) && !a->drops;
		const bool has = has_round(s, k, round, a->written[round] ? &a->roots[round] : NULL);
		const bool weights = has_weights(s, k, round);
		assert_true(!must || (has && weights));
		assert_false(a->dropped && (has || weights));
	}
	kept_states_forget(k);
	for (uint64_t round = KEPT_FIRST; round <= KEPT_LAST; round++)
		assert_true(write_round(s, k, round, &root) && has_round(s, k, round, &root) && has_weights(s, k, round));
	assert_ok(kept_states_drop(&s->store, KEPT_SLOTS, &et));
	assert_int_equal(kept_states_there(s->store.dir, KEPT_SLOTS), 0);
	kept_states_free(k);
}
