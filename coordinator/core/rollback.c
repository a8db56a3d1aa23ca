/* rollback.c: whether the state of the current round is still on a member's disk, by the reports;
 * and the operator's way back if it is not. */
#include "base/assert.h"
#include "coordinator/core/internal.h"

/* Returns true if the disk of `m` proves the state `chain` of `round`, whatever term it works
 * in. */
static bool proves(const struct core_member *m, uint64_t round, const struct rv_hash *chain) {
	const struct report *r = &m->last;
	bool own = r->round == round && rv_hash_equal(&r->chain, chain);
	return own || (r->proven_round == round && rv_hash_equal(&r->proven_chain, chain));
}

static bool is_here(const struct core *c, const struct core_member *m) {
	return m->reported && core_available(c, m) && !core_diverged(c, m);
}

/* Sets `out` to the present members that prove the state; returns their number. */
static int holders(const struct core *c, uint64_t round, const struct rv_hash *chain, uint64_t *out) {
	int n = 0;
	set_clear(out, c->words);
	for (int k = 0; k < c->slots.n; k++) {
		const struct core_member *m = &c->members[c->slots.order[k]];
		if (!is_here(c, m) || !proves(m, round, chain))
			continue;
		set_add(out, c->slots.order[k]);
		n++;
	}
	return n;
}

int core_holders(const struct core *c, uint64_t round, uint64_t out[CORE_HERE_WORDS]) {
	struct rv_hash chain;
	if (round <= c->round && core_past_chain(c, round, &chain))
		return holders(c, round, &chain, out);
	set_clear(out, c->words);
	return 0;
}

/* Returns true if the member has not reported yet, so that it may hold the state of the round. */
static bool may_hold(const struct core *c, const struct core_member *m) {
	return core_available(c, m) && !m->reported;
}

/* Sets *round to the latest committed round before this one that the last report of `m` proves;
 * false: none that a rollback can return to. */
static bool latest_proven(const struct core *c, const struct core_member *m, uint64_t *round) {
	const uint64_t claims[] = {m->last.round, m->last.proven_round};
	bool any = false;
	for (int k = 0; k < 2; k++) {
		struct rv_hash chain;
		if (!m->reported || claims[k] >= c->round || (any && claims[k] <= *round) ||
			!core_past_can_return(c, claims[k]) || !core_past_chain(c, claims[k], &chain) ||
			!proves(m, claims[k], &chain))
			continue;
		any = true;
		*round = claims[k];
	}
	return any;
}

/* Finds the latest round that a present member can prove. */
static void find_best(const struct core *c, struct core_kept *out) {
	for (int k = 0; k < c->slots.n; k++) {
		const struct core_member *m = &c->members[c->slots.order[k]];
		uint64_t round;
		if (!is_here(c, m) || !latest_proven(c, m, &round) || (out->has_best && round <= out->best_round))
			continue;
		out->has_best = true;
		out->best_round = round;
	}
	set_clear(out->best_held, c->words);
	if (out->has_best)
		(void)core_holders(c, out->best_round, out->best_held);
}

/* Returns the absent member that has proven most of the rounds that a rollback to `to_round` gives
 * up; -1: none. */
static int find_better_absent(const struct core *c, uint64_t to_round, uint64_t *round) {
	int best = -1;
	*round = to_round;
	for (int k = 0; k < c->slots.n; k++) {
		const struct core_member *m = &c->members[c->slots.order[k]];
		uint64_t proven;
		if (is_here(c, m) || m->banned || core_diverged(c, m) || !latest_proven(c, m, &proven) || proven <= *round)
			continue;
		best = c->slots.order[k];
		*round = proven;
	}
	return best;
}

/* Returns true if `m` has just come back: it may hold files that it has not yet given to the
 * others, and perhaps cannot prove alone. Time without a report does not count: a single one may be
 * of a process that is gone. */
static bool is_just_back(const struct core *c, const struct core_member *m) {
	return is_here(c, m) && (!m->was_here || m->told_us - m->back_us < c->cfg.liveness_us);
}

/* Returns true if `m` lacks rounds that other present members have proven: only with them can it
 * prove what it holds of later rounds. It has core_catch_up_us for each: files may be damaged, or
 * the two may never reach each other. */
static bool is_catching_up(const struct core *c, const struct core_member *m, const struct core_kept *kept) {
	uint64_t own = 0;
	(void)latest_proven(c, m, &own);
	return is_here(c, m) && m->last.phase == WORKER_SYNCING && kept->has_best && own < kept->best_round &&
		   m->told_us - m->further_us < core_catch_up_us(c);
}

/* Returns true if the member took part in the last commit, or has proven the state since; or can
 * have done so before this coordinator started, and has not had the time to report it. */
static bool may_have_held(const struct core *c, uint32_t slot) {
	const struct core_member *m = &c->members[slot];
	bool untold = m->from_before && !m->banned && (!m->reported || is_just_back(c, m));
	return untold || set_has(c->last_commit, slot) || set_has(c->seen_holding, slot);
}

static bool claims_later(const struct core *c, const struct core_member *m) {
	return is_here(c, m) && (m->last.round > c->round || m->last.term > c->term);
}

/* Returns true if most available members claim a later round or term: a single one may claim
 * anything. */
static bool most_are_ahead(const struct core *c) {
	int later = core_count_that(c, claims_later);
	return later > 0 && 2 * later > core_count_available(c);
}

static bool holds(const struct core *c, const struct core_member *m) {
	return is_here(c, m) && proves(m, c->round, &c->chain);
}

/* Sorts those that may have held the state: absent, behind, or without it. */
static void sort_holders(const struct core *c, struct core_kept *out) {
	set_clear(out->last_held, c->words);
	set_clear(out->absent, c->words);
	set_clear(out->behind, c->words);
	for (int k = 0; k < c->slots.n; k++) {
		uint32_t slot = c->slots.order[k];
		const struct core_member *m = &c->members[slot];
		if (!may_have_held(c, slot))
			continue;
		set_add(out->last_held, slot);
		if (!is_here(c, m) || is_just_back(c, m))
			set_add(out->absent, slot);
		else if (is_catching_up(c, m, out))
			set_add(out->behind, slot);
	}
}

/* Sets *unheld if no present member holds the state of the round; returns whether it is absent or
 * lost then. */
static enum core_state_kept who_kept(const struct core *c, struct core_kept *out, bool *unheld) {
	out->state = CORE_STATE_HELD;
	out->round = c->round;
	out->ahead = most_are_ahead(c);
	out->has_best = false;
	out->best_round = 0;
	find_best(c, out);
	sort_holders(c, out);
	RV_ASSERT(!out->has_best || out->best_round < c->round);
	*unheld =
		c->round > 0 && !core_are_that(c, holds, 1) && core_are_that(c, is_here, 1) && !core_are_that(c, may_hold, 1);
	bool gone = set_is_empty(out->absent, c->words) && set_is_empty(out->behind, c->words);
	return gone ? CORE_STATE_LOST : CORE_STATE_ABSENT;
}

/* Reports a state as not held only after liveness_us: members that come back may first give each
 * other what each lacks. */
static bool is_unheld_for_long(const struct core *c) {
	return c->not_held_since_us != INT64_MAX && c->now_us - c->not_held_since_us >= c->cfg.liveness_us;
}

void core_kept(const struct core *c, struct core_kept *out) {
	bool unheld = false;
	enum core_state_kept state = who_kept(c, out, &unheld);
	if (unheld && is_unheld_for_long(c))
		out->state = state;
}

/* Notes who is back, who proves more than before, and who holds the state of the round. */
static void watch_returns(struct core *c) {
	for (int k = 0; k < c->slots.n; k++) {
		struct core_member *m = &c->members[c->slots.order[k]];
		bool here = is_here(c, m);
		if (here && !m->was_here)
			m->back_us = c->now_us;
		if (here && (!m->was_here || m->last.proven_round > m->proven_before))
			m->further_us = c->now_us;
		m->proven_before = m->last.proven_round;
		m->was_here = here;
		if (here && proves(m, c->round, &c->chain))
			set_add(c->seen_holding, c->slots.order[k]);
	}
}

void core_watch_state(struct core *c) {
	static const enum core_event_type events[] = {[CORE_STATE_HELD] = CORE_EVENT_HELD,
												  [CORE_STATE_ABSENT] = CORE_EVENT_ABSENT,
												  [CORE_STATE_LOST] = CORE_EVENT_GONE};
	struct core_kept kept;
	bool unheld = false;
	watch_returns(c);
	enum core_state_kept state = who_kept(c, &kept, &unheld);
	if (!unheld)
		c->not_held_since_us = INT64_MAX;
	else if (c->not_held_since_us == INT64_MAX)
		c->not_held_since_us = c->now_us;
	state = unheld && is_unheld_for_long(c) ? state : CORE_STATE_HELD;
	if (state == c->kept_said)
		return;
	c->kept_said = state;
	core_say_all(c, events[state], c->round);
}

/* ---- the way back ---- */

/* Returns the latest term. If the store was restored from an old copy, workers may know a later
 * one; but no report of theirs can use up all terms. */
static uint64_t latest_term(const struct core *c) {
	enum { FORGOTTEN_MAX = 1024 }; /* rollbacks since that copy was made */
	uint64_t latest = c->term;
	for (int k = 0; k < c->slots.n; k++) {
		const struct core_member *m = &c->members[c->slots.order[k]];
		uint64_t term = m->last.term;
		if (is_here(c, m) && term > latest && term <= c->term + FORGOTTEN_MAX)
			latest = term;
	}
	return latest;
}

static enum rv_err check_target(const struct core *c, uint64_t to_round, struct rv_errtext *et) {
	unsigned long long to = to_round, now = c->round, first = core_past_earliest(c);
	if (to_round > c->round)
		return rv_fail(et, RV_E_INVALID, "rollback: the run is at round %llu: round %llu is not committed", now, to);
	if (!core_past_can_return(c, to_round))
		return rv_fail(
			et, RV_E_RANGE,
			"rollback: to round %llu: that far back snapshots and digests are not remembered; round %llu is the "
			"earliest that can be returned to",
			to, first);
	if (latest_term(c) >= NET_MAX_TERM)
		return rv_fail(et, RV_E_RANGE, "rollback: term %d is the last there can be", (int)NET_MAX_TERM);
	if (to_round == c->round && !core_are_that(c, claims_later, 1))
		return rv_fail(et, RV_E_INVALID,
					   "rollback: the run is at round %llu already, and no member that is here is ahead of it", now);
	return RV_OK;
}

/* Refuses a rollback that would lose rounds; the operator, who may know better, can force it. */
static enum rv_err check_loss(const struct core *c, uint64_t to_round, struct rv_errtext *et) {
	unsigned long long to = to_round, now = c->round;
	uint64_t proven;
	int absent = find_better_absent(c, to_round, &proven);
	unsigned long long better = proven;
	uint64_t proving[CORE_HERE_WORDS];
	struct core_kept kept;
	core_kept(c, &kept);
	if (to_round > 0 && core_holders(c, to_round, proving) == 0)
		return rv_fail(
			et, RV_E_INVALID,
			"rollback: no present member has proven the state of round %llu; workers that are ahead of it could "
			"go back as far as their disks reach: --force lets them, and if none reaches it, no state is left to go "
			"on from (they set aside what they have). Is there a newer copy of the store?",
			to);
	if (to_round < c->round && kept.state == CORE_STATE_HELD)
		return rv_fail(et, RV_E_INVALID,
					   "rollback: nothing is known to be lost: the state of round %llu is held by a present member, or "
					   "not all have reported yet; --force gives up rounds %llu to %llu all the same",
					   now, to + 1, now);
	if (to_round < c->round && kept.state == CORE_STATE_ABSENT)
		return rv_fail(
			et, RV_E_INVALID,
			"rollback: some of those who held round %llu last are merely absent, or have not yet got what they lack of "
			"the rounds before: then the run goes on from there; --force gives up rounds %llu to %llu without them",
			now, to + 1, now);
	if (to_round < c->round && absent >= 0)
		return rv_fail(
			et, RV_E_INVALID,
			"rollback: member %u, which is merely absent, has proven the state of round %llu: when it comes back "
			"the run can go on from there; --force gives up rounds %llu to %llu without it",
			core_number(c, (uint32_t)absent), better, to + 1, better);
	return RV_OK;
}

/* The round can be returned to, and a later term exists (check_target). */
static void push_rollback(struct core *c, uint64_t to_round, uint32_t because_of) {
	struct core_record *rec = core_push(c, CORE_ROLLBACK);
	rec->member = because_of;
	rec->term = latest_term(c) + 1;
	RV_ASSERT(rec->term > c->term && rec->term <= NET_MAX_TERM && to_round <= c->round);
	rec->round = to_round;
	bool known = core_past_chain(c, to_round, &rec->chain);
	RV_ASSERT(known);
}

enum rv_err core_rollback(struct core *c, int64_t now_us, uint64_t to_round, bool force, struct rv_errtext *et) {
	core_step(c, now_us);
	RV_TRY(check_target(c, to_round, et));
	if (!force)
		RV_TRY(check_loss(c, to_round, et));
	if (c->n_queue > 0)
		return rv_fail(et, RV_E_BUSY, "rollback: another decision is just being made durable: try again");
	push_rollback(c, to_round, NET_NO_MEMBER);
	return RV_OK;
}

bool core_push_rollback(struct core *c, uint64_t to_round, uint32_t because_of) {
	if (to_round >= c->round || !core_past_can_return(c, to_round) || latest_term(c) >= NET_MAX_TERM)
		return false;
	push_rollback(c, to_round, because_of);
	return true;
}

const char *core_apply_rollback(struct core *c, const struct core_record *rec) {
	struct rv_hash chain;
	if (rec->term <= c->term || rec->term > NET_MAX_TERM)
		return "not a later term, or one past the last that there can be";
	if (!core_past_chain(c, rec->round, &chain) || !rv_hash_equal(&chain, &rec->chain))
		return "its state hash is not that of the round";
	if (!core_past_return(c, rec->round))
		return "so far back is not known";
	RV_ASSERT(c->round == rec->round && rv_hash_equal(&c->chain, &rec->chain));
	c->term = rec->term;
	c->term_round = rec->round;
	c->attempt = 0;
	core_dispute_end(c);
	c->roster.n = 0;
	set_clear(c->seen_holding, c->words);
	c->kept_said = CORE_STATE_HELD;
	c->not_held_since_us = INT64_MAX;
	c->ready_since_us = c->accused_since_us = c->majority_us = INT64_MAX;
	c->gathered_anew = false;
	c->no_snapshot_said = UINT64_MAX;
	c->split_said = 0;
	core_kept_forget(c);
	core_leases_rollback(c, rec->round);
	core_audits_rollback(c, rec->round);
	core_scores_rollback(c, rec->round);
	core_spend_strike(c, rec->member);
	core_forget_blame(c);
	core_forget_waits(c);
	core_close_reopened(c, NULL);
	set_clear(c->spoilers, c->words);
	return NULL;
}
