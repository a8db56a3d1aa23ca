/* openings.c: calls after which both ends dial each other's mapping at one moment. */
#include "base/assert.h"
#include "base/clock.h"
#include "base/planted.h"
#include "net/relay/state.h"

enum {
	SAME_CALL_US = RV_US_PER_S,
	SLACK_US = 20 * RV_US_PER_MS, /* so that the OPEN for the farther end is there before it dials */
	MOST_RTT_US = 5 * RV_US_PER_S
};
_Static_assert(MOST_RTT_US / 2 + SLACK_US <= (int)NET_RELAY_OPEN_DELAY_MS * (int)RV_US_PER_MS, "delays fit a frame");

static const struct gcra of_member = {.each_us = RV_US_PER_S, .burst = 8};
static const struct gcra of_pair = {.each_us = INT64_C(5) * RV_US_PER_S, .burst = 2};

static enum relay_family family_of(const struct relay_call *m) {
	return m->way == WAY_OPEN_V6 ? RELAY_V6 : RELAY_V4;
}

/* Returns what is kept of two members' openings, at one of them, whichever called first. Without
 * any: that of the pair for which they are paid up to the earliest time, long ago. */
static struct relay_opened *place_of(struct relay_core *r, int a, int b) {
	int low = a < b ? a : b, high = a < b ? b : a;
	struct relay_opened *list = r->members[low].opened, *oldest = list;
	for (int i = 0; i < RELAY_OPENED; i++) {
		if (list[i].until_us != 0 && list[i].other == r->members[high].number)
			return &list[i];
		oldest = list[i].until_us < oldest->until_us ? &list[i] : oldest;
	}
	return oldest;
}

/* Returns NULL if there was none lately. */
static const struct relay_opened *find_pair(struct relay_core *r, int a, int b) {
	const struct relay_opened *pair = place_of(r, a, b);
	return pair->until_us != 0 && pair->other == r->members[a < b ? b : a].number ? pair : NULL;
}

/* ---- refusals ---- */

static uint8_t unmapped(const struct relay_core *r, const struct relay_member *caller, const struct relay_member *peer,
						enum relay_family f) {
	int whose = relay_mapping(r, caller, f) == NULL ? RELAY_CALLER : 0;
	return (uint8_t)(whose | (relay_mapping(r, peer, f) == NULL ? RELAY_CALLED : 0));
}

/* Returns the milliseconds until one more is within the limit, rounded up; 0: now. */
static uint32_t wait_ms(const struct gcra *limit, int64_t until_us, int64_t now_us) {
	int64_t wait_us = gcra_ready_us(limit, until_us) - now_us;
	return wait_us > 0 ? (uint32_t)((wait_us + RV_US_PER_MS - 1) / RV_US_PER_MS) : 0;
}

static uint32_t longest(uint32_t a, uint32_t b) {
	return a > b ? a : b;
}

static struct relay_verdict judge_pace(struct relay_core *r, int64_t now_us, int caller, int peer) {
	uint32_t own = wait_ms(&of_member, r->members[caller].openings_until_us, now_us);
	uint32_t theirs = wait_ms(&of_member, r->members[peer].openings_until_us, now_us);
	const struct relay_opened *pair = find_pair(r, caller, peer);
	uint32_t both = pair != NULL ? wait_ms(&of_pair, pair->until_us, now_us) : 0;
	if (own == 0 && theirs == 0 && both == 0)
		return (struct relay_verdict){0};
	int whose = (own > 0 ? RELAY_CALLER : 0) | (theirs > 0 ? RELAY_CALLED : 0);
	return (struct relay_verdict){
		.why = RELAY_REFUSE_RATE, .whose = (uint8_t)whose, .wait_ms = longest(both, longest(own, theirs))};
}

struct relay_verdict relay_judge_opening(struct relay_core *r, int64_t now_us, int caller, int peer,
										 const struct relay_call *m) {
	const struct relay_member *a = &r->members[caller], *b = &r->members[peer];
	enum relay_family f = family_of(m);
	uint8_t whose = unmapped(r, a, b, f);
	if (whose != 0)
		return (struct relay_verdict){.why = RELAY_REFUSE_UNMAPPED, .whose = whose};
	if (relay_is_dependent(r, a, f) && relay_is_dependent(r, b, f))
		return (struct relay_verdict){.why = RELAY_REFUSE_DEPENDENT, .whose = RELAY_CALLER | RELAY_CALLED};
	return relay_was_opened(r, now_us, caller, peer) ? (struct relay_verdict){0} : judge_pace(r, now_us, caller, peer);
}

/* ---- OPEN ---- */

bool relay_was_opened(struct relay_core *r, int64_t now_us, int caller, int peer) {
	const struct relay_opened *pair = find_pair(r, caller, peer);
	return pair != NULL && now_us - pair->at_us < SAME_CALL_US && pair->caller != r->members[caller].number;
}

static void charge(struct relay_core *r, int64_t now_us, int caller, int peer) {
	struct relay_opened *pair = place_of(r, caller, peer);
	if (find_pair(r, caller, peer) == NULL)
		*pair = (struct relay_opened){.other = r->members[caller < peer ? peer : caller].number};
	bool fits = gcra_take(&of_member, &r->members[caller].openings_until_us, now_us);
	fits = gcra_take(&of_member, &r->members[peer].openings_until_us, now_us) && fits;
	fits = gcra_take(&of_pair, &pair->until_us, now_us) && fits;
	RV_ASSERT(fits); /* judged before */
	pair->at_us = now_us;
	pair->caller = r->members[caller].number;
}

static int64_t rtt_us(const struct relay_core *r, const struct relay_member *m) {
	int64_t rtt = r->cfg.rtt_us(r->cfg.ctx, m->station);
	return rtt < MOST_RTT_US ? rtt : MOST_RTT_US;
}

static void send_open(struct relay_core *r, const struct relay_member *to, const struct relay_member *peer,
					  enum relay_family f, int64_t delay_us) {
	const struct relay_open open = {.peer = peer->number,
									.delay_us = (uint32_t)delay_us,
									.at = *relay_mapping(r, RV_BUG("open-names-oneself") ? to : peer, f)};
	RV_ASSERT(delay_us >= SLACK_US);
	relay_send(r, to->station, &(struct relay_frame){.type = RELAY_OPEN, .open = open});
}

void relay_make_opening(struct relay_core *r, int64_t now_us, int caller, int peer, const struct relay_call *m) {
	const struct relay_member *a = &r->members[caller], *b = &r->members[peer];
	if (relay_was_opened(r, now_us, caller, peer))
		return; /* both called at once: the OPEN that was sent to both is the answer */
	charge(r, now_us, caller, peer);
	int64_t rtt_a = rtt_us(r, a), rtt_b = rtt_us(r, b), farther = rtt_a > rtt_b ? rtt_a : rtt_b;
	int64_t moment_us = farther / 2 + SLACK_US; /* from now */
	r->totals.openings++;
	send_open(r, a, b, family_of(m), moment_us - rtt_a / 2);
	send_open(r, b, a, family_of(m), moment_us - rtt_b / 2);
}
