/* candidates.c: which of the addresses that a member reports are announced: coordinator/service/
 * member_address.h judges them, this remembers what has been proven. */
#include "coordinator/service/internal.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/gcra.h"
#include "net/address_reach.h"

#include <string.h>

/* A signature costs some 100 us of a processor, and a member may send anything. */
static const struct gcra proof_checks = {.each_us = 5 * RV_US_PER_S, .burst = 8};

/* The addresses of one report that are announced. */
struct announced {
	struct candidate list[NET_MAX_CANDIDATES];
	uint8_t n;
};

/* Adds an address, if there is room and it is not there. */
static void announce(struct announced *to, uint8_t kind, const char *addr) {
	for (int i = 0; i < to->n; i++)
		if (strcmp(to->list[i].addr, addr) == 0)
			return;
	if (to->n == NET_MAX_CANDIDATES)
		return;
	struct candidate *c = &to->list[to->n++];
	*c = (struct candidate){.kind = kind};
	memcpy(c->addr, addr, strlen(addr) + 1);
}

static bool same_proof(const struct candidate *a, const struct candidate *b) {
	return a->kind == b->kind && a->relay == b->relay && a->unix_s == b->unix_s && strcmp(a->addr, b->addr) == 0 &&
		   memcmp(a->signature, b->signature, sizeof a->signature) == 0;
}

/* Returns true if a relay has signed this address for the member. A proof that held once is not
 * computed again. */
static bool is_proven(struct member_proofs *known, const struct member_facts *f, const struct candidate *c,
					  int64_t now_us) {
	for (int i = 0; i < NET_MAX_CANDIDATES; i++)
		if (same_proof(&known->at[i], c))
			return true;
	if (!gcra_take(&proof_checks, &known->paid_until_us, now_us) || !member_proof_check(f, c))
		return false;
	known->at[known->next++ % NET_MAX_CANDIDATES] = *c;
	return true;
}

/* Names a member whose address is not announced: once for each kind, and once more for what is
 * *false*: the relay did not sign it, or probers did not find the member there. */
static void tell_dropped(struct service *s, uint32_t slot, const struct candidate *c, bool is_false, const char *why) {
	const uint64_t bit = UINT64_C(1) << (2 * c->kind + is_false);
	if ((s->members[slot].dropped_told & bit) != 0)
		return;
	s->members[slot].dropped_told |= bit;
	service_tell_operator(s, RV_WARN, "address", c->addr, "member %u reports a %s address that is not announced: %s",
						  core_number(s->core, slot), candidate_kind_name(c->kind), why);
}

static void judge(struct service *s, int64_t now_us, uint32_t slot, const struct member_facts *f,
				  const struct candidate *c, const char *seen, struct announced *out) {
	char addr[NET_ADDR_BYTES] = "";
	struct rv_errtext why = {0};
	enum member_verdict v = member_address_judge(f, seen, c, addr, &why);
	bool is_false = v == MEMBER_NEEDS_PROOF || v == MEMBER_NEEDS_PROBE, waits = v == MEMBER_UNPROVEN;
	if (v == MEMBER_NEEDS_PROOF) {
		(void)rv_fail(&why, RV_E_AUTH, "the relay's proof is not for this member and address");
		v = is_proven(&s->members[slot].proofs, f, c, now_us) ? MEMBER_CONFIRMED : MEMBER_REFUSED;
	}
	if (v == MEMBER_NEEDS_PROBE && service_confirms_given(s, now_us, f->key, f->sight, addr, &waits))
		v = MEMBER_CONFIRMED;
	if (v == MEMBER_CONFIRMED)
		announce(out, c->kind, addr);
	else if (!waits)
		tell_dropped(s, slot, c, is_false, why.text);
}

/* Announces a member that others reach at the coordinator's public host also where the coordinator
 * sees it: members in that network dial it there. */
static void announce_sight(const struct member_facts *f, const char *seen, struct announced *out) {
	struct address a;
	char addr[NET_ADDR_BYTES];
	if (address_parse(seen, &a, NULL) != RV_OK || strcmp(a.host, f->sight->host) == 0)
		return;
	memcpy(a.host, f->sight->host, strlen(f->sight->host) + 1);
	if (address_reach(&a) == ADDRESS_PRIVATE && address_format(&a, addr))
		announce(out, CANDIDATE_PRIVATE, addr);
}

/* Puts the list into the order in which others should dial it: in the own network first; then what
 * most likely answers everybody. */
static void put_in_order(struct announced *a, struct report *rep) {
	static const uint8_t order[] = {CANDIDATE_PRIVATE, CANDIDATE_SEEN, CANDIDATE_GIVEN, CANDIDATE_REFLECTED};
	rep->n_candidates = 0;
	for (size_t k = 0; k < sizeof order; k++)
		for (int i = 0; i < a->n; i++)
			if (a->list[i].kind == order[k])
				rep->candidates[rep->n_candidates++] = a->list[i];
	RV_ASSERT(rep->n_candidates == a->n && a->n > 0);
}

enum rv_err service_confirm_candidates(struct service *s, int64_t now_us, uint32_t slot, const uint8_t *key,
									   const struct member_sight *sight, struct report *rep, struct rv_errtext *et) {
	struct member_facts f = {.sight = sight,
							 .site = s->cfg.site,
							 .port = s->cfg.advertise.port,
							 .relays = s->cfg.relays,
							 .n_relays = s->cfg.n_relays,
							 .unix_s = (uint64_t)(rv_clock_wall_us() / RV_US_PER_S)};
	struct announced out = {.n = 0};
	char seen[NET_ADDR_BYTES];
	memcpy(f.run_id, s->cfg.run_id, sizeof f.run_id);
	memcpy(f.key, key, sizeof f.key);
	RV_TRY(member_address_seen(&f, rep->candidates[0].addr, seen, et));
	announce(&out, CANDIDATE_SEEN, seen);
	for (int i = 1; i < rep->n_candidates; i++)
		judge(s, now_us, slot, &f, &rep->candidates[i], seen, &out);
	announce_sight(&f, seen, &out);
	put_in_order(&out, rep);
	return RV_OK;
}
