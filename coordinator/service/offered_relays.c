/* offered_relays.c: see offered_relays.h. */
#include "coordinator/service/offered_relays.h"

#include "base/assert.h"

#include <string.h>

static struct offered_relay *of(struct offered_relays *o, uint32_t member) {
	RV_ASSERT(member < NET_MAX_MEMBERS);
	return &o->members[member];
}

void offered_relays_take(struct offered_relays *o, int64_t now_us, uint32_t member, const struct relay_ref *at) {
	struct offered_relay *r = of(o, member);
	if (strcmp(r->at.addr, at->addr) == 0 && memcmp(r->at.key, at->key, NET_KEY_BYTES) == 0)
		return;
	*r = (struct offered_relay){.at = *at, .test_us = now_us};
}

bool offered_relays_due(const struct offered_relays *o, int64_t now_us, uint32_t member) {
	RV_ASSERT(member < NET_MAX_MEMBERS);
	const struct offered_relay *r = &o->members[member];
	return r->at.addr[0] != '\0' && now_us >= r->test_us;
}

void offered_relays_tested(struct offered_relays *o, int64_t now_us, uint32_t member, enum offered_finding found) {
	static const int64_t pauses_us[] = {[OFFERED_NOBODY] = OFFERED_SOON_US,
										[OFFERED_REACHED] = OFFERED_RENEW_US,
										[OFFERED_NOT_REACHED] = OFFERED_AGAIN_US};
	struct offered_relay *r = of(o, member);
	r->test_us = now_us + pauses_us[found];
	if (found == OFFERED_NOT_REACHED)
		r->turn = 0;
	if (found != OFFERED_REACHED)
		return;
	r->confirmed_us = now_us + OFFERED_LISTED_US;
	if (r->turn == 0)
		r->turn = ++o->turns;
}

/* Returns the listed one of the next turn after `turn`; NULL: there is none. */
static const struct offered_relay *next_turn(const struct offered_relays *o, int64_t now_us, uint64_t live,
											 uint64_t turn) {
	const struct offered_relay *next = NULL;
	for (int i = 0; i < NET_MAX_MEMBERS; i++) {
		const struct offered_relay *r = &o->members[i];
		bool listed = (live >> i & 1) != 0 && r->at.addr[0] != '\0' && r->turn > turn && now_us < r->confirmed_us;
		if (listed && (next == NULL || r->turn < next->turn))
			next = r;
	}
	return next;
}

int offered_relays_list(const struct offered_relays *o, int64_t now_us, uint64_t live,
						struct relay_ref out[NET_MAX_RELAYS]) {
	const struct offered_relay *r = next_turn(o, now_us, live, 0);
	int n = 0;
	for (; r != NULL && n < NET_MAX_RELAYS; r = next_turn(o, now_us, live, r->turn))
		out[n++] = r->at;
	return n;
}
