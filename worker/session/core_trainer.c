/* core_trainer.c: acts on the trainer's answers: for the round, the disk and the end. */
#include "worker/session/core_state.h"

#include "base/assert.h"

/* Counts an unusable theta_local, which is theta again; gives up after SPOILED_MAX in a row. */
static void count_spoiled(struct session_core *c, int64_t now_us, uint64_t round, const char *text) {
	enum { SPOILED_MAX = 3 };
	struct rv_errtext et = {0};
	c->spoiled++;
	session_tell(c,
				 &(struct session_event){.type = SESSION_SAYS_SPOILED, .round = round, .n = c->spoiled, .text = text});
	if (c->spoiled < SPOILED_MAX)
		return;
	enum rv_err e = rv_fail(&et, RV_E_RANGE, "round %llu came to nothing %u times in a row: %.400s",
							(unsigned long long)round, c->spoiled, text);
	session_give_up(c, now_us, e, et.text);
}

void session_core_on_trained(struct session_core *c, int64_t now_us, const struct session_trained *t) {
	bool again = t->err == RV_E_RANGE && t->round == round_round(c->round);
	if (again) {
		round_on_spoiled(c->round, now_us, t->round);
		count_spoiled(c, now_us, t->round, t->text);
		return;
	}
	if (t->err != RV_OK) {
		session_core_fail(c, t->err, t->text);
		return;
	}
	RV_ASSERT(t->round == round_round(c->round) || t->round == round_round(c->round) + 1);
	round_on_trained(c->round, now_us, t->round, t->steps_done, t->tokens);
	if (t->time_up && t->round == round_round(c->round))
		round_on_time_up(c->round, t->round);
}

void session_core_on_encoded(struct session_core *c, int64_t now_us, uint64_t round, enum rv_err e, const char *text,
							 const struct state_copy *copy) {
	RV_ASSERT(e == RV_OK || !copy);
	if (e != RV_OK)
		count_spoiled(c, now_us, round, text);
	else
		c->spoiled = 0;
	if (copy)
		session_post_copy(c, now_us, copy);
	round_on_encoded(c->round, now_us, round, e == RV_OK);
}

/* Measures the held-out loss if it is due and this worker is the first of the roster. */
static void evaluate_if_due(struct session_core *c, uint64_t rounds_done) {
	bool due = c->cfg.eval_every > 0 && rounds_done % (uint64_t)c->cfg.eval_every == 0;
	if (due && c->is_first && rounds_done < c->cfg.rounds)
		c->ops.trainer.evaluate(c->ops.ctx, false);
}

void session_core_on_applied(struct session_core *c, int64_t now_us, uint64_t round, enum rv_err e,
							 const struct rv_hash *chain, const struct state_copy *copy) {
	RV_ASSERT(round == round_round(c->round));
	round_on_applied(c->round, now_us, round, chain, e == RV_OK);
	if (e != RV_OK)
		return;
	RV_ASSERT(round_round(c->round) == round + 1);
	session_post_copy(c, now_us, copy);
	evaluate_if_due(c, round + 1);
}

void session_core_on_installed(struct session_core *c, int64_t now_us, uint64_t round, enum rv_err e) {
	c->installing = false;
	if (e == RV_OK) {
		c->history++;
		c->lacks_state = false;
		session_keep_result(c, NULL, 0, 0); /* perhaps of the history that this state replaces */
		c->ops.links.forget_all(c->ops.ctx);
	}
	session_post_installed(c, now_us, round, e == RV_OK);
	round_on_fetched(c->round, now_us, ROUND_FETCH_SNAPSHOT, round, e == RV_OK);
	RV_ASSERT(e != RV_OK || c->phase >= SESSION_SAVING || round_round(c->round) == round);
}

void session_core_on_evaluated(struct session_core *c, int64_t now_us, bool last) {
	if (c->phase == SESSION_EXPORTING && last)
		session_post(c, now_us, STORE_EXPORT);
}

void session_core_on_saved(struct session_core *c, int64_t now_us, const struct state_copy *copy) {
	session_post_copy(c, now_us, copy);
	if (c->phase == SESSION_SAVING)
		c->phase = SESSION_LEAVING;
}

void session_core_on_snapshot(struct session_core *c, int64_t now_us, const struct state_copy *copy) {
	session_post_copy(c, now_us, copy);
}
