/* Contributions on the disk, and their pieces with proofs. */
#include "base/merkle.h"
#include "state_fixture.h"
#include "tests/common/check.h"
#include "worker/audit/kept_source.h"
#include "worker/transfer/donor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 3, TAG = 77, ASKER = 8, S = 1000000 };

struct kept {
	struct state_fixture *f;
	struct kept_contributions *k;
	struct chunking chunks;
	size_t bytes;
};
static struct kept w;

static int setup(void **state) {
	(void)state;
	w.f = state_fixture_new();
	w.chunks = global_round_chunks(&w.f->store.cfg, 0);
	w.bytes = chunking_total_bytes(&w.chunks, global_sent(&w.f->store.cfg));
	assert_ok(kept_contributions_new(&w.f->store, ROUNDS, &w.k, &et));
	assert_true(w.chunks.n_chunks > 2);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	kept_contributions_free(w.k);
	state_fixture_free(w.f);
	return 0;
}

/* Any bytes are a contribution here: byte i of the one to `round`. */
static uint8_t byte_of(uint64_t round, size_t i) {
	return (uint8_t)(31 * round + i % 251);
}

static void write(uint64_t round) {
	uint8_t *vector = malloc(w.bytes);
	for (size_t i = 0; i < w.bytes; i++)
		vector[i] = byte_of(round, i);
	assert_ok(kept_contributions_write(w.k, round, 0, vector, &et));
	free(vector);
}

/* Returns the root over what write() wrote. */
static struct rv_hash root_of(uint64_t round) {
	struct merkle_sum sum = {.n = 0};
	const struct codec *sent = global_sent(&w.f->store.cfg);
	uint8_t *chunk = malloc(w.bytes);
	for (uint32_t c = 0; c < w.chunks.n_chunks; c++) {
		const size_t at = chunking_offset_bytes(&w.chunks, sent, c),
					 n = sent->encoded_bytes(sent, chunking_len(&w.chunks, c));
		for (size_t i = 0; i < n; i++)
			chunk[i] = byte_of(round, at + i);
		const struct rv_hash leaf = merkle_leaf(c, chunk, n);
		merkle_add(&sum, &leaf);
	}
	free(chunk);
	return merkle_sum_root(&sum);
}

static bool is_proven(uint64_t round, uint32_t chunk) {
	const struct codec *sent = global_sent(&w.f->store.cfg);
	const struct merkle_range range = {w.chunks.n_chunks, chunk, 1};
	const size_t n = sent->encoded_bytes(sent, chunking_len(&w.chunks, chunk));
	struct rv_hash proof[MERKLE_MAX_PROOF];
	size_t bytes;
	const uint8_t *piece = kept_contributions_piece(w.k, round, chunk, &bytes);
	if (piece == NULL)
		return false;
	assert_int_equal(bytes, n + merkle_proof_hashes(&range) * sizeof proof[0]);
	memcpy(proof, piece + n, bytes - n);
	const struct rv_hash leaf = merkle_leaf(chunk, piece, n), root = root_of(round);
	return merkle_check(&root, &range, &leaf, proof, merkle_proof_hashes(&range));
}

static void every_piece_is_proven(void **state) {
	(void)state;
	assert_false(is_proven(0, 0));
	write(0);
	write(1);
	for (uint32_t c = 0; c < w.chunks.n_chunks; c++)
		assert_true(is_proven(0, c) && is_proven(1, c));
	size_t bytes;
	assert_null(kept_contributions_piece(w.k, 0, w.chunks.n_chunks, &bytes));
}

static void a_later_round_takes_the_place(void **state) {
	(void)state;
	for (uint64_t round = 0; round <= ROUNDS; round++)
		write(round);
	assert_false(is_proven(0, 0));
	for (uint64_t round = 1; round <= ROUNDS; round++)
		assert_true(is_proven(round, 1));
}

static void a_round_that_is_written_again_is_read_anew(void **state) {
	(void)state;
	write(1);
	assert_true(is_proven(1, 0));
	write(1 + ROUNDS);
	kept_contributions_forget(w.k);
	assert_false(is_proven(1, 0));
	assert_true(is_proven(1 + ROUNDS, 0));
}

static void damage_behind_its_back(long at) {
	char path[STATESTORE_PATH_BYTES + 32];
	(void)snprintf(path, sizeof path, "%s/contribution-1.rvc", w.f->store.dir);
	FILE *f = fopen(path, "r+b");
	assert_non_null(f);
	assert_int_equal(fseek(f, at, SEEK_SET), 0);
	const int c = fgetc(f);
	assert_int_equal(fseek(f, at, SEEK_SET), 0);
	assert_int_not_equal(fputc(c ^ 1, f), EOF);
	assert_int_equal(fclose(f), 0);
}

static void damage(long at) {
	damage_behind_its_back(at);
	kept_contributions_forget(w.k);
}

/* A donor asks for the chunk once for each slice of it. */
static void a_chunk_is_read_once_for_all_its_slices(void **state) {
	(void)state;
	const long data = STATE_HEADER_BYTES + (long)(w.chunks.n_chunks * sizeof(struct rv_hash));
	write(1);
	assert_true(is_proven(1, 0));
	damage_behind_its_back(data);
	assert_true(is_proven(1, 0));
	assert_true(is_proven(1, 1));
	assert_false(is_proven(1, 0));
}

static void a_damaged_file_gives_nothing_wrong(void **state) {
	(void)state;
	const long leaves = STATE_HEADER_BYTES, data = leaves + (long)(w.chunks.n_chunks * sizeof(struct rv_hash));
	write(1);
	damage(data); /* of chunk 0 */
	assert_false(is_proven(1, 0));
	assert_true(is_proven(1, 1));
	write(1);
	damage(leaves + 5);
	assert_false(is_proven(1, 1));
	write(1);
	damage(20);
	assert_false(is_proven(1, 1));
	write(1);
	kept_contributions_forget(w.k);
	assert_true(is_proven(1, 0));
}

static void a_donor_gives_them(void **state) {
	(void)state;
	struct kept_source k = {.contributions = w.k};
	const struct donor_source s = kept_source_of(&k);
	struct frame_piece p = {.of = {.kind = FRAME_FETCH_CONTRIBUTION, .round = 1, .index = 2}};
	size_t bytes;
	assert_false(s.find(s.ctx, 0, &p));
	write(1);
	assert_true(s.may_look(s.ctx, 0, &p.of) && s.find(s.ctx, 0, &p));
	const uint8_t *piece = kept_contributions_piece(w.k, 1, 2, &bytes);
	assert_int_equal(p.total, bytes);
	assert_ptr_equal(p.data, piece);
	s.idle(s.ctx);
}

static void ask(struct donor *d, uint64_t round, uint32_t chunk) {
	const struct frame_fetch f = {
		.kind = FRAME_FETCH_CONTRIBUTION, .part = FRAME_PART_PIECE, .round = round, .index = chunk};
	uint8_t body[FRAME_FETCH_BYTES];
	const struct frame_header h = frame_fetch_encode(&f, TAG, body);
	assert_ok(donor_receive(d, ASKER, &h, body, &et));
}

/* For each answer a file is opened, and all its hashes are read. */
static void a_member_that_asks_for_what_is_not_there_meets_its_budget(void **state) {
	(void)state;
	enum { PIECE = 60000, AT_ONCE = 16 };
	struct kept_source k = {.contributions = w.k};
	const struct donor_config cfg = {.run_tag = TAG,
									 .least_bytes = PIECE,
									 .budget = donor_budget_of(AT_ONCE / 2 * PIECE, 0),
									 .source = kept_source_of(&k)};
	struct donor *d = donor_init(malloc(donor_size()), &cfg);
	struct peers_message m;
	int answers = 0;
	write(0);
	write(1);
	do {
		ask(d, (uint64_t)answers % 2, answers % 4 < 2 ? w.chunks.n_chunks : 0);
		answers++;
	} while (answers < 100 * AT_ONCE && donor_send(d, S, ASKER, &m));
	assert_in_range(answers, AT_ONCE / 2, AT_ONCE + 1);
	free(d);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_piece_is_proven, setup, teardown),
		cmocka_unit_test_setup_teardown(a_later_round_takes_the_place, setup, teardown),
		cmocka_unit_test_setup_teardown(a_round_that_is_written_again_is_read_anew, setup, teardown),
		cmocka_unit_test_setup_teardown(a_chunk_is_read_once_for_all_its_slices, setup, teardown),
		cmocka_unit_test_setup_teardown(a_damaged_file_gives_nothing_wrong, setup, teardown),
		cmocka_unit_test_setup_teardown(a_donor_gives_them, setup, teardown),
		cmocka_unit_test_setup_teardown(a_member_that_asks_for_what_is_not_there_meets_its_budget, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
