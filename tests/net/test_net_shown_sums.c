/* test_net_shown_sums.c: what a final owner shows of the sums of rows, on the wire and judged. */
#include "net/control/evidence.h"
#include "tests/common/check.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 3, LIST = 5, AT = 3 };

static struct evidence in, out;
static uint8_t bytes[8192];
static struct identity keys[ROWS];

static void fill(void) {
	struct shown_sums *s = &in.sums;
	const struct seal_scope scope = {.kind = SEAL_SUMS, .round = 4, .attempt = 2, .first = 30};
	in = (struct evidence){.term = 1, .round = 5, .has_sums = true};
	*s = (struct shown_sums){.round = 4, .attempt = 2, .chunk = 39, .n_rows = ROWS};
	for (int row = 0; row < ROWS; row++) {
		struct rv_hash nodes[2 * LIST + MERKLE_LEVELS], path[MERKLE_MAX_PROOF];
		const struct merkle_range range = {LIST, AT, 1};
		const uint8_t seed[IDENTITY_SEED_BYTES] = {(uint8_t)(1 + row)};
		for (uint32_t i = 0; i < LIST; i++)
			nodes[i] = merkle_leaf(30 + 3 * i, &row, sizeof row);
		merkle_build(nodes, LIST);
		s->n_path = (uint8_t)merkle_prove(nodes, &range, path);
		s->rows[row].leaf = nodes[AT];
		memcpy(s->rows[row].path, path, s->n_path * sizeof path[0]);
		const struct rv_hash root = merkle_root(nodes, LIST);
		identity_of_seed(seed, &keys[row]);
		seal_sign(&keys[row], &scope, &root, &s->rows[row].seal);
	}
}

static bool holds(const struct shown_sums *s, int row, int by, uint32_t at) {
	const struct seal_scope scope = {.kind = SEAL_SUMS, .round = 4, .attempt = 2, .first = 30};
	const struct sums_place place = {.first = 30, .at = at, .n = LIST};
	const struct seal_ops ops = seal_ed25519(NULL);
	return shown_sum_holds(s, row, &place, keys[by].key, &scope, &ops);
}

static size_t encode(void) {
	struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
	evidence_encode(&in, 1, &w);
	assert_false(w.failed);
	return rv_writer_len(&w);
}

static void evidence_has_sums(void **state) {
	(void)state;
	const uint8_t run_id[NET_RUN_ID_BYTES] = {0};
	fill();
	const size_t n = encode();
	assert_true(n <= evidence_max_bytes(0) + SHOWN_SUMS_MAX_BYTES);
	assert_int_equal(evidence_decode(bytes, n, run_id, &out, NULL), RV_OK);
	assert_true(out.has_sums && out.sums.chunk == 39 && out.sums.n_rows == ROWS && out.sums.attempt == 2);
	for (int row = 0; row < ROWS; row++)
		assert_true(holds(&out.sums, row, row, AT));
	for (size_t cut = 0; cut < n; cut++)
		assert_int_not_equal(evidence_decode(bytes, cut, run_id, &out, NULL), RV_OK);
	in.has_sums = false;
	assert_int_equal(evidence_decode(bytes, encode(), run_id, &out, NULL), RV_OK);
	assert_false(out.has_sums);
}

static void what_cannot_be_is_refused(void **state) {
	(void)state;
	const uint8_t run_id[NET_RUN_ID_BYTES] = {0};
	fill();
	const size_t n = encode(), at = n - (size_t)ROWS * (32 + 96 + (size_t)in.sums.n_path * 32) - 2;
	assert_int_equal(bytes[at], ROWS);
	bytes[at] = NET_MAX_ROWS + 1;
	assert_int_equal(evidence_decode(bytes, n, run_id, &out, NULL), RV_E_INVALID);
	bytes[at] = ROWS;
	bytes[at + 1] = SHOWN_PATH_MAX + 1;
	assert_int_equal(evidence_decode(bytes, n, run_id, &out, NULL), RV_E_INVALID);
}

static void only_what_is_signed_holds(void **state) {
	(void)state;
	fill();
	assert_true(holds(&in.sums, 1, 1, AT));
	assert_false(holds(&in.sums, 1, 2, AT));     /* another owner's key */
	assert_false(holds(&in.sums, 1, 1, AT + 1)); /* another chunk's place */
	in.sums.rows[1].leaf.b[7] ^= 1;
	assert_false(holds(&in.sums, 1, 1, AT));
	in.sums.rows[1].leaf.b[7] ^= 1;
	in.sums.n_path--;
	assert_false(holds(&in.sums, 1, 1, AT));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evidence_has_sums),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(only_what_is_signed_holds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
