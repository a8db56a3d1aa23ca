/* piece.c: see piece.h. */
#include "worker/audit/piece.h"

#include "base/assert.h"
#include "base/merkle.h"

#include <string.h>

size_t piece_proof_bytes(uint32_t n_chunks, uint32_t chunk) {
	const struct merkle_range range = {n_chunks, chunk, 1};
	return merkle_proof_hashes(&range) * sizeof(struct rv_hash);
}

bool piece_is_proven(const struct piece *p, uint32_t n_chunks, uint32_t chunk) {
	const struct merkle_range range = {n_chunks, chunk, 1};
	const struct rv_hash leaf = merkle_leaf(range.first, p->at, p->chunk_bytes);
	struct rv_hash proof[MERKLE_MAX_PROOF];
	memcpy(proof, p->at + p->chunk_bytes, p->bytes - p->chunk_bytes);
	return merkle_check(&p->from->root, &range, &leaf, proof, merkle_proof_hashes(&range));
}

bool pieces_are_here(const struct piece *pieces, int n) {
	for (int i = 0; i < n; i++)
		if (pieces[i].state != PIECE_HERE)
			return false;
	return true;
}

struct piece *pieces_find(struct piece *pieces, int n, uint32_t member) {
	for (int i = 0; i < n; i++)
		if (pieces[i].from->member == member)
			return &pieces[i];
	return NULL;
}

void pieces_make_ready(struct piece *pieces, int n, int64_t now_us) {
	for (int i = 0; i < n; i++)
		if (now_us >= pieces[i].ready_us)
			pieces[i].ready_us = INT64_MIN;
}

int64_t pieces_ready_us(const struct piece *pieces, int n) {
	int64_t at = INT64_MAX;
	for (int i = 0; i < n; i++) {
		const struct piece *p = &pieces[i];
		if (p->state == PIECE_WANTED && p->ready_us != INT64_MIN && p->ready_us < at)
			at = p->ready_us;
	}
	return at;
}

void owed_add(struct owed_answers *o, uint32_t member, struct frame_fetch of) {
	RV_ASSERT(o->n < NET_MAX_PEERS); /* one of each linked member */
	o->of[o->n].member = member;
	o->of[o->n++].of = of;
}

int owed_find(const struct owed_answers *o, uint32_t member) {
	for (int i = 0; i < o->n; i++)
		if (o->of[i].member == member)
			return i;
	return -1;
}

void owed_drop(struct owed_answers *o, int at) {
	o->n--;
	memmove(&o->of[at], &o->of[at + 1], (size_t)(o->n - at) * sizeof o->of[0]);
}
