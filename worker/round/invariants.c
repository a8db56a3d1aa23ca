/* invariants.c: the invariants of a round core, checked after each event
 * (worker/round/internal.h). */
#include "worker/round/internal.h"

#include "base/assert.h"

static void check_progress(const struct round_core *c) {
	RV_ASSERT(c->progress.steps_done <= c->cfg.steps_per_round);
	RV_ASSERT(c->progress.ahead <= c->cfg.overlap_steps);
	RV_ASSERT(c->progress.ahead == 0 || c->progress.steps_done == c->cfg.steps_per_round);
	RV_ASSERT(c->progress.ahead > 0 || c->progress.ahead_tokens == 0);
	RV_ASSERT(!c->time_up || c->progress.steps_done > 0 || c->progress.sequences > 0);
	RV_ASSERT(!c->starts_over || (c->progress.steps_done == 0 && !c->encoded && c->trainer != TRAINER_TRAINING));
	RV_ASSERT(!c->encoded || !c->spoiled);
	bool whole = c->progress.steps_done == c->cfg.steps_per_round || c->time_up;
	RV_ASSERT(whole || (!c->encoded && c->trainer != TRAINER_ENCODING));
	RV_ASSERT(c->trainer != TRAINER_ENCODING || !c->encoded);
	RV_ASSERT(c->trainer == TRAINER_IDLE || c->has_doc);
}

static void check_reduce(const struct round_core *c) {
	const struct round_reduce *r = &c->reduce;
	RV_ASSERT(r->running || (!r->done && r->suspects.n == 0));
	RV_ASSERT(!r->running || (r->attempt > 0 && c->has_doc));
	RV_ASSERT(!r->running || c->doc.round != c->round || c->doc.phase != RUN_REDUCE || r->attempt <= c->doc.attempt);
	RV_ASSERT(r->persist_attempt <= r->attempt);
}

static void check_log(const struct round_core *c) {
	const struct round_log_entry *log = &c->log;
	RV_ASSERT(!log->held || log->round == c->round);
	RV_ASSERT(!log->held || !rv_hash_is_zero(&log->digest));
	RV_ASSERT(!log->held || log->own || log->attempt == 0); /* fetched ones are of no attempt */
	RV_ASSERT(c->trainer != TRAINER_APPLYING || log->held);
	RV_ASSERT(c->trainer != TRAINER_APPLYING || c->round < c->doc.round);
}

static void check_full(const struct round_core *c) {
	RV_ASSERT(c->n_full >= 0 && c->n_full <= ROUND_FULL_HASHES);
	for (int i = 1; i < c->n_full; i++)
		RV_ASSERT(c->full[i].round < c->full[i - 1].round);
	RV_ASSERT(c->n_full == 0 || c->full[0].round <= c->round);
	RV_ASSERT(c->apply_failures >= 0);
}

static void check_fetch(const struct round_core *c) {
	const struct round_fetch *f = &c->fetch;
	RV_ASSERT(f->kind == ROUND_NONE || f->kind == ROUND_FETCH_SNAPSHOT || f->kind == ROUND_FETCH_LOG);
	RV_ASSERT(f->kind == ROUND_NONE || c->has_doc);
	RV_ASSERT(f->kind != ROUND_FETCH_LOG || (f->round == c->round && !rv_hash_is_zero(&f->expect)));
	RV_ASSERT(!(c->older_is_gone || c->snapshot_is_gone) || c->has_doc);
	RV_ASSERT(!(c->older_is_gone && c->snapshot_is_gone)); /* one of the two is tried */
}

/* Rounds never go back within a term, and attempts within a round: so what was seen first is not
 * after what was seen last. */
static void check_document(const struct round_core *c) {
	const struct document *d = &c->doc;
	RV_ASSERT(d->term == c->cfg.term && d->round <= d->final_round);
	RV_ASSERT(c->former_until <= d->round && d->snapshot_round <= d->round);
	RV_ASSERT((d->attempt > 0) == (d->phase == RUN_REDUCE));
	RV_ASSERT(!c->finished || (d->phase == RUN_DONE && d->round == c->round));
}

void round_check_invariants(const struct round_core *c) {
	RV_ASSERT(c->next_term == 0 || c->next_term > c->cfg.term);
	RV_ASSERT(!c->asked_rollback || c->next_term != 0);
	RV_ASSERT(!c->finished || c->has_doc);
	RV_ASSERT(!c->has_sent || c->sent.seq == c->seq);
	if (c->has_doc)
		check_document(c);
	check_progress(c);
	check_reduce(c);
	check_log(c);
	check_full(c);
	check_fetch(c);
}
