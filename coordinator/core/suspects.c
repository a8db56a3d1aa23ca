/* suspects.c: accusations between participants, and who is believed.
 *
 * A participant that gets nothing from a peer says so in its reports. The first accusation opens a window in which the
 * others' are gathered, a short one when all agree; then those with the most accusers are distrusted. Only those: where
 * one is dead, the others may seem to stall for want of its data; what is left to accuse after that, the next attempt
 * will show.
 *
 * Where no majority of the others accuses anybody, it is one word against another's. Who accuses several that are heard
 * of meanwhile is taken at least as badly as each of these: else one liar would put away everybody else, in each
 * attempt, and hold the run up for ever. Nor one by one: those whom its word alone put away in this round, and who are
 * heard of again, count too. */
#include "coordinator/core/internal.h"

enum { AGREED_SHARE = 4 };

/* accused[i]: the participants that i accuses, by its last report. Only the words of those that can be counted on,
 * about those that can be counted on. */
static uint64_t read_accusations(const struct core *c, uint64_t accused[NET_MAX_MEMBERS]) {
	const struct core_roster *r = &c->roster;
	uint64_t present = core_first(r->n) & ~core_missed(c), any = 0;
	for (uint32_t i = 0; i < r->n; i++) {
		const struct report *rep = &c->members[r->members[i]].last;
		bool speaks = (present & core_bit(i)) && (rep->phase == WORKER_REDUCING || rep->phase == WORKER_VOTED) &&
					  rep->round == c->round && rep->attempt == c->attempt;
		accused[i] = speaks ? rep->suspects & present & ~core_bit(i) : 0;
		any |= accused[i];
	}
	return any;
}

static int count_accusers(const uint64_t accused[NET_MAX_MEMBERS], int n, uint32_t of) {
	int count = 0;
	for (int i = 0; i < n; i++)
		count += (accused[i] & core_bit(of)) != 0;
	return count;
}

/* Heard of since the first accusation: reports come more often than this waits. */
static uint64_t answering(const struct core *c) {
	uint64_t set = 0;
	for (uint32_t i = 0; i < c->roster.n; i++) {
		const struct core_member *m = &c->members[c->roster.members[i]];
		if (m->reported && m->heard_us >= c->accused_since_us)
			set |= core_bit(i);
	}
	return set;
}

static bool by_majority(const struct core *c, int accusers) {
	return 2 * accusers > c->roster.n - 1;
}

/* Members that it put away in this round, on its word alone, and who live. */
static int wrongly_put_away(const struct core *c, const struct core_member *m) {
	int n = 0;
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

/* What speaks against a participant, the weightier in front: what is between it and others, and how many accuse it. */
static int against(const struct core *c, const uint64_t accused[NET_MAX_MEMBERS], uint32_t of) {
	int n = c->roster.n, accusers = count_accusers(accused, n, of);
	uint64_t between = accused[of] & answering(c);
	for (int i = 0; i < n; i++)
		if (accused[i] & core_bit(of))
			between |= core_bit((uint32_t)i);
	int weight = core_count(between);
	if (accused[of] != 0)
		weight += wrongly_put_away(c, &c->members[c->roster.members[of]]);
	if (by_majority(c, accusers))
		weight = accusers + 2 * NET_MAX_MEMBERS;
	return weight * (NET_MAX_MEMBERS + 1) + accusers;
}

/* The participant against which most speaks; of several the one with the highest index. */
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
	return worst;
}

/* Two that accuse each other, and whom nobody is accused more often than, or one that accuses one whom all others
 * hear. */
static void note_pairs(struct core *c, const uint64_t accused[NET_MAX_MEMBERS]) {
	int n = c->roster.n, most = 0, accusers[NET_MAX_MEMBERS];
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

/* More than one word, or the only one that there can be, and not answered by the like. */
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

/* No majority accuses anybody, but one that is not to be believed at once (it accuses several, or has put somebody away
 * wrongly) accuses who was not heard of yet: whether that one is dead will soon be known. */
static bool is_unclear(const struct core *c, const uint64_t accused[NET_MAX_MEMBERS]) {
	bool doubtful = false;
	for (uint32_t i = 0; i < c->roster.n; i++) {
		if (by_majority(c, count_accusers(accused, c->roster.n, i)))
			return false;
		int words = core_count(accused[i]) + wrongly_put_away(c, &c->members[c->roster.members[i]]);
		doubtful |= words > 1 && (accused[i] & ~answering(c)) != 0;
	}
	return doubtful && c->now_us - c->accused_since_us < core_unclear_us(c);
}

/* All whom nobody accuses, and they are a majority, say the same: no further word of theirs is to come. */
static bool is_agreed(const struct core *c, const uint64_t accused[NET_MAX_MEMBERS], uint64_t any) {
	uint64_t rest = core_first(c->roster.n) & ~core_missed(c) & ~any;
	for (uint32_t i = 0; i < c->roster.n; i++)
		if ((rest & core_bit(i)) && accused[i] != any)
			return false;
	return by_majority(c, core_count(rest));
}

/* How long after the first accusation the others are gathered. Several that die at once are not found out in the same
 * instant, so not at once even where all agree. */
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
	note_pairs(c, accused);
	distrust(c, accused);
	c->accused_since_us = INT64_MAX;
}
