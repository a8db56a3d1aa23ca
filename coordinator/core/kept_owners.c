/* kept_owners.c: ownership from round to round. In a run whose owners keep what encoding their
 * means lost (outer/mean_residual.h) a chunk that changes its owner loses that. So a round begins
 * with the map of the last committed round that exchanged the same chunks, and only what must move
 * does: chunks of members that own nothing now, and as many as bring each share to within a dead
 * band of the fair one (shares.c).
 *
 * The fewest. With h_i chunks at owner i and F at nobody, shares within [low_i, high_i] need at
 * least G = sum max(0, low_i - h_i) gains and L = sum max(0, h_i - high_i) losses; each chunk of F
 * and of L is a gain elsewhere: max(G, F + L) chunks change their owner, and no fewer can. The
 * shares below need no more: each is clamped to its band first, and what is then left or lacking is
 * given to, or taken from, owners within their bands, those that are farthest from the fair share
 * first.
 *
 * In several rows columns are kept, all or none: if the last round's were as many, and each is
 * within that band of its fair width. The deal keeps members in their rows and at their positions
 * (deal.h), and so a column with its owner in each row. When rows become more or fewer, or the
 * columns do, all are cut anew.
 *
 * Ranges grow in number, at each division by two for an owner at most; where they would be more
 * than CORE_KEPT_RANGES, all are split anew, as in a first round. */
#include "base/assert.h"
#include "coordinator/core/internal.h"

#include <string.h>

/* ---- shares ---- */

struct bands {
	int n;
	bool raise; /* from `at` up, else down from it */
	uint32_t fair[NET_MAX_ROW], low[NET_MAX_ROW], high[NET_MAX_ROW], at[NET_MAX_ROW];
};

static uint32_t clamp(int64_t value, uint32_t low, uint32_t high) {
	return value < low ? low : value > high ? high : (uint32_t)value;
}

/* Returns the share of owner i where each that may move has `beyond` more than the fair one. */
static uint32_t share_at(const struct bands *b, int i, int64_t beyond) {
	const int64_t level = (int64_t)b->fair[i] + beyond;
	return b->raise ? clamp(level, b->at[i], b->high[i]) : clamp(level, b->low[i], b->at[i]);
}

static uint64_t sum_at(const struct bands *b, int64_t beyond) {
	uint64_t sum = 0;
	for (int i = 0; i < b->n; i++)
		sum += share_at(b, i, beyond);
	return sum;
}

/* Returns the highest level at which no more than all chunks are owned. */
static int64_t find_level(const struct bands *b, uint32_t n_chunks) {
	int64_t low = -(int64_t)n_chunks - 1, high = (int64_t)n_chunks + 1;
	RV_ASSERT(sum_at(b, low) <= n_chunks && sum_at(b, high) >= n_chunks);
	while (high - low > 1) {
		const int64_t middle = low + (high - low) / 2;
		if (sum_at(b, middle) <= n_chunks)
			low = middle;
		else
			high = middle;
	}
	return sum_at(b, high) <= n_chunks ? high : low;
}

void core_kept_shares(uint32_t n_chunks, int n, const uint32_t *fair, const uint32_t *owned, uint32_t *share) {
	struct bands b = {.n = n};
	uint64_t sum = 0;
	RV_ASSERT(n > 0 && n <= NET_MAX_ROW);
	for (int i = 0; i < n; i++) {
		const uint32_t band = core_kept_band(fair[i]);
		b.fair[i] = fair[i];
		b.low[i] = fair[i] > band ? fair[i] - band : 0;
		b.high[i] = fair[i] + band;
		b.at[i] = clamp(owned[i], b.low[i], b.high[i]);
		sum += b.at[i];
	}
	b.raise = sum <= n_chunks;
	const int64_t level = find_level(&b, n_chunks);
	uint64_t left = n_chunks - sum_at(&b, level);
	for (int i = 0; i < n; i++) {
		const bool one_more = left > 0 && share_at(&b, i, level + 1) > share_at(&b, i, level);
		share[i] = share_at(&b, i, level) + one_more;
		left -= one_more;
	}
	RV_ASSERT(left == 0);
}

/* ---- from round to round ---- */

static struct core_kept_range *ranges_of(const struct core *c, uint32_t fragment) {
	return c->kept_owners.ranges + (size_t)fragment * CORE_KEPT_RANGES;
}

/* Returns the place of a member on the roster if it owns chunks there. */
static uint16_t owner_of(const struct core_record *rec, struct core_owners owners, uint32_t member) {
	for (uint16_t i = 0; i < rec->n_members; i++)
		if (rec->members[i] == member && (owners.all & core_bit(i)))
			return i;
	return CORE_NOBODY;
}

/* Sets `old` to the kept ranges, with the owners' places on the roster. */
static void find_old(const struct core *c, const struct core_record *rec, struct core_owners owners,
					 struct owner_range *old) {
	const uint32_t fragment = core_fragment(c, rec->round);
	const struct core_kept_range *kept = ranges_of(c, fragment);
	uint32_t first = 0;
	for (int i = 0; i < c->kept_owners.of[fragment].n; i++) {
		old[i] = (struct owner_range){first, kept[i].count, owner_of(rec, owners, kept[i].member)};
		first += kept[i].count;
	}
	RV_ASSERT(first == rec->n_chunks);
}

bool core_kept_split(struct core *c, const struct core_record *rec, struct core_owners owners, const uint64_t *rates) {
	static const uint32_t none[NET_MAX_ROW];
	struct core_roster *r = &c->roster;
	const uint16_t n_old = c->kept_owners.of[core_fragment(c, rec->round)].n;
	struct owner_range old[CORE_KEPT_RANGES];
	uint32_t fair[NET_MAX_ROW], owned[NET_MAX_ROW], share[NET_MAX_ROW] = {0};
	const bool one_row = c->kept_owners.of[core_fragment(c, rec->round)].n_rows <= 1;
	if (n_old == 0 || !one_row || n_old + 2 * rec->n_members > CORE_KEPT_RANGES)
		return false;
	find_old(c, rec, owners, old);
	core_ownership_count(old, n_old, owned);
	core_shares(rec->n_chunks, rec->n_members, owners, rates, none, fair);
	core_kept_shares(rec->n_chunks, rec->n_members, fair, owned, share);
	r->n_ranges = core_kept_chunks(old, n_old, share, r->ranges);
	return true;
}

static void note_columns(struct core *c, uint32_t fragment) {
	const struct rows_plan *p = &c->roster.rows.plan;
	c->kept_owners.of[fragment].n = p->n_columns;
	c->kept_owners.of[fragment].n_rows = p->n_rows;
	for (int j = 0; j < p->n_columns; j++)
		ranges_of(c, fragment)[j] = (struct core_kept_range){p->columns[j].count, NET_NO_MEMBER};
}

static void note_ranges(struct core *c, uint32_t fragment) {
	const struct core_roster *r = &c->roster;
	c->kept_owners.of[fragment].n = r->n_ranges <= CORE_KEPT_RANGES ? r->n_ranges : 0;
	c->kept_owners.of[fragment].n_rows = 1;
	for (int i = 0; i < c->kept_owners.of[fragment].n; i++)
		ranges_of(c, fragment)[i] = (struct core_kept_range){r->ranges[i].count, r->members[r->ranges[i].owner]};
}

void core_kept_note(struct core *c) {
	const uint32_t fragment = core_fragment(c, c->round);
	c->kept_owners.of[fragment].attempt = c->attempt;
	if (c->cfg.keeps_owners)
		(core_rows_many(&c->roster.rows) ? note_columns : note_ranges)(c, fragment);
}

/* ---- columns ---- */

/* Returns true if the columns of before are as many as these, and each is about as wide. */
static bool is_near(const struct core *c, uint32_t fragment, const struct rows_plan *p) {
	const struct core_kept_range *kept = ranges_of(c, fragment);
	bool near = c->kept_owners.of[fragment].n_rows == p->n_rows && c->kept_owners.of[fragment].n == p->n_columns;
	for (int j = 0; j < p->n_columns && near; j++) {
		const uint32_t now = p->columns[j].count, then = kept[j].count, band = core_kept_band(now);
		near = now > then ? now - then <= band : then - now <= band;
	}
	return near;
}

void core_lay_out(const struct core *c, const struct core_record *rec, struct core_rows *rows) {
	const struct core_lines lines = {rec->owners, rec->relayed, c->cfg.equal_ownership ? NULL : rec->rates};
	const uint32_t fragment = core_fragment(c, rec->round);
	struct rows_plan *p = &rows->plan;
	core_rows_lay_out(rows, rec->n_members, core_row_size(c), rec->n_chunks, &lines, rec->attempt);
	if (!core_rows_many(rows) || !c->cfg.keeps_owners || !is_near(c, fragment, p))
		return;
	uint32_t next = 0;
	for (int j = 0; j < p->n_columns; j++) {
		p->columns[j].first = next;
		p->columns[j].count = ranges_of(c, fragment)[j].count;
		next += p->columns[j].count;
	}
	RV_ASSERT(next == rec->n_chunks);
}

void core_kept_forget(struct core *c) {
	memset(c->kept_owners.of, 0, sizeof c->kept_owners.of);
}

uint32_t core_kept_attempt(const struct core *c) {
	return c->kept_owners.of[core_fragment(c, c->round)].attempt;
}
