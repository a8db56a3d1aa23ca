/* house.c: see house.h. */
#include "worker/mesh/house.h"

#include "base/planted.h"

#include <string.h>

static void look(struct house *h, const struct member_ref *refs, int n, uint32_t self) {
	for (int i = 0; i < n; i++)
		if (refs[i].member == self)
			h->self = refs[i];
}

void house_follow(struct house *h, const struct document *d, uint32_t self) {
	look(h, d->members, d->n_members, self);
	look(h, d->syncing, d->n_syncing, self);
}

/* Returns true for an address of this worker itself: in another house it is another machine's. */
static bool is_own(const struct house *h, const struct candidate_ref *c) {
	for (int i = 0; i < h->self.n_candidates; i++)
		if (strcmp(h->self.candidates[i].addr, c->addr) == 0)
			return true;
	return false;
}

void house_filter(const struct house *h, struct member_ref *ref) {
	bool shared = RV_BUG("dial-any-house") ||
				  candidates_share_host(h->self.candidates, h->self.n_candidates, ref->candidates, ref->n_candidates);
	int kept = 0;
	for (int i = 0; i < ref->n_candidates; i++)
		if (ref->candidates[i].kind != CANDIDATE_PRIVATE || (shared && !is_own(h, &ref->candidates[i])))
			ref->candidates[kept++] = ref->candidates[i];
	ref->n_candidates = (uint8_t)kept;
}
