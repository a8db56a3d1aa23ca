/* fuzz_merkle.c: a range, leaves and a proof from a peer against a root. What is accepted is what
 * the tree itself makes. */
#include "base/merkle.h"

#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { LEAVES_MAX = 64 };

/* A proof in place: bits of the input say which hashes are spoiled. */
static uint32_t spoil(struct rv_hash *hashes, uint32_t n, uint8_t how) {
	if (how == 0 || n == 0)
		return 0;
	hashes[how % n].b[how % RV_HASH_BYTES] ^= how;
	return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	if (size < 8)
		return 0;
	const uint32_t n = 1 + data[0] % LEAVES_MAX;
	struct rv_hash nodes[2 * LEAVES_MAX + MERKLE_LEVELS], proof[MERKLE_MAX_PROOF + 1],
		leaves[UINT8_MAX + 1]; /* of any range that a byte counts */
	for (uint32_t i = 0; i < n; i++)
		nodes[i] = merkle_leaf(i, data, size);
	merkle_build(nodes, n);
	const struct rv_hash root = merkle_root(nodes, n);
	const struct merkle_range asked = {data[1] < LEAVES_MAX ? n : data[1], data[2], data[3]};
	memset(leaves, data[7], sizeof leaves);
	memset(proof, data[7], sizeof proof);
	if (asked.n != n || !merkle_range_valid(&asked)) {
		RV_ASSERT(!merkle_check(&root, &asked, leaves, proof, data[4] % MERKLE_MAX_PROOF));
		return 0;
	}
	const uint32_t n_proof = merkle_prove(nodes, &asked, proof);
	memcpy(leaves, nodes + asked.first, asked.count * sizeof leaves[0]);
	const uint32_t spoiled = spoil(leaves, asked.count, data[5]) + spoil(proof, n_proof, data[6]);
	const uint32_t other = data[4] % 3 == 0 ? 1 : 0;
	RV_ASSERT(merkle_check(&root, &asked, leaves, proof, n_proof + other) == (spoiled == 0 && other == 0));
	return 0;
}
