/* suspects.c: accusations between participants, and which of them are believed.
 *
 * A participant that gets nothing from a peer accuses it in its reports. The first accusation opens
 * a window in which the others' are collected, a short one if all agree; then those with the most
 * accusers are distrusted. Only those: if one is dead, the others may seem to stall for want of its
 * data; the next attempt shows what is left to accuse.
 *
 * In a roster of several rows the others are those that exchange data with the accused: its row,
 * and the owners of its columns. Accusations by anybody else are not counted. Participants that die
 * in different rows and columns at once are put away together, each by a majority of its own
 * others; and several of one column, if they say nothing themselves.
 *
 * If no majority of the others accuses any participant, one accusation stands against another. A
 * participant that accuses several that report meanwhile is distrusted at least as much as each of
 * these: else one liar would put away all others, in each attempt, and hold the run up for ever.
 * Nor can it do so one by one: those that its accusation alone put away in this round, and that
 * report again, count too, and those with whom it was at odds in rounds before (odds.c). But one
 * that withholds from those that own chunks is put away by each of them in turn, and comes back
 * where it is needed: so those that put it away before count against it as well, without those that
 * accuse it now.
 *
 * One accused by fewer than half of a roster of one row, or in rows by fewer than core_odds_many()
 * that are no majority of it, is put away, and not to blame: they may agree on it, and in a short
 * row those that lie may be most. It is at odds with them, and in rows the deal parts them. In one
 * row it is at odds with those that it accuses as well, and from a round's second attempt on both
 * sides stay out of it: an attempt that ends by accusations costs both the same. Those at odds with
 * too many are no part of a majority. A participant of one row that is put away while it accuses
 * more than half of the others, two at least, which answer, is to blame.
 *
 * Nobody is distrusted where an accuser is known to be apart from the accused, and other members
 * can own their chunks: the next attempt has the same participants and those owners (pairs.c). That
 * ends DEALS attempts of a round: a liar that says it is apart from whomever it is dealt with would
 * else hold the run up for ever. */
#include "base/assert.h"
#include "coordinator/core/internal.h"

enum { AGREED_SHARE = 4 };

/* Returns true for those that have reported since the accusations are gathered. One that has
 * nothing new to say reports with its next heartbeat, which may be later. */
static bool answers(const struct core *c, uint32_t i) {
	const struct core_member *m = core_participant(c, i);
	return m->reported && m->heard_us >= c->accused_since_us;
}

/* Returns the accusers of participant `i` but for those that are at odds with too many, if it is
 * not. */
static int count_believed(const struct core_accusations *a, uint32_t i) {
	int n = a->accusers[i];
	for (int k = a->in_first[i]; k < a->in_first[i + 1] && !set_has(a->doubted, i); k++)
		n -= set_has(a->present, a->in[k]) && set_has(a->doubted, a->in[k]);
	RV_ASSERT(n >= 0);
	return n;
}

/* Returns true if the accusers of participant `i` are more than half of those that deal with it:
 * all others, or with several rows those of its row and of its columns. Where these are one alone,
 * it is believed of a participant that has not reported since. */
static bool by_majority(const struct core *c, const struct core_accusations *a, uint32_t i) {
	const struct core_rows *rows = &c->roster.rows;
	const bool many = core_rows_many(rows);
	const int others = many ? core_rows_dealing(rows, (int)i) : c->roster.n - 1, accusers = count_believed(a, i);
	return 2 * accusers > others && !(many && accusers == 1 && answers(c, i));
}

static uint64_t *put_away_by(const struct core *c, uint32_t slot) {
	return &c->put_away[slot * (uint32_t)c->words];
}

/* Counts the live members that the accusation of participant `i` alone put away in this round. */
static int wrongly_put_away(const struct core *c, uint32_t i) {
	const struct core_member *m = core_participant(c, i);
	const uint64_t *set = put_away_by(c, core_slot_of(c, m));
	int n = 0;
	if (m->put_away_round != c->round)
		return 0;
	for (int slot = set_next(set, 0, c->words); slot >= 0; slot = set_next(set, slot + 1, c->words))
		n += core_alive(c, &c->members[slot]);
	return n;
}

static void note_put_away(struct core *c, const struct core_accusations *a, uint32_t who) {
	if (a->accusers[who] != 1)
		return;
	for (int k = a->in_first[who]; k < a->in_first[who + 1]; k++) {
		if (!set_has(a->present, a->in[k]))
			continue;
		struct core_member *m = core_participant(c, a->in[k]);
		uint64_t *set = put_away_by(c, core_slot_of(c, m));
		if (m->put_away_round != c->round)
			set_clear(set, c->words);
		set_add(set, c->roster.slots[who]);
		m->put_away_round = c->round;
	}
}

/* Counts those whose accusation alone put participant `i` away in this round, and that do not
 * accuse it now; in a roster of several rows the pairs at odds say so. */
static int put_away_by_others(const struct core *c, const struct core_accusations *a, uint32_t i) {
	int n = 0;
	for (int k = 0; k < a->n && a->accusers[i] > 0 && !core_rows_many(&c->roster.rows); k++) {
		const struct core_member *m = core_participant(c, (uint32_t)k);
		const bool now = core_has_accused(a, (uint32_t)k, i);
		n += m->put_away_round == c->round && !now && set_has(put_away_by(c, c->roster.slots[k]), c->roster.slots[i]);
	}
	return n;
}

/* Returns the number of others with whom the accused, or the accuser of one that answers, has
 * been at odds before; an accuser has those wrongly put away at least, an accused one those that
 * put it away. */
static int doubts(const struct core *c, const struct core_accusations *a, uint32_t i, bool judged) {
	const int wrong = a->accuses[i] > 0 ? wrongly_put_away(c, i) : 0;
	const int odds = judged ? core_odds_of(c, c->roster.slots[i]) + put_away_by_others(c, a, i) : 0;
	return wrong > odds ? wrong : odds;
}

enum { WEIGHT_MOST = NET_MAX_ROSTER + NET_MAX_HERE + CORE_ODDS };

/* Returns the weight against a participant: first its accusations with others, both ways, also of
 * those that owe it nothing, and those of before, then its accusers. */
static int against(const struct core *c, const struct core_accusations *a, uint32_t of) {
	int accusers = a->accusers[of], weight = accusers + a->idle[of];
	for (int k = a->out_first[of]; k < a->out_first[of + 1]; k++) {
		uint32_t other = a->out[k];
		weight += set_has(a->present, other) && answers(c, other) && !core_has_accused(a, other, of);
	}
	weight += doubts(c, a, of, weight > 0);
	RV_ASSERT(weight >= accusers && weight <= WEIGHT_MOST);
	if (by_majority(c, a, of))
		weight = accusers + WEIGHT_MOST;
	return weight * (NET_MAX_ROSTER + 1) + accusers; /* so accusers decide between equal weights only */
}

static bool is_here(const struct core *c, const struct core_member *m) {
	return core_alive(c, m) && !m->banned;
}

/* Returns true if no third member is there that could own in the place of two. */
static bool are_alone(const struct core *c, const struct core_accusations *a) {
	return a->n == 2 && core_count_that(c, is_here) == 2;
}

/* Counts pairs: two that accuse each other, if no other has more accusers; or one that accuses
 * another alone. Where no third member is there both go on owning. Nor are two at odds in an
 * attempt that lacks a participant and goes on, as fewer than min_workers are left: all stall. */
static void note_pair(struct core *c, struct core_accusations *a, uint32_t i, uint32_t j, int most) {
	bool forth = core_has_accused(a, i, j), back = core_has_accused(a, j, i);
	bool mutual = forth && back && a->accusers[i] == most && a->accusers[j] == most;
	bool alone = forth != back && most == 1;
	if (!mutual && !alone)
		return;
	const bool two = are_alone(c, a), strikes = mutual || !two;
	const bool at_odds = strikes && (core_pair_strike(c, i, j) || core_rows_many(&c->roster.rows));
	core_say_of(c, CORE_EVENT_AT_ODDS, c->roster.slots[forth ? i : j], c->round, c->roster.members[forth ? j : i]);
	set_add(a->at_odds, i);
	set_add(a->at_odds, j);
	if (at_odds && !two && a->whole)
		core_odds_note(c, forth ? i : j, forth ? j : i, false);
}

/* Notes each pair once, with its lower place first. */
static void note_pairs(struct core *c, struct core_accusations *a) {
	int most = 0;
	set_clear(a->at_odds, c->roster_words);
	for (int i = 0; i < a->n; i++)
		most = a->accusers[i] > most ? a->accusers[i] : most;
	for (uint32_t i = 0; i < (uint32_t)a->n; i++) {
		int out = a->out_first[i], in = a->in_first[i];
		while (out < a->out_first[i + 1] || in < a->in_first[i + 1]) {
			int accused = out < a->out_first[i + 1] ? a->out[out] : a->n;
			int accuser = in < a->in_first[i + 1] ? a->in[in] : a->n;
			int other = accused < accuser ? accused : accuser;
			out += accused == other;
			in += accuser == other;
			if (other > (int)i)
				note_pair(c, a, i, (uint32_t)other, most);
		}
	}
}

/* Returns true if several accuse the participant that are few beside the roster: they may agree on
 * it, and in a row of three or four be most of it. */
static bool is_word_of_few(const struct core *c, const struct core_accusations *a, uint32_t who) {
	const int accusers = a->accusers[who];
	const bool few = accusers < core_odds_many(a->n) || !core_rows_many(&c->roster.rows);
	return accusers > 1 && few && 2 * accusers < a->n;
}

/* Notes the few that accuse a participant as at odds with it: they are dealt apart, and if it is at
 * fault, it will be at odds with more. */
static void note_few(struct core *c, const struct core_accusations *a, uint32_t who) {
	for (int k = a->in_first[who]; k < a->in_first[who + 1] && a->whole; k++)
		if (set_has(a->present, a->in[k]))
			core_odds_note(c, a->in[k], who, false);
}

/* Says of each of the few that accuse a participant that one of the two is at fault. */
static void say_few(struct core *c, const struct core_accusations *a, uint32_t who) {
	for (int k = a->in_first[who]; k < a->in_first[who + 1]; k++)
		if (set_has(a->present, a->in[k]))
			core_say_of(c, CORE_EVENT_AT_ODDS, c->roster.slots[a->in[k]], c->round, c->roster.members[who]);
}

/* Notes one that is put away as at odds with those that it accuses, if they answer, are linked with
 * it, and accuse nobody else: an attempt that ends by accusations costs both sides the same. One
 * that accuses half of the others may fail itself. */
static void note_its_word(struct core *c, const struct core_accusations *a, uint32_t who) {
	if (core_rows_many(&c->roster.rows) || 2 * a->accuses[who] >= a->n - 1 || 2 * a->accusers[who] >= a->n || !a->whole)
		return;
	for (int k = a->out_first[who]; k < a->out_first[who + 1]; k++) {
		const uint32_t other = a->out[k];
		const int else_of = a->accuses[other] - core_has_accused(a, other, who);
		const bool linked = core_are_linked(c, c->roster.slots[who], c->roster.slots[other]);
		if (set_has(a->present, other) && answers(c, other) && linked && else_of == 0)
			core_odds_note(c, who, other, false);
	}
}

/* Returns true if the participant accuses more than half of the others in one row, and these
 * answer. So many do not withhold from an honest member: it lies, or its own line fails. */
static bool accuses_most(const struct core *c, const struct core_accusations *a, uint32_t who) {
	int answering = 0;
	for (int k = a->out_first[who]; k < a->out_first[who + 1]; k++)
		answering += set_has(a->present, a->out[k]) && answers(c, a->out[k]);
	return !core_rows_many(&c->roster.rows) && answering > 1 && 2 * answering > a->n - 1;
}

/* Returns true for at least two accusers that are not few beside the roster, or, where two are
 * alone, for the other one if `who` accuses no participant; and for one that accuses most others,
 * or has been at odds with too many, or with most. A roster of two that a liar has brought about is
 * no reason to believe it, nor are two without which there is no roster: neither can be left out,
 * and blame would only keep one of them from those that join later. */
static bool is_to_blame(const struct core *c, const struct core_accusations *a, uint32_t who) {
	if (core_odds_blame(c, c->roster.slots[who]) || accuses_most(c, a, who))
		return true;
	if (a->n > 2)
		return a->accusers[who] > 1 && !is_word_of_few(c, a, who);
	return a->accusers[who] == 1 && a->accuses[who] == 0 && are_alone(c, a) && c->cfg.min_workers < 2;
}

/* Returns true if the participant is put away because it or another one is at fault: it reports,
 * and accuses one, or fewer than half of the others. Both have been logged as that. */
static bool is_one_of_two(const struct core *c, const struct core_accusations *a, uint32_t who) {
	const bool accuses_few = a->accuses[who] <= 1 || 2 * a->accuses[who] < a->n - 1;
	return set_has(a->at_odds, who) && accuses_few && c->now_us < core_silent_at(c, core_participant(c, who));
}

/* Takes a participant out: its accusations, and those of it, no longer count. Weighs those anew
 * that it accused, or that accused it. */
static void put_away(const struct core *c, struct core_accusations *a, uint32_t who, int *weights) {
	set_drop(a->present, who);
	a->accuses[who] = a->accusers[who] = weights[who] = 0;
	for (int k = a->out_first[who]; k < a->out_first[who + 1]; k++)
		a->accusers[a->out[k]] -= set_has(a->present, a->out[k]);
	for (int k = a->in_first[who]; k < a->in_first[who + 1]; k++)
		a->accuses[a->in[k]] -= set_has(a->present, a->in[k]);
	for (int k = a->out_first[who]; k < a->out_first[who + 1]; k++)
		if (set_has(a->present, a->out[k]))
			weights[a->out[k]] = against(c, a, a->out[k]);
	for (int k = a->in_first[who]; k < a->in_first[who + 1]; k++)
		if (set_has(a->present, a->in[k]))
			weights[a->in[k]] = against(c, a, a->in[k]);
}

/* From a round's second attempt on those at odds with one that is put away stay out with it, while
 * more than half of the round's members are left: so those that lie cost it no more attempts than
 * they are. Not in rows, nor beside one that may be dead. */
static void put_away_both(struct core *c, struct core_accusations *a, uint32_t who, int *weights) {
	uint64_t others[CORE_ROSTER_WORDS];
	const int half = core_size_of(c, c->rostered) / 2, min = (int)c->cfg.min_workers;
	const int least = half + 1 > min ? half + 1 : min;
	if (core_rows_many(&c->roster.rows) || c->attempt < 2 || !answers(c, who))
		return;
	core_odds_with(c, who, others);
	set_meet(others, a->present, c->roster_words);
	int left = set_count(a->present, c->roster_words);
	for (int i = set_next(others, 0, c->roster_words); i >= 0 && left-- > least;
		 i = set_next(others, i + 1, c->roster_words)) {
		core_participant(c, (uint32_t)i)->distrusted = true;
		put_away(c, a, (uint32_t)i, weights);
	}
}

/* Returns true if participant `i` has neither accused anybody in this attempt nor reported since
 * the first accusation. One that is alive and waits for another accuses that one before others
 * accuse it: their patience is longer (net/reduce/grid.c). */
static bool says_nothing(const struct core *c, const struct core_accusations *a, uint32_t i) {
	return a->out_first[i] == a->out_first[i + 1] && !answers(c, i);
}

/* Returns true if, in a roster of several rows, a majority of those that deal with the participant
 * accuses it, and it does not stall for want of the data of those `away`: it deals with none of
 * them, or is dead too, as several owners of one column may be. */
static bool fails_elsewhere(const struct core *c, const struct core_accusations *a, uint32_t i, const uint64_t *away) {
	const struct core_rows *rows = &c->roster.rows;
	if (!core_rows_many(rows) || !by_majority(c, a, i))
		return false;
	if (says_nothing(c, a, i))
		return true;
	for (int other = set_next(away, 0, c->roster_words); other >= 0; other = set_next(away, other + 1, c->roster_words))
		if (core_rows_deal(rows, (int)i, other))
			return false;
	return true;
}

/* Returns the participant to put away next: of those with weight `most` or more, or that fail
 * elsewhere than `away`, the one with the most weight, of several the highest place; -1: none. */
static int find_worst(const struct core *c, const struct core_accusations *a, const int *weights, int most,
					  const uint64_t *away) {
	int worst = -1;
	for (int i = 0; i < a->n; i++) {
		if (weights[i] == 0 || (worst >= 0 && weights[i] < weights[worst]))
			continue;
		if (weights[i] >= most || fails_elsewhere(c, a, (uint32_t)i, away))
			worst = i;
	}
	return worst;
}

/* Distrusts those with the most weight against them, and of rows in which others have failed those
 * too. */
static void distrust(struct core *c, struct core_accusations *a) {
	int weights[NET_MAX_ROSTER], most = 0;
	uint64_t away[CORE_ROSTER_WORDS] = {0};
	const bool alone = are_alone(c, a);
	for (uint32_t i = 0; i < (uint32_t)a->n; i++)
		weights[i] = against(c, a, i);
	for (;;) {
		const int found = find_worst(c, a, weights, most, away);
		if (found < 0)
			return;
		const uint32_t worst = (uint32_t)found;
		struct core_member *m = core_participant(c, worst);
		RV_ASSERT(!m->distrusted); /* each of them once */
		most = weights[worst] > most ? weights[worst] : most;
		set_add(away, worst);
		note_put_away(c, a, worst);
		const bool few = is_word_of_few(c, a, worst);
		if (few)
			note_few(c, a, worst);
		note_its_word(c, a, worst);
		const bool to_blame = is_to_blame(c, a, worst), unsure = few && answers(c, worst) && !to_blame;
		if (unsure)
			say_few(c, a, worst);
		if (to_blame)
			set_add(c->blamed, core_slot_of(c, m));
		m->distrusted = true;
		core_note_fallen(c, core_slot_of(c, m));
		if ((to_blame && !alone) || !(unsure || is_one_of_two(c, a, worst)))
			core_say(c, CORE_EVENT_SUSPECTED, core_slot_of(c, m), c->round);
		put_away(c, a, worst, weights);
		if (!to_blame)
			put_away_both(c, a, worst, weights);
	}
}

static bool accuses_a_silent_one(const struct core *c, const struct core_accusations *a, uint32_t i) {
	for (int k = a->out_first[i]; k < a->out_first[i + 1]; k++)
		if (!answers(c, a->out[k]))
			return true;
	return false;
}

/* Returns true if no majority accuses any participant, but a doubtful one (it accuses several, or
 * has put a member away wrongly) accuses one that has not reported since: whether that one is dead
 * will soon be known. */
static bool is_unclear(const struct core *c, const struct core_accusations *a) {
	bool doubtful = false;
	for (uint32_t i = 0; i < (uint32_t)a->n; i++) {
		if (by_majority(c, a, i))
			return false;
		if (!doubtful && a->accuses[i] > 0)
			doubtful = a->accuses[i] + doubts(c, a, i, true) > 1 && accuses_a_silent_one(c, a, i);
	}
	return doubtful && c->now_us < c->unclear_until_us;
}

/* Returns true while it is unclear who is dead, and once, when those that were silent report again:
 * who accuses them may not have had their data yet, and takes that back as soon as it has. */
static bool awaits_silent(struct core *c, const struct core_accusations *a) {
	if (is_unclear(c, a))
		return c->was_unclear = true;
	if (!c->was_unclear || c->gathered_anew || c->now_us >= c->unclear_until_us)
		return false;
	c->gathered_anew = true;
	c->accused_since_us = c->now_us;
	return true;
}

/* Returns true if nobody is accused by more than one, no two accuse each other, and those that
 * accuse nobody may still vote over the others (majority.c). One that is accused and has not
 * reported since may be dead: that will soon be known. */
static bool may_be_outvoted(const struct core *c, const struct core_accusations *a) {
	const bool waited = c->now_us - c->accused_since_us >= core_unclear_us(c);
	int accusers = 0;
	for (uint32_t i = 0; i < (uint32_t)a->n; i++) {
		if (a->accusers[i] > 1 || by_majority(c, a, i))
			return false;
		accusers += a->accuses[i] > 0;
		for (int k = a->out_first[i]; k < a->out_first[i + 1]; k++)
			if (core_has_accused(a, a->out[k], i) || (waited && !answers(c, a->out[k])))
				return false;
	}
	return core_may_be_outvoted(c, accusers);
}

/* Returns true if all participants without an accuser are a majority and accuse the same ones: no
 * more accusations of theirs will come. */
static bool is_agreed(const struct core *c, const struct core_accusations *a) {
	int rest = 0;
	for (uint32_t i = 0; i < (uint32_t)a->n; i++) {
		if (!set_has(a->present, i) || a->accusers[i] > 0)
			continue;
		if (a->accuses[i] != a->n_any)
			return false;
		rest++;
	}
	return 2 * rest > c->roster.n - 1;
}

/* Returns how long after the first accusation the others are collected. Several that die at once
 * are not found out in the same instant, so there is a wait even if all agree. */
static int64_t gather_us(const struct core *c, const struct core_accusations *a) {
	return is_agreed(c, a) ? c->cfg.suspect_gather_us / AGREED_SHARE : c->cfg.suspect_gather_us;
}

/* Puts those away that accuse only whom they owe nothing, nor they them, once all others that are
 * present have voted: else an attempt in which these are no majority lasts to its deadline. */
static void put_away_vain(struct core *c, const struct core_accusations *a) {
	uint64_t vain[CORE_ROSTER_WORDS], rest[CORE_ROSTER_WORDS];
	set_clear(vain, c->roster_words);
	for (uint32_t i = 0; i < (uint32_t)a->n; i++)
		if (a->idle[i] > 0 && set_has(a->present, i))
			set_add(vain, i);
	set_copy(rest, a->present, c->roster_words);
	set_less(rest, vain, c->roster_words);
	if (set_is_empty(rest, c->roster_words) || !set_is_within(rest, c->roster.voted, c->roster_words))
		return;
	for (int i = set_next(vain, 0, c->roster_words); i >= 0; i = set_next(vain, i + 1, c->roster_words)) {
		struct core_member *m = core_participant(c, (uint32_t)i);
		m->distrusted = true;
		core_say(c, CORE_EVENT_SUSPECTED, core_slot_of(c, m), c->round);
	}
}

enum { DEALS = 3 }; /* attempts of a round that may end for one of these reasons */

void core_weigh_suspects(struct core *c) {
	struct core_accusations a;
	if (c->roster.n == 0 || !core_read_accusations(c, &a)) {
		if (c->roster.n > 0)
			put_away_vain(c, &a);
		c->accused_since_us = INT64_MAX;
		return;
	}
	if (c->accused_since_us == INT64_MAX) {
		c->accused_since_us = c->now_us;
		c->unclear_until_us = c->now_us + core_unclear_us(c);
		c->was_unclear = false;
	}
	c->gather_us = gather_us(c, &a);
	if (c->now_us - c->accused_since_us < c->gather_us || awaits_silent(c, &a) || may_be_outvoted(c, &a))
		return;
	RV_ASSERT(c->gather_us <= c->cfg.suspect_gather_us && c->roster.n > 1);
	a.whole = set_count(a.present, c->roster_words) == a.n;
	note_pairs(c, &a);
	if (!core_blames_its_owners(c, &a) || !core_deal_anew(c))
		distrust(c, &a);
	c->accused_since_us = INT64_MAX;
}

/* Ends the attempt, unless as many have ended for the same reason. */
static bool end_attempt(struct core *c, uint32_t *so_many) {
	if (*so_many == DEALS)
		return false;
	++*so_many;
	return c->owners_apart = true;
}

bool core_deal_anew(struct core *c) {
	return end_attempt(c, &c->n_dealt);
}

bool core_void_attempt(struct core *c) {
	return end_attempt(c, &c->n_void);
}
