/* dispute_lists.c: see dispute_lists.h. */
#include "coordinator/core/dispute_lists.h"

#include "base/assert.h"
#include "base/chain.h"
#include "base/planted.h"
#include "coordinator/core/internal.h"

#include <string.h>

/* ---- the owners of a place's row ---- */

struct core_list_owners core_list_owners_of(const struct core *c, int place) {
	const struct core_rows *r = &c->roster.rows;
	if (!core_rows_many(r))
		return (struct core_list_owners){.n = c->roster.n};
	const int row = core_rows_row_of(r, place);
	return (struct core_list_owners){.row = row, .first = r->plan.first[row], .n = core_rows_length(r, row)};
}

int core_list_owner(const struct core *c, const struct core_list_owners *o, uint32_t chunk) {
	const struct core_roster *r = &c->roster;
	const bool many = core_rows_many(&r->rows);
	int i = 0;
	if (many)
		while (chunk - r->rows.plan.columns[i].first >= r->rows.plan.columns[i].count)
			i++;
	else
		while (chunk - r->ranges[i].first >= r->ranges[i].count)
			i++;
	const int owner = many ? r->rows.plan.columns[i].owner[o->row] : r->ranges[i].owner;
	RV_ASSERT(owner >= 0 && owner < o->n);
	return owner;
}

struct seal_scope core_row_scope(const struct core *c, const struct core_list_owners *o) {
	struct seal_scope s = {.roster = c->roster.hash,
						   .term = c->term,
						   .round = c->round,
						   .attempt = c->attempt,
						   .kind = SEAL_ROW,
						   .first = (uint32_t)o->row};
	memcpy(s.run_id, c->cfg.run_id, sizeof s.run_id);
	return s;
}

/* ---- what a participant shows ---- */

const struct seal *core_shown_seal(const struct evidence *e, uint32_t member, const struct seal_scope *scope) {
	for (int i = 0; i < e->n_seals; i++)
		if (e->seals[i].member == member && e->seals[i].kind == scope->kind && e->seals[i].first == scope->first)
			return &e->seals[i].seal;
	return NULL;
}

bool core_is_its_vote(const struct core *c, int place, const struct evidence *e) {
	struct merkle_sum sum = {.n = 0};
	if (e->n_means != c->roster.n_chunks || !set_has(c->roster.voted, (uint32_t)place))
		return false;
	for (uint32_t i = 0; i < e->n_means; i++)
		merkle_add(&sum, &e->means[i]);
	const struct rv_hash root = merkle_sum_root(&sum), digest = rv_round_digest(c->round, &root);
	return rv_hash_equal(&digest, &c->roster.digests[place]) || RV_BUG("believe-any-evidence");
}

bool core_are_sealed(const struct core *c, int place, const struct evidence *e, struct seal seals[NET_MAX_ROW]) {
	struct merkle_sum sums[NET_MAX_ROW];
	const struct core_list_owners o = core_list_owners_of(c, place);
	const struct seal_scope scope = core_row_scope(c, &o);
	for (int i = 0; i < o.n; i++)
		sums[i].n = 0;
	for (uint32_t i = 0; i < e->n_means; i++)
		merkle_add(&sums[core_list_owner(c, &o, i)], &e->means[i]);
	for (int i = 0; i < o.n; i++) {
		if (sums[i].n == 0)
			continue;
		const struct core_member *m = core_participant(c, (uint32_t)(o.first + i));
		const struct seal *seal = core_shown_seal(e, m->number, &scope);
		const struct rv_hash root = merkle_sum_root(&sums[i]);
		if (seal == NULL || !rv_hash_equal(&seal->root, &root) ||
			!c->cfg.seals.verify(c->cfg.seals.ctx, m->key, &scope, seal))
			return false;
		seals[i] = *seal;
	}
	return true;
}
