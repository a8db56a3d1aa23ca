/* deadline.c: REDUCE: how long an attempt may take, and which participants hold it up without an
 * accusation.
 *
 * An owner of k of C chunks moves C + (n - 2) k chunks in each direction (shares.c), and with m
 * owners k is at most 2 C / m: less than 1 + 2 n / m payloads. So an attempt is allowed
 *
 *     4 x withheld_us + 3 (1 + 2 n / m) payloads / (what the slowest line of the roster carries),
 *       twice as long after each one before that ran into its deadline
 *
 * A participant that sends less, because of its uplink (slow.c), counts with what it sends over
 * that, and with what it receives over its downlink; in a roster of one row, with the k chunks that
 * it owns:
 *
 *     3 max((payload sent + (n - 2) k chunks) / up, (payload + (n - 2) k chunks) / down)
 *
 * In a roster of rows an owner of k of C chunks moves C + (L - 2) k of them in its row of L, and of
 * its k the partial sums, in fp32 at most, and the means: then 8 x withheld_us.
 *
 * The rates are those of the roster's record: a restarted coordinator sets the same. A member may
 * lie about its line, so none counts as slower than a sixteenth of the median. How many attempts
 * ran into their deadline is in that record too: one that ended before, as members went or were
 * accused of giving nothing, says nothing of how long an exchange takes.
 *
 * Documents carry the deadline. A worker that is not done by then accuses the peers that owe it
 * data (net/reduce/suspects.c), one that may have to wait for another up to one withheld_us later,
 * in a grid up to three; and accusations are weighed as ever. A participant that has not voted one
 * withheld_us after that, though another has, and accuses none, holds the attempt up by itself: it
 * counts as dead until it reports again. So do all that accuse none where nobody has voted by
 * liveness_us later: a liar that is alone in a roster does not stop the run. */
#include "base/assert.h"
#include "base/capped.h"
#include "base/order.h"
#include "coordinator/core/internal.h"

enum {
	WITHHELD_TIMES = 4,
	WITHHELD_OF_ROWS = 8, /* three transfers, each of which waits for the one before */
	OVERDUE_TIMES = 2,
	OVERDUE_OF_ROWS = 4, /* the row's owner waits for a column's, that one for a row (net/reduce/grid.c) */
	GENEROUS = 3,
	RATE_UNKNOWN = 125000, /* bytes/s: 1 Mbit/s */
	RATE_LEAST = 8000,
	MEDIAN_SHARE = 16,
	US_PER_MS = 1000
};

/* Returns what a line counts with at least. */
static uint64_t least_rate(const struct core_roster *r) {
	uint64_t rates[NET_MAX_ROSTER];
	RV_ASSERT(r->n > 0 && r->n <= NET_MAX_ROSTER);
	for (int i = 0; i < r->n; i++)
		rates[i] = r->rates[i] > 0 ? r->rates[i] : RATE_UNKNOWN;
	const uint64_t least = rv_nth_u64(rates, r->n, r->n / 2) / MEDIAN_SHARE;
	return least > RATE_LEAST ? least : RATE_LEAST;
}

static uint64_t takes_ms(uint64_t bytes, uint64_t rate, uint64_t least) {
	const uint64_t known = rate > 0 ? rate : RATE_UNKNOWN;
	return rv_mul_capped(bytes, 1000) / (known > least ? known : least);
}

/* Returns the bytes that a participant of rows moves in each direction at most. */
static uint64_t most_in_rows(const struct core *c) {
	const struct core_rows *rows = &c->roster.rows;
	uint64_t owned = 0, longest = 0;
	for (int place = 0; place < c->roster.n; place++) {
		const uint64_t of = core_rows_owned(rows, place);
		owned = of > owned ? of : owned;
	}
	for (int row = 0; row < rows->plan.n_rows; row++) {
		const uint64_t length = (uint64_t)core_rows_length(rows, row);
		longest = length > longest ? length : longest;
	}
	const uint64_t in_row = rv_mul_capped(c->roster.n_chunks + owned * longest, c->cfg.chunk_bytes);
	const uint64_t in_column = rv_mul_capped(owned, rv_add_capped(c->cfg.sum_bytes, c->cfg.chunk_bytes));
	return rv_add_capped(in_row, in_column);
}

/* Returns the bytes that a participant moves in each direction at most. */
static uint64_t most_bytes(const struct core *c) {
	const struct core_roster *r = &c->roster;
	if (core_rows_many(&r->rows))
		return most_in_rows(c);
	const uint64_t payloads = 1 + (uint64_t)((CORE_SHARE_MOST * r->n + r->n_owners - 1) / r->n_owners);
	return rv_mul_capped(payloads, rv_mul_capped(r->n_chunks, c->cfg.chunk_bytes));
}

/* Returns the bytes of a chunk in the form in which the participant sends it, of `part` chunks each
 * one. */
static uint64_t sent_bytes(const struct core *c, int place) {
	const uint8_t codec = c->roster.codecs[place], part = c->roster.parts[place];
	uint64_t bytes = c->cfg.sent_chunk_bytes;
	for (int i = 0; i < c->cfg.n_slow_codecs; i++)
		if (codec != 0 && c->cfg.slow_codecs[i] == codec)
			bytes = c->cfg.slow_chunk_bytes[i];
	return part > 0 ? (bytes + part - 1) / part : bytes;
}

static uint64_t owned_chunks(const struct core_roster *r, int place) {
	uint64_t n = 0;
	for (int i = 0; i < r->n_ranges; i++)
		n += r->ranges[i].owner == place ? r->ranges[i].count : 0;
	return n;
}

/* Returns what the exchange may take a participant that sends less than all. */
static uint64_t less_ms(const struct core *c, int place, uint64_t least) {
	const struct core_roster *r = &c->roster;
	const bool rows = core_rows_many(&r->rows);
	const uint64_t payload = rv_mul_capped(r->n_chunks, c->cfg.chunk_bytes), all = most_bytes(c);
	const uint64_t own = rows ? all - payload : rv_mul_capped(owned_chunks(r, place) * r->n, c->cfg.chunk_bytes);
	const uint64_t sent = rv_mul_capped(r->n_chunks, sent_bytes(c, place));
	const uint64_t up = takes_ms(rv_add_capped(sent, own), r->rates[place], least);
	const uint64_t down = takes_ms(rv_add_capped(payload, own), r->downs[place], least);
	RV_ASSERT(all >= payload);
	return up > down ? up : down;
}

/* Returns what the exchange takes the slowest participant. */
static uint64_t slowest_ms(const struct core *c) {
	const struct core_roster *r = &c->roster;
	const uint64_t least = least_rate(r), bytes = most_bytes(c);
	uint64_t slowest = 0;
	for (int i = 0; i < r->n; i++) {
		const bool less = r->codecs[i] != 0 || r->parts[i] != 0;
		const uint64_t ms = less ? less_ms(c, i, least) : takes_ms(bytes, r->rates[i], least);
		slowest = ms > slowest ? ms : slowest;
	}
	return slowest;
}

uint32_t core_attempt_ms(const struct core *c) {
	const struct core_roster *r = &c->roster;
	const uint64_t stages = core_rows_many(&r->rows) ? WITHHELD_OF_ROWS : WITHHELD_TIMES;
	uint64_t ms = rv_mul_capped(GENEROUS, slowest_ms(c));
	ms = rv_add_capped(ms, stages * (uint64_t)c->cfg.withheld_us / US_PER_MS);
	RV_ASSERT(c->attempt > c->reopened && c->overran <= CORE_OVERRAN_MAX);
	ms = rv_mul_capped(ms, 1ull << c->overran);
	return ms < NET_MAX_DEADLINE_MS ? (uint32_t)ms : NET_MAX_DEADLINE_MS;
}

int64_t core_attempt_closes_us(const struct core *c) {
	return c->roster.n == 0 ? INT64_MAX : c->attempt_since_us + (int64_t)c->roster.attempt_ms * US_PER_MS;
}

uint8_t core_count_overran(const struct core *c) {
	const bool over = c->now_us >= core_attempt_closes_us(c);
	return (uint8_t)(c->overran + (over && c->overran < CORE_OVERRAN_MAX));
}

/* A record of a release that did not write it has a deadline for all attempts with participants. */
void core_take_overran(struct core *c, const struct core_record *rec) {
	const uint32_t before = rec->attempt - c->reopened - (rec->n_members > 0);
	if (rec->overran != CORE_OVERRAN_UNKNOWN)
		c->overran = rec->overran;
	else
		c->overran = (uint8_t)(before < CORE_OVERRAN_MAX ? before : CORE_OVERRAN_MAX);
}

int64_t core_overdue_at_us(const struct core *c) {
	const int64_t times = core_rows_many(&c->roster.rows) ? OVERDUE_OF_ROWS : OVERDUE_TIMES;
	if (c->roster.n == 0)
		return INT64_MAX;
	const bool silent = set_is_empty(c->roster.voted, c->roster_words);
	const int64_t closes_us = c->attempt_since_us + (int64_t)c->roster.attempt_ms * US_PER_MS;
	return closes_us + times * c->cfg.withheld_us + (silent ? c->cfg.liveness_us : 0);
}

/* Returns true if the last report of `i` is of this attempt and accuses another participant of the
 * set, with which it exchanges data. */
static bool accuses(const struct core *c, uint32_t i, const uint64_t *set) {
	const struct report *rep = &core_participant(c, i)->last;
	if (rep->round != c->round || rep->attempt != c->attempt)
		return false;
	for (int k = 0; k < rep->n_suspects; k++) {
		uint32_t place = rep->suspects[k];
		if (place < c->roster.n && place != i && set_has(set, place) &&
			core_exchange(c, c->roster.slots[i], c->roster.slots[place]))
			return true;
	}
	return false;
}

static bool is_put_away(const struct core *c, const struct core_member *m) {
	(void)c;
	return m->distrusted;
}

static void blame_overdue(struct core *c, uint32_t i) {
	struct core_member *m = core_participant(c, i);
	RV_ASSERT(!m->distrusted);
	m->distrusted = true;
	set_add(c->blamed, core_slot_of(c, m));
	core_say(c, CORE_EVENT_OVERDUE, core_slot_of(c, m), c->round);
}

/* An accusation of one that is present is weighed (suspects.c). One of a participant that has been
 * put away is believed already: too few are left to go on without it, so the attempt ends, and the
 * accuser is not to blame. One of itself, of none, or of one that is dead excuses nothing. */
bool core_end_overdue(struct core *c) {
	uint64_t present[CORE_ROSTER_WORDS], put_away[CORE_ROSTER_WORDS], missed[CORE_ROSTER_WORDS];
	if (c->now_us < core_overdue_at_us(c))
		return false;
	bool any = false;
	core_missed(c, missed);
	set_first(present, c->roster.n, c->roster_words);
	set_less(present, missed, c->roster_words);
	(void)core_participants_that(c, is_put_away, put_away);
	for (uint32_t i = 0; i < c->roster.n; i++) {
		const bool has_voted = set_has(c->roster.voted, i) && !set_has(c->roster.disbelieved, i);
		if (set_has(missed, i) || has_voted || accuses(c, i, present))
			continue;
		any = true;
		if (accuses(c, i, put_away))
			continue;
		blame_overdue(c, i);
		set_drop(present, i); /* to accuse it excuses nothing from here on */
	}
	return any;
}
