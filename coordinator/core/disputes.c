/* disputes.c: votes that differ. Nobody is blamed for being in a minority: two participants whose
 * votes differ are asked for the leaves of the means that they voted for, and for the seals with
 * which these came (net/control/evidence.h).
 *
 * - The vote of one that shows nothing in time, or something else than it voted for, or what no
 *   owner has signed, does not count; it is put away, and stays out of rosters as one does that
 *   costs attempts (exclusion.c).
 * - Else both lists are what they voted for, and differ in a chunk. In one row that has one owner,
 *   and the seals that they show of it are over different lists: a proof. It is recorded, the owner
 *   is banned, and the attempt is void.
 * - In two rows they have it from two owners, who got it from one final owner: these are not asked
 *   yet. The majority decides, and nobody is named. */
#include "base/assert.h"
#include "base/chain.h"
#include "base/planted.h"
#include "coordinator/core/internal.h"

#include <string.h>

enum { NOT_ASKED = -1 };

/* ---- proofs ---- */

const char *core_apply_proof(struct core *c, const struct core_record *rec) {
	const int slot = core_find(c, rec->proof.member);
	if (slot < 0 || memcmp(c->members[slot].key, rec->proof.key, NET_KEY_BYTES) != 0)
		return "a proof against no member, or with another key than its own";
	if (c->banned.n == NET_MAX_BANNED && !banned_has(&c->banned, rec->proof.member))
		return "too many members are banned";
	c->members[slot].banned = c->members[slot].want_banned = true;
	core_note_banned(c, rec->proof.member, true);
	core_views_touch(c, (uint32_t)slot);
	c->proofs[c->n_proofs++ % NET_MAX_PROOFS] = rec->proof;
	core_dispute_end(c);
	return NULL;
}

int core_proofs(const struct core *c, struct equivocation out[NET_MAX_PROOFS]) {
	memcpy(out, c->proofs, sizeof c->proofs);
	return c->n_proofs;
}

static int kept_proofs(const struct core *c) {
	return c->n_proofs < NET_MAX_PROOFS ? c->n_proofs : NET_MAX_PROOFS;
}

bool core_attempt_is_void(const struct core *c) {
	for (int i = 0; i < kept_proofs(c); i++)
		if (rv_hash_equal(&c->proofs[i].scope.roster, &c->roster.hash))
			return true;
	return false;
}

static void push_proof(struct core *c, const struct equivocation *e) {
	struct core_record *rec = core_push(c, CORE_PROOF);
	rec->proof = *e;
	rec->member = e->member;
	rec->attempt = e->scope.attempt;
	core_say_of(c, CORE_EVENT_EQUIVOCATED, (uint32_t)core_find(c, e->member), e->scope.round, e->chunk);
}

static bool is_proven(const struct core *c, uint32_t member) {
	for (int i = 0; i < kept_proofs(c); i++)
		if (c->proofs[i].member == member)
			return true;
	return false;
}

/* ---- the owners of a place's row ---- */

/* Participants that own all chunks: those of a place's row. */
struct owners {
	int row, first, n; /* first: place of the first one */
};

static struct owners owners_for(const struct core *c, int place) {
	const struct core_rows *r = &c->roster.rows;
	if (!core_rows_many(r))
		return (struct owners){.n = c->roster.n};
	const int row = core_rows_row_of(r, place);
	return (struct owners){.row = row, .first = r->plan.first[row], .n = core_rows_length(r, row)};
}

/* Returns the index among them of a chunk's owner. */
static int owner_of(const struct core *c, const struct owners *o, uint32_t chunk) {
	const struct core_roster *r = &c->roster;
	const bool many = core_rows_many(&r->rows);
	int i = 0;
	if (many)
		while (chunk - r->rows.plan.columns[i].first >= r->rows.plan.columns[i].count)
			i++;
	else
		while (chunk - r->ranges[i].first >= r->ranges[i].count)
			i++;
	const int owner = many ? r->rows.plan.columns[i].owner[o->row] : r->ranges[i].owner;
	RV_ASSERT(owner >= 0 && owner < o->n);
	return owner;
}

static struct seal_scope scope_of(const struct core *c, const struct owners *o) {
	struct seal_scope s = {.roster = c->roster.hash,
						   .term = c->term,
						   .round = c->round,
						   .attempt = c->attempt,
						   .kind = SEAL_ROW,
						   .first = (uint32_t)o->row};
	memcpy(s.run_id, c->cfg.run_id, sizeof s.run_id);
	return s;
}

/* ---- what a participant shows ---- */

static const struct seal *find_seal(const struct evidence *e, uint32_t member, const struct seal_scope *scope) {
	for (int i = 0; i < e->n_seals; i++)
		if (e->seals[i].member == member && e->seals[i].kind == scope->kind && e->seals[i].first == scope->first)
			return &e->seals[i].seal;
	return NULL;
}

/* Checks that the leaves make what the participant voted for. */
static bool is_its_vote(const struct core *c, int place, const struct evidence *e) {
	struct merkle_sum sum = {.n = 0};
	if (e->n_means != c->roster.n_chunks || !set_has(c->roster.voted, (uint32_t)place))
		return false;
	for (uint32_t i = 0; i < e->n_means; i++)
		merkle_add(&sum, &e->means[i]);
	const struct rv_hash root = merkle_sum_root(&sum), digest = rv_round_digest(c->round, &root);
	return rv_hash_equal(&digest, &c->roster.digests[place]) || RV_BUG("believe-any-evidence");
}

/* Checks that each owner of the participant's row has sealed these leaves; keeps the seals. */
static bool are_sealed(const struct core *c, int place, const struct evidence *e, struct seal seals[NET_MAX_ROW]) {
	struct merkle_sum sums[NET_MAX_ROW];
	const struct owners o = owners_for(c, place);
	const struct seal_scope scope = scope_of(c, &o);
	for (int i = 0; i < o.n; i++)
		sums[i].n = 0;
	for (uint32_t i = 0; i < e->n_means; i++)
		merkle_add(&sums[owner_of(c, &o, i)], &e->means[i]);
	for (int i = 0; i < o.n; i++) {
		if (sums[i].n == 0)
			continue;
		const struct core_member *m = core_participant(c, (uint32_t)(o.first + i));
		const struct seal *seal = find_seal(e, m->number, &scope);
		const struct rv_hash root = merkle_sum_root(&sums[i]);
		if (seal == NULL || !rv_hash_equal(&seal->root, &root) ||
			!c->cfg.seals.verify(c->cfg.seals.ctx, m->key, &scope, seal))
			return false;
		seals[i] = *seal;
	}
	return true;
}

static int asked_index(const struct core *c, int place) {
	for (int k = 0; k < 2 && c->dispute.open; k++)
		if (c->dispute.asked[k] == place)
			return k;
	return NOT_ASKED;
}

/* Drops the vote of a participant, and puts it away. */
static void disbelieve(struct core *c, int place, enum core_event_type why) {
	struct core_member *m = core_participant(c, (uint32_t)place);
	core_say(c, why, core_slot_of(c, m), c->round);
	set_add(c->roster.disbelieved, (uint32_t)place);
	set_add(c->blamed, core_slot_of(c, m));
	m->distrusted = true;
	core_dispute_end(c);
}

/* Takes what the asked participant shows. */
static enum rv_err take(struct core *c, int k, const struct evidence *e, struct rv_errtext *et) {
	struct core_dispute *d = &c->dispute;
	const int place = d->asked[k];
	if (!is_its_vote(c, place, e) || !are_sealed(c, place, e, d->seals[k])) {
		disbelieve(c, place, CORE_EVENT_FALSE_VOTE);
		return rv_fail(et, RV_E_INVALID,
					   "evidence: these means are not what you voted for in round %llu, or not what owners signed",
					   (unsigned long long)c->round);
	}
	d->given[k] = true;
	d->chunk = 0;
	if (!d->given[1 - k]) {
		memcpy(d->means, e->means, e->n_means * sizeof e->means[0]);
		return RV_OK;
	}
	while (d->chunk < e->n_means && rv_hash_equal(&d->means[d->chunk], &e->means[d->chunk]))
		d->chunk++;
	if (d->chunk == e->n_means)
		core_dispute_end(c); /* what they show is alike: there is nothing to settle */
	return RV_OK;
}

static enum rv_err take_proof(struct core *c, const struct equivocation *e, struct rv_errtext *et) {
	const int slot = core_find(c, e->member);
	if (slot < 0 || memcmp(c->members[slot].key, e->key, NET_KEY_BYTES) != 0 ||
		memcmp(e->scope.run_id, c->cfg.run_id, NET_RUN_ID_BYTES) != 0 || !equivocation_proves(e, &c->cfg.seals))
		return rv_fail(et, RV_E_INVALID, "evidence: a proof against member %u that proves nothing", e->member);
	if (!is_proven(c, e->member) && c->n_queue == 0 && c->banned.n < NET_MAX_BANNED)
		push_proof(c, e);
	return RV_OK; /* else it comes again */
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
		err = take_proof(c, &e->proof, et);
	if (err == RV_OK && k >= 0 && !c->dispute.given[k] && e->n_means > 0)
		err = take(c, k, e, et);
	core_step(c, now_us);
	return err;
}

/* ---- the dispute ---- */

void core_dispute_end(struct core *c) {
	c->dispute.open = c->dispute.given[0] = c->dispute.given[1] = false;
}

/* Returns the time that an asked participant has: its list may be long, and its line slow. */
static int64_t patience_us(const struct core *c) {
	enum { LEAST_BYTES_PER_S = 16384 };
	const uint64_t bytes = evidence_max_bytes(c->roster.n_chunks);
	return 2 * c->cfg.liveness_us + (int64_t)(bytes * 1000000 / LEAST_BYTES_PER_S);
}

/* Asks the first participant that has voted, and the first one whose vote is another. */
static void ask(struct core *c, const uint64_t *votes) {
	struct core_dispute *d = &c->dispute;
	const int first = set_next(votes, 0, c->roster_words);
	int second = first;
	while (rv_hash_equal(&c->roster.digests[second], &c->roster.digests[first])) {
		second = set_next(votes, second + 1, c->roster_words);
		RV_ASSERT(second >= 0);
	}
	d->asked[0] = (uint16_t)first;
	d->asked[1] = (uint16_t)second;
	d->open = true;
	d->given[0] = d->given[1] = false;
	d->until_us = c->now_us + patience_us(c);
}

/* Makes the proof of what both have shown. Returns false if there is none: they are in two rows. */
static bool convict(struct core *c) {
	const struct core_dispute *d = &c->dispute;
	const struct owners o = owners_for(c, d->asked[0]), other = owners_for(c, d->asked[1]);
	if (o.row != other.row || d->chunk >= c->roster.n_chunks)
		return false;
	const int i = owner_of(c, &o, d->chunk);
	const struct core_member *m = core_participant(c, (uint32_t)(o.first + i));
	struct equivocation e = {
		.member = m->number, .scope = scope_of(c, &o), .chunk = d->chunk, .seals = {d->seals[0][i], d->seals[1][i]}};
	memcpy(e.key, m->key, sizeof e.key);
	RV_ASSERT(equivocation_proves(&e, &c->cfg.seals));
	if (c->banned.n == NET_MAX_BANNED)
		return false;
	push_proof(c, &e);
	return true;
}

/* Gives up those that were asked and are gone, or late. Returns true if it has. */
static bool give_up(struct core *c, const uint64_t *votes) {
	const struct core_dispute d = {.asked = {c->dispute.asked[0], c->dispute.asked[1]},
								   .given = {c->dispute.given[0], c->dispute.given[1]}};
	const bool late = c->now_us >= c->dispute.until_us;
	bool over = false;
	for (int k = 0; k < 2; k++) {
		const bool gone = !set_has(votes, d.asked[k]);
		if (!gone && late && !d.given[k])
			disbelieve(c, d.asked[k], CORE_EVENT_NO_EVIDENCE);
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
		struct core_member *m = core_participant(c, (uint32_t)i);
		if (m->last.boot == c->roster.boots[i])
			continue;
		set_add(c->roster.disbelieved, (uint32_t)i);
		m->distrusted = true;
		any = true;
	}
	return any;
}

bool core_dispute(struct core *c, const uint64_t *votes) {
	struct core_dispute *d = &c->dispute;
	if (d->open && give_up(c, votes))
		return false;
	if (d->open && d->given[0] && d->given[1])
		return convict(c); /* else the majority decides */
	if (d->open)
		return true;
	if (drop_found_votes(c, votes))
		return false;
	ask(c, votes);
	return true;
}

void core_disputes_put(const struct core *c, struct document *d) {
	const struct core_dispute *q = &c->dispute;
	d->n_asked = 0;
	for (int k = 0; k < 2 && q->open && d->phase == RUN_REDUCE; k++)
		if (!q->given[k])
			d->asked[d->n_asked++] = c->roster.members[q->asked[k]];
	d->n_proofs = (uint8_t)kept_proofs(c);
	for (int i = 0; i < d->n_proofs; i++)
		d->proofs[i] = c->proofs[(c->n_proofs - d->n_proofs + i) % NET_MAX_PROOFS];
}
