/* Inner states on the disk, their pieces with proofs, and the weights beside them. */
#include "base/merkle.h"
#include "tests/common/check.h"
#include "tests/train/train_fixture.h"
#include "train/inner_state.h"
#include "worker/audit/kept_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROUNDS = 3 };

static struct {
	struct fixture_run f;
	char dir[256];
	struct statestore store;
	struct kept_states *k;
	size_t n;
	struct rv_hash root;
} w;

static int setup(void **state) {
	(void)state;
	struct run_config cfg = fixture_config();
	cfg.n_embd = 64; /* an inner state of several pieces */
	fixture_run_init(&w.f, &cfg, "ref");
	scratch_make(w.dir, sizeof w.dir);
	w.n = replica_n_params(w.f.replica);
	w.store = (struct statestore){.cfg = {.n = w.n, .chunks = chunking_of(w.n, 512), .codec = &codec_int8}};
	(void)snprintf(w.store.dir, sizeof w.store.dir, "%s", w.dir);
	assert_ok(kept_states_new(&w.store, ROUNDS, &w.k, &et));
	assert_true(inner_state_pieces(w.n) > 2);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	kept_states_free(w.k);
	fixture_run_release(&w.f);
	return 0;
}

/* Keeps what the replica has after two more steps; returns the weights before them. */
static float *keep(uint64_t round) {
	float *before = fixture_copy_theta(w.f.replica);
	fixture_steps(w.f.replica, 2);
	assert_ok(kept_states_write(w.k, round, w.f.replica, before, &w.root, &et));
	return before;
}

static bool is_proven(uint64_t round, uint32_t index, const struct rv_hash *root) {
	const struct merkle_range range = {inner_state_pieces(w.n), index, 1};
	const size_t n = inner_piece_bytes(w.n, index);
	struct rv_hash proof[MERKLE_MAX_PROOF];
	uint8_t *there = malloc(n);
	size_t bytes;
	const uint8_t *piece = kept_states_piece(w.k, round, index, &bytes);
	bool same = piece != NULL && bytes == n + merkle_proof_hashes(&range) * sizeof proof[0];
	if (same) {
		inner_state_read(w.f.replica, (size_t)index * INNER_PIECE_BYTES, n, there);
		memcpy(proof, piece + n, bytes - n);
		const struct rv_hash leaf = merkle_leaf(index, piece, n);
		same = memcmp(piece, there, n) == 0 && merkle_check(root, &range, &leaf, proof, merkle_proof_hashes(&range));
	}
	free(there);
	return same;
}

static void every_piece_is_proven(void **state) {
	(void)state;
	float *before = keep(4), *read = malloc(w.n * sizeof *read);
	for (uint32_t i = 0; i < inner_state_pieces(w.n); i++)
		assert_true(is_proven(4, i, &w.root));
	size_t bytes;
	assert_null(kept_states_piece(w.k, 4, inner_state_pieces(w.n), &bytes));
	assert_null(kept_states_piece(w.k, 5, 0, &bytes));
	assert_ok(kept_states_theta(w.k, 4, read, &et));
	assert_memory_equal(read, before, w.n * sizeof *read);
	assert_int_equal(kept_states_theta(w.k, 5, read, NULL), RV_E_NOTFOUND);
	free(before);
	free(read);
}

static void a_later_round_takes_the_place(void **state) {
	(void)state;
	for (uint64_t round = 0; round < ROUNDS + 1; round++)
		free(keep(round));
	size_t bytes;
	assert_null(kept_states_piece(w.k, 0, 0, &bytes));
	for (uint64_t round = 1; round < ROUNDS + 1; round++)
		assert_non_null(kept_states_piece(w.k, round, 0, &bytes));
	/* The same round again, after what was read of it is forgotten. */
	free(keep(ROUNDS));
	kept_states_forget(w.k);
	assert_true(is_proven(ROUNDS, 1, &w.root));
	/* Of another place than the file's name says. */
	char from[320], to[320];
	(void)snprintf(from, sizeof from, "%s/inner-2.rvi", w.dir);
	(void)snprintf(to, sizeof to, "%s/inner-1.rvi", w.dir);
	assert_int_equal(rename(from, to), 0);
	assert_null(kept_states_piece(w.k, 1, 0, &bytes));
}

static void flip(long at) {
	char path[320];
	(void)snprintf(path, sizeof path, "%s/inner-1.rvi", w.dir);
	scratch_flip(path, at);
	kept_states_forget(w.k);
}

static void a_damaged_file_gives_nothing_wrong(void **state) {
	(void)state;
	const long inner = STATE_HEADER_BYTES, theta = inner + (long)inner_state_bytes(w.n);
	float *read = malloc(w.n * sizeof *read);
	size_t bytes;
	free(keep(1));
	flip(inner + 5);
	assert_null(kept_states_piece(w.k, 1, 0, &bytes));
	assert_true(is_proven(1, 1, &w.root));
	assert_ok(kept_states_theta(w.k, 1, read, &et));
	flip(theta + 5);
	assert_int_equal(kept_states_theta(w.k, 1, read, NULL), RV_E_CORRUPT);
	flip(-1); /* a leaf */
	assert_null(kept_states_piece(w.k, 1, 1, &bytes));
	flip(-1);
	assert_true(is_proven(1, 1, &w.root));
	flip(20); /* the header */
	assert_null(kept_states_piece(w.k, 1, 1, &bytes));
	free(read);
}

/* A donor asks for the piece once for each slice of it. */
static void a_piece_is_read_once_for_all_its_slices(void **state) {
	(void)state;
	char path[320];
	size_t bytes;
	(void)snprintf(path, sizeof path, "%s/inner-1.rvi", w.dir);
	free(keep(1));
	assert_true(is_proven(1, 0, &w.root));
	scratch_flip(path, STATE_HEADER_BYTES + 5);
	assert_true(is_proven(1, 0, &w.root));
	assert_true(is_proven(1, 1, &w.root));
	kept_states_forget(w.k);
	assert_null(kept_states_piece(w.k, 1, 0, &bytes));
	assert_null(kept_states_piece(w.k, 1, 0, &bytes)); /* what cannot be read is tried again */
	scratch_flip(path, STATE_HEADER_BYTES + 5);
	assert_true(is_proven(1, 0, &w.root));
}

/* Two auditors ask in turn for slices of pieces of two rounds. */
static void two_auditors_in_turn_read_nothing_twice(void **state) {
	(void)state;
	char path[320];
	size_t bytes;
	struct rv_hash root;
	free(keep(1));
	root = w.root;
	assert_true(is_proven(1, 0, &root));
	free(keep(2));
	for (int round = 1; round <= 2; round++) {
		assert_non_null(kept_states_piece(w.k, (uint64_t)round, 0, &bytes));
		(void)snprintf(path, sizeof path, "%s/inner-%d.rvi", w.dir, round);
		scratch_flip(path, STATE_HEADER_BYTES + 5);
	}
	for (int i = 0; i < 2; i++)
		for (uint64_t round = 1; round <= 2; round++)
			assert_non_null(kept_states_piece(w.k, round, 0, &bytes));
	/* Files are not opened anew for each: what takes their place is not read. */
	for (int round = 1; round <= 2; round++) {
		(void)snprintf(path, sizeof path, "%s/inner-%d.rvi", w.dir, round);
		assert_int_equal(unlink(path), 0);
	}
	for (int i = 0; i < 2; i++)
		for (uint64_t round = 1; round <= 2; round++)
			assert_non_null(kept_states_piece(w.k, round, 1, &bytes));
	/* More rounds than fit are read nevertheless. */
	for (uint64_t round = 4; round <= 9; round++) {
		free(keep(round));
		assert_true(is_proven(round, 0, &w.root));
	}
}

static void what_is_there_is_counted(void **state) {
	(void)state;
	assert_int_equal(kept_states_there(w.dir, ROUNDS), 0);
	free(keep(1));
	free(keep(2));
	assert_int_equal(kept_states_there(w.dir, ROUNDS), 2 * kept_states_bytes(w.n));
	assert_ok(kept_states_drop(&w.store, ROUNDS, &et));
	assert_int_equal(kept_states_there(w.dir, ROUNDS), 0);
}

static void a_file_has_the_bytes_that_the_disk_plan_counts(void **state) {
	(void)state;
	char path[320];
	struct stat st;
	(void)snprintf(path, sizeof path, "%s/inner-1.rvi", w.dir);
	free(keep(1));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal((uint64_t)st.st_size, kept_states_bytes(w.n));
}

static void a_rollback_drops_all(void **state) {
	(void)state;
	size_t bytes;
	free(keep(1));
	free(keep(2));
	assert_ok(kept_states_drop(&w.store, ROUNDS, &et));
	assert_null(kept_states_piece(w.k, 1, 0, &bytes));
	assert_null(kept_states_piece(w.k, 2, 0, &bytes));
	assert_ok(kept_states_drop(&w.store, ROUNDS, &et)); /* again, as after a crash */
}

static void a_donor_gives_them(void **state) {
	(void)state;
	struct kept_contributions *none;
	assert_ok(kept_contributions_new(&w.store, ROUNDS, &none, &et));
	struct kept_source k = {.contributions = none, .states = w.k};
	const struct donor_source s = kept_source_of(&k);
	struct frame_piece p = {.of = {.kind = FRAME_FETCH_INNER, .round = 1, .index = 1}};
	size_t bytes;
	assert_false(s.find(s.ctx, 0, &p));
	free(keep(1));
	assert_true(s.find(s.ctx, 0, &p));
	assert_ptr_equal(p.data, kept_states_piece(w.k, 1, 1, &bytes));
	assert_int_equal(p.total, bytes);
	p.of.kind = FRAME_FETCH_CONTRIBUTION;
	assert_false(s.find(s.ctx, 0, &p));
	s.idle(s.ctx);
	k.states = NULL; /* a run whose audits repeat nothing */
	p.of.kind = FRAME_FETCH_INNER;
	assert_false(s.find(s.ctx, 0, &p));
	kept_contributions_free(none);
}

static void moments_of_8_bits_are_not_kept(void **state) {
	(void)state;
	struct replica *r;
	struct rv_hash root;
	assert_ok(replica_new(&w.f.cfg, w.f.data,
						  &(struct replica_options){.n_shards = 1, .savings = {.moments = MOMENTS_INT8}}, w.f.be, &r,
						  &et));
	assert_int_equal(kept_states_write(w.k, 1, r, replica_theta(r), &root, NULL), RV_E_UNSUPPORTED);
	replica_free(r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_damaged_file_gives_nothing_wrong, setup, teardown),
		cmocka_unit_test_setup_teardown(a_donor_gives_them, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_has_the_bytes_that_the_disk_plan_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(a_later_round_takes_the_place, setup, teardown),
		cmocka_unit_test_setup_teardown(a_piece_is_read_once_for_all_its_slices, setup, teardown),
		cmocka_unit_test_setup_teardown(a_rollback_drops_all, setup, teardown),
		cmocka_unit_test_setup_teardown(two_auditors_in_turn_read_nothing_twice, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_there_is_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(every_piece_is_proven, setup, teardown),
		cmocka_unit_test_setup_teardown(moments_of_8_bits_are_not_kept, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
