/* signed_roots.c: checks that each participant of a roster has signed the root that the document
 * names for its contribution; so the coordinator cannot make one up. Documents of one attempt, and
 * of later attempts, name most of them again: these are not checked twice. */
#include "worker/round/internal.h"

#include "base/planted.h"
#include "base/round_number.h"
#include "net/control/signed_roots.h"

#include <string.h>

static bool seals_equal(const struct seal *a, const struct seal *b) {
	return rv_hash_equal(&a->root, &b->root) && memcmp(a->signature, b->signature, sizeof a->signature) == 0;
}

/* Returns the entry of a member, or a new one, which is of nobody. */
static struct round_signed *entry_of(struct round_core *c, uint32_t member) {
	for (int i = 0; i < c->n_signed; i++)
		if (c->signed_by[i].member == member)
			return &c->signed_by[i];
	const int at = c->n_signed < ROUND_SIGNED ? c->n_signed++ : (int)(member % ROUND_SIGNED);
	struct round_signed *e = &c->signed_by[at];
	*e = (struct round_signed){.member = member};
	return e;
}

/* Keeps the two roots of a member as proof. */
static void note_two(struct round_core *c, const struct member_ref *m, const struct seal_scope *scope,
					 const struct seal *former) {
	c->has_two_roots = true;
	c->two_roots = (struct equivocation){
		.member = m->member, .scope = *scope, .chunk = NET_MAX_CHUNKS, .seals = {*former, m->contribution}};
	memcpy(c->two_roots.key, m->key, sizeof c->two_roots.key);
}

enum rv_err round_check_signed(struct round_core *c, const struct document *d, struct rv_errtext *et) {
	const struct seal_ops *ops = &c->cfg.seals;
	for (int i = 0; i < d->n_members && d->phase == RUN_REDUCE && ops->verify != NULL; i++) {
		const struct member_ref *m = &d->members[i];
		const struct seal_scope scope = document_scope(d, m);
		struct round_signed *e = entry_of(c, m->member);
		const bool same = seal_scope_equal(&e->scope, &scope);
		if (same && seals_equal(&e->seal, &m->contribution))
			continue;
		if (!ops->verify(ops->ctx, m->key, &scope, &m->contribution) && !RV_BUG("trust-roots"))
			return rv_fail(et, RV_E_CORRUPT,
						   "document %llu: member %u has not signed the root that it names for its contribution to "
						   "round %llu",
						   (unsigned long long)d->seq, m->member, (unsigned long long)round_number(d->round));
		if (same && !rv_hash_equal(&e->seal.root, &m->contribution.root))
			note_two(c, m, &scope, &e->seal);
		e->scope = scope;
		e->seal = m->contribution;
	}
	return RV_OK;
}

bool round_two_roots(const struct round_core *c, struct equivocation *out) {
	if (c->has_two_roots)
		*out = c->two_roots;
	return c->has_two_roots;
}
