/* core_relays.c: which relays are good: one whose links come to nothing is left (core_state.h).
 *
 * A relay may answer and yet connect nobody: it drops what it should forward, or cuts it after
 * some seconds. Whose fault a call is that came to nothing cannot be known: it may be the peer's.
 * So one failure moves that pair alone (core_pairs.c); a relay is *bad* after BAD_FAILURES in a
 * row, while no pair is linked through it, or when it breaks the rules. */
#include "worker/reach/core_state.h"

#include "base/assert.h"

#include <string.h>

enum {
	BAD_FAILURES = 2,
	STEADY_US = 30 * RV_US_PER_S, /* a relayed link that lived at least this long speaks for its relay */
	BAD_US = 600 * RV_US_PER_S,   /* doubles, to: */
	LAST_BAD_S = 4 * 3600,
	UNREACHED_US = 60 * RV_US_PER_S /* before a relay that did not answer is made
                                     the home again */
};

bool relays_is_own(const struct reach_core *r, int place) {
	return memcmp(r->relays[place].key, r->key, NET_KEY_BYTES) == 0;
}

bool relays_is_bad(const struct reach_core *r, int64_t now_us, int place) {
	return now_us < r->judged[place].bad_until_us || relays_is_own(r, place);
}

/* Returns true if the relay at `a` is a better last choice. */
static bool is_better(const struct reach_core *r, int a, int b) {
	bool is_less_bad = r->judged[a].bad_until_us < r->judged[b].bad_until_us;
	return !relays_is_own(r, a) && (relays_is_own(r, b) || is_less_bad);
}

int relays_next(const struct reach_core *r, int64_t now_us, int place) {
	int first = reach_first_place(r, place), least_bad = first;
	for (int n = 1; n < r->n_relays; n++) {
		int i = (first + n) % r->n_relays;
		if (reach_first_place(r, i) != i)
			continue;
		if (!relays_is_bad(r, now_us, i))
			return i;
		least_bad = is_better(r, i, least_bad) ? i : least_bad;
	}
	return least_bad;
}

static bool is_only_one(const struct reach_core *r) {
	for (int i = 0; i < r->n_relays; i++)
		if (reach_first_place(r, i) != 0)
			return false;
	return true;
}

static void make_bad(struct reach_core *r, int64_t now_us, int place) {
	struct relay_record *j = &r->judged[place];
	if (is_only_one(r))
		return;
	const int64_t last_us = (int64_t)LAST_BAD_S * RV_US_PER_S;
	j->pause_us = j->pause_us == 0 ? BAD_US : reach_earlier(2 * j->pause_us, last_us);
	j->bad_until_us = now_us + j->pause_us;
	j->failures = 0;
	for (int i = 0; i < r->n_pairs; i++)
		r->pairs[i].choice = 0; /* the order is another one */
	const struct reach_event e = {.type = REACH_SAYS_BAD, .relay = &r->relays[place], .text = ""};
	r->ops.tell(r->ops.ctx, &e);
}

void relays_broke_rules(struct reach_core *r, int64_t now_us, int place) {
	make_bad(r, now_us, reach_first_place(r, place));
}

void relays_unreached(struct reach_core *r, int64_t now_us, int place) {
	r->judged[reach_first_place(r, place)].try_us = now_us + UNREACHED_US;
}

int relays_begins_at(const struct reach_core *r, int place) {
	int left = r->judged[place].address;
	RV_ASSERT(reach_first_place(r, place) == place);
	for (int i = place; i < r->n_relays; i++)
		if (reach_first_place(r, i) == place && left-- == 0)
			return i;
	return place; /* it is listed with fewer addresses now */
}

void relays_begin_at(struct reach_core *r, int place) {
	int first = reach_first_place(r, place);
	r->judged[first].address = 0;
	for (int i = first; i < place; i++)
		r->judged[first].address += reach_first_place(r, i) == first;
}

static bool links_someone(const struct reach_core *r, int64_t now_us, int place) {
	for (int i = 0; i < r->n_pairs; i++) {
		const struct pair *p = &r->pairs[i];
		if (p->linked_at == place + 1 && now_us - p->linked_us >= STEADY_US &&
			r->ops.path(r->ops.ctx, p->member) == PATH_RELAYED)
			return true;
	}
	return false;
}

void relays_failed(struct reach_core *r, int64_t now_us, int place) {
	struct relay_record *j = &r->judged[place];
	RV_ASSERT(reach_first_place(r, place) == place);
	if (relays_is_bad(r, now_us, place) || links_someone(r, now_us, place))
		return;
	if (++j->failures >= BAD_FAILURES)
		make_bad(r, now_us, place);
}

bool relays_link_ended(struct reach_core *r, int64_t now_us, int place, int64_t lived_us, bool failed) {
	bool was_steady = lived_us >= STEADY_US;
	if (was_steady)
		r->judged[place] = (struct relay_record){.address = r->judged[place].address};
	else if (failed)
		relays_failed(r, now_us, place);
	return was_steady || !failed;
}

/* Connects to a better relay before the bad one is left. */
void relays_leave_bad_home(struct reach_core *r, int64_t now_us) {
	const struct station *home = &r->stations[r->home], *guest = &r->stations[!r->home];
	int place = reach_first_place(r, home->place);
	if (!home->is_used || !relays_is_bad(r, now_us, place))
		return;
	int next = relays_next(r, now_us, place);
	if (relays_is_bad(r, now_us, next) || now_us < r->judged[next].try_us)
		return;
	if (!guest->is_used || reach_first_place(r, guest->place) != next) {
		if (!guest->is_used || guest->state == REACH_UP)
			station_use(r, now_us, !r->home, next);
		return;
	}
	if (guest->state != REACH_UP)
		return;
	station_leave(r, r->home);
	r->home = !r->home;
	mapping_renew(r, now_us, r->home); /* its relay is asked for a proof */
}
