/* replay.c: every worker's events are done as soon as the shared state that they need is there; a
 * participant's wait at its contribution until the round is averaged. */
#include "lab/worker_files/replay.h"
#include "lab/worker_files/replay_means.h"
#include "lab/worker_files/replay_reads.h"

#include "base/assert.h"
#include "base/round_number.h"
#include "lab/methods/averaging.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A replica's saved state. */
struct replica_bytes {
	uint8_t *at; /* NULL: none */
	size_t n;
};

/* The copy of a replica from which its worker starts next. */
struct replica_copy {
	uint64_t round, steps;
	struct participant_progress progress;
	bool behind; /* as in struct player */
	struct replica_bytes state;
};

struct player {
	const struct trace_record *trace;
	struct participant *p; /* the run's */
	int at;                /* the next event */
	int starts;            /* the next event in which a process starts from a saved replica; trace->n: none */
	bool
		behind; /* theta_local is of a round that is gone by now: a later event replaces it, or it cannot be followed */
	struct replica_bytes fresh; /* the replica as a new process makes it */
	struct replica_copy copy;
	struct replay_stream stream; /* in a run that leases its text */
};

struct committed {
	const struct trace_roster *rows[NET_MAX_ROWS]; /* NULL: not known */
	/* All of them; of several rows one after the other, `whole`. */
	const struct trace_roster *roster;
	struct trace_roster whole;
	struct merge_layout layout;
	struct rv_hash chain;
	uint64_t attempt; /* that counted; 0: the members that applied it had fetched it */
};

struct replay {
	struct lab_run *run;
	struct player players[LAB_MAX_WORKERS];
	int n;
	struct committed *rounds;
	uint64_t n_rounds;
	float *before; /* theta of the round before */
	struct replay_means means;
	struct replay_reads reads;
	int64_t left_out; /* member whose contributions are measured; -1: none */
	bool measured;    /* `without` is of the last round */
	struct replay_without without;
	bool streams; /* what a round exchanges is not all, or not taken over whole */
};

/* ---- what the traces agree on ---- */

static int player_of(const struct replay *p, uint32_t member) {
	for (int i = 0; i < p->n; i++)
		if (p->players[i].trace->member == member)
			return i;
	return -1;
}

static bool same_roster(const struct trace_roster *a, const struct trace_roster *b) {
	bool same = a->n == b->n;
	for (int i = 0; same && i < a->n; i++)
		same = a->members[i].member == b->members[i].member && a->members[i].weight == b->members[i].weight &&
			   a->members[i].boot == b->members[i].boot && a->members[i].codec == b->members[i].codec &&
			   a->members[i].part == b->members[i].part;
	return same;
}

static enum rv_err note_apply(struct replay *p, const struct trace_event *e, uint32_t member, struct rv_errtext *et) {
	struct committed *c = &p->rounds[e->round];
	bool known = !rv_hash_is_zero(&c->chain);
	if (known && !rv_hash_equal(&c->chain, &e->chain))
		return rv_fail(et, RV_E_INVALID, "round %" PRIu64 ": member %u recorded another state hash than the others",
					   round_number(e->round), member);
	c->chain = e->chain;
	if (e->attempt > c->attempt) /* of two with the same bits, that of the latest processes */
		c->attempt = e->attempt;
	return RV_OK;
}

/* Several attempts at a round may have come to a result: only the participants of the one that
 * counted matter. */
static enum rv_err note_vote(struct replay *p, const struct trace_event *e, uint32_t member, struct rv_errtext *et) {
	struct committed *c = e->round < p->n_rounds ? &p->rounds[e->round] : NULL;
	if (!c || (c->attempt > 0 && c->attempt != e->attempt))
		return RV_OK;
	const struct trace_roster **known = &c->rows[e->roster->row];
	if (*known && !same_roster(*known, e->roster) && c->attempt > 0)
		return rv_fail(et, RV_E_INVALID,
					   "round %" PRIu64 ", attempt %" PRIu64 ": member %u recorded other participants than the others",
					   round_number(e->round), e->attempt, member);
	if (*known && !same_roster(*known, e->roster))
		return rv_fail(et, RV_E_NOTFOUND,
					   "round %" PRIu64 ": attempts %u and %" PRIu64
					   " had other participants, and no trace that is here says "
					   "which of them counted: give the directories of all workers",
					   round_number(e->round), (*known)->attempt, e->attempt);
	*known = e->roster;
	return RV_OK;
}

/* Returns the roster of any row of the round; NULL: none is known. */
static const struct trace_roster *some_row(const struct committed *c) {
	for (int row = 0; row < NET_MAX_ROWS; row++)
		if (c->rows[row])
			return c->rows[row];
	return NULL;
}

/* Adds a row to the whole roster. */
static enum rv_err join_row(struct committed *c, const struct trace_roster *first, int row, struct rv_errtext *et) {
	const struct trace_roster *r = c->rows[row];
	if (!r || r->n_rows != first->n_rows || memcmp(r->row_weights, first->row_weights, sizeof r->row_weights) != 0)
		return rv_fail(et, RV_E_NOTFOUND,
					   "round %" PRIu64 ": no trace that is here says who took part in row %d of %d: give the "
					   "directories of all workers",
					   round_number(first->round), row, first->n_rows);
	if (c->whole.n + r->n > NET_MAX_ROW)
		return rv_fail(et, RV_E_UNSUPPORTED, "round %" PRIu64 ": more than %d participants cannot be replayed",
					   round_number(first->round), (int)NET_MAX_ROW);
	memcpy(&c->whole.members[c->whole.n], r->members, (size_t)r->n * sizeof r->members[0]);
	c->whole.n += r->n;
	c->layout.length[c->layout.n_rows++] = r->n;
	return RV_OK;
}

/* Joins the rows of a round to its roster. */
static enum rv_err join_rows(struct committed *c, struct rv_errtext *et) {
	const struct trace_roster *first = some_row(c);
	if (!first)
		return RV_OK;
	if (first->n_rows == 1) {
		c->roster = first;
		c->layout = (struct merge_layout){.n_rows = 1, .length = {first->n}};
		return RV_OK;
	}
	c->whole = (struct trace_roster){.round = first->round, .attempt = first->attempt, .n_rows = 1};
	for (int row = 0; row < first->n_rows; row++)
		if (first->row_weights[row] > 0)
			RV_TRY(join_row(c, first, row, et));
	c->roster = &c->whole;
	return RV_OK;
}

/* Checks that each contribution was sent by a codec of the run's, and that each chunk has one. */
static enum rv_err check_forms(const struct replay *p, const struct trace_roster *r, int n_rows,
							   struct rv_errtext *et) {
	int whole = 0;
	for (int i = 0; i < r->n; i++) {
		whole += r->members[i].part == 0;
		if (!global_sent_as(&p->run->global.cfg, r->members[i].codec) || r->members[i].part == 1)
			return rv_fail(et, RV_E_INVALID, "round %" PRIu64 ": member %u sent by codec %u, part %u: impossible",
						   round_number(r->round), r->members[i].member, r->members[i].codec, r->members[i].part);
	}
	if (whole == 0 || (n_rows > 1 && whole < r->n))
		return rv_fail(et, RV_E_INVALID, "round %" PRIu64 ": %d of %d participants contributed to all chunks",
					   round_number(r->round), whole, r->n);
	return RV_OK;
}

static enum rv_err check_round(struct replay *p, uint64_t round, struct rv_errtext *et) {
	RV_TRY(join_rows(&p->rounds[round], et));
	const struct trace_roster *r = p->rounds[round].roster;
	if (!r)
		return rv_fail(et, RV_E_NOTFOUND,
					   "round %" PRIu64
					   ": no trace that is here says who took part: give the directories of all workers",
					   round_number(round));
	RV_TRY(check_forms(p, r, p->rounds[round].layout.n_rows, et));
	for (int i = 0; i < r->n; i++)
		if (player_of(p, r->members[i].member) < 0)
			return rv_fail(et, RV_E_NOTFOUND, "round %" PRIu64 ": member %u took part, and its trace is not here",
						   round_number(round), r->members[i].member);
	return RV_OK;
}

/* What was taken back was trained on all the same: moments and data positions are not those of one
 * line of rounds. */
static enum rv_err refuse_rollback(struct replay *p, const struct trace_event *e, uint32_t member,
								   struct rv_errtext *et) {
	(void)p;
	return rv_fail(et, RV_E_UNSUPPORTED,
				   "member %u: the operator rolled the run back to round %" PRIu64
				   ": a run of which rounds were taken back cannot be replayed",
				   member, e->round);
}

static enum rv_err note_round(struct replay *p, const struct trace_event *e, uint32_t member, struct rv_errtext *et) {
	(void)member;
	(void)et;
	p->n_rounds = e->round >= p->n_rounds ? e->round + 1 : p->n_rounds;
	return RV_OK;
}

typedef enum rv_err (*note_fn)(struct replay *p, const struct trace_event *e, uint32_t member, struct rv_errtext *et);

static enum rv_err note_all(struct replay *p, enum trace_kind kind, note_fn note, struct rv_errtext *et) {
	for (int i = 0; i < p->n; i++) {
		const struct trace_record *t = p->players[i].trace;
		for (int k = 0; k < t->n; k++)
			if (t->events[k].kind == kind)
				RV_TRY(note(p, &t->events[k], t->member, et));
	}
	return RV_OK;
}

static enum rv_err collect_rounds(struct replay *p, struct rv_errtext *et) {
	RV_TRY(note_all(p, TRACE_ROLLBACK, refuse_rollback, et));
	RV_TRY(note_all(p, TRACE_APPLY, note_round, et));
	if (p->n_rounds > (uint64_t)p->run->cfg.run.rounds)
		return rv_fail(et, RV_E_INVALID, "%" PRIu64 " rounds in a run of %" PRId64, p->n_rounds,
					   p->run->cfg.run.rounds);
	p->rounds = calloc(p->n_rounds ? p->n_rounds : 1, sizeof *p->rounds);
	if (!p->rounds)
		return rv_fail(et, RV_E_NOMEM, "no memory for %" PRIu64 " rounds", p->n_rounds);
	RV_TRY(note_all(p, TRACE_APPLY, note_apply, et));
	RV_TRY(note_all(p, TRACE_VOTE, note_vote, et));
	for (uint64_t round = 0; round < p->n_rounds; round++)
		RV_TRY(check_round(p, round, et));
	return RV_OK;
}

/* ---- events ---- */

/* Saves a replica in the memory of `s`, which may be of another size: moments change their kind
 * with savings. */
static enum rv_err save_into(struct replica *r, struct replica_bytes *s, struct rv_errtext *et) {
	const size_t n = replica_state_bytes(r);
	uint8_t *at = s->n == n ? s->at : realloc(s->at, n);
	if (!at)
		return rv_fail(et, RV_E_NOMEM, "no memory to keep a replica of %zu bytes", n);
	*s = (struct replica_bytes){at, n};
	replica_save(r, at);
	return RV_OK;
}

/* Returns the next start from a saved replica; NULL: none comes. */
static const struct trace_event *next_start(struct player *w) {
	const struct trace_record *t = w->trace;
	while (w->starts < t->n &&
		   (w->starts < w->at || t->events[w->starts].kind != TRACE_START || !t->events[w->starts].saved))
		w->starts++;
	return w->starts < t->n ? &t->events[w->starts] : NULL;
}

static bool is_copy(const struct trace_event *start, uint64_t round, uint64_t steps) {
	return start->from == round && start->to == steps;
}

/* Keeps the copy if the worker starts from it next. Any number may be newer than the one on disk: a
 * full disk refuses them, and a process may be killed before its first one is written. */
static enum rv_err take_copy(struct player *w, uint64_t round, uint64_t steps, struct rv_errtext *et) {
	const struct trace_event *start = next_start(w);
	if (!start || !is_copy(start, round, steps))
		return RV_OK;
	w->copy.round = round;
	w->copy.steps = steps;
	w->copy.progress = participant_progress(w->p);
	w->copy.behind = w->behind;
	return save_into(w->p->replica, &w->copy.state, et);
}

static const struct replica_copy *saved_replica(const struct player *w, const struct trace_event *e) {
	return w->copy.state.at && is_copy(e, w->copy.round, w->copy.steps) ? &w->copy : NULL;
}

static enum rv_err cannot_follow(const struct player *w, struct rv_errtext *et, const char *why) {
	return rv_fail(et, RV_E_PROTOCOL, "member %u, event %d of its trace: %s", w->trace->member, w->at + 1, why);
}

/* Sets *out to the shared state of the present round or the one before, as far as a participant
 * reads it. For another round, which is no longer known, theta is the present one; then returns
 * false. */
static bool state_of(const struct replay *p, uint64_t round, struct global_state *out) {
	uint64_t now = p->run->global.round;
	*out = p->run->global;
	out->round = round;
	if (round + 1 == now)
		out->theta = p->before;
	return round == now || round + 1 == now;
}

static void start_over(const struct replay *p, struct player *w, uint64_t round) {
	struct global_state then;
	w->behind = !state_of(p, round, &then);
	participant_start_over(w->p, &then);
}

/* Reports whether a replica of `has` computes what one of `s` does: with slices of the weights
 * (ZeRO-3) as without (ZeRO-2). */
static bool same_bits(const struct savings *has, const struct savings *s, const struct run_config *run) {
	return has->micro_batch == savings_micro_batch(s, run) && has->logits_rows == s->logits_rows &&
		   has->recompute == s->recompute && has->moments == s->moments && has->offload == s->offload &&
		   (has->zero == ZERO_MOMENTS) == (s->zero == ZERO_MOMENTS);
}

/* Makes the replica one with the savings of the process that starts. */
static enum rv_err follow_savings(struct player *w, const struct run_config *run, const struct savings *s,
								  struct rv_errtext *et) {
	struct savings has = replica_savings(w->p->replica);
	if (same_bits(&has, s, run))
		return RV_OK;
	RV_TRY(replica_remake(w->p->replica, s, et));
	has = replica_savings(w->p->replica);
	if (same_bits(&has, s, run))
		return RV_OK;
	return rv_fail(et, RV_E_NOMEM,
				   "member %u, event %d of its trace: it computed %d rows of logits at a time (0: all), and here is "
				   "memory for %d: stop other users of the GPU",
				   w->trace->member, w->at + 1, s->logits_rows, has.logits_rows);
}

static enum rv_err do_start(struct replay *p, struct player *w, const struct trace_event *e, struct rv_errtext *et) {
	const struct replica_copy *saved = e->saved ? saved_replica(w, e) : NULL;
	if (e->saved && !saved)
		return cannot_follow(w, et, "it started from a replica that its trace does not tell of");
	const struct replica_bytes *state = saved ? &saved->state : &w->fresh;
	RV_TRY(follow_savings(w, &p->run->cfg.run, &e->savings, et));
	RV_TRY(replica_load(w->p->replica, state->at, state->n, et));
	struct global_state then;
	bool known = state_of(p, e->round, &then);
	w->behind = e->exact ? saved && saved->behind : !known;
	struct participant_progress progress = saved ? saved->progress : (struct participant_progress){0};
	progress.steps_done = e->to;
	participant_resume(w->p, &then, e->exact, &progress);
	return RV_OK;
}

static bool has_leases(const struct replay *p) {
	return p->run->cfg.run.data_hash[0] != '\0';
}

/* Lets the replica read the positions that the trace tells, under the next numbers. */
static enum rv_err begin_reads(struct replay *p, struct player *w, const struct trace_event *e, struct rv_errtext *et) {
	if (!has_leases(p))
		return RV_OK;
	if (!e->reads)
		return cannot_follow(w, et, "it does not tell which sequences it read");
	struct reading reads = *e->reads;
	reads.first = replica_next(w->p->replica);
	replica_read(w->p->replica, &reads, reads.first);
	return replay_stream_put(&w->stream, &reads, et);
}

static enum rv_err end_reads(struct replay *p, struct player *w, uint64_t before, const struct trace_event *e,
							 struct rv_errtext *et) {
	if (!has_leases(p) || replica_next(w->p->replica) - before == reading_end(e->reads))
		return RV_OK;
	return cannot_follow(w, et, "its steps read another number of sequences: other batches were refused");
}

static enum rv_err do_train(struct replay *p, struct player *w, const struct trace_event *e, struct rv_errtext *et) {
	struct global_state then;
	bool ahead = e->round != w->p->round, known = state_of(p, w->p->round, &then);
	if (e->to > (uint64_t)p->run->cfg.run.steps_per_round || e->round > w->p->round + 1)
		return cannot_follow(w, et, "more steps than a round has");
	if (e->from != (ahead ? w->p->ahead : w->p->steps_done) || e->round < w->p->round)
		return cannot_follow(w, et, "steps before these are missing");
	if (w->behind)
		return cannot_follow(w, et, "it trained from a state that the others had left behind");
	if (!known && p->run->cfg.run.prox_mu > 0)
		return cannot_follow(w, et, "it was pulled to weights that the others had left behind");
	if (!known && ahead && eager_is_on(&w->p->eager) && !w->p->gave_away)
		return cannot_follow(w, et, "it went ahead of a state that the others had left behind");
	const uint64_t before = replica_next(w->p->replica);
	RV_TRY(begin_reads(p, w, e, et));
	participant_begin(w->p, &then, e->round);
	for (uint64_t i = e->from; i < e->to; i++) {
		struct step_stats stats;
		if (atomic_load(&p->run->stop))
			return rv_fail(et, RV_E_CANCELLED, "stopped");
		RV_TRY(participant_step(w->p, &then, e->round, &stats, et));
		atomic_fetch_add(&p->run->steps_done, 1);
	}
	return end_reads(p, w, before, e, et);
}

/* Returns how the participant at `place` sent its contribution. */
static struct contribution_form form_at(const struct trace_roster *roster, int place) {
	return (struct contribution_form){roster->members[place].member, roster->members[place].codec,
									  roster->members[place].part};
}

/* Says how `w` sent its contribution to the round, as its committed roster has it: an earlier
 * process may have sent it. */
static void take_form(const struct replay *p, struct player *w, uint64_t round) {
	const struct trace_roster *r = p->rounds[round].roster;
	for (int i = 0; i < r->n; i++) {
		const struct contribution_form form = form_at(r, i);
		if (form.member == w->trace->member)
			participant_send_as(w->p, &form);
	}
}

static enum rv_err do_apply(struct replay *p, struct player *w, const struct trace_event *e, struct rv_errtext *et) {
	struct global_state then;
	bool known = state_of(p, e->round + 1, &then), now = e->round + 1 == p->run->global.round && !w->behind;
	bool moved_on = w->p->gave_away && (e->keep || e->participated);
	bool lost = w->behind && e->participated && !contribution_is_plain(&w->p->contribution);
	if (e->round != w->p->round)
		return cannot_follow(w, et, "it applied a round whose state it did not hold");
	if (lost || (!now && !moved_on && (e->keep || (e->participated && p->streams))))
		return cannot_follow(w, et, "it applied a round that the others had left behind, and kept of its own");
	if (!moved_on && !e->keep)
		w->behind = !known;
	if (e->participated) {
		take_form(p, w, e->round);
		participant_commit(w->p, &then);
	}
	(void)participant_adopt(w->p, &then, p->before,
							e->keep           ? PARTICIPANT_KEEP
							: e->participated ? PARTICIPANT_ADOPT
											  : PARTICIPANT_DISCARD);
	return e->copy ? take_copy(w, e->round + 1, w->p->steps_done, et) : RV_OK;
}

/* Encodes in a run with residuals what a process encoded, whether or not it became the
 * contribution: the commit makes the residual what this process's encoding left, or none
 * (outer/contribution.h). */
static enum rv_err encode_again(const struct replay *p, struct player *w, uint64_t round, struct rv_errtext *et) {
	struct global_state then;
	if (contribution_is_plain(&w->p->contribution) || w->behind || !state_of(p, round, &then))
		return RV_OK;
	if (w->p->round != round || w->p->gave_away)
		return cannot_follow(w, et, "it encoded a round whose state it did not hold");
	RV_TRY(participant_encode(w->p, &then, et));
	outer_device_unpin(&w->p->device);
	return RV_OK;
}

static enum rv_err do_encode(struct replay *p, struct player *w, const struct trace_event *e, struct rv_errtext *et) {
	struct rv_errtext why = {0};
	struct global_state then;
	if (e->ok) {
		RV_TRY(encode_again(p, w, e->round, et));
		return e->copy ? take_copy(w, e->round, w->p->steps_done, et) : RV_OK;
	}
	if (!state_of(p, e->round, &then))
		return cannot_follow(w, et, "it encoded a round that the others had left behind");
	w->behind = false;
	participant_spoiled(w->p, &then, &why);
	return RV_OK;
}

/* Could it be done with the shared state as it is? */
static bool can_do(const struct replay *p, const struct trace_event *e) {
	uint64_t now = p->run->global.round;
	return e->kind == TRACE_APPLY                                                              ? e->round < now
		   : e->kind == TRACE_INSTALL || e->kind == TRACE_START || e->kind == TRACE_START_OVER ? e->round <= now
																							   : true;
}

static enum rv_err do_event(struct replay *p, struct player *w, const struct trace_event *e, struct rv_errtext *et) {
	switch (e->kind) {
	case TRACE_START:
		return do_start(p, w, e, et);
	case TRACE_TRAIN:
		return do_train(p, w, e, et);
	case TRACE_ENCODE:
		return do_encode(p, w, e, et);
	case TRACE_APPLY:
		return do_apply(p, w, e, et);
	case TRACE_INSTALL:
	case TRACE_START_OVER:
		start_over(p, w, e->round);
		return RV_OK;
	case TRACE_SAVE:
		return take_copy(w, e->round, e->to, et);
	case TRACE_VOTE:
	case TRACE_OWNS:
		return RV_OK; /* what it says is known */
	case TRACE_ROLLBACK:
		break; /* refused before */
	}
	RV_UNREACHABLE("kind of a trace's event");
}

/* ---- a round ---- */

/* Is this the contribution to the round under way? */
static bool is_contribution(const struct trace_event *e, uint64_t round, uint64_t boot) {
	return e->kind == TRACE_ENCODE && e->ok && e->round == round && (boot == 0 || e->boot == boot);
}

/* To its contribution, or, of whom takes no part, as far as the shared state lets it. */
static enum rv_err advance(struct replay *p, struct player *w, bool takes_part, uint64_t boot, struct rv_errtext *et) {
	uint64_t round = p->run->global.round;
	for (; w->at < w->trace->n; w->at++) {
		const struct trace_event *e = &w->trace->events[w->at];
		bool contribution = takes_part && is_contribution(e, round, boot);
		if (!can_do(p, e))
			break;
		RV_TRY(do_event(p, w, e, et));
		if (contribution) {
			w->at++;
			return RV_OK;
		}
	}
	return takes_part ? cannot_follow(w, et, "its contribution to the round is not in it") : RV_OK;
}

static enum rv_err begin_means(struct replay *p, const struct trace_roster *roster, struct rv_errtext *et) {
	const struct trace_record *traces[LAB_MAX_WORKERS];
	for (int i = 0; i < p->n; i++)
		traces[i] = p->players[i].trace;
	return replay_means_begin(&p->means, p->run, traces, p->n, roster, et);
}

/* Measures the round without the member that is left out, if it takes part beside others. */
static enum rv_err measure(struct replay *p, const struct committed *c, const struct averaging_given *given,
						   struct rv_errtext *et) {
	p->measured = false;
	for (int i = 0; i < given->n && given->n > 1; i++) {
		if ((int64_t)given->forms[i].member != p->left_out)
			continue;
		if (c->layout.n_rows > 1)
			return rv_fail(et, RV_E_UNSUPPORTED, "--without: round %" PRIu64 " was reduced in rows",
						   round_number(p->run->global.round));
		p->measured = true;
		return replay_without(p->run, given, i, &p->without, et);
	}
	return RV_OK;
}

static enum rv_err contribute(struct replay *p, const struct committed *c, struct rv_errtext *et) {
	const struct trace_roster *roster = c->roster;
	struct averaging_given given = {.n = roster->n};
	for (int i = 0; i < roster->n; i++) {
		struct player *w = &p->players[player_of(p, roster->members[i].member)];
		RV_TRY(advance(p, w, true, roster->members[i].boot, et));
		if (w->p->round != p->run->global.round || w->p->gave_away)
			return cannot_follow(w, et, "it encoded a round whose state it did not hold");
		if (contribution_is_plain(&w->p->contribution)) /* else done */
			RV_TRY(participant_encode(w->p, &p->run->global, et));
		outer_device_unpin(&w->p->device);
		if (has_leases(p))
			RV_TRY(replay_reads_add(&p->reads, &w->stream, w->p->first, w->p->sequences, et));
		given.vectors[i] = w->p->encoded;
		given.weights[i] = roster->members[i].weight;
		given.forms[i] = form_at(roster, i);
	}
	RV_TRY(begin_means(p, roster, et));
	RV_TRY(averaging_reduce_given(p->run, &c->layout, &given, et));
	replay_means_commit(&p->means, p->run);
	return measure(p, c, &given, et);
}

enum rv_err replay_round(struct replay *p, struct rv_errtext *et) {
	struct lab_run *r = p->run;
	uint64_t round = r->global.round;
	const struct committed *c = &p->rounds[round];
	RV_ASSERT(round < p->n_rounds);
	RV_TRY(contribute(p, c, et));
	for (int i = 0; i < p->n; i++) /* a participant may have started again since, from a round that is gone soon */
		RV_TRY(advance(p, &p->players[i], false, 0, et));
	memcpy(p->before, r->global.theta, r->global.cfg.n * sizeof *p->before);
	RV_TRY(averaging_step(r, et));
	r->rounds_done++;
	if (!rv_hash_equal(&r->global.chain, &c->chain))
		return rv_fail(et, RV_E_PROTOCOL,
					   "round %" PRIu64 ": the state hash is not the recorded one: this machine computes "
					   "other bits (another instruction set or number of threads?), or the text differs",
					   round_number(round));
	return RV_OK;
}

/* ---- making one ---- */

static enum rv_err make_player(struct replay *p, int i, const struct trace_record *trace, struct rv_errtext *et) {
	struct player *w = &p->players[i];
	if (player_of(p, trace->member) >= 0)
		return rv_fail(et, RV_E_INVALID, "two traces are of member %u", trace->member);
	*w = (struct player){.trace = trace, .p = &p->run->participants[i]};
	RV_TRY(save_into(w->p->replica, &w->fresh, et));
	p->n++;
	return RV_OK;
}

enum rv_err replay_new(struct lab_run *run, const struct trace_record *traces, int n, struct replay **out,
					   struct rv_errtext *et) {
	RV_ASSERT(n == run->n_replicas);
	struct replay *p = calloc(1, sizeof *p);
	if (!p)
		return rv_fail(et, RV_E_NOMEM, "no memory for a replay");
	p->run = run;
	p->left_out = -1;
	p->streams = run->cfg.run.fragments > 1 || run->cfg.run.mix > 0;
	p->before = malloc(run->global.cfg.n * sizeof *p->before);
	enum rv_err e = p->before ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory for a replay");
	if (e == RV_OK)
		e = replay_means_init(&p->means, run, et);
	for (int i = 0; e == RV_OK && i < n; i++)
		e = make_player(p, i, &traces[i], et);
	if (e == RV_OK)
		e = collect_rounds(p, et);
	if (e != RV_OK) {
		replay_free(p);
		return e;
	}
	*out = p;
	return RV_OK;
}

void replay_free(struct replay *p) {
	if (!p)
		return;
	for (int i = 0; i < LAB_MAX_WORKERS; i++) {
		free(p->players[i].fresh.at);
		replay_stream_release(&p->players[i].stream);
		free(p->players[i].copy.state.at);
	}
	replay_means_release(&p->means);
	replay_reads_release(&p->reads);
	free(p->rounds);
	free(p->before);
	free(p);
}

enum rv_err replay_leave_out(struct replay *p, uint32_t member, struct rv_errtext *et) {
	RV_TRY(replay_without_check(&p->run->cfg.run, et));
	if (player_of(p, member) < 0)
		return rv_fail(et, RV_E_NOTFOUND, "--without: no trace that is here is of member %u", member);
	p->left_out = member;
	return RV_OK;
}

bool replay_left_out(const struct replay *p, struct replay_without *out) {
	if (p->measured)
		*out = p->without;
	return p->measured;
}

uint64_t replay_rounds(const struct replay *p) {
	return p->n_rounds;
}

enum rv_err replay_count(struct replay *p, struct replay_counted *out, struct rv_errtext *et) {
	*out = (struct replay_counted){0};
	return has_leases(p) ? replay_reads_count(&p->reads, dataset_train_sequences(p->run->data, 0), out, et) : RV_OK;
}
