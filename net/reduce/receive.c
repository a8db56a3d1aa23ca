/* receive.c: judges one message from a peer and lets the chunks have it. */
#include "net/reduce/state.h"

#include "base/assert.h"
#include "base/planted.h"

#include <string.h>

static enum rv_err check_chunk(const struct reduce *r, const char *what, int from, const struct reduce_msg *m,
							   struct rv_errtext *et) {
	if (m->chunk >= r->cfg.n_chunks)
		return rv_fail(et, RV_E_PROTOCOL, "%s: chunk %u of %u", what, m->chunk, r->cfg.n_chunks);
	const bool mean = m->type == REDUCE_GATHER;
	size_t want = mean ? reduce_mean_bytes(r, m->chunk) : reduce_given_bytes(r, from, m->chunk);
	if (m->data_bytes != want)
		return rv_fail(et, RV_E_PROTOCOL, "%s: chunk %u has %u bytes, must be %zu", what, m->chunk, m->data_bytes,
					   want);
	return RV_OK;
}

/* Contributions depend on (round, member, process, chunk) only, so one that was on its way since an
 * earlier attempt is welcome, if its sender was the same process then: a killed process' socket may
 * deliver for seconds more, behind a roster that already means its successor. Who owns what is
 * known for our own attempt alone. (Of a later attempt: the sender's process may be another one
 * than we know of.) What is ignored here is in no RESUME of ours: it is sent again. */
static enum rv_err receive_scatter(struct reduce *r, int64_t now_us, int from, const struct reduce_msg *m,
								   struct rv_errtext *et) {
	bool former = m->attempt < reduce_peer_at(r, from)->boot_attempt && !RV_BUG("late-scatter");
	if (m->attempt > r->attempt || former) {
		r->info.ignored_messages++;
		return RV_OK;
	}
	RV_TRY(check_chunk(r, "scatter", from, m, et));
	if (m->attempt == r->attempt && r->owner[m->chunk] != r->self)
		return rv_fail(et, RV_E_PROTOCOL, "scatter: chunk %u is not ours to own in attempt %u", m->chunk, r->attempt);
	if (!reduce_contributes(r, from, m->chunk)) {
		r->info.ignored_messages++; /* of an earlier attempt, in which its part was another one */
		return m->attempt != r->attempt
				   ? RV_OK
				   : rv_fail(et, RV_E_PROTOCOL, "scatter: member %u contributes to one chunk of %u, and not to %u",
							 r->places[from].member, r->places[from].part, m->chunk);
	}
	if (!reduce_is_proven(r, from, m->chunk)) {
		r->info.ignored_messages++; /* its leaves were of a contribution that is void now */
		return m->attempt != r->attempt ? RV_OK
										: rv_fail(et, RV_E_PROTOCOL, "scatter: member %u has sent no leaf of chunk %u",
												  r->places[from].member, m->chunk);
	}
	r->info.rx_bytes += REDUCE_HEADER_BYTES + m->data_bytes;
	return reduce_chunks_contribute(r, now_us, from, m, et);
}

static enum rv_err receive_gather(struct reduce *r, int64_t now_us, int from, const struct reduce_msg *m,
								  struct rv_errtext *et) {
	if (m->attempt != r->attempt && !RV_BUG("stale-attempt")) {
		r->info.ignored_messages++; /* its mean has other terms */
		return RV_OK;
	}
	RV_TRY(check_chunk(r, "gather", from, m, et));
	if (r->owner[m->chunk] != from)
		return rv_fail(et, RV_E_PROTOCOL, "gather: chunk %u is not its to reduce in attempt %u", m->chunk, r->attempt);
	r->info.rx_bytes += REDUCE_HEADER_BYTES + m->data_bytes;
	return reduce_chunks_adopt(r, now_us, from, m, et);
}

/* Times that a peer may be sent all it is to get in an attempt, beside the first: links break. */
enum { TIMES_AGAIN = 8 };

static enum rv_err receive_resume(struct reduce *r, int64_t now_us, int from, const struct reduce_msg *m,
								  struct rv_errtext *et) {
	struct reduce_peer *p = reduce_peer_at(r, from);
	if (m->attempt != r->attempt) {
		r->info.ignored_messages++; /* ours of this attempt makes it say it again */
		return RV_OK;
	}
	if (m->data_bytes != r->bitmap_bytes)
		return rv_fail(et, RV_E_PROTOCOL, "resume: bitmap of %u bytes, must be %zu", m->data_bytes, r->bitmap_bytes);
	RV_TRY(reduce_chunks_check_resume(r, from, m->data, et));
	RV_ASSERT(p->up); /* reduce_receive */
	bool ack = (m->flags & REDUCE_RESUME_ACK) != 0;
	p->heard = true;
	if (!ack || !p->flowing) {
		/* Exact when it was written after ours was read (links keep the order), or when there was
		 * nothing to miss. */
		bool exact = ack || !p->sent_bulk;
		p->flowing = exact;
		if (exact && p->again > (uint64_t)TIMES_AGAIN * p->load.all)
			return rv_fail(et, RV_E_PROTOCOL, "resume: member %u was sent all %d times again in attempt %u", p->member,
						   TIMES_AGAIN, r->attempt);
		if (exact) {
			memcpy(r->delivered[r->slot[from]], m->data, r->bitmap_bytes);
			p->sent_bulk = false;
			p->scatter_next = p->leaves_next = 0;
			p->gather_next = 0;
			p->seal_due = p->sums_due = true;
			p->progress_us = now_us;
			reduce_count_load(r, from);
		}
	}
	if ((m->flags & REDUCE_RESUME_ASK) != 0 || !p->flowing)
		p->resume_due = true;
	return RV_OK;
}

static enum rv_err receive_ping(struct reduce *r, int64_t now_us, int from, const struct reduce_msg *m,
								struct rv_errtext *et) {
	struct reduce_peer *p = reduce_peer_at(r, from);
	if (m->attempt != r->attempt)
		return RV_OK; /* alive, and that is all it says */
	if (m->waiting > r->cfg.n_chunks)
		return rv_fail(et, RV_E_PROTOCOL, "ping: %u chunks wait of %u", m->waiting, r->cfg.n_chunks);
	if (m->waiting == 0 && !p->complete) { /* from now on it owes us means: that clock starts once */
		p->complete = true;
		p->progress_us = now_us;
	}
	return RV_OK;
}

static enum rv_err receive_leaves(struct reduce *r, int64_t now_us, int from, const struct reduce_msg *m,
								  struct rv_errtext *et) {
	(void)now_us;
	if (m->attempt > r->attempt || m->attempt < reduce_peer_at(r, from)->boot_attempt) {
		r->info.ignored_messages++;
		return RV_OK;
	}
	return reduce_receive_leaves(r, from, m, et);
}

static enum rv_err receive(struct reduce *r, int64_t now_us, int from, const struct reduce_msg *m,
						   struct rv_errtext *et) {
	static enum rv_err (*const take[])(struct reduce *, int64_t, int, const struct reduce_msg *,
									   struct rv_errtext *) = {
		[REDUCE_SCATTER] = receive_scatter, [REDUCE_GATHER] = receive_gather, [REDUCE_RESUME] = receive_resume,
		[REDUCE_PING] = receive_ping,       [REDUCE_LEAVES] = receive_leaves, [REDUCE_SEAL] = reduce_receive_seal,
		[REDUCE_SUMS] = reduce_receive_sums};
	if (m->type < REDUCE_SCATTER || m->type > REDUCE_SUMS)
		return rv_fail(et, RV_E_PROTOCOL, "all-reduce: unknown message type %u", m->type);
	return take[m->type](r, now_us, from, m, et);
}

enum rv_err reduce_receive(struct reduce *r, int64_t now_us, int from, const struct reduce_msg *m,
						   struct rv_errtext *et) {
	RV_ASSERT(from >= 0 && from < r->n_members && from != r->self);
	struct reduce_peer *p = reduce_peer_at(r, from);
	reduce_link_up(r, now_us, from); /* a message is proof of a link, should nobody have told us */
	if (p->bad)
		return rv_fail(et, RV_E_PROTOCOL, "member %u was refused earlier in this round", p->member);
	p->heard_us = now_us;
	p->silent = false;
	if (m->round != r->round) {
		r->info.ignored_messages++;
		return RV_OK;
	}
	enum rv_err e = receive(r, now_us, from, m, et);
	if (e != RV_OK)
		p->bad = true;
	reduce_check(r);
	return e;
}
