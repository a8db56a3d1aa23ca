/* disputes.c: votes that differ, and votes of few. Nobody is blamed for being in a minority: two
 * participants whose votes differ are asked for the leaves of the means that they voted for, and
 * for the seals with which these came (net/control/evidence.h).
 *
 * - The vote of one that shows nothing in time, or something else than it voted for, or what no
 *   owner has signed, does not count; it is put away, and stays out of rosters as one does that
 *   costs attempts (exclusion.c).
 * - Else both lists are what they voted for, and differ in a chunk. In one row that has one owner,
 *   and the seals that they show of it are over different lists: a proof. It is recorded, the owner
 *   is banned, and the attempt is void. Where NET_MAX_BANNED members are banned, it is put away
 *   instead, and stays out of rosters as one does that costs attempts.
 * - In two rows they have it from two owners, who got it from one final owner: these two are asked
 *   next (disputes_rows.c).
 *
 * A majority waits for that no longer than for a vote that is missing (majority.c): else one false
 * vote would hold up each round until its voter is late. A voter that was waited for so in vain
 * counts as mute, and for some rounds its vote is not asked about. But if the other one has shown
 * what it got, a majority has to show it as well: it may be one of members that lie together.
 *
 * Equal votes of fewer than a majority are believed once one of the voters has shown what it got:
 * it may be the only one that can vote, and its digest one that nobody holds. Votes that another
 * process than that of the roster has found on its disk have no seals: nobody can vouch for
 * them. */
#include "base/assert.h"
#include "base/planted.h"
#include "base/round_number.h"
#include "coordinator/core/dispute_lists.h"
#include "coordinator/core/internal.h"

#include <string.h>

enum { NOT_ASKED = -1 };

/* ---- what a participant shows ---- */

static int asked_index(const struct core *c, int place) {
	for (int k = 0; k < c->dispute.n; k++)
		if (c->dispute.asked[k] == place)
			return k;
	return NOT_ASKED;
}

void core_disbelieve(struct core *c, int place, enum core_event_type why) {
	struct core_member *m = core_participant(c, (uint32_t)place);
	core_say(c, why, core_slot_of(c, m), c->round);
	set_add(c->roster.disbelieved, (uint32_t)place);
	set_add(c->blamed, core_slot_of(c, m));
	m->distrusted = true;
	core_dispute_end(c);
}

/* Notes the first chunk in which the lists of both differ, and makes the proof: in one row its
 * owner has signed both. */
static void compare(struct core *c, int k, const struct evidence *e) {
	struct core_dispute *d = &c->dispute;
	uint32_t chunk = 0;
	while (chunk < e->n_means && rv_hash_equal(&d->means[chunk], &e->means[chunk]))
		chunk++;
	if (chunk == e->n_means) {
		core_dispute_end(c); /* what they show is alike: there is nothing to settle */
		return;
	}
	d->chunk = chunk;
	d->leaves[k] = e->means[chunk];
	d->leaves[1 - k] = d->means[chunk];
	const struct core_list_owners o = core_list_owners_of(c, d->asked[0]), other = core_list_owners_of(c, d->asked[1]);
	if (o.row != other.row)
		return;
	const int i = core_list_owner(c, &o, chunk);
	const struct seal_scope scope = core_row_scope(c, &o);
	core_dispute_proves(c, o.first + i, &scope, &d->seals[0][i], &d->seals[1][i]);
}

void core_dispute_proves(struct core *c, int place, const struct seal_scope *scope, const struct seal *a,
						 const struct seal *b) {
	struct core_dispute *d = &c->dispute;
	const struct core_member *m = core_participant(c, (uint32_t)place);
	d->proof = (struct equivocation){.member = m->number, .scope = *scope, .chunk = d->chunk, .seals = {*a, *b}};
	memcpy(d->proof.key, m->key, sizeof d->proof.key);
	d->has_proof = true;
	RV_ASSERT(equivocation_proves(&d->proof, &c->cfg.seals));
}

/* Takes what the asked participant shows. */
static enum rv_err take(struct core *c, int k, const struct evidence *e, struct rv_errtext *et) {
	struct core_dispute *d = &c->dispute;
	const int place = d->asked[k];
	struct seal seals[NET_MAX_ROW];
	if (!core_is_its_vote(c, place, e) || !core_are_sealed(c, place, e, seals)) {
		core_disbelieve(c, place, CORE_EVENT_FALSE_VOTE);
		return rv_fail(et, RV_E_INVALID,
					   "evidence: these means are not what you voted for in round %llu, or not what owners signed",
					   (unsigned long long)round_number(c->round));
	}
	set_add(c->roster.vouched, (uint32_t)place);
	if (d->n == 1) {
		core_dispute_end(c);
		return RV_OK;
	}
	if (d->of_owners)
		return core_owner_shows(c, k, e, seals, et);
	d->given[k] = true;
	memcpy(d->seals[k], seals, sizeof seals);
	if (d->given[1 - k])
		compare(c, k, e);
	else
		memcpy(d->means, e->means, e->n_means * sizeof e->means[0]);
	return RV_OK;
}

enum rv_err core_testify(struct core *c, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const struct evidence *e,
						 struct rv_errtext *et) {
	const int slot = core_find_key(c, key);
	if (slot < 0 || c->members[slot].banned)
		return rv_fail(et, RV_E_AUTH, "evidence: of no member of this run, or of one that is banned");
	const bool current = e->term == c->term && e->round == c->round && e->attempt == c->attempt && c->roster.n > 0;
	const int k = current ? asked_index(c, core_place(c, (uint32_t)slot)) : NOT_ASKED;
	enum rv_err err = RV_OK;
	if (e->has_proof)
		err = core_take_proof(c, &e->proof, et);
	if (err == RV_OK && e->has_sums && e->term == c->term)
		err = core_take_sums(c, (uint32_t)slot, &e->sums, et);
	if (err == RV_OK && k >= 0 && !c->dispute.given[k] && e->n_means > 0)
		err = take(c, k, e, et);
	core_step(c, now_us);
	return err;
}

/* ---- the dispute ---- */

void core_dispute_end(struct core *c) {
	c->dispute.n = 0;
	c->dispute.given[0] = c->dispute.given[1] = false;
	c->dispute.of_owners = c->dispute.without_final = c->dispute.has_proof = c->dispute.has_liar = false;
}

/* Returns the time that an asked participant has: its list may be long, and its line slow. */
static int64_t patience_us(const struct core *c) {
	enum { LEAST_BYTES_PER_S = 16384 };
	const uint64_t bytes = evidence_max_bytes(c->roster.n_chunks);
	return 2 * c->cfg.liveness_us + (int64_t)(bytes * 1000000 / LEAST_BYTES_PER_S);
}

static bool has_majority(const struct core *c) {
	return c->majority_us != INT64_MAX;
}

/* Returns the time up to which a majority waits for those asked. */
static int64_t majority_waits_until_us(const struct core *c) {
	const int64_t since_us = c->dispute.since_us > c->majority_us ? c->dispute.since_us : c->majority_us;
	return since_us + core_majority_wait_us(c);
}

int64_t core_dispute_until_us(const struct core *c) {
	if (c->dispute.n == 0)
		return INT64_MAX;
	const int64_t late_us = c->dispute.since_us + patience_us(c);
	const int64_t over_us = has_majority(c) ? majority_waits_until_us(c) : INT64_MAX;
	return c->now_us < over_us && over_us < late_us ? over_us : late_us;
}

bool core_has_seals(const struct core *c, int place) {
	return core_participant(c, (uint32_t)place)->last.boot == c->roster.boots[place];
}

static void open_dispute(struct core *c, int first, int second) {
	struct core_dispute *d = &c->dispute;
	d->n = second == NOT_ASKED ? 1 : 2;
	d->asked[0] = (uint16_t)first;
	d->asked[1] = (uint16_t)(second == NOT_ASKED ? first : second);
	d->given[0] = d->given[1] = false;
	d->since_us = c->now_us;
}

/* Returns the first participant of the set that can show something, and, beside a majority, that is
 * worth waiting for; NOT_ASKED: none. */
static int first_to_ask(const struct core *c, const uint64_t *set, bool others) {
	for (int i = set_next(set, 0, c->roster_words); i >= 0; i = set_next(set, i + 1, c->roster_words))
		if (core_has_seals(c, i) && !(others && has_majority(c) && core_is_mute(c, core_participant(c, (uint32_t)i))))
			return i;
	return NOT_ASKED;
}

/* Sets `set` to those of it that are in a place's row, if there are any. */
static void prefer_row(const struct core *c, int place, uint64_t *set) {
	const struct core_list_owners o = core_list_owners_of(c, place);
	uint64_t row[CORE_ROSTER_WORDS];
	set_clear(row, c->roster_words);
	for (int i = o.first; i < o.first + o.n; i++)
		if (set_has(set, (uint32_t)i) && core_has_seals(c, i))
			set_add(row, (uint32_t)i);
	if (!set_is_empty(row, c->roster_words))
		set_copy(set, row, c->roster_words);
}

/* Asks one of the most that are alike, and one of the others; if it can be, of one row, where what
 * they show suffices. Returns false if that is not possible. */
static bool ask(struct core *c, const uint64_t *votes, const uint64_t *best) {
	uint64_t alike[CORE_ROSTER_WORDS], others[CORE_ROSTER_WORDS];
	set_copy(alike, votes, c->roster_words);
	set_meet(alike, best, c->roster_words);
	set_copy(others, votes, c->roster_words);
	set_less(others, best, c->roster_words);
	const int second = first_to_ask(c, others, true);
	if (second == NOT_ASKED)
		return false;
	prefer_row(c, second, alike);
	const int first = first_to_ask(c, alike, false);
	if (first == NOT_ASKED)
		return false;
	open_dispute(c, first, second);
	return true;
}

/* Voids the attempt, and puts away its participant that has signed twice, as one that has spoiled
 * it. */
static void put_away(struct core *c, uint32_t slot, uint32_t chunk) {
	RV_ASSERT(core_place(c, slot) >= 0);
	core_say_of(c, CORE_EVENT_EQUIVOCATED, slot, c->round, chunk);
	set_add(c->blamed, slot);
	c->members[slot].distrusted = true;
	c->owners_apart = true;
	core_dispute_end(c);
}

/* Records the proof of what was shown, which bans the owner; if no more members can be banned, it
 * is put away instead. */
static enum core_settling convict(struct core *c) {
	const struct core_dispute *d = &c->dispute;
	RV_ASSERT(d->has_proof);
	if (!core_has_ban_room(c)) {
		const int slot = core_find(c, d->proof.member);
		RV_ASSERT(slot >= 0);
		put_away(c, (uint32_t)slot, d->proof.chunk);
		return CORE_SETTLED;
	}
	core_push_proof(c, &d->proof);
	return CORE_SETTLING;
}

/* Bans a final owner by what others have shown of it. Its two seals are over different parts of the
 * lists, so they are no proof without these, and documents have none. */
static enum core_settling ban_final(struct core *c) {
	const uint32_t slot = c->roster.slots[c->dispute.liar];
	RV_ASSERT(c->dispute.has_liar && !c->dispute.has_proof);
	if (core_has_ban_room(c))
		c->members[slot].want_banned = true;
	put_away(c, slot, c->dispute.chunk);
	return CORE_SETTLED;
}

/* Gives up those that were asked and are gone, or late. Returns true if it has. */
static bool give_up(struct core *c, const uint64_t *votes) {
	const struct core_dispute d = {.n = c->dispute.n,
								   .asked = {c->dispute.asked[0], c->dispute.asked[1]},
								   .given = {c->dispute.given[0], c->dispute.given[1]}};
	const bool late = c->now_us >= c->dispute.since_us + patience_us(c);
	bool over = false;
	for (int k = 0; k < d.n; k++) {
		const bool gone = !set_has(votes, d.asked[k]);
		if (!gone && late && !d.given[k])
			core_disbelieve(c, d.asked[k], CORE_EVENT_NO_EVIDENCE);
		over = over || gone || (late && !d.given[k]);
	}
	if (over)
		core_dispute_end(c);
	return over;
}

/* Drops votes that another process than the one of the roster has found on its disk: it has no
 * seals. Returns true if there are any. */
static bool drop_found_votes(struct core *c, const uint64_t *votes) {
	bool any = false;
	for (int i = set_next(votes, 0, c->roster_words); i >= 0; i = set_next(votes, i + 1, c->roster_words)) {
		if (core_has_seals(c, i))
			continue;
		set_add(c->roster.disbelieved, (uint32_t)i);
		core_participant(c, (uint32_t)i)->distrusted = true;
		any = true;
	}
	return any;
}

/* Returns true if one that differs from a majority has shown what it got, and the asked one of the
 * majority has not. */
static bool majority_owes(const struct core_dispute *d, const uint64_t *best) {
	bool owes = false;
	for (int k = 0; k < 2; k++)
		owes = owes || (!d->of_owners && d->given[k] && !set_has(best, d->asked[k]) && !d->given[1 - k]);
	return owes && !RV_BUG("believe-most");
}

/* Returns true if a majority goes on without what those asked have not shown. */
static bool waits_no_more(const struct core *c, const uint64_t *best) {
	for (int k = 0; k < 2; k++) {
		const uint32_t place = c->dispute.asked[k];
		if (!c->dispute.given[k] && !set_has(best, place) && core_is_mute(c, core_participant(c, place)))
			return true;
	}
	return !majority_owes(&c->dispute, best) && c->now_us >= majority_waits_until_us(c);
}

/* Settles what two of two rows have shown: by the owners there, if they can show something. */
static enum core_settling settle_rows(struct core *c, const uint64_t *votes) {
	if (core_ask_owners(c, votes))
		return CORE_SETTLING;
	if (has_majority(c) && c->now_us < majority_waits_until_us(c))
		return CORE_SETTLING; /* they may vote yet */
	return has_majority(c) && core_void_what_differs(c, votes) ? CORE_SETTLED : CORE_UNSETTLED;
}

enum core_settling core_dispute(struct core *c, const uint64_t *votes, const uint64_t *best) {
	struct core_dispute *d = &c->dispute;
	if (c->owners_apart)
		return CORE_UNSETTLED; /* the attempt is void */
	if (d->n == 1)
		core_dispute_end(c);
	if (d->has_proof)
		return convict(c);
	if (d->has_liar)
		return ban_final(c);
	core_watch_owners(c, votes);
	if (d->n == 2 && give_up(c, votes))
		return CORE_SETTLED;
	if (d->n == 2 && d->given[0] && d->given[1])
		return settle_rows(c, votes);
	if (d->n == 2)
		return has_majority(c) && waits_no_more(c, best) ? CORE_UNSETTLED : CORE_SETTLING;
	if (!has_majority(c) && drop_found_votes(c, votes))
		return CORE_SETTLED;
	return ask(c, votes, best) ? CORE_SETTLING : CORE_UNSETTLED;
}

enum core_settling core_vouch(struct core *c, const uint64_t *alike) {
	uint64_t vouched[CORE_ROSTER_WORDS];
	set_copy(vouched, alike, c->roster_words);
	set_meet(vouched, c->roster.vouched, c->roster_words);
	if (!set_is_empty(vouched, c->roster_words) || RV_BUG("believe-few"))
		return CORE_SETTLED;
	if (c->dispute.n > 0 && !give_up(c, alike))
		return CORE_SETTLING;
	uint64_t left[CORE_ROSTER_WORDS]; /* without one that was given up */
	set_copy(left, alike, c->roster_words);
	set_less(left, c->roster.disbelieved, c->roster_words);
	const int first = first_to_ask(c, left, false);
	if (first == NOT_ASKED)
		return CORE_UNSETTLED;
	open_dispute(c, first, NOT_ASKED);
	return CORE_SETTLING;
}

void core_disputes_put(const struct core *c, struct document *d) {
	const struct core_dispute *q = &c->dispute;
	d->n_asked = 0;
	for (int k = 0; k < q->n && d->phase == RUN_REDUCE; k++)
		if (!q->given[k])
			d->asked[d->n_asked++] = c->roster.members[q->asked[k]];
}
