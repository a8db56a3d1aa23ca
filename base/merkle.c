/* merkle.c: see merkle.h. A tree lies level by level: node i of level l is over the leaves
 * [i 2^l, (i + 1) 2^l), as far as there are any; one without a right neighbour is that of the level
 * below. */
#include "base/merkle.h"

#include "base/assert.h"

struct rv_hash merkle_leaf(uint32_t index, const void *data, size_t bytes) {
	struct rv_hasher h = rv_hasher_of("rivulet leaf");
	rv_hash_u64(&h, index);
	rv_hash_update(&h, data, bytes);
	return rv_hash_final(&h);
}

static struct rv_hash join(const struct rv_hash *left, const struct rv_hash *right) {
	struct rv_hasher h = rv_hasher_of("rivulet node");
	rv_hash_update(&h, left->b, sizeof left->b);
	rv_hash_update(&h, right->b, sizeof right->b);
	return rv_hash_final(&h);
}

static struct rv_hash root_of(uint32_t n, const struct rv_hash *top) {
	struct rv_hasher h = rv_hasher_of("rivulet tree");
	rv_hash_u64(&h, n);
	rv_hash_update(&h, top->b, sizeof top->b);
	return rv_hash_final(&h);
}

/* ---- one leaf after the other ---- */

void merkle_add(struct merkle_sum *s, const struct rv_hash *leaf) {
	struct rv_hash node = *leaf;
	int level = 0;
	RV_ASSERT(s->n < MERKLE_MAX_LEAVES);
	for (; s->n >> level & 1; level++)
		node = join(&s->open[level], &node);
	s->open[level] = node;
	s->n++;
}

struct rv_hash merkle_sum_root(const struct merkle_sum *s) {
	struct rv_hash top;
	int level = 0;
	RV_ASSERT(s->n > 0 && s->n <= MERKLE_MAX_LEAVES);
	while (!(s->n >> level & 1))
		level++;
	top = s->open[level];
	for (level++; level < MERKLE_LEVELS; level++)
		if (s->n >> level & 1)
			top = join(&s->open[level], &top);
	return root_of(s->n, &top);
}

/* ---- a whole tree ---- */

static uint32_t halved(uint32_t n) {
	return n / 2 + n % 2;
}

size_t merkle_nodes(uint32_t n) {
	size_t nodes = n;
	RV_ASSERT(n > 0 && n <= MERKLE_MAX_LEAVES);
	for (; n > 1; n = halved(n))
		nodes += halved(n);
	return nodes;
}

void merkle_build(struct rv_hash *nodes, uint32_t n) {
	RV_ASSERT(n > 0 && n <= MERKLE_MAX_LEAVES);
	for (; n > 1; nodes += n, n = halved(n))
		for (uint32_t i = 0; i < halved(n); i++)
			nodes[n + i] = 2 * i + 1 < n ? join(&nodes[2 * i], &nodes[2 * i + 1]) : nodes[2 * i];
}

struct rv_hash merkle_root(const struct rv_hash *nodes, uint32_t n) {
	return root_of(n, &nodes[merkle_nodes(n) - 1]);
}

/* ---- proofs ---- */

bool merkle_range_valid(const struct merkle_range *r) {
	return r->n > 0 && r->n <= MERKLE_MAX_LEAVES && r->count > 0 && r->first < r->n && r->count <= r->n - r->first;
}

/* The leaves [begin, begin + n) under a node. */
struct span {
	uint32_t begin, n;
};

static bool is_beside(const struct merkle_range *r, struct span s) {
	return s.begin + s.n <= r->first || s.begin >= r->first + r->count;
}

/* Returns the number of leaves of the left half. */
static uint32_t left_of(struct span s) {
	uint32_t left = 1;
	RV_ASSERT(s.n > 1);
	while (2 * left < s.n)
		left *= 2;
	return left;
}

static uint32_t count_beside(const struct merkle_range *r, struct span s) {
	if (is_beside(r, s))
		return 1;
	if (s.n == 1)
		return 0;
	const uint32_t left = left_of(s);
	return count_beside(r, (struct span){s.begin, left}) + count_beside(r, (struct span){s.begin + left, s.n - left});
}

uint32_t merkle_proof_hashes(const struct merkle_range *r) {
	RV_ASSERT(merkle_range_valid(r));
	const uint32_t n = count_beside(r, (struct span){0, r->n});
	RV_ASSERT(n <= MERKLE_MAX_PROOF);
	return n;
}

/* Returns the node over `s` in a tree of n leaves. */
static const struct rv_hash *node_over(const struct rv_hash *nodes, uint32_t n, struct span s) {
	for (; s.n > 1; s = (struct span){s.begin / 2, halved(s.n)}) {
		nodes += n;
		n = halved(n);
	}
	return &nodes[s.begin];
}

/* Writes the nodes beside the range, from the left to the right, and returns their end. */
static struct rv_hash *put_beside(const struct rv_hash *nodes, const struct merkle_range *r, struct span s,
								  struct rv_hash *out) {
	if (is_beside(r, s)) {
		*out = *node_over(nodes, r->n, s);
		return out + 1;
	}
	if (s.n == 1)
		return out;
	const uint32_t left = left_of(s);
	out = put_beside(nodes, r, (struct span){s.begin, left}, out);
	return put_beside(nodes, r, (struct span){s.begin + left, s.n - left}, out);
}

uint32_t merkle_prove(const struct rv_hash *nodes, const struct merkle_range *r, struct rv_hash out[MERKLE_MAX_PROOF]) {
	const uint32_t n = merkle_proof_hashes(r);
	const struct rv_hash *end = put_beside(nodes, r, (struct span){0, r->n}, out);
	RV_ASSERT(end == out + n);
	return n;
}

/* Returns the node over `s`, from the range's leaves and what is left of the proof. */
static struct rv_hash node_by_proof(const struct merkle_range *r, struct span s, const struct rv_hash *leaves,
									const struct rv_hash **proof) {
	if (is_beside(r, s))
		return *(*proof)++;
	if (s.n == 1)
		return leaves[s.begin - r->first];
	const uint32_t n_left = left_of(s);
	const struct rv_hash left = node_by_proof(r, (struct span){s.begin, n_left}, leaves, proof);
	const struct rv_hash right = node_by_proof(r, (struct span){s.begin + n_left, s.n - n_left}, leaves, proof);
	return join(&left, &right);
}

bool merkle_check(const struct rv_hash *root, const struct merkle_range *r, const struct rv_hash *leaves,
				  const struct rv_hash *proof, uint32_t n_proof) {
	if (!merkle_range_valid(r) || n_proof != merkle_proof_hashes(r))
		return false;
	const struct rv_hash top = node_by_proof(r, (struct span){0, r->n}, leaves, &proof);
	const struct rv_hash found = root_of(r->n, &top);
	return rv_hash_equal(&found, root);
}
