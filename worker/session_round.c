/* session_round.c: carries out what the round core asks for, and tells it what became of it. */
#include "worker/session_internal.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/hex.h"
#include "worker/mean_dump.h"
#include "worker/member_set.h"
#include "worker/train/weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- documents ------------------------------------------------------------------------------------------------------
 */

/* The others have finished and gone: what we lack is on their disks. */
static void warn_if_alone(struct session *s, const struct document *d) {
	if (d->phase == RUN_DONE && round_round(s->round) < d->round && round_lacks_donors(s->round))
		rv_event(s->events, RV_WARN, "alone", RV_FIELDS(rv_field_int("round", (int64_t)round_round(s->round))),
				 "the run is done, but nobody is there to give us rounds %" PRIu64 " to %" PRIu64
				 ": start another of its workers, or stop this one",
				 round_round(s->round), d->round - 1);
}

/* The core has found, or was told, that our state is not the run's: it goes back to a base of peers. */
static void wrong_state_event(struct session *s, const struct rv_errtext *et) {
	rv_event(s->events, RV_ERROR, "wrong_state", RV_FIELDS(rv_field_int("round", (int64_t)round_round(s->round))), "%s",
			 et->text);
}

void session_full_hash(struct session *s, uint64_t round, const struct rv_hash *hash) {
	struct rv_errtext et = {0};
	if (round_on_full_hash(s->round, round, hash, &et) != RV_OK)
		wrong_state_event(s, &et);
}

/* Before the first state there is nothing to train from. */
static void warn_if_lacking(struct session *s, const struct document *d) {
	bool nobody = s->lacks_state && d->n_members == 0;
	if (nobody && !s->told_lacking)
		rv_event(s->events, RV_WARN, "no_initial_weights", RV_NO_FIELDS,
				 "the run starts from given weights that this worker does not have, and no other worker is there to "
				 "give them: waiting for one. Whoever has them starts with --init DIR");
	s->told_lacking = nobody;
}

/* Whoever runs a worker cannot mend it, and need not: the operator is told too. */
static void tell_old_store(struct session *s, const struct document *d, const char *why) {
	if (s->told_old_store)
		return;
	s->told_old_store = true;
	rv_event(
		s->events, RV_WARN, "old_store",
		RV_FIELDS(rv_field_int("round", (int64_t)d->round), rv_field_int("epoch", (int64_t)d->epoch)),
		"the coordinator has an old copy of the run: %s. Nothing is lost: this worker keeps what it has, and waits. "
		"The operator should serve the newest store; where there is none, `rivulet-coordinator rollback` makes all "
		"workers go back",
		why);
}

void session_on_older(void *ctx, const struct document *d, uint64_t seen) {
	struct session *s = ctx;
	char why[RV_ERRTEXT_BYTES];
	(void)snprintf(why, sizeof why,
				   "document %" PRIu64 " (round %" PRIu64 ", epoch %" PRIu64
				   "), and this worker has followed document %" PRIu64 " (epoch %" PRIu64 ")",
				   d->seq, d->round, d->epoch, seen, s->member.epoch);
	tell_old_store(s, d, why);
}

static void refused_event(struct session *s, const struct document *d, enum rv_err e, const struct rv_errtext *et) {
	if (round_knows_later(s->round, d))
		tell_old_store(s, d, et->text);
	else
		rv_event(s->events, RV_ERROR, "document", RV_FIELDS(rv_field_str("error", rv_err_name(e))), "%s", et->text);
}

void session_on_document(void *ctx, const struct document *d) {
	struct session *s = ctx;
	struct rv_errtext et = {0};
	int64_t now_us = rv_clock_monotonic_us();
	RV_FAILPOINT("document.received");
	enum rv_err e = round_on_document(s->round, now_us, d, &et);
	const struct document *now = round_document(s->round);
	bool adopted = now && now->seq == d->seq;
	if (e != RV_OK && adopted)
		wrong_state_event(s, &et);
	else if (e != RV_OK)
		refused_event(s, d, e, &et);
	if (!adopted)
		return;
	s->told_old_store = false;
	session_limit_reach(s);
	meshlink_allow(s->mesh, now_us, now);
	session_note_document(s, now);
	warn_if_alone(s, now);
	warn_if_lacking(s, now);
}

/* ---- the all-reduce -------------------------------------------------------------------------------------------------
 */

static void attempt_event(struct session *s, const struct document *d) {
	rv_event(s->events, RV_INFO, "attempt",
			 RV_FIELDS(rv_field_int("round", (int64_t)d->round), rv_field_int("attempt", d->attempt),
					   rv_field_int("participants", d->n_members)),
			 "round %" PRIu64 ": averaging among %u worker%s (attempt %u)", d->round, d->n_members,
			 d->n_members == 1 ? "" : "s", d->attempt);
}

static struct line_counts line_counts_of(const struct session *s) {
	struct peers_traffic t = peers_total(meshlink_peers(s->mesh));
	return (struct line_counts){.tx_bytes = t.tx_bytes, .rx_bytes = t.rx_bytes};
}

static void begin_reduce(struct session *s, int64_t now_us) {
	const struct document *d = round_document(s->round);
	struct rv_errtext et = {0};
	RV_FAILPOINT("reduce.start");
	MEAN_DUMP_CONTRIBUTION(s, d->round);
	enum rv_err e = allreduce_start(s->reduce, now_us, d, trainer_encoded(s->trainer), &et);
	if (e != RV_OK) {
		session_fail(s, e, et.text);
		return;
	}
	session_trace_attempt(s, d);
	s->sums.reduce_started_us = now_us;
	s->sums.reduce_compute_us = session_compute_us(s, now_us);
	line_meter_begin(&s->line, now_us, line_counts_of(s));
	s->told_attempt = 0;
	s->told_suspects = 0;
	meshlink_announce_links(s->mesh, now_us);
	attempt_event(s, d);
}

static void resume_reduce(struct session *s, int64_t now_us) {
	const struct document *d = round_document(s->round);
	s->told_attempt = 0;
	s->told_suspects = 0;
	RV_FAILPOINT("reduce.resume");
	allreduce_restart(s->reduce, now_us, d);
	session_trace_attempt(s, d);
	meshlink_announce_links(s->mesh, now_us); /* a member may be new in this roster */
	attempt_event(s, d);
}

static void count_reduce_time(struct session *s, int64_t now_us) {
	struct session_sums *sums = &s->sums;
	if (sums->reduce_started_us == 0)
		return;
	int64_t all_us = now_us - sums->reduce_started_us;
	int64_t compute_us = session_compute_us(s, now_us) - sums->reduce_compute_us;
	sums->reduce_us += all_us;
	sums->overlap_us += compute_us < all_us ? compute_us : all_us;
	sums->reduce_started_us = 0;
}

static void tell_suspects(struct session *s, int64_t now_us) {
	char members[MEMBER_SET_TEXT_BYTES];
	uint64_t suspects = allreduce_suspects(s->reduce);
	uint32_t attempt = allreduce_attempt(s->reduce);
	if (suspects == s->told_suspects)
		return;
	s->told_suspects = suspects;
	round_on_suspects(s->round, now_us, attempt, suspects);
	member_set_text(allreduce_silent_members(s->reduce), members);
	rv_event(s->events, RV_WARN, "suspects",
			 RV_FIELDS(rv_field_int("round", (int64_t)allreduce_round(s->reduce)), rv_field_int("attempt", attempt),
					   rv_field_int("set", (int64_t)suspects), rv_field_str("members", members)),
			 suspects != 0 ? "round %" PRIu64 ": nothing comes from %s" : "round %" PRIu64 ": %s is silent any more",
			 allreduce_round(s->reduce), members);
	session_note_missing(s);
}

void session_poll_reduce(struct session *s, int64_t now_us) {
	if (!allreduce_running(s->reduce))
		return;
	allreduce_tick(s->reduce, now_us);
	line_meter_sample(&s->line, now_us, line_counts_of(s));
	tell_suspects(s, now_us);
	if (!allreduce_done(s->reduce) || s->told_attempt == allreduce_attempt(s->reduce))
		return;
	s->told_attempt = allreduce_attempt(s->reduce);
	count_reduce_time(s, now_us);
	RV_FAILPOINT("reduce.done");
	round_on_reduced(s->round, now_us, allreduce_round(s->reduce), s->told_attempt);
}

static void end_reduce(struct session *s, int64_t now_us) {
	count_reduce_time(s, now_us);
	s->sums.exchanged = allreduce_info(s->reduce);
	s->sums.attempts = allreduce_attempt(s->reduce);
	line_meter_end(&s->line, now_us, line_counts_of(s));
	allreduce_stop(s->reduce);
}

/* ---- state from peers -----------------------------------------------------------------------------------------------
 */

static struct state_id id_of(const struct round_action *a) {
	return (struct state_id){.kind = a->type == ROUND_FETCH_BASE ? STATE_KIND_BASE : STATE_KIND_LOG,
							 .round = a->round,
							 .expect = a->expect,
							 .chain = a->chain};
}

static const char *name_of(const struct state_id *id) {
	return id->kind == STATE_KIND_BASE ? "state" : "log";
}

static void fetch_event(struct session *s, const struct state_id *id) {
	rv_event(s->events, RV_INFO, "fetch",
			 RV_FIELDS(rv_field_str("what", id->kind == STATE_KIND_BASE ? "base" : "log"),
					   rv_field_int("round", (int64_t)id->round)),
			 "catching up: the %s of round %" PRIu64 " from other members", name_of(id), id->round);
}

static void on_fetch_failed(void *ctx, const struct state_id *id, enum rv_err e, const char *text) {
	struct session *s = ctx;
	rv_event(s->events, RV_ERROR, "fetch_failed",
			 RV_FIELDS(rv_field_int("round", (int64_t)id->round), rv_field_str("error", rv_err_name(e))),
			 "the %s of round %" PRIu64 " cannot be fetched now: %s", name_of(id), id->round, text);
	round_on_fetched(s->round, rv_clock_monotonic_us(),
					 id->kind == STATE_KIND_BASE ? ROUND_FETCH_BASE : ROUND_FETCH_LOG, id->round, false);
}

static void fetch(struct session *s, int64_t now_us, const struct round_action *a) {
	struct rv_errtext et = {0};
	struct round_action next;
	struct state_id ids[FETCH_FILES] = {id_of(a)};
	int n = 1;
	if (a->made_here) {
		trainer_install(s->trainer, a->round, NULL, &a->expect);
		return;
	}
	if (round_fetch_after(s->round, a, &next))
		ids[n++] = id_of(&next);
	fetch_event(s, &ids[0]);
	RV_FAILPOINT("fetch.begin");
	enum rv_err e = fetcher_want(s->fetcher, now_us, ids, n, &et);
	if (e != RV_OK)
		on_fetch_failed(s, &ids[0], e, et.text);
}

static void cancel_fetch(struct session *s, int64_t now_us) {
	(void)fetcher_want(s->fetcher, now_us, NULL, 0, NULL); /* wanting nothing needs no memory */
}

/* Once, not for every file. */
static void tell_in_memory(struct session *s, const char *warning) {
	bool before = s->fetched_in_memory;
	s->fetched_in_memory = warning[0] != '\0';
	if (s->fetched_in_memory && !before)
		rv_event(s->events, RV_WARN, "storage", RV_FIELDS(rv_field_str("error", "io")),
				 "%s: fetched state is kept in memory; after a restart it is fetched again", warning);
	if (!s->fetched_in_memory && before)
		rv_event(s->events, RV_INFO, "storage_back", RV_FIELDS(rv_field_str("what", "fetched")),
				 "fetched state is stored again");
}

/* A log entry waits to be applied, a base is installed at once. */
static void on_file(void *ctx, const struct state_id *id, struct state_file *base, struct blob *log,
					const char *warning) {
	struct session *s = ctx;
	RV_FAILPOINT("fetch.done");
	tell_in_memory(s, warning);
	if (id->kind == STATE_KIND_BASE) {
		trainer_install(s->trainer, id->round, base, &id->expect);
		return;
	}
	donor_forget(s->donor, STATE_KIND_LOG, id->round);
	if (id->round == round_round(s->round))
		session_keep_reduced(s, log, 0);
	blob_unref(log);
	round_on_fetched(s->round, rv_clock_monotonic_us(), ROUND_FETCH_LOG, id->round, true);
}

static void on_bad_donor(void *ctx, uint32_t member, const struct state_id *id, const char *text) {
	struct session *s = ctx;
	rv_event(s->events, RV_WARN, "bad_donor",
			 RV_FIELDS(rv_field_int("member", member), rv_field_int("round", (int64_t)id->round)),
			 "%s; going on with others", text);
}

/* Theta is what the run starts from, and the outer state is that before the first step. */
enum rv_err session_check_initial(void *ctx, const struct rv_hash *manifest, struct rv_errtext *et) {
	const struct session *s = ctx;
	const struct global_config *g = &s->store.cfg;
	char hex[2 * RV_HASH_BYTES + 1];
	struct rv_hash weights = weights_hash_of(g->n, manifest);
	rv_hex_encode(weights.b, RV_HASH_BYTES, hex);
	if (strcmp(hex, s->member.config.init_hash) != 0)
		return rv_fail(et, RV_E_CORRUPT, "these are not the weights that the run starts from");
	return global_check_initial(g, manifest, et);
}

const struct fetcher_owner session_fetcher_owner = {
	.on_file = on_file, .on_failed = on_fetch_failed, .on_bad_donor = on_bad_donor};

/* ---- the trainer's answers ------------------------------------------------------------------------------------------
 */

/* Theta_local was of no use, and is theta again. A machine whose every attempt is so does not help the run. */
static void on_spoiled(struct session *s, uint64_t round, const char *text) {
	enum { SPOILED_MAX = 3 };
	struct rv_errtext et = {0};
	s->spoiled++;
	rv_event(s->events, RV_ERROR, "spoiled",
			 RV_FIELDS(rv_field_int("round", (int64_t)round), rv_field_int("in_a_row", s->spoiled)),
			 "nothing of round %" PRIu64 " is given to the others, it is trained again from the run's state: %s", round,
			 text);
	if (s->spoiled < SPOILED_MAX)
		return;
	enum rv_err e = rv_fail(&et, RV_E_RANGE, "round %" PRIu64 " came to nothing %d times in a row: %.400s", round,
							s->spoiled, text);
	session_give_up(s, rv_clock_monotonic_us(), e, et.text);
}

static void on_trained(void *ctx, uint64_t round, uint64_t steps_done, uint64_t tokens, enum rv_err e,
					   const char *text) {
	struct session *s = ctx;
	bool again = e == RV_E_RANGE && round == round_round(s->round);
	if (e != RV_OK && !again) {
		session_fail(s, e, text);
		return;
	}
	if (again) {
		session_trace_end(s, "batches were refused");
		round_on_spoiled(s->round, rv_clock_monotonic_us(), round);
		on_spoiled(s, round, text);
		return;
	}
	session_trace_trained(s, round, steps_done);
	round_on_trained(s->round, rv_clock_monotonic_us(), round, steps_done, tokens);
	struct trainer_progress p = trainer_progress(s->trainer);
	if (p.time_up && p.round == round)
		round_on_time_up(s->round, round);
}

static void on_encoded(void *ctx, uint64_t round, enum rv_err e, const char *text, struct trainer_snapshot *snapshot) {
	struct session *s = ctx;
	if (e != RV_OK)
		on_spoiled(s, round, text);
	else
		s->spoiled = 0;
	s->sums.own_tokens = trainer_progress(s->trainer).tokens;
	session_trace_encoded(s, round, e == RV_OK, snapshot && snapshot->replica_bytes);
	if (snapshot)
		session_save_snapshot(s, snapshot);
	round_on_encoded(s->round, rv_clock_monotonic_us(), round, e == RV_OK);
}

static void on_applied(void *ctx, uint64_t round, enum rv_err e, const char *text, struct trainer_snapshot *snapshot) {
	struct session *s = ctx;
	const struct global_state *g = trainer_global(s->trainer);
	if (e == RV_OK) {
		session_trace_applied(s, round, snapshot && snapshot->replica_bytes);
		session_write_round(s, round);
	} else {
		rv_event(s->events, RV_ERROR, "apply_failed", RV_FIELDS(rv_field_int("round", (int64_t)round)), "%s", text);
	}
	round_on_applied(s->round, rv_clock_monotonic_us(), round, &g->chain, e == RV_OK);
	if (e == RV_OK)
		session_save_snapshot(s, snapshot);
	const int64_t every = session_eval_every(s);
	bool due = every > 0 && (round + 1) % (uint64_t)every == 0;
	if (e == RV_OK && due && s->sums.first_participant && round + 1 < (uint64_t)s->member.config.rounds)
		trainer_evaluate(s->trainer, (uint64_t)s->opt->eval_tokens, false);
}

static void on_installed(void *ctx, uint64_t round, enum rv_err e, const char *text) {
	struct session *s = ctx;
	if (e != RV_OK)
		rv_event(s->events, RV_ERROR, "install_failed", RV_FIELDS(rv_field_int("round", (int64_t)round)), "%s", text);
	else
		rv_event(s->events, RV_INFO, "installed", RV_FIELDS(rv_field_int("round", (int64_t)round)),
				 "holds the state of round %" PRIu64 ", verified", round);
	if (e == RV_OK) {
		session_trace_installed(s, round);
		s->history++;
		s->lacks_state = false;
		blob_unref(s->reduced); /* they may be of the history that this state replaces */
		s->reduced = NULL;
		donor_forget_all(s->donor);
	}
	session_installed(s, round, e == RV_OK);
	round_on_fetched(s->round, rv_clock_monotonic_us(), ROUND_FETCH_BASE, round, e == RV_OK);
}

static void on_evaluated(void *ctx, uint64_t round, bool last, double loss, enum rv_err e, const char *text) {
	struct session *s = ctx;
	if (e == RV_OK)
		session_write_eval(s, round, last, loss);
	else if (e != RV_E_CANCELLED)
		rv_event(s->events, RV_WARN, "eval_failed",
				 RV_FIELDS(rv_field_int("round", (int64_t)round), rv_field_str("error", rv_err_name(e))),
				 "held-out loss after round %" PRIu64 " could not be measured: %s", round, text);
	if (s->state == SESSION_EXPORTING)
		session_export(s);
}

static void on_saved(void *ctx, struct trainer_snapshot *snapshot) {
	struct session *s = ctx;
	session_trace_saved(s, snapshot);
	session_save_snapshot(s, snapshot);
	s->saved = true;
}

static void on_base(void *ctx, struct trainer_snapshot *snapshot) {
	session_save_snapshot(ctx, snapshot);
}

static void keep_base(struct session *s, const struct round_action *a) {
	rv_event(s->events, RV_WARN, "standstill", RV_FIELDS(rv_field_int("round", (int64_t)a->round)),
			 "the run stands still at round %" PRIu64
			 ": too few workers have its state, and those that fetch it have not got it for a while: writing it anew",
			 a->round);
	trainer_copy_base(s->trainer);
}

const struct trainer_owner session_trainer_owner = {.on_trained = on_trained,
													.on_encoded = on_encoded,
													.on_applied = on_applied,
													.on_installed = on_installed,
													.on_evaluated = on_evaluated,
													.on_saved = on_saved,
													.on_base = on_base};

/* ---- actions --------------------------------------------------------------------------------------------------------
 */

/* Steps ahead are never written (docs/decisions/0019), and what a contribution leaves to say is known from the replica
 * that it was made from (0020): a restart goes on from the replica as it was encoded, or as it was when a base was
 * made. There are never more than these two with the storage thread: the vote waits for the first. */
static void encode(struct session *s, const struct round_action *a) {
	trainer_encode(s->trainer, a->round, session_saves_encodings(&s->member.config));
}

static void apply(struct session *s, const struct round_action *a) {
	bool base = checkpoint_is_due(&s->store.schedule, a->round + 1);
	bool has_its_places = session_saves_encodings(&s->member.config) && a->participated;
	RV_ASSERT(s->reduced != NULL);
	RV_FAILPOINT("commit.seen");
	s->participated = a->participated;
	s->applied_attempt = s->reduced_attempt;
	s->kept = a->late == LATE_KEEP && !a->participated;
	struct trainer_apply rq = {.round = a->round,
							   .reduced = s->reduced,
							   .digest = a->expect,
							   .adopt = s->kept           ? TRAINER_KEEP
										: s->participated ? TRAINER_ADOPT
														  : TRAINER_DISCARD,
							   .want_base = base,
							   .want_replica = has_its_places ? base : !s->replica_write};
	trainer_apply(s->trainer, &rq);
}

static void finish(struct session *s) {
	s->state = SESSION_EXPORTING;
	meshlink_expect_ends(s->mesh);
	if (!round_end_verified(s->round))
		rv_event(
			s->events, RV_WARN, "unverified", RV_FIELDS(rv_field_int("round", (int64_t)round_round(s->round))),
			"the run is done, but no majority of the last workers has vouched for its end state: compare `state` in "
			"the last lines of their metrics");
	if (s->sums.first_participant && s->opt->eval_every != 0)
		trainer_evaluate(s->trainer, (uint64_t)s->opt->eval_tokens, true);
	else
		session_export(s);
}

static void perform(struct session *s, int64_t now_us, const struct round_action *a) {
	switch (a->type) {
	case ROUND_TRAIN:
		trainer_train(s->trainer, a->round, a->from, a->steps);
		break;
	case ROUND_ENCODE:
		encode(s, a);
		break;
	case ROUND_REDUCE_START:
		begin_reduce(s, now_us);
		break;
	case ROUND_REDUCE_RESTART:
		resume_reduce(s, now_us);
		break;
	case ROUND_REDUCE_STOP:
		end_reduce(s, now_us);
		break;
	case ROUND_PERSIST:
		session_persist(s);
		break;
	case ROUND_APPLY:
		apply(s, a);
		break;
	case ROUND_FETCH_BASE:
	case ROUND_FETCH_LOG:
		fetch(s, now_us, a);
		break;
	case ROUND_CANCEL_FETCH:
		cancel_fetch(s, now_us);
		break;
	case ROUND_KEEP_BASE:
		keep_base(s, a);
		break;
	case ROUND_PROBE:
		session_probe_storage(s);
		break;
	case ROUND_ROLLBACK:
		session_roll_back(s, now_us, a);
		break;
	case ROUND_FINISH:
		finish(s);
		break;
	case ROUND_NONE:
		break;
	}
}

/* Who has finished and is still there, for its weights or for others, does nothing any more but to follow a rollback.
 * */
static bool may_act(const struct session *s) {
	bool finished = s->state == SESSION_EXPORTING || s->state == SESSION_LINGERING;
	bool going = s->state == SESSION_STOPPING && s->exported && !s->told_to_stop && s->next_epoch == 0;
	return s->state == SESSION_RUNNING || finished || going;
}

void session_actions(struct session *s, int64_t now_us) {
	struct round_action a;
	while (may_act(s) && round_next_action(s->round, now_us, &a))
		perform(s, now_us, &a);
}

static void tell_starving(struct session *s) {
	bool starves = round_starves(s->round);
	const struct document *d = round_document(s->round);
	if (starves && !s->told_starving)
		rv_event(
			s->events, RV_WARN, "starving",
			RV_FIELDS(rv_field_int("round", (int64_t)round_round(s->round)),
					  rv_field_int("run_round", d ? (int64_t)d->round : 0)),
			"this worker falls behind faster than it catches up: the run has moved on by more rounds than its line can "
			"fetch, so it starts again from a later base. What helps: a faster line or a higher --max-down here, more "
			"members to fetch from (a higher --max-donate of theirs), or a run with larger steps-per-round (fewer "
			"bytes per second) or base-every");
	s->told_starving |= starves;
}

void session_poll_fetch(struct session *s, int64_t now_us) {
	fetcher_tick(s->fetcher, now_us);
	if (fetcher_nowhere(s->fetcher))
		round_on_lacking(s->round, now_us);
	tell_starving(s);
}
