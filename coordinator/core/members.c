/* members.c: the state of the members, from their last reports and the time. */
#include "base/assert.h"
#include "base/clock.h"
#include "base/gcra.h"
#include "base/planted.h"
#include "coordinator/core/internal.h"

#include <string.h>

enum { HUNG_UP_SHARE = 4 }; /* of silent_us, for a new connection of one whose last was closed */

int core_members_that(const struct core *c, core_is *is, uint64_t *out) {
	int n = 0;
	set_clear(out, c->words);
	for (int k = 0; k < c->slots.n; k++) {
		uint32_t slot = c->slots.order[k];
		if (!is(c, &c->members[slot]))
			continue;
		set_add(out, slot);
		n++;
	}
	return n;
}

int core_participants_that(const struct core *c, core_is *is, uint64_t *out) {
	int n = 0;
	set_clear(out, c->roster_words);
	for (uint32_t i = 0; i < c->roster.n; i++) {
		if (!is(c, core_participant(c, i)))
			continue;
		set_add(out, i);
		n++;
	}
	return n;
}

int core_count_that(const struct core *c, core_is *is) {
	int n = 0;
	for (int k = 0; k < c->slots.n; k++)
		n += is(c, &c->members[c->slots.order[k]]);
	return n;
}

bool core_are_that(const struct core *c, core_is *is, int many) {
	for (int k = 0; k < c->slots.n && many > 0; k++)
		many -= is(c, &c->members[c->slots.order[k]]);
	return many <= 0;
}

bool core_alive(const struct core *c, const struct core_member *m) {
	return (m->reported || m->awaited) && !m->distrusted && c->now_us - m->heard_us < c->cfg.liveness_us;
}

bool core_available(const struct core *c, const struct core_member *m) {
	return core_alive(c, m) && !m->banned && !(m->reported && m->last.phase == WORKER_LEAVING);
}

bool core_stores(const struct core_member *m) {
	return !m->reported || !(m->last.storage & REPORT_STORAGE_ROUNDS);
}

static bool is_able(const struct core *c, const struct core_member *m) {
	return core_available(c, m) && core_stores(m);
}

bool core_are_able(const struct core *c, int many) {
	return core_are_that(c, is_able, many);
}

bool core_diverged(const struct core *c, const struct core_member *m) {
	return m->reported && m->last.term == c->term && !rv_hash_is_zero(&c->snapshot_hash) &&
		   m->last.full_round == c->snapshot_round && !rv_hash_is_zero(&m->last.full_hash) &&
		   !rv_hash_equal(&m->last.full_hash, &c->snapshot_hash);
}

bool core_in_sync(const struct core *c, const struct core_member *m) {
	return m->reported && m->last.term == c->term && m->last.phase != WORKER_SYNCING && m->last.round == c->round &&
		   rv_hash_equal(&m->last.chain, &c->chain) && !core_diverged(c, m);
}

bool core_spoiled(const struct core *c, const struct core_member *m) {
	const struct report *rep = &m->last;
	return m->reported && rep->phase == WORKER_SYNCING && rep->term == c->term && rep->round == c->round &&
		   rep->proven_round == c->round && rv_hash_equal(&rep->proven_chain, &c->chain) && !core_diverged(c, m);
}

/* A worker that was started again is announced at once; one that moves all the time, now and
 * then. */
static const struct gcra moves = {.each_us = 10 * RV_US_PER_S, .burst = 4};

int64_t core_moves_at(const struct core_member *m) {
	return m->places.n == 0 || RV_BUG("announce-each-move") ? INT64_MIN : gcra_ready_us(&moves, m->moved_until_us);
}

void core_count_move(struct core_member *m, int64_t now_us) {
	RV_ASSERT(now_us >= core_moves_at(m));
	if (!RV_BUG("announce-each-move"))
		gcra_count(&moves, &m->moved_until_us, now_us);
}

bool core_right_size(const struct core *c, const struct core_member *m) {
	return m->last.n_chunks == core_chunks(c, m->last.round);
}

bool core_contributes(const struct core *c, const struct core_member *m) {
	bool phase = m->last.phase == WORKER_READY || m->last.phase == WORKER_REDUCING || m->last.phase == WORKER_VOTED;
	return core_in_sync(c, m) && phase && core_right_size(c, m) && m->places.n > 0 && core_stores(m);
}

void core_take_listens(struct core *c, int64_t now_us, const uint8_t key[NET_KEY_BYTES], bool listens) {
	int slot = core_find_key(c, key);
	if (slot < 0)
		return;
	struct core_member *m = &c->members[slot];
	m->hung_up = !listens;
	if (!listens)
		m->hung_up_us = now_us;
}

void core_listens(struct core *c, int64_t now_us, const uint8_t key[NET_KEY_BYTES], bool listens) {
	core_take_listens(c, now_us, key, listens);
	core_step(c, now_us);
}

int64_t core_silent_at(const struct core *c, const struct core_member *m) {
	int64_t at = m->heard_us + c->cfg.silent_us, gone_at = m->hung_up_us + c->cfg.silent_us / HUNG_UP_SHARE;
	RV_ASSERT(at > m->heard_us); /* a report is waited on for a while */
	return m->hung_up && m->heard_us <= m->hung_up_us && gone_at < at ? gone_at : at;
}

bool core_about_to(const struct core *c, uint32_t slot) {
	RV_ASSERT(set_has(c->slots.used, slot));
	const struct report *rep = &c->members[slot].last;
	bool took_part = set_has(c->last_commit, slot);
	bool before = rep->term == c->term && rep->round + 1 == c->round;
	bool proves = rep->proven_round == c->round && rv_hash_equal(&rep->proven_chain, &c->chain);
	return took_part && before && (rep->phase != WORKER_SYNCING || proves);
}

/* Returns true if a round would have `m` once it is ready, and may wait for that. */
static bool is_worth_waiting(const struct core *c, const struct core_member *m) {
	if (!core_available(c, m) || !core_stores(m) || core_is_excluded(c, m) || core_waits_no_more(c, m) ||
		core_rests(c, m))
		return false;
	if (!m->reported)
		return true; /* awaited since the coordinator's restart */
	if (c->now_us >= core_silent_at(c, m))
		return false; /* frozen or gone, most likely while it trained: no peer accuses it then */
	return core_right_size(c, m);
}

bool core_waited_for(const struct core *c, const struct core_member *m) {
	if (!is_worth_waiting(c, m))
		return false;
	if (!m->reported || m->last.term < c->term)
		return true; /* it is about to come, or goes back and comes again */
	return core_in_sync(c, m) || core_about_to(c, core_slot_of(c, m));
}

bool core_trains_again(const struct core *c, const struct core_member *m) {
	return core_spoiled(c, m) && is_worth_waiting(c, m);
}

static bool is_contributor(const struct core *c, const struct core_member *m) {
	return core_available(c, m) && core_contributes(c, m) && core_lease_covers(c, m) && m->last.commitment.n > 0;
}

int core_contributors(const struct core *c, uint64_t *out) {
	return core_members_that(c, is_contributor, out);
}

/* Called long after the last time and later than asked for, it was this process that did not run
 * (stopped, suspended, a slow disk): what the members sent meanwhile is still unread. A timer that
 * is merely a little late proves nothing. */
void core_forgive_own_absence(struct core *c, int64_t now_us) {
	bool away = now_us - c->now_us > c->cfg.liveness_us / 2;
	if (!away || now_us - core_deadline_us(c) <= c->cfg.liveness_us / 16)
		return;
	c->attempt_since_us = now_us;
	c->majority_us = INT64_MAX;
	for (int k = 0; k < c->slots.n; k++) {
		struct core_member *m = &c->members[c->slots.order[k]];
		if (core_alive(c, m))
			m->heard_us = now_us;
	}
}

void core_watch_liveness(struct core *c) {
	for (int k = 0; k < c->slots.n; k++) {
		uint32_t slot = c->slots.order[k];
		struct core_member *m = &c->members[slot];
		bool left = m->reported && m->last.phase == WORKER_LEAVING;
		bool alive = core_alive(c, m) && m->reported && !left;
		if (alive == m->was_alive)
			continue;
		m->was_alive = alive;
		RV_ASSERT(!alive || core_available(c, m) || m->banned);
		if (alive)
			core_say(c, CORE_EVENT_ALIVE, slot, c->round);
		else if (left)
			core_say(c, CORE_EVENT_LEFT, slot, c->round);
		else if (!m->distrusted)
			core_say(c, CORE_EVENT_DEAD, slot, c->round);
	}
}
