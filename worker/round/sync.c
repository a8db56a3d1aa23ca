/* sync.c: the round core's way back to the run's state: from a snapshot when too far behind or
 * diverged, then one committed round at a time from the round log, each with a digest that the
 * document proves. */
#include "worker/round/internal.h"

#include "base/assert.h"
#include "base/chain.h"
#include "base/planted.h"

bool round_chain_at(const struct document *d, uint64_t round, struct rv_hash *out) {
	uint64_t at = document_reaches_to(d);
	if (round < at || round > d->round)
		return false;
	*out = d->n_older > 0 ? d->older_chain : d->snapshot_chain;
	for (; at < round; at++)
		*out = rv_chain_next(out, document_digest(d, at));
	return true;
}

/* Returns true if the held entry is the last step to the snapshot: the document lists its outcome,
 * not its digest. */
static bool log_leads_to_snapshot(const struct round_core *c) {
	if (!c->log.held || c->log.round != c->round || c->round + 1 != c->doc.snapshot_round)
		return false;
	struct rv_hash chain = rv_chain_next(&c->chain, &c->log.digest);
	return rv_hash_equal(&chain, &c->doc.snapshot_chain);
}

static bool older_is_listed(const struct round_core *c) {
	return c->round >= document_reaches_to(&c->doc) && c->round < c->doc.snapshot_round;
}

/* Returns true if the log entries before the snapshot are listed, and less to fetch than it; or it
 * is nowhere. */
static bool older_leads_to_snapshot(const struct round_core *c) {
	uint64_t most = c->cfg.logs_per_snapshot > 0 ? c->cfg.logs_per_snapshot : NET_MAX_LOG_DIGESTS;
	most *= c->by_log ? 2 : 1; /* entries are packed: they may be fewer bytes than it seems */
	bool few = c->doc.snapshot_round - c->round <= most;
	return !c->older_is_gone && older_is_listed(c) && (few || c->snapshot_is_gone);
}

static bool needs_snapshot(const struct round_core *c) {
	bool before = c->round < c->doc.snapshot_round;
	return c->diverged || (before && !log_leads_to_snapshot(c) && !older_leads_to_snapshot(c));
}

bool round_is_behind(const struct round_core *c) {
	return needs_snapshot(c) || c->round < c->doc.round;
}

bool round_leaves_us_out(const struct round_core *c) {
	return c->doc.phase == RUN_REDUCE && c->doc.round == c->round && document_find(&c->doc, c->cfg.member) < 0;
}

/* Returns true if an earlier process may have, or this one before it installed a snapshot that is
 * no later. */
static bool may_have_contributed(const struct round_core *c, uint64_t round) {
	return (c->cfg.had_former && round <= c->former_until) || round < c->reduced_until;
}

void round_enter(struct round_core *c, uint64_t round, const struct rv_hash *chain,
				 const struct participant_progress *progress) {
	RV_ASSERT(!c->reduce.running);
	RV_ASSERT(progress->ahead == 0 && !rv_hash_is_zero(chain) && c->has_doc);
	c->round = round;
	c->chain = *chain;
	c->progress = *progress;
	c->encoded = c->time_up = c->spoiled = c->starts_over = false;
	c->contributed = may_have_contributed(c, round) && !round_leaves_us_out(c);
	c->apply_failures = 0;
	c->reduce.persist_attempt = 0;
	c->reduce.persist_failed = false;
	c->log.held = c->log.held && c->log.round == round;
}

static bool snapshot_is_made_here(const struct round_core *c) {
	return c->doc.snapshot_round == 0 && !c->cfg.theta0_from_peers;
}

/* Returns the digest of the round whose state this worker holds, which is committed, and needs no
 * snapshot. */
static const struct rv_hash *next_digest(const struct round_core *c) {
	const struct rv_hash *listed = document_digest(&c->doc, c->round);
	RV_ASSERT(listed != NULL || c->round + 1 == c->doc.snapshot_round || c->round >= c->doc.round);
	return listed != NULL ? listed : &c->log.digest; /* it leads to the snapshot */
}

static bool holds_next_log(const struct round_core *c) {
	return c->log.held && c->log.round == c->round && rv_hash_equal(&c->log.digest, next_digest(c));
}

/* Returns true if the outer step has its place behind the overlap: the round is the latest commit,
 * with this worker's contribution in it. A process that restarts meanwhile does not know which
 * steps the earlier one did, unless all. */
static bool has_its_place(const struct round_core *c) {
	if (RV_BUG("early-outer-step") || round_ahead_is_lost(c))
		return false;
	return c->doc.round == c->round + 1 && round_overlap(c) > 0 && c->progress.steps_done == c->cfg.steps_per_round &&
		   round_contributed(c);
}

bool round_is_entering(const struct round_core *c) {
	return c->has_doc && !needs_snapshot(c) && has_its_place(c) && holds_next_log(c);
}

/* Returns true if the round's log is held and no document shows that another one is committed. */
static bool log_may_be_committed(const struct round_core *c) {
	return c->log.held && c->log.round == c->round && (!c->has_doc || c->round >= c->doc.round || holds_next_log(c));
}

/* Returns true if the held log was fetched, by this process or an earlier one: a signed document
 * named its digest. */
static bool log_is_committed(const struct round_core *c) {
	return c->log.held && c->log.round == c->round && (!c->log.own || c->log.attempt == 0);
}

static bool log_proves(const struct round_core *c) {
	bool needs = c->has_doc && needs_snapshot(c);
	return log_is_committed(c) || (!needs && log_may_be_committed(c));
}

/* Returns true if it reports SYNCING although it holds the state of the open round, which only this
 * shows. */
static bool trains_again(const struct round_core *c) {
	return c->spoiled && !round_is_behind(c);
}

void round_proven(const struct round_core *c, uint64_t *round, struct rv_hash *chain) {
	*round = c->round;
	*chain = c->diverged ? (struct rv_hash){0} : c->chain;
	if (c->diverged || !log_proves(c) || trains_again(c))
		return;
	*round = c->round + 1;
	*chain = rv_chain_next(&c->chain, &c->log.digest);
}

/* ---- donors ---- */

static int count_donors(const struct round_core *c) {
	return c->doc.n_members - (document_find(&c->doc, c->cfg.member) >= 0);
}

/* In REDUCE a document lists participants. */
bool round_names_donor(const struct round_core *c, const struct document *d) {
	if (d->phase == RUN_REDUCE || c->doc.phase == RUN_REDUCE)
		return false;
	for (int i = 0; i < d->n_members; i++)
		if (d->members[i].member != c->cfg.member && document_find(&c->doc, d->members[i].member) < 0)
			return true;
	return false;
}

bool round_lacks_donors(const struct round_core *c) {
	if (!c->has_doc || count_donors(c) > 0 || !round_is_behind(c))
		return false;
	return needs_snapshot(c) ? !snapshot_is_made_here(c) : c->trainer != TRAINER_APPLYING && !holds_next_log(c);
}

bool round_fetch_cancel(struct round_core *c, struct round_action *out) {
	if (c->fetch.kind == ROUND_NONE)
		return false;
	c->fetch.kind = ROUND_NONE;
	*out = (struct round_action){.type = ROUND_CANCEL_FETCH};
	return true;
}

/* Makes `want` the outstanding fetch, unless it is already. */
static bool fetch_ensure(struct round_core *c, int64_t now_us, const struct round_action *want,
						 struct round_action *out) {
	struct round_fetch *f = &c->fetch;
	if (f->kind == want->type && f->round == want->round && rv_hash_equal(&f->expect, &want->expect))
		return false;
	if (f->kind != ROUND_NONE && f->kind != want->type)
		return round_fetch_cancel(c, out);
	if (now_us < f->retry_us)
		return round_fetch_cancel(c, out);
	RV_ASSERT(want->round <= c->doc.round && (want->type == ROUND_FETCH_SNAPSHOT || want->round == c->round));
	f->kind = want->type;
	f->round = want->round;
	f->expect = want->expect;
	f->snapshot_chain = want->chain;
	*out = *want;
	return true;
}

/* ---- the way back ---- */

static void want_snapshot(struct round_core *c, uint64_t round, const struct rv_hash *hash,
						  const struct rv_hash *chain) {
	c->snapshot = (struct round_snapshot){.wanted = true, .round = round, .hash = *hash, .chain = *chain};
}

/* Wants the snapshot of which an earlier process fetched a part, unless it has been installed. */
static bool want_part(struct round_core *c) {
	struct rv_hash chain;
	for (int i = 0; c->has_part && i < c->doc.n_kept_snapshots; i++) {
		const struct kept_snapshot *kept = &c->doc.kept_snapshots[i];
		bool leads_on = c->diverged || kept->round > c->round;
		if (kept->round == c->part_round && leads_on && round_chain_at(&c->doc, kept->round, &chain)) {
			want_snapshot(c, kept->round, &kept->hash, &chain);
			return true;
		}
	}
	return false;
}

/* Returns true if the snapshot being fetched still leads on to the document's state. */
static bool still_wanted(const struct round_core *c) {
	struct rv_hash chain;
	return c->snapshot.wanted && c->snapshot.round < c->doc.snapshot_round &&
		   round_chain_at(&c->doc, c->snapshot.round, &chain) && rv_hash_equal(&chain, &c->snapshot.chain);
}

static void choose_snapshot(struct round_core *c) {
	const struct document *d = &c->doc;
	if (still_wanted(c))
		return;
	bool left_behind = c->snapshot.wanted && c->snapshot.round < d->snapshot_round;
	bool too_slow = c->by_log && !c->diverged && !c->older_is_gone;
	c->starves |= left_behind || too_slow;
	c->by_log = false;
	if (!c->older_is_gone && !c->snapshot.wanted && want_part(c))
		return;
	want_snapshot(c, d->snapshot_round, &d->snapshot_hash, &d->snapshot_chain);
}

static bool snapshot_action(struct round_core *c, int64_t now_us, struct round_action *out) {
	if (c->trainer == TRAINER_APPLYING)
		return false;
	choose_snapshot(c);
	const struct round_snapshot *b = &c->snapshot;
	RV_ASSERT(b->wanted && b->round <= c->doc.snapshot_round);
	if (b->round > 0 && rv_hash_is_zero(&b->hash))
		return round_fetch_cancel(c, out); /* its hash comes with a later document */
	struct round_action want = {.type = ROUND_FETCH_SNAPSHOT,
								.round = b->round,
								.made_here = b->round == 0 && !c->cfg.theta0_from_peers,
								.expect = b->hash,
								.chain = b->chain};
	return fetch_ensure(c, now_us, &want, out);
}

/* Records that no donor has the document's snapshot. The entries before it may lead on from this
 * worker's state, at least a part of the way: they are tried after a pause, because both may be
 * nowhere. */
static void lacks_latest_snapshot(struct round_core *c, int64_t now_us) {
	if (c->diverged || !older_is_listed(c) || c->snapshot_is_gone)
		return;
	c->snapshot_is_gone = true;
	c->donor_came = false;
	c->older_is_gone = c->snapshot.wanted = false;
	c->fetch.retry_us = now_us + c->cfg.heartbeat_us;
}

void round_on_lacking(struct round_core *c, int64_t now_us) {
	const struct round_fetch *f = &c->fetch;
	bool before = f->kind != ROUND_NONE && f->round < c->doc.snapshot_round;
	if (f->kind == ROUND_FETCH_SNAPSHOT && f->round == c->doc.snapshot_round)
		lacks_latest_snapshot(c, now_us);
	if (!before)
		return;
	c->older_is_gone = true;
	c->snapshot_is_gone = c->snapshot.wanted = false;
}

bool round_starves(const struct round_core *c) {
	return c->starves;
}

/* Returns the earliest round whose files this worker needs. */
uint64_t round_needs_from(const struct round_core *c) {
	bool snapshot = c->diverged || (c->has_doc && needs_snapshot(c));
	return snapshot && c->snapshot.wanted ? c->snapshot.round
		   : snapshot && c->has_doc       ? c->doc.snapshot_round
										  : c->round;
}

static bool apply_action(struct round_core *c, const struct rv_hash *digest, struct round_action *out) {
	if (round_fetch_cancel(c, out))
		return true;
	if (c->trainer == TRAINER_ENCODING || c->trainer == TRAINER_APPLYING)
		return false;
	RV_ASSERT(c->round < c->doc.round && holds_next_log(c) && rv_hash_equal(&c->log.digest, digest));
	c->trainer = TRAINER_APPLYING;
	*out = (struct round_action){.type = ROUND_APPLY,
								 .round = c->round,
								 .expect = *digest,
								 .late = c->cfg.late,
								 .participated = round_contributed(c)};
	return true;
}

bool round_sync_action(struct round_core *c, int64_t now_us, struct round_action *out) {
	if (needs_snapshot(c))
		return snapshot_action(c, now_us, out);
	const struct rv_hash *digest = next_digest(c);
	bool waits = has_its_place(c) && c->progress.ahead < round_overlap(c);
	if (holds_next_log(c) && !waits)
		return apply_action(c, digest, out);
	if (c->trainer == TRAINER_APPLYING)
		return false;
	if (holds_next_log(c))
		return round_fetch_cancel(c, out) || round_ahead_action(c, out);
	struct round_action want = {.type = ROUND_FETCH_LOG, .round = c->round, .expect = *digest};
	return fetch_ensure(c, now_us, &want, out) || (waits && round_ahead_action(c, out));
}

bool round_fetch_after(const struct round_core *c, const struct round_action *a, struct round_action *out) {
	uint64_t round = a->type == ROUND_FETCH_SNAPSHOT ? a->round : a->round + 1;
	const struct rv_hash *digest = c->has_doc ? document_digest(&c->doc, round) : NULL;
	if (digest == NULL)
		return false;
	*out = (struct round_action){.type = ROUND_FETCH_LOG, .round = round, .expect = *digest};
	return true;
}
