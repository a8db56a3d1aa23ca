/* round.c: the worker's round core: what each event changes. The actions follow from the state
 * alone (actions.c, sync.c), so a lost, late or repeated event cannot leave it stuck. */
#include "worker/round/internal.h"

#include "base/assert.h"
#include "base/chain.h"
#include "base/planted.h"

#include <string.h>

enum { APPLY_FAILURES_MAX = 2 }; /* then no intact log can be had: a snapshot */

size_t round_core_size(void) {
	return sizeof(struct round_core);
}

struct round_core *round_core_init(void *memory, const struct round_config *cfg, uint64_t boot, uint64_t round,
								   const struct rv_hash *chain, const struct participant_progress *progress,
								   int64_t now_us) {
	RV_ASSERT(cfg->steps_per_round > 0 && cfg->member != NET_NO_MEMBER);
	RV_ASSERT(cfg->heartbeat_us > 0 && cfg->overlap_steps <= cfg->steps_per_round);
	RV_ASSERT(cfg->n_fragments <= NET_MAX_FRAGMENTS);
	RV_ASSERT(progress->steps_done <= cfg->steps_per_round && progress->ahead == 0);
	struct round_core *c = memory;
	memset(c, 0, sizeof *c);
	c->cfg = *cfg;
	c->boot = boot;
	c->round = round;
	c->chain = *chain;
	c->progress = *progress;
	/* An earlier process may have delivered these steps, or those of earlier rounds. */
	c->contributed = progress->steps_done > 0 || (cfg->had_former && !RV_BUG("double-count-fragment"));
	c->sent_us = now_us;
	round_check_invariants(c);
	return c;
}

void round_lacks_state(struct round_core *c) {
	RV_ASSERT(!c->has_doc);
	c->diverged = true;
}

void round_has_part(struct round_core *c, uint64_t round) {
	RV_ASSERT(!c->has_doc && !c->has_part);
	c->has_part = true;
	c->part_round = round;
}

/* ---- documents ---- */

static enum rv_err check_same_run(const struct round_core *c, const struct document *d, struct rv_errtext *et) {
	if (RV_BUG("follow-any-run"))
		return RV_OK;
	if (!rv_hash_is_zero(&c->cfg.run_hash) && !rv_hash_equal(&c->cfg.run_hash, &d->run_hash))
		return rv_fail(et, RV_E_CORRUPT, "document %llu: of another configuration than the one that was agreed to",
					   (unsigned long long)d->seq);
	const bool other = c->has_doc && (memcmp(c->doc.run_id, d->run_id, NET_RUN_ID_BYTES) != 0 ||
									  !rv_hash_equal(&c->doc.run_hash, &d->run_hash));
	if (other)
		return rv_fail(et, RV_E_CORRUPT, "document %llu: of another run", (unsigned long long)d->seq);
	if (c->cfg.rounds != 0 && c->cfg.rounds != d->final_round)
		return rv_fail(et, RV_E_CORRUPT, "document %llu: of a run of %llu rounds; %llu were agreed to",
					   (unsigned long long)d->seq, (unsigned long long)d->final_round,
					   (unsigned long long)c->cfg.rounds);
	return RV_OK;
}

/* Returns the open round, as far as this worker knows. */
static uint64_t latest_round(const struct round_core *c) {
	return c->has_doc && c->doc.round > c->round ? c->doc.round : c->round;
}

/* Returns the latest attempt at `round`, as far as this worker knows; 0: none. */
static uint32_t latest_attempt(const struct round_core *c, uint64_t round) {
	uint32_t running = c->reduce.running && c->round == round ? c->reduce.attempt : 0;
	uint32_t seen = c->has_doc && c->doc.round == round ? c->doc.attempt : 0;
	return seen > running ? seen : running;
}

bool round_knows_later(const struct round_core *c, const struct document *d) {
	if (d->term != c->cfg.term)
		return d->term < c->cfg.term;
	bool attempt_goes_back = d->phase == RUN_REDUCE && d->attempt < latest_attempt(c, d->round);
	return d->round < latest_round(c) || attempt_goes_back;
}

/* Refuses an earlier term, round or attempt, which is a mistake; a later term ends this core
 * (ROUND_ROLLBACK). */
static enum rv_err check_later(const struct round_core *c, const struct document *d, struct rv_errtext *et) {
	if (!round_knows_later(c, d))
		return RV_OK;
	if (d->term == c->cfg.term && d->round >= latest_round(c))
		return rv_fail(
			et, RV_E_CORRUPT, "document %llu is of attempt %u at round %llu, and this worker knows attempt %u",
			(unsigned long long)d->seq, d->attempt, (unsigned long long)d->round, latest_attempt(c, d->round));
	return rv_fail(et, RV_E_CORRUPT,
				   "document %llu is of round %llu (term %llu), and this worker knows round %llu (term %llu)",
				   (unsigned long long)d->seq, (unsigned long long)d->round, (unsigned long long)d->term,
				   (unsigned long long)latest_round(c), (unsigned long long)c->cfg.term);
}

/* Refuses what cannot be true in any state of this worker. */
static enum rv_err check_document(const struct round_core *c, const struct document *d, struct rv_errtext *et) {
	unsigned long long seq = d->seq;
	struct rv_hash chain, snapshot;
	if (!round_chain_at(d, d->round, &chain) || !rv_hash_equal(&chain, &d->chain) ||
		!round_chain_at(d, d->snapshot_round, &snapshot) || !rv_hash_equal(&snapshot, &d->snapshot_chain))
		return rv_fail(et, RV_E_CORRUPT, "document %llu: its state hash at round %llu does not follow from its digests",
					   seq, (unsigned long long)d->round);
	uint32_t ours = round_chunks(c, d->round);
	if (d->phase == RUN_REDUCE && ours != 0 && d->n_chunks != ours)
		return rv_fail(et, RV_E_PROTOCOL, "document %llu: a vector of %u chunks, ours has %u", seq, d->n_chunks, ours);
	return RV_OK;
}

static bool full_hash_contradicts(const struct round_core *c) {
	for (int i = 0; i < c->n_full && !RV_BUG("ignore-full-hash"); i++)
		if (c->full[i].round == c->doc.snapshot_round && !rv_hash_is_zero(&c->doc.snapshot_hash))
			return !rv_hash_equal(&c->full[i].hash, &c->doc.snapshot_hash);
	return false;
}

/* Compares this worker's state with the document's; after a fork it resyncs. */
static enum rv_err check_own_state(struct round_core *c, struct rv_errtext *et) {
	const struct document *d = &c->doc;
	struct rv_hash chain;
	if (!c->diverged && round_chain_at(d, c->round, &chain) && !rv_hash_equal(&chain, &c->chain)) {
		c->diverged = true;
		return rv_fail(et, RV_E_CORRUPT,
					   "our state of round %llu is not the run's (another state hash): starting again from round %llu",
					   (unsigned long long)c->round, (unsigned long long)d->snapshot_round);
	}
	if (!c->diverged && full_hash_contradicts(c)) {
		c->diverged = true;
		return rv_fail(
			et, RV_E_CORRUPT,
			"our theta or momentum of round %llu differs from the majority's (full hash): bad memory or disk? "
			"Starting again from peers",
			(unsigned long long)d->snapshot_round);
	}
	return RV_OK;
}

enum rv_err round_on_document(struct round_core *c, const struct document *d, struct rv_errtext *et) {
	round_check_invariants(c);
	if (c->next_term != 0 || (c->has_doc && d->seq <= c->doc.seq && d->term == c->cfg.term))
		return RV_OK;
	RV_TRY(check_same_run(c, d, et));
	RV_TRY(check_later(c, d, et));
	if (d->term > c->cfg.term) {
		c->next_term = d->term;
		c->next_term_round = d->term_round;
		return RV_OK;
	}
	RV_TRY(check_document(c, d, et));
	RV_TRY(round_check_signed(c, d, et));
	RV_ASSERT(d->term == c->cfg.term && d->round >= latest_round(c));
	if (!c->has_doc)
		c->former_until = d->round;
	c->snapshot_is_gone = c->snapshot_is_gone && d->snapshot_round == c->doc.snapshot_round;
	c->donor_came = c->donor_came || round_names_donor(c, d);
	document_copy(&c->doc, d);
	c->has_doc = true;
	if (round_leaves_us_out(c) && !RV_BUG("left-out-loses-steps"))
		c->contributed = false;
	return check_own_state(c, et);
}

/* ---- the trainer ---- */

void round_on_trained(struct round_core *c, uint64_t round, const struct participant_progress *progress) {
	if (round != c->round && (round != c->round + 1 || c->progress.steps_done != c->cfg.steps_per_round))
		return;
	c->progress = *progress;
	bool done =
		round == c->round ? progress->steps_done == c->cfg.steps_per_round : progress->ahead == round_overlap(c);
	if (c->trainer == TRAINER_TRAINING && done)
		c->trainer = TRAINER_IDLE;
	round_check_invariants(c);
}

void round_on_time_up(struct round_core *c, uint64_t round) {
	if (round != c->round || c->progress.steps_done == 0)
		return;
	c->time_up = true;
	if (c->trainer == TRAINER_TRAINING)
		c->trainer = TRAINER_IDLE;
	round_check_invariants(c);
}

void round_on_read_out(struct round_core *c, uint64_t round) {
	RV_ASSERT(c->cfg.step_sequences > 0);
	if (c->trainer == TRAINER_TRAINING && (round == c->round || round == c->round + 1))
		c->trainer = TRAINER_IDLE;
	round_check_invariants(c);
}

/* What a process signs for a round is one commitment: another one is that of a later process. */
static void commit_to(struct round_core *c, const struct commitment *commitment) {
	if (c->round < c->committed_until && !commitment_equal(commitment, &c->commitment))
		c->boot++;
	c->commitment = *commitment;
	c->committed_until = c->round + 1;
}

void round_on_encoded(struct round_core *c, uint64_t round, const struct commitment *commitment) {
	round_check_invariants(c);
	if (round != c->round || c->trainer != TRAINER_ENCODING)
		return;
	c->trainer = TRAINER_IDLE;
	c->encoded = commitment != NULL;
	c->spoiled = false;
	if (commitment != NULL)
		commit_to(c, commitment);
	else
		round_on_spoiled(c, round);
	round_check_invariants(c);
}

void round_on_spoiled(struct round_core *c, uint64_t round) {
	if (round != c->round)
		return;
	RV_ASSERT(!c->encoded && !c->reduce.running);
	if (c->trainer == TRAINER_TRAINING)
		c->trainer = TRAINER_IDLE;
	c->progress = (struct participant_progress){0};
	c->time_up = false;
	c->spoiled = true;
}

static void apply_failed(struct round_core *c) {
	RV_ASSERT(c->log.held && c->apply_failures < APPLY_FAILURES_MAX);
	c->log.held = false;
	if (++c->apply_failures >= APPLY_FAILURES_MAX)
		c->diverged = true;
}

void round_on_applied(struct round_core *c, uint64_t round, const struct rv_hash *chain,
					  const struct participant_progress *progress, bool ok) {
	round_check_invariants(c);
	if (round != c->round || c->trainer != TRAINER_APPLYING)
		return;
	c->trainer = TRAINER_IDLE;
	if (!ok) {
		apply_failed(c);
		return;
	}
	struct rv_hash expect = rv_chain_next(&c->chain, &c->log.digest);
	round_enter(c, round + 1, chain, progress);
	c->snapshot.wanted = c->older_is_gone = false;
	c->snapshot_is_gone = c->snapshot_is_gone && !c->donor_came;
	c->by_log = round + 1 < c->doc.snapshot_round;
	c->starves = c->starves && round + 1 < c->doc.round;
	if (!rv_hash_equal(chain, &expect))
		c->diverged = true;
}

/* ---- the all-reduce ---- */

void round_on_reduced(struct round_core *c, uint64_t round, uint32_t attempt) {
	if (round == c->round && c->reduce.running && attempt == c->reduce.attempt)
		c->reduce.done = true;
	round_check_invariants(c);
}

static void note_storage(struct round_core *c, int64_t now_us, bool ok) {
	c->cannot_store = !ok;
	c->probe_us = now_us + c->cfg.heartbeat_us;
}

void round_on_storage(struct round_core *c, int64_t now_us, bool ok) {
	c->probing = false;
	note_storage(c, now_us, ok);
	round_check_invariants(c);
}

void round_on_persisted(struct round_core *c, int64_t now_us, uint64_t round, uint32_t attempt,
						const struct rv_hash *digest, bool ok) {
	round_check_invariants(c);
	RV_ASSERT(!ok || !rv_hash_is_zero(digest));
	note_storage(c, now_us, ok);
	if (round != c->round)
		return;
	struct round_reduce *r = &c->reduce;
	if (r->persist_attempt == attempt)
		r->persist_attempt = 0;
	bool committed_held = c->log.held && !c->log.own; /* fetched: proven by the document */
	if (ok && !committed_held && c->trainer != TRAINER_APPLYING) {
		c->log =
			(struct round_log_entry){.held = true, .own = true, .round = round, .attempt = attempt, .digest = *digest};
	}
	if (attempt == r->attempt && r->running) {
		r->persist_failed = !ok;
		r->persist_retry_us = now_us + c->cfg.heartbeat_us;
	}
	round_check_invariants(c);
}

void round_on_suspects(struct round_core *c, uint32_t attempt, const struct grid_suspects *suspects) {
	if (c->reduce.running && attempt == c->reduce.attempt)
		c->reduce.suspects = *suspects;
	round_check_invariants(c);
}

/* ---- catching up ---- */

void round_on_fetched(struct round_core *c, int64_t now_us, enum round_action_type kind, uint64_t round, bool ok) {
	struct round_fetch *f = &c->fetch;
	RV_ASSERT(kind == ROUND_FETCH_SNAPSHOT || kind == ROUND_FETCH_LOG);
	if (f->kind == ROUND_NONE || f->kind != kind || f->round != round)
		return;
	f->kind = ROUND_NONE;
	if (!ok) {
		f->retry_us = now_us + c->cfg.heartbeat_us;
		return;
	}
	round_check_invariants(c);
	if (kind == ROUND_FETCH_LOG) {
		c->log = (struct round_log_entry){.held = true, .round = round, .digest = f->expect};
		return;
	}
	c->diverged = c->older_is_gone = c->snapshot_is_gone = c->snapshot.wanted = false;
	c->boot++; /* peers must drop what another state made, as of an earlier process */
	c->n_full = 0;
	if (!rv_hash_is_zero(&f->expect)) /* checked by the platform; theta0 has none */
		c->full[c->n_full++] = (struct round_full){.round = round, .hash = f->expect};
	c->trainer = TRAINER_IDLE;
	c->log.held = false; /* the platform forgets later logs, perhaps of another history */
	round_enter(c, round, &f->snapshot_chain, &(struct participant_progress){0});
	c->by_log = round < c->doc.snapshot_round;
	round_check_invariants(c);
}

bool round_on_stored_late(struct round_core *c, uint64_t round, const struct rv_hash *digest) {
	bool known = c->log.held && c->log.round == round && !c->log.own;
	if (round != c->round || c->diverged || known || c->trainer == TRAINER_APPLYING)
		return false;
	RV_ASSERT(!rv_hash_is_zero(digest));
	c->log = (struct round_log_entry){.held = true, .round = round, .digest = *digest};
	return true;
}

enum rv_err round_on_full_hash(struct round_core *c, uint64_t round, const struct rv_hash *hash,
							   struct rv_errtext *et) {
	bool again = c->n_full > 0 && c->full[0].round == round;
	RV_ASSERT(!rv_hash_is_zero(hash));
	round_check_invariants(c);
	if (c->diverged || round > c->round || (c->n_full > 0 && round < c->full[0].round))
		return RV_OK;
	if (!again) {
		memmove(&c->full[1], &c->full[0], (ROUND_FULL_HASHES - 1) * sizeof c->full[0]);
		c->n_full += c->n_full < ROUND_FULL_HASHES;
	}
	c->full[0] = (struct round_full){.round = round, .hash = *hash};
	return c->has_doc ? check_own_state(c, et) : RV_OK;
}

void round_leave(struct round_core *c) {
	c->leaving = true;
	round_check_invariants(c);
}

void round_on_away(struct round_core *c, int64_t now_us, bool away) {
	c->away = away;
	c->away_us = now_us;
	round_check_invariants(c);
}

void round_pause(struct round_core *c, bool paused) {
	if (paused && !c->paused && c->reduce.running)
		c->boot++; /* what it has made in this all-reduce is forgotten, as by an earlier process */
	c->paused = paused;
	round_check_invariants(c);
}

const struct document *round_document(const struct round_core *c) {
	return c->has_doc ? &c->doc : NULL;
}

uint64_t round_round(const struct round_core *c) {
	return c->round;
}

uint64_t round_boot(const struct round_core *c) {
	return c->boot;
}
