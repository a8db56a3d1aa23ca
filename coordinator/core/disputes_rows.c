/* disputes_rows.c: votes that differ in two rows. Each voter has shown its list, which the owners
 * of its row have signed. The chunk in which the lists differ has an owner in each of the two rows,
 * and both had it from one final owner (net/reduce/grid.h). These two owners are asked for what
 * they voted for:
 *
 * - One that shows another leaf of the chunk than it gave its row has signed two lists.
 * - One that cannot show that the final owner has signed the chunk has made it up: it is put away,
 *   as one whose vote is false.
 * - Else the final owner has signed a list for each of them, and these differ.
 *
 * An owner whose vote is missing, or does not count, has nothing to show. If it is the final one,
 * nothing is needed of it: its row has shown what it signed there, and the other owner shows what
 * it signed for that one. If these differ it is banned. Any other is waited for as a vote that is
 * missing is; then it is put away, and the attempt is void: one of the lists that were shown is
 * false. In a round that happens three times at most; then the majority decides. */
#include "base/assert.h"
#include "base/merkle.h"
#include "base/planted.h"
#include "coordinator/core/dispute_lists.h"
#include "coordinator/core/internal.h"

#include <string.h>

static int place_of_owner(const struct core *c, int voter, uint32_t chunk) {
	const struct core_list_owners o = core_list_owners_of(c, voter);
	return o.first + core_list_owner(c, &o, chunk);
}

int core_final_row(const struct core *c, uint32_t chunk) {
	const struct core_rows *r = &c->roster.rows;
	int alive[NET_MAX_ROWS], n = 0;
	for (int row = 0; row < r->plan.n_rows; row++)
		if (core_rows_length(r, row) > 0)
			alive[n++] = row;
	RV_ASSERT(n > 0);
	const int row = (int)(chunk % r->plan.n_rows);
	return core_rows_length(r, row) > 0 ? row : alive[chunk / r->plan.n_rows % (uint32_t)n];
}

/* The list of a final owner: the chunks of one column of which its row is the final one. */
struct final_list {
	int row, place; /* place: of the final owner */
	const struct rows_column *column;
};

static struct final_list final_list_of(const struct core *c, uint32_t chunk) {
	const struct rows_plan *p = &c->roster.rows.plan;
	struct final_list f = {.row = core_final_row(c, chunk), .column = p->columns};
	while (chunk - f.column->first >= f.column->count)
		f.column++;
	RV_ASSERT(f.column < p->columns + p->n_columns);
	f.place = p->first[f.row] + f.column->owner[f.row];
	return f;
}

static struct seal_scope scope_of(const struct core *c, const struct final_list *f) {
	const struct core_list_owners any = {.n = c->roster.n};
	struct seal_scope s = core_row_scope(c, &any);
	s.kind = SEAL_COLUMN;
	s.first = f->column->first;
	return s;
}

/* Returns the final owner's seal over the leaves that are shown; NULL: there is none that fits. */
static const struct seal *final_seal(const struct core *c, const struct final_list *f, const struct evidence *e) {
	const struct seal_scope scope = scope_of(c, f);
	const struct core_member *m = core_participant(c, (uint32_t)f->place);
	const struct seal *seal = core_shown_seal(e, m->number, &scope);
	struct merkle_sum sum = {.n = 0};
	for (uint32_t i = 0; i < f->column->count; i++)
		if (core_final_row(c, f->column->first + i) == f->row)
			merkle_add(&sum, &e->means[f->column->first + i]);
	const struct rv_hash root = merkle_sum_root(&sum);
	const bool fits = seal != NULL && rv_hash_equal(&seal->root, &root) &&
					  c->cfg.seals.verify(c->cfg.seals.ctx, m->key, &scope, seal);
	return fits ? seal : NULL;
}

/* Returns true if the participant can show what it passed on to its row. */
static bool can_show(const struct core *c, const uint64_t *votes, int place) {
	return set_has(votes, (uint32_t)place) && core_has_seals(c, place);
}

bool core_void_what_differs(struct core *c, const uint64_t *votes) {
	const struct core_dispute d = c->dispute;
	RV_ASSERT(d.n == 2 && d.given[0] && d.given[1] && !d.has_proof);
	if (RV_BUG("ask-no-owner") || !core_void_attempt(c))
		return false;
	for (int k = 0; k < 2; k++) {
		const int owner = place_of_owner(c, d.asked[k], d.chunk);
		if (!can_show(c, votes, owner) && core_available(c, core_participant(c, (uint32_t)owner)))
			core_disbelieve(c, owner, CORE_EVENT_NO_EVIDENCE);
	}
	core_dispute_end(c);
	return true;
}

bool core_ask_owners(struct core *c, const uint64_t *votes) {
	struct core_dispute *d = &c->dispute;
	RV_ASSERT(d->n == 2 && d->given[0] && d->given[1] && !d->of_owners && !d->has_proof);
	const int final = final_list_of(c, d->chunk).place;
	int owners[2];
	bool shows[2];
	for (int k = 0; k < 2; k++) {
		owners[k] = place_of_owner(c, d->asked[k], d->chunk);
		shows[k] = can_show(c, votes, owners[k]);
		if ((!shows[k] && owners[k] != final) || RV_BUG("ask-no-owner"))
			return false;
	}
	RV_ASSERT(owners[0] != owners[1]); /* else it signed twice: a proof */
	RV_ASSERT(shows[0] || shows[1]);
	d->of_owners = true;
	d->without_final = !shows[0] || !shows[1];
	d->since_us = c->now_us;
	for (int k = 0; k < 2; k++) {
		d->voters[k] = d->asked[k];
		if (!shows[k])
			continue;
		d->asked[k] = (uint16_t)owners[k];
		d->given[k] = false;
	}
	return true;
}

void core_watch_owners(struct core *c, const uint64_t *votes) {
	struct core_dispute *d = &c->dispute;
	if (!d->of_owners || (set_has(votes, d->asked[0]) && set_has(votes, d->asked[1])))
		return;
	d->of_owners = d->without_final = false;
	for (int k = 0; k < 2; k++) {
		d->asked[k] = d->voters[k];
		d->given[k] = true;
	}
}

enum rv_err core_owner_shows(struct core *c, int k, const struct evidence *e, const struct seal seals[NET_MAX_ROW],
							 struct rv_errtext *et) {
	struct core_dispute *d = &c->dispute;
	const struct core_list_owners o = core_list_owners_of(c, d->asked[k]);
	const int self = d->asked[k] - o.first;
	if (!rv_hash_equal(&e->means[d->chunk], &d->leaves[k])) {
		const struct seal_scope scope = core_row_scope(c, &o);
		core_dispute_proves(c, d->asked[k], &scope, &d->seals[k][self], &seals[self]);
		return RV_OK;
	}
	const struct final_list f = final_list_of(c, d->chunk);
	const struct seal *seal = final_seal(c, &f, e);
	if (seal == NULL) {
		core_disbelieve(c, d->asked[k], CORE_EVENT_FALSE_VOTE);
		return rv_fail(et, RV_E_INVALID,
					   "evidence: member %u, the final owner of chunk %u, has not signed what you gave your row of it",
					   core_participant(c, (uint32_t)f.place)->number, d->chunk);
	}
	d->given[k] = true;
	d->columns[k] = *seal;
	if (d->without_final) {
		RV_ASSERT(!rv_hash_equal(&d->leaves[0], &d->leaves[1])); /* its row has the other one under its seal */
		d->has_liar = true;
		d->liar = (uint16_t)f.place;
	} else if (d->given[1 - k]) {
		const struct seal_scope scope = scope_of(c, &f);
		core_dispute_proves(c, f.place, &scope, &d->columns[0], &d->columns[1]);
	}
	return RV_OK;
}
