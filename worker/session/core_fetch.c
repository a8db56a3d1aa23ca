/* core_fetch.c: state from peers: wanted files and fetched ones. */
#include "worker/session/core_state.h"

#include "base/assert.h"
#include "base/planted.h"

static struct state_id id_of(const struct round_action *a) {
	return (struct state_id){.kind = a->type == ROUND_FETCH_SNAPSHOT ? STATE_KIND_SNAPSHOT : STATE_KIND_LOG,
							 .round = a->round,
							 .expect = a->expect,
							 .chain = a->chain};
}

static enum round_action_type action_of(const struct state_id *id) {
	return id->kind == STATE_KIND_SNAPSHOT ? ROUND_FETCH_SNAPSHOT : ROUND_FETCH_LOG;
}

static void install(struct session_core *c, uint64_t round, void *snapshot, const struct rv_hash *expect) {
	RV_ASSERT(!c->installing && c->phase != SESSION_ENDED);
	c->installing = !RV_BUG("act-while-installing");
	c->ops.trainer.request(
		c->ops.ctx,
		&(struct trainer_request){.work = TRAINER_INSTALL, .round = round, .snapshot = snapshot, .expect = *expect});
}

void session_fetch(struct session_core *c, int64_t now_us, const struct round_action *a) {
	struct rv_errtext et = {0};
	struct round_action next;
	struct state_id ids[2] = {id_of(a)};
	int n = 1;
	RV_ASSERT(c->phase == SESSION_RUNNING && !c->installing);
	if (a->made_here) {
		RV_ASSERT(a->type == ROUND_FETCH_SNAPSHOT && a->round == 0);
		install(c, a->round, NULL, &a->expect);
		return;
	}
	if (round_fetch_after(c->round, a, &next))
		ids[n++] = id_of(&next);
	session_log(c, &(struct session_event){.type = SESSION_LOGS_FETCHING, .round = a->round, .id = &ids[0]});
	enum rv_err e = c->ops.links.want(c->ops.ctx, ids, n, &et);
	if (e != RV_OK)
		session_core_on_fetch_failed(c, now_us, &ids[0], e, et.text);
}

void session_cancel_fetch(struct session_core *c) {
	enum rv_err e = c->ops.links.want(c->ops.ctx, NULL, 0, NULL);
	RV_ASSERT(e == RV_OK);
}

void session_core_on_fetch_failed(struct session_core *c, int64_t now_us, const struct state_id *id, enum rv_err e,
								  const char *text) {
	RV_ASSERT(e != RV_OK);
	session_check_invariants(c);
	session_log(c, &(struct session_event){
					   .type = SESSION_LOGS_FETCH_FAILED, .round = id->round, .id = id, .err = e, .text = text});
	round_on_fetched(c->round, now_us, action_of(id), id->round, false);
}

/* Logs it once, not for every file. */
static void note_in_memory(struct session_core *c, const char *warning) {
	uint32_t times;
	enum rv_err e = warning[0] != '\0' ? RV_E_IO : RV_OK;
	enum storage_change change = storage_health_note(&c->health, STORE_LOST, e, &times);
	if (change == STORAGE_BEGINS_TO_FAIL)
		session_log(c, &(struct session_event){.type = SESSION_LOGS_IN_MEMORY, .text = warning});
	if (change == STORAGE_WORKS_AGAIN)
		session_log(c, &(struct session_event){.type = SESSION_LOGS_FETCHED_STORED});
}

/* Keeps the bytes for the next APPLY. They are of no attempt with this worker. */
static void keep_fetched(struct session_core *c, const struct state_id *id, struct blob *log) {
	const struct state_log_info info = {.round = id->round, .digest = id->expect};
	session_keep_result(c, log, &info);
}

/* Keeps a log entry to be applied; installs a snapshot at once. */
void session_core_on_fetched(struct session_core *c, int64_t now_us, const struct state_id *id, void *snapshot,
							 struct blob *log, const char *warning) {
	RV_ASSERT((id->kind == STATE_KIND_SNAPSHOT) == (snapshot != NULL) && (id->kind == STATE_KIND_LOG) == (log != NULL));
	session_check_invariants(c);
	note_in_memory(c, warning);
	if (id->kind == STATE_KIND_SNAPSHOT) {
		install(c, id->round, snapshot, &id->expect);
		return;
	}
	if (warning[0] != '\0')
		session_post_lost(c, now_us, id->round);
	c->ops.links.forget(c->ops.ctx, STATE_KIND_LOG, id->round);
	if (id->round == round_round(c->round) && !RV_BUG("lose-what-was-fetched"))
		keep_fetched(c, id, log);
	round_on_fetched(c->round, now_us, ROUND_FETCH_LOG, id->round, true);
}

void session_core_on_stored_late(struct session_core *c, const struct state_id *id, struct blob *log) {
	RV_ASSERT(id->kind == STATE_KIND_LOG && log);
	session_check_invariants(c);
	c->ops.links.forget(c->ops.ctx, STATE_KIND_LOG, id->round);
	if (!c->installing && round_on_stored_late(c->round, id->round, &id->expect))
		keep_fetched(c, id, log);
}

void session_see_fetch(struct session_core *c, int64_t now_us) {
	if (c->ops.links.nowhere(c->ops.ctx))
		round_on_lacking(c->round, now_us);
	bool starves = round_starves(c->round);
	if (starves && !c->logged.starving)
		session_log(c, &(struct session_event){.type = SESSION_LOGS_STARVING,
											   .round = round_round(c->round),
											   .document = round_document(c->round)});
	c->logged.starving |= starves;
}
