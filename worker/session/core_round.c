/* core_round.c: documents, the all-reduce, and what the round core asks for. */
#include "worker/session/core_state.h"

#include "base/assert.h"
#include "base/planted.h"

void session_log(const struct session_core *c, const struct session_event *e) {
	c->ops.control.log(c->ops.ctx, e);
}

/* ---- documents ---- */

static void log_text(const struct session_core *c, enum session_event_type type, enum rv_err e, const char *text,
					 const struct document *d) {
	session_log(c, &(struct session_event){
					   .type = type, .round = round_round(c->round), .err = e, .text = text, .document = d});
}

/* Logs that no connected worker has the weights that the run starts from. */
static void log_if_lacking(struct session_core *c, const struct document *d) {
	bool nobody = c->lacks_state && d->n_members == 0;
	if (nobody && !c->logged.no_weights)
		log_text(c, SESSION_LOGS_NO_WEIGHTS, RV_OK, "", d);
	c->logged.no_weights = nobody;
}

/* Logs it once. A volunteer cannot mend it: the coordinator logs it too. */
static void log_old_store(struct session_core *c, const struct document *d, const char *text) {
	if (c->logged.old_store)
		return;
	c->logged.old_store = true;
	log_text(c, SESSION_LOGS_OLD_STORE, RV_OK, text, d);
}

void session_core_on_older(struct session_core *c, const struct document *d, const char *text) {
	log_old_store(c, d, text);
}

/* Returns how many members an all-reduce lacks to have `needed` that are not silent. */
static uint32_t missing_in_reduce(const struct session_core *c, const struct document *d, uint32_t needed) {
	bool ours = c->reduce.running && c->reduce.round == d->round && c->reduce.attempt == d->attempt;
	uint32_t silent = ours ? c->reduce.suspects.n : 0, participants = (uint32_t)document_participants(d);
	return participants < needed + silent ? needed + silent - participants : 0;
}

static void log_missing(struct session_core *c) {
	const struct document *d = round_document(c->round);
	uint32_t needed = c->cfg.min_workers, missing = 0;
	if (d->phase == RUN_WAITING)
		missing = needed > d->n_members ? needed - d->n_members : 1;
	else if (d->phase == RUN_REDUCE)
		missing = missing_in_reduce(c, d, needed);
	if (missing == c->logged.missing)
		return;
	c->logged.missing = missing;
	session_log(c, &(struct session_event){.type = SESSION_LOGS_MISSING, .n = missing});
}

static void refuse_document(struct session_core *c, const struct document *d, enum rv_err e,
							const struct rv_errtext *et) {
	if (round_knows_later(c->round, d))
		log_old_store(c, d, et->text);
	else
		log_text(c, SESSION_LOGS_REFUSED, e, et->text, d);
}

bool session_core_on_document(struct session_core *c, const struct document *d) {
	struct rv_errtext et = {0};
	session_check_invariants(c);
	enum rv_err e = round_on_document(c->round, d, &et);
	const struct document *now = round_document(c->round);
	bool adopted = now && now->seq == d->seq;
	if (e != RV_OK && adopted)
		log_text(c, SESSION_LOGS_WRONG_STATE, e, et.text, d);
	else if (e != RV_OK)
		refuse_document(c, d, e, &et);
	if (!adopted)
		return false;
	c->logged.old_store = false;
	c->ops.links.allow(c->ops.ctx, now);
	session_note_roster(c, now);
	log_missing(c);
	log_if_lacking(c, now);
	return true;
}

/* Passes the hash to the round core, which may find that this worker's state is not the run's and
 * fetch a snapshot. */
void session_full_hash(struct session_core *c, uint64_t round, const struct rv_hash *hash) {
	struct rv_errtext et = {0};
	session_log(c, &(struct session_event){.type = SESSION_LOGS_FULL_HASH, .round = round, .hash = hash});
	enum rv_err e = round_on_full_hash(c->round, round, hash, &et);
	if (e != RV_OK)
		log_text(c, SESSION_LOGS_WRONG_STATE, e, et.text, NULL);
}

/* ---- the all-reduce ---- */

static void enter_attempt(struct session_core *c, const struct document *d) {
	RV_ASSERT(d->phase == RUN_REDUCE && d->round == round_round(c->round));
	const int at = document_find(d, c->cfg.member);
	RV_ASSERT(at >= 0);
	const struct member_ref *self = &d->members[at];
	c->reduce = (struct session_reduce){
		.running = true, .round = d->round, .attempt = d->attempt, .form = {self->member, self->codec, self->part}};
	c->sent = (struct session_sent){.round = d->round, .form = c->reduce.form};
	log_text(c, SESSION_LOGS_ATTEMPT, RV_OK, "", d);
}

static void start_reduce(struct session_core *c) {
	const struct document *d = round_document(c->round);
	struct rv_errtext et = {0};
	RV_ASSERT(!c->reduce.running);
	enum rv_err e = c->ops.links.reduce_start(c->ops.ctx, d, &et);
	if (e == RV_OK)
		enter_attempt(c, d);
	else
		session_core_fail(c, e, et.text);
}

static void restart_reduce(struct session_core *c) {
	const struct document *d = round_document(c->round);
	RV_ASSERT(c->reduce.running && c->reduce.round == d->round && c->reduce.attempt < d->attempt);
	struct rv_errtext et = {0};
	enum rv_err e = c->ops.links.reduce_restart(c->ops.ctx, d, &et);
	if (e == RV_OK)
		enter_attempt(c, d);
	else
		session_core_fail(c, e, et.text);
}

static void stop_reduce(struct session_core *c) {
	RV_ASSERT(c->reduce.running);
	c->ops.links.reduce_stop(c->ops.ctx);
	c->reduce = (struct session_reduce){.running = false};
}

static void see_suspects(struct session_core *c, const struct grid_suspects *suspects) {
	RV_ASSERT(c->reduce.running);
	if (grid_suspects_equal(suspects, &c->reduce.suspects))
		return;
	c->reduce.suspects = *suspects;
	round_on_suspects(c->round, c->reduce.attempt, suspects);
	session_log(c, &(struct session_event){.type = SESSION_LOGS_SUSPECTS,
										   .round = c->reduce.round,
										   .attempt = c->reduce.attempt,
										   .n = suspects->n});
	log_missing(c);
}

void session_see_reduce(struct session_core *c, const struct session_reduce *seen) {
	RV_ASSERT(seen->running == c->reduce.running);
	if (!seen->running)
		return;
	RV_ASSERT(seen->round == c->reduce.round && seen->attempt == c->reduce.attempt);
	see_suspects(c, &seen->suspects);
	RV_ASSERT(seen->complete || !c->reduce.complete); /* chunks are counted once, and stay */
	if (!seen->complete || c->reduce.complete)
		return;
	c->reduce.complete = true;
	round_on_reduced(c->round, c->reduce.round, c->reduce.attempt);
}

/* ---- actions ---- */

static enum participant_adopt adopt_of(const struct session_applying *a) {
	if (a->kept || (a->participated && RV_BUG("keep-what-was-given")))
		return PARTICIPANT_KEEP;
	return a->participated || RV_BUG("adopt-what-was-not-given") ? PARTICIPANT_ADOPT : PARTICIPANT_DISCARD;
}

/* Returns how this worker's contribution to the round was sent: as its vote says, which may be an
 * earlier process's, or in the last attempt that this process took part in. */
static struct contribution_form form_of(const struct session_core *c, uint64_t round) {
	if (c->result.log.attempt > 0 && !RV_BUG("forget-the-form"))
		return c->result.log.form;
	return c->sent.round == round && !RV_BUG("forget-the-form") ? c->sent.form : (struct contribution_form){.codec = 0};
}

/* Applies a round. Steps ahead are never written, and a residual follows from the replica that was
 * encoded: a restart goes on from the replica as it was encoded, or as it was at a snapshot. The
 * storage thread never has more than these two copies: the vote waits for the first. */
static void apply(struct session_core *c, const struct round_action *a) {
	bool snapshot = checkpoint_is_due(&c->cfg.schedule, a->round + 1);
	bool has_its_places = c->cfg.saves_encodings && a->participated;
	RV_ASSERT(c->result.bytes && c->result.log.round == a->round);
	RV_ASSERT(rv_hash_equal(&c->result.log.digest, &a->expect)); /* the bytes are the committed ones */
	c->applying = (struct session_applying){.participated = a->participated,
											.kept = a->late == LATE_KEEP && !a->participated,
											.attempt = c->result.log.attempt};
	c->ops.links.means_commit(c->ops.ctx, a->round, c->applying.attempt);
	const struct trainer_request rq = {.work = TRAINER_APPLY,
									   .round = a->round,
									   .reduced = c->result.bytes,
									   .expect = a->expect,
									   .adopt = adopt_of(&c->applying),
									   .form = form_of(c, a->round),
									   .want_snapshot = snapshot,
									   .want_replica = has_its_places ? snapshot : !c->replica_posted};
	c->ops.trainer.request(c->ops.ctx, &rq);
}

static void keep_snapshot(struct session_core *c, const struct round_action *a) {
	session_log(c, &(struct session_event){.type = SESSION_LOGS_STANDSTILL, .round = a->round});
	session_ask(c, TRAINER_COPY_SNAPSHOT);
}

static void train(struct session_core *c, const struct round_action *a) {
	struct trainer_request rq = {.work = TRAINER_TRAIN,
								 .round = a->round,
								 .from = a->from,
								 .steps = a->steps,
								 .has_leases = c->cfg.has_leases,
								 .starts_over = a->starts_over};
	if (a->starts_over)
		session_log(c, &(struct session_event){.type = SESSION_LOGS_LEASE_LOST, .round = a->round});
	round_reading(c->round, &rq.reading);
	c->ops.trainer.request(c->ops.ctx, &rq);
}

static void encode(struct session_core *c, uint64_t round) {
	const struct trainer_request rq = {.work = TRAINER_ENCODE, .round = round, .want_replica = c->cfg.saves_encodings};
	c->ops.trainer.request(c->ops.ctx, &rq);
}

static void perform(struct session_core *c, int64_t now_us, const struct round_action *a) {
	switch (a->type) {
	case ROUND_TRAIN:
		train(c, a);
		break;
	case ROUND_ENCODE:
		encode(c, a->round);
		break;
	case ROUND_REDUCE_START:
		start_reduce(c);
		break;
	case ROUND_REDUCE_RESTART:
		restart_reduce(c);
		break;
	case ROUND_REDUCE_STOP:
		stop_reduce(c);
		break;
	case ROUND_PERSIST:
		session_persist(c, now_us);
		break;
	case ROUND_APPLY:
		apply(c, a);
		break;
	case ROUND_FETCH_SNAPSHOT:
	case ROUND_FETCH_LOG:
		session_fetch(c, now_us, a);
		break;
	case ROUND_CANCEL_FETCH:
		session_cancel_fetch(c);
		break;
	case ROUND_KEEP_SNAPSHOT:
		keep_snapshot(c, a);
		break;
	case ROUND_PROBE:
		session_post(c, now_us, STORE_PROBE);
		break;
	case ROUND_ROLLBACK:
		session_roll_back(c, now_us, a);
		break;
	case ROUND_FINISH:
		session_finish(c, now_us);
		break;
	case ROUND_NONE:
		RV_UNREACHABLE("an action without a name");
	}
}

void session_act(struct session_core *c, int64_t now_us) {
	enum { MANY = 1000 }; /* more would be a circle */
	struct round_action a;
	for (int n = 0; session_may_act(c) && round_next_action(c->round, now_us, &a); n++) {
		RV_ASSERT(n < MANY);
		perform(c, now_us, &a);
	}
}
