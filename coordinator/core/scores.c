/* scores.c: audits of training (net/control/score.h): whose contribution to a committed round is
 * scored, by whom, and what follows.
 *
 *   DRAWN     at the commit, from the round's secret and digest as audits of averages are
 *             (audits.c): a participant, newcomers and those with strikes more often; sequences
 *             leased to it; and an order of the other participants of its row. The first is the
 *             auditor.
 *             In a share of them the auditor repeats its steps instead (repeats.c): what holds
 *             below of little gain then holds of a contribution that is not what they give
 *     -> WORTHY      its gain is SCORE_LIMIT of the auditor's own, or more
 *     -> DOUBTED     it is not: two others score it as well
 *        -> WORTHLESS  two find so, and more than half of all that were asked: a strike. Where the
 *                      next one bans the author, three, and five score it
 *             -> the struck member APPEALS: two that were not asked before score it again
 *                  -> CLEARED  both find it worthy: the strike is taken back
 *                  -> UPHELD   one does not
 *        -> WORTHY     two find the contrary. Nobody is named: a measurement is no proof
 *     -> the next auditor, if one is UNABLE, or says nothing for some rounds, or says WITHHELD; two
 *        (three) that say WITHHELD and are more than half of those asked, where nobody finds it
 *        worthy: a strike. One that gives nothing worth having may show it to some: where nobody
 *        is left to ask, those that find it worthless count with those that did not get it
 *     -> two more, if one says UNREACHED, CUT or SLOW
 *        -> EVADED  the window is over, nobody finds it worthy, and three say so whose links work:
 *                   a strike, if it was so in the audit before (evasion.c)
 *     -> UNRESOLVED  the window is over: an event names the author
 *
 * How many are drawn follows from the share of the roster's training that they may cost: a score is
 * four forward passes over its sequences, two for the author's and two for the auditor's own
 * contribution, and a step of training is three; a repeat is all steps of a round. At most a
 * quarter of the roster is drawn.
 *
 * Auditors are of the author's own row: in each round they exchange data with its owners as the
 * author does, so that they are linked with it, and evasion.c can tell whose fault it is if they
 * are not. What holds of "others" holds of those of the row.
 *
 * Audits that are not over are not durable: a restarted coordinator draws the same ones again. What
 * is durable is the strike, and that its appeal is over (reputation.c). */
#include "base/assert.h"
#include "base/planted.h"
#include "coordinator/core/internal.h"

#include <string.h>

enum {
	SILENT_ROUNDS = 2, /* an auditor that has said nothing for more rounds than that is not waited for */
	AGREE = 2,         /* auditors that strike, clear, or find that a contribution was withheld */
	LEAST = 3,         /* participants of a row: an author, and two that agree about it */
	FEW = 4,           /* others in a row: below, two strike also where a ban is next, but do not ban */
	PASSES_OF_SCORE = 4,
	PASSES_OF_STEP = 3,
	ONE = 1000000
};

bool core_has_scores(const struct core *c) {
	return c->cfg.audit_ppm > 0 && c->cfg.lease_round > 0;
}

/* ---- draws ---- */

/* Draws of one seed are numbered: those of a purpose, then of an audit. */
enum purpose { HOW_MANY, WHOM, WHERE, BY_WHOM, PURPOSES };
static uint32_t draw(const struct rv_hash *seed, enum purpose purpose, uint32_t audit, uint32_t i, uint32_t below) {
	return audit_draw(seed, (audit * PURPOSES + purpose) * NET_MAX_ROW + i, below);
}

static struct rv_hash seed_of(const struct core *c, const struct rv_hash *digest) {
	const struct rv_hash secret = core_audit_secret(c, c->round), seed = audit_seed_of(&secret, digest);
	struct rv_hasher h = rv_hasher_of("rivulet scores");
	rv_hash_update(&h, seed.b, sizeof seed.b);
	return rv_hash_final(&h);
}

/* Returns the passes over a sequence that an audit takes in the mean, in millionths, where each
 * participant has read so many. */
static uint64_t passes_of_audit(const struct core *c, uint64_t sequences) {
	const uint64_t scored = sequences < CORE_SCORE_SEQUENCES ? sequences : CORE_SCORE_SEQUENCES;
	return PASSES_OF_SCORE * scored * (ONE - c->cfg.repeat_ppm) + PASSES_OF_STEP * sequences * c->cfg.repeat_ppm;
}

/* Returns how many audits of the roster cost as much as they may, in millionths. */
static uint64_t affordable(const struct core *c) {
	enum { THOUSAND = 1000 };
	const struct core_roster *r = &c->roster;
	uint64_t read = 0;
	for (int i = 0; i < r->n; i++)
		read += r->lease_count[i];
	const uint64_t passes = passes_of_audit(c, read / r->n);
	return passes > 0 ? read * c->cfg.audit_ppm * PASSES_OF_STEP * THOUSAND / (passes / THOUSAND) : 0;
}

/* Returns how often the participant at `place` is drawn, beside one of long standing; 0: its row is
 * too short, as one auditor strikes nobody. */
static uint32_t doubt(const struct core *c, uint32_t place) {
	const struct core_member *m = core_participant(c, place);
	const uint32_t rounds = m->reputation.rounds;
	if (core_row_at(&c->roster, place).n < LEAST)
		return 0;
	return (rounds < 8 ? 8 : rounds < 32 ? 4 : rounds < 128 ? 2 : 1) << m->reputation.strikes;
}

/* Returns the sum of all doubts; 0: nobody can be audited. */
static uint32_t all_doubts(const struct core *c) {
	uint32_t sum = 0;
	for (uint32_t i = 0; i < c->roster.n; i++)
		sum += doubt(c, i);
	return sum;
}

static uint32_t draw_author(const struct core *c, const struct rv_hash *seed, uint32_t audit) {
	uint32_t place = 0, at = draw(seed, WHOM, audit, 0, all_doubts(c));
	while (at >= doubt(c, place))
		at -= doubt(c, place++);
	return place;
}

bool core_score_reads(struct score_order *o, uint64_t position) {
	struct lease_piece *last = o->n_pieces > 0 ? &o->pieces[o->n_pieces - 1] : NULL;
	if (last != NULL && last->begin + last->count == position)
		last->count++;
	else if (o->n_pieces < SCORE_PIECES)
		o->pieces[o->n_pieces++] = (struct lease_piece){.begin = position, .count = 1};
	else
		return false;
	return true;
}

/* Sets the sequences that are scored: a stretch of those that the participant has read. */
static void draw_text(const struct core *c, const struct rv_hash *seed, uint32_t audit, uint32_t place,
					  struct score_order *o) {
	const struct core_roster *r = &c->roster;
	const uint32_t all = r->lease_count[place], n = all < CORE_SCORE_SEQUENCES ? all : CORE_SCORE_SEQUENCES;
	const uint64_t first = r->lease_first[place] + draw(seed, WHERE, audit, 0, all - n + 1);
	for (uint32_t i = 0; i < n; i++) {
		if (!core_score_reads(o, leases_position(&c->leases.all, r->slots[place], first + i)))
			return; /* of many small pieces the first ones */
	}
}

static void draw_auditors(const struct core *c, const struct rv_hash *seed, uint32_t audit, uint32_t author,
						  struct core_score *s) {
	const struct core_row row = core_row_at(&c->roster, author);
	for (uint32_t i = 0; i < c->roster.n && s->n < NET_MAX_ROW; i++)
		if ((i - row.first < row.n || RV_BUG("score-any-row")) && (i != author || RV_BUG("score-oneself")))
			s->by[s->n++].member = c->roster.members[i];
	for (uint32_t i = 0; i + 1 < s->n; i++) {
		const uint32_t k = i + draw(seed, BY_WHOM, audit, i, s->n - i);
		const struct core_scorer other = s->by[k];
		s->by[k] = s->by[i];
		s->by[i] = other;
	}
}

static bool is_drawn(const struct core *c, uint32_t member) {
	for (int i = 0; i < c->scores.n; i++)
		if (c->scores.open[i].order.round == c->round && c->scores.open[i].order.member == member)
			return true;
	return false;
}

/* Returns the participant's share of the mean, rounded up. */
static uint32_t share_of(const struct core_roster *r, uint32_t place) {
	uint64_t sum = 0;
	for (int i = 0; i < r->n; i++)
		sum += r->weights[i];
	return (uint32_t)(((uint64_t)r->weights[place] * SCORE_SHARE_ONE + sum - 1) / sum);
}

/* Returns the member's committed rounds with the one under way. */
static uint32_t rounds_with(const struct core_member *m) {
	return m->reputation.rounds + (m->reputation.rounds < UINT32_MAX);
}

static void draw_one(struct core *c, const struct rv_hash *seed, uint32_t audit) {
	const struct core_roster *r = &c->roster;
	const uint32_t place = draw_author(c, seed, audit);
	if (c->scores.n == CORE_SCORES || is_drawn(c, r->members[place]))
		return;
	struct core_score *s = &c->scores.open[c->scores.n++];
	*s = (struct core_score){.order = {.round = c->round,
									   .member = r->members[place],
									   .n_chunks = r->n_chunks,
									   .share = share_of(r, place),
									   .codec = r->codecs[place],
									   .part = r->parts[place],
									   .root = r->roots[place].root},
							 .rounds = rounds_with(core_participant(c, place)),
							 .asked = 1,
							 .asked_round = c->round + 1}; /* the one that opens with this commit */
	draw_text(c, seed, audit, place, &s->order);
	if (c->cfg.repeat_ppm > 0 && draw(seed, WHERE, audit, 1, ONE) < c->cfg.repeat_ppm)
		core_put_repeat(c, place, &s->order);
	c->scores.figures.repeats += s->order.repeat && !c->replaying;
	draw_auditors(c, seed, audit, place, s);
	s->by[0].asked_round = s->asked_round;
	c->scores.figures.drawn += !c->replaying;
}

static void close_score(struct core *c, int i) {
	c->scores.n--;
	memmove(&c->scores.open[i], &c->scores.open[i + 1], (size_t)(c->scores.n - i) * sizeof c->scores.open[0]);
}

static void say(struct core *c, enum core_event_type type, const struct core_score *s, uint32_t other) {
	const int slot = core_find(c, s->order.member);
	if (slot >= 0)
		core_say_of(c, type, (uint32_t)slot, s->order.round, other);
}

static void find_evaded(struct core *c, const struct core_score *s, uint32_t kept_away) {
	const int slot = core_find(c, s->order.member);
	c->scores.figures.evaded++;
	if (slot >= 0)
		core_evade(c, (uint32_t)slot, s->order.round, kept_away);
}

/* Drops audits whose window is over, and those that nobody can ask about. */
static void drop_over(struct core *c) {
	for (int i = c->scores.n - 1; i >= 0; i--) {
		const struct core_score *s = &c->scores.open[i];
		const bool late = c->round + 1 - s->order.round > c->cfg.audit_window;
		if (!late && (!s->over || (s->struck && !s->appealed)))
			continue;
		const uint32_t kept_away = !s->over && !s->appealed ? core_count_evaded(s) : 0;
		if (kept_away > 0) {
			find_evaded(c, s, kept_away);
		} else if (!s->over && !c->replaying) {
			c->scores.figures.unresolved++;
			say(c, CORE_EVENT_UNRESOLVED, s, 0);
		}
		close_score(c, i);
	}
}

static void draw_audits(struct core *c, const struct rv_hash *digest) {
	if (all_doubts(c) == 0)
		return;
	const struct rv_hash seed = seed_of(c, digest);
	const uint64_t may = affordable(c);
	uint64_t n = may / ONE + (draw(&seed, HOW_MANY, 0, 0, ONE) < may % ONE);
	for (uint32_t i = 0; i < n && i < (c->roster.n + 3u) / 4; i++) /* each moves a whole contribution */
		draw_one(c, &seed, i);
}

void core_scores_commit(struct core *c, const struct rv_hash *digest) {
	if (!core_has_scores(c))
		return;
	core_note_met(c);
	drop_over(c);
	draw_audits(c, digest);
	core_note_inner(c);
}

void core_scores_rollback(struct core *c, uint64_t to_round) {
	for (int i = c->scores.n - 1; i >= 0; i--)
		if (c->scores.open[i].order.round >= to_round)
			close_score(c, i);
}

void core_scores_struck(struct core *c, uint32_t member) {
	for (int i = 0; i < c->scores.n; i++)
		if (c->scores.open[i].order.member == member)
			c->scores.open[i].rounds = 0;
}

/* ---- measurements ---- */

static struct core_score *find(struct core *c, uint64_t round, uint32_t member) {
	for (int i = 0; i < c->scores.n; i++)
		if (c->scores.open[i].order.round == round && c->scores.open[i].order.member == member)
			return &c->scores.open[i];
	return NULL;
}

/* Opens the audit again for which the member was struck, once. */
static void take_appeal(struct core *c, const struct core_member *m) {
	struct core_score *s = find(c, m->reputation.struck_round, m->number);
	if (!core_may_appeal(c, m) || s == NULL || !s->struck || s->appealed)
		return;
	s->appealed = true;
	s->over = false;
	s->from = s->asked;
	c->scores.figures.appeals++;
	say(c, CORE_EVENT_APPEALED, s, 0);
}

/* An auditor that did not reach the author, or was cut off, goes on trying; one that was given all
 * too slowly may have it after a restart. */
static bool may_say(const struct core_scorer *by, const struct score_result *r) {
	const uint8_t said = by->said.verdict;
	return said == 0 || (said == SCORE_UNREACHED && r->verdict != SCORE_UNREACHED) ||
		   (said == SCORE_CUT && r->verdict != SCORE_UNREACHED && r->verdict != SCORE_CUT) ||
		   (said == SCORE_SLOW && score_has_looked(r));
}

void core_take_scores(struct core *c, uint32_t slot) {
	const struct core_member *m = &c->members[slot];
	for (int k = 0; k < m->last.n_scores && m->last.term == c->term; k++) {
		const struct score_result *r = &m->last.scores[k];
		struct core_score *s = find(c, r->round, r->member);
		for (uint32_t i = 0; s != NULL && i < s->asked; i++)
			if (s->by[i].member == m->number && score_fits(&s->order, r->verdict) && may_say(&s->by[i], r))
				s->by[i].said = *r;
	}
	if (m->last.appeals && m->last.term == c->term)
		take_appeal(c, m);
}

/* What auditors say together: those of an appeal, or all before it. */
struct tally {
	uint32_t worthy, worthless, withheld, unreached, waiting;
};

enum core_look core_look_of(const struct core_scorer *by) {
	if (!score_has_looked(&by->said))
		return CORE_LOOK_NONE;
	if (by->said.verdict == SCORE_MEASURED && !(by->said.own > 0))
		return CORE_LOOK_BLIND;
	return score_is_low(&by->said) ? CORE_LOOK_WORTHLESS : CORE_LOOK_WORTHY;
}

static bool finds_worthless(const struct core_scorer *by) {
	return core_look_of(by) == CORE_LOOK_WORTHLESS;
}

static struct tally tally_of(const struct core_score *s) {
	struct tally t = {0};
	for (uint32_t i = s->appealed ? s->from : 0; i < s->asked; i++) {
		const struct core_scorer *by = &s->by[i];
		t.worthy += core_look_of(by) == CORE_LOOK_WORTHY;
		t.worthless += finds_worthless(by);
		t.withheld += by->said.verdict == SCORE_WITHHELD;
		t.unreached += core_says_away(by);
		t.waiting += by->said.verdict == 0 && !by->silent;
	}
	return t;
}

/* `found`: so many auditors did. */
static void strike(struct core *c, struct core_score *s, uint32_t found, enum core_strike_reason reason) {
	const int slot = core_find(c, s->order.member);
	s->over = true;
	c->scores.changed = true;
	s->struck = slot >= 0 && !RV_BUG("strike-nobody") && core_strike(c, (uint32_t)slot, s->order.round, found, reason);
}

/* Returns what the first says that finds it worthless: there is one. */
static const struct score_result *first_worthless(const struct core_score *s) {
	uint32_t i = 0;
	while (i + 1 < s->asked && !finds_worthless(&s->by[i]))
		i++;
	return &s->by[i].said;
}

/* Returns it as a number of 32 bits with a sign. */
static uint32_t in_thousandths(double x) {
	const double k = 1000 * x;
	return (uint32_t)(int32_t)(k < -1e9 ? -1e9 : k > 1e9 ? 1e9 : k);
}

/* Says by how much the auditor's own gain, or what its steps give, is missed. */
static void say_worthless(struct core *c, const struct core_score *s) {
	const struct score_result *r = first_worthless(s);
	if (r->verdict == SCORE_REPEATED)
		say(c, CORE_EVENT_UNREPEATED, s, in_thousandths((double)r->gain));
	else
		say(c, CORE_EVENT_WORTHLESS, s, in_thousandths((double)r->gain / (double)r->own));
}

/* The author gave its contribution. */
static void note_given(struct core *c, const struct core_score *s) {
	const int slot = core_find(c, s->order.member);
	if (slot >= 0)
		c->members[slot].evaded = 0;
}

static void find_worthless(struct core *c, struct core_score *s, uint32_t found) {
	note_given(c, s);
	c->scores.figures.worthless++;
	say_worthless(c, s);
	strike(c, s, found, CORE_STRIKE_TRAINING);
}

/* Returns the first that says that it was withheld: there is one. */
static uint32_t first_without(const struct core_score *s) {
	uint32_t i = 0;
	while (i + 1 < s->asked && s->by[i].said.verdict != SCORE_WITHHELD)
		i++;
	return s->by[i].member;
}

static void find_withheld(struct core *c, struct core_score *s, uint32_t found) {
	say(c, CORE_EVENT_WITHHELD, s, first_without(s));
	strike(c, s, found, CORE_STRIKE_WITHHELD);
}

static void find_worthy(struct core *c, struct core_score *s) {
	const int slot = core_find(c, s->order.member);
	note_given(c, s);
	if (slot >= 0)
		core_note_worthy(c, (uint32_t)slot, s->rounds);
	s->over = true;
	c->scores.changed = true;
	c->scores.figures.worthy++;
}

static void end_appeal(struct core *c, struct core_score *s, bool cleared) {
	const int slot = core_find(c, s->order.member);
	s->over = true;
	c->scores.changed = true;
	say(c, cleared ? CORE_EVENT_CLEARED : CORE_EVENT_UPHELD, s, 0);
	c->scores.figures.lifted += cleared && slot >= 0;
	if (slot >= 0 && cleared)
		core_lift_strike(c, (uint32_t)slot, s->order.round);
	else if (slot >= 0)
		core_uphold_strike(c, (uint32_t)slot, s->order.round);
}

/* Asks one more auditor, that is here; returns false if none is left. */
static bool ask_next(struct core *c, struct core_score *s) {
	while (s->asked < s->n) {
		struct core_scorer *by = &s->by[s->asked++];
		s->asked_round = by->asked_round = c->round;
		c->scores.changed = true;
		if (core_may_audit(c, by->member))
			return true;
		by->said.verdict = SCORE_UNABLE;
	}
	return false;
}

/* Counts those as unable that are gone, and waits no longer for those that have said nothing for
 * long: where rounds are short they still wait for the author, or score another one. */
static void give_up_silent(const struct core *c, struct core_score *s) {
	const bool late = c->round > s->asked_round + SILENT_ROUNDS;
	for (uint32_t i = 0; i < s->asked; i++) {
		struct core_scorer *by = &s->by[i];
		if (by->said.verdict == 0 && !core_may_audit(c, by->member))
			by->said.verdict = SCORE_UNABLE;
		by->silent |= late && by->said.verdict == 0;
	}
}

/* Asks until `wanted` measure or are asked; returns false if nobody is left and none is waited
 * for. */
static bool ask(struct core *c, struct core_score *s, const struct tally *t, uint32_t wanted) {
	bool asked = false;
	for (uint32_t n = t->worthy + t->worthless + t->waiting; n < wanted && ask_next(c, s); n++)
		asked = true;
	return asked || t->waiting > 0;
}

static void weigh_appeal(struct core *c, struct core_score *s) {
	const struct tally t = tally_of(s);
	if (t.worthless > 0)
		end_appeal(c, s, false);
	else if (t.worthy >= AGREE)
		end_appeal(c, s, true);
	else if (!ask(c, s, &t, AGREE))
		end_appeal(c, s, false);
}

static void note_doubt(struct core *c, struct core_score *s) {
	for (uint32_t i = 0; i < s->asked && !s->disputed; i++)
		if (finds_worthless(&s->by[i])) {
			s->disputed = true;
			say(c, CORE_EVENT_DOUBTED, s, s->by[i].member);
		}
}

/* Returns how many auditors that say the same strike the author: two, which may err or lie; three
 * where it is banned for that. */
static uint32_t needed(const struct core *c, const struct core_score *s) {
	const int slot = core_find(c, s->order.member);
	const bool bans = s->n >= FEW && slot >= 0 && core_is_last_chance(&c->members[slot]);
	return bans && !RV_BUG("ban-by-two") ? CORE_FOUND_TO_BAN : AGREE;
}

/* Returns true if so many say the same that a strike follows: as many as are needed, and more than
 * half of all that were asked. Otherwise two that lie would be found by asking on where honest ones
 * are unable, as they are in a run that stands still. */
static bool agree(const struct core_score *s, uint32_t alike, uint32_t need) {
	return alike >= need && 2 * alike > s->asked;
}

/* Returns how many shall measure, those included that have. None, if so many did not get it that
 * rounds decide whose fault that is. */
static uint32_t wanted(const struct tally *t, uint32_t need) {
	const uint32_t away = t->unreached + t->withheld, measured = t->worthless + t->worthy, all = 2 * need - 1;
	if (t->worthless > 0) /* one more where those that could not tell keep a majority from a strike */
		return measured >= all && t->waiting == 0 ? measured + 1 : all;
	if (away >= CORE_ENOUGH_AWAY)
		return 0;
	return t->unreached > 0 ? CORE_ENOUGH_AWAY - away : 1;
}

/* Returns true if nobody speaks for the author of a contribution that some did not get: what one
 * finds worthless was shown to it. */
static bool may_hide(const struct tally *t) {
	return t->worthy == 0 && (t->worthless == 0 || !RV_BUG("a-look-clears"));
}

static void weigh(struct core *c, struct core_score *s) {
	const struct tally t = tally_of(s);
	const uint32_t need = needed(c, s);
	note_doubt(c, s);
	if (agree(s, t.worthless, need) || (RV_BUG("strike-by-one") && t.worthless > 0))
		find_worthless(c, s, t.worthless);
	else if (t.worthless == 0 ? t.worthy >= 1 : t.worthy >= need)
		find_worthy(c, s);
	else if (agree(s, t.withheld, need) && may_hide(&t))
		find_withheld(c, s, t.withheld);
	else if (!ask(c, s, &t, wanted(&t, need)) && t.withheld > 0 && may_hide(&t) &&
			 agree(s, t.withheld + t.worthless, need))
		find_withheld(c, s, t.withheld + t.worthless);
}

/* Returns true if something of the author waits for its record: so does the next finding, or one
 * of them would be lost. */
static bool waits(const struct core *c, const struct core_score *s) {
	const int slot = core_find(c, s->order.member);
	return slot >= 0 && core_reputation_is_due(&c->members[slot]);
}

void core_decide_scores(struct core *c) {
	RV_ASSERT(c->n_queue == 0);
	for (int i = 0; i < c->scores.n; i++) {
		struct core_score *s = &c->scores.open[i];
		if (s->over || waits(c, s))
			continue;
		give_up_silent(c, s);
		if (s->appealed)
			weigh_appeal(c, s);
		else
			weigh(c, s);
	}
}

bool core_scores_changed(struct core *c) {
	const bool changed = c->scores.changed;
	c->scores.changed = false;
	return changed;
}

/* ---- documents ---- */

void core_scores_put(const struct core *c, uint32_t slot, struct document *d) {
	d->n_scores = 0;
	for (int i = 0; i < c->scores.n; i++) {
		const struct core_score *s = &c->scores.open[i];
		for (uint32_t k = s->appealed ? s->from : 0; !s->over && k < s->asked && d->n_scores < NET_MAX_SCORES; k++)
			if (s->by[k].member == c->members[slot].number && s->order.round < d->round)
				d->scores[d->n_scores++] = s->order;
	}
}

/* Returns true if the two have the audit between them: an auditor, and the author. */
static bool is_between(const struct core_score *s, const struct core_scorer *by, uint32_t member) {
	return !s->over && (by->member == member || s->order.member == member);
}

void core_scores_note_who(struct core *c) {
	c->scores.changed |= c->scores.n > 0;
	c->audits.changed |= c->audits.n > 0;
}

int core_scores_partners(const struct core *c, uint32_t slot, uint16_t out[NET_MAX_SYNCING]) {
	const uint32_t member = c->members[slot].number;
	int n = 0;
	for (int i = 0; i < c->scores.n; i++) {
		const struct core_score *s = &c->scores.open[i];
		for (uint32_t k = s->appealed ? s->from : 0; k < s->asked && n < NET_MAX_SYNCING; k++) {
			const uint32_t other = s->by[k].member == member ? s->order.member : s->by[k].member;
			const int at = is_between(s, &s->by[k], member) ? core_find(c, other) : -1;
			if (at >= 0 && !c->members[at].banned)
				out[n++] = (uint16_t)at;
		}
	}
	return n;
}

struct core_score_figures core_scores(const struct core *c) {
	struct core_score_figures f = c->scores.figures;
	for (int i = 0; i < c->scores.n; i++)
		f.open += !c->scores.open[i].over;
	return f;
}
