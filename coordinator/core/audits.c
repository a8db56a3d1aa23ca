/* audits.c: audits of averages (net/control/audit.h): which chunks of a committed round are merged
 * again, by whom, and what follows.
 *
 *   DRAWN      at the commit, from a secret that documents have promised before the round, and its
 *              digest: the chunk, and an order of the participants but its owner. The first of them
 *              is the auditor. One chunk more may be named by voters (audits_named.c).
 *     -> RIGHT      its auditor says so
 *     -> DISPUTED   it says WRONG: four others audit the chunk as well
 *        -> LIED         three say WRONG and found the same, or lack pieces, and find that none
 *                        could make it right: the owner is banned, and the run goes back if it is
 *                        configured so: to before the round, or an earlier one with an audit of
 *                        that owner that is not over
 *        -> FALSE_AUDIT  three say RIGHT: those that said WRONG are named
 *     -> the next auditor, if one is UNABLE, or says WITHHELD, or says nothing for some rounds
 *     -> HIDDEN      three say WITHHELD of the same contributor: it is named, and the run goes back
 *                    as after a lie, for nobody could check that average. An owner that gives its
 *                    piece to some, who say WRONG, hides it from the others: where nobody is left
 *                    to ask, these count together
 *     -> UNRESOLVED  nobody is left, or the window is over
 *
 * An owner that lies on a share f of its chunks is caught with probability 1 - (1 - f)^k by k
 * audits of its chunks, less those whose auditor conspires with it. It takes a majority of five
 * to convict or to refute, so two that conspire do neither; those that convict found the same
 * bytes, as honest ones do. Where fewer than four others are there, two of three do: half of such
 * a roster.
 *
 * Orders are part of members' documents, verdicts of their reports, repeated like all else. Audits
 * are not durable: a restarted coordinator draws those of the last rounds again, the same ones, as
 * they follow from the records. What is durable is the ban, or the strike, and the rollback, which
 * marks the strike as spent. Rosters of several rows: audits_rows.c. */
#include "base/assert.h"
#include "base/planted.h"
#include "coordinator/core/internal.h"

#include <string.h>

enum {
	SILENT_ROUNDS = 2, /* an auditor that has said nothing for more rounds than that is replaced */
	FEW = 4            /* below, two of three others decide instead of three of five */
};

/* Returns how many auditors that say the same convict, or refute, or name one that withholds. */
static uint32_t majority_of(const struct core_audit *a) {
	const bool few = a->n < FEW && a->sums.kind == AUDIT_OF_AVERAGE;
	return few || RV_BUG("convict-by-two") ? 2 : 3;
}

bool core_has_audits(const struct core *c) {
	return c->cfg.audit_chunks > 0 || core_has_scores(c);
}

/* Of a term, so that a round that is trained again has another. */
struct rv_hash core_audit_secret(const struct core *c, uint64_t round) {
	struct rv_hasher h = rv_hasher_of("rivulet audit secret");
	rv_hash_update(&h, c->cfg.audit_secret.b, sizeof c->cfg.audit_secret.b);
	rv_hash_u64(&h, c->term);
	rv_hash_u64(&h, round);
	return rv_hash_final(&h);
}

/* ---- draws ---- */

enum { OWN_NUMBERS = 1 << 20, ROW_NUMBERS = 1 << 21 }; /* of draws; below: of auditors */

static uint32_t owner_of(const struct core *c, uint32_t chunk) {
	const struct core_roster *r = &c->roster;
	for (int i = 0; i < r->n_ranges; i++)
		if (chunk - r->ranges[i].first < r->ranges[i].count)
			return r->ranges[i].owner;
	RV_UNREACHABLE("a chunk without an owner");
}

/* Sets a->auditors to the participants of the owner's row but itself, in an order that the seed
 * draws. */
static void draw_auditors(const struct core *c, const struct rv_hash *seed, uint32_t number, uint32_t owner,
						  struct core_audit *a) {
	const struct core_roster *r = &c->roster;
	const struct core_row row = core_row_at(r, owner);
	for (uint32_t i = row.first; i < row.first + row.n; i++)
		if (i != owner || RV_BUG("audit-by-the-owner"))
			a->auditors[a->n++].member = r->members[i];
	for (uint32_t i = 0; i + 1 < a->n; i++) {
		const uint32_t k = i + audit_draw(seed, number * NET_MAX_ROW + i, a->n - i);
		const struct core_auditor other = a->auditors[k];
		a->auditors[k] = a->auditors[i];
		a->auditors[i] = other;
	}
}

/* Returns the auditor's entry if it was asked; NULL: it was not. */
static struct core_auditor *asked_auditor(struct core_audit *a, uint32_t member) {
	for (uint32_t i = 0; i < a->asked; i++)
		if (a->auditors[i].member == member)
			return &a->auditors[i];
	return NULL;
}

/* The member has one order more, or one verdict: if its document has no room for all, the oldest
 * that it has given a verdict of is left out, for good, as it would do it again. Audits that nobody
 * could do are not over before their window is, and would keep those of later rounds away. */
static void make_room(struct core *c, uint32_t member) {
	struct core_auditor *oldest = NULL;
	int n = 0;
	for (int i = 0; i < c->audits.n; i++) {
		struct core_audit *a = &c->audits.open[i];
		struct core_auditor *by = asked_auditor(a, member);
		n += core_has_to_show(a, member);
		if (by == NULL || by->left_out)
			continue;
		n++;
		oldest = oldest == NULL && by->verdict != 0 ? by : oldest;
	}
	if (n <= NET_MAX_AUDITS || oldest == NULL)
		return;
	oldest->left_out = true;
	c->audits.changed = true;
}

static bool is_drawn(const struct core *c, uint64_t round, uint32_t chunk) {
	for (int i = 0; i < c->audits.n; i++)
		if (c->audits.open[i].round == round && c->audits.open[i].chunk == chunk)
			return true;
	return false;
}

/* Begins audit `i` of the round. */
static void begin_audit(struct core *c, const struct rv_hash *seed, uint32_t i, uint32_t chunk) {
	const struct core_roster *r = &c->roster;
	if (c->audits.n == CORE_AUDITS || is_drawn(c, c->round, chunk))
		return;
	const bool rows = core_rows_many(&r->rows);
	RV_ASSERT(chunk < r->n_chunks);
	struct core_audit *a = &c->audits.open[c->audits.n];
	*a = (struct core_audit){.round = c->round, .attempt = c->attempt, .chunk = chunk};
	const int owner = rows ? core_draw_in_rows(c, seed, ROW_NUMBERS + i, a) : (int)owner_of(c, chunk);
	if (owner < 0)
		return; /* its rows are too short */
	c->audits.n++;
	a->owner = r->members[owner];
	draw_auditors(c, seed, i, (uint32_t)owner, a);
	a->asked = rows ? 0 : 1;
	a->asked_round = c->round + 1; /* the one that opens with this commit */
	for (uint32_t k = 0; k < a->asked; k++)
		make_room(c, a->auditors[k].member);
	c->audits.figures.drawn += !c->replaying;
}

static void draw_audits(struct core *c, const struct rv_hash *digest) {
	const struct rv_hash secret = core_audit_secret(c, c->round), seed = audit_seed_of(&secret, digest);
	const int64_t named = core_named_chunk(c, digest, &seed);
	if (named >= 0)
		begin_audit(c, &seed, c->cfg.audit_chunks, (uint32_t)named);
	for (uint32_t i = 0; i < c->cfg.audit_chunks; i++)
		begin_audit(c, &seed, i, audit_draw(&seed, OWN_NUMBERS + i, c->roster.n_chunks));
}

static void close_audit(struct core *c, int i) {
	c->audits.n--;
	memmove(&c->audits.open[i], &c->audits.open[i + 1], (size_t)(c->audits.n - i) * sizeof c->audits.open[0]);
}

/* Drops audits that are over; their orders leave documents with this round. */
static void drop_over(struct core *c) {
	for (int i = c->audits.n - 1; i >= 0; i--) {
		const struct core_audit *a = &c->audits.open[i];
		if (!a->over && c->round + 1 - a->round <= c->cfg.audit_window)
			continue;
		core_unshown(c, a);
		c->audits.figures.unresolved += !a->over && !c->replaying;
		close_audit(c, i);
	}
}

void core_audits_commit(struct core *c, const struct rv_hash *digest) {
	if (!core_has_audits(c))
		return;
	core_note_unshown(c);
	drop_over(c);
	if (c->cfg.audit_chunks > 0 && c->roster.n > 1)
		draw_audits(c, digest);
}

void core_audits_rollback(struct core *c, uint64_t to_round) {
	for (int i = c->audits.n - 1; i >= 0; i--)
		if (c->audits.open[i].round >= to_round)
			close_audit(c, i);
	if (c->audits.back_to >= to_round)
		c->audits.back_to = UINT64_MAX;
}

/* ---- verdicts ---- */

void core_take_verdicts(struct core *c, uint32_t slot) {
	const struct core_member *m = &c->members[slot];
	const struct rv_hash beyond = audit_beyond();
	for (int k = 0; k < m->last.n_verdicts && m->last.term == c->term; k++) {
		const struct audit_result *r = &m->last.verdicts[k];
		for (int i = 0; i < c->audits.n; i++) {
			struct core_audit *a = &c->audits.open[i];
			struct core_auditor *by = a->round == r->round && a->chunk == r->chunk ? asked_auditor(a, m->number) : NULL;
			if (by == NULL || by->verdict != 0)
				continue;
			by->verdict = r->verdict;
			by->named = r->member;
			by->found = r->found;
			by->lacks = r->verdict == AUDIT_WRONG && rv_hash_equal(&r->found, &beyond);
			make_room(c, m->number);
		}
	}
}

/* What the auditors of a chunk say together. */
struct tally {
	uint32_t right, wrong; /* wrong: most that found the same */
	bool any_wrong;
	uint32_t waiting; /* asked, without a verdict */
};

static bool says_wrong(const struct core_auditor *by) {
	return by->verdict == AUDIT_WRONG;
}

/* Returns how many say WRONG, as auditor `i` does, and found the same, or lack what it had. */
static uint32_t count_alike(const struct core_audit *a, uint32_t i) {
	const struct core_auditor *by = &a->auditors[i];
	uint32_t n = 0;
	for (uint32_t k = 0; k < a->asked && says_wrong(by); k++)
		n += says_wrong(&a->auditors[k]) && (a->auditors[k].lacks || rv_hash_equal(&a->auditors[k].found, &by->found));
	return n;
}

static struct tally tally_of(const struct core_audit *a) {
	struct tally t = {0};
	for (uint32_t i = 0; i < a->asked; i++) {
		const uint32_t alike = count_alike(a, i);
		t.right += a->auditors[i].verdict == AUDIT_RIGHT;
		t.waiting += a->auditors[i].verdict == 0;
		t.any_wrong |= says_wrong(&a->auditors[i]);
		t.wrong = alike > t.wrong ? alike : t.wrong;
	}
	return t;
}

static void say(struct core *c, enum core_event_type type, uint32_t member, uint64_t round, uint32_t other) {
	const int slot = core_find(c, member);
	if (slot >= 0)
		core_say_of(c, type, (uint32_t)slot, round, other);
}

/* The majority of an audit's auditors found it. */
static void strike(struct core *c, const struct core_audit *a, uint32_t member, enum core_strike_reason reason) {
	const int slot = core_find(c, member);
	if (slot >= 0)
		core_strike(c, (uint32_t)slot, a->round, majority_of(a), reason);
}

/* Names those that said the contrary of what was found. */
static void name_false(struct core *c, const struct core_audit *a, enum audit_verdict is_false) {
	for (uint32_t i = 0; i < a->asked; i++) {
		if (a->auditors[i].verdict != is_false)
			continue;
		say(c, CORE_EVENT_FALSE_AUDIT, a->auditors[i].member, a->round, a->owner);
		strike(c, a, a->auditors[i].member, CORE_STRIKE_FALSE_AUDIT);
	}
}

/* Has the run go back to before that round, because of that member. */
static void want_back(struct core *c, uint64_t round, uint32_t member) {
	if (c->cfg.audit_rollback && round < c->audits.back_to) {
		c->audits.back_to = round;
		c->audits.back_for = member;
	}
}

/* Returns the earliest round with an audit of the same owner that is not over, or that of `a`. One
 * that lies keeps auditors from its first lies if it can, so what nobody could check is not
 * believed once it is convicted. Audits that found it right are over, and all are of the window: it
 * costs no more rounds than a lie that is found late, and once, as the owner is banned. */
static uint64_t earliest_doubt(const struct core *c, const struct core_audit *a) {
	uint64_t first = a->round;
	for (int i = 0; i < c->audits.n; i++) {
		const struct core_audit *other = &c->audits.open[i];
		RV_ASSERT(c->round - other->round <= c->cfg.audit_window);
		if (other->owner == a->owner && !other->over && other->round < first && core_past_can_return(c, other->round))
			first = other->round;
	}
	return first;
}

static void convict(struct core *c, struct core_audit *a) {
	const int slot = core_find(c, a->owner);
	a->over = true;
	c->audits.figures.wrong++;
	say(c, CORE_EVENT_LIED, a->owner, a->round, a->chunk);
	name_false(c, a, AUDIT_RIGHT);
	if (slot >= 0 && core_has_ban_room(c))
		c->members[slot].want_banned = true;
	want_back(c, earliest_doubt(c, a), a->owner);
}

static void acquit(struct core *c, struct core_audit *a) {
	a->over = true;
	c->audits.figures.right++;
	name_false(c, a, AUDIT_WRONG);
}

/* Returns how many auditors say that the one that entry `i` names, not one of them, withheld its
 * piece. */
static uint32_t count_withheld(const struct core_audit *a, uint32_t i) {
	const uint32_t member = a->auditors[i].named;
	uint32_t n = 0;
	for (uint32_t k = 0; k < a->asked && a->auditors[i].verdict == AUDIT_WITHHELD; k++)
		n += a->auditors[k].verdict == AUDIT_WITHHELD && a->auditors[k].named == member &&
			 a->auditors[k].member != member;
	return n;
}

/* Returns true if the member was in the roster of the audited round: auditors are drawn from all of
 * it but the owner. */
static bool took_part(const struct core_audit *a, uint32_t member) {
	bool found = member == a->owner;
	for (uint32_t i = 0; i < a->n; i++)
		found |= a->auditors[i].member == member;
	return found;
}

/* Returns true if another auditor than `member` itself had all pieces, so its own, too. One that
 * says WRONG, and had them, speaks for any contributor but the owner, whose lie it is. */
static bool is_refuted(const struct core_audit *a, uint32_t member) {
	const bool accuses = member == a->owner && !RV_BUG("wrong-refutes");
	bool found = false;
	for (uint32_t i = 0; i < a->asked; i++) {
		const struct core_auditor *by = &a->auditors[i];
		found |= by->member != member && (by->verdict == AUDIT_RIGHT || (says_wrong(by) && !by->lacks && !accuses));
	}
	return found;
}

/* Returns how many auditors accuse the one that entry `i` names of what makes it hide its piece:
 * an owner, those that got it as well, once nobody is left who could refute them. */
static uint32_t count_accusers(const struct core_audit *a, uint32_t i, const struct tally *t) {
	const bool all = t->waiting == 0 && (a->asked == a->n || a->asked == CORE_AUDITORS);
	const uint32_t withheld = count_withheld(a, i);
	return withheld > 0 && all && a->auditors[i].named == a->owner ? withheld + t->wrong : withheld;
}

/* Returns true if the run may go back for what the member hid: once for each strike, whatever that
 * is for, its record under way or durable; and for none after the third. So a member that rounds
 * cannot do without takes the run back a few times, and not for ever. */
static bool may_take_back(const struct core_member *m) {
	return m->strike_due != CORE_STRIKE_NONE ? !core_is_last_chance(m) : !m->reputation.spent;
}

/* Strikes a participant that hid its piece, and has the run go back for it. */
static void strike_hidden(struct core *c, const struct core_audit *a, uint32_t member) {
	const int slot = core_find(c, member);
	strike(c, a, member, CORE_STRIKE_WITHHELD);
	if (slot < 0 || may_take_back(&c->members[slot]))
		want_back(c, a->round, member);
}

/* Names a participant of which a majority of auditors say that it withheld its piece, and which
 * gave it to no other one. Nobody can check that average: an owner that lies would have it so, or
 * one that helps it. */
static void name_withheld(struct core *c, struct core_audit *a) {
	const struct tally t = tally_of(a);
	for (uint32_t i = 0; i < a->asked && !a->over; i++) {
		const uint32_t member = a->auditors[i].named;
		if (count_accusers(a, i, &t) < majority_of(a) || !took_part(a, member) || is_refuted(a, member))
			continue;
		a->over = true;
		c->audits.figures.unresolved += !c->replaying;
		say(c, CORE_EVENT_WITHHELD, member, a->round, a->auditors[i].member);
		strike_hidden(c, a, member);
	}
}

bool core_may_audit(const struct core *c, uint32_t member) {
	const int slot = core_find(c, member);
	return slot >= 0 && core_available(c, &c->members[slot]) && !c->members[slot].want_banned;
}

/* Asks one more auditor, that is here; returns false if none is left. */
static bool ask_next(struct core *c, struct core_audit *a) {
	while (a->asked < a->n && a->asked < CORE_AUDITORS) {
		const uint32_t member = a->auditors[a->asked++].member;
		a->asked_round = c->round;
		c->audits.changed = true;
		make_room(c, member);
		if (core_may_audit(c, member))
			return true;
		a->auditors[a->asked - 1].verdict = AUDIT_UNABLE;
	}
	return false;
}

/* Counts those as unable that are gone, or have said nothing for long. */
static void give_up_silent(struct core *c, struct core_audit *a) {
	const bool late = c->round > a->asked_round + SILENT_ROUNDS;
	for (uint32_t i = 0; i < a->asked; i++) {
		struct core_auditor *by = &a->auditors[i];
		if (by->verdict != 0 || !(late || !core_may_audit(c, by->member)))
			continue;
		by->verdict = AUDIT_UNABLE;
		make_room(c, by->member);
	}
}

/* Returns how many auditors must have given a verdict that counts. */
static uint32_t needed(const struct core_audit *a, const struct tally *t) {
	return t->any_wrong ? 2 * majority_of(a) - 1 : 1;
}

static void weigh(struct core *c, struct core_audit *a) {
	give_up_silent(c, a);
	const struct tally t = tally_of(a);
	if (t.any_wrong && !a->disputed) {
		a->disputed = true;
		for (uint32_t i = 0; i < a->asked; i++)
			if (says_wrong(&a->auditors[i]))
				say(c, CORE_EVENT_DISPUTED, a->owner, a->round, a->auditors[i].member);
	}
	if (t.wrong >= (RV_BUG("convict-by-one") ? 1 : majority_of(a))) {
		convict(c, a);
	} else if (t.any_wrong ? t.right >= majority_of(a) : t.right >= 1) {
		acquit(c, a);
	} else {
		bool more = true;
		for (uint32_t lack = needed(a, &t) - (t.right + t.wrong + t.waiting); more && (int32_t)lack > 0; lack--)
			more = ask_next(c, a);
	}
	name_withheld(c, a);
}

/* Takes the run back, once the ban, or the strike, of the member that lied or hid is durable. */
static void take_back(struct core *c) {
	const uint64_t to_round = c->audits.back_to;
	const int slot = core_find(c, c->audits.back_for);
	if (to_round >= c->round || c->round - to_round > c->cfg.audit_window || c->round == c->cfg.final_round) {
		c->audits.back_to = UINT64_MAX; /* too late */
		return;
	}
	const struct core_member *m = slot >= 0 ? &c->members[slot] : NULL;
	if (m != NULL && ((m->want_banned && !m->banned) || m->strike_due != CORE_STRIKE_NONE))
		return; /* that first */
	if (core_push_rollback(c, to_round, c->audits.back_for))
		say(c, CORE_EVENT_TAKEN_BACK, c->audits.back_for, to_round, c->audits.back_for);
	c->audits.back_to = UINT64_MAX;
}

void core_decide_audits(struct core *c) {
	RV_ASSERT(c->n_queue == 0);
	for (int i = 0; i < c->audits.n; i++)
		if (!c->audits.open[i].over && !core_awaits_sums(c, &c->audits.open[i]))
			weigh(c, &c->audits.open[i]);
	if (c->audits.back_to != UINT64_MAX)
		take_back(c);
}

bool core_audits_changed(struct core *c) {
	const bool changed = c->audits.changed;
	c->audits.changed = false;
	return changed;
}

/* ---- documents ---- */

void core_audits_put(const struct core *c, uint32_t slot, struct document *d) {
	struct rv_hash secret;
	d->n_audits = 0;
	if (!core_has_audits(c))
		return;
	secret = core_audit_secret(c, c->round);
	d->audit_promise = audit_promise_of(&secret);
	if (c->round > c->term_round)
		d->audit_secret = core_audit_secret(c, c->round - 1);
	core_sums_put(c, slot, d);
	for (int i = 0; i < c->audits.n; i++) {
		const struct core_audit *a = &c->audits.open[i];
		for (uint32_t k = 0; k < a->asked && d->n_audits < NET_MAX_AUDITS; k++) {
			const struct core_auditor *by = &a->auditors[k];
			if (by->member == c->members[slot].number && !by->left_out && a->round < d->round)
				d->audits[d->n_audits++] = core_order_of(a);
		}
	}
}

struct core_audit_figures core_audits(const struct core *c) {
	struct core_audit_figures f = c->audits.figures;
	for (int i = 0; i < c->audits.n; i++)
		f.open += !c->audits.open[i].over;
	return f;
}
