/* sums.c: seals of partial sums. In the column of a grid (grid.h) a contribution is the sum of a
 * row, which only its owner knows. So it signs for each final owner, itself among them, one list:
 * the leaves of its sums of the chunks that this one owns. A final owner seals no mean without the
 * list of each row: what a row is said to have given to a mean can be shown to others later. */
#include "net/reduce/state.h"

#include "base/assert.h"

#include <string.h>

static struct rv_hash *leaf_of(const struct reduce *r, int index, uint32_t chunk) {
	RV_ASSERT(r->mem.leaves[r->slot[index]] != NULL);
	return &r->mem.leaves[r->slot[index]][chunk];
}

void reduce_note_sum(struct reduce *r, int index, uint32_t chunk) {
	const uint8_t *vector = index == r->self ? r->mem.own : r->mem.held[r->slot[index]];
	if (reduce_seals_sums(r))
		*leaf_of(r, index, chunk) =
			merkle_leaf(r->cfg.first_chunk + chunk, vector + reduce_given_offset(r, index, chunk),
						reduce_given_bytes(r, index, chunk));
}

/* Returns the root over the sums of the participant at `from` for the owner at `to`. */
static struct rv_hash root_of(const struct reduce *r, int from, int to) {
	struct merkle_sum sum = {.n = 0};
	for (uint32_t c = 0; c < r->cfg.n_chunks; c++)
		if (r->owner[c] == to)
			merkle_add(&sum, leaf_of(r, from, c));
	return merkle_sum_root(&sum);
}

struct seal_scope reduce_scope_of_sums(const struct reduce *r, int owner) {
	struct seal_scope scope = r->scope;
	uint32_t first = 0;
	RV_ASSERT(r->owns[owner]);
	while (r->owner[first] != owner)
		first++;
	scope.kind = SEAL_SUMS;
	scope.first = r->cfg.first_chunk + first;
	return scope;
}

void reduce_seal_sums(struct reduce *r, int to) {
	struct reduce_peer *p = reduce_peer_at(r, to);
	if (!reduce_seals_sums(r) || !r->owns[to] || p->unmade_sums > 0 || p->has_given)
		return;
	const struct seal_scope scope = reduce_scope_of_sums(r, to);
	const struct rv_hash root = root_of(r, r->self, to);
	r->cfg.seals.sign(r->cfg.seals.ctx, &scope, &root, &p->given);
	p->has_given = true;
	p->sums_due = to != r->self;
}

void reduce_put_sums(struct reduce *r, const struct reduce_peer *p, struct reduce_msg *out) {
	RV_ASSERT(p->has_given);
	reduce_put_signed(r, REDUCE_SUMS, &p->given, out);
}

enum rv_err reduce_receive_sums(struct reduce *r, int64_t now_us, int from, const struct reduce_msg *m,
								struct rv_errtext *et) {
	struct reduce_peer *p = reduce_peer_at(r, from);
	if (m->attempt != r->attempt) {
		r->info.ignored_messages++;
		return RV_OK;
	}
	if (!reduce_seals_sums(r) || !r->owns[r->self] || m->data_bytes != SEAL_BYTES)
		return rv_fail(et, RV_E_PROTOCOL, "sums: %u bytes of member %u: no list of its sums is wanted here",
					   m->data_bytes, p->member);
	const struct seal seal = reduce_signed_in(m);
	if (p->has_sums && rv_hash_equal(&seal.root, &p->sums.root))
		return RV_OK; /* it comes again on every link */
	if (p->has_sums)
		return rv_fail(et, RV_E_PROTOCOL, "sums: member %u has signed two different lists in attempt %u", p->member,
					   r->attempt);
	const struct seal_scope scope = reduce_scope_of_sums(r, r->self);
	if (!r->cfg.seals.verify(r->cfg.seals.ctx, r->places[from].key, &scope, &seal))
		return rv_fail(et, RV_E_PROTOCOL, "sums: member %u has not signed them", p->member);
	p->has_sums = true;
	p->sums = seal;
	return reduce_settle_sums(r, now_us, from, et);
}

enum rv_err reduce_settle_sums(struct reduce *r, int64_t now_us, int from, struct rv_errtext *et) {
	struct reduce_peer *p = reduce_peer_at(r, from);
	if (!p->owes_sums || !p->has_sums || p->owes_scatter > 0)
		return RV_OK;
	const struct rv_hash root = root_of(r, from, r->self);
	if (!rv_hash_equal(&root, &p->sums.root))
		return rv_fail(et, RV_E_PROTOCOL, "sums: member %u has signed others than it sent in attempt %u", p->member,
					   r->attempt);
	p->owes_sums = false;
	p->progress_us = now_us;
	reduce_seal_own(r);
	return RV_OK;
}

bool reduce_sums_are_sealed(const struct reduce *r) {
	bool sealed = true;
	for (int i = 0; i < r->n_members && sealed; i++)
		sealed = !r->peers[r->slot[i]].owes_sums;
	return sealed;
}

const struct seal *reduce_sums_of(const struct reduce *r, int index) {
	const struct reduce_peer *p = &r->peers[r->slot[index]];
	if (!reduce_seals_sums(r) || !r->owns[r->self])
		return NULL;
	if (index == r->self)
		return p->has_given ? &p->given : NULL;
	return p->has_sums && !p->owes_sums ? &p->sums : NULL;
}

const struct rv_hash *reduce_sum_leaf(const struct reduce *r, int index, uint32_t chunk) {
	RV_ASSERT(r->owner[chunk] == r->self && reduce_sums_of(r, index) != NULL);
	return leaf_of(r, index, chunk);
}

bool reduce_is_own(const struct reduce *r, uint32_t chunk) {
	return r->owner[chunk] == r->self;
}

const uint8_t *reduce_contribution(const struct reduce *r, int index, uint32_t chunk, size_t *bytes) {
	const uint8_t *vector = index == r->self ? r->mem.own : r->mem.held[r->slot[index]];
	RV_ASSERT(reduce_is_own(r, chunk) && reduce_holds(r, index, chunk));
	*bytes = reduce_given_bytes(r, index, chunk);
	return vector + reduce_given_offset(r, index, chunk);
}
