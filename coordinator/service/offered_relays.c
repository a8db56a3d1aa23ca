/* offered_relays.c: see offered_relays.h. */
#include "coordinator/service/offered_relays.h"

#include "base/assert.h"
#include "base/gcra.h"

#include <string.h>

static const struct gcra listings = {.each_us = OFFERED_LISTING_US, .burst = OFFERED_LISTINGS};

static struct offered_relay *of(struct offered_relays *o, uint32_t slot) {
	RV_ASSERT(slot < NET_MAX_HERE);
	return &o->members[slot];
}

/* Gives an offer that was reached its turn, within the pace. */
static void list(struct offered_relays *o, int64_t now_us, uint32_t slot) {
	struct offered_relay *r = of(o, slot);
	if (r->turn != 0 || now_us >= r->confirmed_us || !gcra_take(&listings, &r->paid_until_us, now_us))
		return;
	r->turn = ++o->turns;
	set_add(o->listed, slot);
}

static void unlist(struct offered_relays *o, uint32_t slot) {
	of(o, slot)->turn = 0;
	set_drop(o->listed, slot);
}

void offered_relays_forget(struct offered_relays *o, uint32_t slot) {
	unlist(o, slot);
	*of(o, slot) = (struct offered_relay){.is_offered = false};
}

void offered_relays_take(struct offered_relays *o, int64_t now_us, uint32_t slot, const struct relay_ref *at) {
	struct offered_relay *r = of(o, slot);
	r->is_offered = at->addr[0] != '\0';
	if (!r->is_offered) {
		unlist(o, slot);
		return;
	}
	if (strcmp(r->at.addr, at->addr) != 0 || memcmp(r->at.key, at->key, NET_KEY_BYTES) != 0) {
		unlist(o, slot);
		*r =
			(struct offered_relay){.at = *at, .is_offered = true, .test_us = now_us, .paid_until_us = r->paid_until_us};
	}
	list(o, now_us, slot);
}

bool offered_relays_due(const struct offered_relays *o, int64_t now_us, uint32_t slot) {
	RV_ASSERT(slot < NET_MAX_HERE);
	const struct offered_relay *r = &o->members[slot];
	return r->is_offered && now_us >= r->test_us;
}

void offered_relays_tested(struct offered_relays *o, int64_t now_us, uint32_t slot, enum offered_finding found) {
	static const int64_t pauses_us[] = {[OFFERED_NOBODY] = OFFERED_SOON_US,
										[OFFERED_REACHED] = OFFERED_RENEW_US,
										[OFFERED_NOT_REACHED] = OFFERED_AGAIN_US};
	struct offered_relay *r = of(o, slot);
	RV_ASSERT(r->is_offered);
	r->test_us = now_us + pauses_us[found];
	if (found == OFFERED_NOT_REACHED) {
		unlist(o, slot);
		r->confirmed_us = 0;
	} else if (found == OFFERED_REACHED) {
		r->confirmed_us = now_us + OFFERED_LISTED_US;
	}
	list(o, now_us, slot);
}

/* Returns the listed one of the next turn after `turn`; NULL: there is none. */
static const struct offered_relay *next_turn(const struct offered_relays *o, int64_t now_us, const uint64_t *live,
											 uint64_t turn) {
	const struct offered_relay *next = NULL;
	const int words = SET_WORDS(NET_MAX_HERE);
	for (int i = set_next(o->listed, 0, words); i >= 0; i = set_next(o->listed, i + 1, words)) {
		const struct offered_relay *r = &o->members[i];
		bool listed = set_has(live, (uint32_t)i) && r->turn > turn && now_us < r->confirmed_us;
		if (listed && (next == NULL || r->turn < next->turn))
			next = r;
	}
	return next;
}

int offered_relays_list(const struct offered_relays *o, int64_t now_us, const uint64_t *live,
						struct relay_ref out[NET_MAX_RELAYS]) {
	const struct offered_relay *r = next_turn(o, now_us, live, 0);
	int n = 0;
	for (; r != NULL && n < NET_MAX_RELAYS; r = next_turn(o, now_us, live, r->turn))
		out[n++] = r->at;
	return n;
}
