/* auditor.c: see auditor.h. */
#include "worker/audit/lane.h"

#include "base/assert.h"

#include <string.h>

size_t auditor_size(void) {
	return sizeof(struct auditor);
}

struct auditor *auditor_init(void *memory, uint32_t self_member, uint64_t run_tag, int64_t patience_us,
							 const struct auditor_ops *ops) {
	struct auditor *a = memory;
	memset(a, 0, sizeof *a);
	a->ops = *ops;
	a->self = self_member;
	a->run_tag = run_tag;
	a->patience_us = patience_us;
	for (int i = 0; i < LANES; i++)
		a->lanes[i].at = -1;
	return a;
}

struct order *lane_order(struct auditor *a, const struct lane *l) {
	RV_ASSERT(l->at >= 0 && l->at < a->n_orders);
	return &a->orders[l->at];
}

bool lane_has_sums(const struct auditor *a, const struct lane *l) {
	const struct order *o = &a->orders[l->at];
	return !o->scores && o->of.kind == AUDIT_OF_MEAN;
}

struct frame_fetch lane_fetch(const struct auditor *a, const struct lane *l) {
	const struct order *o = &a->orders[l->at];
	const uint64_t round = o->scores ? o->score.round : o->of.round;
	if (lane_has_sums(a, l))
		return (struct frame_fetch){.kind = FRAME_FETCH_SUM,
									.part = FRAME_PART_PIECE,
									.round = round,
									.index = frame_sum_index(l->row, l->chunk)};
	return (struct frame_fetch){.kind = l->stage == STAGE_SENT ? FRAME_FETCH_CONTRIBUTION : FRAME_FETCH_INNER,
								.part = FRAME_PART_PIECE,
								.round = l->stage == STAGE_BEGIN ? round - 1 : round,
								.index = l->chunk};
}

void lane_leave(struct auditor *a, struct lane *l) {
	for (int i = 0; i < l->n; i++) {
		if (l->pieces[i].state != PIECE_ASKED)
			continue;
		owed_add(&a->owed, l->pieces[i].from->member, lane_fetch(a, l));
	}
	if (l->memory != NULL)
		a->ops.give(a->ops.ctx, l->memory);
	else if (l->whole && a->scoring)
		a->ops.drop(a->ops.ctx);
	l->memory = NULL;
	l->whole = false;
	l->n = 0;
	l->at = -1;
}

void auditor_release(struct auditor *a) {
	for (int i = 0; i < LANES; i++)
		if (a->lanes[i].at >= 0)
			lane_leave(a, &a->lanes[i]);
}

/* ---- rosters and orders ---- */

static void read_roster(const struct document *d, struct auditor_roster *out) {
	*out = (struct auditor_roster){.round = d->round, .attempt = d->attempt, .n_chunks = d->n_chunks};
	for (int row = 0; d->n_rows > 1 && row < d->n_rows; row++)
		if (d->row_weights[row] > 0)
			out->row_weights[out->n_rows++] = d->row_weights[row];
	for (int i = 0; i < d->n_members; i++) {
		const struct member_ref *m = &d->members[i];
		out->members[out->n++] = (struct auditor_member){
			.member = m->member, .weight = m->weight, .codec = m->codec, .part = m->part, .root = m->contribution.root};
	}
}

void auditor_roster_of(const struct document *d, struct auditor_roster *out) {
	if (d->n_rows > 1)
		*out = (struct auditor_roster){.round = d->round, .n_chunks = d->n_chunks};
	else
		read_roster(d, out);
}

void auditor_note_roster(struct auditor *a, const struct document *d) {
	struct auditor_roster *r = &a->rosters[d->round % AUDITOR_ROUNDS];
	RV_ASSERT(d->phase == RUN_REDUCE);
	for (int i = LANE_AVERAGES; i < LANE_TRAINING; i++) {
		struct lane *l = &a->lanes[i];
		if (l->at >= 0 && l->roster == r) /* it took too long, or its round was taken back */
			average_conclude(a, l, AUDIT_UNABLE, NET_NO_MEMBER, NULL);
	}
	read_roster(d, r);
}

/* A coordinator that was restarted may order a score, which has no inner states, where it had
 * ordered a repeat. */
static bool same_score(const struct score_order *a, const struct score_order *b) {
	return a->round == b->round && a->member == b->member && rv_hash_equal(&a->root, &b->root) &&
		   rv_hash_equal(&a->inner_begin, &b->inner_begin) && rv_hash_equal(&a->inner_end, &b->inner_end);
}

static bool same_order(const struct order *a, const struct order *b) {
	if (a->scores != b->scores)
		return false;
	return a->scores ? same_score(&a->score, &b->score)
					 : a->of.round == b->of.round && a->of.attempt == b->of.attempt && a->of.chunk == b->of.chunk &&
						   a->of.kind == b->of.kind && rv_hash_equal(&a->of.sum, &b->of.sum);
}

/* Lists what the document orders. Returns how many. */
static int list_orders(const struct document *d, struct order out[MAX_ORDERS]) {
	int n = 0;
	for (int i = 0; i < d->n_audits; i++)
		if (d->audits[i].kind != AUDIT_SHOW)
			out[n++] = (struct order){.of = d->audits[i]};
	for (int i = 0; i < d->n_scores; i++)
		out[n++] = (struct order){.scores = true, .score = d->scores[i]};
	return n;
}

/* Returns the lane in which that order is under way; NULL: it is not. */
static struct lane *lane_of(struct auditor *a, int order) {
	for (int i = 0; i < LANES; i++)
		if (a->lanes[i].at == order)
			return &a->lanes[i];
	return NULL;
}

/* Returns true if the member takes part in the run now, or catches up. */
static bool is_named(const struct document *d, uint32_t member) {
	bool named = document_find(d, member) >= 0;
	for (int i = 0; i < d->n_syncing; i++)
		named = named || d->syncing[i].member == member;
	return named;
}

void auditor_follow(struct auditor *a, int64_t now_us, const struct document *d) {
	struct order orders[MAX_ORDERS];
	int at[LANES];
	const int n = list_orders(d, orders);
	for (int i = 0; i < LANES; i++)
		at[i] = -1;
	for (int i = 0; i < n; i++)
		for (int k = 0; k < a->n_orders; k++)
			if (same_order(&orders[i], &a->orders[k])) {
				const struct lane *l = lane_of(a, k);
				orders[i] = a->orders[k];
				if (l != NULL)
					at[l - a->lanes] = i;
			}
	for (int i = 0; i < LANES; i++)
		if (a->lanes[i].at >= 0 && at[i] < 0)
			lane_leave(a, &a->lanes[i]);
	a->n_orders = n;
	memcpy(a->orders, orders, (size_t)n * sizeof orders[0]);
	for (int i = 0; i < LANES; i++)
		a->lanes[i].at = at[i];
	for (int i = LANE_TRAINING; i < LANES; i++)
		if (a->lanes[i].at >= 0 && !is_named(d, a->lanes[i].author.member))
			a->lanes[i].pieces[0].cuts = 0;
	auditor_tick(a, now_us);
}

void auditor_report(const struct auditor *a, struct report *r) {
	r->n_verdicts = r->n_scores = 0;
	for (int i = 0; i < a->n_orders; i++) {
		const struct order *o = &a->orders[i];
		if (o->done && o->scores)
			r->scores[r->n_scores++] = o->scored;
		else if (o->done)
			r->verdicts[r->n_verdicts++] = o->result;
	}
}

bool auditor_has_news(struct auditor *a) {
	const bool news = a->news;
	a->news = false;
	return news;
}

/* ---- begin and end ---- */

/* Returns true if contributions of the author of this order are being fetched: they come one after
 * the other, or one would wait for the other with its patience running. */
static bool author_is_busy(const struct auditor *a, const struct score_order *o) {
	for (int i = LANE_TRAINING; i < LANES; i++)
		if (a->lanes[i].at >= 0 && !a->lanes[i].whole && a->lanes[i].author.member == o->member)
			return true;
	return false;
}

static bool is_repeating(const struct auditor *a) {
	for (int i = LANE_TRAINING; i < LANES; i++)
		if (a->lanes[i].at >= 0 && a->lanes[i].repeats)
			return true;
	return false;
}

/* Returns the order in which audits of averages go on: those that were not set aside; then those
 * whose answer is under way, as no other one can ask that member; then the oldest orders. */
static int rank_of(const struct lane *l) {
	for (int i = 0; i < l->n && l->aside; i++)
		if (l->pieces[i].state == PIECE_ASKED)
			return MAX_ORDERS + l->at;
	return l->aside ? 2 * MAX_ORDERS + l->at : l->at;
}

/* Returns the audit of an average that goes on; NULL: none is under way. */
static const struct lane *first_average(const struct auditor *a) {
	const struct lane *first = NULL;
	for (int i = LANE_AVERAGES; i < LANE_TRAINING; i++) {
		const struct lane *l = &a->lanes[i];
		if (l->at >= 0 && (first == NULL || rank_of(l) < rank_of(first)))
			first = l;
	}
	return first;
}

bool lane_stands_still(const struct auditor *a, const struct lane *l) {
	return l->at >= 0 && l < &a->lanes[LANE_TRAINING] && l != first_average(a);
}

/* Returns the lane in which the order can begin; NULL: it has to wait. */
static struct lane *lane_for(struct auditor *a, const struct order *o) {
	const int first = o->scores ? LANE_TRAINING : LANE_AVERAGES, end = o->scores ? LANES : LANE_TRAINING;
	const struct lane *average = first_average(a);
	if (o->scores ? author_is_busy(a, &o->score) || (o->score.repeat && is_repeating(a))
				  : average != NULL && !average->aside)
		return NULL;
	for (int i = first; i < end; i++)
		if (a->lanes[i].at < 0)
			return &a->lanes[i];
	return NULL;
}

static void begin(struct auditor *a, int64_t now_us, int order) {
	struct lane *l = lane_for(a, &a->orders[order]);
	if (l == NULL)
		return;
	l->at = order;
	l->n = 0;
	l->stage = STAGE_SENT;
	l->repeats = false;
	l->looked = 0;
	l->aside = false;
	l->until_us = now_us + a->patience_us;
	if (a->orders[order].scores)
		training_begin(a, now_us, l);
	else
		average_begin(a, now_us, l);
}

static void give_up(struct auditor *a, int64_t now_us, struct lane *l) {
	if (lane_order(a, l)->scores)
		training_give_up(a, now_us, l);
	else
		average_give_up(a, now_us, l);
}

/* Returns true if the order has no result, or no better one than that its author was away, and it
 * is linked now. */
static bool is_wanted(const struct auditor *a, int64_t now_us, const struct order *o) {
	return !o->done || (o->scores && training_is_away(&o->scored) && now_us >= o->again_us &&
						a->ops.linked(a->ops.ctx, o->score.member));
}

/* Returns true if an order to repeat waits for the one that is under way. */
static bool has_waiting_repeat(struct auditor *a, int64_t now_us) {
	for (int i = 0; i < a->n_orders; i++) {
		const struct order *o = &a->orders[i];
		if (o->scores && o->score.repeat && is_wanted(a, now_us, o) && lane_of(a, i) == NULL)
			return true;
	}
	return false;
}

/* An author that drips gives up its place, if another one's steps could be repeated in it. */
static void make_place(struct auditor *a, int64_t now_us) {
	for (int i = LANE_TRAINING; i < LANES; i++) {
		struct lane *l = &a->lanes[i];
		if (l->at >= 0 && l->repeats && !l->whole && training_is_behind(l, now_us) && has_waiting_repeat(a, now_us))
			training_conclude(a, l, training_late(a, l, SCORE_SLOW));
	}
}

void auditor_wait_on(const struct auditor *a, int64_t now_us, struct lane *l) {
	l->until_us = now_us + a->patience_us < l->latest_us ? now_us + a->patience_us : l->latest_us;
}

/* Returns how much of so much time does not count for an audit. While this worker's line and its
 * members' carry an exchange, that of repeats stands still, and a tenth of it passes for an
 * average: donors give auditors so much of what an exchange sends. */
static int64_t still_of(const struct auditor *a, const struct lane *l, int64_t us) {
	const bool trains = l >= &a->lanes[LANE_TRAINING];
	if (lane_stands_still(a, l))
		return us;
	if (!a->exchanging || (trains && (!l->repeats || l->whole)))
		return 0;
	return trains ? us : us - us / 10;
}

static void stand_still(struct auditor *a, int64_t now_us) {
	const int64_t us = now_us - a->turned_us;
	for (int i = 0; i < LANES; i++) {
		struct lane *l = &a->lanes[i];
		const int64_t still_us = l->at >= 0 ? still_of(a, l, us) : 0;
		if (still_us == 0)
			continue;
		l->until_us += still_us;
		l->paced_us += still_us;
		l->latest_us += still_us;
	}
	a->turned_us = now_us;
}

void auditor_note_exchange(struct auditor *a, int64_t now_us, bool exchanging) {
	stand_still(a, now_us);
	a->exchanging = exchanging;
}

void auditor_tick(struct auditor *a, int64_t now_us) {
	stand_still(a, now_us);
	for (int i = 0; i < LANES; i++)
		pieces_make_ready(a->lanes[i].pieces, a->lanes[i].n, now_us);
	for (int i = LANE_AVERAGES; i < LANE_TRAINING; i++)
		if (a->lanes[i].at >= 0)
			average_look(a, &a->lanes[i]);
	for (int i = 0; i < LANES; i++)
		if (a->lanes[i].at >= 0 && now_us >= a->lanes[i].until_us && !lane_stands_still(a, &a->lanes[i]))
			give_up(a, now_us, &a->lanes[i]);
	make_place(a, now_us);
	for (int i = 0; i < a->n_orders; i++)
		if (is_wanted(a, now_us, &a->orders[i]) && lane_of(a, i) == NULL)
			begin(a, now_us, i);
}

static int64_t lane_deadline_us(const struct lane *l) {
	const int64_t at = l->at >= 0 ? l->until_us : INT64_MAX, ready_us = pieces_ready_us(l->pieces, l->n);
	return ready_us < at ? ready_us : at;
}

int64_t auditor_deadline_us(const struct auditor *a) {
	int64_t first = INT64_MAX;
	for (int i = 0; i < LANES; i++) {
		const int64_t at = lane_stands_still(a, &a->lanes[i]) ? INT64_MAX : lane_deadline_us(&a->lanes[i]);
		first = at < first ? at : first;
	}
	return first;
}
