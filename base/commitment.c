/* commitment.c: see commitment.h. */
#include "base/commitment.h"

const struct rv_hash *commitment_find(const struct commitment *c, uint8_t codec) {
	for (int i = 0; i < c->n; i++)
		if (c->roots[i].codec == codec)
			return &c->roots[i].root;
	return NULL;
}

bool commitment_equal(const struct commitment *a, const struct commitment *b) {
	bool same =
		a->n == b->n && rv_hash_equal(&a->inner_end, &b->inner_end) && rv_hash_equal(&a->inner_begin, &b->inner_begin);
	for (int i = 0; i < a->n && same; i++)
		same = a->roots[i].codec == b->roots[i].codec && rv_hash_equal(&a->roots[i].root, &b->roots[i].root);
	return same;
}
