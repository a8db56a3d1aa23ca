/* proofs.c: proofs of equivocation: two seals of one owner over different lists, or of one member
 * over different contributions. Each is a durable record, which bans the member; the latest ones
 * are in documents, where every member checks them.
 *
 * A proof counts once, and for some rounds: a member that the operator has readmitted (`unban`) is
 * not banned again for the same. CORE_PROVEN others within that time would be as many bans. */
#include "base/assert.h"
#include "base/round_number.h"
#include "coordinator/core/internal.h"

#include <string.h>

enum { PROOF_ROUNDS = 16 };

/* Names what a proof proves: whose seals, in which attempt, of which list. */
static struct rv_hash offence_of(const struct equivocation *e) {
	struct rv_hasher h = rv_hasher_of("rivulet offence");
	rv_hash_u64(&h, e->member);
	rv_hash_update(&h, e->scope.roster.b, RV_HASH_BYTES);
	rv_hash_u64(&h, e->scope.kind | (uint64_t)e->scope.first << 8);
	return rv_hash_final(&h);
}

const char *core_apply_proof(struct core *c, const struct core_record *rec) {
	const int slot = core_find(c, rec->proof.member);
	if (slot < 0 || memcmp(c->members[slot].key, rec->proof.key, NET_KEY_BYTES) != 0)
		return "a proof against no member, or with another key than its own";
	if (c->banned.n == NET_MAX_BANNED && !banned_has(&c->banned, rec->proof.member))
		return "too many members are banned";
	c->members[slot].banned = c->members[slot].want_banned = true;
	core_note_banned(c, rec->proof.member, true);
	core_views_touch(c, (uint32_t)slot);
	c->proven[c->n_proofs % CORE_PROVEN] = offence_of(&rec->proof);
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

/* Returns true if the record will ban one that is not banned, nor counted as wanted: an operator
 * may have taken that ban back before it was durable. */
static bool bans_another(const struct core *c, const struct core_queued *q) {
	const int slot = q->type == CORE_MEMBER ? core_find(c, q->facts.number) : -1;
	if (slot < 0)
		return q->type == CORE_PROOF;
	return q->facts.banned && !c->members[slot].banned && !c->members[slot].want_banned;
}

bool core_has_ban_room(const struct core *c) {
	int wanted = 0;
	for (int k = 0; k < c->slots.n; k++) {
		const struct core_member *m = &c->members[c->slots.order[k]];
		wanted += m->want_banned && !m->banned;
	}
	for (int i = 0; i < c->n_queue; i++)
		wanted += bans_another(c, &c->queue[i]);
	RV_ASSERT(c->banned.n + wanted <= NET_MAX_BANNED);
	return c->banned.n + wanted < NET_MAX_BANNED;
}

void core_push_proof(struct core *c, const struct equivocation *e) {
	struct core_record *rec = core_push(c, CORE_PROOF);
	rec->proof = *e;
	rec->member = e->member;
	rec->attempt = e->scope.attempt;
	const bool roots = e->scope.kind == SEAL_CONTRIBUTION;
	core_say_of(c, roots ? CORE_EVENT_TWO_ROOTS : CORE_EVENT_EQUIVOCATED, (uint32_t)core_find(c, e->member),
				e->scope.round, roots ? e->scope.first : e->chunk);
}

static bool is_proven(const struct core *c, const struct equivocation *e) {
	const struct rv_hash offence = offence_of(e);
	for (int i = 0; i < c->n_proofs && i < CORE_PROVEN; i++)
		if (rv_hash_equal(&c->proven[i], &offence))
			return true;
	return false;
}

bool core_proof_counts(const struct core *c, const struct equivocation *e) {
	const int slot = core_find(c, e->member);
	return slot >= 0 && !c->members[slot].banned && !is_proven(c, e) && core_has_ban_room(c);
}

static bool is_of_late(const struct core *c, const struct seal_scope *s) {
	return s->term == c->term && s->round <= c->round && c->round - s->round <= PROOF_ROUNDS;
}

enum rv_err core_take_proof(struct core *c, const struct equivocation *e, struct rv_errtext *et) {
	const int slot = core_find(c, e->member);
	if (slot < 0 || memcmp(c->members[slot].key, e->key, NET_KEY_BYTES) != 0 ||
		memcmp(e->scope.run_id, c->cfg.run_id, NET_RUN_ID_BYTES) != 0 || !equivocation_proves(e, &c->cfg.seals))
		return rv_fail(et, RV_E_INVALID, "evidence: a proof against member %u that proves nothing", e->member);
	if (!is_of_late(c, &e->scope))
		return rv_fail(et, RV_E_INVALID,
					   "evidence: a proof against member %u of round %llu, term %llu; one counts for %d rounds",
					   e->member, (unsigned long long)round_number(e->scope.round), (unsigned long long)e->scope.term,
					   (int)PROOF_ROUNDS);
	if (c->n_queue == 0 && core_proof_counts(c, e))
		core_push_proof(c, e);
	return RV_OK; /* while another record waits it comes again */
}

void core_proofs_put(const struct core *c, struct document *d) {
	d->n_proofs = (uint8_t)kept_proofs(c);
	for (int i = 0; i < d->n_proofs; i++)
		d->proofs[i] = c->proofs[(c->n_proofs - d->n_proofs + i) % NET_MAX_PROOFS];
}
