/* send.c: what goes to a peer next: RESUME, PING, contributions, reduced chunks, in this order.
 *
 * Contributions go before reduced chunks. A contribution unlocks work elsewhere (its owner's mean
 * and then N-1 sends), a reduced chunk unlocks nothing; so a slow uplink serves first what others
 * wait for, and they have the rest of its transfer to finish theirs. And a contribution outlives a
 * failed attempt, a reduced chunk does not. Every sender serves an owner's chunks in the same
 * ascending order, so chunks complete one after the other, not all at the end. That links are
 * pulled one by one keeps all owners' downlinks busy at once. The platform asks which peers wait
 * for contributions, so that these go before means over all links (reduce_is_awaited), and how much
 * of its load each peer still lacks, so that all links end together (reduce_load). */
#include "net/reduce/state.h"

#include "base/assert.h"
#include "base/planted.h"

enum { NO_CHUNK = UINT32_MAX };

/* The first chunk at or after the cursor that the peer owns and does not have from us; one that
 * comes later sets the cursor back. */
static uint32_t next_scatter(const struct reduce *r, int to) {
	const uint8_t *delivered = r->delivered[r->slot[to]];
	for (uint32_t c = r->peers[r->slot[to]].scatter_next; c < r->cfg.n_chunks; c++)
		if (r->owner[c] == to && !reduce_bit(delivered, c) && reduce_contributes(r, r->self, c) &&
			(reduce_holds(r, r->self, c) || RV_BUG("send-unmade-sums")))
			return c;
	return NO_CHUNK;
}

/* The index in `order` of the first reduced chunk of ours that the peer does not have. */
static uint32_t next_gather(const struct reduce *r, int to) {
	const uint8_t *delivered = r->delivered[r->slot[to]];
	for (uint32_t i = r->peers[r->slot[to]].gather_next; i < r->n_order; i++)
		if (!reduce_bit(delivered, r->order[i]))
			return i;
	return NO_CHUNK;
}

/* Returns true if the peer in `slot` was sent this chunk before. A contribution is the same for
 * every receiver; a mean is not. */
static bool was_sent(const struct reduce *r, uint8_t slot, uint8_t type, uint32_t chunk) {
	if (type == REDUCE_GATHER)
		return reduce_bit(r->sent[slot], chunk);
	for (int i = 0; i < NET_MAX_ROW; i++)
		if (reduce_bit(r->sent[i], chunk))
			return true;
	return false;
}

static void count_sent(struct reduce *r, uint8_t slot, const struct reduce_msg *msg) {
	uint64_t bytes = REDUCE_HEADER_BYTES + msg->data_bytes;
	r->info.tx_bytes += bytes;
	if (was_sent(r, slot, msg->type, msg->chunk))
		r->info.resent_bytes += bytes;
	reduce_bit_set(r->sent[slot], msg->chunk);
}

static void make_chunk(struct reduce *r, int to, uint8_t type, uint32_t chunk, struct reduce_msg *out) {
	RV_ASSERT(r->owner[chunk] == (type == REDUCE_SCATTER ? to : r->self)); /* no owner gets its own means */
	RV_ASSERT(type == REDUCE_SCATTER || reduce_bit(r->reduced, chunk));
	RV_ASSERT(!reduce_bit(r->delivered[r->slot[to]], chunk));
	out->type = type;
	out->chunk = chunk;
	if (type == REDUCE_SCATTER) {
		out->data = r->mem.own + reduce_given_offset(r, r->self, chunk);
		out->data_bytes = (uint32_t)reduce_given_bytes(r, r->self, chunk);
	} else {
		out->data = r->mem.reduced + reduce_mean_offset(r, chunk);
		out->data_bytes = (uint32_t)reduce_mean_bytes(r, chunk);
	}
	struct reduce_peer *p = reduce_peer_at(r, to);
	RV_ASSERT(p->load.left > 0);
	p->load.left--;
	p->again += reduce_bit(r->sent[r->slot[to]], chunk);
	p->sent_bulk = true;
	reduce_bit_set(r->delivered[r->slot[to]], chunk);
	count_sent(r, r->slot[to], out);
}

static bool make_bulk(struct reduce *r, int to, struct reduce_msg *out) {
	struct reduce_peer *p = reduce_peer_at(r, to);
	uint32_t chunk = next_scatter(r, to);
	RV_ASSERT(p->flowing && to != r->self);
	if (chunk != NO_CHUNK && r->cfg.commits && chunk >= p->leaves_next) {
		p->scatter_next = chunk;
		p->sent_bulk = true;
		reduce_put_leaves(r, to, chunk, out);
		return true;
	}
	p->scatter_next = chunk == NO_CHUNK ? r->cfg.n_chunks : chunk + 1;
	if (chunk != NO_CHUNK) {
		make_chunk(r, to, REDUCE_SCATTER, chunk, out);
		return true;
	}
	uint32_t at = next_gather(r, to);
	p->gather_next = at == NO_CHUNK ? r->n_order : at + 1;
	if (at == NO_CHUNK)
		return false;
	make_chunk(r, to, REDUCE_GATHER, r->order[at], out);
	return true;
}

bool reduce_is_awaited(struct reduce *r, int to) {
	struct reduce_peer *p = reduce_peer_at(r, to);
	if (to == r->self || !p->up || p->bad || !p->flowing)
		return false;
	uint32_t chunk = next_scatter(r, to);
	p->scatter_next = chunk == NO_CHUNK ? r->cfg.n_chunks : chunk; /* not looked for again */
	return chunk != NO_CHUNK;
}

void reduce_count_load(struct reduce *r, int index) {
	const uint8_t *delivered = r->delivered[r->slot[index]];
	struct reduce_load load = {0};
	for (uint32_t c = 0; c < r->cfg.n_chunks; c++) {
		const bool goes = r->owner[c] == r->self || (r->owner[c] == index && reduce_contributes(r, r->self, c));
		load.all += goes;
		load.left += goes && !reduce_bit(delivered, c);
	}
	reduce_peer_at(r, index)->load = load;
}

struct reduce_load reduce_load(const struct reduce *r, int to) {
	RV_ASSERT(to >= 0 && to < r->n_members && to != r->self);
	const struct reduce_peer *p = &r->peers[r->slot[to]];
	return p->flowing ? p->load : (struct reduce_load){0};
}

static bool make_control(struct reduce *r, int to, struct reduce_msg *out) {
	struct reduce_peer *p = reduce_peer_at(r, to);
	if (p->resume_due) {
		p->resume_due = false;
		reduce_chunks_resume(r, to);
		out->type = REDUCE_RESUME;
		out->data = r->resume;
		out->data_bytes = (uint32_t)r->bitmap_bytes;
		out->flags = (uint8_t)((p->heard ? REDUCE_RESUME_ACK : 0) | (p->flowing ? 0 : REDUCE_RESUME_ASK));
		return true;
	}
	if (p->sums_due && p->flowing && p->has_given) {
		p->sums_due = false;
		reduce_put_sums(r, p, out);
		return true;
	}
	if (p->seal_due && p->flowing && r->has_own_seal) {
		p->seal_due = false;
		reduce_put_seal(r, out);
		return true;
	}
	if (p->ping_due) {
		out->type = REDUCE_PING;
		out->waiting = reduce_chunks_waiting(r);
		return true;
	}
	return false;
}

static bool send_next(struct reduce *r, int64_t now_us, int to, bool with_bulk, struct reduce_msg *out) {
	RV_ASSERT(to >= 0 && to < r->n_members && to != r->self);
	struct reduce_peer *p = reduce_peer_at(r, to);
	if (!p->up || p->bad)
		return false;
	*out = (struct reduce_msg){.round = r->round, .attempt = r->attempt};
	if (!make_control(r, to, out) && !(with_bulk && p->flowing && make_bulk(r, to, out)))
		return false;
	p->ping_due = false;
	p->sent_us = now_us;
	RV_ASSERT(out->type >= REDUCE_SCATTER && out->type <= REDUCE_SUMS && out->waiting <= r->cfg.n_chunks);
	reduce_check(r);
	return true;
}

bool reduce_send(struct reduce *r, int64_t now_us, int to, struct reduce_msg *out) {
	return send_next(r, now_us, to, true, out);
}

bool reduce_send_control(struct reduce *r, int64_t now_us, int to, struct reduce_msg *out) {
	return send_next(r, now_us, to, false, out);
}
