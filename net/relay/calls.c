/* calls.c: calls: from a pair ticket to two tokens, from two tokens to a link, or to an opening
 * (openings.c). */
#include "base/clock.h"
#include "base/planted.h"
#include "net/identity.h"
#include "net/relay/state.h"

#include <string.h>

static const struct gcra calls = {.each_us = RV_US_PER_S, .burst = NET_RELAY_CALLS_BURST};

void relay_end_link(struct relay_core *r, struct relay_link *l) {
	if (l->state == RELAY_FREE)
		return;
	int ends[2] = {l->connection[0], l->connection[1]};
	r->totals.links_now -= l->state == RELAY_JOINED;
	*l = (struct relay_link){0};
	for (int e = 0; e < 2; e++)
		if (ends[e] != RELAY_NONE)
			relay_close(r, ends[e]);
}

void relay_end_links_of(struct relay_core *r, int member) {
	for (int i = 0; i < NET_RELAY_LINKS; i++)
		if (r->links[i].state != RELAY_FREE && (r->links[i].member[0] == member || r->links[i].member[1] == member))
			relay_end_link(r, &r->links[i]);
}

static struct relay_link *find_pair(struct relay_core *r, enum relay_state state, int a, int b) {
	for (int i = 0; i < NET_RELAY_LINKS; i++) {
		struct relay_link *l = &r->links[i];
		bool pair = (l->member[0] == a && l->member[1] == b) || (l->member[0] == b && l->member[1] == a);
		if (l->state == (uint8_t)state && pair)
			return l;
	}
	return NULL;
}

static struct relay_link *find_free(struct relay_core *r) {
	for (int i = 0; i < NET_RELAY_LINKS; i++)
		if (r->links[i].state == RELAY_FREE)
			return &r->links[i];
	return NULL;
}

/* ---- CALL ---- */

static bool is_stale(const struct relay_core *r, const struct relay_call *m) {
	if (m->term != r->newest_term)
		return m->term < r->newest_term;
	return m->round < r->newest_round && r->newest_round - m->round > NET_RELAY_ROUNDS_BEHIND;
}

static void note_newest(struct relay_core *r, const struct relay_call *m) {
	if (m->term == r->newest_term && m->round <= r->newest_round)
		return;
	r->newest_term = m->term;
	r->newest_round = m->round;
}

static struct pair_end end_of(const struct relay_member *m) {
	struct pair_end e = {.member = m->number};
	memcpy(e.key, m->key, NET_KEY_BYTES);
	return e;
}

/* What forwarding takes beyond a good ticket. */
static struct relay_verdict judge_forwarding(struct relay_core *r, int64_t now_us, int caller, int peer) {
	int whose = relay_budget_left(r, &r->members[caller], now_us) == 0 ? RELAY_CALLER : 0;
	whose |= relay_budget_left(r, &r->members[peer], now_us) == 0 ? RELAY_CALLED : 0;
	if (whose == 0 && relay_budget_of_all_left(r, now_us) > 0)
		return (struct relay_verdict){0};
	return (struct relay_verdict){
		.why = RELAY_REFUSE_BUDGET, .whose = (uint8_t)whose, .wait_ms = relay_next_day_ms(r, now_us)};
}

/* Cheap reasons first. *peer: the called one's index, once it is known to be here. */
static struct relay_verdict judge(struct relay_core *r, int64_t now_us, int caller, const struct relay_call *m,
								  int *peer) {
	struct relay_member *from = &r->members[caller], *to = relay_find_member(r, m->peer);
	if (!gcra_take(&calls, &from->calls_until_us, now_us))
		return (struct relay_verdict){RELAY_REFUSE_RATE, RELAY_CALLER, (uint32_t)(calls.each_us / RV_US_PER_MS)};
	if (banned_has(&r->banned, m->peer))
		return (struct relay_verdict){.why = RELAY_REFUSE_BANNED, .whose = RELAY_CALLED};
	if (to == NULL)
		return (struct relay_verdict){.why = RELAY_REFUSE_ABSENT, .whose = RELAY_CALLED};
	if (is_stale(r, m))
		return (struct relay_verdict){.why = RELAY_REFUSE_STALE};
	const struct pair_end a = end_of(from), b = end_of(to);
	if (!pair_ticket_verify(run_trust_key(&r->trust), r->trust.run_id, m->term, m->round, &a, &b, m->ticket))
		return (struct relay_verdict){.why = RELAY_REFUSE_TICKET};
	note_newest(r, m);
	*peer = (int)(to - r->members);
	return m->way == WAY_FORWARD ? judge_forwarding(r, now_us, caller, *peer)
								 : relay_judge_opening(r, now_us, caller, *peer, m);
}

static void ring(struct relay_core *r, const struct relay_link *l, int end) {
	const struct relay_member *m = &r->members[l->member[end]], *peer = &r->members[l->member[!end]];
	struct relay_frame f = {.type = RELAY_RING, .ring = {.peer = peer->number}};
	memcpy(f.ring.token, l->token[RV_BUG("one-token-for-both") ? 0 : end], NET_TOKEN_BYTES);
	relay_send(r, m->station, &f);
}

static void make_call(struct relay_core *r, int64_t now_us, struct relay_link *l, int caller, int peer) {
	*l = (struct relay_link){.state = RELAY_WAITS,
							 .member = {caller, peer},
							 .connection = {RELAY_NONE, RELAY_NONE},
							 .deadline_us = now_us + NET_RELAY_TOKEN_MS * RV_US_PER_MS};
	r->cfg.random(r->cfg.ctx, l->token, sizeof l->token);
	r->totals.calls++;
	ring(r, l, 0);
	ring(r, l, 1);
}

static void refuse(struct relay_core *r, int connection, const struct relay_call *m, const struct relay_verdict *v) {
	const struct relay_refused refused = {
		.peer = m->peer, .way = m->way, .reason = (uint8_t)v->why, .whose = v->whose, .wait_ms = v->wait_ms};
	r->totals.refused[v->why]++;
	relay_send(r, connection, &(struct relay_frame){.type = RELAY_REFUSED, .refused = refused});
}

/* Makes the call, in place of an earlier one of the pair that waits. */
static struct relay_verdict forward(struct relay_core *r, int64_t now_us, int caller, int peer) {
	struct relay_link *l = find_pair(r, RELAY_WAITS, caller, peer);
	if (l != NULL && l->member[1] == caller && l->connection[1] == RELAY_NONE)
		return (struct relay_verdict){0}; /* both called at once: the RING that was sent to both is the answer */
	if (l != NULL)
		relay_end_link(r, l);
	l = find_free(r);
	if (l == NULL)
		return (struct relay_verdict){.why = RELAY_REFUSE_FULL, .wait_ms = NET_RELAY_TOKEN_MS};
	make_call(r, now_us, l, caller, peer);
	return (struct relay_verdict){0};
}

void relay_take_call(struct relay_core *r, int64_t now_us, int connection, const struct relay_call *m) {
	int caller = r->connections[connection].member, peer = RELAY_NONE;
	struct relay_verdict v = judge(r, now_us, caller, m, &peer);
	if (v.why == 0 && m->way == WAY_FORWARD)
		v = forward(r, now_us, caller, peer);
	else if (v.why == 0)
		relay_make_opening(r, now_us, caller, peer, m);
	if (v.why != 0)
		refuse(r, connection, m, &v);
}

/* ---- tokens ---- */

static struct relay_link *find_token(struct relay_core *r, const uint8_t token[NET_TOKEN_BYTES], int *end) {
	for (int i = 0; i < NET_RELAY_LINKS; i++)
		for (*end = 0; *end < 2; ++*end)
			if (r->links[i].state == RELAY_WAITS && r->links[i].connection[*end] == RELAY_NONE &&
				memcmp(r->links[i].token[*end], token, NET_TOKEN_BYTES) == 0)
				return &r->links[i];
	return NULL;
}

/* Joins the two ends, in place of an earlier link of the pair. */
static void join(struct relay_core *r, int64_t now_us, struct relay_link *l) {
	struct relay_link *former = find_pair(r, RELAY_JOINED, l->member[0], l->member[1]);
	if (former != NULL)
		relay_end_link(r, former);
	l->state = RELAY_JOINED;
	l->deadline_us = now_us + NET_RELAY_IDLE_MS * RV_US_PER_MS;
	for (int e = 0; e < 2; e++)
		r->connections[l->connection[e]].state = RELAY_JOINED;
	r->totals.links++;
	r->totals.links_now++;
	relay_act(r,
			  &(struct relay_action){.type = RELAY_SPLICE, .connection = l->connection[0], .other = l->connection[1]});
}

void relay_take_token(struct relay_core *r, int64_t now_us, int connection, const uint8_t token[NET_TOKEN_BYTES]) {
	struct relay_connection *k = &r->connections[connection];
	int end;
	struct relay_link *l = find_token(r, token, &end);
	if (l == NULL) {
		r->totals.strangers_closed++;
		relay_close(r, connection);
		return;
	}
	relay_settle(r, connection, RELAY_WAITS);
	k->member = l->member[end];
	k->link = (int)(l - r->links);
	l->connection[end] = connection;
	if (l->connection[!end] != RELAY_NONE)
		join(r, now_us, l);
}
