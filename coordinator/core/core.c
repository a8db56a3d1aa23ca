/* core.c: what comes in: joins, reports, bans, the time. Each ends in core_step(): decide, then
 * announce. */
#include "coordinator/core/core.h"

#include "base/assert.h"
#include "base/capped.h"
#include "base/chain.h"
#include "coordinator/core/internal.h"

#include <stddef.h>
#include <string.h>

/* Arrays begin where a struct may. */
static size_t rounded(size_t bytes) {
	return (bytes + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
}

size_t core_size(const struct core_config *cfg) {
	size_t bytes = rounded(sizeof(struct core));
#define ADD(type, name, n) bytes += rounded(sizeof(type) * (n));
	CORE_ARRAYS(ADD)
#undef ADD
	return bytes;
}

static void lay_out(struct core *c, const struct core_config *cfg) {
	char *at = (char *)c + rounded(sizeof *c);
#define PLACE(type, name, n)                                                                                           \
	c->name = (type *)(void *)at;                                                                                      \
	at += rounded(sizeof(type) * (n));
	CORE_ARRAYS(PLACE)
#undef PLACE
	RV_ASSERT((size_t)(at - (char *)c) == core_size(cfg));
	c->words = (int)CORE_WORDS_OF(cfg->max_here);
	c->roster_words = (int)CORE_WORDS_OF(cfg->max_roster);
}

uint32_t core_most_chunks(const struct core_config *cfg) {
	uint32_t most = 0;
	for (uint32_t i = 0; i < cfg->fragments || i == 0; i++)
		most = cfg->n_chunks[i] > most ? cfg->n_chunks[i] : most;
	return most;
}

struct rv_hash core_token_hash(const uint8_t run_id[NET_RUN_ID_BYTES], const uint8_t token[NET_TOKEN_BYTES]) {
	struct rv_hasher h = rv_hasher_of("rivulet token");
	rv_hash_update(&h, run_id, NET_RUN_ID_BYTES);
	rv_hash_update(&h, token, NET_TOKEN_BYTES);
	return rv_hash_final(&h);
}

struct core *core_init(void *memory, const struct core_config *cfg, int64_t now_us) {
	RV_ASSERT(cfg->max_here > 0 && cfg->max_here <= NET_MAX_HERE);
	RV_ASSERT(cfg->max_roster > 0 && cfg->max_roster <= NET_MAX_ROSTER && cfg->max_roster <= cfg->max_here);
	RV_ASSERT(cfg->final_round > 0 && cfg->min_workers > 0 && cfg->min_workers <= cfg->max_roster);
	RV_ASSERT(cfg->fragments <= NET_MAX_FRAGMENTS && cfg->round_tokens > 0);
	for (uint32_t i = 0; i < cfg->fragments || i == 0; i++)
		RV_ASSERT(cfg->n_chunks[i] > 0 && cfg->n_chunks[i] <= NET_MAX_CHUNKS);
	RV_ASSERT(cfg->chunk_bytes > 0 && cfg->withheld_us > 0);
	RV_ASSERT(cfg->grace_us >= 0 && cfg->liveness_us > 0 && cfg->silent_us > 0 && cfg->suspect_gather_us >= 0);
	struct core *c = memory;
	memset(c, 0, sizeof *c);
	lay_out(c, cfg);
	memset(c->slots.used, 0, core_size(cfg) - (size_t)((char *)c->slots.used - (char *)c));
	c->cfg = *cfg;
	c->n_relays = cfg->n_relays;
	memcpy(c->relays, cfg->relays, sizeof c->relays);
	c->now_us = now_us;
	c->chain = c->snapshot_chain = rv_chain_start(&cfg->run_hash);
	c->next_id = 1;
	c->lines_deadline_us = INT64_MAX;
	c->ready_since_us = c->accused_since_us = c->majority_us = c->not_held_since_us = c->still_since_us = INT64_MAX;
	c->reduce_since_us = c->attempt_since_us = now_us;
	c->parted = -1;
	RV_ASSERT(cfg->row_size <= NET_MAX_ROW && cfg->row_size != 1);
	c->arrivals = (struct core_arrivals){.since_us = INT64_MAX, .left_us = INT64_MAX, .counted_us = now_us};
	c->no_snapshot_said = UINT64_MAX;
	RV_ASSERT(cfg->audit_chunks <= NET_MAX_AUDITS && cfg->audit_window <= CORE_AUDIT_ROUNDS);
	c->audits.back_to = UINT64_MAX;
	core_leases_init(c);
	core_republish(c);
	return c;
}

const struct document *core_document(const struct core *c) {
	RV_ASSERT(!c->replaying);
	return &c->doc;
}

/* ---- events ---- */

static bool said_before(struct core *c, uint32_t slot, const struct core_event *ev) {
	struct core_event *last = &c->members[slot].said[ev->type];
	bool same = last->type == ev->type && last->round == ev->round && last->attempt == ev->attempt;
	*last = *ev;
	return same && ev->type != CORE_EVENT_ALIVE && ev->type != CORE_EVENT_DEAD && ev->type != CORE_EVENT_LEFT;
}

static void put_event(struct core *c, const struct core_event *ev) {
	RV_ASSERT(ev->type > 0 && ev->type < CORE_EVENT_COUNT);
	c->events[(c->events_first + c->n_events) % CORE_EVENTS] = *ev;
	if (c->n_events < CORE_EVENTS)
		c->n_events++;
	else
		c->events_first = (c->events_first + 1) % CORE_EVENTS;
}

void core_say(struct core *c, enum core_event_type type, uint32_t slot, uint64_t round) {
	core_say_of(c, type, slot, round, 0);
}

void core_say_of(struct core *c, enum core_event_type type, uint32_t slot, uint64_t round, uint32_t other) {
	struct core_event ev = {.type = (uint8_t)type, .member = core_number(c, slot), .round = round, .other = other};
	if (type == CORE_EVENT_SUSPECTED || type == CORE_EVENT_LOST || type == CORE_EVENT_DISAGREED ||
		type == CORE_EVENT_OVERDUE || type == CORE_EVENT_AT_ODDS)
		ev.attempt = c->attempt;
	if (!said_before(c, slot, &ev))
		put_event(c, &ev);
}

void core_say_all(struct core *c, enum core_event_type type, uint64_t round) {
	put_event(c, &(struct core_event){.type = (uint8_t)type, .member = NET_NO_MEMBER, .round = round});
}

void core_say_pair(struct core *c, uint32_t slot, uint32_t other) {
	struct core_event ev = {.type = CORE_EVENT_APART,
							.member = core_number(c, slot),
							.round = c->round,
							.attempt = c->attempt,
							.other = core_number(c, other)};
	RV_ASSERT(ev.other < ev.member); /* the higher number is left out */
	put_event(c, &ev);
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

enum rv_err core_check_join(const struct core *c, const struct join_request *rq, struct rv_errtext *et) {
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

/* Makes sure that one member more finds a slot, if need be that of an idle one. */
static enum rv_err make_room(struct core *c, const char *doing, struct rv_errtext *et) {
	if (!core_has_queue_room(c, 2))
		return rv_fail(et, RV_E_BUSY, "%s: %d records wait for the coordinator's disk: try again later", doing,
					   c->n_queue);
	if (c->slots.n + core_count_pending_slots(c) < (int)c->cfg.max_here)
		return RV_OK;
	int idle = core_slots_find_idle(c);
	if (idle < 0)
		return rv_fail(et, RV_E_FULL,
					   "%s: %u members are here, the most that this coordinator has room for at a time: try again when "
					   "some have left",
					   doing, c->cfg.max_here);
	struct core_facts f;
	core_facts_of(c, (uint32_t)idle, &f);
	core_push_facts(c, CORE_AWAY, &f);
	return RV_OK;
}

static enum rv_err admit(struct core *c, const uint8_t key[NET_KEY_BYTES], const struct join_request *rq, bool token_ok,
						 uint32_t *member, struct rv_errtext *et) {
	if (!rq->has_token || !token_ok)
		return rv_fail(et, RV_E_AUTH, "join: this key is no member, and no invite admits it");
	struct rv_hash token = core_token_hash(c->cfg.run_id, rq->token);
	uint32_t number = c->slots.next_number + core_count_pending_joins(c);
	if (number == NET_NO_MEMBER)
		return rv_fail(et, RV_E_FULL, "join: all %u member numbers of this run are given", number);
	RV_TRY(make_room(c, "join", et));
	struct core_facts f = {.number = number, .token_hash = token};
	memcpy(f.key, key, sizeof f.key);
	memcpy(f.name, rq->name, sizeof f.name);
	core_push_facts(c, CORE_MEMBER, &f);
	*member = number;
	return RV_OK;
}

enum rv_err core_join(struct core *c, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const struct join_request *rq,
					  bool token_ok, uint32_t *member, struct rv_errtext *et) {
	RV_TRY(core_check_join(c, rq, et));
	int slot = core_find_key(c, key);
	const struct core_facts *pending = slot < 0 ? core_find_pending(c, key) : NULL;
	if (slot >= 0 && c->members[slot].banned)
		return rv_fail(et, RV_E_AUTH,
					   "join: member %u is banned from this run: ask its operator to take that back (`unban %u`), then "
					   "start again",
					   c->members[slot].number, c->members[slot].number);
	if (slot >= 0 || pending != NULL) { /* nothing follows: a member may ask as often as it likes */
		*member = slot >= 0 ? c->members[slot].number : pending->number;
		return RV_OK;
	}
	RV_TRY(admit(c, key, rq, token_ok, member, et));
	RV_ASSERT(*member < c->slots.next_number + core_count_pending_joins(c));
	core_step(c, now_us);
	return RV_OK;
}

enum rv_err core_return(struct core *c, int64_t now_us, const struct core_record *away, struct rv_errtext *et) {
	if (core_find_key(c, away->key) >= 0 || core_find_pending(c, away->key) != NULL)
		return RV_OK; /* it is in memory, or on its way */
	if (away->type != CORE_AWAY || away->member >= c->slots.next_number || core_find(c, away->member) >= 0)
		return rv_fail(et, RV_E_CORRUPT, "record %llu is the last of member %u, which is not in memory, and not AWAY",
					   (unsigned long long)away->id, away->member);
	RV_TRY(make_room(c, "a member returns", et));
	struct core_facts f;
	core_facts_of_record(away, &f);
	core_push_facts(c, CORE_MEMBER, &f);
	core_step(c, now_us);
	return RV_OK;
}

enum rv_err core_ban(struct core *c, int64_t now_us, uint32_t member, bool banned, struct rv_errtext *et) {
	uint32_t given = c->slots.next_number;
	if (given == 0)
		return rv_fail(et, RV_E_NOTFOUND, "member %u: nobody has joined this run yet", member);
	if (member >= given)
		return rv_fail(et, RV_E_NOTFOUND, "member %u: there are members 0 to %u", member, given - 1);
	int slot = core_find(c, member);
	if (slot < 0 || core_is_leaving(c, (uint32_t)slot))
		return rv_fail(et, RV_E_BUSY, "member %u is away: it must return before that is decided: try again", member);
	if (banned && !c->members[slot].banned && !c->members[slot].want_banned && !core_has_ban_room(c))
		return rv_fail(et, RV_E_FULL, "member %u: %d members are banned, the most there can be: unban one first",
					   member, (int)NET_MAX_BANNED);
	c->members[slot].want_banned = banned;
	core_step(c, now_us);
	return RV_OK;
}

/* ---- reports ---- */

static void say_what_is_wrong(struct core *c, uint32_t slot) {
	const struct core_member *m = &c->members[slot];
	if (!core_right_size(c, m))
		core_say(c, CORE_EVENT_WRONG_SIZE, slot, c->round);
	if (m->last.term < c->term)
		return; /* it does not know of the rollback yet */
	if (m->last.term > c->term || m->last.round > c->round)
		core_say(c, CORE_EVENT_AHEAD, slot, c->round);
	else if (m->last.round == c->round && m->last.phase != WORKER_SYNCING && m->last.phase != WORKER_LEAVING &&
			 !rv_hash_equal(&m->last.chain, &c->chain))
		core_say(c, CORE_EVENT_WRONG_CHAIN, slot, c->round);
	else if (core_spoiled(c, m))
		core_say(c, CORE_EVENT_SPOILED, slot, c->round);
	else if (core_contributes(c, m) && !core_lease_covers(c, m))
		core_say(c, CORE_EVENT_LEASE, slot, c->round);
}

uint64_t core_tokens_with(const struct core *c, uint64_t missed) {
	return rv_add_capped(c->cfg.round_tokens, rv_mul_capped(missed, c->cfg.missed_tokens));
}

uint64_t core_most_tokens(const struct core *c) {
	return core_tokens_with(c, CORE_MISSED_MAX);
}

/* Logs a member that cannot have trained that much since the run began: a worker that others leave
 * out repeatedly may have kept more than counts. */
static void bound_tokens(struct core *c, uint32_t slot) {
	struct report *last = &c->members[slot].last;
	if (last->tokens > core_tokens_with(c, c->round + 1))
		core_say(c, CORE_EVENT_TOKENS, slot, c->round);
	last->tokens = last->tokens < core_most_tokens(c) ? last->tokens : core_most_tokens(c);
	const uint64_t read = rv_mul_capped(last->lease_count, c->cfg.lease_tokens);
	if (core_has_leases(c) && last->phase >= WORKER_READY && last->tokens > read)
		last->tokens = read;
}

static struct core_places places_of(const struct report *rep) {
	struct core_places p = {.n = rep->n_candidates};
	for (int i = 0; i < p.n; i++) {
		p.at[i].kind = rep->candidates[i].kind;
		memcpy(p.at[i].addr, rep->candidates[i].addr, sizeof p.at[i].addr);
	}
	return p;
}

static void find_apart(const struct report *rep, uint64_t *places) {
	set_clear(places, SET_WORDS(NET_MAX_PEERS));
	for (uint32_t i = 0; i < rep->n_paths; i++)
		if (rep->paths[i].path == PATH_APART)
			set_add(places, i);
}

enum rv_err core_take_report(struct core *c, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const struct report *rep,
							 struct rv_errtext *et) {
	int slot = core_find_key(c, key);
	if (slot < 0)
		return rv_fail(et, RV_E_AUTH, "report: the sender's key is not a member's: join first");
	struct core_member *m = &c->members[slot];
	if (m->banned)
		return rv_fail(
			et, RV_E_AUTH,
			"report: member %u is banned from this run: ask its operator to take that back (`unban %u`), then start "
			"again",
			m->number, m->number);
	RV_ASSERT(rep->n_candidates > 0 && rep->candidates[0].addr[0] != ':'); /* the platform has filled in the host */
	if (core_is_stale(c, m, rep, now_us))
		return core_stale_report(c, (uint32_t)slot, rep, now_us, et);
	RV_ASSERT(!m->reported || rep->boot != m->last.boot || rep->seq > m->last.seq); /* seq never goes back */
	RV_TRY(core_check_signed(c, m, rep, et));
	if (!m->reported)
		core_views_touch(c, (uint32_t)slot);
	core_follow(m, rep);
	core_note_back(c, m, rep->boot);
	core_note_arrival(c, m, rep, now_us);
	m->last = *rep;
	bound_tokens(c, (uint32_t)slot);
	m->heard_us = m->told_us = now_us;
	c->taken_us = now_us > c->taken_us ? now_us : c->taken_us;
	m->reported = true;
	m->awaited = m->distrusted = false;
	m->want_places = places_of(rep);
	find_apart(rep, m->apart);
	core_note_signed(c, (uint32_t)slot);
	say_what_is_wrong(c, (uint32_t)slot);
	int place = core_place(c, core_slot_of(c, m)); /* votes count from the roster only */
	if (place >= 0)
		core_take_vote(c, (uint32_t)place);
	core_take_verdicts(c, (uint32_t)slot);
	core_take_scores(c, (uint32_t)slot);
	return RV_OK;
}

enum rv_err core_report(struct core *c, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const struct report *rep,
						struct rv_errtext *et) {
	RV_TRY(core_take_report(c, now_us, key, rep, et));
	core_step(c, now_us);
	return RV_OK;
}

/* ---- time ---- */

static bool wants_to_move(const struct core_member *m) {
	return !core_same_places(&m->places, &m->want_places);
}

/* Decides on members whose durable facts are out of date; the rest of them when these are durable,
 * if they are many. */
static void record_members(struct core *c) {
	for (int k = 0; k < c->slots.n && core_has_queue_room(c, 1); k++) {
		uint32_t slot = c->slots.order[k];
		struct core_member *m = &c->members[slot];
		bool moves = wants_to_move(m) && c->now_us >= core_moves_at(m);
		if (!moves && m->banned == m->want_banned && !core_reputation_is_due(m))
			continue;
		struct core_facts f;
		if (moves)
			core_count_move(m, c->now_us);
		core_facts_of(c, slot, &f);
		f.places = moves ? m->want_places : m->places;
		f.banned = m->want_banned;
		f.reputation = core_struck(c, m);
		core_push_facts(c, CORE_MEMBER, &f);
	}
}

/* Makes one decision at a time: its grounds must not change before it is durable. */
static void decide(struct core *c) {
	RV_ASSERT(c->roster.n == 0 || c->round < c->cfg.final_round);
	if (c->n_queue == 0)
		core_decide_two_roots(c);
	if (c->n_queue == 0)
		core_decide_audits(c);
	if (c->n_queue == 0)
		core_decide_scores(c);
	if (c->n_queue == 0)
		record_members(c);
	if (c->n_queue == 0)
		core_decide_leases(c);
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
	RV_ASSERT(!c->replaying);
	core_forgive_own_absence(c, now_us);
	c->now_us = now_us;
	core_watch_liveness(c);
	core_follow_stations(c);
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

/* Returns the earliest time after now at which something about a member changes by itself. */
static int64_t member_deadline_us(const struct core *c) {
	int64_t at = INT64_MAX;
	for (int k = 0; k < c->slots.n; k++) {
		const struct core_member *m = &c->members[c->slots.order[k]];
		if (core_alive(c, m))
			at = earlier(c, at, m->heard_us, c->cfg.liveness_us);
		if (wants_to_move(m))
			at = earlier(c, at, core_moves_at(m), 0);
		if (core_station_moved(m))
			at = earlier(c, at, core_station_moves_at(m), 0);
		if (c->ready_since_us != INT64_MAX)
			at = earlier(c, at, core_silent_at(c, m), 0);
	}
	return at;
}

int64_t core_deadline_us(const struct core *c) {
	int64_t at = member_deadline_us(c);
	at = earlier(c, at, c->ready_since_us, c->cfg.grace_us);
	at = earlier(c, at, core_arrival_deadline_us(c), 0);
	at = earlier(c, at, c->roster.n == 0 ? core_reopened_until_us(c) : core_overdue_at_us(c), 0);
	at = earlier(c, at, core_majority_waits_until_us(c), 0);
	at = earlier(c, at, core_lists_at_us(c), 0);
	at = earlier(c, at, core_dispute_until_us(c), 0);
	at = earlier(c, at, c->not_held_since_us, c->cfg.liveness_us);
	at = earlier(c, at, c->still_since_us, core_standstill_us(c));
	at = earlier(c, at, c->accused_since_us, core_unclear_us(c));
	at = c->accused_since_us == INT64_MAX ? at : earlier(c, at, c->unclear_until_us, 0);
	return earlier(c, at, c->accused_since_us, c->gather_us);
}

/* ---- for people ---- */

struct core_member_view core_view(const struct core *c, uint32_t slot) {
	const struct core_member *m = &c->members[slot];
	return (struct core_member_view){.slot = slot,
									 .place = core_place(c, slot),
									 .row = core_last_row(c, slot),
									 .member = core_number(c, slot),
									 .key = m->key,
									 .name = m->name,
									 .alive = m->reported && core_alive(c, m) && m->last.phase != WORKER_LEAVING,
									 .banned = m->banned,
									 .last_report_us = m->reported ? m->heard_us : 0,
									 .last = &m->last,
									 .owned_chunks = c->owned[slot],
									 .all_chunks = c->owned_of,
									 .slow = core_slow_of(c, m),
									 .reputation = m->reputation};
}

bool core_apart(const struct core *c, uint32_t slot, uint64_t apart[CORE_HERE_WORDS]) {
	uint64_t until;
	return core_apart_from(c, slot, apart, &until) > 0 && core_left_out_apart(c, slot);
}
