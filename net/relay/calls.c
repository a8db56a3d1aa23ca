/* calls.c: calls: from a pair ticket to two tokens, from two tokens to a link. */
#include "base/assert.h"
#include "base/clock.h"
#include "net/identity.h"
#include "net/relay/state.h"

#include <string.h>

enum { CALL_EACH_US = RV_US_PER_S };

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

/* Returns 0, or why the call cannot be made; cheap reasons first. *wait_ms: until it may be. */
static enum relay_refusal refusal(struct relay_core *r, int64_t now_us, struct relay_member *caller,
								  const struct relay_call *m, uint32_t *wait_ms) {
	*wait_ms = CALL_EACH_US / RV_US_PER_MS;
	if (!relay_paced(&caller->calls_until_us, now_us, CALL_EACH_US, NET_RELAY_CALLS_BURST))
		return RELAY_REFUSE_RATE;
	*wait_ms = 0;
	if (m->way != WAY_FORWARD)
		return RELAY_REFUSE_UNMAPPED;
	if ((r->banned >> m->peer & 1) != 0)
		return RELAY_REFUSE_BANNED;
	struct relay_member *peer = relay_find_member(r, m->peer);
	if (peer == NULL)
		return RELAY_REFUSE_ABSENT;
	if (is_stale(r, m))
		return RELAY_REFUSE_STALE;
	const struct pair_end a = end_of(caller), b = end_of(peer);
	if (!pair_ticket_verify(r->cfg.run_key, r->run_id, m->term, m->round, &a, &b, m->ticket))
		return RELAY_REFUSE_TICKET;
	note_newest(r, m);
	if (relay_budget_left(r, caller, now_us) == 0 || relay_budget_left(r, peer, now_us) == 0) {
		*wait_ms = relay_next_day_ms(r, now_us);
		return RELAY_REFUSE_BUDGET;
	}
	return 0;
}

static void ring(struct relay_core *r, const struct relay_link *l, int end) {
	const struct relay_member *m = &r->members[l->member[end]], *peer = &r->members[l->member[!end]];
	struct relay_frame f = {.type = RELAY_RING, .ring = {.peer = peer->number}};
	memcpy(f.ring.token, l->token[end], NET_TOKEN_BYTES);
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

static void refuse(struct relay_core *r, int connection, const struct relay_call *m, enum relay_refusal why,
				   uint32_t wait_ms) {
	r->totals.refused[why]++;
	const struct relay_refused refused = {.peer = m->peer, .way = m->way, .reason = (uint8_t)why, .wait_ms = wait_ms};
	relay_send(r, connection, &(struct relay_frame){.type = RELAY_REFUSED, .refused = refused});
}

void relay_take_call(struct relay_core *r, int64_t now_us, int connection, const struct relay_call *m) {
	int caller = r->connections[connection].member;
	uint32_t wait_ms;
	enum relay_refusal why = refusal(r, now_us, &r->members[caller], m, &wait_ms);
	if (why != 0) {
		refuse(r, connection, m, why, wait_ms);
		return;
	}
	int peer = (int)(relay_find_member(r, m->peer) - r->members);
	struct relay_link *l = find_pair(r, RELAY_WAITS, caller, peer);
	if (l != NULL && l->member[1] == caller && l->connection[1] == RELAY_NONE)
		return; /* both called at once: the RING that was sent to both is the answer */
	if (l != NULL)
		relay_end_link(r, l);
	l = find_free(r);
	if (l != NULL)
		make_call(r, now_us, l, caller, peer);
	else
		refuse(r, connection, m, RELAY_REFUSE_FULL, NET_RELAY_TOKEN_MS);
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
