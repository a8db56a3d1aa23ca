/* slow.c: OPEN: what becomes of members whose lines hold exchanges up (slow-members,
 * base/slow_lines.h). With `skip` they take part in every k-th round only: in between they are in
 * no roster, and no round waits for them; they train on, fetch the means, and `late` decides about
 * their progress. With `coarser` and `part` the roster says how they send their contributions.
 *
 * A member becomes slow when its line has looked slow after SLOW_LINES_LOOKS exchanges in a row, by
 * a seventh and more: one exchange may have given its line little to do. It is slow until its line
 * makes the deadline. After a restart a member is slow if the records show that it rested, or sent
 * less.
 *
 * The deadline of an exchange follows from what the members that are here report of their lines,
 * and is computed anew in every step of an open round; each one's last roster, from the records.
 * What is decided is the roster, and that is a record. A member takes part all the same if too few
 * are left without it, or if rosters of this round have failed. How a contribution is sent stays
 * for all attempts of a round, but that one participant sends all chunks. */
#include "base/assert.h"
#include "base/clock.h"
#include "base/planted.h"
#include "base/rows.h"
#include "base/slow_lines.h"
#include "coordinator/core/internal.h"

static struct slow_lines lines_of(const struct core *c) {
	const uint64_t chunks = core_chunks(c, c->round);
	struct slow_lines lines = {.payload_bytes = chunks * c->cfg.chunk_bytes,
							   .deadline_us = c->cfg.slow_deadline_us,
							   .fragments = c->cfg.fragments,
							   .chunks = (uint32_t)chunks,
							   .sent_bytes = chunks * c->cfg.sent_chunk_bytes,
							   .mean_bytes = chunks * c->cfg.mean_chunk_bytes,
							   .n_steps = c->cfg.n_slow_codecs};
	for (int i = 0; i < lines.n_steps; i++)
		lines.step_bytes[i] = chunks * c->cfg.slow_chunk_bytes[i];
	return lines;
}

void core_watch_lines(struct core *c) {
	uint64_t rates[NET_MAX_HERE];
	const struct slow_lines lines = lines_of(c);
	int n = 0;
	if (c->cfg.slow_members == SLOW_WAIT)
		return;
	for (int k = 0; k < c->slots.n; k++) {
		const struct core_member *m = &c->members[c->slots.order[k]];
		if (m->reported && core_available(c, m))
			rates[n++] = core_line_rate(&m->last);
	}
	c->lines_in_rows = n > 0 && rows_choose(n, core_row_size(c)) > 1;
	c->lines_deadline_us = slow_lines_deadline_us(&lines, rates, n);
}

/* Returns true if slow members rest. With `part` they do where the members that are here make
 * several rows: a column would have to know the weight of each chunk. */
static bool lets_rest(const struct core *c) {
	return c->cfg.slow_members == SLOW_SKIP || (c->cfg.slow_members == SLOW_PART && c->lines_in_rows);
}

/* Returns how long the line of `m` needs for what a policy measures it by. */
static int64_t takes_us(const struct core *c, const struct core_member *m) {
	const struct slow_lines lines = lines_of(c);
	if (lets_rest(c))
		return slow_lines_takes_us(lines.payload_bytes, core_line_rate(&m->last));
	return slow_lines_takes_us(lines.sent_bytes, m->last.up_bytes_per_s);
}

/* Returns true if `m` took part in the exchange of the round before, and its line looks slow by
 * more than what lines that are alike differ by. */
static bool looks_slow(const struct core *c, const struct core_member *m, int64_t needs_us) {
	const bool took_part = m->rostered_at > 0 && m->rostered_at == c->round;
	return took_part && needs_us - needs_us / 8 > c->lines_deadline_us;
}

static bool is_slow(const struct core *c, const struct core_member *m) {
	const int64_t needs_us = takes_us(c, m);
	if (!m->reported || needs_us <= c->lines_deadline_us)
		return false;
	if (m->slow_looks == SLOW_LINES_LOOKS)
		return true;
	return looks_slow(c, m, needs_us) && m->slow_looks + 1 == SLOW_LINES_LOOKS;
}

/* Returns the first round in which `m` takes part again; its last roster was of an earlier
 * round. */
static uint64_t next_turn(const struct core *c, const struct core_member *m) {
	const struct slow_lines lines = lines_of(c);
	uint32_t every = slow_lines_every(&lines, c->lines_deadline_us, core_line_rate(&m->last));
	return m->rostered_at - 1 + (is_slow(c, m) ? every : 1);
}

/* A roster of this round or a later one has failed, or was taken back. */
bool core_rests(const struct core *c, const struct core_member *m) {
	bool before = m->rostered_at > 0 && m->rostered_at <= c->round;
	return lets_rest(c) && m->reported && before && c->round < next_turn(c, m);
}

void core_drop_resting(const struct core *c, uint64_t *ready) {
	uint64_t left[CORE_HERE_WORDS];
	if (!lets_rest(c) || c->reopened > 0)
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

/* ---- what lines have looked like ---- */

static uint32_t ms_of(int64_t us) {
	const int64_t ms = us / RV_US_PER_MS + (us % RV_US_PER_MS != 0);
	return us == INT64_MAX || us <= 0 ? 0 : (uint32_t)(ms < NET_MAX_DEADLINE_MS ? ms : NET_MAX_DEADLINE_MS);
}

static struct core_line_figures figures_of(const struct core *c, const struct core_member *m) {
	return (struct core_line_figures){.rate = lets_rest(c) ? core_line_rate(&m->last) : m->last.up_bytes_per_s,
									  .needs_ms = ms_of(takes_us(c, m)),
									  .deadline_ms = ms_of(c->lines_deadline_us)};
}

void core_count_looks(struct core *c) {
	for (int k = 0; k < c->slots.n && c->cfg.slow_members != SLOW_WAIT; k++) {
		struct core_member *m = &c->members[c->slots.order[k]];
		const int64_t needs_us = takes_us(c, m);
		if (m->reported && needs_us <= c->lines_deadline_us)
			m->slow_looks = 0;
		else if (m->reported && m->slow_looks < SLOW_LINES_LOOKS && m->rostered_at == c->round)
			m->slow_looks = looks_slow(c, m, needs_us) ? m->slow_looks + 1 : 0;
		RV_ASSERT(m->slow_looks <= SLOW_LINES_LOOKS);
	}
}

void core_keep_figures(struct core *c, const struct core_record *rec) {
	for (int k = 0; k < c->slots.n && c->cfg.slow_members != SLOW_WAIT; k++) {
		struct core_member *m = &c->members[c->slots.order[k]];
		m->decided = core_rests(c, m) ? figures_of(c, m) : (struct core_line_figures){.rate = 0};
	}
	for (int i = 0; i < rec->n_members; i++) {
		struct core_member *m = &c->members[core_find(c, rec->members[i])];
		if (rec->codecs[i] != 0 || rec->parts[i] != 0)
			m->decided = figures_of(c, m);
	}
}

static bool may_rest(const struct core *c) {
	return c->cfg.slow_members == SLOW_SKIP || c->cfg.slow_members == SLOW_PART;
}

/* A member that was on a roster, and not on the one before, rested, or was away: then its line
 * does not look slow. */
void core_recall_line(const struct core *c, struct core_member *m, bool less) {
	const bool was_out = c->replaying && may_rest(c) && m->rostered_at < c->round;
	if (less || (was_out && m->rostered_at > 0))
		m->slow_looks = SLOW_LINES_LOOKS;
}

void core_recall_rests(struct core *c) {
	for (int k = 0; k < c->slots.n && may_rest(c); k++) {
		struct core_member *m = &c->members[c->slots.order[k]];
		if (m->rostered_at > 0 && m->rostered_at < c->round + (c->roster.n > 0))
			m->slow_looks = SLOW_LINES_LOOKS;
	}
}

/* ---- coarser, part ---- */

static struct slow_line line_of(const struct core_member *m) {
	return (struct slow_line){m->last.up_bytes_per_s, m->last.down_bytes_per_s};
}

/* Parts are for rosters of one row. */
static bool may_part(const struct core *c, const struct core_record *rec) {
	const bool one_row = rows_choose(rec->n_members, core_row_size(c)) == 1;
	return c->cfg.slow_members == SLOW_PART && !c->lines_in_rows && one_row;
}

void core_put_forms(struct core *c, struct core_record *rec) {
	const struct slow_lines lines = lines_of(c);
	const int64_t deadline_us = c->lines_deadline_us;
	if (c->cfg.slow_members == SLOW_WAIT)
		return;
	const bool parts = may_part(c, rec);
	rec->slow_deadline_ms = ms_of(deadline_us);
	for (int i = 0; i < rec->n_members; i++) {
		const struct core_member *m = &c->members[core_find(c, rec->members[i])];
		const bool slow = is_slow(c, m);
		const int step = slow ? slow_lines_step(&lines, deadline_us, line_of(m), m->number, c->round) : -1;
		if (!slow && RV_BUG("forms-of-a-former-roster"))
			continue;
		rec->codecs[i] = step >= 0 ? c->cfg.slow_codecs[step] : 0;
		rec->parts[i] = slow && parts ? slow_lines_part(&lines, deadline_us, line_of(m), m->number, c->round) : 0;
	}
	core_keep_one_whole(c, rec);
}

void core_keep_one_whole(const struct core *c, struct core_record *rec) {
	int best = 0;
	for (int i = 0; i < rec->n_members; i++) {
		if (rec->parts[i] == 0)
			return;
		best = rec->rates[i] > rec->rates[best] ? i : best;
	}
	RV_ASSERT(c->cfg.slow_members == SLOW_PART || rec->n_members == 0);
	rec->parts[best] = 0;
}

void core_say_forms(struct core *c, const struct core_record *rec) {
	for (int i = 0; i < rec->n_members; i++) {
		const uint32_t slot = (uint32_t)core_find(c, rec->members[i]);
		const struct core_member *m = &c->members[slot];
		const bool less = rec->codecs[i] != 0 || rec->parts[i] != 0, did = m->codec != 0 || m->part != 0;
		if (less && !did)
			core_say_of(c, CORE_EVENT_SENDS_LESS, slot, c->round, rec->codecs[i] | (uint32_t)rec->parts[i] << 8);
	}
}

/* ---- for people ---- */

uint32_t core_slow_deadline_ms(const struct core *c) {
	if (c->cfg.slow_members == SLOW_WAIT)
		return 0;
	return c->roster.n > 0 ? c->roster.slow_deadline_ms : ms_of(c->lines_deadline_us);
}

struct core_slow core_slow_of(const struct core *c, const struct core_member *m) {
	struct core_slow s = {.codec = m->codec, .part = m->part};
	if (c->cfg.slow_members == SLOW_WAIT || c->round == c->cfg.final_round)
		return (struct core_slow){.codec = 0};
	s.rests_until = core_rests(c, m) ? next_turn(c, m) : 0;
	s.why = m->decided.rate > 0 ? m->decided : figures_of(c, m);
	return s;
}
