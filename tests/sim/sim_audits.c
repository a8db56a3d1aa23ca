/* sim_audits.c: audits of averages in a universe with --audits: what auditors find, adversaries,
 * and the oracle.
 *
 * In a roster of rows the makers of a chunk's mean are its owner in each row and the final owner,
 * and both lie alike. Final owners show what they were really given (sim_sums.c); the withholder
 * shows nothing either.
 *
 * Means are honest here, and what an auditor finds is said by this file: a *lying owner* counts
 * as having sent another mean of most or of a few of its chunks, which every honest auditor finds,
 * and finds the same; one of them stands out, and honest voters say so. In half of the universes
 * it shows its piece to one auditor of a round only: all others say that it withheld it. In half of
 * these its lies are larger than any piece could explain: the others say so, and in half of those
 * it shows its piece to nobody. A *lying auditor* says the opposite of what it finds, and it may
 * have an accomplice that says the same, where more than two others audit; a *withholder* gives
 * auditors nothing. Some auditors cannot say anything, or say it late.
 *
 * - Nobody audits what it made, in rows each audits what was made in its own.
 * - Only the lying owner is ever convicted, and of a chunk that it lied about; only the lying
 *   auditor is named as one, only the withholder as that.
 * - A member that is convicted is gone for good, and the run ends without it.
 * - An owner that hides a lie from five, and shows it to one, is convicted or struck.
 * - A chunk that honest voters name is audited: once in SEVERAL rounds at least, as a vote may come
 *   after its round is committed. */
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
	const uint64_t least = 1 + (WINDOW + o->snapshot_every - 1) / o->snapshot_every; /* run_audits_least_snapshots */
	if (o->audit_rollback && o->keep_snapshots > 0 && o->keep_snapshots < least)
		o->keep_snapshots = least;
	o->calm &= o->adversary == ADVERSARY_NONE; /* a ban and a rollback end links */
}

static bool is_adversary(const struct sim *s, enum sim_adversary kind, int host) {
	return s->opt.adversary == kind &&
		   (host == s->opt.adversary_host || (host == s->opt.accomplice && host != SIM_NOBODY));
}

/* Returns true if the lying owner lied about the chunk. */
static bool is_lied_about(const struct sim *s, uint64_t round, uint32_t chunk) {
	const bool few = sim_noise(s->opt.seed, 9000, 0) > 0;
	return sim_noise(s->opt.seed, 1000 + round, chunk) > (few ? 0.7f : -0.5f);
}

static bool hides(const struct sim *s) {
	return sim_noise(s->opt.seed, 8000, 0) >= 0;
}

bool audits_hides_from(struct sim *s, int host, uint64_t round) {
	if (!hides(s) || round >= SIM_MAX_ROUNDS)
		return false;
	if (s->shown[round].to == 0)
		s->shown[round].to = (uint8_t)(1 + host);
	return s->shown[round].to != 1 + host;
}

/* Returns true if the owner's lies are larger than what it could have contributed; in a roster of
 * rows no auditor can tell. */
static bool is_beyond(const struct sim *s, const struct audit_order *o) {
	return o->kind == AUDIT_OF_AVERAGE && sim_noise(s->opt.seed, 8100, 0) > 0;
}

/* Notes an auditor that finds a lie, or that it is hidden, where this counts. */
static void note_found(struct sim *s, int host, const struct audit_order *o, bool hidden) {
	enum { LATE = 3 };
	struct sim_shown *shown = &s->shown[o->round % SIM_MAX_ROUNDS];
	if ((!s->healed && s->plan->n > 0) || s->oracle.n_committed > o->round + LATE)
		return;
	if (!hidden && shown->chunk == 0)
		shown->chunk = 1 + o->chunk;
	else if (hidden && shown->chunk == 1 + o->chunk)
		shown->hidden_from |= UINT64_C(1) << host;
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

/* Returns the host whose work an auditor looks at: the chunk's owner in its row, or the final
 * owner. */
static int maker_of(const struct sim *s, const struct sim_roster *r, int host, const struct audit_order *o) {
	if (o->kind == AUDIT_OF_SUM)
		return roster_row_owner(s, r, host, o->chunk);
	return roster_encoder(s, r, o->chunk);
}

/* Returns the row of a host in the roster; -1: it took no part. */
static int row_in(const struct sim *s, const struct sim_roster *r, int host) {
	for (int row = 0; row < r->n_rows; row++)
		for (int i = r->rows[row].first; i < r->rows[row].first + r->rows[row].n; i++)
			if (oracle_host_of(s, r->of[i].member) == host)
				return row;
	return -1;
}

/* Returns true if the auditor needs something of that host. */
static bool needs(const struct sim *s, const struct sim_roster *r, int host, const struct audit_order *o, int other) {
	if (o->kind == AUDIT_OF_MEAN)
		return maker_of(s, r, host, o) == other;
	return has_member(s, r, other) && (o->kind == AUDIT_OF_AVERAGE || row_in(s, r, other) == row_in(s, r, host));
}

/* Sets what an auditor reports of a chunk about which its owner has lied. */
static void find_lie(struct sim *s, int host, const struct audit_order *o, struct audit_result *v) {
	const bool shows = sim_noise(s->opt.seed, 8200, 0) > 0, beyond = is_beyond(s, o);
	const bool hidden = audits_hides_from(s, host, o->round) || (beyond && !shows && hides(s));
	const bool knows_no_better = hidden && !beyond, first = beyond && s->shown[o->round % SIM_MAX_ROUNDS].chunk == 0;
	v->verdict = knows_no_better ? AUDIT_WITHHELD : AUDIT_WRONG;
	v->member = knows_no_better ? s->oracle.member_of[s->opt.adversary_host] : NET_NO_MEMBER;
	if (!knows_no_better)
		v->found = hidden ? audit_beyond() : truth_of(o->round, o->chunk);
	if (o->kind == AUDIT_OF_AVERAGE) /* in rows the auditors of a round are of several rows */
		note_found(s, host, o, hidden && !first);
}

/* What an honest auditor reports. */
static struct audit_result find(struct sim *s, int host, const struct audit_order *o) {
	const struct sim_roster *r = roster_of(s, o->round, o->attempt);
	struct audit_result v = {.round = o->round, .chunk = o->chunk, .verdict = AUDIT_RIGHT, .member = NET_NO_MEMBER};
	const int withholder = s->opt.adversary_host;
	if (r == NULL || sim_noise(s->opt.seed, 2000 + o->round, (uint64_t)host) > 0.8f) {
		v.verdict = AUDIT_UNABLE;
	} else if (is_adversary(s, ADVERSARY_WITHHOLDER, withholder) && withholder != host &&
			   needs(s, r, host, o, withholder)) {
		v.verdict = AUDIT_WITHHELD;
		v.member = s->oracle.member_of[withholder];
	} else if (is_adversary(s, ADVERSARY_OWNER, maker_of(s, r, host, o)) && is_lied_about(s, o->round, o->chunk)) {
		find_lie(s, host, o, &v);
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
	return a->round == b->round && a->chunk == b->chunk && a->attempt == b->attempt && a->kind == b->kind;
}

static void look_soon(struct sim *s, int host, void *arg) {
	(void)arg;
	if (s->workers[host].session != NULL)
		session_core_report_soon(s->workers[host].session);
	worker_turn(s, host);
}

static void check_order(struct sim *s, int host, const struct audit_order *o) {
	const struct sim_roster *r = roster_of(s, o->round, o->attempt);
	if (o->kind == AUDIT_SHOW) {
		if (r != NULL && roster_encoder(s, r, o->chunk) != host && roster_encoder(s, r, o->chunk) != SIM_NOBODY)
			sim_fail(s, "w%d: is to show sums of chunk %u of round %llu, whose mean it did not make", host, o->chunk,
					 (unsigned long long)o->round);
		return;
	}
	if (r != NULL && has_member(s, r, host) && (o->kind == AUDIT_OF_AVERAGE) == (r->n_rows > 1))
		sim_fail(s, "w%d: is to audit round %llu of %d rows by an order of kind %u", host, (unsigned long long)o->round,
				 r->n_rows, o->kind);
	s->stats.row_audits += o->kind != AUDIT_OF_AVERAGE;
	s->stats.row_lies += o->kind != AUDIT_OF_AVERAGE && r != NULL &&
						 is_adversary(s, ADVERSARY_OWNER, maker_of(s, r, host, o)) &&
						 is_lied_about(s, o->round, o->chunk);
	if (r != NULL && o->kind == AUDIT_OF_MEAN && row_in(s, r, host) != row_in(s, r, maker_of(s, r, host, o)))
		sim_fail(s, "w%d: is to audit a mean of round %llu that another row made", host, (unsigned long long)o->round);
	if (r != NULL && has_member(s, r, host) && maker_of(s, r, host, o) == host)
		sim_fail(s, "w%d: is to audit chunk %u of round %llu, which it owned", host, o->chunk,
				 (unsigned long long)o->round);
	if (r != NULL && !has_member(s, r, host))
		sim_fail(s, "w%d: is to audit round %llu, in which it took no part", host, (unsigned long long)o->round);
}

/* Notes that a chunk that voters named is audited. */
static void note_order(struct sim *s, const struct audit_order *o) {
	struct sim_shown *shown = &s->shown[o->round % SIM_MAX_ROUNDS];
	shown->audited |= shown->attempt == o->attempt && shown->named == 1 + o->chunk;
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
		note_order(s, o);
		now.due_us[i] = s->now_us + sim_between(s, host, LUCK_WORK, SIM_MS, LATEST_US);
		sim_at(s, now.due_us[i], host, s->workers[host].life, look_soon, NULL);
	}
	*a = now;
}

/* Returns the first chunk, counted from 1, of an attempt about which the adversary has lied; 0:
 * none. */
static uint32_t first_lie(const struct sim *s, const struct sim_roster *r) {
	const uint32_t n = global_round_chunks(&s->global_config, r->round).n_chunks;
	for (uint32_t c = 0; c < n; c++)
		if (is_adversary(s, ADVERSARY_OWNER, roster_encoder(s, r, c)) && is_lied_about(s, r->round, c))
			return 1 + c;
	return 0;
}

/* An honest voter says which mean stands out. */
static void say_what_stands_out(struct sim *s, int host, struct report *rep) {
	const struct sim_roster *r = rep->phase == WORKER_VOTED ? roster_of(s, rep->round, rep->attempt) : NULL;
	struct sim_shown *shown = &s->shown[rep->round % SIM_MAX_ROUNDS];
	if (r == NULL || s->opt.adversary != ADVERSARY_OWNER || is_adversary(s, ADVERSARY_OWNER, host))
		return;
	rep->stands_out = first_lie(s, r);
	if ((!s->healed && s->plan->n > 0) || r->n_rows > 1) /* short rows are not audited */
		return;
	if (shown->attempt != rep->attempt) {
		shown->namers = 0;
		shown->audited = false;
	}
	shown->attempt = rep->attempt;
	shown->named = rep->stands_out;
	shown->namers |= UINT64_C(1) << host;
}

void audits_report(struct sim *s, int host, struct report *rep) {
	const struct sim_audits *a = &s->workers[host].audits;
	say_what_stands_out(s, host, rep);
	rep->n_verdicts = 0;
	for (int i = 0; i < a->n; i++)
		if (a->due_us[i] <= s->now_us && a->orders[i].kind != AUDIT_SHOW)
			rep->verdicts[rep->n_verdicts++] = conclude(s, host, &a->orders[i]);
}

void audits_forget(struct sim_worker *w) {
	w->audits.n = 0;
}

bool audits_hides_sums(const struct sim *s, int host) {
	return is_adversary(s, ADVERSARY_WITHHOLDER, host);
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

static void may_be_taken_back(struct sim *s) {
	if (!s->failed && s->opt.audit_rollback)
		s->term_wanted = s->oracle.term + 1;
}

/* A round that nobody could check is taken back, at each strike. */
static void hide(struct sim *s, const struct core_event *ev) {
	const bool shows_one = s->opt.adversary == ADVERSARY_OWNER;
	name(s, ev, shows_one ? ADVERSARY_OWNER : ADVERSARY_WITHHOLDER, "one that withholds its contribution");
	s->struck = true;
	may_be_taken_back(s);
}

/* A member that is convicted is banned: its process ends, and none begins again. */
static void convict(struct sim *s, const struct core_event *ev) {
	name(s, ev, ADVERSARY_OWNER, "an owner that lied");
	if (!is_lied_about(s, ev->round, ev->other))
		sim_fail(s, "member %u is convicted of chunk %u of round %llu, about which it did not lie", ev->member,
				 ev->other, (unsigned long long)ev->round);
	may_be_taken_back(s);
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
		oracle_bans(s);
		int *banned = sim_alloc(sizeof *banned);
		*banned = host;
		sim_at(s, s->now_us, SIM_NOBODY, 0, banish, banned);
	}
}

/* One that dies between its mean and its vote has kept nothing, and is named once. */
static void unshown(struct sim *s, const struct core_event *ev) {
	if (ev->other > 1)
		name(s, ev, ADVERSARY_WITHHOLDER, "one that shows no sums");
}

void audits_event(struct sim *s, const struct core_event *ev) {
	if (ev->type == CORE_EVENT_LIED)
		convict(s, ev);
	else if (ev->type == CORE_EVENT_FALSE_AUDIT)
		name(s, ev, ADVERSARY_AUDITOR, "an auditor that lies");
	else if (ev->type == CORE_EVENT_WITHHELD && s->opt.audit_chunks > 0)
		hide(s, ev);
	else if (ev->type == CORE_EVENT_UNSHOWN)
		unshown(s, ev);
}

/* A member that lies about a chunk a round is found by what voters name. */
static void end_named(struct sim *s) {
	enum { SEVERAL = 4 };
	int named = 0, audited = 0;
	for (uint64_t round = 0; round + 1 < s->opt.rounds && round < SIM_MAX_ROUNDS; round++) {
		const struct sim_shown *shown = &s->shown[round];
		const bool counts = shown->named > 0 && __builtin_popcountll(shown->namers) > 1;
		named += counts;
		audited += counts && shown->audited;
	}
	if (named >= SEVERAL && audited == 0)
		sim_fail(s, "voters named a chunk in %d rounds, and none of these was audited", named);
}

/* Three of five, or all but one of four, that do not get it are enough. */
void audits_end(struct sim *s) {
	enum { ENOUGH = 3 };
	const bool open = s->opt.adversary == ADVERSARY_OWNER && !s->struck && s->banished == 0;
	end_named(s);
	for (uint64_t round = 0; open && round + s->opt.audit_window + 1 < s->opt.rounds; round++) {
		const struct sim_shown *shown = &s->shown[round % SIM_MAX_ROUNDS];
		if (__builtin_popcountll(shown->hidden_from) >= ENOUGH)
			sim_fail(s, "the owner on host %d lied in round %llu, hid it from %d, and was not struck",
					 s->opt.adversary_host, (unsigned long long)round, __builtin_popcountll(shown->hidden_from));
	}
}

bool audits_banished(const struct sim *s, int host) {
	return host >= 0 && host < SIM_ORDINARY && (s->banished >> host & 1) != 0;
}
