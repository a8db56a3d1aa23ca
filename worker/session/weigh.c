/* weigh.c: `rivulet-worker weigh`: measures, beside this worker's own training, what the
 * contribution of one member did to the last rounds (weigh.h has the phases). */
#include "worker/session/weigh.h"

#include "base/assert.h"
#include "base/round_number.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	REST = 3,                       /* training gets so many times what a part of a measurement took, before the next */
	TEXT_US = 10 * 60 * 1000 * 1000 /* for the held-out text */
};
static const int64_t look_us = 100 * 1000; /* while the held-out text is missing */

static bool is_under_way(const struct session_weigh *w) {
	return w->phase > WEIGH_IDLE && w->phase < WEIGH_DONE;
}

bool session_weighs(const struct session *s) {
	return s->weigh && is_under_way(s->weigh);
}

static void end(struct session *s, enum weigh_phase phase) {
	struct session_weigh *w = s->weigh;
	RV_ASSERT(!w->asked);
	gather_stop(w->gather);
	weigh_release(w);
	w->phase = phase;
	s->publish_us = 0;
	session_want_heldout(s);
}

/* `e`: what w->why says. */
static void fail(struct session *s, enum rv_err e) {
	s->weigh->err = e;
	end(s, WEIGH_FAILED);
	weigh_log_failed(s);
}

static void fail_stopped(struct session *s) {
	fail(s, rv_fail(&s->weigh->why, RV_E_CANCELLED, "it was stopped"));
}

static void post(struct session *s, enum weigh_phase phase) {
	struct session_weigh *w = s->weigh;
	w->phase = phase;
	w->job_err = RV_OK;
	w->job.run = phase == WEIGH_PREPARING ? weigh_prepare : weigh_step;
	jobs_post(w->jobs, &w->job);
}

/* ---- contributions ---- */

static bool is_busy(void *ctx, uint32_t member) {
	return auditor_awaits(((struct session *)ctx)->audit.auditor, member);
}

static enum rv_err take(void *ctx, const struct auditor_case *c, struct rv_errtext *et) {
	const struct session *s = ctx;
	const struct session_weigh *w = s->weigh;
	const struct weigh_round *r = &w->rounds[w->at];
	const struct weighing of = {
		.g = &s->store.cfg, .round = r->round, .member = w->member, .leaves = r->leaves, .without = r->without};
	return weighing_take(&of, c, et);
}

static int place_of(const struct auditor_roster *r, uint32_t member) {
	for (int i = 0; i < r->n; i++)
		if (r->members[i].member == member)
			return i;
	return -1;
}

static void leave_out(struct session *s, struct weigh_round *r, const struct rv_errtext *why) {
	r->left_out = true;
	r->why = *why;
	weigh_log_left_out(s, r);
}

/* Leaves a round out without asking anybody, if a member that gave nothing for another one had part
 * in it. Returns false if there is none. */
static bool leave_out_unasked(struct session *s, struct weigh_round *r) {
	const struct session_weigh *w = s->weigh;
	for (int i = 0; i < w->n_silent; i++) {
		struct rv_errtext why;
		if (place_of(&r->roster, w->silent[i]) < 0)
			continue;
		(void)rv_fail(&why, RV_E_TIMEOUT,
					  "member %u had part in it, and did not give its contribution to an earlier round", w->silent[i]);
		leave_out(s, r, &why);
		return true;
	}
	return false;
}

/* The outer steps begin, if contributions to one round at least have come. */
static void end_fetching(struct session *s) {
	struct session_weigh *w = s->weigh;
	const struct weigh_round *left_out = NULL;
	for (int i = 0; i < w->n; i++) {
		if (weigh_counts(&w->rounds[i])) {
			w->at = 0;
			post(s, WEIGH_STEPPING);
			return;
		}
		if (!left_out && w->rounds[i].left_out)
			left_out = &w->rounds[i];
	}
	RV_ASSERT(left_out != NULL);
	w->why = left_out->why;
	fail(s, RV_E_TIMEOUT);
}

/* Fetches the next round from w->at on in which the member has part. Members give twice as much in
 * an hour as w->budget before they refuse, so a worker that was restarted does not spend what its
 * audits need. */
static void fetch_next(struct session *s) {
	struct session_weigh *w = s->weigh;
	const int64_t now_us = rv_clock_monotonic_us();
	w->phase = WEIGH_FETCHING;
	while (w->at < w->n && (!w->rounds[w->at].has_part || leave_out_unasked(s, &w->rounds[w->at])))
		w->at++;
	if (w->at == w->n) {
		end_fetching(s);
		return;
	}
	donor_budget_charge(&w->budget, NET_NO_MEMBER, 1);
	const enum rv_err e = gather_begin(w->gather, now_us, &w->rounds[w->at].roster, &w->why);
	if (e != RV_OK)
		fail(s, e);
}

/* The contributions to a round have not come, or are not what was committed. */
static void give_round_up(struct session *s, enum rv_err e) {
	struct session_weigh *w = s->weigh;
	const uint32_t blamed = gather_blamed(w->gather);
	if (e == RV_E_NOMEM) {
		fail(s, e);
		return;
	}
	if (blamed != NET_NO_MEMBER)
		w->silent[w->n_silent++] = blamed;
	leave_out(s, &w->rounds[w->at++], &w->why);
	fetch_next(s);
}

static void turn_fetching(struct session *s, int64_t now_us) {
	struct session_weigh *w = s->weigh;
	enum rv_err e;
	gather_tick(w->gather, now_us);
	switch (gather_state(w->gather, &e, &w->why)) {
	case GATHER_DONE:
		w->at++;
		fetch_next(s);
		break;
	case GATHER_FAILED:
		give_round_up(s, e);
		break;
	case GATHER_IDLE:
	case GATHER_FETCHING:
		break;
	}
}

/* ---- losses ---- */

static void begin_measuring(struct session *s) {
	struct session_weigh *w = s->weigh;
	w->phase = WEIGH_MEASURING;
	w->measures_without = false;
	w->done = 0;
	w->again_us = rv_clock_monotonic_us();
	w->until_us = w->again_us + TEXT_US;
	session_want_heldout(s);
}

/* Goes on with the next round. */
static void next_round(struct session *s) {
	struct session_weigh *w = s->weigh;
	w->rounds[w->at].measured = true;
	if (weigh_counts(&w->rounds[w->at]))
		weigh_log_round(s, &w->rounds[w->at]);
	if (++w->at == w->n)
		end(s, WEIGH_DONE);
	else
		post(s, WEIGH_STEPPING);
}

static uint64_t wanted_tokens(const struct session *s) {
	const uint64_t most = WEIGH_SEQUENCES * (uint64_t)s->member.config.context,
				   own_most = (uint64_t)s->opt->eval_tokens;
	return own_most > 0 && own_most < most ? own_most : most;
}

uint64_t weigh_sequences(const struct session *s) {
	const struct session_weigh *w = s->weigh;
	return w->all > 0 ? w->all : wanted_tokens(s) / (uint64_t)s->member.config.context;
}

/* Asks the trainer for the next part, if the text that it reads is here. */
static void ask_trainer(struct session *s, int64_t now_us) {
	struct session_weigh *w = s->weigh;
	const bool has_text = !s->text || text_has_later(s->text);
	if (now_us >= w->until_us) {
		fail(s, rv_fail(&w->why, RV_E_TIMEOUT, "the held-out text did not come within %d minutes",
						TEXT_US / (60 * 1000 * 1000)));
		return;
	}
	if (!has_text) {
		w->again_us = now_us + look_us;
		return;
	}
	w->slice = (struct trainer_slice){.theta = w->measures_without ? w->without.theta : w->with.theta,
									  .max_tokens = wanted_tokens(s),
									  .next = w->done};
	w->asked = true;
	w->asked_us = now_us;
	trainer_offer(s->trainer, &w->slice);
}

/* Takes the losses of a part. */
static void take_losses(struct session *s) {
	struct session_weigh *w = s->weigh;
	const uint64_t all = w->slice.all;
	if (all < 2) {
		fail(s, rv_fail(&w->why, RV_E_RANGE, "one held-out sequence is too few to compare losses"));
		return;
	}
	RV_ASSERT(all <= WEIGH_SEQUENCES && w->done + w->slice.n <= all && w->slice.n > 0);
	w->all = all;
	memcpy(&w->losses[w->measures_without][w->done], w->slice.losses, w->slice.n * sizeof w->slice.losses[0]);
	w->done += w->slice.n;
	if (w->done < all)
		return;
	w->done = 0;
	if (!w->measures_without) {
		w->measures_without = true;
		return;
	}
	w->rounds[w->at].found = weighing_compare(w->losses[false], w->losses[true], all);
	next_round(s);
}

void session_on_slice(void *session, const struct trainer_slice *slice) {
	struct session *s = session;
	struct session_weigh *w = s->weigh;
	const int64_t now_us = rv_clock_monotonic_us();
	RV_ASSERT(w->asked && w->phase == WEIGH_MEASURING);
	w->asked = false;
	w->again_us = now_us + REST * (now_us - w->asked_us);
	if (w->stopped) {
		fail_stopped(s);
	} else if (slice->err == RV_OK) {
		w->until_us = w->again_us + TEXT_US;
		take_losses(s);
	} else if (slice->err != RV_E_CANCELLED) {
		w->why = slice->text;
		fail(s, slice->err);
	} /* else text is missing, and training goes on */
}

/* ---- turns ---- */

static void on_job(struct job *j) {
	struct session_weigh *w = JOB_OWNER(j, struct session_weigh, job);
	struct session *s = w->s;
	if (w->stopped) {
		fail_stopped(s);
	} else if (w->job_err != RV_OK) {
		w->why = w->job_why;
		fail(s, w->job_err);
	} else if (w->phase == WEIGH_PREPARING) {
		w->at = 0;
		fetch_next(s);
	} else if (weigh_counts(&w->rounds[w->at])) {
		begin_measuring(s);
	} else {
		next_round(s);
	}
}

void session_turn_weigh(struct session *s, int64_t now_us) {
	struct session_weigh *w = s->weigh;
	if (!w || !w->jobs)
		return;
	jobs_reap(w->jobs);
	const bool waits = w->phase == WEIGH_FETCHING || (w->phase == WEIGH_MEASURING && !w->asked);
	if (waits && session_core_phase(s->core) != SESSION_RUNNING)
		fail(s, rv_fail(&w->why, RV_E_CANCELLED, "this worker ends"));
	else if (w->phase == WEIGH_FETCHING)
		turn_fetching(s, now_us);
	else if (waits && now_us >= w->again_us && !session_core_is_paused(s->core))
		ask_trainer(s, now_us);
}

int64_t session_weigh_deadline_us(const struct session *s) {
	const struct session_weigh *w = s->weigh;
	if (w && w->phase == WEIGH_FETCHING)
		return gather_deadline_us(w->gather);
	const bool waits = w && w->phase == WEIGH_MEASURING && !w->asked && !session_core_is_paused(s->core);
	return waits ? w->again_us : INT64_MAX;
}

void session_weigh_roster(struct session *s, const struct document *d) {
	if (s->weigh && d->phase == RUN_REDUCE)
		auditor_roster_of(d, &s->weigh->rosters[d->round % AUDITOR_ROUNDS]);
}

/* ---- the command ---- */

/* Fills in a committed round. Returns false if this worker has not seen its roster, or documents no
 * longer list its digest. */
static bool note_round(const struct session *s, uint64_t round, uint32_t member, struct weigh_round *out) {
	const struct auditor_roster *r = &s->weigh->rosters[round % AUDITOR_ROUNDS];
	const struct document *d = round_document(session_round(s));
	const struct rv_hash *digest = d ? document_digest(d, round) : NULL;
	if (r->round != round || r->n_chunks == 0 || !digest)
		return false;
	*out = (struct weigh_round){.round = round, .roster = *r, .has_part = place_of(r, member) >= 0, .digest = *digest};
	return true;
}

/* Lists the last rounds that can be weighed, at most `most`. */
static void list_rounds(const struct session *s, struct session_weigh *w, uint64_t most) {
	const uint64_t end = round_round(session_round(s));
	w->n = 0;
	for (uint64_t first = end > most ? end - most : 0; first < end; first++) {
		if (note_round(s, first, w->member, &w->rounds[w->n]))
			w->n++;
		else
			w->n = 0; /* only rounds in a row */
	}
}

static enum rv_err check_rounds(const struct session_weigh *w, struct rv_errtext *et) {
	bool has_part = false;
	if (w->n == 0)
		return rv_fail(et, RV_E_NOTFOUND, "this worker has not seen a round yet that was committed: wait for one");
	const uint64_t first = w->rounds[0].round, last = w->rounds[w->n - 1].round;
	for (int i = 0; i < w->n; i++) {
		const struct weigh_round *r = &w->rounds[i];
		has_part |= r->has_part;
		if (r->roster.n == 0)
			return rv_fail(et, RV_E_UNSUPPORTED,
						   "round %" PRIu64 " had more participants than row-size: a contribution goes into the sum of "
						   "its row there, which nobody keeps",
						   round_number(r->round));
		if (r->has_part && r->roster.n == 1)
			return rv_fail(et, RV_E_RANGE, "member %u was alone in round %" PRIu64, w->member, round_number(r->round));
	}
	if (has_part)
		return RV_OK;
	return rv_fail(et, RV_E_NOTFOUND,
				   "member %u had no part in rounds %" PRIu64 " to %" PRIu64
				   "; `rivulet-coordinator status` lists members and their numbers",
				   w->member, round_number(first), round_number(last));
}

static enum rv_err check_memory(const struct session *s, const struct session_weigh *w, struct rv_errtext *et) {
	const struct memory_room now = memory_room_now(trainer_device_choice(s->trainer));
	const size_t plan = memory_plan_host(&s->memory), most = (size_t)s->opt->max_memory;
	size_t room = now.host, needs = 0;
	for (int i = 0; i < w->n; i++) {
		const size_t bytes = weighing_bytes(&s->store.cfg, w->n, w->rounds[i].roster.n);
		needs = bytes > needs ? bytes : needs;
	}
	if (most > 0 && room > (most > plan ? most - plan : 0))
		room = most > plan ? most - plan : 0;
	if (needs <= room)
		return RV_OK;
	return rv_fail(et, RV_E_NOMEM,
				   "weighing %d rounds takes %zu MiB beside training, %zu MiB are left%s: weigh fewer rounds, or use a "
				   "computer with more memory",
				   w->n, needs >> 20, room >> 20, most > 0 ? " (max-memory)" : "");
}

static enum rv_err check_budget(struct session_weigh *w, int64_t now_us, struct rv_errtext *et) {
	const int64_t left = donor_budget_left(&w->budget, now_us, 0, NET_NO_MEMBER);
	if (left >= w->n)
		return RV_OK;
	return rv_fail(et, RV_E_BUSY,
				   "members give their contributions to %d rounds an hour to one that weighs, and %d are left of "
				   "it: wait, or use --rounds",
				   (int)w->budget.whole_bytes, (int)left);
}

static void wake(void *ctx) {
	http_client_wakeup(((struct session *)ctx)->http);
}

static enum rv_err check(struct session *s, uint64_t rounds, struct rv_errtext *et) {
	if (!session_is_up(s) || session_core_phase(s->core) != SESSION_RUNNING)
		return rv_fail(et, RV_E_BUSY, "this worker does not take part in rounds now");
	RV_TRY(weighing_check_run(&s->member.config, et));
	if (session_core_is_paused(s->core))
		return rv_fail(et, RV_E_BUSY, "this worker is paused: it has no links to other members until it is resumed");
	if (is_under_way(s->weigh))
		return rv_fail(et, RV_E_BUSY, "member %u is being weighed: one at a time", s->weigh->member);
	if (rounds > (uint64_t)s->member.config.audit_window)
		return rv_fail(et, RV_E_RANGE,
					   "%" PRIu64 " rounds: members keep their contributions to the last %" PRId64 " (audit-window)",
					   rounds, s->member.config.audit_window);
	return RV_OK;
}

enum rv_err session_weigh_member(struct session *s, uint32_t member, uint64_t rounds, uint64_t ticket,
								 struct rv_errtext *et) {
	struct session_weigh *w = s->weigh;
	RV_TRY(check(s, rounds, et));
	w->member = member;
	w->ticket = ticket;
	w->phase = WEIGH_IDLE;
	list_rounds(s, w, rounds > 0 ? rounds : (uint64_t)s->member.config.audit_window);
	RV_TRY(check_rounds(w, et));
	RV_TRY(check_memory(s, w, et));
	if (!w->jobs)
		RV_TRY(jobs_new("weigher", wake, s, &w->jobs, et));
	RV_TRY(check_budget(w, rv_clock_monotonic_us(), et));
	w->s = s;
	w->n_silent = 0;
	w->stopped = false;
	w->all = 0;
	atomic_store(&w->stop, false);
	w->job = (struct job){.done = on_job};
	post(s, WEIGH_PREPARING);
	return RV_OK;
}

enum rv_err session_weigh_stop(struct session *s, uint64_t ticket, struct rv_errtext *et) {
	struct session_weigh *w = s->weigh;
	if (!session_weighs(s) || (ticket != 0 && ticket != w->ticket))
		return rv_fail(et, RV_E_NOTFOUND, "nothing is being weighed");
	w->stopped = true;
	atomic_store(&w->stop, true); /* of a job; fail_stopped comes when it ends */
	if (w->phase == WEIGH_FETCHING || (w->phase == WEIGH_MEASURING && !w->asked))
		fail_stopped(s);
	return RV_OK;
}

/* ---- life ---- */

enum rv_err session_open_weigh(struct session *s, uint64_t run_tag, int64_t patience_us, struct rv_errtext *et) {
	const struct gather_ops ops = {.ctx = s,
								   .chunk_bytes = session_chunk_bytes,
								   .own = session_own_piece,
								   .linked = session_is_linked,
								   .is_busy = is_busy,
								   .take = take};
	s->weigh = calloc(1, sizeof *s->weigh);
	if (!s->weigh)
		return rv_fail(et, RV_E_NOMEM, "no memory to weigh members");
	s->weigh->budget = (struct donor_budget){.whole_bytes = session_weigh_rounds(&s->member.config)};
	return gather_new(s->member.member, run_tag, patience_us, &ops, &s->weigh->gather, et);
}

int64_t session_weigh_rounds(const struct run_config *run) {
	return 2 * run->audit_window;
}

struct gather *session_gather(const struct session *s) {
	return s->weigh ? s->weigh->gather : NULL;
}

void session_stop_weigh(struct session *s) {
	if (!s->weigh)
		return;
	atomic_store(&s->weigh->stop, true);
	jobs_free(s->weigh->jobs);
	s->weigh->jobs = NULL;
}

void session_close_weigh(struct session *s) {
	if (!s->weigh)
		return;
	weigh_release(s->weigh);
	gather_free(s->weigh->gather);
	free(s->weigh);
	s->weigh = NULL;
}
