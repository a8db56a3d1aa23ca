/* core_trainer.c: acts on the trainer's answers: for the round, the disk and the end. */
#include "worker/session/core_state.h"

#include "base/assert.h"
#include "base/planted.h"
#include "base/round_number.h"

void session_ask(struct session_core *c, enum trainer_work work) {
	RV_ASSERT(work != TRAINER_END || c->phase == SESSION_SAVING);
	RV_ASSERT(work == TRAINER_SAVE || work == TRAINER_END || work == TRAINER_COPY_SNAPSHOT);
	c->ops.trainer.request(c->ops.ctx, &(struct trainer_request){.work = work});
}

void session_evaluate(struct session_core *c, bool last) {
	const struct trainer_request rq = {.work = TRAINER_EVALUATE, .max_tokens = c->cfg.eval_tokens, .last = last};
	c->ops.trainer.request(c->ops.ctx, &rq);
}

/* Counts an unusable theta_local, which is theta again; gives up after SESSION_SPOILED_MAX in a
 * row. */
static void count_spoiled(struct session_core *c, int64_t now_us, uint64_t round, const char *text) {
	struct rv_errtext et = {0};
	c->spoiled++;
	session_log(c,
				&(struct session_event){.type = SESSION_LOGS_SPOILED, .round = round, .n = c->spoiled, .text = text});
	if (c->spoiled < SESSION_SPOILED_MAX)
		return;
	enum rv_err e = rv_fail(&et, RV_E_RANGE, "round %llu came to nothing %u times in a row: %.400s",
							(unsigned long long)round_number(round), c->spoiled, text);
	session_give_up(c, now_us, e, et.text);
}

static void trained(struct session_core *c, int64_t now_us, const struct trainer_answer *a) {
	const uint64_t round = round_round(c->round);
	if (a->err == RV_E_RANGE && a->round == round) {
		round_on_spoiled(c->round, a->round);
		count_spoiled(c, now_us, a->round, a->text.text);
		return;
	}
	if (a->err != RV_OK) {
		session_core_fail(c, a->err, a->text.text);
		return;
	}
	RV_ASSERT(a->round == round || a->round == round + 1);
	round_on_trained(c->round, a->round, &a->progress);
	if (a->time_up && a->round == round)
		round_on_time_up(c->round, a->round);
	if (a->read_out)
		round_on_read_out(c->round, a->round);
}

static void encoded(struct session_core *c, int64_t now_us, const struct trainer_answer *a) {
	RV_ASSERT(a->err == RV_OK || !a->has_copy);
	if (a->err != RV_OK)
		count_spoiled(c, now_us, a->round, a->text.text);
	else
		c->spoiled = 0;
	if (a->has_copy)
		session_post_copy(c, now_us, &a->copy);
	round_on_encoded(c->round, a->round, a->err == RV_OK ? &a->commitment : NULL);
}

/* Measures the held-out loss if it is due, now or since an earlier round, its text is here and this
 * worker is the first of the roster. */
static void evaluate_if_due(struct session_core *c, uint64_t rounds_done) {
	const bool due = c->cfg.eval_every > 0 && rounds_done % (uint64_t)c->cfg.eval_every == 0;
	c->owes_evaluation = (c->owes_evaluation || due) && c->is_first && rounds_done < c->cfg.rounds;
	if (!c->owes_evaluation || !c->ops.trainer.may_evaluate(c->ops.ctx))
		return;
	session_evaluate(c, false);
	c->owes_evaluation = false;
}

static void applied(struct session_core *c, int64_t now_us, const struct trainer_answer *a) {
	RV_ASSERT(a->round == round_round(c->round));
	round_on_applied(c->round, a->round, &a->chain, &a->progress, a->err == RV_OK);
	if (a->err != RV_OK)
		return;
	RV_ASSERT(round_round(c->round) == a->round + 1 && a->has_copy);
	session_post_copy(c, now_us, &a->copy);
	evaluate_if_due(c, a->round + 1);
}

static void installed(struct session_core *c, int64_t now_us, const struct trainer_answer *a) {
	const bool ok = a->err == RV_OK;
	RV_ASSERT(c->installing || RV_BUG("act-while-installing"));
	c->installing = false;
	if (ok) {
		c->history++;
		c->lacks_state = false;
		session_core_release(c); /* the result: perhaps of the history that this state replaces */
		c->ops.links.forget_all(c->ops.ctx);
		c->ops.links.means_forget(c->ops.ctx);
	}
	if (a->lost && !c->lacks_state) {
		session_core_fail(c, a->err, a->text.text);
		return;
	}
	session_post_installed(c, now_us, a->round, ok);
	round_on_fetched(c->round, now_us, ROUND_FETCH_SNAPSHOT, a->round, ok);
	RV_ASSERT(!ok || c->phase >= SESSION_SAVING || round_round(c->round) == a->round);
}

static void evaluated(struct session_core *c, int64_t now_us, const struct trainer_answer *a) {
	if (c->phase == SESSION_EXPORTING && a->last)
		session_post(c, now_us, STORE_EXPORT);
}

static void copied(struct session_core *c, int64_t now_us, const struct trainer_answer *a) {
	RV_ASSERT(a->has_copy);
	session_post_copy(c, now_us, &a->copy);
}

static void ended(struct session_core *c, int64_t now_us, const struct trainer_answer *a) {
	copied(c, now_us, a);
	if (c->phase == SESSION_SAVING)
		c->phase = SESSION_LEAVING;
}

void session_core_on_answer(struct session_core *c, int64_t now_us, const struct trainer_answer *a) {
	static void (*const answers[TRAINER_WORKS])(struct session_core *, int64_t, const struct trainer_answer *) = {
		[TRAINER_TRAIN] = trained,        [TRAINER_ENCODE] = encoded,     [TRAINER_APPLY] = applied,
		[TRAINER_INSTALL] = installed,    [TRAINER_EVALUATE] = evaluated, [TRAINER_SAVE] = copied,
		[TRAINER_COPY_SNAPSHOT] = copied, [TRAINER_END] = ended};
	RV_ASSERT(a->work < TRAINER_WORKS);
	session_check_invariants(c);
	answers[a->work](c, now_us, a);
}
