/* document.c: the document for the workers: the current state, compared with the last document.
 * There is a new one only if something in it changed and its number is durable. */
#include "base/assert.h"
#include "base/clock.h"
#include "base/gcra.h"
#include "coordinator/core/internal.h"

#include <string.h>

static uint8_t run_phase(const struct core *c) {
	if (c->round == c->cfg.final_round)
		return RUN_DONE;
	if (c->roster.n > 0)
		return RUN_REDUCE;
	return core_are_able(c, (int)c->cfg.min_workers) ? RUN_OPEN : RUN_WAITING;
}

struct member_ref core_ref(const struct core *c, uint32_t slot, uint32_t weight) {
	const struct core_member *m = &c->members[slot];
	struct member_ref r = {.member = m->number, .weight = weight};
	memcpy(r.key, m->key, sizeof r.key);
	bool has_housemate = core_has_housemate(c, slot);
	for (int i = 0; i < m->places.n; i++)
		if (m->places.at[i].kind != CANDIDATE_PRIVATE || has_housemate)
			r.candidates[r.n_candidates++] = m->places.at[i];
	r.relay = m->reported && m->relay <= c->n_relays ? m->relay : 0;
	return r;
}

/* Returns true if the member is present, and may have some of the files. */
bool core_may_have_parts(const struct core *c, const struct core_member *m) {
	return core_available(c, m) && m->reported && !core_diverged(c, m) && m->places.n > 0;
}

/* Returns true while a participant of the last round may have its result before its next report
 * shows it. */
static bool is_about_to(const struct core *c, const struct core_member *m) {
	return core_about_to(c, core_slot_of(c, m)) && !core_stands_still(c);
}

/* Returns true if the member has what a joiner needs: the state of this round, or the result that
 * leads to it. */
bool core_is_donor(const struct core *c, const struct core_member *m) {
	return core_may_have_parts(c, m) && (core_in_sync(c, m) || core_spoiled(c, m) || is_about_to(c, m));
}

static void put_roster(const struct core *c, struct document *d) {
	const struct core_roster *r = &c->roster;
	RV_ASSERT(r->n > 0 && c->attempt > 0 && c->round < c->cfg.final_round);
	d->n_members = r->n;
	d->n_roster = r->n;
	d->n_rows = 1;
	for (uint16_t i = 0; i < r->n; i++) {
		d->members[i] = core_ref(c, r->slots[i], r->weights[i]);
		d->members[i].place = i;
		d->members[i].boot = r->boots[i];
		d->members[i].codec = r->codecs[i];
		d->members[i].part = r->parts[i];
		d->members[i].contribution = r->roots[i];
	}
	d->n_ranges = r->n_ranges;
	memcpy(d->ranges, r->ranges, r->n_ranges * sizeof r->ranges[0]);
}

/* Lists those of which `is` is true, the lowest numbers first, as far as there is room. */
static void list_donors(const struct core *c, core_is *is, struct document *d) {
	for (int k = 0; k < c->slots.n && d->n_members < NET_MAX_ROW; k++) {
		uint32_t slot = c->slots.order[k];
		if (is(c, &c->members[slot]))
			d->members[d->n_members++] = core_ref(c, slot, 0);
	}
}

/* Lists the donors. After all members died none may hold the state of this round, and yet all of
 * its files be there: one has the snapshot, another a log entry. Then they are each other's
 * donors. */
static void put_donors(const struct core *c, struct document *d) {
	d->n_members = 0;
	list_donors(c, core_is_donor, d);
	if (d->n_members == 0 && c->round > 0)
		list_donors(c, core_may_have_parts, d);
}

/* A member that is about to report that it has applied the last round, or that it goes back, is not
 * behind for long. */
bool core_is_behind(const struct core *c, const struct core_member *m) {
	return core_available(c, m) && m->reported && m->places.n > 0 && !core_in_sync(c, m) && !is_about_to(c, m);
}

/* A member with the state may be where no other can dial it, and yet reach those that need it. */
static void put_syncing(const struct core *c, struct document *d) {
	uint16_t behind[NET_MAX_HERE];
	int n = 0;
	for (int k = 0; k < c->slots.n; k++) {
		const struct core_member *m = &c->members[c->slots.order[k]];
		if (core_is_behind(c, m) && document_find(d, m->number) < 0)
			behind[n++] = c->slots.order[k];
	}
	d->n_syncing = 0;
	for (int i = 0; i < n; i++)
		if (core_lists_behind(c, i, n))
			d->syncing[d->n_syncing++] = core_ref(c, behind[i], 0);
}

/* Sets *round to the first round that this member still fetches, if documents list it. */
static bool needs(const struct core *c, const struct core_member *m, const struct document *d, uint64_t *round) {
	bool asks = m->reported && !m->banned && m->last.term == c->term && m->last.phase == WORKER_SYNCING;
	*round = m->last.needs_from;
	return asks && *round >= document_reaches_to(d) && *round < d->snapshot_round;
}

static void keep_snapshot(struct document *d, uint64_t round, const struct rv_hash *hash) {
	d->kept_snapshots[d->n_kept_snapshots++] = (struct kept_snapshot){.round = round, .hash = *hash};
}

/* Returns true if a member still fetches from this round on. */
static bool is_needed(const struct core *c, const struct document *d, uint64_t from_round) {
	uint64_t round;
	for (int k = 0; k < c->slots.n; k++)
		if (needs(c, &c->members[c->slots.order[k]], d, &round) && round == from_round)
			return true;
	return false;
}

/* Snapshots are kept that members are fetching, and log entries from the snapshot on that is not
 * after the first round that one needs: so the document changes when a snapshot is passed, not with
 * every entry that is fetched. */
static void put_kept(const struct core *c, struct document *d) {
	uint64_t round, first = d->snapshot_round, from = document_reaches_to(d);
	const struct core_past_snapshot zero = {0};
	bool any = false;
	d->n_kept_rounds = d->n_kept_snapshots = 0;
	for (int k = 0; k < c->slots.n; k++) {
		if (!needs(c, &c->members[c->slots.order[k]], d, &round))
			continue;
		any = true;
		first = round < first ? round : first;
	}
	if (!any)
		return;
	for (int b = -1; b < c->past.n_snapshots; b++) {
		const struct core_past_snapshot *snapshot = b < 0 ? &zero : &c->past.snapshots[b];
		from = snapshot->round <= first && snapshot->round > from ? snapshot->round : from;
		if (snapshot->round >= first && d->n_kept_snapshots < NET_MAX_KEPT_SNAPSHOTS &&
			snapshot->round < d->snapshot_round && is_needed(c, d, snapshot->round))
			keep_snapshot(d, snapshot->round, &snapshot->hash);
	}
	RV_ASSERT(from <= d->snapshot_round);
	d->n_kept_rounds = (uint16_t)(d->snapshot_round - from);
}

/* Lists digests as far back as they are known and there is room. */
static void put_older(const struct core *c, struct document *d) {
	uint64_t known = d->snapshot_round > c->past.first ? d->snapshot_round - c->past.first : 0;
	uint64_t room = NET_MAX_LOG_DIGESTS - d->n_log;
	d->n_older = (uint16_t)(known < room ? known : room);
	(void)core_past_chain(c, document_reaches_to(d), &d->older_chain);
	RV_ASSERT(d->n_log + d->n_older <= NET_MAX_LOG_DIGESTS);
	for (uint64_t i = 0; i < d->n_older; i++)
		d->older[i] = *core_past_digest(c, document_reaches_to(d) + i);
}

static void put_banned(const struct core *c, struct document *d) {
	d->banned.n = c->banned.n;
	memcpy(d->banned.members, c->banned.members, c->banned.n * sizeof d->banned.members[0]);
}

/* Sets what the same attempt is to all; zeros if there is none. */
static void put_attempt(const struct core *c, struct document *d) {
	bool reduce = d->phase == RUN_REDUCE;
	RV_ASSERT(!reduce || (c->attempt > 0 && c->roster.n > 0));
	d->attempt = reduce ? c->attempt : 0;
	d->former_attempt = reduce ? core_kept_attempt(c) : 0;
	d->roster_hash = reduce ? c->roster.hash : (struct rv_hash){{0}};
	core_disputes_put(c, d);
	core_proofs_put(c, d);
	d->deadline_ms = reduce ? c->roster.attempt_ms : 0;
	d->slow_deadline_ms = reduce ? c->roster.slow_deadline_ms : 0;
	d->n_chunks = reduce ? c->roster.n_chunks : 0;
	d->n_ranges = 0;
	d->n_roster = 0;
	d->n_rows = 1;
}

/* Lists members: for all alike, or for one that takes no part, where each has a document of its
 * own. */
static void put_lists(const struct core *c, struct document *d) {
	if (core_views_many(c)) {
		core_views_put(c, -1, d);
		return;
	}
	if (d->phase == RUN_REDUCE)
		put_roster(c, d);
	else
		put_donors(c, d);
	put_syncing(c, d);
}

/* Fills everything but `seq`. */
static void build(const struct core *c, struct document *d) {
	memcpy(d->run_id, c->cfg.run_id, sizeof d->run_id);
	d->phase = run_phase(c);
	d->round = c->round;
	d->term = c->term;
	d->term_round = c->term_round;
	d->final_round = c->cfg.final_round;
	d->run_hash = c->cfg.run_hash;
	d->chain = c->chain;
	d->snapshot_round = c->snapshot_round;
	d->snapshot_hash = c->snapshot_hash;
	d->snapshot_chain = c->snapshot_chain;
	d->n_log = (uint16_t)(c->round - c->snapshot_round);
	memcpy(d->log, c->log, d->n_log * sizeof d->log[0]);
	put_older(c, d);
	put_kept(c, d);
	d->n_relays = c->n_relays;
	memcpy(d->relays, c->relays, sizeof d->relays);
	put_banned(c, d);
	put_attempt(c, d);
	put_lists(c, d);
	RV_ASSERT(d->n_kept_rounds <= d->n_older && d->n_members <= c->slots.n);
	RV_ASSERT((d->phase == RUN_REDUCE) == (d->attempt > 0) && (d->phase == RUN_DONE) == (d->round == d->final_round));
}

static bool same_kept(const struct document *a, const struct document *b) {
	if (a->n_kept_rounds != b->n_kept_rounds || a->n_kept_snapshots != b->n_kept_snapshots)
		return false;
	for (int i = 0; i < a->n_kept_snapshots; i++)
		if (a->kept_snapshots[i].round != b->kept_snapshots[i].round)
			return false;
	return true;
}

static bool same_relays(const struct document *a, const struct document *b) {
	if (a->n_relays != b->n_relays)
		return false;
	for (int i = 0; i < a->n_relays; i++)
		if (!core_same_relay(&a->relays[i], &b->relays[i]))
			return false;
	return true;
}

static bool same_refs(const struct member_ref *a, int n_a, const struct member_ref *b, int n_b) {
	if (n_a != n_b)
		return false;
	for (int i = 0; i < n_a; i++) {
		const struct member_ref *x = &a[i], *y = &b[i];
		if (x->member != y->member || x->weight != y->weight || x->relay != y->relay ||
			!candidates_equal(x->candidates, x->n_candidates, y->candidates, y->n_candidates))
			return false;
	}
	return true;
}

/* The proofs grow in number until there is no room, and the latest is the last. */
static bool same_disputes(const struct document *a, const struct document *b) {
	if (a->n_proofs != b->n_proofs || a->n_asked != b->n_asked)
		return false;
	const struct equivocation *x = &a->proofs[NET_MAX_PROOFS - 1], *y = &b->proofs[NET_MAX_PROOFS - 1];
	return (a->n_proofs < NET_MAX_PROOFS || rv_hash_equal(&x->scope.roster, &y->scope.roster)) &&
		   memcmp(a->asked, b->asked, a->n_asked * sizeof a->asked[0]) == 0;
}

/* What is a function of what is compared is not compared again: the chain of the log, the ownership
 * map of (round, attempt), the key of a member. */
static bool same_state(const struct document *a, const struct document *b) {
	const bool same_phase = a->phase == b->phase || (a->attempt == 0 && b->attempt == 0); /* OPEN and WAITING */
	return same_phase && a->term == b->term && a->round == b->round && a->attempt == b->attempt &&
		   a->snapshot_round == b->snapshot_round && rv_hash_equal(&a->snapshot_hash, &b->snapshot_hash) &&
		   banned_equal(&a->banned, &b->banned) && same_disputes(a, b);
}

static bool same_lists(const struct document *a, const struct document *b) {
	return a->phase == b->phase && same_kept(a, b) && same_relays(a, b) &&
		   same_refs(a->members, a->n_members, b->members, b->n_members) &&
		   same_refs(a->syncing, a->n_syncing, b->syncing, b->n_syncing);
}

/* Documents that differ in lists alone: members change these by what they report, and each document
 * goes to all. */
static const struct gcra list_changes = {.each_us = RV_US_PER_S / 8, .burst = 64};

/* Returns true while changes of lists alone wait for their turn; counts one that waits no more. */
static bool lists_wait(struct core *c) {
	c->lists_wait = !gcra_take(&list_changes, &c->lists_until_us, c->now_us);
	return c->lists_wait;
}

int64_t core_lists_at_us(const struct core *c) {
	return c->lists_wait ? gcra_ready_us(&list_changes, c->lists_until_us) : INT64_MAX;
}

void core_publish(struct core *c) {
	core_houses_follow(c);
	const bool leases = core_leases_changed(c), audits = core_audits_changed(c), scores = core_scores_changed(c);
	const bool lists = core_views_refresh(c);
	c->views.ordered |= leases || audits || scores;
	c->views.changed |= lists || c->views.ordered;
	c->lists_wait = false;
	build(c, &c->scratch);
	const bool hurries = c->views.ordered || !same_state(&c->scratch, &c->doc);
	if (!hurries && ((same_lists(&c->scratch, &c->doc) && !c->views.changed) || lists_wait(c)))
		return;
	RV_ASSERT(c->scratch.term > c->doc.term || c->scratch.round >= c->doc.round); /* only a rollback goes back */
	uint64_t seq = c->doc.seq + 1;
	c->views.changed = seq >= c->seq_durable;
	c->views.ordered &= c->views.changed;
	if (seq < c->seq_durable) {
		document_copy(&c->doc, &c->scratch);
		c->doc.seq = seq;
		c->views.many = core_views_many(c);
	} else if (seq >= c->seq_planned) {
		core_push_seq(c);
	}
}

void core_republish(struct core *c) {
	core_houses_follow(c);
	(void)core_views_refresh(c);
	(void)core_leases_changed(c);
	(void)core_audits_changed(c);
	(void)core_scores_changed(c);
	build(c, &c->doc);
	c->doc.seq = c->seq_durable;
	c->views.changed = c->views.ordered = c->lists_wait = false;
	c->views.many = core_views_many(c);
}

bool core_document_of(const struct core *c, uint32_t slot, struct document *out) {
	RV_ASSERT(slot < c->cfg.max_here);
	if ((c->views.many || core_has_leases(c) || core_has_audits(c)) && c->views.changed)
		return false;
	document_copy(out, &c->doc);
	if (c->views.many)
		core_views_put(c, (int)slot, out);
	core_leases_put(c, slot, out);
	core_audits_put(c, slot, out);
	core_scores_put(c, slot, out);
	return true;
}
