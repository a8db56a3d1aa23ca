/* actions.c: the round core's next action, a pure function of its state: what the document calls
 * for, less what is done or under way. */
#include "base/assert.h"
#include "base/planted.h"
#include "worker/round/internal.h"

enum {
	FINISH_WAIT_HEARTBEATS = 15,
	AWAY_WAIT_HEARTBEATS = 3,
	STILL_HEARTBEATS = 15,
	STILL_LOG2_AGAIN = 2,
	STILL_AGAIN_MAX = 4
};

int round_roster_index(const struct round_core *c) {
	if (!c->has_doc || c->doc.phase != RUN_REDUCE || c->doc.round != c->round)
		return -1;
	return document_find(&c->doc, c->cfg.member);
}

bool round_has_vote(const struct round_core *c) {
	return round_roster_index(c) >= 0 && c->log.held && c->log.own && c->log.round == c->round &&
		   c->log.attempt == c->doc.attempt;
}

bool round_contributed(const struct round_core *c) {
	bool own_result = c->log.held && c->log.own && c->log.round == c->round;
	return (c->contributed || own_result) && !RV_BUG("double-count");
}

static bool emit(struct round_core *c, enum round_action_type type, struct round_action *out) {
	*out = (struct round_action){.type = type, .round = c->round};
	return true;
}

static bool reduce_stop_action(struct round_core *c, struct round_action *out) {
	RV_ASSERT(c->reduce.running);
	c->reduce.running = c->reduce.done = false;
	c->reduce.persist_failed = false;
	c->reduce.suspects.n = 0;
	return emit(c, ROUND_REDUCE_STOP, out);
}

/* Returns true if the round is over, this worker leaves or pauses, or a roster has left it out. A
 * document of the same round that is not REDUCE (too few members for a moment) does not end the
 * all-reduce: the next attempt resumes it. */
static bool reduce_is_void(const struct round_core *c) {
	return c->leaving || c->paused || round_is_behind(c) || (c->doc.phase == RUN_REDUCE && round_roster_index(c) < 0) ||
		   c->doc.phase == RUN_DONE;
}

static bool persist_action(struct round_core *c, int64_t now_us, struct round_action *out) {
	struct round_reduce *r = &c->reduce;
	RV_ASSERT(r->running && c->encoded && r->attempt == c->doc.attempt);
	if (!r->done || r->persist_attempt == r->attempt || round_has_vote(c))
		return false;
	if (r->persist_failed && now_us < r->persist_retry_us)
		return false;
	r->persist_attempt = r->attempt;
	return emit(c, ROUND_PERSIST, out);
}

/* Returns false if the roster means an earlier process of this member, whose gradient is lost. */
static bool roster_means_this_process(const struct round_core *c) {
	RV_ASSERT(round_roster_index(c) >= 0);
	uint64_t boot = c->doc.members[round_roster_index(c)].boot;
	return boot == 0 || boot == c->boot;
}

static bool reduce_action(struct round_core *c, int64_t now_us, struct round_action *out) {
	struct round_reduce *r = &c->reduce;
	if (round_roster_index(c) < 0)
		return false;
	if (r->running && r->attempt == c->doc.attempt)
		return persist_action(c, now_us, out);
	if (!c->encoded || round_has_vote(c) || !roster_means_this_process(c))
		return false;
	RV_ASSERT(c->doc.round == c->round && (!r->running || r->attempt < c->doc.attempt));
	enum round_action_type type = r->running ? ROUND_REDUCE_RESTART : ROUND_REDUCE_START;
	*r = (struct round_reduce){.running = true, .attempt = c->doc.attempt};
	c->contributed = true;
	c->reduced_until = c->round + 1;
	return emit(c, type, out);
}

static bool train(struct round_core *c, uint64_t round, uint64_t from, uint64_t to, struct round_action *out) {
	RV_ASSERT(c->trainer == TRAINER_IDLE && from < to && to <= c->cfg.steps_per_round);
	RV_ASSERT(round == c->round ? !c->encoded : round == c->round + 1);
	c->trainer = TRAINER_TRAINING;
	*out = (struct round_action){
		.type = ROUND_TRAIN, .round = round, .from = from, .steps = to - from, .starts_over = c->starts_over};
	c->starts_over = false;
	return true;
}

/* Returns the steps ahead before the outer step: none for the last round. */
uint64_t round_overlap(const struct round_core *c) {
	bool last = c->round + 1 >= c->doc.final_round;
	return c->has_doc && !last ? c->cfg.overlap_steps : 0;
}

/* Returns true if the round is averaged without this worker, whose encoded contribution, not given
 * away yet, counts in the next one. */
static bool holds_on(const struct round_core *c) {
	return c->cfg.gives_away && c->progress.ahead == 0 && round_leaves_us_out(c);
}

bool round_ahead_action(struct round_core *c, struct round_action *out) {
	bool whole = c->progress.steps_done == c->cfg.steps_per_round;
	if (holds_on(c))
		return false;
	if (c->trainer != TRAINER_IDLE || !whole || c->progress.ahead >= round_overlap(c) || !round_can_read(c))
		return false;
	return train(c, c->round + 1, c->progress.ahead, round_overlap(c), out);
}

static bool train_action(struct round_core *c, struct round_action *out) {
	if (c->trainer != TRAINER_IDLE)
		return false;
	(void)round_follow_leases(c);
	bool done = c->progress.steps_done == c->cfg.steps_per_round;
	c->time_up = c->time_up || (!done && round_is_read_out(c));
	bool whole = done || c->time_up;
	if (whole && !c->encoded) {
		c->trainer = TRAINER_ENCODING;
		return emit(c, ROUND_ENCODE, out);
	}
	if (c->doc.phase == RUN_WAITING)
		return false;
	if (whole)
		return round_ahead_action(c, out);
	return round_can_read(c) && train(c, c->round, c->progress.steps_done, c->cfg.steps_per_round, out);
}

bool round_end_verified(const struct round_core *c) {
	return c->has_doc && c->doc.phase == RUN_DONE && c->doc.snapshot_round == c->doc.round && c->n_full > 0 &&
		   c->full[0].round == c->doc.round && !c->diverged;
}

/* Returns until when to wait for a majority's hash of the end state: not for long from a
 * coordinator that no longer answers, as it may have ended with the run. One that has named that
 * hash is not needed: this worker's own is about to be compared with it. */
static int64_t finish_by_us(const struct round_core *c) {
	const int64_t alone_us = c->away_us + AWAY_WAIT_HEARTBEATS * c->cfg.heartbeat_us;
	const bool is_named = c->doc.snapshot_round == c->doc.round;
	return c->away && !is_named && alone_us < c->finish_by_us ? alone_us : c->finish_by_us;
}

/* Waits a while for the end state to be verified, against a bit that flipped after the last
 * snapshot. */
static bool finish_action(struct round_core *c, int64_t now_us, struct round_action *out) {
	RV_ASSERT(c->round == c->doc.round && !c->diverged);
	if (c->finish_by_us == 0)
		c->finish_by_us = now_us + FINISH_WAIT_HEARTBEATS * c->cfg.heartbeat_us;
	if (!round_end_verified(c) && now_us < finish_by_us(c))
		return false;
	c->finished = true;
	return emit(c, ROUND_FINISH, out);
}

/* Allows another PERSIST after a full disk, once the roster that wanted this worker's vote is
 * gone. */
static void forgive_full_disk(struct round_core *c, int64_t now_us) {
	if (round_roster_index(c) < 0 && now_us >= c->reduce.persist_retry_us)
		c->reduce.persist_failed = false;
}

static bool rollback_action(struct round_core *c, struct round_action *out) {
	if (c->asked_rollback)
		return false;
	RV_ASSERT(c->next_term > c->cfg.term);
	c->asked_rollback = true;
	*out = (struct round_action){.type = ROUND_ROLLBACK, .round = c->next_term_round, .term = c->next_term};
	return true;
}

/* Returns true if fewer than min_workers have the state (the members of an open document), this
 * worker among them, and others catch up. */
static bool too_few_have_the_state(const struct round_core *c) {
	const struct document *d = &c->doc;
	return (d->phase == RUN_OPEN || d->phase == RUN_WAITING) && d->round == c->round && c->round > 0 &&
		   d->n_members < c->cfg.min_workers && d->n_syncing > 0 && document_find(d, c->cfg.member) >= 0;
}

/* Returns the standstill before the snapshot is written (again): longer each time, as the write may
 * have failed or other workers may be slow. */
static int64_t still_us(const struct round_core *c) {
	bool known = c->n_full > 0 && c->full[0].round == c->round;
	uint32_t times = c->kept_snapshot == c->round + 1 ? c->kept_times : 0;
	uint32_t n = times > 0 ? times : known;
	int64_t heartbeats = (int64_t)STILL_HEARTBEATS << STILL_LOG2_AGAIN * (n < STILL_AGAIN_MAX ? n : STILL_AGAIN_MAX);
	return heartbeats * c->cfg.heartbeat_us;
}

static bool keep_snapshot_action(struct round_core *c, int64_t now_us, struct round_action *out) {
	if (!too_few_have_the_state(c)) {
		c->still_since_us = 0;
		return false;
	}
	if (c->still_since_us == 0)
		c->still_since_us = now_us;
	if (now_us - c->still_since_us < still_us(c))
		return false;
	c->kept_times = c->kept_snapshot == c->round + 1 ? c->kept_times + 1 : 1;
	c->kept_snapshot = c->round + 1;
	c->still_since_us = now_us;
	return emit(c, ROUND_KEEP_SNAPSHOT, out);
}

static bool probe_action(struct round_core *c, int64_t now_us, struct round_action *out) {
	bool has_result = c->reduce.running && c->reduce.done && round_roster_index(c) >= 0; /* PERSIST tries it */
	if (!c->cannot_store || c->probing || now_us < c->probe_us || has_result)
		return false;
	c->probing = true;
	return emit(c, ROUND_PROBE, out);
}

static bool next_action(struct round_core *c, int64_t now_us, struct round_action *out) {
	if (c->next_term != 0)
		return rollback_action(c, out);
	if (!c->has_doc || c->finished)
		return false;
	forgive_full_disk(c, now_us);
	if (c->reduce.running && reduce_is_void(c))
		return reduce_stop_action(c, out);
	if (c->leaving || c->paused)
		return round_fetch_cancel(c, out);
	if (probe_action(c, now_us, out))
		return true;
	if (round_is_behind(c))
		return round_sync_action(c, now_us, out);
	if (round_fetch_cancel(c, out))
		return true;
	if (c->doc.phase == RUN_DONE)
		return finish_action(c, now_us, out);
	return reduce_action(c, now_us, out) || train_action(c, out) || keep_snapshot_action(c, now_us, out);
}

bool round_next_action(struct round_core *c, int64_t now_us, struct round_action *out) {
	round_check_invariants(c);
	bool any = next_action(c, now_us, out);
	RV_ASSERT(!any || out->type != ROUND_NONE);
	round_check_invariants(c);
	return any;
}
