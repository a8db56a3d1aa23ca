/* core.c: a session's start, its turns, and what can be asked of it. */
#include "worker/session/core_state.h"

#include "base/assert.h"

size_t session_core_size(void) {
	return sizeof(struct session_core);
}

/* Takes over what recovery proved, above all the vote, which need not be fetched or made again. */
static void take_found(struct session_core *c, const struct session_start *start, int64_t now_us) {
	const struct recovered *found = start->found;
	RV_ASSERT(!found->has_log || found->log.round == start->at_round);
	c->lacks_state = found->lacks_state;
	if (found->lacks_state)
		round_lacks_state(c->round);
	if (start->has_part)
		round_has_part(c->round, start->part_round);
	if (found->has_log) {
		RV_ASSERT(found->reduced);
		c->result = (struct session_result){found->reduced, found->log};
		round_on_persisted(c->round, now_us, found->log.round, found->log.attempt, &found->log.digest, true);
	}
	if (found->full_round > 0)
		session_full_hash(c, found->full_round, &found->full_hash);
	c->replica_ahead = found->has_replica && found->replica.round > start->at_round;
}

struct session_core *session_core_init(void *memory, const struct session_config *cfg, const struct session_ops *ops,
									   const struct session_start *start, int64_t now_us) {
	struct session_core *c = memory;
	RV_ASSERT(cfg->linger_us >= 0 && cfg->goodbye_us >= 0 && cfg->alone_us > 0);
	*c = (struct session_core){.cfg = *cfg, .ops = *ops, .phase = SESSION_RUNNING};
	c->round = round_core_init(start->round_memory, &start->round, start->boot, start->at_round, &start->chain,
							   &start->progress, now_us);
	take_found(c, start, now_us);
	session_check_invariants(c);
	if (c->replica_ahead)
		session_ask(c, TRAINER_SAVE); /* before any vote: the storage thread keeps the order */
	return c;
}

void session_core_release(struct session_core *c) {
	blob_unref(c->result.bytes);
	c->result.bytes = NULL;
}

/* ---- turns ---- */

static void send_report(struct session_core *c, int64_t now_us) {
	struct report r;
	if (!round_next_report(c->round, now_us, &r))
		return;
	const struct session_result *vote = &c->result;
	RV_ASSERT(r.phase != WORKER_VOTED || (vote->bytes && vote->log.round == r.round && vote->log.attempt == r.attempt));
	RV_ASSERT(r.phase != WORKER_VOTED || rv_hash_equal(&vote->log.digest, &r.digest));
	r.storage = storage_health_report(&c->health, r.storage);
	c->ops.control.report(c->ops.ctx, &r);
}

void session_core_report_soon(struct session_core *c) {
	round_report_soon(c->round);
}

/* Checks that how it ends follows from why, and when. */
static void check_end(const struct session_core *c) {
	RV_ASSERT((c->phase >= SESSION_SAVING) == (c->why != WHY_NOT) || c->fault != RV_OK);
	RV_ASSERT((c->why == WHY_ROLLED_BACK) == (c->next_term != 0));
	RV_ASSERT(c->why != WHY_GIVEN_UP || c->fault != RV_OK);
	RV_ASSERT(c->why != WHY_DONE || c->exported || c->asked);
	RV_ASSERT(c->why != WHY_ALONE || !c->exported);
	RV_ASSERT(c->why != WHY_ASKED || c->asked);
	RV_ASSERT(c->phase != SESSION_LINGERING || c->exported);
	bool done = c->phase == SESSION_EXPORTING || c->phase == SESSION_LINGERING;
	RV_ASSERT(!done || (round_round(c->round) == c->cfg.rounds && !c->installing));
}

void session_check_invariants(const struct session_core *c) {
	const struct session_reduce *r = &c->reduce;
	check_end(c);
	RV_ASSERT(!c->result.bytes || c->result.log.round <= round_round(c->round));
	RV_ASSERT(!c->result.bytes || !rv_hash_is_zero(&c->result.log.digest));
	RV_ASSERT(r->running ? r->attempt > 0 : !r->complete && r->suspects.n == 0);
	RV_ASSERT(!r->running || r->round == round_round(c->round));
	RV_ASSERT(!c->is_first || member_set_has(&c->roster, c->cfg.member));
	RV_ASSERT(c->spoiled < SESSION_SPOILED_MAX || c->fault != RV_OK || c->why != WHY_NOT);
	RV_ASSERT(!c->lacks_state || c->history == 0);
	RV_ASSERT(!c->paused || !c->reduce.running);
}

void session_core_turn(struct session_core *c, int64_t now_us, const struct session_reduce *seen) {
	if (c->phase == SESSION_ENDED)
		return;
	session_check_invariants(c);
	session_see_reduce(c, seen);
	session_check_finish(c, now_us);
	session_act(c, now_us);
	session_see_fetch(c, now_us);
	send_report(c, now_us);
	session_check_end(c, now_us);
	session_check_invariants(c);
}

void session_core_on_away(struct session_core *c, int64_t now_us, bool away) {
	round_on_away(c->round, now_us, away);
}

/* An all-reduce ends before its links do, and begins after they may come about again. */
void session_core_pause(struct session_core *c, int64_t now_us, bool paused) {
	session_check_invariants(c);
	if (c->paused == paused || c->phase != SESSION_RUNNING)
		return;
	c->paused = paused;
	round_pause(c->round, paused);
	if (paused)
		session_act(c, now_us);
	RV_ASSERT(!c->reduce.running);
	c->ops.links.pause(c->ops.ctx, paused);
	if (!paused && round_document(c->round))
		c->ops.links.allow(c->ops.ctx, round_document(c->round));
}

static int64_t earlier(int64_t a, int64_t b) {
	return a < b ? a : b;
}

int64_t session_core_deadline_us(const struct session_core *c, int64_t now_us) {
	enum { WAITS_US = 50 * 1000 }; /* what is due waits for the trainer, or for the disk */
	int64_t at_us = round_deadline_us(c->round);
	bool leaves = c->phase == SESSION_SAVING || c->phase == SESSION_LEAVING;
	if ((c->installing || leaves) && at_us < now_us + WAITS_US)
		at_us = now_us + WAITS_US;
	if (leaves && c->stop_by_us > now_us)
		at_us = earlier(at_us, c->stop_by_us);
	if (c->phase == SESSION_LINGERING)
		at_us = earlier(at_us, c->linger_until_us);
	if (c->alone_until_us != 0 && !leaves)
		at_us = earlier(at_us, c->alone_until_us);
	if (c->finishes && !leaves)
		at_us = earlier(at_us, c->finish_by_us);
	return at_us;
}

/* ---- queries ---- */

enum session_phase session_core_phase(const struct session_core *c) {
	return c->phase;
}

const struct round_core *session_core_round(const struct session_core *c) {
	return c->round;
}

enum rv_err session_core_fault(const struct session_core *c, struct rv_errtext *text) {
	if (c->fault != RV_OK && text)
		*text = c->fault_text;
	return c->fault;
}

bool session_core_rolled_back(const struct session_core *c, uint64_t *round, uint64_t *term) {
	*round = c->next_term_round;
	*term = c->next_term;
	return c->why == WHY_ROLLED_BACK;
}

bool session_core_exported(const struct session_core *c) {
	return c->exported;
}

bool session_core_was_alone(const struct session_core *c) {
	return c->why == WHY_ALONE;
}

bool session_core_storage_fails(const struct session_core *c) {
	return storage_health_fails(&c->health);
}

bool session_core_disk_is_full(const struct session_core *c) {
	return storage_health_is_full(&c->health);
}

bool session_core_is_paused(const struct session_core *c) {
	return c->paused;
}

bool session_core_finishes(const struct session_core *c) {
	return c->finishes;
}

uint32_t session_core_missing_workers(const struct session_core *c) {
	return c->logged.missing;
}

bool session_core_is_first(const struct session_core *c) {
	return c->is_first;
}

struct session_applying session_core_applying(const struct session_core *c) {
	return c->applying;
}
