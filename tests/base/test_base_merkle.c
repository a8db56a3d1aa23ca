/* Merkle trees: known roots (made by Python's hashlib), both ways to a root, every range of small
 * trees, and what must not pass. */
#include "base/merkle.h"

#include "base/hex.h"
#include "tests/common/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 20 };

static void make_leaves(struct rv_hash *nodes, uint32_t n) {
	for (uint32_t i = 0; i < n; i++)
		nodes[i] = merkle_leaf(i, &i, i % 5);
}

static struct rv_hash sum_of(const struct rv_hash *leaves, uint32_t n) {
	struct merkle_sum s = {.n = 0};
	for (uint32_t i = 0; i < n; i++)
		merkle_add(&s, &leaves[i]);
	return merkle_sum_root(&s);
}

/* The root of the chunks "chunk 0", "chunk 1", ... */
static void check_root(uint32_t n, const char *want) {
	struct merkle_sum s = {.n = 0};
	char hex[2 * RV_HASH_BYTES + 1];
	for (uint32_t i = 0; i < n; i++) {
		char text[16];
		const int bytes = snprintf(text, sizeof text, "chunk %u", i);
		const struct rv_hash leaf = merkle_leaf(i, text, (size_t)bytes);
		merkle_add(&s, &leaf);
	}
	const struct rv_hash root = merkle_sum_root(&s);
	rv_hex_encode(root.b, sizeof root.b, hex);
	assert_string_equal(hex, want);
}

static void known_roots(void **state) {
	(void)state;
	check_root(1, "fc0f4d8ba1828094c735a15a5d9e755020cb086671ed256cc621066075af343e");
	check_root(2, "c6980c288c088900fcf3760fbb0cc46d29cf09a24dcb45941a65df3b42e6eb24");
	check_root(7, "a7a531db14e6d00db28659c5ceaa85e2a69725ee053537c423bc70246fc4b92d");
}

static void sums_are_trees(void **state) {
	(void)state;
	for (uint32_t n = 1; n <= 200; n++) {
		struct rv_hash *nodes = malloc(merkle_nodes(n) * sizeof *nodes);
		assert_true(merkle_nodes(n) < 2 * (size_t)n + MERKLE_LEVELS);
		make_leaves(nodes, n);
		const struct rv_hash sum = sum_of(nodes, n);
		merkle_build(nodes, n);
		const struct rv_hash root = merkle_root(nodes, n);
		assert_true(rv_hash_equal(&sum, &root));
		free(nodes);
	}
}

/* Returns true if nothing passes that differs from the range in one bit, one hash, or its place. */
static bool refuses_others(const struct rv_hash *root, const struct merkle_range *r, struct rv_hash *leaves,
						   struct rv_hash *proof, uint32_t n_proof) {
	const struct merkle_range moved = {r->n, r->first + 1, r->count}, more = {r->n + 1, r->first, r->count};
	bool passed =
		merkle_check(root, &moved, leaves, proof, n_proof) || merkle_check(root, &more, leaves, proof, n_proof);
	passed = passed || merkle_check(root, r, leaves, proof, n_proof + 1);
	for (uint32_t i = 0; i < r->count + n_proof; i++) {
		uint8_t *at = i < r->count ? leaves[i].b : proof[i - r->count].b;
		at[i % RV_HASH_BYTES] ^= 1;
		passed = passed || merkle_check(root, r, leaves, proof, n_proof);
		at[i % RV_HASH_BYTES] ^= 1;
	}
	return !passed;
}

static void every_range_has_its_proof(void **state) {
	(void)state;
	for (uint32_t n = 1; n <= SMALL; n++) {
		struct rv_hash nodes[2 * SMALL + MERKLE_LEVELS], proof[MERKLE_MAX_PROOF + 1] = {{{0}}};
		make_leaves(nodes, n);
		merkle_build(nodes, n);
		const struct rv_hash root = merkle_root(nodes, n);
		for (uint32_t first = 0; first < n; first++) {
			for (uint32_t count = 1; count <= n - first; count++) {
				const struct merkle_range r = {n, first, count};
				const uint32_t n_proof = merkle_prove(nodes, &r, proof);
				assert_int_equal(n_proof, merkle_proof_hashes(&r));
				assert_true(merkle_check(&root, &r, nodes + first, proof, n_proof));
				assert_true(refuses_others(&root, &r, nodes + first, proof, n_proof));
			}
		}
	}
}

static void ranges_that_are_none(void **state) {
	(void)state;
	static const struct merkle_range none[] = {
		{0, 0, 0}, {0, 0, 1},          {5, 0, 0},          {5, 5, 1},
		{5, 4, 2}, {5, 1, UINT32_MAX}, {5, UINT32_MAX, 2}, {MERKLE_MAX_LEAVES + 1, 0, 1}};
	const struct rv_hash zero = {{0}};
	for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
		assert_false(merkle_range_valid(&none[i]));
		assert_false(merkle_check(&zero, &none[i], &zero, &zero, 1));
	}
}

static void the_largest_tree(void **state) {
	(void)state;
	const uint32_t n = MERKLE_MAX_LEAVES;
	struct rv_hash *nodes = malloc(merkle_nodes(n) * sizeof *nodes), proof[MERKLE_MAX_PROOF];
	assert_non_null(nodes);
	for (uint32_t i = 0; i < n; i++)
		nodes[i] = (struct rv_hash){{(uint8_t)i, (uint8_t)(i >> 8), (uint8_t)(i >> 16)}};
	const struct rv_hash sum = sum_of(nodes, n);
	merkle_build(nodes, n);
	const struct rv_hash root = merkle_root(nodes, n);
	assert_true(rv_hash_equal(&sum, &root));
	const struct merkle_range middle = {n, 1, n - 2}, one = {n, n / 3, 1};
	assert_int_equal(merkle_prove(nodes, &middle, proof), 2);
	assert_true(merkle_check(&root, &middle, nodes + 1, proof, 2));
	assert_int_equal(merkle_prove(nodes, &one, proof), MERKLE_LEVELS - 1);
	assert_true(merkle_check(&root, &one, nodes + one.first, proof, MERKLE_LEVELS - 1));
	const struct merkle_range widest = {n, n / 2 - 1, 2};
	assert_int_equal(merkle_prove(nodes, &widest, proof), 2 * (MERKLE_LEVELS - 2));
	assert_true(2 * (MERKLE_LEVELS - 2) <= MERKLE_MAX_PROOF);
	free(nodes);
}

static void a_leaf_is_of_its_place(void **state) {
	(void)state;
	const struct rv_hash a = merkle_leaf(0, "x", 1), b = merkle_leaf(1, "x", 1), c = merkle_leaf(0, "y", 1);
	assert_false(rv_hash_equal(&a, &b));
	assert_false(rv_hash_equal(&a, &c));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_roots),
		cmocka_unit_test(sums_are_trees),
		cmocka_unit_test(every_range_has_its_proof),
		cmocka_unit_test(ranges_that_are_none),
		cmocka_unit_test(the_largest_tree),
		cmocka_unit_test(a_leaf_is_of_its_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
