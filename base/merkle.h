/* merkle.h: a hash over a list of chunks, by which each of them, and each range of them, can be
 * checked without the others (a Merkle tree, as in RFC 9162, section 2.1).
 *
 *   leaf    H("rivulet leaf" | index u64 | the chunk's bytes)
 *   node    H("rivulet node" | left | right): over [a, b) leaves it splits behind the largest power
 *           of two below b - a
 *   root    H("rivulet tree" | n u64 | the node over all leaves)
 *
 * Leaves and nodes cannot be taken for each other, a leaf not for one at another place, nor a root
 * for that of another number of leaves. A proof of the leaves [first, first + count) is the nodes
 * beside them, from the left to the right: at most MERKLE_MAX_PROOF hashes. Memory is the
 * caller's. */
#ifndef RV_BASE_MERKLE_H
#define RV_BASE_MERKLE_H

#include "base/hash.h"

enum {
	MERKLE_MAX_LEAVES = 1 << 20,
	MERKLE_LEVELS = 21,   /* of a tree, its leaves among them, at most */
	MERKLE_MAX_PROOF = 40 /* hashes of a proof: two a level, but for the top */
};

struct rv_hash merkle_leaf(uint32_t index, const void *data, size_t bytes);

/* A root that is computed while the leaves come, in order. */
struct merkle_sum {
	uint32_t n;
	struct rv_hash open[MERKLE_LEVELS]; /* a node of 2^i leaves for each bit i of n */
};
void merkle_add(struct merkle_sum *s, const struct rv_hash *leaf); /* at most MERKLE_MAX_LEAVES, asserted */
/* Returns the root over what was added, one leaf at least (asserted). */
struct rv_hash merkle_sum_root(const struct merkle_sum *s);

/* Returns the hashes of a tree over n leaves, 1..MERKLE_MAX_LEAVES (asserted here and below): fewer
 * than 2 n + MERKLE_LEVELS. */
size_t merkle_nodes(uint32_t n);
/* Makes the tree of the leaves that are in nodes[0..n). */
void merkle_build(struct rv_hash *nodes, uint32_t n);
struct rv_hash merkle_root(const struct rv_hash *nodes, uint32_t n);

/* Leaves [first, first + count) of n. */
struct merkle_range {
	uint32_t n, first, count;
};
/* Returns true if there is such a range, not empty, of a tree that can be. */
bool merkle_range_valid(const struct merkle_range *r);
/* Return the number of hashes of a range's proof, and write it to `out` from a tree. The range must
 * be valid (asserted). */
uint32_t merkle_proof_hashes(const struct merkle_range *r);
uint32_t merkle_prove(const struct rv_hash *nodes, const struct merkle_range *r, struct rv_hash out[MERKLE_MAX_PROOF]);
/* Returns true if `leaves` (count) are those of a valid range of the tree with this root, by a
 * proof of `n_proof` hashes. Takes anything. */
bool merkle_check(const struct rv_hash *root, const struct merkle_range *r, const struct rv_hash *leaves,
				  const struct rv_hash *proof, uint32_t n_proof);

#endif
