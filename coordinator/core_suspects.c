/* core_suspects.c: accusations between participants, and who is believed.
 *
 * A participant that gets nothing from a peer says so in its reports. The first accusation opens a window in which the
 * others' are gathered; then those with the most accusers are distrusted. Only those: where one is dead, the others may
 * seem to stall for want of its data; what is left to accuse after that, the next attempt will show. */
#include "coordinator/core_internal.h"

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

/* The participant with the most accusers; of several the one with the highest index. */
static uint32_t most_accused(const uint64_t accused[NET_MAX_MEMBERS], int n, int *accusers) {
	uint32_t worst = 0;
	*accusers = 0;
	for (int i = 0; i < n; i++) {
		int count = count_accusers(accused, n, (uint32_t)i);
		if (count > 0 && count >= *accusers) {
			*accusers = count;
			worst = (uint32_t)i;
		}
	}
	return worst;
}

/* Two that accuse each other, and whom nobody is accused more often than, or one that accuses one whom all others hear. */
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

static void distrust(struct core *c, uint64_t accused[NET_MAX_MEMBERS]) {
	int n = c->roster.n, most = 0;
	for (;;) {
		int accusers;
		uint32_t worst = most_accused(accused, n, &accusers);
		if (accusers == 0 || accusers < most)
			return;
		most = accusers;
		c->members[c->roster.members[worst]].distrusted = true;
		core_say(c, CORE_EVENT_SUSPECTED, c->roster.members[worst], c->round);
		accused[worst] = 0;
		for (int i = 0; i < n; i++)
			accused[i] &= ~core_bit(worst);
	}
}

void core_weigh_suspects(struct core *c) {
	uint64_t accused[NET_MAX_MEMBERS];
	if (c->roster.n == 0 || read_accusations(c, accused) == 0) {
		c->accused_since_us = INT64_MAX;
		return;
	}
	if (c->accused_since_us == INT64_MAX)
		c->accused_since_us = c->now_us;
	if (c->now_us - c->accused_since_us < c->cfg.suspect_gather_us)
		return;
	note_pairs(c, accused);
	distrust(c, accused);
	c->accused_since_us = INT64_MAX;
}
