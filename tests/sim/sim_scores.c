/* sim_scores.c: audits of training in a universe with --scores: what auditors measure, adversaries,
 * and the oracle.
 *
 * Who scores whom, what follows, and whether the author is linked are of the programs; what a score
 * finds is said by this file, from what the author did. An honest contribution is worth 0.6 to 1 of
 * an auditor's own; in some rounds one auditor measures less than half of that, by chance. A *free
 * rider* contributes nothing (around 0, in every round or in every second one), a *poisoner* harm
 * (-0.6), and both can measure nobody. In half of the universes these show it to one auditor of a
 * round only, and withhold it from the others, or keep them away. A *lying auditor* finds every
 * honest contribution worthless, or says that it got none, or that it did not reach the author. A
 * *cutter* contributes nothing,
 * and keeps all its auditors away: they have no link to it, one that it ends, or it gives its inner
 * state at a drip. Two liars together can strike an honest member: that appeals. In two of three
 * universes half of the audits, or all, repeat steps where they can: what comes out is near what an
 * honest member sent, and far from anything else.
 *
 * - An auditor scores nobody's own contribution, of no round that is open, and of its own row only.
 * - Only a free rider, a poisoner or a cutter is ever struck, and for a round in which it was one;
 *   where two auditors lie, honest members may be. Nobody else is banned.
 * - If nothing else goes wrong, one of these is struck once enough audits of it are over. */
#include "sim.h"

enum { WINDOW = 6 };

/* Returns true if members may meet by one of them only: they cannot do without it. */
static bool may_need_each(const struct sim_options *o, const struct sim_plan *plan) {
	bool routers = false;
	for (int i = 0; i < plan->n; i++)
		routers |= plan->faults[i].kind == FAULT_NAT || plan->faults[i].kind == FAULT_HOME;
	return routers && o->relay == 0;
}

void scores_choose(struct sim_options *o, const struct sim_plan *plan) {
	enum { STREAM = 53, LEAST_WORKERS = 4, LEAST_FOR_TWO = 6, TENTH = 100000, HALF = 500000 };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	const uint64_t kind = rv_rng_below(&r, SIM_SCORED - ADVERSARY_FREE_RIDER + 1);
	const int host = (int)rv_rng_below(&r, (uint64_t)o->n_workers);
	const int least = kind + ADVERSARY_FREE_RIDER == ADVERSARY_TWO_SCORERS ? LEAST_FOR_TWO : LEAST_WORKERS;
	o->audit_ppm = TENTH * (1 + (uint32_t)rv_rng_below(&r, 6));
	o->repeat_ppm = HALF * (uint32_t)rv_rng_below(&r, 3);
	o->audit_window = WINDOW;
	o->adversary = ADVERSARY_NONE;
	o->adversary_host = host;
	o->accomplice = SIM_NOBODY;
	/* Without it enough are left; and so many hold each round that one may go for good. */
	if (kind + ADVERSARY_FREE_RIDER < SIM_SCORED && !may_need_each(o, plan) && o->n_workers >= least &&
		o->min_workers + 1 < (uint32_t)o->n_workers && 2 * o->min_workers > (uint32_t)o->n_workers)
		o->adversary = (enum sim_adversary)(kind + ADVERSARY_FREE_RIDER);
}

static bool is_adversary(const struct sim *s, enum sim_adversary kind, int host) {
	if (s->opt.adversary == ADVERSARY_TWO_SCORERS && kind == ADVERSARY_TWO_SCORERS)
		return host == s->opt.adversary_host || host == (s->opt.adversary_host + 1) % s->opt.n_workers;
	return s->opt.adversary == kind && s->opt.adversary_host == host;
}

static bool lies(const struct sim *s, int host) {
	return is_adversary(s, ADVERSARY_SCORER, host) || is_adversary(s, ADVERSARY_TWO_SCORERS, host);
}

/* Returns true if what the host contributed to the round is worth nothing. */
static bool is_idle(const struct sim *s, int host, uint64_t round) {
	return is_adversary(s, ADVERSARY_FREE_RIDER, host) || is_adversary(s, ADVERSARY_POISONER, host) ||
		   is_adversary(s, ADVERSARY_CUTTER, host) || (is_adversary(s, ADVERSARY_HALF_RIDER, host) && round % 2 == 1);
}

/* In some rounds one of the auditors has bad luck. */
static bool has_bad_luck(const struct sim *s, int host, uint64_t round) {
	const bool some = s->opt.adversary != ADVERSARY_SCORER && s->opt.adversary != ADVERSARY_TWO_SCORERS;
	const float luck = sim_noise(s->opt.seed, 4000 + round, 0);
	return some && luck > 0.6f && (int)((luck - 0.6f) / 0.4f * (float)s->opt.n_workers) == host;
}

static float gain_of(const struct sim *s, int host, int author, uint64_t round) {
	const float noise = sim_noise(s->opt.seed, 5000 + round, (uint64_t)(host * SIM_MAX_WORKERS + author));
	if (is_adversary(s, ADVERSARY_POISONER, author))
		return -0.6f + 0.2f * noise;
	if (is_idle(s, author, round))
		return 0.2f * noise;
	return has_bad_luck(s, host, round) ? 0.3f : 0.8f + 0.2f * noise;
}

static struct score_result result_of(const struct score_order *o, enum score_verdict verdict, float gain) {
	return (struct score_result){.round = o->round,
								 .member = o->member,
								 .verdict = (uint8_t)verdict,
								 .gain = gain,
								 .own = verdict == SCORE_MEASURED ? 1 : 0};
}

/* What making the author's steps again comes to. */
static struct score_result repeated(const struct sim *s, int author, const struct score_order *o) {
	return result_of(o, SCORE_REPEATED, is_idle(s, author, o->round) ? 0.9f : 0.05f);
}

/* How the author keeps this auditor away. */
static struct score_result kept_away(const struct sim *s, int host, const struct score_order *o) {
	const float how = sim_noise(s->opt.seed, 7000 + o->round, (uint64_t)host);
	const enum score_verdict verdict = how < -0.3f ? SCORE_UNREACHED : how < 0.3f && o->repeat ? SCORE_SLOW : SCORE_CUT;
	return result_of(o, verdict, 0);
}

/* How the author hides what it gave from this auditor. One that trains in every second round is
 * measured in the others: there, two evaded audits in a row are rare. */
static struct score_result hidden(const struct sim *s, int host, int author, const struct score_order *o) {
	if (is_adversary(s, ADVERSARY_HALF_RIDER, author) || sim_noise(s->opt.seed, 9000 + o->round, 0) > 0)
		return result_of(o, SCORE_WITHHELD, 0);
	return kept_away(s, host, o);
}

/* What an honest auditor finds whose patience is over, or not yet; verdict 0: nothing yet. */
static struct score_result find(struct sim *s, int host, const struct score_order *o, bool patient) {
	const struct sim_worker *w = &s->workers[host];
	const int author = oracle_host_of(s, o->member);
	if (is_adversary(s, ADVERSARY_CUTTER, author))
		return kept_away(s, host, o);
	if (is_idle(s, host, o->round) || sim_noise(s->opt.seed, 3000 + o->round, (uint64_t)host) > 0.8f)
		return result_of(o, SCORE_UNABLE, 0);
	if (w->mesh == NULL || !peers_linked(w->mesh, o->member))
		return patient ? (struct score_result){.verdict = 0} : result_of(o, SCORE_UNREACHED, 0);
	if (is_idle(s, author, o->round) && audits_hides_from(s, host, o->round))
		return hidden(s, host, author, o);
	return o->repeat ? repeated(s, author, o) : result_of(o, SCORE_MEASURED, gain_of(s, host, author, o->round));
}

static struct score_result conclude(struct sim *s, int host, const struct score_order *o, bool patient) {
	const int author = oracle_host_of(s, o->member);
	if (!lies(s, host) || lies(s, author))
		return find(s, host, o, patient);
	const float which = sim_noise(s->opt.seed, 6000 + o->round, (uint64_t)author);
	if (is_adversary(s, ADVERSARY_TWO_SCORERS, host) || which < -0.3f)
		return o->repeat ? result_of(o, SCORE_REPEATED, 1) : result_of(o, SCORE_MEASURED, -1);
	return result_of(o, which < 0.3f ? SCORE_UNREACHED : SCORE_WITHHELD, 0);
}

static bool same(const struct score_order *a, const struct score_order *b) {
	return a->round == b->round && a->member == b->member && rv_hash_equal(&a->root, &b->root) &&
		   a->repeat == b->repeat;
}

static void look_soon(struct sim *s, int host, void *arg) {
	(void)arg;
	if (s->workers[host].session != NULL)
		session_core_report_soon(s->workers[host].session);
	worker_turn(s, host);
}

/* Returns the row of a host in the roster; -1: it took no part. */
static int row_in(const struct sim *s, const struct sim_roster *r, int host) {
	for (int row = 0; row < r->n_rows; row++)
		for (int i = r->rows[row].first; i < r->rows[row].first + r->rows[row].n; i++)
			if (oracle_host_of(s, r->of[i].member) == host)
				return row;
	return -1;
}

/* Returns true if auditor and author were in one row of the committed roster. */
static bool shared_row(struct sim *s, int host, const struct score_order *o) {
	const struct sim_roster *r = roster_of(s, o->round, s->oracle.means.attempt[o->round]);
	const int row = r != NULL ? row_in(s, r, host) : -1;
	return r == NULL || (row >= 0 && row == row_in(s, r, oracle_host_of(s, o->member)));
}

static void check_order(struct sim *s, int host, const struct document *d, const struct score_order *o) {
	if (oracle_host_of(s, o->member) == host)
		sim_fail(s, "w%d: is to score its own contribution to round %llu", host, (unsigned long long)o->round);
	if (!shared_row(s, host, o))
		sim_fail(s, "w%d: is to score member %u in round %llu, of which it took no part, or in another row", host,
				 o->member, (unsigned long long)o->round);
	if (o->round >= d->round || d->round - o->round > WINDOW)
		sim_fail(s, "w%d: is to score round %llu in round %llu", host, (unsigned long long)o->round,
				 (unsigned long long)d->round);
}

/* A new order has its result after a while; without a link, after patience. */
static void begin(struct sim *s, int host, struct sim_score *a) {
	enum { PATIENCE_US = 6 * SIM_S, LATE_US = 3 * SIM_S };
	const int64_t round_us = (int64_t)s->opt.steps_per_round * s->opt.step_us;
	const bool late = sim_chance(s, host, LUCK_WORK, 0.1);
	a->due_us = s->now_us + sim_between(s, host, LUCK_WORK, SIM_MS, late ? LATE_US : SIM_MS + round_us);
	a->patient_us = a->due_us + PATIENCE_US;
	sim_at(s, a->due_us, host, s->workers[host].life, look_soon, NULL);
	sim_at(s, a->patient_us, host, s->workers[host].life, look_soon, NULL);
}

static void note_audited(struct sim *s, const struct score_order *o) {
	if (oracle_host_of(s, o->member) == s->opt.adversary_host && o->round < 64 &&
		is_idle(s, s->opt.adversary_host, o->round))
		s->audited_rounds |= UINT64_C(1) << o->round;
}

void scores_follow(struct sim *s, int host, const struct document *d) {
	struct sim_scores *a = &s->workers[host].scores;
	struct sim_scores now = {.n = d->n_scores};
	for (int i = 0; i < d->n_scores; i++) {
		bool is_new = true;
		now.of[i] = (struct sim_score){.order = d->scores[i]};
		for (int k = 0; k < a->n; k++)
			if (same(&a->of[k].order, &d->scores[i])) {
				now.of[i] = a->of[k];
				is_new = false;
			}
		if (!is_new)
			continue;
		check_order(s, host, d, &d->scores[i]);
		s->stats.repeats += d->scores[i].repeat;
		note_audited(s, &d->scores[i]);
		begin(s, host, &now.of[i]);
	}
	*a = now;
}

static struct rv_hash inner_root(const struct sim *s, int host, uint64_t round) {
	const uint64_t of[] = {s->opt.seed, (uint64_t)host, round};
	return rv_hash_of(of, sizeof of);
}

/* The state with which its steps begin is the one with which those of the round before ended. */
void scores_commit(const struct sim *s, int host, uint64_t round, struct commitment *c) {
	if (s->opt.repeat_ppm == 0)
		return;
	c->inner_end = inner_root(s, host, round);
	if (round > 0)
		c->inner_begin = inner_root(s, host, round - 1);
}

/* As notices say it: its last strike is one about which others may think better. */
static bool is_struck(const struct sim *s, int host) {
	struct notice n;
	uint8_t key[NET_KEY_BYTES];
	sim_key_of(s, host, key);
	return s->coordinator.core != NULL && core_notice(s->coordinator.core, key, &n) && n.kind == NOTICE_STRUCK &&
		   !n.final && (n.reason == NOTICE_STRUCK_WITHHELD || n.reason == NOTICE_STRUCK_TRAINING);
}

void scores_report(struct sim *s, int host, struct report *rep) {
	struct sim_scores *a = &s->workers[host].scores;
	rep->n_scores = 0;
	rep->appeals = s->opt.audit_ppm > 0 && is_struck(s, host);
	for (int i = 0; i < a->n; i++) {
		struct sim_score *one = &a->of[i];
		const bool open = one->found.verdict == 0 || one->found.verdict == SCORE_UNREACHED;
		if (open && one->due_us <= s->now_us)
			one->found = conclude(s, host, &one->order, s->now_us < one->patient_us);
		if (one->found.verdict != 0)
			rep->scores[rep->n_scores++] = one->found;
	}
}

void scores_forget(struct sim_worker *w) {
	w->scores.n = 0;
}

/* ---- the oracle ---- */

static void name(struct sim *s, const struct core_event *ev, const char *as) {
	const int host = oracle_host_of(s, ev->member);
	if (s->opt.audit_ppm > 0 && s->opt.adversary != ADVERSARY_TWO_SCORERS && !is_idle(s, host, ev->round))
		sim_fail(s, "honest member %u is named as %s in round %llu", ev->member, as, (unsigned long long)ev->round);
}

void scores_event(struct sim *s, const struct core_event *ev) {
	if (ev->type == CORE_EVENT_WORTHLESS)
		name(s, ev, "one whose training is worthless");
	else if (ev->type == CORE_EVENT_EVADED)
		name(s, ev, "one that keeps its auditors away");
	else if (ev->type == CORE_EVENT_WITHHELD && s->opt.audit_ppm > 0)
		name(s, ev, "one that withholds its contribution");
	else if (ev->type == CORE_EVENT_CLEARED)
		s->stats.cleared++;
}

/* Strikes are a member's own, or of two auditors that lie. */
void scores_watch(struct sim *s) {
	const struct core *core = s->coordinator.core;
	for (int k = 0; s->opt.audit_ppm > 0 && k < core_here(core) && !s->failed; k++) {
		const struct core_member_view v = core_view(core, core_nth(core, k));
		const int host = oracle_host_of(s, v.member);
		if (v.reputation.strikes == 0)
			continue;
		if (host == s->opt.adversary_host && s->opt.adversary != ADVERSARY_TWO_SCORERS && !s->struck) {
			s->struck = true;
			s->stats.struck++;
		}
		if (s->opt.adversary != ADVERSARY_TWO_SCORERS && !is_idle(s, host, v.reputation.struck_round))
			sim_fail(s, "honest member %u is struck for round %llu", v.member,
					 (unsigned long long)v.reputation.struck_round);
	}
}

bool scores_keeps_out(const struct sim *s, int host) {
	const struct core *core = s->coordinator.core;
	bool out = false;
	for (int k = 0; s->opt.audit_ppm > 0 && core != NULL && k < core_here(core); k++) {
		const struct core_member_view v = core_view(core, core_nth(core, k));
		out |= oracle_host_of(s, v.member) == host && v.reputation.quarantined_until > 0;
	}
	return out;
}

/* A member that was audited so often, in audits whose window is over, is struck. */
void scores_end(struct sim *s) {
	enum { ENOUGH = 4 };
	int n = 0;
	for (uint64_t round = 0; round + WINDOW + 1 < s->opt.rounds && round < 64; round++)
		n += (int)(s->audited_rounds >> round & 1);
	if (s->opt.calm && s->opt.adversary != ADVERSARY_NONE && n >= ENOUGH && !s->struck)
		sim_fail(s, "member of host %d was audited in %d rounds, gave nothing, and was not struck",
				 s->opt.adversary_host, n);
}
