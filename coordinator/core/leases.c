/* leases.c: which sequences of the text each member reads (base/leases.h), in a run whose text is
 * published. Everything here follows from the records: a MEMBER record of a newcomer grants, a
 * COMMIT consumes and tops up its participants, AWAY and ROLLBACK free, and a LEASES record is
 * decided for what no other record does: a member that lost its lease is back, or one that holds a
 * lease is gone.
 *
 * A participant keeps its sequences from the roster on until the round is committed or has another
 * roster: nobody takes them meanwhile. What committed rounds have read is remembered for a rollback
 * in a ring: in a run that goes on evenly one range a round, for CORE_PAST_ROUNDS and more. What
 * older rounds have read stays consumed: those sequences are left out of the pass. */
#include "base/assert.h"
#include "base/capped.h"
#include "base/planted.h"
#include "coordinator/core/internal.h"

#include <string.h>

_Static_assert((int)NET_MAX_LEASES == (int)LEASE_PIECES, "a document lists all pieces of a member");

bool core_has_leases(const struct core *c) {
	return c->cfg.lease_round > 0;
}

static struct lease_holder *holder_of(const struct core *c, uint32_t slot) {
	return &c->leases.holders[slot];
}

void core_leases_init(struct core *c) {
	struct core_leases *l = &c->leases;
	RV_ASSERT(c->cfg.lease_round <= UINT32_MAX / LEASE_ROUNDS);
	RV_ASSERT(!core_has_leases(c) || c->cfg.lease_tokens > 0);
	if (core_has_leases(c))
		leases_init(&l->all, l->holders, c->cfg.max_here, l->free, CORE_FREE_LEASES(&c->cfg));
}

static void top_up(struct core *c, uint32_t slot) {
	const uint64_t lacks = leases_lacks(&c->leases.all, slot, c->cfg.lease_round);
	(void)leases_grant(&c->leases.all, slot, lacks);
}

/* ---- what records change ---- */

void core_leases_join(struct core *c, uint32_t slot) {
	const struct core_member *m = &c->members[slot];
	RV_ASSERT(!core_has_leases(c) || holder_of(c, slot)->held == 0);
	if (!core_has_leases(c) || m->banned)
		return;
	top_up(c, slot);
	c->members[slot].read_from = c->round;
	if (m->number + 1 < c->slots.next_number) /* it returns: it may have had a document of this number */
		c->leases.changed = true;
}

void core_leases_away(struct core *c, uint32_t slot) {
	if (core_has_leases(c))
		leases_give_back(&c->leases.all, slot);
}

/* Notes a piece that this round has read, joined to the last one when it continues it. */
static void note_consumed(struct core *c, const struct lease_piece *p) {
	struct core_leases *l = &c->leases;
	const uint32_t cap = CORE_CONSUMED(&c->cfg);
	struct core_consumed *last = &l->consumed[(l->consumed_first + l->n_consumed + cap - 1) % cap];
	if (l->n_consumed > 0 && last->round == c->round && last->range.end == p->begin) {
		last->range.end += p->count;
		return;
	}
	if (l->n_consumed == cap) {
		l->consumed_first = (l->consumed_first + 1) % cap;
		l->n_consumed--;
	}
	l->consumed[(l->consumed_first + l->n_consumed++) % cap] =
		(struct core_consumed){.round = c->round, .range = {.begin = p->begin, .end = p->begin + p->count}};
}

void core_leases_commit(struct core *c) {
	const struct core_roster *r = &c->roster;
	struct lease_piece pieces[LEASE_PIECES];
	if (!core_has_leases(c) || (RV_BUG("read-again-after-a-restart") && c->replaying))
		return;
	for (int i = 0; i < r->n; i++) {
		const int n = leases_consume(&c->leases.all, r->slots[i], r->lease_first[i], r->lease_count[i], pieces);
		c->members[r->slots[i]].read_from = c->round + 1;
		for (int k = 0; k < n; k++)
			note_consumed(c, &pieces[k]);
	}
	for (int i = 0; i < r->n; i++)
		top_up(c, r->slots[i]);
}

void core_leases_rollback(struct core *c, uint64_t round) {
	struct core_leases *l = &c->leases;
	while (l->n_consumed > 0) {
		const struct core_consumed *last =
			&l->consumed[(l->consumed_first + l->n_consumed - 1) % CORE_CONSUMED(&c->cfg)];
		if (last->round < round)
			return;
		leases_restore(&l->all, last->range);
		l->n_consumed--;
		l->changed = true;
	}
}

static void give_back(struct core *c, uint32_t slot) {
	struct lease_piece pieces[LEASE_PIECES];
	const struct lease_holder *h = holder_of(c, slot);
	if (RV_BUG("forget-what-is-given-back"))
		(void)leases_consume(&c->leases.all, slot, h->first, h->held, pieces);
	leases_give_back(&c->leases.all, slot);
}

/* Returns why the i-th member of a LEASES record cannot be in it; NULL: it can. */
static const char *check_one(const struct core *c, const struct core_record *rec, int i) {
	const int slot = core_find(c, rec->members[i]);
	if (slot < 0 || (i > 0 && rec->members[i] <= rec->members[i - 1]))
		return "it names a number that no member has, or out of order";
	if (rec->lease_count[i] == 0 && core_place(c, (uint32_t)slot) >= 0)
		return "it takes the sequences of a participant";
	const uint64_t lacks = leases_lacks(&c->leases.all, (uint32_t)slot, c->cfg.lease_round);
	if (rec->lease_count[i] != 0 && rec->lease_count[i] != lacks)
		return "it grants more or less than a member lacks";
	return NULL;
}

const char *core_leases_apply(struct core *c, const struct core_record *rec) {
	if (!core_has_leases(c) || rec->n_members == 0)
		return "leases in a run that has none, or of nobody";
	for (int i = 0; i < rec->n_members; i++) {
		const char *why = check_one(c, rec, i);
		if (why != NULL)
			return why;
	}
	for (int i = 0; i < rec->n_members; i++)
		if (rec->lease_count[i] == 0)
			give_back(c, (uint32_t)core_find(c, rec->members[i]));
	for (int i = 0; i < rec->n_members; i++)
		if (rec->lease_count[i] != 0)
			(void)leases_grant(&c->leases.all, (uint32_t)core_find(c, rec->members[i]), rec->lease_count[i]);
	c->leases.changed = true;
	return NULL;
}

const char *core_leases_check_roster(const struct core *c, const struct core_record *rec) {
	for (int i = 0; i < rec->n_members; i++) {
		const int slot = core_find(c, rec->members[i]);
		const uint64_t first = rec->lease_first[i];
		const uint32_t count = rec->lease_count[i];
		RV_ASSERT(slot >= 0); /* the caller has looked for all */
		if (core_has_leases(c) ? count == 0 || !leases_has(&c->leases.all, (uint32_t)slot, first, count)
							   : count != 0 || first != 0)
			return "a participant has read sequences that are not leased to it";
	}
	return NULL;
}

const char *core_leases_check_commit(const struct core *c, const struct core_record *rec) {
	const struct core_roster *r = &c->roster;
	if (memcmp(rec->lease_first, r->lease_first, r->n * sizeof r->lease_first[0]) != 0 ||
		memcmp(rec->lease_count, r->lease_count, r->n * sizeof r->lease_count[0]) != 0)
		return "its participants have read other sequences than the roster's";
	return core_leases_check_roster(c, rec);
}

/* ---- decisions ---- */

/* Returns the most sequences that a contribution can have read: those of this round, what the
 * rounds since its last committed one may have left, and batches that were refused. One that counts
 * more would take them from others unread. */
static uint64_t most_read(const struct core *c, const struct core_member *m) {
	const uint64_t missed = c->round > m->read_from ? c->round - m->read_from : 0;
	return rv_add_capped(core_tokens_with(c, missed) / c->cfg.lease_tokens, c->cfg.lease_slack);
}

bool core_lease_covers(const struct core *c, const struct core_member *m) {
	const struct report *rep = &m->last;
	if (!core_has_leases(c))
		return rep->lease_count == 0; /* else a roster with it could not be recorded */
	return (rep->lease_count > 0 && rep->lease_count <= most_read(c, m) &&
			leases_has(&c->leases.all, core_slot_of(c, m), rep->lease_first, rep->lease_count));
}

/* Returns true if others should read what the member has. One that leaves may only be started
 * again, with its contribution and perhaps one that is in a mean. */
static bool gives_back(const struct core *c, uint32_t slot) {
	const struct core_member *m = &c->members[slot];
	if (holder_of(c, slot)->held == 0 || core_place(c, slot) >= 0)
		return false;
	const bool here = core_alive(c, m) && !(m->reported && m->last.phase == WORKER_LEAVING);
	const uint64_t seen = m->rostered_at > m->came_at ? m->rostered_at : m->came_at;
	return m->banned || (!here && c->round >= seen + CORE_LEASE_KEPT_ROUNDS);
}

/* Returns how many positions the member is granted: one that is here with less than half of what it
 * should have. Those that take part are topped up when their rounds are committed. */
static uint32_t grants(const struct core *c, uint32_t slot) {
	const struct core_member *m = &c->members[slot];
	const struct lease_holder *h = holder_of(c, slot);
	const bool few = 2 * h->held < LEASE_ROUNDS * c->cfg.lease_round && h->n < LEASE_PIECES;
	const bool here = m->reported && core_available(c, m) && core_place(c, slot) < 0;
	return few && here ? (uint32_t)leases_lacks(&c->leases.all, slot, c->cfg.lease_round) : 0;
}

static void add(struct core_record *rec, uint32_t member, uint32_t count) {
	const int i = rec->n_members++;
	rec->members[i] = member;
	rec->tokens[i] = rec->boots[i] = rec->rates[i] = rec->downs[i] = rec->lease_first[i] = 0;
	rec->codecs[i] = rec->parts[i] = 0;
	rec->lease_count[i] = count;
}

/* Plants the bug that the simulator must find: leases that no record knows of, of a round more. */
static void grant_at_once(struct core *c) {
	for (int k = 0; k < c->slots.n; k++) {
		const uint32_t slot = c->slots.order[k];
		if (core_available(c, &c->members[slot]) && holder_of(c, slot)->held <= LEASE_ROUNDS * c->cfg.lease_round) {
			(void)leases_grant(&c->leases.all, slot, c->cfg.lease_round);
			c->leases.changed = true;
		}
	}
}

void core_decide_leases(struct core *c) {
	struct core_record *rec = NULL;
	RV_ASSERT(c->n_queue == 0);
	if (!core_has_leases(c) || c->round == c->cfg.final_round)
		return;
	if (RV_BUG("grant-before-it-is-durable")) {
		grant_at_once(c);
		return;
	}
	for (int k = 0; k < c->slots.n; k++) {
		const uint32_t slot = c->slots.order[k];
		const bool back = gives_back(c, slot);
		const uint32_t granted = back ? 0 : grants(c, slot);
		if (!back && granted == 0)
			continue;
		if (rec == NULL)
			rec = core_push(c, CORE_LEASES);
		add(rec, c->slots.numbers[k], granted);
		if (rec->n_members == NET_MAX_ROSTER)
			return; /* the others when this is durable */
	}
}

/* ---- documents ---- */

void core_leases_put(const struct core *c, uint32_t slot, struct document *d) {
	if (!core_has_leases(c) || d->phase == RUN_DONE || holder_of(c, slot)->n == 0)
		return;
	const struct lease_holder *h = holder_of(c, slot);
	d->lease_first = h->first;
	d->n_leases = (uint8_t)h->n;
	memcpy(d->leases, h->pieces, h->n * sizeof h->pieces[0]);
}

struct core_text core_text(const struct core *c) {
	const struct leases *l = &c->leases.all;
	const uint64_t n_free = leases_free(l);
	return (struct core_text){.next = l->next,
							  .consumed = l->consumed,
							  .held = l->next - l->consumed - n_free - l->left_out,
							  .free = n_free,
							  .left_out = l->left_out};
}

bool core_leases_changed(struct core *c) {
	const bool changed = c->leases.changed;
	c->leases.changed = false;
	return changed;
}

void core_leases_check(const struct core *c) {
	const struct leases *l = &c->leases.all;
	uint64_t held = 0;
	if (!core_has_leases(c))
		return;
	for (int k = 0; k < c->slots.n; k++) {
		const struct lease_holder *h = holder_of(c, c->slots.order[k]);
		RV_ASSERT(h->n <= LEASE_PIECES && (h->n > 0) == (h->held > 0));
		RV_ASSERT(h->n == 0 || h->first + h->held <= l->granted);
		held += h->held;
	}
	/* Slots that no member has hold nothing: */
	RV_ASSERT(held + leases_free(l) + l->consumed + l->left_out == l->next);
	for (int i = 0; i < c->roster.n; i++)
		RV_ASSERT(leases_has(l, c->roster.slots[i], c->roster.lease_first[i], c->roster.lease_count[i]));
}
