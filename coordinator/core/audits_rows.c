/* audits_rows.c: audits of averages in rosters of several rows (net/reduce/grid.h), as far as they
 * differ from those of one row (audits.c).
 *
 * A mean has two makers: an owner in each row, which makes the row's sum, and a final owner, which
 * adds these up. For a drawn chunk one of them is drawn: the sum of a row, or the mean. Its
 * auditors are of its maker's row: in each all-reduce they are linked with it, and with one
 * another.
 *
 *   DRAWN    the final owner is asked to show what it was given (net/control/shown_sums.h)
 *     -> SHOWN    of each row the leaf of its sum, under the seal of its owner: auditors are asked,
 *                 as in one row. Those of a sum merge the contributions of their row again, and
 *                 compare with the leaf that its owner has signed; those of a mean have the sums
 *                 from the final owner, add them up again, and compare with their log
 *     -> UNSHOWN  the window is over, and the final owner, which had voted, has taken part in a
 *                 round that opened after it was asked, some time ago: it is named, and struck if
 *                 it was named for one of the FORGIVEN rounds before. What it has shown meanwhile
 *                 does not count: it knows which of its means are false. Nor does what it shows
 *                 after such a round, if auditors have found nothing when the window is over
 *
 * So neither can blame the other: a final owner has sealed no mean without the seal of each sum,
 * and who has sealed a sum has made it. Three others are needed to convict, here in rows of four,
 * too: an attacker may have several accounts in a short row. Shorter rows are not audited.
 *
 * One that had not voted may have kept nothing: a majority has not waited for it. What is shown is
 * not durable: a restarted coordinator asks again, and names nobody for what it has drawn again, as
 * it does not know who had voted. */
#include "base/assert.h"
#include "base/round_number.h"
#include "base/run_audits.h"
#include "coordinator/core/internal.h"

#include <string.h>

enum {
	LEAST = RUN_AUDITS_LEAST_IN_ROWS, /* members of a row: the maker, and three that agree */
	FORGIVEN = 64,                    /* rounds after which a disk may fail again */
	PATIENCE = 2                      /* times liveness, at least, in which a final owner has to show its sums */
};

/* ---- draws ---- */

static const struct rows_column *column_of(const struct rows_plan *p, uint32_t chunk) {
	const struct rows_column *k = p->columns;
	while (chunk - k->first >= k->count)
		k++;
	RV_ASSERT(k < p->columns + p->n_columns);
	return k;
}

static struct sums_place place_of(const struct core *c, const struct rows_column *k, uint32_t chunk) {
	const int row = core_final_row(c, chunk);
	struct sums_place p = {.n = 0};
	for (uint32_t i = k->first; i < k->first + k->count; i++) {
		if (core_final_row(c, i) != row)
			continue;
		p.first = p.n == 0 ? i : p.first;
		p.at = i == chunk ? p.n : p.at;
		p.n++;
	}
	return p;
}

/* Notes what a final owner has to show: by whom, and about what, the sums are signed. */
static void note_makers(const struct core *c, const struct rows_column *k, struct core_audit_sums *s) {
	const struct rows_plan *p = &c->roster.rows.plan;
	for (int row = 0; row < p->n_rows; row++)
		if (core_rows_length(&c->roster.rows, row) > 0) {
			const struct core_member *m = core_participant(c, (uint32_t)p->first[row] + k->owner[row]);
			memcpy(s->keys[s->n_rows++], m->key, NET_KEY_BYTES);
		}
	s->roster = c->roster.hash;
	s->term = c->term;
}

/* A sum, by the row that made it, or the mean. */
struct made {
	uint8_t kind; /* enum audit_kind */
	uint8_t row;  /* number among those in the mean */
	int place;    /* of its maker */
};

static int list_made(const struct core *c, const struct rows_column *k, int final_row,
					 struct made out[NET_MAX_ROWS + 1]) {
	const struct core_rows *r = &c->roster.rows;
	int n = 0;
	uint8_t alive = 0;
	for (int row = 0; row < r->plan.n_rows; row++) {
		if (core_rows_length(r, row) >= LEAST)
			out[n++] = (struct made){AUDIT_OF_SUM, alive, r->plan.first[row] + k->owner[row]};
		alive = (uint8_t)(alive + (core_rows_length(r, row) > 0));
	}
	if (core_rows_length(r, final_row) >= LEAST)
		out[n++] = (struct made){AUDIT_OF_MEAN, 0, r->plan.first[final_row] + k->owner[final_row]};
	return n;
}

int core_draw_in_rows(const struct core *c, const struct rv_hash *seed, uint32_t number, struct core_audit *a) {
	const struct rows_plan *p = &c->roster.rows.plan;
	const struct rows_column *k = column_of(p, a->chunk);
	const int row = core_final_row(c, a->chunk);
	struct made made[NET_MAX_ROWS + 1];
	const int n = list_made(c, k, row, made);
	if (n == 0)
		return -1;
	const struct made *of = &made[audit_draw(seed, number, (uint32_t)n)];
	const uint32_t final = (uint32_t)p->first[row] + k->owner[row];
	a->sums = (struct core_audit_sums){.kind = of->kind,
									   .row = of->row,
									   .voted = set_has(c->roster.voted, final),
									   .final = c->roster.members[final],
									   .place = place_of(c, k, a->chunk)};
	note_makers(c, k, &a->sums);
	return of->place;
}

/* ---- what final owners show ---- */

static struct seal_scope scope_of(const struct core *c, const struct core_audit *a) {
	struct seal_scope s = {.roster = a->sums.roster,
						   .term = a->sums.term,
						   .round = a->round,
						   .attempt = a->attempt,
						   .kind = SEAL_SUMS,
						   .first = a->sums.place.first};
	memcpy(s.run_id, c->cfg.run_id, sizeof s.run_id);
	return s;
}

static bool holds(const struct core *c, const struct core_audit *a, const struct shown_sums *s) {
	const struct seal_scope scope = scope_of(c, a);
	bool all = s->n_rows == a->sums.n_rows;
	for (int i = 0; i < s->n_rows && all; i++)
		all = shown_sum_holds(s, i, &a->sums.place, a->sums.keys[i], &scope, &c->cfg.seals);
	return all;
}

static struct rv_hash sum_of(const struct core_audit *a, const struct shown_sums *s) {
	struct rv_hash leaves[NET_MAX_ROWS];
	for (int i = 0; i < s->n_rows; i++)
		leaves[i] = s->rows[i].leaf;
	return a->sums.kind == AUDIT_OF_SUM ? leaves[a->sums.row] : shown_sums_hash(leaves, s->n_rows);
}

static bool is_asked(const struct core_audit *a) {
	return a->sums.kind != AUDIT_OF_AVERAGE && !a->over && !a->sums.shown;
}

bool core_has_to_show(const struct core_audit *a, uint32_t member) {
	return is_asked(a) && a->sums.final == member;
}

enum rv_err core_take_sums(struct core *c, uint32_t slot, const struct shown_sums *s, struct rv_errtext *et) {
	const struct core_member *m = &c->members[slot];
	for (int i = 0; i < c->audits.n; i++) {
		struct core_audit *a = &c->audits.open[i];
		if (!is_asked(a) || a->round != s->round || a->attempt != s->attempt || a->chunk != s->chunk ||
			a->sums.final != m->number)
			continue;
		if (!holds(c, a, s))
			return rv_fail(et, RV_E_INVALID,
						   "evidence: the sums of chunk %u of round %llu are not what the owners of rows have signed",
						   s->chunk, (unsigned long long)round_number(s->round));
		a->sums.sum = sum_of(a, s);
		a->sums.shown = true;
		c->audits.changed = true;
	}
	return RV_OK; /* it may have been shown before, or be asked for no more */
}

bool core_awaits_sums(const struct core *c, struct core_audit *a) {
	if (!is_asked(a))
		return false;
	if (!a->sums.asked) {
		a->sums.asked = true;
		a->sums.asked_round = c->round;
		a->sums.asked_us = c->now_us;
	}
	return true;
}

void core_note_unshown(struct core *c) {
	const int64_t since_us = c->now_us - PATIENCE * c->cfg.liveness_us;
	for (int i = 0; i < c->audits.n; i++) {
		struct core_audit *a = &c->audits.open[i];
		const int slot = is_asked(a) && a->sums.asked ? core_find(c, a->sums.final) : -1;
		a->sums.met |= slot >= 0 && a->sums.voted && c->round > a->sums.asked_round && a->sums.asked_us <= since_us &&
					   core_place(c, (uint32_t)slot) >= 0;
	}
}

void core_unshown(struct core *c, const struct core_audit *a) {
	const int slot = a->sums.met && !a->over ? core_find(c, a->sums.final) : -1;
	struct core_member *m = slot >= 0 ? &c->members[slot] : NULL;
	if (m == NULL || (m->unshown > 0 && a->round <= m->unshown_round))
		return; /* another one of that round */
	if (m->unshown > 0 && a->round - m->unshown_round > FORGIVEN)
		m->unshown = 0;
	if (m->unshown > 0)
		(void)core_strike(c, (uint32_t)slot, a->round, CORE_FOUND_TO_BAN, CORE_STRIKE_EVADED);
	m->unshown = m->unshown < UINT8_MAX ? (uint8_t)(m->unshown + 1) : m->unshown;
	m->unshown_round = a->round;
	core_say_of(c, CORE_EVENT_UNSHOWN, (uint32_t)slot, a->round, m->unshown);
}

/* ---- documents ---- */

struct audit_order core_order_of(const struct core_audit *a) {
	const struct audit_order o = {.round = a->round,
								  .attempt = a->attempt,
								  .chunk = a->chunk,
								  .kind = a->sums.kind,
								  .member = a->sums.kind == AUDIT_OF_MEAN ? a->sums.final : 0,
								  .sum = a->sums.sum};
	RV_ASSERT(a->sums.kind == AUDIT_OF_AVERAGE || a->sums.shown);
	return o;
}

void core_sums_put(const struct core *c, uint32_t slot, struct document *d) {
	for (int i = 0; i < c->audits.n && d->n_audits < NET_MAX_AUDITS; i++) {
		const struct core_audit *a = &c->audits.open[i];
		if (core_has_to_show(a, c->members[slot].number) && a->round < d->round)
			d->audits[d->n_audits++] =
				(struct audit_order){.round = a->round, .attempt = a->attempt, .chunk = a->chunk, .kind = AUDIT_SHOW};
	}
}

static bool is_auditor(const struct core_audit *a, uint32_t member) {
	bool is = false;
	for (uint32_t i = 0; i < a->asked; i++)
		is |= a->auditors[i].member == member;
	return is;
}

/* Returns true if the member gives auditors what they need: its contribution, or sums. */
static bool gives(const struct core_audit *a, uint32_t member) {
	bool is = member == a->owner;
	for (uint32_t i = 0; i < a->n && a->sums.kind == AUDIT_OF_SUM; i++)
		is |= a->auditors[i].member == member;
	return is;
}

static int add_partner(const struct core *c, uint32_t member, uint16_t *out, int n, int most) {
	const int slot = core_find(c, member);
	bool known = slot < 0 || c->members[slot].banned || n == most;
	for (int i = 0; i < n; i++)
		known |= out[i] == slot;
	if (!known)
		out[n++] = (uint16_t)slot;
	return n;
}

int core_audits_partners(const struct core *c, uint32_t slot, uint16_t *out, int n, int most) {
	const uint32_t self = c->members[slot].number;
	for (int i = 0; i < c->audits.n; i++) {
		const struct core_audit *a = &c->audits.open[i];
		const bool audits = is_auditor(a, self), is_needed = gives(a, self);
		if (a->sums.kind == AUDIT_OF_AVERAGE)
			continue;
		if (audits && a->owner != self)
			n = add_partner(c, a->owner, out, n, most);
		for (uint32_t k = 0; k < a->n; k++) {
			const uint32_t other = a->auditors[k].member;
			if (other != self && ((audits && gives(a, other)) || (is_needed && k < a->asked)))
				n = add_partner(c, other, out, n, most);
		}
	}
	return n;
}
