/* sim_oracle_contribution.c: what a contribution must be made of, judged independently of the
 * participant.
 *
 * - Its tokens are those of the steps in it.
 * - With late updates it is measured from where its steps began.
 * - With error feedback its residual is, to the bit, what the worker's latest contribution to that
 *   fragment left that is in a mean, or that the worker takes for one of a mean, since it cannot
 *   know. Or it has none, if the worker had reason to lose it meanwhile: another process, an
 *   installed state, a contribution that came to nothing. The process that lost it has none until
 *   the next such contribution; another one goes on from a replica that was saved before the loss
 *   or after it, and may have it again. After a rollback the residual is not known until the
 *   worker's next contribution is in a mean. */
#include "sim.h"

#include "base/assert.h"

#include <string.h>

static uint32_t fragment_of(const struct sim *s, uint64_t round) {
	return fragment_of_round(&s->global_config.fragments, round);
}

static void may_have_none(struct sim *s, int host, bool gone) {
	struct sim_residual *e = &s->oracle.residuals[host];
	e->losses++;
	for (int i = 0; i < SIM_MAX_FRAGMENTS; i++) {
		e->had_reason[i] = true;
		e->gone[i] = gone;
	}
}

void oracle_loses_residual(struct sim *s, int host) {
	may_have_none(s, host, true);
}

void oracle_resumes_residual(struct sim *s, int host) {
	may_have_none(s, host, false);
}

void oracle_forgets_residuals(struct sim *s) {
	for (int host = 0; host < s->opt.n_workers; host++)
		for (int i = 0; i < SIM_MAX_FRAGMENTS; i++)
			s->oracle.residuals[host].unknown[i] = true;
}

/* ---- at the encoding ---- */

static void check_steps(struct sim *s, int host) {
	const struct sim_worker *w = &s->workers[host];
	const struct participant *p = &w->participant;
	const uint64_t contained = (uint64_t)w->own_progress.n * SIM_TOKENS_PER_STEP;
	const bool counted = s->opt.fragments == 1 && (s->opt.overlap_steps == 0 || s->opt.gives_away);
	if (counted && contained != p->tokens)
		sim_fail(s, "w%d: its contribution to round %llu has %llu tokens, and says %llu", host,
				 (unsigned long long)p->round, (unsigned long long)contained, (unsigned long long)p->tokens);
	const float *from = participant_reference(p, &w->global);
	if (s->opt.gives_away && memcmp(from, w->replica.began, s->opt.n_params * sizeof *from) != 0)
		sim_fail(s, "w%d: its contribution to round %llu is not measured from where its steps began", host,
				 (unsigned long long)p->round);
}

static bool is_zero(const float *v, size_t n) {
	for (size_t i = 0; i < n; i++)
		if (v[i] != 0)
			return false;
	return true;
}

/* What the chunk at `at` leaves, into e->next. */
static void leave(const struct sim *s, const struct sim_worker *w, struct sim_residual *e, size_t at, size_t n,
				  const uint8_t *encoded) {
	const float *from = participant_reference(&w->participant, &w->global);
	const float *residual = w->participant.contribution.residual;
	RV_ASSERT(s->opt.codec->decode(s->opt.codec, encoded, n, e->next + at, NULL) == RV_OK);
	for (size_t i = at; i < at + n; i++) {
		float whole = from[i] - w->replica.local[i];
		whole = s->opt.feedback * residual[i] + whole;
		e->next[i] = whole - e->next[i];
	}
}

static const char *complaint(bool same, bool zero) {
	if (zero)
		return "lost its residual";
	return same ? "a residual that its process lost" : "a residual that its latest committed one did not leave";
}

/* What is encoded for a round that is committed already is given to nobody: a former process
 * did. */
static void check_residual(struct sim *s, int host) {
	const struct participant *p = &s->workers[host].participant;
	struct sim_residual *e = &s->oracle.residuals[host];
	const uint32_t fragment = fragment_of(s, p->round);
	const struct chunking c = global_round_chunks(&s->global_config, p->round);
	const float *residual = p->contribution.residual;
	bool same = true, zero = true;
	if (p->round < s->oracle.n_committed)
		return;
	for (uint32_t i = 0; i < c.n_chunks; i++) {
		const size_t at = global_round_chunk_at(&s->global_config, p->round, i), n = chunking_len(&c, i);
		same = same && memcmp(residual + at, e->left + at, n * sizeof *residual) == 0;
		zero = zero && is_zero(residual + at, n);
	}
	s->stats.residuals += !zero;
	const bool kept = same && !e->gone[fragment], lost = zero && e->had_reason[fragment];
	if (!kept && !lost && !e->unknown[fragment])
		sim_fail(s, "w%d: its contribution to round %llu has %s", host, (unsigned long long)p->round,
				 complaint(same, zero));
	e->gone[fragment] = e->gone[fragment] || (zero && !same);
}

void oracle_encoded(struct sim *s, int host) {
	const struct sim_worker *w = &s->workers[host];
	const uint64_t round = w->participant.round;
	const struct chunking c = global_round_chunks(&s->global_config, round);
	check_steps(s, host);
	if (s->opt.feedback == 0)
		return;
	check_residual(s, host);
	for (uint32_t i = 0; i < c.n_chunks; i++)
		leave(s, w, &s->oracle.residuals[host], global_round_chunk_at(&s->global_config, round, i), chunking_len(&c, i),
			  w->participant.encoded + chunking_offset_bytes(&c, s->opt.codec, i));
	s->oracle.residuals[host].encoded = round;
	s->oracle.residuals[host].life = w->life;
}

/* ---- at the commit ---- */

static void left_is(struct sim *s, struct sim_residual *e, uint64_t round, const float *left) {
	const struct chunking chunks = global_round_chunks(&s->global_config, round);
	for (uint32_t i = 0; i < chunks.n_chunks; i++) {
		const size_t at = global_round_chunk_at(&s->global_config, round, i);
		memcpy(e->left + at, left + at, chunking_len(&chunks, i) * sizeof *left);
	}
}

void oracle_commits_residual(struct sim *s, const struct sim_contribution *c, const struct contribution_form *form) {
	struct sim_residual *e = &s->oracle.residuals[c->host];
	const uint32_t fragment = fragment_of(s, c->round);
	if (c->left != NULL) {
		left_is(s, e, c->round, c->left);
		forms_leave(s, c->bytes, form, c->round, e->left);
	}
	e->had_reason[fragment] = e->losses != c->losses;
	e->unknown[fragment] = e->gone[fragment] = false;
}

/* Returns true if it was to send in another form than it takes for granted. */
static bool is_another_form(const struct sim *s, const struct sim_worker *w, uint64_t round,
							const struct contribution_form *form) {
	const struct sim_roster *r = roster_of(s, round, s->oracle.means.attempt[round]);
	const uint64_t boot = w->boot;
	for (int i = 0; r != NULL && i < r->n; i++)
		if (r->of[i].member == w->member && r->of[i].boot == boot && w->term == s->oracle.term)
			return r->of[i].form.codec != form->codec || r->of[i].form.part != form->part;
	return false;
}

void oracle_adopts(struct sim *s, int host, uint64_t round, const struct contribution_form *form) {
	const struct sim_worker *w = &s->workers[host];
	struct sim_residual *e = &s->oracle.residuals[host];
	if (is_another_form(s, w, round, form))
		sim_fail(s, "w%d: takes its contribution to round %llu for one in codec %u, part %u, which it was not", host,
				 (unsigned long long)round, form->codec, form->part);
	const bool whole = form->codec == 0 && form->part == 0;
	if (e->encoded != round)
		return;
	e->gone[fragment_of(s, round)] = false;
	if (!whole && e->life != w->life)
		return; /* a former process encoded it: the commit has told what it left */
	left_is(s, e, round, e->next);
	if (s->opt.feedback > 0)
		forms_leave(s, w->participant.encoded, form, round, e->left);
}
