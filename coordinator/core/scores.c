/* scores.c: audits of training (net/control/score.h): whose contribution to a committed round is
 * scored, by whom, and what follows.
 *
 *   DRAWN     at the commit, from the round's secret and digest as audits of averages are
 *             (audits.c): a participant, newcomers and those with strikes more often; sequences
 *             leased to it; and an order of the other participants. The first is the auditor.
 *     -> WORTHY      its gain is SCORE_LIMIT of the auditor's own, or more
 *     -> DOUBTED     it is not: two others score it as well
 *        -> WORTHLESS  two find so, and more than half of all that were asked: a strike
 *             -> the struck member APPEALS: two that were not asked before score it again
 *                  -> CLEARED  both find it worthy: the strike is taken back
 *                  -> UPHELD   one does not
 *        -> WORTHY     two find the contrary. Nobody is named: a measurement is no proof
 *     -> the next auditor, if one is UNABLE, or says nothing for some rounds, or says WITHHELD; two
 *        that say WITHHELD and are more than half of those asked, where nobody got it: a strike
 *     -> two more, if one says UNREACHED or CUT
 *        -> EVADED  the window is over, nobody got it, and three say so whose links work: a strike,
 *                   if it was so in the audit before (evasion.c)
 *     -> UNRESOLVED  the window is over: an event names the author
 *
 * How many are drawn follows from the share of the roster's training that they may cost: a score is
 * four forward passes over its sequences, two for the author's and two for the auditor's own
 * contribution, and a step of training is three. At most a quarter of the roster is drawn.
 *
 * Audits that are not over are not durable: a restarted coordinator draws the same ones again. What
 * is durable is the strike, and that its appeal is over (reputation.c). */
#include "base/assert.h"
#include "base/planted.h"
#include "coordinator/core/internal.h"

#include <string.h>

enum {
	SILENT_ROUNDS = 2, /* an auditor that has said nothing for so many rounds is not waited for */
	AGREE = 2,         /* auditors that strike, clear, or find that a contribution was withheld */
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

/* Returns how many audits of the roster cost as much as they may, in millionths. */
static uint64_t affordable(const struct core *c) {
	const struct core_roster *r = &c->roster;
	uint64_t read = 0;
	for (int i = 0; i < r->n; i++)
		read += r->lease_count[i];
	const uint64_t mean = read / r->n, scored = mean < CORE_SCORE_SEQUENCES ? mean : CORE_SCORE_SEQUENCES;
	return scored > 0 ? read * c->cfg.audit_ppm * 3 / (4 * scored) : 0;
}

/* Returns how often a participant is drawn, beside one of long standing. */
static uint32_t doubt(const struct core_member *m) {
	const uint32_t rounds = m->reputation.rounds;
	return (rounds < 8 ? 8 : rounds < 32 ? 4 : rounds < 128 ? 2 : 1) << m->reputation.strikes;
}

static uint32_t draw_author(const struct core *c, const struct rv_hash *seed, uint32_t audit) {
	const struct core_roster *r = &c->roster;
	uint32_t sum = 0, place = 0;
	for (uint32_t i = 0; i < r->n; i++)
		sum += doubt(core_participant(c, i));
	uint32_t at = draw(seed, WHOM, audit, 0, sum);
	while (at >= doubt(core_participant(c, place)))
		at -= doubt(core_participant(c, place++));
	return place;
}

/* Sets the sequences that are scored: a stretch of those that the participant has read. */
static void draw_text(const struct core *c, const struct rv_hash *seed, uint32_t audit, uint32_t place,
					  struct score_order *o) {
	const struct core_roster *r = &c->roster;
	const uint32_t all = r->lease_count[place], n = all < CORE_SCORE_SEQUENCES ? all : CORE_SCORE_SEQUENCES;
	const uint64_t first = r->lease_first[place] + draw(seed, WHERE, audit, 0, all - n + 1);
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t at = leases_position(&c->leases.all, r->slots[place], first + i);
		struct lease_piece *last = o->n_pieces > 0 ? &o->pieces[o->n_pieces - 1] : NULL;
		if (last != NULL && last->begin + last->count == at)
			last->count++;
		else if (o->n_pieces < SCORE_PIECES)
			o->pieces[o->n_pieces++] = (struct lease_piece){.begin = at, .count = 1};
		else
			return; /* of many small pieces the first ones */
	}
}

static void draw_auditors(const struct core *c, const struct rv_hash *seed, uint32_t audit, uint32_t author,
						  struct core_score *s) {
	for (uint32_t i = 0; i < c->roster.n; i++)
		if (i != author || RV_BUG("score-oneself"))
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
									   .root = r->roots[place]},
							 .asked = 1,
							 .asked_round = c->round + 1}; /* the one that opens with this commit */
	draw_text(c, seed, audit, place, &s->order);
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

static void find_evaded(struct core *c, const struct core_score *s) {
	const int slot = core_find(c, s->order.member);
	c->scores.figures.evaded++;
	if (slot >= 0)
		core_evade(c, (uint32_t)slot, s->order.round);
}

/* Drops audits whose window is over, and those that nobody can ask about. */
static void drop_over(struct core *c) {
	for (int i = c->scores.n - 1; i >= 0; i--) {
		const struct core_score *s = &c->scores.open[i];
		const bool late = c->round + 1 - s->order.round > c->cfg.audit_window;
		if (!late && (!s->over || (s->struck && !s->appealed)))
			continue;
		if (!s->over && !s->appealed && core_is_evaded(s)) {
			find_evaded(c, s);
		} else if (!s->over && !c->replaying) {
			c->scores.figures.unresolved++;
			say(c, CORE_EVENT_UNRESOLVED, s, 0);
		}
		close_score(c, i);
	}
}

void core_scores_commit(struct core *c, const struct rv_hash *digest) {
	if (!core_has_scores(c))
		return;
	core_note_met(c);
	drop_over(c);
	if (c->roster.n < 3 || core_rows_many(&c->roster.rows))
		return; /* one auditor strikes nobody; contributions are kept by rows of their own */
	const struct rv_hash seed = seed_of(c, digest);
	const uint64_t may = affordable(c);
	uint64_t n = may / ONE + (draw(&seed, HOW_MANY, 0, 0, ONE) < may % ONE);
	for (uint32_t i = 0; i < n && i < (c->roster.n + 3u) / 4; i++) /* each moves a whole contribution */
		draw_one(c, &seed, i);
}

void core_scores_rollback(struct core *c, uint64_t to_round) {
	for (int i = c->scores.n - 1; i >= 0; i--)
		if (c->scores.open[i].order.round >= to_round)
			close_score(c, i);
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

/* An auditor that did not reach the author, or was cut off, goes on trying. */
static bool may_say(const struct core_scorer *by, const struct score_result *r) {
	const uint8_t said = by->said.verdict;
	return said == 0 || (said == SCORE_UNREACHED && r->verdict != SCORE_UNREACHED) ||
		   (said == SCORE_CUT && r->verdict != SCORE_UNREACHED && r->verdict != SCORE_CUT);
}

void core_take_scores(struct core *c, uint32_t slot) {
	const struct core_member *m = &c->members[slot];
	for (int k = 0; k < m->last.n_scores && m->last.term == c->term; k++) {
		const struct score_result *r = &m->last.scores[k];
		struct core_score *s = find(c, r->round, r->member);
		for (uint32_t i = 0; s != NULL && i < s->asked; i++)
			if (s->by[i].member == m->number && may_say(&s->by[i], r))
				s->by[i].said = *r;
	}
	if (m->last.appeals && m->last.term == c->term)
		take_appeal(c, m);
}

/* What auditors say together: those of an appeal, or all before it. */
struct tally {
	uint32_t worthy, worthless, withheld, unreached, waiting;
};

static bool finds_worthless(const struct core_scorer *by) {
	return by->said.verdict == SCORE_MEASURED && score_is_low(&by->said);
}

/* Returns true if the auditor's own contribution is worth nothing: then it can measure nothing. */
static bool has_no_measure(const struct core_scorer *by) {
	return by->said.verdict == SCORE_MEASURED && !(by->said.own > 0);
}

static struct tally tally_of(const struct core_score *s) {
	struct tally t = {0};
	for (uint32_t i = s->appealed ? s->from : 0; i < s->asked; i++) {
		const struct core_scorer *by = &s->by[i];
		const bool measured = by->said.verdict == SCORE_MEASURED && !has_no_measure(by);
		t.worthy += measured && !finds_worthless(by);
		t.worthless += measured && finds_worthless(by);
		t.withheld += by->said.verdict == SCORE_WITHHELD;
		t.unreached += by->said.verdict == SCORE_UNREACHED || by->said.verdict == SCORE_CUT;
		t.waiting += by->said.verdict == 0 && !by->silent;
	}
	return t;
}

static void strike(struct core *c, struct core_score *s, enum core_strike_reason reason) {
	const int slot = core_find(c, s->order.member);
	s->over = true;
	c->scores.changed = true;
	s->struck = slot >= 0 && !RV_BUG("strike-nobody") && core_strike(c, (uint32_t)slot, s->order.round, reason);
}

/* Returns the gain of the first that finds it worthless, in thousandths of that auditor's own. */
static uint32_t thousandths(const struct core_score *s) {
	double k = 0;
	for (uint32_t i = s->asked; i > 0; i--)
		if (finds_worthless(&s->by[i - 1]) && !has_no_measure(&s->by[i - 1]))
			k = 1000.0 * (double)s->by[i - 1].said.gain / (double)s->by[i - 1].said.own;
	return (uint32_t)(int32_t)(k > -1e9 ? k : -1e9);
}

/* The author gave its contribution. */
static void note_given(struct core *c, const struct core_score *s) {
	const int slot = core_find(c, s->order.member);
	if (slot >= 0)
		c->members[slot].evaded = 0;
}

static void find_worthless(struct core *c, struct core_score *s) {
	note_given(c, s);
	c->scores.figures.worthless++;
	say(c, CORE_EVENT_WORTHLESS, s, thousandths(s));
	strike(c, s, CORE_STRIKE_TRAINING);
}

static void find_withheld(struct core *c, struct core_score *s) {
	const int slot = core_find(c, s->order.member);
	if (slot >= 0)
		core_say_of(c, CORE_EVENT_WITHHELD, (uint32_t)slot, s->order.round, s->by[0].member);
	strike(c, s, CORE_STRIKE_WITHHELD);
}

static void find_worthy(struct core *c, struct core_score *s) {
	note_given(c, s);
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
		if (finds_worthless(&s->by[i]) && !has_no_measure(&s->by[i])) {
			s->disputed = true;
			say(c, CORE_EVENT_DOUBTED, s, s->by[i].member);
		}
}

/* Returns true if so many say the same that a strike follows: two at least, and more than half of
 * all that were asked. Otherwise two that lie would be found by asking on where honest ones are
 * unable, as they are in a run that stands still. */
static bool agree(const struct core_score *s, uint32_t alike) {
	return alike >= AGREE && 2 * alike > s->asked;
}

/* Returns how many shall measure, those included that have. None, if so many did not get it that
 * rounds decide whose fault that is. */
static uint32_t wanted(const struct tally *t) {
	const uint32_t away = t->unreached + t->withheld, measured = t->worthless + t->worthy;
	if (t->worthless > 0) /* one more where those that could not tell keep a majority from a strike */
		return measured > AGREE && t->waiting == 0 ? measured + 1 : AGREE + 1;
	if (away >= CORE_ENOUGH_AWAY)
		return 0;
	return t->unreached > 0 ? CORE_ENOUGH_AWAY - away : 1;
}

static void weigh(struct core *c, struct core_score *s) {
	const struct tally t = tally_of(s);
	note_doubt(c, s);
	if (agree(s, t.worthless) || (RV_BUG("strike-by-one") && t.worthless > 0))
		find_worthless(c, s);
	else if (t.worthless == 0 ? t.worthy >= 1 : t.worthy >= AGREE)
		find_worthy(c, s);
	else if (agree(s, t.withheld) && t.worthy + t.worthless == 0)
		find_withheld(c, s);
	else
		(void)ask(c, s, &t, wanted(&t));
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

struct core_score_figures core_scores(const struct core *c) {
	struct core_score_figures f = c->scores.figures;
	for (int i = 0; i < c->scores.n; i++)
		f.open += !c->scores.open[i].over;
	return f;
}
