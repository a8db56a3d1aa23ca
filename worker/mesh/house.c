/* house.c: see house.h. */
#include "worker/mesh/house.h"

#include "net/address.h"

#include <string.h>

static bool seen_host(const struct member_ref *ref, char host[NET_ADDR_BYTES]) {
	struct address seen;
	if (address_parse(candidates_seen(ref->candidates, ref->n_candidates), &seen, NULL) != RV_OK)
		return false;
	memcpy(host, seen.host, sizeof seen.host);
	return true;
}

static void look(struct house *h, const struct member_ref *refs, int n, uint32_t self) {
	for (int i = 0; i < n; i++)
		if (refs[i].member == self)
			(void)seen_host(&refs[i], h->host);
}

void house_follow(struct house *h, const struct document *d, uint32_t self) {
	look(h, d->members, d->n_members, self);
	look(h, d->syncing, d->n_syncing, self);
}

void house_filter(const struct house *h, struct member_ref *ref) {
	char host[NET_ADDR_BYTES];
	bool shared = seen_host(ref, host) && h->host[0] != '\0' && strcmp(h->host, host) == 0;
	int kept = 0;
	for (int i = 0; i < ref->n_candidates; i++)
		if (shared || ref->candidates[i].kind != CANDIDATE_PRIVATE)
			ref->candidates[kept++] = ref->candidates[i];
	ref->n_candidates = (uint8_t)kept;
}
