/* proofs.c: what keeps participants from lying to one another: the leaves of contributions, by the
 * roots that the roster names, and the seals of means (net/seal.h). */
#include "net/reduce/state.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/planted.h"
#include "base/round_number.h"

#include <string.h>

/* ---- leaves of contributions ---- */

void reduce_put_leaves(struct reduce *r, int to, uint32_t chunk, struct reduce_msg *out) {
	struct merkle_range range = {r->cfg.n_chunks, chunk, 1};
	RV_ASSERT(r->owner[chunk] == to && r->mem.proof != NULL && r->mem.own_nodes != NULL);
	while (range.count < REDUCE_LEAVES_MOST && chunk + range.count < r->cfg.n_chunks &&
		   r->owner[chunk + range.count] == to)
		range.count++;
	struct rv_hash proof[MERKLE_MAX_PROOF];
	const uint32_t n_proof = merkle_prove(r->mem.own_nodes, &range, proof);
	struct rv_writer w = rv_writer_of(r->mem.proof, REDUCE_LEAVES_BYTES);
	rv_write_u32(&w, range.count);
	rv_write_bytes(&w, r->mem.own_nodes[chunk].b, range.count * sizeof r->mem.own_nodes[0]);
	rv_write_bytes(&w, proof[0].b, n_proof * sizeof proof[0]);
	RV_ASSERT(!w.failed);
	out->type = REDUCE_LEAVES;
	out->chunk = chunk;
	out->data = r->mem.proof;
	out->data_bytes = (uint32_t)rv_writer_len(&w);
	r->info.proof_bytes += REDUCE_HEADER_BYTES + out->data_bytes;
	r->peers[r->slot[to]].leaves_next = chunk + range.count;
}

static enum rv_err bad_leaves(const struct reduce *r, int from, const struct reduce_msg *m, struct rv_errtext *et) {
	return rv_fail(et, RV_E_PROTOCOL,
				   "leaves: member %u proves nothing of chunk %u by %u bytes: its root of round %llu is another one",
				   r->places[from].member, m->chunk, m->data_bytes, (unsigned long long)round_number(r->round));
}

/* Leaves of an earlier attempt are welcome, as contributions are (receive.c). */
enum rv_err reduce_receive_leaves(struct reduce *r, int from, const struct reduce_msg *m, struct rv_errtext *et) {
	struct rv_reader in = rv_reader_of(m->data, m->data_bytes);
	const struct merkle_range range = {r->cfg.n_chunks, m->chunk, rv_read_u32(&in)};
	const size_t hashes = rv_reader_left(&in) / RV_HASH_BYTES;
	if (!r->cfg.commits)
		return rv_fail(et, RV_E_PROTOCOL, "leaves: none are wanted here");
	if (!merkle_range_valid(&range) || range.count > REDUCE_LEAVES_MOST || hashes < range.count ||
		rv_reader_left(&in) % RV_HASH_BYTES != 0)
		return bad_leaves(r, from, m, et);
	const struct rv_hash *leaves = (const struct rv_hash *)(const void *)rv_read_span(&in, range.count * RV_HASH_BYTES);
	const struct rv_hash *proof = leaves + range.count;
	if (!merkle_check(&r->places[from].root, &range, leaves, proof, (uint32_t)(hashes - range.count)) &&
		!RV_BUG("believe-any-leaves"))
		return bad_leaves(r, from, m, et);
	const uint8_t slot = r->slot[from];
	for (uint32_t i = 0; i < range.count; i++) {
		r->mem.leaves[slot][range.first + i] = leaves[i];
		reduce_bit_set(r->proven[slot], range.first + i);
	}
	return RV_OK;
}

bool reduce_is_proven(const struct reduce *r, int from, uint32_t chunk) {
	return !r->cfg.commits || reduce_bit(r->proven[r->slot[from]], chunk) || RV_BUG("take-the-unproven");
}

bool reduce_fits_leaf(const struct reduce *r, int from, uint32_t chunk, const uint8_t *data, size_t bytes) {
	if (!r->cfg.commits || RV_BUG("take-the-unproven"))
		return true;
	const struct rv_hash leaf = merkle_leaf(r->cfg.first_chunk + chunk, data, bytes);
	return rv_hash_equal(&leaf, &r->mem.leaves[r->slot[from]][chunk]);
}

/* ---- seals of means ---- */

void reduce_note_mean(struct reduce *r, uint32_t chunk) {
	if (reduce_seals(r))
		r->mem.means[chunk] = merkle_leaf(r->cfg.first_chunk + chunk, r->mem.reduced + reduce_mean_offset(r, chunk),
										  reduce_mean_bytes(r, chunk));
}

/* Returns the root over the means of the owner at `index`, which are all here. */
static struct rv_hash root_of(const struct reduce *r, int index) {
	struct merkle_sum sum = {.n = 0};
	for (uint32_t c = 0; c < r->cfg.n_chunks; c++)
		if (r->owner[c] == index)
			merkle_add(&sum, &r->mem.means[c]);
	return merkle_sum_root(&sum);
}

void reduce_seal_own(struct reduce *r) {
	if (!reduce_seals(r) || r->has_own_seal || r->n_own == 0 || r->n_order < r->n_own ||
		(r->cfg.seal_later && !r->may_seal) || !reduce_sums_are_sealed(r))
		return;
	const struct rv_hash root = root_of(r, r->self);
	r->cfg.seals.sign(r->cfg.seals.ctx, &r->scope, &root, &r->own_seal);
	r->has_own_seal = true;
	for (int i = 0; i < r->n_members; i++)
		reduce_peer_at(r, i)->seal_due = i != r->self;
}

void reduce_may_seal(struct reduce *r) {
	r->may_seal = true;
	reduce_seal_own(r);
}

void reduce_put_signed(struct reduce *r, uint8_t type, const struct seal *seal, struct reduce_msg *out) {
	memcpy(r->seal_bytes, seal->root.b, RV_HASH_BYTES);
	memcpy(r->seal_bytes + RV_HASH_BYTES, seal->signature, NET_SIG_BYTES);
	out->type = type;
	out->data = r->seal_bytes;
	out->data_bytes = SEAL_BYTES;
	r->info.proof_bytes += REDUCE_HEADER_BYTES + SEAL_BYTES;
}

struct seal reduce_signed_in(const struct reduce_msg *m) {
	struct seal seal;
	RV_ASSERT(m->data_bytes == SEAL_BYTES);
	memcpy(seal.root.b, m->data, RV_HASH_BYTES);
	memcpy(seal.signature, m->data + RV_HASH_BYTES, NET_SIG_BYTES);
	return seal;
}

void reduce_put_seal(struct reduce *r, struct reduce_msg *out) {
	RV_ASSERT(r->has_own_seal);
	reduce_put_signed(r, REDUCE_SEAL, &r->own_seal, out);
}

/* Keeps the two seals of a participant as proof. */
static void note_twice(struct reduce *r, int from, const struct seal *other) {
	if (r->has_twice)
		return;
	r->has_twice = true;
	r->twice = (struct equivocation){.member = r->places[from].member,
									 .scope = r->scope,
									 .chunk = NET_MAX_CHUNKS,
									 .seals = {reduce_peer_at(r, from)->seal, *other}};
	memcpy(r->twice.key, r->places[from].key, sizeof r->twice.key);
}

enum rv_err reduce_receive_seal(struct reduce *r, int64_t now_us, int from, const struct reduce_msg *m,
								struct rv_errtext *et) {
	struct reduce_peer *p = reduce_peer_at(r, from);
	if (m->attempt != r->attempt) {
		r->info.ignored_messages++;
		return RV_OK;
	}
	if (!reduce_seals(r) || !r->owns[from] || m->data_bytes != SEAL_BYTES)
		return rv_fail(et, RV_E_PROTOCOL, "seal: %u bytes of member %u, which owns %s", m->data_bytes, p->member,
					   r->owns[from] ? "chunks" : "none");
	const struct seal seal = reduce_signed_in(m);
	if (p->has_seal && rv_hash_equal(&seal.root, &p->seal.root))
		return RV_OK; /* it comes again on every link */
	if (!r->cfg.seals.verify(r->cfg.seals.ctx, r->places[from].key, &r->scope, &seal) && !RV_BUG("trust-seals"))
		return rv_fail(et, RV_E_PROTOCOL, "seal: member %u has not signed it", p->member);
	if (p->has_seal) {
		note_twice(r, from, &seal);
		return rv_fail(et, RV_E_PROTOCOL, "seal: member %u has signed two different lists of means in attempt %u",
					   p->member, r->attempt);
	}
	p->has_seal = true;
	p->seal = seal;
	return reduce_settle(r, now_us, from, et);
}

enum rv_err reduce_settle(struct reduce *r, int64_t now_us, int from, struct rv_errtext *et) {
	struct reduce_peer *p = reduce_peer_at(r, from);
	if (!p->owes_seal || !p->has_seal || p->owes_gather > 0)
		return RV_OK;
	const struct rv_hash root = root_of(r, from);
	if (!rv_hash_equal(&root, &p->seal.root) && !RV_BUG("trust-seals"))
		return rv_fail(et, RV_E_PROTOCOL, "seal: member %u has signed other means than it sent in attempt %u",
					   p->member, r->attempt);
	p->owes_seal = false;
	p->progress_us = now_us;
	return RV_OK;
}

const struct seal_scope *reduce_scope(const struct reduce *r) {
	return &r->scope;
}

const struct seal *reduce_seal_of(const struct reduce *r, int index) {
	RV_ASSERT(index >= 0 && index < r->n_members);
	const struct reduce_peer *p = &r->peers[r->slot[index]];
	if (index == r->self)
		return r->has_own_seal ? &r->own_seal : NULL;
	return p->has_seal && !p->owes_seal ? &p->seal : NULL;
}

bool reduce_equivocation(const struct reduce *r, struct equivocation *out) {
	if (r->has_twice)
		*out = r->twice;
	return r->has_twice;
}
