/* stats.c: statistics of each committed round, and sentences for the log and the dashboard. Decides
 * nothing. */
#include "coordinator/service/internal.h"
#include "coordinator/service/robust.h"

#include "base/capped.h"
#include "base/clock.h"
#include "base/round_number.h"
#include "base/run_audits.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

/* ---- committed rounds ---- */

/* Returns the work of the member's process since the last commit. */
static struct mark since(const struct mark *m, const struct report *rep) {
	struct mark d = {
		.boot = rep->boot, .tx_bytes = rep->tx_bytes, .compute_us = rep->compute_us, .reduce_us = rep->reduce_us};
	if (!report_same_process(m->boot, rep->boot) || rep->tx_bytes < m->tx_bytes || rep->compute_us < m->compute_us ||
		rep->reduce_us < m->reduce_us)
		return d;
	d.tx_bytes -= m->tx_bytes;
	d.compute_us -= m->compute_us;
	d.reduce_us -= m->reduce_us;
	return d;
}

/* Figures that a round's participants report, each its own: medians hide one that lies. */
struct reported {
	int n, n_losses;
	double loss[NET_MAX_ROSTER], tx_bytes[NET_MAX_ROSTER], compute_us[NET_MAX_ROSTER], reduce_us[NET_MAX_ROSTER];
};

static void put_reported(struct reported *r, const struct report *rep, const struct mark *d) {
	r->tx_bytes[r->n] = (double)d->tx_bytes;
	r->compute_us[r->n] = (double)d->compute_us;
	r->reduce_us[r->n++] = (double)d->reduce_us;
	if (rep->loss > 0)
		r->loss[r->n_losses++] = (double)rep->loss;
}

static void put_medians(const struct reported *r, struct commit_stats *c) {
	if (r->n == 0)
		return;
	c->tx_bytes = (uint64_t)robust_median(r->tx_bytes, r->n);
	c->compute_us = (uint64_t)robust_median(r->compute_us, r->n);
	c->reduce_us = (uint64_t)robust_median(r->reduce_us, r->n);
	c->loss = robust_median(r->loss, r->n_losses);
}

static uint64_t lower(uint64_t v, uint64_t most) {
	return v < most ? v : most;
}

struct commit_stats service_commit_stats(const struct service *s, const struct core_record *rec, int64_t now_us) {
	struct commit_stats c = {.round = rec->round,
							 .attempt = rec->attempt,
							 .participants = rec->n_members,
							 .wall_us = rv_clock_wall_us(),
							 .duration_us = now_us - s->last_commit_us};
	struct reported all;
	all.n = all.n_losses = 0;
	for (int i = 0; i < rec->n_members; i++) {
		const struct core_member_view v = core_view(s->core, (uint32_t)core_find(s->core, rec->members[i]));
		const struct report *rep = v.last;
		struct mark d = since(&s->members[v.slot].mark, rep);
		c.tokens = rv_add_capped(c.tokens, lower(rec->tokens[i], s->most_tokens));
		c.tokens_per_s += (double)rep->tokens_per_s;
		put_reported(&all, rep, &d);
	}
	put_medians(&all, &c);
	return c;
}

static void write_line(struct service *s, const struct commit_stats *c) {
	if (s->rounds == NULL)
		return;
	/* Best effort: the store has it too. */
	(void)fprintf(s->rounds,
				  "{\"round\":%" PRIu64 ",\"attempt\":%u,\"participants\":%u,\"tokens\":%" PRIu64
				  ",\"total_tokens\":%" PRIu64 ",\"loss\":%.9g,\"tokens_per_s\":%.9g,\"tx_bytes\":%" PRIu64
				  ",\"compute_us\":%" PRIu64 ",\"reduce_us\":%" PRIu64 ",\"duration_us\":%" PRId64
				  ",\"wall_us\":%" PRId64 "}\n",
				  c->round, c->attempt, c->participants, c->tokens, s->total_tokens, c->loss, c->tokens_per_s,
				  c->tx_bytes, c->compute_us, c->reduce_us, c->duration_us, c->wall_us);
	(void)fflush(s->rounds);
}

void service_note_commit(struct service *s, const struct commit_stats *c, int64_t now_us) {
	for (int k = 0; k < core_here(s->core); k++) {
		const struct core_member_view v = core_view(s->core, core_nth(s->core, k));
		s->members[v.slot].mark = (struct mark){.boot = v.last->boot,
												.tx_bytes = v.last->tx_bytes,
												.compute_us = v.last->compute_us,
												.reduce_us = v.last->reduce_us};
	}
	if (s->n_history == SERVICE_HISTORY) {
		memmove(&s->history[0], &s->history[1], (SERVICE_HISTORY - 1) * sizeof s->history[0]);
		s->n_history--;
	}
	s->history[s->n_history++] = *c;
	s->total_tokens = rv_add_capped(s->total_tokens, c->tokens);
	s->rounds_here++;
	s->last_commit_us = now_us;
	write_line(s, c);
}

void service_note_rollback(struct service *s, const struct core_record *rec, int64_t now_us) {
	int lost = 0;
	while (s->n_history > 0 && s->history[s->n_history - 1].round >= rec->round) {
		const struct commit_stats *last = &s->history[--s->n_history];
		s->total_tokens -= lower(last->tokens, s->total_tokens);
		lost++;
	}
	s->rounds_here = 0; /* the pace is measured anew */
	service_rewind_heldout(s, rec->round);
	s->last_commit_us = now_us;
	if (s->rounds == NULL)
		return;
	(void)fprintf(s->rounds,
				  "{\"rollback\":%" PRIu64 ",\"to_round\":%" PRIu64 ",\"rounds_lost\":%d,\"wall_us\":%" PRId64 "}\n",
				  rec->term, rec->round, lost, rv_clock_wall_us());
	(void)fflush(s->rounds);
}

/* ---- news ---- */

void service_tell_operator(struct service *s, enum rv_level level, const char *name, const char *detail,
						   const char *fmt, ...) {
	struct news *n = &s->news[s->n_news++ % SERVICE_NEWS];
	va_list ap;
	n->wall_us = rv_clock_wall_us();
	n->level = level;
	va_start(ap, fmt);
	(void)vsnprintf(n->text, sizeof n->text, fmt, ap);
	va_end(ap);
	(void)snprintf(n->detail, sizeof n->detail, "%s", detail);
	if (s->cfg.events == NULL)
		return;
	if (detail[0] != '\0')
		rv_event(s->cfg.events, level, name, RV_FIELDS(rv_field_str("detail", detail)), "%s (%s)", n->text, detail);
	else
		rv_event(s->cfg.events, level, name, RV_NO_FIELDS, "%s", n->text);
}

static void tell_member(struct service *s, const struct core_record *rec) {
	const char *seen = candidates_seen(rec->candidates, rec->n_candidates);
	char short_key[IDENTITY_SHORT_BYTES], detail[sizeof short_key + NET_ADDR_BYTES + 16];
	identity_short(rec->key, short_key);
	(void)snprintf(detail, sizeof detail, "key %s%s%s", short_key, seen[0] ? ", " : "", seen);
	service_tell_operator(s, RV_INFO, "member", detail, "member %u%s%s%s%s%s", rec->member, rec->name[0] ? " '" : "",
						  rec->name, rec->name[0] ? "'" : "", rec->n_candidates > 0 ? " has a new address" : " joined",
						  rec->banned ? ", banned" : "");
}

/* Warns once if a half of a roster could go on without the other: the round that it commits may be
 * on few disks, and of few honest ones. */
static void tell_low_minimum(struct service *s, const struct core_record *rec) {
	enum { SEVERAL = 3 }; /* in a run of two either may go on alone */
	if (s->told_minimum || rec->n_members < SEVERAL || 2 * s->run.min_workers > (int64_t)rec->n_members)
		return;
	s->told_minimum = true;
	service_tell(s, RV_WARN, "min_workers",
				 "%u workers take part, and min-workers = %" PRId64
				 " lets a half of them go on alone: in the next run set it to more than half of the "
				 "workers that you expect",
				 rec->n_members, s->run.min_workers);
}

/* Warns of rounds that nobody audits, once until there is another one that is audited. */
static void tell_unaudited(struct service *s, const struct core_record *rec) {
	struct rv_errtext why;
	const bool lacks = rec->n_members > 0 && run_audits_lack(&s->run, rec->n_members, &why);
	if (lacks && !s->told_unaudited)
		service_tell(s, RV_WARN, "unaudited", "round %" PRIu64 ": %s", round_number(rec->round), why.text);
	s->told_unaudited = lacks || (s->told_unaudited && rec->n_members == 0);
}

static void tell_roster(struct service *s, const struct core_record *rec) {
	tell_low_minimum(s, rec);
	tell_unaudited(s, rec);
	if (rec->n_members == 0)
		service_tell(s, RV_WARN, "reopened", "round %" PRIu64 " is open again: too few participants are left",
					 round_number(rec->round));
	else
		service_tell(s, rec->attempt > 1 ? RV_WARN : RV_INFO, "roster",
					 "round %" PRIu64 ", attempt %u: %u workers average their gradients", round_number(rec->round),
					 rec->attempt, rec->n_members);
}

static void tell_commit(struct service *s, const struct core_record *rec) {
	const struct commit_stats *c = &s->history[s->n_history - 1];
	service_tell(s, RV_INFO, "commit",
				 "round %" PRIu64 " of %" PRId64 " committed: %u workers, loss %.4f, %" PRIu64 " tokens, %.1f s",
				 round_number(rec->round), s->run.rounds, c->participants, c->loss, c->tokens,
				 (double)c->duration_us / 1e6);
	if (rec->round + 1 == (uint64_t)s->run.rounds)
		service_tell(s, RV_INFO, "done", "the run is done: all %" PRId64 " rounds are committed", s->run.rounds);
}

static void tell_rollback(struct service *s, const struct core_record *rec) {
	service_tell(s, RV_WARN, "rollback",
				 "rolled back: the run continues from the state of round %" PRIu64 " (term %" PRIu64
				 "); later commits are given up, and workers that have them resync",
				 rec->round, rec->term);
}

static void tell_leases(struct service *s, const struct core_record *rec) {
	int granted = 0;
	for (int i = 0; i < rec->n_members; i++)
		granted += rec->lease_count[i] > 0;
	service_tell(s, RV_INFO, granted < rec->n_members ? "leases_free" : "leases",
				 "text: %d members are granted sequences anew; others will read what %d members held", granted,
				 rec->n_members - granted);
}

void service_tell_record(struct service *s, const struct core_record *rec) {
	switch (rec->type) {
	case CORE_MEMBER:
		tell_member(s, rec);
		break;
	case CORE_AWAY:
		service_tell(s, RV_INFO, "away", "member %u%s%s%s is long gone and makes room for another; it may return",
					 rec->member, rec->name[0] ? " '" : "", rec->name, rec->name[0] ? "'" : "");
		break;
	case CORE_ROSTER:
		tell_roster(s, rec);
		break;
	case CORE_COMMIT:
		tell_commit(s, rec);
		break;
	case CORE_LEASES:
		tell_leases(s, rec);
		break;
	case CORE_SNAPSHOT:
		service_tell(s, RV_INFO, "snapshot", "a majority vouches for the full state of round %" PRIu64, rec->round);
		break;
	case CORE_ROLLBACK:
		tell_rollback(s, rec);
		break;
	default:
		break;
	}
}

static const struct {
	enum rv_level level;
	const char *name, *text;
} sentences[CORE_EVENT_COUNT] = {
	[CORE_EVENT_ALIVE] = {RV_INFO, "alive", "reports"},
	[CORE_EVENT_DEAD] = {RV_WARN, "dead", "has not reported for too long: taken for dead"},
	[CORE_EVENT_SUSPECTED] = {RV_WARN, "suspected", "sends its peers nothing: taken for dead until it reports again"},
	[CORE_EVENT_OVERDUE] =
		{RV_ERROR, "overdue",
		 "did not finish by the deadline of the attempt, and accuses no member: the round continues without it"},
	[CORE_EVENT_EXCLUDED] = {RV_ERROR, "excluded",
							 "has cost several attempts: it takes part again from this round on, or if too few are "
							 "left without it; if it continues, `ban` it"},
	[CORE_EVENT_NEEDED] = {RV_WARN, "quarantine_broken",
						   "is in quarantine until this round, and takes part nevertheless: fewer than min-workers "
						   "others are ready, or the round was opened again. Invite more members"},
	[CORE_EVENT_IN_VAIN] =
		{RV_WARN, "in_vain",
		 "kept a round waiting until grace-ms was over and was not ready: no earlier round than this waits "
		 "for it; it takes part when it is ready in time"},
	[CORE_EVENT_RESTS] = {RV_INFO, "rests", "rests"},
	[CORE_EVENT_SENDS_LESS] = {RV_INFO, "sends_less", "sends less"},
	[CORE_EVENT_UNLIKE] =
		{RV_ERROR, "unlike",
		 "no majority of the participants has the same mean: an owner sends them different ones. Rosters "
		 "leave one member out in turn; the one that is out when the round is committed is under suspicion"},
	[CORE_EVENT_LOST] = {RV_WARN, "lost",
						 "no longer has what it took part in the all-reduce with: it was restarted or paused, or lost "
						 "its state; its contribution is lost"},
	[CORE_EVENT_DISAGREED] =
		{RV_ERROR, "disagreed",
		 "reduced to other bytes than the majority, perhaps by bad memory; it is left out of this round"},
	[CORE_EVENT_DIVERGED] = {RV_ERROR, "diverged",
							 "holds other weights than the majority, perhaps by bad memory or disk; it resyncs"},
	[CORE_EVENT_WRONG_CHAIN] = {RV_ERROR, "wrong_chain", "holds another state than the run's: it must resync"},
	[CORE_EVENT_WRONG_SIZE] =
		{RV_ERROR, "wrong_size",
		 "divides the model into another number of chunks than this run: left out; check its release"},
	[CORE_EVENT_NO_SNAPSHOT] = {RV_WARN, "no_snapshot",
								"the run waits: no majority has vouched for a full state for too many rounds"},
	[CORE_EVENT_SPLIT] =
		{RV_ERROR, "split",
		 "the workers hold different weights, and no majority shows which are right, perhaps by bad memory in one "
		 "of them; three or more workers could decide"},
	[CORE_EVENT_ABSENT] = {RV_ERROR, "state_absent", "no present member holds this state"},
	[CORE_EVENT_GONE] = {RV_ERROR, "state_lost", "all members that held this state came back without it"},
	[CORE_EVENT_HELD] = {RV_INFO, "state_held", "a member that holds this state is back"},
	[CORE_EVENT_SPOILED] =
		{RV_WARN, "spoiled",
		 "has no contribution yet: its outer gradient was not finite or too large; it trains the round "
		 "again; its log has the details"},
	[CORE_EVENT_TWICE] = {RV_WARN, "twice",
						  "runs as two processes, from a copied directory or machine: the one that started first is "
						  "asked to end; a second worker needs its own invite link"},
	[CORE_EVENT_MUTE] = {RV_WARN, "mute",
						 "did not finish when most others had, by its own fault or another's: they go on without its "
						 "vote, and no earlier round than this waits for it; it takes part as before"},
	[CORE_EVENT_LEASE] = {RV_WARN, "lease",
						  "has read text that is not leased to it, or counts more than its rounds have: its "
						  "contribution does not count"},
	[CORE_EVENT_TOKENS] = {RV_WARN, "tokens",
						   "reports more tokens than its steps can be: it counts with the most that is possible"},
	[CORE_EVENT_WITHHELD] = {RV_WARN, "withheld",
							 "does not give auditors its contribution, or gives another one than it committed to"},
	[CORE_EVENT_LEFT] = {RV_INFO, "left", "was stopped and has left: not waited for"},
};

static void tell_apart(struct service *s, const struct core_event *ev) {
	service_tell(
		s, RV_WARN, "apart",
		"members %u and %u do not reach each other (round %" PRIu64
		"): %u is left out for some rounds if enough others are ready, and is notified; to fix it, forward a port to "
		"one of them, or start it with --advertise HOST:PORT",
		ev->other, ev->member, round_number(ev->round), ev->member);
}

/* Logs an accusation that one of the two is to blame for: nothing says which. */
static void tell_at_odds(struct service *s, const struct core_event *ev) {
	service_tell(s, RV_WARN, "at_odds",
				 "member %u says that member %u sends it nothing, or other bytes than it has signed (round %" PRIu64
				 "); too few others say so, and either may be at fault: where there are others, two such are kept "
				 "from dealing with each other",
				 ev->member, ev->other, round_number(ev->round));
}

static void tell_unsteady(struct service *s, const struct core_event *ev) {
	service_tell(s, RV_WARN, "unsteady",
				 "member %u has gone in the middle of %u rounds (restarted, stopped, or without its state), "
				 "which cost the others an attempt each; it takes part again from round %" PRIu64
				 " on, or if too few are left without it",
				 ev->member, ev->other, round_number(ev->round));
}

/* Logs a member that claims to be ahead; one claim proves nothing. */
static void tell_ahead(struct service *s, const struct core_event *ev) {
	const int slot = core_find(s->core, ev->member);
	struct core_kept kept;
	core_kept(s->core, &kept);
	if (slot < 0)
		return; /* it is away since */
	const struct report *rep = core_view(s->core, (uint32_t)slot).last;
	service_tell(s, kept.ahead ? RV_ERROR : RV_WARN, "ahead",
				 "member %u claims to have the state of round %" PRIu64 " (term %" PRIu64
				 "), which this coordinator has not "
				 "reached: %s",
				 ev->member, rep->round, rep->term,
				 kept.ahead ? "most members do, so its store must be an old copy; stop it, and serve the newest one"
							: "not believed, as most members do not");
}

/* Returns true if the member only cannot vote, because of its disk; it continues to report. */
static bool left_for_its_disk(const struct service *s, const struct core_event *ev) {
	const int slot = core_find(s->core, ev->member);
	return ev->type == CORE_EVENT_LEFT && slot >= 0 &&
		   (core_view(s->core, (uint32_t)slot).last->storage & REPORT_STORAGE_ROUNDS);
}

enum { TELL_AT_ONCE = 30 };
#define TELL_EVERY_US         (10 * RV_US_PER_S)
#define TELL_REFUSED_EVERY_US (60 * RV_US_PER_S)

bool service_may_tell(struct service *s, uint32_t member, int64_t now_us) {
	const int slot = core_find(s->core, member);
	if (slot < 0)
		return true;
	bool *quiet = &s->members[slot].told_quiet;
	int64_t *until_us = &s->members[slot].told_until_us;
	if (*until_us <= now_us) {
		*until_us = now_us;
		*quiet = false;
	}
	if (*until_us - now_us < TELL_AT_ONCE * TELL_EVERY_US) {
		*until_us += TELL_EVERY_US;
		return true;
	}
	if (!*quiet)
		service_tell(s, RV_WARN, "quiet", "member %u causes many events: most of them are not shown for now", member);
	*quiet = true;
	return false;
}

void service_note_refused_join(struct service *s, int64_t now_us, const char *why) {
	s->joins_refused++;
	if (s->joins_refused_told > 0 && now_us - s->refused_told_us < TELL_REFUSED_EVERY_US)
		return;
	service_tell_operator(s, RV_WARN, "join_refused", why, "%" PRIu64 " joins were refused%s",
						  s->joins_refused - s->joins_refused_told,
						  s->joins_refused_told > 0 ? " since this was last logged" : "");
	s->joins_refused_told = s->joins_refused;
	s->refused_told_us = now_us;
}

/* Returns the number of the round of an event: where it names a state, that of the state. The open
 * round of a run that is done is its last one. */
static uint64_t number_of(const struct service *s, const struct core_event *ev) {
	const bool is_state = ev->type == CORE_EVENT_DIVERGED || ev->type == CORE_EVENT_WRONG_CHAIN ||
						  ev->type == CORE_EVENT_SPLIT || ev->type == CORE_EVENT_HELD;
	const uint64_t last = (uint64_t)s->run.rounds;
	return is_state || ev->round == last ? ev->round : round_number(ev->round);
}

void service_tell_events(struct service *s, int64_t now_us) {
	struct core_event ev;
	while (core_next_event(s->core, &ev)) {
		const char *text = sentences[ev.type].text;
		bool is_error = sentences[ev.type].level == RV_ERROR;
		if (ev.member != NET_NO_MEMBER && !is_error && !service_may_tell(s, ev.member, now_us))
			continue;
		if (ev.type == CORE_EVENT_ABSENT || ev.type == CORE_EVENT_GONE)
			service_tell_not_held(s, ev.round, text);
		else if (ev.type == CORE_EVENT_APART)
			tell_apart(s, &ev);
		else if (ev.type == CORE_EVENT_AT_ODDS)
			tell_at_odds(s, &ev);
		else if (ev.type == CORE_EVENT_UNSTEADY)
			tell_unsteady(s, &ev);
		else if (ev.type == CORE_EVENT_AHEAD)
			tell_ahead(s, &ev);
		else if (ev.type == CORE_EVENT_RESTS || ev.type == CORE_EVENT_SENDS_LESS)
			service_tell_slow(s, &ev);
		else if (service_tell_audit(s, &ev) || service_tell_evidence(s, &ev))
			continue;
		else if (left_for_its_disk(s, &ev))
			service_tell(s, RV_WARN, "left_out", "member %u is not waited for until its disk takes results again",
						 ev.member);
		else if (ev.type == CORE_EVENT_LEFT && core_document(s->core)->phase == RUN_DONE)
			service_tell(s, RV_INFO, sentences[ev.type].name, "member %u has finished and left", ev.member);
		else if (ev.member != NET_NO_MEMBER)
			service_tell(s, sentences[ev.type].level, sentences[ev.type].name, "member %u %s (round %" PRIu64 ")",
						 ev.member, text, number_of(s, &ev));
		else
			service_tell(s, sentences[ev.type].level, sentences[ev.type].name, "round %" PRIu64 ": %s",
						 number_of(s, &ev), text);
	}
}
