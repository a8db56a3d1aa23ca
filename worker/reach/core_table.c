/* core_table.c: the pairs by member number (core_state.h): those that the document names, and those
 * whose calls come through a relay. */
#include "worker/reach/core_state.h"

#include <string.h>

/* Returns the index of the first pair with this number or a higher one. */
static int place_of(const struct reach_core *r, uint32_t member) {
	int low = 0, high = r->n_pairs;
	while (low < high) {
		int mid = (low + high) / 2;
		if (r->pairs[mid].member < member)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct pair *pairs_find(struct reach_core *r, uint32_t member) {
	int at = place_of(r, member);
	return at < r->n_pairs && r->pairs[at].member == member ? &r->pairs[at] : NULL;
}

/* Makes room by a pair that no document names: one that rests, or, for a pair that is named, any.
 * Returns false if there is none. */
static bool drop_one(struct reach_core *r, bool for_named) {
	int found = NOWHERE;
	for (int i = 0; i < r->n_pairs; i++) {
		const struct pair *p = &r->pairs[i];
		bool rests = p->step == PAIR_RESTS && p->again_us == INT64_MAX;
		if (!p->is_named && (rests || (for_named && found == NOWHERE)))
			found = i;
	}
	if (found == NOWHERE)
		return false;
	memmove(&r->pairs[found], &r->pairs[found + 1], (size_t)(--r->n_pairs - found) * sizeof r->pairs[0]);
	return true;
}

struct pair *pairs_add(struct reach_core *r, uint32_t member, bool is_named) {
	struct pair *p = pairs_find(r, member);
	if (p == NULL && (r->n_pairs < NET_MAX_PEERS || drop_one(r, is_named))) {
		int at = place_of(r, member);
		p = &r->pairs[at];
		memmove(p + 1, p, (size_t)(r->n_pairs++ - at) * sizeof *p);
		*p = (struct pair){.member = member, .again_us = INT64_MAX};
	}
	if (p != NULL)
		p->is_named = p->is_named || is_named;
	return p;
}
