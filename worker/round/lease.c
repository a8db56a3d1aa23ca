/* lease.c: which sequences of the text this worker may read, by the document, and what becomes of a
 * contribution whose sequences it no longer holds. */
#include "worker/round/internal.h"

#include "base/assert.h"

void round_reading(const struct round_core *c, struct reading *out) {
	_Static_assert((int)READING_MAX_PIECES == (int)NET_MAX_LEASES, "a reading has what a document may list");
	*out = (struct reading){.first = c->has_doc ? c->doc.lease_first : 0};
	for (int i = 0; c->has_doc && i < c->doc.n_leases; i++)
		(void)reading_add(out, c->doc.leases[i].begin, c->doc.leases[i].count);
}

static bool has_leases(const struct round_core *c) {
	return c->cfg.step_sequences > 0;
}

bool round_contribution_text(const struct round_core *c, struct reading *out) {
	if (!has_leases(c) || c->progress.sequences == 0)
		return false;
	round_reading(c, out);
	if (!reading_has(out, c->progress.first, c->progress.sequences))
		return false;
	*out = reading_part(out, c->progress.first, c->progress.sequences);
	return true;
}

static uint64_t contained(const struct round_core *c) {
	return c->progress.sequences + c->progress.ahead_sequences;
}

bool round_can_read(const struct round_core *c) {
	struct reading r;
	if (!has_leases(c))
		return true;
	round_reading(c, &r);
	return reading_has(&r, contained(c) > 0 ? c->progress.first + contained(c) : r.first, c->cfg.step_sequences);
}

bool round_is_read_out(const struct round_core *c) {
	return has_leases(c) && c->progress.sequences > 0 && !round_can_read(c);
}

bool round_ahead_is_lost(const struct round_core *c) {
	struct reading r;
	round_reading(c, &r);
	return has_leases(c) && c->doc.round == c->round + 1 &&
		   !reading_has(&r, c->progress.first + c->progress.sequences, c->progress.ahead_sequences);
}

/* Returns true if the document, of this worker's round, has other leases than those that its
 * contribution was read under: it was taken for gone. Those of a contribution that is being reduced
 * are the roster's. */
static bool is_lost(const struct round_core *c) {
	struct reading r;
	if (!has_leases(c) || contained(c) == 0 || c->doc.round != c->round || c->reduce.running)
		return false;
	round_reading(c, &r);
	return !reading_has(&r, c->progress.first, contained(c));
}

bool round_follow_leases(struct round_core *c) {
	RV_ASSERT(c->trainer == TRAINER_IDLE && c->has_doc);
	if (!is_lost(c))
		return false;
	c->progress = (struct participant_progress){0};
	c->encoded = c->time_up = false;
	c->starts_over = true;
	return true;
}
