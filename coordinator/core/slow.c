/* slow.c: OPEN: members whose lines hold exchanges up take part in every k-th round only
 * (slow-members = skip, base/slow_lines.h). In between they are in no roster, and no round waits
 * for them; they train on, fetch the means, and `late` decides about their progress.
 *
 * The deadline of an exchange follows from what the members that are here report of their lines,
 * and is computed anew in every step of an open round; each one's last roster, from the records.
 * What is decided is the roster, and that is a record. A member takes part all the same if too few
 * are left without it, or if rosters of this round have failed. */
#include "base/assert.h"
#include "base/slow_lines.h"
#include "coordinator/core/internal.h"

static struct slow_lines lines_of(const struct core *c) {
	return (struct slow_lines){.payload_bytes = core_chunks(c, c->round) * c->cfg.chunk_bytes,
							   .deadline_us = c->cfg.slow_deadline_us,
							   .fragments = c->cfg.fragments};
}

void core_watch_lines(struct core *c) {
	uint64_t rates[NET_MAX_HERE];
	const struct slow_lines lines = lines_of(c);
	int n = 0;
	if (!c->cfg.skips_slow)
		return;
	for (int k = 0; k < c->slots.n; k++) {
		const struct core_member *m = &c->members[c->slots.order[k]];
		if (m->reported && core_available(c, m))
			rates[n++] = core_line_rate(&m->last);
	}
	c->lines_deadline_us = slow_lines_deadline_us(&lines, rates, n);
}

/* Returns the first round in which `m` takes part again; its last roster was of an earlier
 * round. */
static uint64_t next_turn(const struct core *c, const struct core_member *m) {
	const struct slow_lines lines = lines_of(c);
	uint32_t every = slow_lines_every(&lines, c->lines_deadline_us, core_line_rate(&m->last));
	return m->rostered_at - 1 + every;
}

/* A roster of this round or a later one has failed, or was taken back. */
bool core_rests(const struct core *c, const struct core_member *m) {
	bool before = m->rostered_at > 0 && m->rostered_at <= c->round;
	return c->cfg.skips_slow && m->reported && before && c->round < next_turn(c, m);
}

void core_drop_resting(const struct core *c, uint64_t *ready) {
	uint64_t left[CORE_HERE_WORDS];
	if (!c->cfg.skips_slow || c->reopened > 0)
		return;
	set_copy(left, ready, c->words);
	for (int i = set_next(ready, 0, c->words); i >= 0; i = set_next(ready, i + 1, c->words))
		if (core_rests(c, &c->members[i]))
			set_drop(left, (uint32_t)i);
	if (core_size_of(c, left) >= (int)c->cfg.min_workers)
		set_copy(ready, left, c->words);
}

void core_say_resting(struct core *c, const uint64_t *roster) {
	for (int k = 0; k < c->slots.n; k++) {
		uint32_t slot = c->slots.order[k];
		const struct core_member *m = &c->members[slot];
		bool begins = m->rostered_at == c->round && core_rests(c, m) && core_available(c, m);
		if (begins && !set_has(roster, slot))
			core_say(c, CORE_EVENT_RESTS, slot, next_turn(c, m));
	}
}
