/* sim_audits.c: audits of averages in a universe with --audits: what auditors find, adversaries,
 * and the oracle.
 *
 * Means are honest here, and what an auditor finds is said by this file: a *lying owner* counts
 * as having sent another mean of some of its chunks, which every honest auditor finds, and finds
 * the same. A *lying auditor* says the opposite of what it finds, and it may have an accomplice
 * that says the same, where more than two others audit; a *withholder* gives auditors nothing.
 * Some auditors cannot say anything, or say it late.
 *
 * - Nobody audits what it owns.
 * - Only the lying owner is ever convicted, and of a chunk that it lied about; only the lying
 *   auditor is named as one, only the withholder as that.
 * - A member that is convicted is gone for good, and the run ends without it. */
#include "sim.h"

void audits_choose(struct sim_options *o) {
	enum { STREAM = 49, LEAST_WORKERS = 4, LEAST_OF_PAIRS = 5, WINDOW = 4 };
	struct rv_rng r = rv_rng_of(o->seed, STREAM);
	const uint64_t kind = rv_rng_below(&r, SIM_ADVERSARIES);
	const int host = (int)rv_rng_below(&r, (uint64_t)o->n_workers);
	o->mean_feedback = 0; /* what an owner adds to its means by itself cannot be audited */
	o->audit_chunks = 1 + (uint32_t)rv_rng_below(&r, 4);
	o->audit_window = WINDOW;
	o->audit_rollback = rv_rng_below(&r, 2) == 0;
	o->adversary = ADVERSARY_NONE;
	o->adversary_host = host;
	o->accomplice = SIM_NOBODY;
	/* Without it enough are left; and so many hold each round that one may go for good. */
	if (o->n_workers >= LEAST_WORKERS && o->min_workers < (uint32_t)o->n_workers &&
		2 * o->min_workers > (uint32_t)o->n_workers)
		o->adversary = (enum sim_adversary)kind;
	if (o->adversary == ADVERSARY_AUDITOR && o->min_workers >= LEAST_OF_PAIRS &&
		o->min_workers + 2 <= (uint32_t)o->n_workers && rv_rng_below(&r, 2) == 0)
		o->accomplice = (host + 1) % o->n_workers;
	o->calm &= o->adversary == ADVERSARY_NONE; /* a ban and a rollback end links */
}

static bool is_adversary(const struct sim *s, enum sim_adversary kind, int host) {
	return s->opt.adversary == kind &&
		   (host == s->opt.adversary_host || (host == s->opt.accomplice && host != SIM_NOBODY));
}

/* Returns true if the lying owner lied about the chunk. */
static bool is_lied_about(const struct sim *s, uint64_t round, uint32_t chunk) {
	return sim_noise(s->opt.seed, 1000 + round, chunk) > -0.5f;
}

static struct rv_hash truth_of(uint64_t round, uint32_t chunk) {
	const uint64_t of[] = {round, chunk};
	return rv_hash_of(of, sizeof of);
}

static bool has_member(const struct sim *s, const struct sim_roster *r, int host) {
	for (int i = 0; i < r->n; i++)
		if (oracle_host_of(s, r->of[i].member) == host)
			return true;
	return false;
}

/* What an honest auditor reports. */
static struct audit_result find(struct sim *s, int host, const struct audit_order *o) {
	const struct sim_roster *r = roster_of(s, o->round, o->attempt);
	struct audit_result v = {.round = o->round, .chunk = o->chunk, .verdict = AUDIT_RIGHT, .member = NET_NO_MEMBER};
	const int withholder = s->opt.adversary_host;
	if (r == NULL || sim_noise(s->opt.seed, 2000 + o->round, (uint64_t)host) > 0.8f) {
		v.verdict = AUDIT_UNABLE;
	} else if (is_adversary(s, ADVERSARY_WITHHOLDER, withholder) && withholder != host &&
			   has_member(s, r, withholder)) {
		v.verdict = AUDIT_WITHHELD;
		v.member = s->oracle.member_of[withholder];
	} else if (is_adversary(s, ADVERSARY_OWNER, roster_encoder(s, r, o->chunk)) &&
			   is_lied_about(s, o->round, o->chunk)) {
		v.verdict = AUDIT_WRONG;
		v.found = truth_of(o->round, o->chunk);
	}
	return v;
}

static struct audit_result conclude(struct sim *s, int host, const struct audit_order *o) {
	struct audit_result v = find(s, host, o);
	if (!is_adversary(s, ADVERSARY_AUDITOR, host))
		return v;
	v.member = NET_NO_MEMBER;
	v.verdict = v.verdict == AUDIT_WRONG ? AUDIT_RIGHT : AUDIT_WRONG;
	v.found = v.verdict == AUDIT_WRONG ? rv_hash_of("a lie", 5) : (struct rv_hash){{0}};
	return v;
}

static bool same(const struct audit_order *a, const struct audit_order *b) {
	return a->round == b->round && a->chunk == b->chunk && a->attempt == b->attempt;
}

static void look_soon(struct sim *s, int host, void *arg) {
	(void)arg;
	if (s->workers[host].session != NULL)
		session_core_report_soon(s->workers[host].session);
	worker_turn(s, host);
}

static void check_order(struct sim *s, int host, const struct audit_order *o) {
	const struct sim_roster *r = roster_of(s, o->round, o->attempt);
	if (r != NULL && roster_encoder(s, r, o->chunk) == host)
		sim_fail(s, "w%d: is to audit chunk %u of round %llu, which it owned", host, o->chunk,
				 (unsigned long long)o->round);
	if (r != NULL && !has_member(s, r, host))
		sim_fail(s, "w%d: is to audit round %llu, in which it took no part", host, (unsigned long long)o->round);
}

void audits_follow(struct sim *s, int host, const struct document *d) {
	enum { LATEST_US = 3 * SIM_S };
	struct sim_audits *a = &s->workers[host].audits;
	struct sim_audits now = {.n = d->n_audits};
	for (int i = 0; i < d->n_audits; i++) {
		const struct audit_order *o = &d->audits[i];
		now.orders[i] = *o;
		now.due_us[i] = INT64_MAX;
		for (int k = 0; k < a->n; k++)
			if (same(&a->orders[k], o))
				now.due_us[i] = a->due_us[k];
		if (now.due_us[i] != INT64_MAX)
			continue;
		check_order(s, host, o);
		now.due_us[i] = s->now_us + sim_between(s, host, LUCK_WORK, SIM_MS, LATEST_US);
		sim_at(s, now.due_us[i], host, s->workers[host].life, look_soon, NULL);
	}
	*a = now;
}

void audits_report(struct sim *s, int host, struct report *rep) {
	const struct sim_audits *a = &s->workers[host].audits;
	rep->n_verdicts = 0;
	for (int i = 0; i < a->n; i++)
		if (a->due_us[i] <= s->now_us)
			rep->verdicts[rep->n_verdicts++] = conclude(s, host, &a->orders[i]);
}

void audits_forget(struct sim_worker *w) {
	w->audits.n = 0;
}

/* ---- the oracle ---- */

static void name(struct sim *s, const struct core_event *ev, enum sim_adversary kind, const char *as) {
	if (!is_adversary(s, kind, oracle_host_of(s, ev->member)))
		sim_fail(s, "honest member %u is named as %s in round %llu", ev->member, as, (unsigned long long)ev->round);
}

static void banish(struct sim *s, int host, void *arg) {
	const int banned = *(const int *)arg;
	(void)host;
	free(arg);
	if (s->workers[banned].life != 0)
		worker_crash(s, banned, false);
}

/* A member that is convicted is banned: its process ends, and none begins again. */
static void convict(struct sim *s, const struct core_event *ev) {
	name(s, ev, ADVERSARY_OWNER, "an owner that lied");
	if (!is_lied_about(s, ev->round, ev->other))
		sim_fail(s, "member %u is convicted of chunk %u of round %llu, about which it did not lie", ev->member,
				 ev->other, (unsigned long long)ev->round);
	if (s->failed)
		return;
	if (s->opt.audit_rollback)
		s->term_wanted = s->oracle.term + 1; /* rounds may be taken back */
}

/* Only the adversary is ever banned: convicted, or after its last strike. */
void audits_watch(struct sim *s) {
	const struct core *core = s->coordinator.core;
	for (int k = 0; s->opt.audit_window > 0 && k < core_here(core) && !s->failed; k++) {
		const struct core_member_view v = core_view(core, core_nth(core, k));
		const int host = oracle_host_of(s, v.member);
		if (!v.banned || audits_banished(s, host))
			continue;
		if (s->opt.adversary == ADVERSARY_NONE || s->opt.adversary == ADVERSARY_TWO_SCORERS ||
			!is_adversary(s, s->opt.adversary, host)) {
			sim_fail(s, "honest member %u is banned", v.member);
			return;
		}
		s->banished |= UINT64_C(1) << host;
		s->stats.convicted++;
		int *banned = sim_alloc(sizeof *banned);
		*banned = host;
		sim_at(s, s->now_us, SIM_NOBODY, 0, banish, banned);
	}
}

void audits_event(struct sim *s, const struct core_event *ev) {
	if (ev->type == CORE_EVENT_LIED)
		convict(s, ev);
	else if (ev->type == CORE_EVENT_FALSE_AUDIT)
		name(s, ev, ADVERSARY_AUDITOR, "an auditor that lies");
	else if (ev->type == CORE_EVENT_WITHHELD && s->opt.audit_chunks > 0)
		name(s, ev, ADVERSARY_WITHHOLDER, "one that withholds its contribution");
}

bool audits_banished(const struct sim *s, int host) {
	return host >= 0 && host < SIM_ORDINARY && (s->banished >> host & 1) != 0;
}
