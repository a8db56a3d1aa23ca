/* replay_means.c: see replay_means.h. */
#include "lab/worker_files/replay_means.h"

#include "lab/methods/averaging.h"

#include <inttypes.h>
#include <stdlib.h>

enum { NOBODY = UINT32_MAX };

enum rv_err replay_means_init(struct replay_means *m, const struct lab_run *r, struct rv_errtext *et) {
	const size_t n = r->global.cfg.chunks.n_chunks;
	*m = (struct replay_means){.owner = malloc(n * sizeof *m->owner),
							   .owns_now = malloc(n * sizeof *m->owns_now),
							   .held = calloc(n, sizeof *m->held)};
	if (!m->owner || !m->owns_now || !m->held)
		return rv_fail(et, RV_E_NOMEM, "no memory for the owners of %zu chunks", n);
	for (size_t i = 0; i < n; i++)
		m->owner[i] = NOBODY;
	return RV_OK;
}

void replay_means_release(struct replay_means *m) {
	free(m->owner);
	free(m->owns_now);
	free(m->held);
	*m = (struct replay_means){.owner = NULL};
}

static uint32_t chunk_of(const struct lab_run *r, uint32_t i) {
	const struct fragments *f = &r->global.cfg.fragments;
	return fragment_chunk(f, fragment_of_round(f, r->global.round), i);
}

/* The last line counts: a process that was killed before the attempt came to anything wrote
 * another. */
static const struct trace_owns *owned_by(const struct trace_record *t, const struct trace_roster *roster) {
	for (int i = t->n - 1; i >= 0; i--) {
		const struct trace_owns *o = t->events[i].owns;
		if (o && o->round == roster->round && o->attempt == roster->attempt)
			return o;
	}
	return NULL;
}

static enum rv_err take_ranges(struct replay_means *m, const struct lab_run *r, uint32_t member,
							   const struct trace_owns *o, uint32_t n_chunks, struct rv_errtext *et) {
	for (int k = 0; k < o->n; k++)
		for (uint32_t i = o->ranges[k].first; i < o->ranges[k].first + o->ranges[k].count; i++) {
			if (i >= n_chunks)
				return rv_fail(et, RV_E_PROTOCOL,
							   "round %" PRIu64 ": member %u made the mean of chunk %u, there are %u", o->round, member,
							   i, n_chunks);
			uint32_t *owner = &m->owns_now[chunk_of(r, i)];
			if (*owner != NOBODY)
				return rv_fail(et, RV_E_PROTOCOL, "round %" PRIu64 ": members %u and %u made the mean of chunk %u",
							   o->round, *owner, member, i);
			*owner = member;
			m->held[chunk_of(r, i)] = o->residual;
		}
	return RV_OK;
}

static bool is_participant(const struct trace_roster *roster, uint32_t member) {
	for (int i = 0; i < roster->n; i++)
		if (roster->members[i].member == member)
			return true;
	return false;
}

enum rv_err replay_means_begin(struct replay_means *m, struct lab_run *r, const struct trace_record *const *traces,
							   int n, const struct trace_roster *roster, struct rv_errtext *et) {
	const uint32_t n_chunks = global_round_chunks(&r->global.cfg, r->global.round).n_chunks;
	if (!mean_residual_is_on(&r->mean_residual))
		return RV_OK;
	for (uint32_t i = 0; i < n_chunks; i++)
		m->owns_now[chunk_of(r, i)] = NOBODY;
	for (int k = 0; k < n; k++) {
		const struct trace_owns *o = is_participant(roster, traces[k]->member) ? owned_by(traces[k], roster) : NULL;
		if (o)
			RV_TRY(take_ranges(m, r, traces[k]->member, o, n_chunks, et));
	}
	for (uint32_t i = 0; i < n_chunks; i++) {
		const uint32_t chunk = chunk_of(r, i);
		if (m->owns_now[chunk] == NOBODY)
			return rv_fail(et, RV_E_NOTFOUND,
						   "round %" PRIu64 ": no trace that is here says who made the mean of chunk %u",
						   r->global.round, i);
		if (m->owns_now[chunk] != m->owner[chunk] || !m->held[chunk])
			mean_residual_lose(&r->mean_residual, &r->global.cfg, r->global.round, i);
	}
	return RV_OK;
}

void replay_means_commit(struct replay_means *m, struct lab_run *r) {
	const uint32_t n_chunks = global_round_chunks(&r->global.cfg, r->global.round).n_chunks;
	mean_residual_commit(&r->mean_residual, &r->global.cfg, r->global.round, AVERAGING_ATTEMPT);
	for (uint32_t i = 0; mean_residual_is_on(&r->mean_residual) && i < n_chunks; i++)
		m->owner[chunk_of(r, i)] = m->owns_now[chunk_of(r, i)];
}
