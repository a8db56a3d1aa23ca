/* reduce.c: the life of an all-reduce: memory, the start, later attempts, the end
 * (net/reduce/reduce.h).
 *
 * The rest of it: chunks.c (contributions and means), proofs.c (their proofs), sums.c (those of
 * partial sums), receive.c, send.c, suspects.c (links and liveness). */
#include "net/reduce/state.h"

#include "base/assert.h"
#include "base/planted.h"

#include <string.h>

static size_t bitmap_bytes_of(uint32_t n_chunks) {
	return ((size_t)n_chunks + 7) / 8;
}

size_t reduce_flags_bytes(uint32_t n_chunks) {
	return n_chunks * (2 * sizeof(uint32_t) + 1) + (3 + 4 * (size_t)NET_MAX_ROW) * bitmap_bytes_of(n_chunks);
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
	r->ready = (uint32_t *)(void *)at;
	at += n * sizeof(uint32_t);
	r->owner = at;
	at += n;
	r->reduced = at;
	at += r->bitmap_bytes;
	r->summed = at;
	at += r->bitmap_bytes;
	r->resume = at;
	at += r->bitmap_bytes;
	for (int m = 0; m < NET_MAX_ROW; m++) {
		r->held[m] = at;
		at += r->bitmap_bytes;
		r->delivered[m] = at;
		at += r->bitmap_bytes;
		r->sent[m] = at;
		at += r->bitmap_bytes;
		r->proven[m] = at;
		at += r->bitmap_bytes;
	}
	RV_ASSERT(at == r->mem.flags + reduce_flags_bytes(n));
}

/* ---- rosters ---- */

static void own_ranges(const void *ctx, uint8_t *owner) {
	const struct document *d = ctx;
	uint32_t next = 0;
	for (int i = 0; i < d->n_ranges; i++) {
		const struct owner_range *g = &d->ranges[i];
		RV_ASSERT(g->first == next && g->count <= d->n_chunks - next && g->owner < d->n_members);
		memset(owner + g->first, g->owner, g->count);
		next += g->count;
	}
	RV_ASSERT(next == d->n_chunks); /* each chunk has an owner */
}

struct reduce_roster reduce_roster_of(const struct document *d, uint32_t self_member) {
	RV_ASSERT(d->phase == RUN_REDUCE && d->n_members >= 1 && d->n_members <= NET_MAX_ROW);
	struct reduce_roster ro = {.round = d->round,
							   .attempt = d->attempt,
							   .deadline_ms = d->deadline_ms,
							   .n = d->n_members,
							   .self = document_find(d, self_member),
							   .scope = {.roster = d->roster_hash,
										 .term = d->term,
										 .round = d->round,
										 .attempt = d->attempt,
										 .kind = SEAL_ROW,
										 .first = d->n_rows > 1 ? d->row : 0},
							   .own = own_ranges,
							   .ctx = d};
	for (int i = 0; i < d->n_members; i++) {
		const struct member_ref *m = &d->members[i];
		RV_ASSERT(i == 0 || (d->n_rows > 1 ? m->place > m[-1].place : m->member > m[-1].member));
		ro.places[i] = (struct reduce_place){.member = m->member,
											 .weight = m->weight,
											 .boot = m->boot,
											 .codec = m->codec,
											 .part = m->part,
											 .root = m->contribution.root};
		memcpy(ro.places[i].key, m->key, sizeof ro.places[i].key);
	}
	memcpy(ro.scope.run_id, d->run_id, sizeof ro.scope.run_id);
	return ro;
}

static void adopt_ownership_map(struct reduce *r, const struct reduce_roster *ro) {
	memset(r->owns, 0, sizeof r->owns);
	ro->own(ro->ctx, r->owner);
	for (uint32_t c = 0; c < r->cfg.n_chunks; c++) {
		RV_ASSERT(r->owner[c] < r->n_members);
		r->owns[r->owner[c]] = true;
	}
}

/* A member that restarted, or sends by another codec, has another contribution now: what it sent of
 * the former one is void, and so is what of it still arrives (receive_scatter). */
static void adopt_contribution(struct reduce *r, int index) {
	struct reduce_peer *p = reduce_peer_at(r, index);
	const struct reduce_place *place = &r->places[index];
	bool known = p->boot_attempt != 0 && p->boot == place->boot && p->codec == place->codec &&
				 rv_hash_equal(&p->root, &place->root);
	RV_ASSERT(p->boot_attempt < r->attempt);
	if (known || RV_BUG("former-process"))
		return;
	memset(r->held[r->slot[index]], 0, r->bitmap_bytes);
	memset(r->proven[r->slot[index]], 0, r->bitmap_bytes);
	p->boot = place->boot;
	p->codec = place->codec;
	p->root = place->root;
	p->boot_attempt = r->attempt;
}

/* Returns the slot of `member`; else a free one, or one whose member is no longer in the roster. */
static uint8_t slot_for(const struct reduce *r, uint32_t member) {
	int found = -1;
	for (int s = 0; s < NET_MAX_ROW; s++) {
		const struct reduce_peer *p = &r->peers[s];
		if (p->taken && p->member == member)
			return (uint8_t)s;
		if (p->present || r->mem.held[s] == NULL)
			continue;
		if (found < 0 || (r->peers[found].taken && !p->taken))
			found = s;
	}
	RV_ASSERT(found >= 0); /* there is room for every roster */
	return (uint8_t)found;
}

static void take_slot(struct reduce *r, uint8_t s, uint32_t member) {
	if (!r->peers[s].taken || r->peers[s].member != member) {
		r->peers[s] = (struct reduce_peer){.member = member, .taken = true};
		memset(r->held[s], 0, r->bitmap_bytes);
		memset(r->sent[s], 0, r->bitmap_bytes);
		memset(r->proven[s], 0, r->bitmap_bytes);
	}
	r->peers[s].present = true;
}

/* Marks the slots of `ro` first, so that no other of its members is given one. */
static void keep_slots(struct reduce *r, const struct reduce_roster *ro) {
	for (int s = 0; s < NET_MAX_ROW; s++) {
		struct reduce_peer *p = &r->peers[s];
		p->present = false;
		for (int i = 0; i < ro->n && !p->present; i++)
			p->present = p->taken && p->member == ro->places[i].member;
	}
}

static void adopt_roster(struct reduce *r, const struct reduce_roster *ro) {
	RV_ASSERT(ro->n >= 1 && ro->n <= NET_MAX_ROW && ro->self >= 0 && ro->self < ro->n);
	RV_ASSERT(ro->round == r->round && ro->attempt > r->attempt);
	uint64_t weights = 0;
	r->attempt = ro->attempt;
	r->n_members = ro->n;
	r->self = ro->self;
	keep_slots(r, ro);
	for (int i = 0; i < ro->n; i++) {
		RV_ASSERT(ro->places[i].weight > 0);
		r->places[i] = ro->places[i];
		r->slot[i] = slot_for(r, ro->places[i].member);
		take_slot(r, r->slot[i], ro->places[i].member);
		weights += ro->places[i].weight;
		adopt_contribution(r, i);
	}
	RV_ASSERT(weights <= NET_MAX_WEIGHT_SUM);
}

/* Returns true if the same contributions, with the same weights, are merged as before. */
static bool same_roster(const struct reduce *r, const struct reduce_roster *ro) {
	bool same = r->n_members == ro->n;
	for (int i = 0; i < ro->n && same; i++) {
		const struct reduce_place *a = &r->places[i], *b = &ro->places[i];
		same = a->member == b->member && a->weight == b->weight && a->boot == b->boot && a->codec == b->codec &&
			   a->part == b->part && rv_hash_equal(&a->root, &b->root);
	}
	return same;
}

/* What a peer said about the previous attempt is void; the link and its verdicts stay, and so does
 * its silence: who died together with another is not given the whole time again. */
static void begin_peer(struct reduce_peer *p, bool is_new, int64_t now_us) {
	p->heard = false;
	p->flowing = false;
	p->resume_due = p->up;
	p->ping_due = false;
	p->load = (struct reduce_load){0};
	p->again = 0;
	p->owes_scatter = 0;
	p->owes_gather = 0;
	p->owes_seal = p->has_seal = p->seal_due = false;
	p->owes_sums = p->has_sums = p->has_given = p->sums_due = false;
	p->unmade_sums = 0;
	p->complete = false;
	p->stalled = false;
	if (is_new) {
		p->silent = false;
		p->heard_us = now_us;
	}
	p->progress_us = now_us;
	p->sent_us = now_us;
}

static void begin_attempt(struct reduce *r, const struct reduce_roster *ro, int64_t now_us) {
	bool same = same_roster(r, ro), former[NET_MAX_ROW];
	uint32_t names[NET_MAX_ROW];
	for (int s = 0; s < NET_MAX_ROW; s++) {
		former[s] = r->peers[s].present;
		names[s] = r->peers[s].member;
	}
	adopt_roster(r, ro);
	adopt_ownership_map(r, ro);
	for (int i = 0; i < r->n_members; i++) {
		int s = r->slot[i];
		begin_peer(&r->peers[s], !former[s] || names[s] != r->peers[s].member, now_us);
	}
	r->scope = ro->scope;
	r->may_seal = r->has_own_seal = r->has_twice = false;
	r->due_us = ro->deadline_ms > 0 ? now_us + (int64_t)ro->deadline_ms * 1000 : INT64_MAX;
	r->info.world = r->n_members;
	r->info.finished_us = 0;
	reduce_chunks_begin(r, now_us, same);
}

struct reduce *reduce_init(void *memory, const struct reduce_config *cfg, const struct reduce_memory *mem,
						   const struct reduce_roster *roster, int64_t now_us) {
	RV_ASSERT(cfg->n_chunks >= 1 && cfg->n_chunks <= NET_MAX_CHUNKS);
	RV_ASSERT(cfg->silence_us > 0 && cfg->stall_us > 0 && cfg->ping_interval_us > 0);
	struct reduce *r = memory;
	*r = (struct reduce){.cfg = *cfg, .mem = *mem, .round = roster->round};
	lay_out_flags(r);
	memset(mem->flags, 0, reduce_flags_bytes(cfg->n_chunks));
	r->info.started_us = now_us;
	begin_attempt(r, roster, now_us);
	return r;
}

void reduce_restart(struct reduce *r, const struct reduce_roster *roster, int64_t now_us) {
	r->restarted = true;
	begin_attempt(r, roster, now_us);
}

/* Returns true if every owner has sealed its means. */
static bool all_sealed(const struct reduce *r) {
	bool sealed = !reduce_seals(r) || r->n_own == 0 || r->has_own_seal;
	for (int i = 0; i < r->n_members && sealed; i++)
		sealed = !r->peers[r->slot[i]].owes_seal;
	return sealed;
}

bool reduce_done(const struct reduce *r) {
	return r->n_reduced == r->cfg.n_chunks && all_sealed(r);
}

/* Returns the bytes that the participant at `index` sends of its contribution; it owns `own` chunks
 * itself. */
static uint64_t given_bytes(const struct reduce *r, int index, uint32_t own) {
	const uint64_t part = r->places[index].part > 0 ? r->places[index].part : 1;
	return (uint64_t)(r->cfg.n_chunks - own) * reduce_given_bytes(r, index, 0) / part;
}

int reduce_receipts(const struct reduce *r, struct reduce_receipt out[NET_MAX_ROW]) {
	uint32_t own[NET_MAX_ROW] = {0};
	int n = 0;
	for (uint32_t c = 0; c < r->cfg.n_chunks; c++)
		own[r->owner[c]]++;
	for (int i = 0; i < r->n_members && !r->restarted; i++) {
		const int64_t given_us = r->peers[r->slot[i]].given_us;
		if (i != r->self && given_us > r->info.started_us)
			out[n++] = (struct reduce_receipt){
				.member = r->places[i].member, .bytes = given_bytes(r, i, own[i]), .us = given_us - r->info.started_us};
	}
	return n;
}

struct reduce_info reduce_info(const struct reduce *r) {
	return r->info;
}
