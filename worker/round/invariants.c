/* invariants.c: the invariants of a round core, checked after each event
 * (worker/round/internal.h). */
#include "worker/round/internal.h"

#include "base/assert.h"

static void check_progress(const struct round_core *c) {
	RV_ASSERT(c->progress.steps_done <= c->cfg.steps_per_round);
	RV_ASSERT(c->progress.ahead <= c->cfg.overlap_steps);
	RV_ASSERT(!c->time_up || c->progress.steps_done > 0);
	RV_ASSERT(!c->encoded || !c->spoiled);
	RV_ASSERT(c->trainer != TRAINER_ENCODING || !c->encoded);
}

static void check_reduce(const struct round_core *c) {
	const struct round_reduce *r = &c->reduce;
	RV_ASSERT(r->running || (!r->done && r->suspects == 0));
	RV_ASSERT(!r->running || r->attempt > 0);
	RV_ASSERT(r->persist_attempt <= r->attempt);
}

static void check_log(const struct round_core *c) {
	const struct round_log_entry *log = &c->log;
	RV_ASSERT(!log->held || log->round == c->round);
	RV_ASSERT(!log->held || !rv_hash_is_zero(&log->digest));
	RV_ASSERT(!log->held || log->own || log->attempt == 0); /* fetched ones are of no attempt */
	RV_ASSERT(c->trainer != TRAINER_APPLYING || log->held);
}

static void check_full(const struct round_core *c) {
	RV_ASSERT(c->n_full >= 0 && c->n_full <= ROUND_FULL_HASHES);
	for (int i = 1; i < c->n_full; i++)
		RV_ASSERT(c->full[i].round < c->full[i - 1].round);
	RV_ASSERT(c->apply_failures >= 0);
}

static void check_fetch(const struct round_core *c) {
	const struct round_fetch *f = &c->fetch;
	RV_ASSERT(f->kind == ROUND_NONE || f->kind == ROUND_FETCH_SNAPSHOT || f->kind == ROUND_FETCH_LOG);
	RV_ASSERT(f->kind == ROUND_NONE || c->has_doc);
}

void round_check(const struct round_core *c) {
	RV_ASSERT(!c->has_doc || (c->doc.term == c->cfg.term && c->doc.round <= c->doc.final_round));
	RV_ASSERT(c->next_term == 0 || c->next_term > c->cfg.term);
	RV_ASSERT(!c->finished || (c->has_doc && c->doc.phase == RUN_DONE));
	check_progress(c);
	check_reduce(c);
	check_log(c);
	check_full(c);
	check_fetch(c);
}
