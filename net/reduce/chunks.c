/* chunks.c: the chunks of an all-reduce: whose contributions are held, which are reduced, and the
 * bitmaps that say so to a peer. */
#include "net/reduce/state.h"

#include "base/assert.h"
#include "base/planted.h"

#include <string.h>

size_t reduce_given_bytes(const struct reduce *r, int index, uint32_t chunk) {
	return r->cfg.codec.chunk_bytes(r->cfg.codec.ctx, r->places[index].codec, chunk);
}

size_t reduce_given_offset(const struct reduce *r, int index, uint32_t chunk) {
	return r->cfg.codec.chunk_offset(r->cfg.codec.ctx, r->places[index].codec, chunk);
}

size_t reduce_mean_bytes(const struct reduce *r, uint32_t chunk) {
	const struct reduce_codec *k = &r->cfg.codec;
	return k->mean_bytes ? k->mean_bytes(k->ctx, chunk) : k->chunk_bytes(k->ctx, 0, chunk);
}

size_t reduce_mean_offset(const struct reduce *r, uint32_t chunk) {
	const struct reduce_codec *k = &r->cfg.codec;
	return k->mean_offset ? k->mean_offset(k->ctx, chunk) : k->chunk_offset(k->ctx, 0, chunk);
}

static bool complete(const struct reduce *r, uint32_t chunk) {
	for (int i = 0; i < r->n_members; i++)
		if (reduce_lacks(r, i, chunk))
			return false;
	return true;
}

static void push_ready(struct reduce *r, uint32_t chunk) {
	RV_ASSERT(r->n_ready < r->cfg.n_chunks);
	r->ready[r->n_ready++] = chunk;
}

static void mark_reduced(struct reduce *r, int64_t now_us, uint32_t chunk) {
	RV_ASSERT(chunk < r->cfg.n_chunks && !reduce_bit(r->reduced, chunk)); /* once */
	reduce_bit_set(r->reduced, chunk);
	r->n_reduced++;
	if (!r->cfg.later_mean)
		push_ready(r, chunk);
	if (r->n_reduced < r->cfg.n_chunks)
		return;
	r->info.finished_us = now_us;
	reduce_check_chunks(r);
}

/* The mean of an own chunk is in mem.reduced. */
static void finish_own(struct reduce *r, int64_t now_us, uint32_t chunk) {
	RV_ASSERT(r->owner[chunk] == r->self && r->n_order < r->n_own);
	r->order[r->n_order++] = chunk;
	r->info.chunks_reduced++;
	if (!r->cfg.later_mean)
		reduce_note_mean(r, chunk);
	mark_reduced(r, now_us, chunk);
	reduce_seal_own(r);
}

/* The contribution of the member at `index` spoils the mean: it is void, and its sender is refused
 * from now on. */
static void void_contribution(struct reduce *r, int index, uint32_t chunk) {
	struct reduce_peer *p = reduce_peer_at(r, index);
	uint8_t *held = r->held[r->slot[index]];
	RV_ASSERT(index != r->self && r->owner[chunk] == r->self && reduce_bit(held, chunk));
	held[chunk >> 3] &= (uint8_t) ~(1u << (chunk & 7));
	p->owes_scatter++;
	p->given_us = 0;
	p->bad = true;
	r->n_waiting++;
}

/* The contributions to one of our chunks, and whose they are. */
struct gathered {
	const uint8_t *data[NET_MAX_ROW];
	uint32_t weights[NET_MAX_ROW];
	uint8_t codecs[NET_MAX_ROW], places[NET_MAX_ROW];
	int n;
};

static void gather(const struct reduce *r, uint32_t chunk, struct gathered *g) {
	g->n = 0;
	for (int i = 0; i < r->n_members; i++) {
		if (!reduce_contributes(r, i, chunk))
			continue;
		const uint8_t *vector = i == r->self ? r->mem.own : r->mem.held[r->slot[i]];
		g->data[g->n] = vector + reduce_given_offset(r, i, chunk);
		g->weights[g->n] = r->places[i].weight;
		g->codecs[g->n] = r->places[i].codec;
		g->places[g->n++] = (uint8_t)i;
	}
	RV_ASSERT(g->n > 0); /* one contributes to all chunks */
}

/* The mean of one of our chunks, in roster order whatever the order of arrival. On a fault *bad is
 * the roster index of the contribution that caused it, or -1: none did. */
static enum rv_err reduce_own_chunk(struct reduce *r, int64_t now_us, uint32_t chunk, int *bad, struct rv_errtext *et) {
	struct gathered g;
	uint8_t *mean = r->mem.reduced + reduce_mean_offset(r, chunk);
	RV_ASSERT(r->owner[chunk] == r->self && complete(r, chunk) && r->n_order < r->n_own);
	gather(r, chunk, &g);
	const struct reduce_inputs in = {g.data, g.weights, g.codecs, g.places, g.n};
	int at = -1;
	enum rv_err e = r->cfg.codec.reduce(r->cfg.codec.ctx, chunk, &in, r->cfg.later_mean ? NULL : mean, &at, et);
	RV_ASSERT(at >= -1 && at < g.n);
	*bad = at >= 0 ? g.places[at] : -1;
	RV_ASSERT(e != RV_E_CORRUPT || *bad != r->self); /* we encoded that ourselves */
	if (e != RV_OK) {
		if (*bad >= 0 && *bad != r->self)
			void_contribution(r, *bad, chunk);
		return e;
	}
	if (!r->cfg.later_mean) {
		finish_own(r, now_us, chunk);
		return RV_OK;
	}
	reduce_bit_set(r->summed, chunk);
	push_ready(r, chunk);
	return RV_OK;
}

static void count_debts(struct reduce *r, uint32_t chunk) {
	bool ours = r->owner[chunk] == r->self, unoffered = !reduce_holds(r, r->self, chunk);
	RV_ASSERT(r->owner[chunk] < r->n_members);
	reduce_peer_at(r, r->owner[chunk])->unmade_sums += unoffered;
	r->n_own += ours;
	r->n_unoffered += unoffered;
	if (!ours) {
		reduce_peer_at(r, r->owner[chunk])->owes_gather++;
		reduce_peer_at(r, r->owner[chunk])->owes_seal = reduce_seals(r);
		return;
	}
	r->n_own_unoffered += unoffered;
	for (int i = 0; i < r->n_members; i++) {
		if (i == r->self)
			continue;
		reduce_peer_at(r, i)->owes_scatter += reduce_lacks(r, i, chunk);
		reduce_peer_at(r, i)->owes_sums = reduce_seals_sums(r);
	}
	r->n_waiting += !complete(r, chunk);
}

static void begin_complete(struct reduce *r, int64_t now_us, uint32_t chunk) {
	int bad;
	if (r->cfg.later_mean && reduce_bit(r->summed, chunk))
		push_ready(r, chunk);
	else
		(void)reduce_own_chunk(r, now_us, chunk, &bad, NULL); /* a fault has made its sender a suspect */
}

void reduce_chunks_begin(struct reduce *r, int64_t now_us, bool same) {
	memset(r->reduced, 0, r->bitmap_bytes);
	if (!same && !RV_BUG("keep-former-sums"))
		memset(r->summed, 0, r->bitmap_bytes);
	r->n_reduced = 0;
	r->n_order = r->n_own = 0;
	r->n_ready = r->n_taken = 0;
	r->n_waiting = r->n_unoffered = r->n_own_unoffered = 0;
	for (uint32_t c = 0; c < r->cfg.n_chunks; c++)
		count_debts(r, c);
	for (int i = 0; i < r->n_members; i++)
		reduce_seal_sums(r, i);
	for (uint32_t c = 0; c < r->cfg.n_chunks; c++)
		if (r->owner[c] == r->self && complete(r, c))
			begin_complete(r, now_us, c);
	reduce_check_chunks(r);
}

uint32_t reduce_chunks_waiting(const struct reduce *r) {
	const bool unsealed = reduce_seals(r) && r->n_own > 0 && !r->has_own_seal;
	if (r->cfg.later_mean && r->n_order < r->n_own)
		return r->n_own - r->n_order;
	const uint32_t waiting = r->cfg.later_mean ? 0 : r->n_waiting + r->n_unoffered - r->n_own_unoffered;
	return waiting == 0 && unsealed ? 1 : waiting;
}

/* ---- the two levels of a grid ---- */

void reduce_offer(struct reduce *r, int64_t now_us, uint32_t chunk) {
	RV_ASSERT(r->cfg.later_own && chunk < r->cfg.n_chunks);
	if (reduce_holds(r, r->self, chunk))
		return;
	reduce_bit_set(r->held[r->slot[r->self]], chunk);
	r->n_unoffered--;
	reduce_note_sum(r, r->self, chunk);
	reduce_peer_at(r, r->owner[chunk])->unmade_sums--;
	reduce_seal_sums(r, r->owner[chunk]);
	if (r->owner[chunk] != r->self) {
		struct reduce_peer *p = reduce_peer_at(r, r->owner[chunk]);
		p->scatter_next = p->scatter_next < chunk ? p->scatter_next : chunk;
		return;
	}
	r->n_own_unoffered--;
	if (!complete(r, chunk))
		return;
	int bad;
	r->n_waiting--;
	(void)reduce_own_chunk(r, now_us, chunk, &bad, NULL);
}

bool reduce_take(struct reduce *r, uint32_t *chunk) {
	if (r->n_taken == r->n_ready)
		return false;
	*chunk = r->ready[r->n_taken++];
	return true;
}

bool reduce_is_reduced(const struct reduce *r, uint32_t chunk) {
	return reduce_bit(r->reduced, chunk);
}

bool reduce_is_ready(const struct reduce *r, uint32_t chunk) {
	if (!r->cfg.later_mean)
		return reduce_is_reduced(r, chunk);
	return r->owner[chunk] == r->self && reduce_bit(r->summed, chunk);
}

void reduce_finish(struct reduce *r, int64_t now_us, uint32_t chunk) {
	RV_ASSERT(r->cfg.later_mean && reduce_is_ready(r, chunk));
	finish_own(r, now_us, chunk);
	reduce_check(r);
}

/* ---- messages ---- */

static bool same_bytes(const uint8_t *vector, size_t offset, const struct reduce_msg *msg) {
	return memcmp(vector + offset, msg->data, msg->data_bytes) == 0;
}

enum rv_err reduce_chunks_contribute(struct reduce *r, int64_t now_us, int from, const struct reduce_msg *msg,
									 struct rv_errtext *et) {
	uint32_t c = msg->chunk;
	struct reduce_peer *p = reduce_peer_at(r, from);
	uint8_t *map = r->held[r->slot[from]], *held = r->mem.held[r->slot[from]];
	size_t offset = reduce_given_offset(r, from, c);
	if (reduce_bit(map, c)) {
		r->info.ignored_messages++;
		if (!same_bytes(held, offset, msg))
			return rv_fail(et, RV_E_PROTOCOL, "scatter: member %u sent chunk %u twice, with different bytes", p->member,
						   c);
		return RV_OK;
	}
	if (!reduce_fits_leaf(r, from, c, msg->data, msg->data_bytes))
		return rv_fail(et, RV_E_PROTOCOL, "scatter: member %u has committed to other bytes of chunk %u", p->member, c);
	RV_ASSERT(held != NULL && from != r->self);
	memcpy(held + offset, msg->data, msg->data_bytes);
	reduce_bit_set(map, c);
	reduce_note_sum(r, from, c);
	if (r->owner[c] != r->self)
		return RV_OK; /* of another attempt's map: ours to reduce, perhaps, in the next one */
	RV_ASSERT(p->owes_scatter > 0 && !reduce_bit(r->reduced, c)); /* it was owed */
	p->owes_scatter--;
	p->progress_us = now_us;
	p->given_us = p->owes_scatter == 0 ? now_us : 0;
	if (!complete(r, c))
		return reduce_settle_sums(r, now_us, from, et);
	RV_ASSERT(r->n_waiting > 0);
	r->n_waiting--;
	int bad;
	enum rv_err e = reduce_own_chunk(r, now_us, c, &bad, et);
	bool at_fault = e != RV_OK && bad == from;
	return at_fault ? e : reduce_settle_sums(r, now_us, from, et);
}

enum rv_err reduce_chunks_adopt(struct reduce *r, int64_t now_us, int from, const struct reduce_msg *msg,
								struct rv_errtext *et) {
	uint32_t c = msg->chunk;
	struct reduce_peer *p = reduce_peer_at(r, from);
	size_t offset = reduce_mean_offset(r, c);
	if (reduce_bit(r->reduced, c)) {
		r->info.ignored_messages++;
		if (!same_bytes(r->mem.reduced, offset, msg))
			return rv_fail(et, RV_E_PROTOCOL, "gather: member %u sent chunk %u twice, with different bytes", p->member,
						   c);
		return RV_OK;
	}
	if (reduce_contributes(r, r->self, c) && !reduce_bit(r->delivered[r->slot[from]], c))
		return rv_fail(et, RV_E_PROTOCOL, "gather: member %u reduced chunk %u without our contribution", p->member, c);
	/* All would vote for the same bytes and commit what nobody can apply. */
	enum rv_err e = r->cfg.codec.check(r->cfg.codec.ctx, c, msg->data, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "gather: member %u reduced chunk %u to bytes that cannot be decoded", p->member,
							   c);
	memcpy(r->mem.reduced + offset, msg->data, msg->data_bytes);
	RV_ASSERT(r->owner[c] == from && from != r->self && p->owes_gather > 0);
	p->owes_gather--;
	p->progress_us = now_us;
	reduce_note_mean(r, c);
	mark_reduced(r, now_us, c);
	return reduce_settle(r, now_us, from, et);
}

void reduce_chunks_resume(struct reduce *r, int index) {
	const uint8_t *held = r->held[r->slot[index]];
	RV_ASSERT(index != r->self && index < r->n_members);
	memset(r->resume, 0, r->bitmap_bytes);
	for (uint32_t c = 0; c < r->cfg.n_chunks; c++) {
		bool ours = r->owner[c] == r->self && reduce_bit(held, c);
		bool its = r->owner[c] == index && reduce_bit(r->reduced, c);
		if (ours || its)
			reduce_bit_set(r->resume, c);
	}
}

enum rv_err reduce_chunks_check_resume(const struct reduce *r, int index, const uint8_t *map, struct rv_errtext *et) {
	for (uint32_t c = 0; c < r->cfg.n_chunks; c++) {
		if (!reduce_bit(map, c))
			continue;
		if (r->owner[c] != index && r->owner[c] != r->self)
			return rv_fail(et, RV_E_PROTOCOL, "resume: bit %u is set, but that chunk is neither's", c);
		if (r->owner[c] == r->self && !reduce_bit(r->reduced, c))
			return rv_fail(et, RV_E_PROTOCOL, "resume: claims chunk %u, which we have not reduced", c);
	}
	for (uint32_t c = r->cfg.n_chunks; c < 8 * (uint32_t)r->bitmap_bytes; c++)
		if (reduce_bit(map, c))
			return rv_fail(et, RV_E_PROTOCOL, "resume: bit %u is set past the last chunk", c);
	return RV_OK;
}
