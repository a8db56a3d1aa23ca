/* core_end.c: how a session ends: the run is done, a person asks, nothing more can be done, or the
 * run was rolled back. */
#include "worker/session/core_state.h"

#include "base/assert.h"
#include "base/planted.h"

/* ---- stopping ---- */

static bool is_going(const struct session_core *c) {
	return c->phase >= SESSION_SAVING;
}

/* Begins to save; ends fetching, as a file that is not installed would only take room from those
 * saved now. */
static void begin_saving(struct session_core *c, enum session_why why) {
	RV_ASSERT(!is_going(c));
	c->phase = SESSION_SAVING;
	c->why = why;
	session_cancel_fetch(c);
	session_ask(c, TRAINER_END);
}

static void begin_stop(struct session_core *c, int64_t now_us, enum session_why why) {
	RV_ASSERT(why != WHY_NOT && why != WHY_ROLLED_BACK);
	c->stop_by_us = now_us + c->cfg.goodbye_us;
	session_log(c, &(struct session_event){.type = SESSION_LOGS_STOPPING, .n = why != WHY_DONE && why != WHY_ALONE});
	round_leave(c->round);
	begin_saving(c, why);
}

void session_core_stop(struct session_core *c, int64_t now_us) {
	session_check_invariants(c);
	c->asked = true;
	if (is_going(c))
		return;
	begin_stop(c, now_us, c->phase == SESSION_LINGERING ? WHY_DONE : WHY_ASKED);
}

void session_core_finish(struct session_core *c, int64_t now_us, int64_t by_us) {
	session_check_invariants(c);
	c->finishes = true;
	c->finish_after = round_round(c->round);
	c->finish_by_us = by_us;
	session_check_finish(c, now_us);
}

/* After the last round of the run it ends by itself, with the weights. */
void session_check_finish(struct session_core *c, int64_t now_us) {
	const uint64_t round = round_round(c->round);
	const bool is_committed = round > c->finish_after && round < c->cfg.rounds;
	const bool is_over = is_committed || now_us >= c->finish_by_us || c->paused;
	if (c->finishes && is_over && !c->asked)
		session_core_stop(c, now_us);
}

static void note_fault(struct session_core *c, enum rv_err e, const char *text) {
	RV_ASSERT(e != RV_OK);
	if (c->fault == RV_OK)
		c->fault = rv_fail(&c->fault_text, e, "%s", text);
}

void session_core_fail(struct session_core *c, enum rv_err e, const char *text) {
	if (c->fault == RV_OK)
		c->phase = SESSION_ENDED;
	note_fault(c, e, text);
}

void session_give_up(struct session_core *c, int64_t now_us, enum rv_err e, const char *text) {
	if (c->fault != RV_OK || is_going(c))
		return;
	note_fault(c, e, text);
	begin_stop(c, now_us, WHY_GIVEN_UP);
}

/* Ends without a last report: this core no longer reports. */
void session_roll_back(struct session_core *c, int64_t now_us, const struct round_action *a) {
	RV_ASSERT(c->why != WHY_ROLLED_BACK && a->term > 0);
	session_log(c, &(struct session_event){.type = SESSION_LOGS_ROLLBACK, .round = a->round, .term = a->term});
	c->next_term = a->term;
	c->next_term_round = a->round;
	c->stop_by_us = now_us;
	if (is_going(c))
		c->why = WHY_ROLLED_BACK; /* it had finished, and was about to go: it is saving already */
	else
		begin_saving(c, WHY_ROLLED_BACK);
}

/* ---- the end of the run ---- */

void session_finish(struct session_core *c, int64_t now_us) {
	RV_ASSERT(c->phase == SESSION_RUNNING && round_round(c->round) == c->cfg.rounds);
	RV_ASSERT(!c->reduce.running && !c->exported);
	c->phase = SESSION_EXPORTING;
	session_log(c, &(struct session_event){
					   .type = SESSION_LOGS_DONE, .round = round_round(c->round), .n = round_end_verified(c->round)});
	if (c->is_first && c->cfg.eval_at_end)
		session_evaluate(c, true);
	else
		session_post(c, now_us, STORE_EXPORT);
}

/* Returns false while a fetched state is being installed: the round core could want another one
 * instead, and then not know which one the trainer has. */
bool session_may_act(const struct session_core *c) {
	bool finished = c->phase == SESSION_EXPORTING || c->phase == SESSION_LINGERING;
	bool going = (c->phase == SESSION_SAVING || c->phase == SESSION_LEAVING) && c->exported && !c->asked &&
				 c->why != WHY_ROLLED_BACK;
	return !c->installing && (c->phase == SESSION_RUNNING || finished || going);
}

void session_note_roster(struct session_core *c, const struct document *d) {
	for (int i = 0; d->phase == RUN_DONE && i < d->n_members; i++)
		(void)member_set_add(&c->done_members, d->members[i].member);
	if (d->phase != RUN_REDUCE)
		return;
	RV_ASSERT(d->n_members > 0);
	c->roster.n = 0;
	for (int i = 0; i < d->n_members; i++)
		(void)member_set_add(&c->roster, d->members[i].member);
	c->is_first = d->members[0].member == c->cfg.member && d->members[0].place == 0;
}

/* Returns true if this worker waits for the member to have the end of the run. */
static bool waits_for(const struct session_core *c, uint32_t member) {
	return member != c->cfg.member && !member_set_has(&c->done_members, member);
}

static bool waits_for_any(const struct session_core *c, const struct member_set *set) {
	bool any = false;
	for (int i = 0; i < set->n; i++)
		any |= waits_for(c, set->members[i]);
	return any;
}

/* Returns true if it waits for one that catches up, by the latest document; its link may not be up
 * yet. */
static bool waits_for_one_behind(const struct session_core *c) {
	const struct document *d = round_document(c->round);
	bool any = false;
	for (int i = 0; d && i < d->n_syncing; i++)
		any |= waits_for(c, d->syncing[i].member);
	return any;
}

/* Returns true if the others have finished and left: what this worker lacks is on their disks. */
static bool is_alone(const struct session_core *c) {
	const struct document *d = round_document(c->round);
	return d && d->phase == RUN_DONE && !c->installing && round_lacks_donors(c->round);
}

/* Ends a worker that nobody gives the end of the run. */
static void check_alone(struct session_core *c, int64_t now_us) {
	const uint64_t round = round_round(c->round);
	if (!is_alone(c)) {
		c->alone_until_us = 0;
		return;
	}
	if (c->alone_until_us == 0)
		c->alone_until_us = now_us + c->cfg.alone_us;
	if (!c->logged.alone)
		session_log(c, &(struct session_event){
						   .type = SESSION_LOGS_ALONE, .round = round, .document = round_document(c->round)});
	c->logged.alone = true;
	if (now_us >= c->alone_until_us)
		begin_stop(c, now_us, WHY_ALONE);
}

static void check_lingering(struct session_core *c, int64_t now_us) {
	uint64_t given = c->ops.links.given_bytes(c->ops.ctx);
	RV_ASSERT(given >= c->given_bytes);
	if (given != c->given_bytes)
		c->linger_until_us = now_us + c->cfg.linger_us;
	c->given_bytes = given;
	bool none = !waits_for_any(c, &c->roster) && !waits_for_any(c, c->ops.links.askers(c->ops.ctx)) &&
				!waits_for_one_behind(c); /* one that catches up needs this worker until it is done */
	bool came_late = c->roster.n == 0;    /* after the last round: others may lack what it has */
	if ((none && (!came_late || RV_BUG("end-when-started-again"))) || now_us >= c->linger_until_us)
		begin_stop(c, now_us, WHY_DONE);
}

/* Returns true once everything is on disk and the coordinator has the last report, or does not
 * answer. */
static bool is_over(const struct session_core *c, int64_t now_us) {
	bool written = c->ops.disk.idle(c->ops.ctx) && c->ops.trainer.idle(c->ops.ctx);
	if (RV_BUG("end-before-all-is-stored"))
		written = true;
	return written && (c->ops.control.reported(c->ops.ctx) || now_us >= c->stop_by_us);
}

void session_check_end(struct session_core *c, int64_t now_us) {
	if (c->phase == SESSION_RUNNING)
		check_alone(c, now_us);
	else if (c->phase == SESSION_LINGERING)
		check_lingering(c, now_us);
	else if (c->phase == SESSION_LEAVING && is_over(c, now_us))
		c->phase = SESSION_ENDED;
}
