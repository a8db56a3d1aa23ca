/* core.c: what comes in: joins, reports, bans, the time. Each ends in core_step(): decide, then
 * announce. */
#include "coordinator/core/core.h"

#include "base/assert.h"
#include "base/capped.h"
#include "base/chain.h"
#include "coordinator/core/internal.h"

#include <string.h>

size_t core_size(void) {
	return sizeof(struct core);
}

struct rv_hash core_token_hash(const uint8_t run_id[NET_RUN_ID_BYTES], const uint8_t token[NET_TOKEN_BYTES]) {
	struct rv_hasher h = rv_hasher_of("rivulet token");
	rv_hash_update(&h, run_id, NET_RUN_ID_BYTES);
	rv_hash_update(&h, token, NET_TOKEN_BYTES);
	return rv_hash_final(&h);
}

struct core *core_init(void *memory, const struct core_config *cfg, int64_t now_us) {
	RV_ASSERT(cfg->final_round > 0 && cfg->min_workers > 0 && cfg->min_workers <= NET_MAX_MEMBERS);
	RV_ASSERT(cfg->fragments <= NET_MAX_FRAGMENTS && cfg->round_tokens > 0);
	for (uint32_t i = 0; i < cfg->fragments || i == 0; i++)
		RV_ASSERT(cfg->n_chunks[i] > 0 && cfg->n_chunks[i] <= NET_MAX_CHUNKS);
	RV_ASSERT(cfg->chunk_bytes > 0 && cfg->withheld_us > 0);
	RV_ASSERT(cfg->grace_us >= 0 && cfg->liveness_us > 0 && cfg->silent_us > 0 && cfg->suspect_gather_us >= 0);
	struct core *c = memory;
	memset(c, 0, sizeof *c);
	c->cfg = *cfg;
	c->n_relays = cfg->n_relays;
	memcpy(c->relays, cfg->relays, sizeof c->relays);
	c->now_us = now_us;
	c->chain = c->snapshot_chain = rv_chain_start(&cfg->run_hash);
	c->next_id = 1;
	c->ready_since_us = c->accused_since_us = c->not_held_since_us = c->still_since_us = INT64_MAX;
	c->reduce_since_us = c->attempt_since_us = now_us;
	c->parted = NET_MAX_MEMBERS;
	c->arrivals = (struct core_arrivals){.since_us = INT64_MAX, .left_us = INT64_MAX, .counted_us = now_us};
	c->no_snapshot_said = UINT64_MAX;
	core_republish(c);
	return c;
}

const struct document *core_document(const struct core *c) {
	return &c->doc;
}

/* ---- events ---- */

static bool said_before(struct core *c, const struct core_event *ev) {
	bool repeats = ev->type == CORE_EVENT_ALIVE || ev->type == CORE_EVENT_DEAD || ev->type == CORE_EVENT_LEFT;
	if (ev->member >= NET_MAX_MEMBERS || repeats)
		return false;
	struct core_event *last = &c->members[ev->member].said[ev->type];
	bool same = last->type == ev->type && last->round == ev->round && last->attempt == ev->attempt;
	*last = *ev;
	return same;
}

static void put_event(struct core *c, const struct core_event *ev) {
	RV_ASSERT(ev->type > 0 && ev->type < CORE_EVENT_COUNT && ev->member <= NET_MAX_MEMBERS);
	c->events[(c->events_first + c->n_events) % CORE_EVENTS] = *ev;
	if (c->n_events < CORE_EVENTS)
		c->n_events++;
	else
		c->events_first = (c->events_first + 1) % CORE_EVENTS;
}

void core_say(struct core *c, enum core_event_type type, uint32_t member, uint64_t round) {
	RV_ASSERT(member < (uint32_t)c->n_members || member == NET_MAX_MEMBERS);
	struct core_event ev = {.type = (uint8_t)type, .member = member, .round = round};
	if (type == CORE_EVENT_SUSPECTED || type == CORE_EVENT_LOST || type == CORE_EVENT_DISAGREED ||
		type == CORE_EVENT_OVERDUE)
		ev.attempt = c->attempt;
	if (!said_before(c, &ev))
		put_event(c, &ev);
}

void core_say_pair(struct core *c, uint32_t member, uint32_t other) {
	RV_ASSERT(other < member && member < (uint32_t)c->n_members); /* the higher number is left out */
	put_event(
		c, &(struct core_event){
			   .type = CORE_EVENT_APART, .member = member, .round = c->round, .attempt = c->attempt, .other = other});
}

bool core_next_event(struct core *c, struct core_event *out) {
	if (c->n_events == 0)
		return false;
	*out = c->events[c->events_first];
	c->events_first = (c->events_first + 1) % CORE_EVENTS;
	c->n_events--;
	return true;
}

/* ---- joins and bans ---- */

static bool token_spent(const struct core *c, const struct rv_hash *hash) {
	for (int i = 0; i < c->n_members; i++)
		if (rv_hash_equal(&c->members[i].token_hash, hash))
			return true;
	for (int i = 0; i < c->n_queue; i++)
		if (c->queue[i].type == CORE_MEMBER && rv_hash_equal(&c->queue[i].token_hash, hash))
			return true;
	return false;
}

static enum rv_err check_join(const struct core *c, const struct join_request *rq, struct rv_errtext *et) {
	uint32_t version = control_version_common(rq->protocol_min, rq->protocol);
	bool worker_is_old = rq->protocol < CONTROL_VERSION_MIN;
	if (version == 0)
		return rv_fail(
			et, RV_E_PROTOCOL,
			"join: this worker (%s) speaks versions %u to %u of the protocol, this coordinator (rivulet %s) %d "
			"to %u: update the %s",
			rq->software[0] ? rq->software : "unknown software", rq->protocol_min, rq->protocol, RV_VERSION,
			(int)CONTROL_VERSION_MIN, control_version(), worker_is_old ? "worker" : "coordinator");
	if (memcmp(rq->run_id, c->cfg.run_id, NET_RUN_ID_BYTES) != 0)
		return rv_fail(et, RV_E_PROTOCOL, "join: for another run than this coordinator's");
	return RV_OK;
}

static int count_banned(const struct core *c) {
	int n = 0;
	for (int i = 0; i < c->n_members; i++)
		n += c->members[i].banned;
	return n;
}

static enum rv_err admit(struct core *c, const uint8_t key[NET_KEY_BYTES], const struct join_request *rq, bool token_ok,
						 uint32_t *member, struct rv_errtext *et) {
	if (!rq->has_token || !token_ok)
		return rv_fail(et, RV_E_AUTH,
					   "join: this key is no member, and its token is %s: ask the operator for a new invite link",
					   rq->has_token ? "unknown, spent or expired" : "missing");
	struct rv_hash token = core_token_hash(c->cfg.run_id, rq->token);
	if (token_spent(c, &token))
		return rv_fail(et, RV_E_AUTH, "join: the token is spent: ask the operator for a new invite link");
	int number = c->n_members + core_count_pending_joins(c);
	if (number >= NET_MAX_MEMBERS)
		return rv_fail(et, RV_E_FULL,
					   "join: the run has had %d members, the most there can be; %d of them are banned, whose numbers "
					   "are not given again",
					   (int)NET_MAX_MEMBERS, count_banned(c));
	RV_ASSERT(core_find_member(c, key) < 0 && core_find_pending(c, key) < 0);
	struct core_record *rec = core_push(c, CORE_MEMBER);
	rec->member = *member = (uint32_t)number;
	memcpy(rec->key, key, sizeof rec->key);
	memcpy(rec->name, rq->name, sizeof rec->name);
	rec->token_hash = token;
	return RV_OK;
}

enum rv_err core_join(struct core *c, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const struct join_request *rq,
					  bool token_ok, uint32_t *member, struct rv_errtext *et) {
	RV_TRY(check_join(c, rq, et));
	int known = core_find_member(c, key);
	if (known >= 0 && c->members[known].banned)
		return rv_fail(et, RV_E_AUTH,
					   "join: member %d is banned from this run: ask its operator to take that back (`unban %d`), then "
					   "start again",
					   known, known);
	if (known < 0)
		known = core_find_pending(c, key);
	if (known >= 0)
		*member = (uint32_t)known;
	else
		RV_TRY(admit(c, key, rq, token_ok, member, et));
	RV_ASSERT(*member < (uint32_t)(c->n_members + core_count_pending_joins(c)));
	core_step(c, now_us);
	return RV_OK;
}

enum rv_err core_ban(struct core *c, int64_t now_us, uint32_t member, bool banned, struct rv_errtext *et) {
	if (c->n_members == 0)
		return rv_fail(et, RV_E_NOTFOUND, "member %u: nobody has joined this run yet", member);
	if (member >= (uint32_t)c->n_members)
		return rv_fail(et, RV_E_NOTFOUND, "member %u: there are members 0 to %d", member, c->n_members - 1);
	c->members[member].want_banned = banned;
	core_step(c, now_us);
	return RV_OK;
}

/* ---- reports ---- */

static void say_what_is_wrong(struct core *c, uint32_t member) {
	const struct core_member *m = &c->members[member];
	if (!core_right_size(c, m))
		core_say(c, CORE_EVENT_WRONG_SIZE, member, c->round);
	if (m->last.term < c->term)
		return; /* it does not know of the rollback yet */
	if (m->last.term > c->term || m->last.round > c->round)
		core_say(c, CORE_EVENT_AHEAD, member, c->round);
	else if (m->last.round == c->round && m->last.phase != WORKER_SYNCING && m->last.phase != WORKER_LEAVING &&
			 !rv_hash_equal(&m->last.chain, &c->chain))
		core_say(c, CORE_EVENT_WRONG_CHAIN, member, c->round);
	else if (core_spoiled(c, m))
		core_say(c, CORE_EVENT_SPOILED, member, c->round);
}

static uint64_t tokens_with(const struct core *c, uint64_t missed) {
	return rv_add_capped(c->cfg.round_tokens, rv_mul_capped(missed, c->cfg.missed_tokens));
}

uint64_t core_most_tokens(const struct core *c) {
	return tokens_with(c, CORE_MISSED_MAX);
}

/* Logs a member that cannot have trained that much since the run began: a worker that others leave
 * out repeatedly may have kept more than counts. */
static void bound_tokens(struct core *c, uint32_t member) {
	struct report *last = &c->members[member].last;
	if (last->tokens > tokens_with(c, c->round + 1))
		core_say(c, CORE_EVENT_TOKENS, member, c->round);
	last->tokens = last->tokens < core_most_tokens(c) ? last->tokens : core_most_tokens(c);
}

static int roster_index(const struct core *c, uint32_t member) {
	for (int i = 0; i < c->roster.n; i++)
		if (c->roster.members[i] == member)
			return i;
	return -1;
}

static struct core_places places_of(const struct report *rep) {
	struct core_places p = {.n = rep->n_candidates};
	for (int i = 0; i < p.n; i++) {
		p.at[i].kind = rep->candidates[i].kind;
		memcpy(p.at[i].addr, rep->candidates[i].addr, sizeof p.at[i].addr);
	}
	return p;
}

enum rv_err core_report(struct core *c, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const struct report *rep,
						struct rv_errtext *et) {
	int member = core_find_member(c, key);
	if (member < 0)
		return rv_fail(et, RV_E_AUTH, "report: the sender's key is not a member's: join first");
	struct core_member *m = &c->members[member];
	if (m->banned)
		return rv_fail(
			et, RV_E_AUTH,
			"report: member %d is banned from this run: ask its operator to take that back (`unban %d`), then start "
			"again",
			member, member);
	RV_ASSERT(rep->n_candidates > 0 && rep->candidates[0].addr[0] != ':'); /* the platform has filled in the host */
	if (core_is_stale(c, m, rep, now_us))
		return core_stale_report(c, (uint32_t)member, rep, now_us, et);
	RV_ASSERT(!m->reported || rep->boot != m->last.boot || rep->seq > m->last.seq); /* seq never goes back */
	core_follow(m, rep);
	core_note_arrival(c, m, rep, now_us);
	m->last = *rep;
	bound_tokens(c, (uint32_t)member);
	m->heard_us = m->told_us = now_us;
	m->reported = true;
	m->awaited = m->distrusted = false;
	m->want_places = places_of(rep);
	say_what_is_wrong(c, (uint32_t)member);
	int index = roster_index(c, (uint32_t)member); /* votes count from the roster only */
	if (index >= 0)
		core_take_vote(c, (uint32_t)index);
	core_step(c, now_us);
	return RV_OK;
}

/* ---- time ---- */

static bool wants_to_move(const struct core_member *m) {
	return !core_same_places(&m->places, &m->want_places);
}

/* Decides on members whose durable facts are out of date. */
static void record_members(struct core *c) {
	for (int i = 0; i < c->n_members; i++) {
		struct core_member *m = &c->members[i];
		bool moves = wants_to_move(m) && c->now_us >= core_moves_at(m);
		if (!moves && m->banned == m->want_banned)
			continue;
		if (moves)
			core_count_move(m, c->now_us);
		struct core_record *rec = core_push(c, CORE_MEMBER);
		rec->member = (uint32_t)i;
		memcpy(rec->key, m->key, sizeof rec->key);
		memcpy(rec->name, m->name, sizeof rec->name);
		const struct core_places *places = moves ? &m->want_places : &m->places;
		rec->n_candidates = places->n;
		memcpy(rec->candidates, places->at, sizeof rec->candidates);
		rec->banned = m->want_banned;
		rec->token_hash = m->token_hash;
	}
}

/* Makes one decision at a time: its grounds must not change before it is durable. */
static void decide(struct core *c) {
	RV_ASSERT(c->roster.n == 0 || c->round < c->cfg.final_round);
	if (c->n_queue == 0)
		record_members(c);
	if (c->n_queue == 0)
		core_decide_snapshot(c);
	if (c->n_queue > 0 || c->round == c->cfg.final_round)
		return;
	if (c->roster.n == 0) {
		core_decide_roster(c);
		return;
	}
	core_weigh_suspects(c);
	core_decide_reduce(c);
	RV_ASSERT(c->n_queue <= 1);
}

void core_step(struct core *c, int64_t now_us) {
	core_forgive_own_absence(c, now_us);
	c->now_us = now_us;
	core_watch_liveness(c);
	core_watch_state(c);
	core_watch_standstill(c);
	decide(c);
	core_apply_ahead(c);
	core_publish(c);
	core_check(c);
}

void core_tick(struct core *c, int64_t now_us) {
	core_step(c, now_us);
}

/* Returns since_us + after_us if that is ahead and earlier than `best`, else `best`. */
static int64_t earlier(const struct core *c, int64_t best, int64_t since_us, int64_t after_us) {
	if (since_us > INT64_MAX - after_us)
		return best;
	RV_ASSERT(best > c->now_us);
	int64_t at = since_us + after_us;
	return at > c->now_us && at < best ? at : best;
}

int64_t core_deadline_us(const struct core *c) {
	int64_t at = INT64_MAX;
	for (int i = 0; i < c->n_members; i++)
		if (core_alive(c, &c->members[i]))
			at = earlier(c, at, c->members[i].heard_us, c->cfg.liveness_us);
	for (int i = 0; i < c->n_members; i++)
		if (wants_to_move(&c->members[i]))
			at = earlier(c, at, core_moves_at(&c->members[i]), 0);
	for (int i = 0; i < c->n_members && c->ready_since_us != INT64_MAX; i++)
		at = earlier(c, at, core_silent_at(c, &c->members[i]), 0);
	at = earlier(c, at, c->ready_since_us, c->cfg.grace_us);
	at = earlier(c, at, core_arrival_deadline_us(c), 0);
	at = earlier(c, at, c->roster.n == 0 ? core_reopened_until_us(c) : core_overdue_at_us(c), 0);
	at = earlier(c, at, c->not_held_since_us, c->cfg.liveness_us);
	at = earlier(c, at, c->still_since_us, core_standstill_us(c));
	at = earlier(c, at, c->accused_since_us, core_unclear_us(c));
	return earlier(c, at, c->accused_since_us, c->gather_us);
}

bool core_bans(const struct core *c, uint32_t member) {
	return member < (uint32_t)c->n_members && c->members[member].banned;
}

/* ---- for people ---- */

int core_members(const struct core *c, struct core_member_view out[NET_MAX_MEMBERS]) {
	for (int i = 0; i < c->n_members; i++) {
		const struct core_member *m = &c->members[i];
		struct core_member_view *v = &out[i];
		*v = (struct core_member_view){.member = (uint32_t)i,
									   .alive = m->reported && core_alive(c, m) && m->last.phase != WORKER_LEAVING,
									   .banned = m->banned,
									   .last_report_us = m->reported ? m->heard_us : 0,
									   .last = m->last,
									   .owned_chunks = c->owned[i],
									   .all_chunks = c->owned_of};
		uint64_t until;
		v->apart = core_apart_from(c, (uint32_t)i, &until);
		v->left_out = v->apart != 0 && core_left_out_apart(c, (uint32_t)i);
		memcpy(v->key, m->key, sizeof v->key);
		memcpy(v->name, m->name, sizeof v->name);
	}
	return c->n_members;
}
