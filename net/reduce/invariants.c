/* invariants.c: what must hold of an all-reduce after every call, whatever peers send. */
#include "base/assert.h"
#include "net/reduce/state.h"

/* What a peer owes is missing here, and where to look on for what it lacks is within bounds. */
static void check_peer(const struct reduce *r, int index) {
	const struct reduce_peer *p = &r->peers[r->slot[index]];
	RV_ASSERT(p->owes_scatter <= r->n_own && p->owes_gather <= r->cfg.n_chunks - r->n_own);
	RV_ASSERT(!p->flowing || (p->up && p->heard)); /* bulk needs a link, and to know what the peer has */
	RV_ASSERT(!p->flowing || (p->scatter_next <= r->cfg.n_chunks && p->gather_next <= r->n_order));
	RV_ASSERT(p->load.left <= p->load.all && p->load.all <= r->cfg.n_chunks);
	RV_ASSERT(p->boot_attempt <= r->attempt);
}

void reduce_check(const struct reduce *r) {
	uint64_t contributions = 0, means = 0;
	RV_ASSERT(r->self >= 0 && r->self < r->n_members && r->n_members <= NET_MAX_ROW);
	for (int i = 0; i < r->n_members; i++) {
		if (i == r->self)
			continue;
		check_peer(r, i);
		contributions += r->peers[r->slot[i]].owes_scatter;
		means += r->peers[r->slot[i]].owes_gather;
	}
	RV_ASSERT(!r->has_own_seal || reduce_sums_are_sealed(r));
	RV_ASSERT(r->n_order <= r->n_own && r->n_own <= r->cfg.n_chunks && r->n_order <= r->n_reduced);
	/* Each chunk of another owner is here, or that owner owes it. */
	RV_ASSERT(means + (r->n_reduced - r->n_order) == r->cfg.n_chunks - r->n_own);
	/* An own chunk waits exactly while a contribution to it is owed, and is merged when none is. */
	contributions += r->n_own_unoffered;
	RV_ASSERT(r->n_waiting <= r->n_own - r->n_order && (r->n_waiting == 0) == (contributions == 0));
	RV_ASSERT(contributions >= r->n_waiting);
	RV_ASSERT(r->n_own_unoffered <= r->n_unoffered && (r->cfg.later_own || r->n_unoffered == 0));
	RV_ASSERT(r->n_taken <= r->n_ready && r->n_ready <= (r->cfg.later_mean ? r->n_own : r->n_reduced));
	RV_ASSERT((r->info.finished_us != 0) <= (r->n_reduced == r->cfg.n_chunks));
}

void reduce_check_chunks(const struct reduce *r) {
	uint32_t reduced = 0, own = 0, waiting = 0;
	for (uint32_t c = 0; c < r->cfg.n_chunks; c++) {
		bool ours = r->owner[c] == r->self, lacks = false;
		RV_ASSERT(r->owner[c] < r->n_members); /* each chunk has one owner, in the roster */
		for (int i = 0; ours && i < r->n_members; i++)
			lacks = lacks || reduce_lacks(r, i, c);
		RV_ASSERT(!(ours && lacks) || !reduce_bit(r->reduced, c)); /* no mean lacks a contribution */
		RV_ASSERT(!(ours && lacks) || !reduce_bit(r->summed, c));
		reduced += reduce_bit(r->reduced, c);
		own += ours;
		waiting += lacks;
	}
	RV_ASSERT(reduced == r->n_reduced && own == r->n_own && waiting == r->n_waiting);
	for (uint32_t i = 0; i < r->n_order; i++)
		RV_ASSERT(r->owner[r->order[i]] == r->self && reduce_bit(r->reduced, r->order[i]));
	reduce_check(r);
}
