/* reduce.c: the life of an all-reduce: memory, the start, later attempts, the end
 * (net/reduce/reduce.h).
 *
 * The rest of it: chunks.c (contributions and means), receive.c, send.c, suspects.c (links and
 * liveness). */
#include "net/reduce/state.h"

#include "base/assert.h"
#include "base/planted.h"

#include <string.h>

static size_t bitmap_bytes_of(uint32_t n_chunks) {
	return ((size_t)n_chunks + 7) / 8;
}

size_t reduce_flags_bytes(uint32_t n_chunks) {
	return n_chunks * (sizeof(uint32_t) + 1) + (2 + 3 * (size_t)NET_MAX_MEMBERS) * bitmap_bytes_of(n_chunks);
}

size_t reduce_size(void) {
	return sizeof(struct reduce);
}

/* Cuts mem.flags into its parts; `order` first, for its alignment. */
static void lay_out_flags(struct reduce *r) {
	uint32_t n = r->cfg.n_chunks;
	uint8_t *at = r->mem.flags;
	RV_ASSERT((uintptr_t)at % _Alignof(uint32_t) == 0);
	r->bitmap_bytes = bitmap_bytes_of(n);
	r->order = (uint32_t *)(void *)at;
	at += n * sizeof(uint32_t);
	r->owner = at;
	at += n;
	r->reduced = at;
	at += r->bitmap_bytes;
	r->resume = at;
	at += r->bitmap_bytes;
	for (int m = 0; m < NET_MAX_MEMBERS; m++) {
		r->held[m] = at;
		at += r->bitmap_bytes;
		r->delivered[m] = at;
		at += r->bitmap_bytes;
		r->sent[m] = at;
		at += r->bitmap_bytes;
	}
	RV_ASSERT(at == r->mem.flags + reduce_flags_bytes(n));
}

static void adopt_ownership_map(struct reduce *r, const struct document *d) {
	uint32_t next = 0;
	memset(r->owns, 0, sizeof r->owns);
	for (int i = 0; i < d->n_ranges; i++) {
		const struct owner_range *g = &d->ranges[i];
		RV_ASSERT(g->first == next && g->count <= r->cfg.n_chunks - next && g->owner < d->n_members);
		memset(r->owner + g->first, g->owner, g->count);
		r->owns[g->owner] = r->owns[g->owner] || g->count > 0;
		next += g->count;
	}
	RV_ASSERT(next == r->cfg.n_chunks); /* each chunk has an owner */
}

/* A member that restarted has another contribution now: what its former process sent is void, and
 * so is what of it still arrives (receive_scatter). */
static void adopt_boot(struct reduce *r, const struct member_ref *m) {
	struct reduce_peer *p = &r->peers[m->member];
	bool known = p->boot_attempt != 0 && p->boot == m->boot;
	RV_ASSERT(p->boot_attempt < r->attempt);
	if (known || RV_BUG("former-process"))
		return;
	memset(r->held[m->member], 0, r->bitmap_bytes);
	p->boot = m->boot;
	p->boot_attempt = r->attempt;
}

static void adopt_roster(struct reduce *r, const struct document *d) {
	RV_ASSERT(d->phase == RUN_REDUCE && d->n_chunks == r->cfg.n_chunks);
	RV_ASSERT(d->n_members >= 1 && d->n_members <= NET_MAX_MEMBERS);
	RV_ASSERT(d->round == r->round && d->attempt > r->attempt);
	uint64_t weights = 0;
	r->attempt = d->attempt;
	r->n_members = d->n_members;
	r->self = document_find(d, r->cfg.self_member);
	RV_ASSERT(r->self >= 0);
	for (int i = 0; i < d->n_members; i++) {
		RV_ASSERT(d->members[i].member < NET_MAX_MEMBERS && d->members[i].weight > 0);
		RV_ASSERT(i == 0 || d->members[i].member > d->members[i - 1].member);
		r->members[i] = d->members[i].member;
		r->weights[i] = d->members[i].weight;
		RV_ASSERT(i == r->self || r->mem.held[r->members[i]] != NULL);
		weights += d->members[i].weight;
		adopt_boot(r, &d->members[i]);
	}
	RV_ASSERT(weights <= NET_MAX_WEIGHT_SUM);
}

/* What a peer said about the previous attempt is void; the link and its verdicts stay, and so does
 * its silence: who died together with another is not given the whole time again. */
static void begin_peer(struct reduce_peer *p, bool is_new, int64_t now_us) {
	p->heard = false;
	p->flowing = false;
	p->resume_due = p->up;
	p->ping_due = false;
	p->owes_scatter = 0;
	p->owes_gather = 0;
	p->complete = false;
	p->stalled = false;
	if (is_new) {
		p->silent = false;
		p->heard_us = now_us;
	}
	p->progress_us = now_us;
	p->sent_us = now_us;
}

static uint64_t roster_set(const struct reduce *r) {
	uint64_t set = 0;
	for (int i = 0; i < r->n_members; i++) {
		RV_ASSERT(!(set >> r->members[i] & 1));
		set |= UINT64_C(1) << r->members[i];
	}
	return set;
}

static void begin_attempt(struct reduce *r, const struct document *d, int64_t now_us) {
	uint64_t former = roster_set(r);
	adopt_roster(r, d);
	adopt_ownership_map(r, d);
	for (int i = 0; i < r->n_members; i++)
		begin_peer(reduce_peer_at(r, i), !(former >> r->members[i] & 1), now_us);
	r->due_us = d->deadline_ms > 0 ? now_us + (int64_t)d->deadline_ms * 1000 : INT64_MAX;
	r->info.world = r->n_members;
	r->info.finished_us = 0;
	reduce_chunks_begin(r, now_us);
}

struct reduce *reduce_init(void *memory, const struct reduce_config *cfg, const struct reduce_memory *mem,
						   const struct document *d, int64_t now_us) {
	RV_ASSERT(cfg->n_chunks >= 1 && cfg->n_chunks <= NET_MAX_CHUNKS);
	RV_ASSERT(cfg->silence_us > 0 && cfg->stall_us > 0 && cfg->ping_interval_us > 0);
	struct reduce *r = memory;
	*r = (struct reduce){.cfg = *cfg, .mem = *mem, .round = d->round};
	lay_out_flags(r);
	memset(mem->flags, 0, reduce_flags_bytes(cfg->n_chunks));
	r->info.started_us = now_us;
	begin_attempt(r, d, now_us);
	return r;
}

void reduce_restart(struct reduce *r, const struct document *d, int64_t now_us) {
	RV_ASSERT(d->round == r->round && d->attempt > r->attempt);
	begin_attempt(r, d, now_us);
}

bool reduce_done(const struct reduce *r) {
	return r->n_reduced == r->cfg.n_chunks;
}

struct reduce_info reduce_info(const struct reduce *r) {
	return r->info;
}
