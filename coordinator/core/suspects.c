/* suspects.c: accusations between participants, and which of them are believed.
 *
 * A participant that gets nothing from a peer accuses it in its reports. The first accusation opens
 * a window in which the others' are collected, a short one if all agree; then those with the most
 * accusers are distrusted. Only those: if one is dead, the others may seem to stall for want of its
 * data; the next attempt shows what is left to accuse.
 *
 * If no majority of the others accuses any participant, one accusation stands against another. A
 * participant that accuses several that report meanwhile is distrusted at least as much as each of
 * these: else one liar would put away all others, in each attempt, and hold the run up for ever.
 * Nor can it do so one by one: those that its accusation alone put away in this round, and that
 * report again, count too.
 *
 * Nobody is distrusted where an accuser is known to be apart from the accused, and other members
 * can own their chunks: the next attempt has the same participants and those owners (pairs.c). */
#include "base/assert.h"
#include "coordinator/core/internal.h"
#include "net/roster_set.h"

enum { AGREED_SHARE = 4 };

/* Sets accused[i] to the participants that `i` accuses in its last report, and returns the set of
 * all accused. Neither accusers nor accused are in core_missed. */
static uint64_t read_accusations(const struct core *c, uint64_t accused[NET_MAX_MEMBERS]) {
	const struct core_roster *r = &c->roster;
	uint64_t present = core_first(r->n) & ~core_missed(c), any = 0;
	for (uint32_t i = 0; i < r->n; i++) {
		const struct report *rep = &c->members[r->members[i]].last;
		bool speaks = (present & core_bit(i)) && (rep->phase == WORKER_REDUCING || rep->phase == WORKER_VOTED) &&
					  rep->round == c->round && rep->attempt == c->attempt;
		uint64_t named;
		roster_set_of(&named, 1, rep->suspects, rep->n_suspects);
		accused[i] = speaks ? named & present & ~core_bit(i) : 0;
		any |= accused[i];
	}
	RV_ASSERT((any & ~present) == 0); /* participants only, and none that is missed already */
	return any;
}

static int count_accusers(const uint64_t accused[NET_MAX_MEMBERS], int n, uint32_t of) {
	int count = 0;
	for (int i = 0; i < n; i++)
		count += (accused[i] & core_bit(of)) != 0;
	RV_ASSERT((accused[of] & core_bit(of)) == 0 && count < n); /* no participant accuses itself */
	return count;
}

/* Returns true for those that have reported since the first accusation: reports come more often
 * than this waits. */
static bool answers(const struct core *c, const struct core_member *m) {
	return m->reported && m->heard_us >= c->accused_since_us;
}

static bool by_majority(const struct core *c, int accusers) {
	return 2 * accusers > c->roster.n - 1;
}

/* Counts the live members that the accusation of `m` alone put away in this round. */
static int wrongly_put_away(const struct core *c, const struct core_member *m) {
	int n = 0;
	RV_ASSERT((m->put_away & ~core_first(c->n_members)) == 0);
	for (uint32_t i = 0; i < (uint32_t)c->n_members && m->put_away_round == c->round; i++)
		n += (m->put_away & core_bit(i)) != 0 && core_alive(c, &c->members[i]);
	return n;
}

static void note_put_away(struct core *c, const uint64_t accused[NET_MAX_MEMBERS], uint32_t who) {
	if (count_accusers(accused, c->roster.n, who) != 1)
		return;
	for (int i = 0; i < c->roster.n; i++) {
		struct core_member *m = &c->members[c->roster.members[i]];
		if (!(accused[i] & core_bit(who)))
			continue;
		m->put_away = (m->put_away_round == c->round ? m->put_away : 0) | core_bit(c->roster.members[who]);
		m->put_away_round = c->round;
	}
}

/* Returns the weight against a participant: first its accusations with others, both ways, then its
 * accusers. */
static int against(const struct core *c, const uint64_t accused[NET_MAX_MEMBERS], uint32_t of) {
	int n = c->roster.n, accusers = count_accusers(accused, n, of);
	uint64_t between = accused[of] & core_participants_that(c, answers);
	for (int i = 0; i < n; i++)
		if (accused[i] & core_bit(of))
			between |= core_bit((uint32_t)i);
	int weight = core_count(between);
	if (accused[of] != 0)
		weight += wrongly_put_away(c, &c->members[c->roster.members[of]]);
	if (by_majority(c, accusers))
		weight = accusers + 2 * NET_MAX_MEMBERS;
	RV_ASSERT(weight >= accusers && accusers <= NET_MAX_MEMBERS); /* so accusers decide between equal weights only */
	return weight * (NET_MAX_MEMBERS + 1) + accusers;
}

/* Returns the participant with the most weight against it; of several the one with the highest
 * index. */
static uint32_t worst_of(const struct core *c, const uint64_t accused[NET_MAX_MEMBERS], int *most) {
	uint32_t worst = 0;
	*most = 0;
	for (uint32_t i = 0; i < c->roster.n; i++) {
		int weight = against(c, accused, i);
		if (weight > 0 && weight >= *most) {
			*most = weight;
			worst = i;
		}
	}
	RV_ASSERT(worst < c->roster.n && *most >= 0);
	return worst;
}

/* Counts pairs: two that accuse each other, if no other has more accusers; or one that accuses
 * another alone. */
static void note_pairs(struct core *c, const uint64_t accused[NET_MAX_MEMBERS]) {
	int n = c->roster.n, most = 0, accusers[NET_MAX_MEMBERS];
	RV_ASSERT(n > 0 && n <= NET_MAX_MEMBERS);
	for (int i = 0; i < n; i++) {
		accusers[i] = count_accusers(accused, n, (uint32_t)i);
		most = accusers[i] > most ? accusers[i] : most;
	}
	for (uint32_t i = 0; i < (uint32_t)n; i++)
		for (uint32_t j = i + 1; j < (uint32_t)n; j++) {
			bool forth = accused[i] & core_bit(j), back = accused[j] & core_bit(i);
			bool mutual = forth && back && accusers[i] == most && accusers[j] == most;
			bool alone = forth != back && most == 1 && n > 2;
			if (mutual || alone)
				core_pair_strike(c, i, j);
		}
}

/* Returns true for at least two accusers, or, in a roster of two, for the other one if `who`
 * accuses no participant. */
static bool is_to_blame(const struct core *c, const uint64_t accused[NET_MAX_MEMBERS], uint32_t who) {
	int accusers = count_accusers(accused, c->roster.n, who);
	return c->roster.n == 2 ? accusers == 1 && accused[who] == 0 : accusers > 1;
}

static void distrust(struct core *c, uint64_t accused[NET_MAX_MEMBERS]) {
	int n = c->roster.n, most = 0;
	for (;;) {
		int weight;
		uint32_t worst = worst_of(c, accused, &weight);
		if (weight == 0 || weight < most)
			return;
		RV_ASSERT(!c->members[c->roster.members[worst]].distrusted); /* each of them once */
		most = weight;
		note_put_away(c, accused, worst);
		if (is_to_blame(c, accused, worst))
			c->blamed |= core_bit(c->roster.members[worst]);
		c->members[c->roster.members[worst]].distrusted = true;
		core_say(c, CORE_EVENT_SUSPECTED, c->roster.members[worst], c->round);
		accused[worst] = 0;
		for (int i = 0; i < n; i++)
			accused[i] &= ~core_bit(worst);
	}
}

/* Returns true if no majority accuses any participant, but a doubtful one (it accuses several, or
 * has put a member away wrongly) accuses one that has not reported since: whether that one is dead
 * will soon be known. */
static bool is_unclear(const struct core *c, const uint64_t accused[NET_MAX_MEMBERS]) {
	bool doubtful = false;
	for (uint32_t i = 0; i < c->roster.n; i++) {
		if (by_majority(c, count_accusers(accused, c->roster.n, i)))
			return false;
		int words = core_count(accused[i]) + wrongly_put_away(c, &c->members[c->roster.members[i]]);
		doubtful |= words > 1 && (accused[i] & ~core_participants_that(c, answers)) != 0;
	}
	return doubtful && c->now_us - c->accused_since_us < core_unclear_us(c);
}

/* Returns true if all participants without an accuser are a majority and accuse the same ones: no
 * more accusations of theirs will come. */
static bool is_agreed(const struct core *c, const uint64_t accused[NET_MAX_MEMBERS], uint64_t any) {
	uint64_t rest = core_first(c->roster.n) & ~core_missed(c) & ~any;
	for (uint32_t i = 0; i < c->roster.n; i++)
		if ((rest & core_bit(i)) && accused[i] != any)
			return false;
	return by_majority(c, core_count(rest));
}

/* Returns how long after the first accusation the others are collected. Several that die at once
 * are not found out in the same instant, so there is a wait even if all agree. */
static int64_t gather_us(const struct core *c, const uint64_t accused[NET_MAX_MEMBERS], uint64_t any) {
	return is_agreed(c, accused, any) ? c->cfg.suspect_gather_us / AGREED_SHARE : c->cfg.suspect_gather_us;
}

void core_weigh_suspects(struct core *c) {
	uint64_t accused[NET_MAX_MEMBERS], any = 0;
	if (c->roster.n == 0 || (any = read_accusations(c, accused)) == 0) {
		c->accused_since_us = INT64_MAX;
		return;
	}
	if (c->accused_since_us == INT64_MAX)
		c->accused_since_us = c->now_us;
	c->gather_us = gather_us(c, accused, any);
	if (c->now_us - c->accused_since_us < c->gather_us || is_unclear(c, accused))
		return;
	RV_ASSERT(c->gather_us <= c->cfg.suspect_gather_us && c->roster.n > 1);
	note_pairs(c, accused);
	c->owners_apart = core_blames_its_owners(c, accused);
	if (!c->owners_apart)
		distrust(c, accused);
	c->accused_since_us = INT64_MAX;
}
