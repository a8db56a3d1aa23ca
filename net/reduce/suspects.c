/* suspects.c: links, keepalives, and which peers make no progress.
 *
 * A suspect is: refused or reset (until its link is up again), caught breaking the protocol, silent
 * for silence_us, or stalled: it answers and owes us something, and bytes of it do not arrive. What
 * a peer says of itself is no progress. Where neither side owns chunks nothing is owed, and the
 * peer is no suspect, whatever it sends: the two may be unable to reach each other, or one has
 * refused the other in an attempt before.
 *
 * - A contribution is owed at once: some bytes of it within stall_us, all of it by the deadline.
 * - A mean is owed once its owner holds all contributions. From its PING that states so, as above.
 *   Until then the owner may wait for a third participant, which it accuses itself by the deadline;
 *   so it has stall_us more (patience_gather), and is accused only if no other participant is.
 * - In the column of a grid (grid.h) a contribution is a sum over a row, which may have to wait for
 *   that row, and its list, which is signed: from its sender's PING that it lacks nothing, as
 *   above; until then patience_scatter.
 *
 * A document without a deadline: twice stall_us for an owner that waits. */
#include "net/reduce/state.h"

#include "base/assert.h"
#include "base/planted.h"

static bool owes(const struct reduce_peer *p) {
	return p->owes_scatter > 0 || p->owes_gather > 0 || p->owes_seal || p->owes_sums;
}

/* Returns the multiples of stall_us after the deadline that a peer is given which may wait for
 * another one: it has not said that it has all to pay its debts. */
static int patience(const struct reduce *r, const struct reduce_peer *p) {
	if (p->complete || RV_BUG("accuse-the-waiting"))
		return 0;
	return p->owes_scatter > 0 || p->owes_sums ? r->cfg.patience_scatter : r->cfg.patience_gather;
}

/* When the peer, which owes something, is stalled unless more arrives. */
static int64_t stall_at_us(const struct reduce *r, const struct reduce_peer *p) {
	RV_ASSERT(owes(p));
	int64_t at = p->progress_us + r->cfg.stall_us, more = patience(r, p) * r->cfg.stall_us;
	if (more > 0)
		return r->due_us == INT64_MAX ? at + more : r->due_us + more;
	return at < r->due_us ? at : r->due_us;
}

void reduce_link_up(struct reduce *r, int64_t now_us, int peer) {
	RV_ASSERT(peer >= 0 && peer < r->n_members && peer != r->self);
	struct reduce_peer *p = reduce_peer_at(r, peer);
	if (p->up)
		return;
	p->up = true;
	p->lost = false;
	p->heard = false;
	p->flowing = false;
	p->sent_bulk = false;
	p->leaves_next = 0;
	p->resume_due = true;
	p->ping_due = false;
	p->silent = false;
	p->stalled = false;
	p->heard_us = now_us;
	p->progress_us = now_us;
	p->sent_us = now_us;
}

void reduce_link_down(struct reduce *r, int64_t now_us, int peer, bool fatal) {
	(void)now_us;
	RV_ASSERT(peer >= 0 && peer < r->n_members && peer != r->self);
	struct reduce_peer *p = reduce_peer_at(r, peer);
	p->up = false;
	p->flowing = false;
	p->lost = p->lost || fatal;
	reduce_check(r);
}

void reduce_part(struct reduce *r, int64_t now_us, int from, bool bulk) {
	RV_ASSERT(from >= 0 && from < r->n_members && from != r->self);
	struct reduce_peer *p = reduce_peer_at(r, from);
	p->heard_us = now_us;
	p->silent = false;
	if (bulk)
		p->progress_us = now_us;
}

int64_t reduce_deadline_us(const struct reduce *r) {
	int64_t deadline = INT64_MAX;
	for (int i = 0; i < r->n_members; i++) {
		const struct reduce_peer *p = &r->peers[r->slot[i]];
		if (i == r->self || p->bad)
			continue;
		int64_t ping = p->up && !p->ping_due ? p->sent_us + r->cfg.ping_interval_us : INT64_MAX;
		int64_t silence = !p->silent && reduce_deals_with(r, i) ? p->heard_us + r->cfg.silence_us : INT64_MAX;
		int64_t stall = owes(p) && !p->stalled ? stall_at_us(r, p) : INT64_MAX;
		int64_t first = ping < silence ? ping : silence;
		first = first < stall ? first : stall;
		deadline = deadline < first ? deadline : first;
	}
	return deadline;
}

/* When this call comes much later than asked for, it was we who did not run (stopped, suspended):
 * what the peers sent meanwhile is still unread, so their clocks start again. */
static void forgive_own_absence(struct reduce *r, int64_t now_us) {
	int64_t deadline = reduce_deadline_us(r);
	if (deadline == INT64_MAX || now_us - deadline < r->cfg.silence_us / 2)
		return;
	for (int i = 0; i < r->n_members; i++) {
		struct reduce_peer *p = reduce_peer_at(r, i);
		p->heard_us = now_us;
		p->progress_us = now_us;
	}
	if (r->due_us != INT64_MAX)
		r->due_us += now_us - deadline;
}

void reduce_tick(struct reduce *r, int64_t now_us) {
	forgive_own_absence(r, now_us);
	for (int i = 0; i < r->n_members; i++) {
		struct reduce_peer *p = reduce_peer_at(r, i);
		if (i == r->self)
			continue;
		p->ping_due = p->ping_due || (p->up && now_us - p->sent_us >= r->cfg.ping_interval_us);
		p->silent = p->silent || now_us - p->heard_us >= r->cfg.silence_us;
		p->stalled = owes(p) && now_us >= stall_at_us(r, p);
	}
	reduce_check(r);
}

/* Perhaps not its fault. */
static bool stalled_by_another(const struct reduce *r, const struct reduce_peer *p) {
	return p->stalled && patience(r, p) > 0 && !p->lost && !p->bad && !p->silent;
}

uint32_t reduce_member(const struct reduce *r, int index) {
	RV_ASSERT(index >= 0 && index < r->n_members);
	return r->places[index].member;
}

void reduce_accuse(const struct reduce *r, uint64_t *sure, uint64_t *perhaps) {
	*sure = *perhaps = 0;
	for (int i = 0; i < r->n_members; i++) {
		const struct reduce_peer *p = &r->peers[r->slot[i]];
		if (i == r->self)
			continue;
		bool missing = reduce_deals_with(r, i) && (p->lost || p->silent || p->stalled || p->bad);
		if (missing && stalled_by_another(r, p))
			*perhaps |= UINT64_C(1) << i;
		else if (missing)
			*sure |= UINT64_C(1) << i;
	}
	RV_ASSERT(((*sure | *perhaps) >> r->self & 1) == 0 && (*sure & *perhaps) == 0);
}

uint64_t reduce_suspects(const struct reduce *r) {
	uint64_t sure, perhaps;
	reduce_accuse(r, &sure, &perhaps);
	return sure != 0 ? sure : perhaps;
}
