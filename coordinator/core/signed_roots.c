/* signed_roots.c: the roots that members sign with READY. A report counts only if its sender has
 * signed them, so documents name no root that a member could disown. A member that signs two roots
 * for one round, as one process, has changed its contribution: both signatures are the proof. */
#include "net/control/signed_roots.h"

#include "base/assert.h"
#include "base/planted.h"
#include "coordinator/core/internal.h"

#include <string.h>

/* Returns true if both name the same roots, signed for the same. */
static bool same_signed(const struct report *a, const struct report *b) {
	return a->boot == b->boot && a->term == b->term && a->round == b->round &&
		   commitment_equal(&a->commitment, &b->commitment) &&
		   memcmp(a->signatures, b->signatures, a->commitment.n * sizeof a->signatures[0]) == 0;
}

static bool sends_in(const struct core *c, uint8_t codec) {
	bool known = codec == 0; /* the run's own */
	for (int i = 0; i < c->cfg.n_slow_codecs; i++)
		known |= c->cfg.slow_codecs[i] == codec;
	return known;
}

/* Refuses roots for codecs that no member of the run sends in: each would cost the check of a
 * signature. */
static enum rv_err check_codecs(const struct core *c, const struct report *rep, struct rv_errtext *et) {
	for (int i = 0; i < rep->commitment.n; i++)
		if (!sends_in(c, rep->commitment.roots[i].codec))
			return rv_fail(et, RV_E_INVALID,
						   "report: it commits to a contribution in codec %u, which members of this run do not send",
						   rep->commitment.roots[i].codec);
	return RV_OK;
}

enum rv_err core_check_signed(const struct core *c, const struct core_member *m, const struct report *rep,
							  struct rv_errtext *et) {
	if (c->cfg.seals.verify == NULL || (m->reported && same_signed(rep, &m->last)) || RV_BUG("trust-roots"))
		return RV_OK;
	RV_TRY(check_codecs(c, rep, et));
	return report_check_signed(rep, c->cfg.run_id, m->key, &c->cfg.seals, et);
}

/* Keeps the proof that the member has signed two roots where a report has root `i`, if they
 * differ. */
static void compare(struct core *c, const struct core_member *m, const struct report *rep, int i,
					const struct seal *former) {
	const struct seal now = report_seal(rep, i);
	struct equivocation e = {.member = m->number,
							 .scope = report_scope(rep, c->cfg.run_id, i),
							 .chunk = NET_MAX_CHUNKS,
							 .seals = {*former, now}};
	memcpy(e.key, m->key, sizeof e.key);
	if (c->has_two_roots || rv_hash_equal(&former->root, &now.root) || !equivocation_proves(&e, &c->cfg.seals))
		return;
	c->two_roots = e;
	c->has_two_roots = true;
}

/* Keeps what the report has signed, unless more was kept for the same before: the first root for a
 * codec stays. */
static void keep_first(struct core_signed *s, const struct report *rep) {
	if (s->boot != rep->boot || s->term != rep->term || s->round != rep->round)
		*s = (struct core_signed){.boot = rep->boot, .term = rep->term, .round = rep->round};
	for (int i = s->n; i < rep->commitment.n; i++) {
		s->codecs[i] = rep->commitment.roots[i].codec;
		s->seals[i] = report_seal(rep, i);
		s->n++;
	}
}

void core_note_signed(struct core *c, uint32_t slot) {
	struct core_member *m = &c->members[slot];
	const struct report *rep = &m->last;
	const struct core_roster *r = &c->roster;
	if (c->cfg.seals.verify == NULL || rep->commitment.n == 0 || rep->term != c->term || rep->round != c->round)
		return;
	keep_first(&m->signed_first, rep);
	const int place = core_place(c, slot); /* its roster is durable, and what was kept is not */
	const bool in_roster = place >= 0 && r->boots[place] == rep->boot;
	for (int i = 0; i < rep->commitment.n; i++) {
		const uint8_t codec = rep->commitment.roots[i].codec;
		for (int k = 0; k < m->signed_first.n; k++)
			if (m->signed_first.codecs[k] == codec)
				compare(c, m, rep, i, &m->signed_first.seals[k]);
		if (in_roster && r->codecs[place] == codec)
			compare(c, m, rep, i, &r->roots[place]);
	}
}

void core_decide_two_roots(struct core *c) {
	RV_ASSERT(c->n_queue == 0);
	if (c->has_two_roots && core_proof_counts(c, &c->two_roots))
		core_push_proof(c, &c->two_roots);
	c->has_two_roots = false;
}
