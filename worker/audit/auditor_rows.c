/* auditor_rows.c: an audit of a mean that was made of the sums of rows (auditor.h), in its lane:
 * the final owner is asked for the sum of one row after the other. What it has shown the
 * coordinator names them; what they are to give is in this worker's own log. */
#include "worker/audit/lane.h"

#include "base/assert.h"
#include "base/merkle.h"
#include "net/control/shown_sums.h"

static void ask_for_row(struct lane *l, size_t bytes) {
	l->n = 1;
	l->pieces[0] = (struct piece){.from = &l->author,
								  .ready_us = INT64_MIN,
								  .chunk_bytes = bytes,
								  .bytes = bytes,
								  .at = (uint8_t *)l->memory + l->row * bytes};
}

/* Sets the time that all sums have: the final owner's line, or this worker's, carries them in
 * it. */
static void give_time(const struct auditor *a, int64_t now_us, struct lane *l, size_t bytes) {
	enum { US = 1000000 };
	const uint64_t all = (uint64_t)bytes * (uint64_t)l->roster->n_rows;
	l->latest_us = now_us + a->patience_us + (int64_t)(all * US / SCORE_LEAST_BYTES_PER_S);
}

void mean_begin(struct auditor *a, int64_t now_us, struct lane *l) {
	const struct audit_order *o = &lane_order(a, l)->of;
	const size_t bytes =
		l->roster != NULL && o->member != a->self ? a->ops.sum_bytes(a->ops.ctx, o->round, o->chunk) : 0;
	l->author = (struct auditor_member){.member = o->member};
	l->row = 0;
	if (!average_take(a, l, bytes > 0 ? bytes * (size_t)l->roster->n_rows : 0))
		return;
	give_time(a, now_us, l, bytes);
	ask_for_row(l, bytes);
}

void mean_keep(struct auditor *a, int64_t now_us, struct lane *l) {
	const struct audit_order *o = &lane_order(a, l)->of;
	const struct piece p = l->pieces[0];
	RV_ASSERT(l->row < (uint32_t)l->roster->n_rows);
	l->sums[l->row++] = merkle_leaf(l->chunk, p.at, p.chunk_bytes);
	auditor_wait_on(a, now_us, l);
	if (l->row < (uint32_t)l->roster->n_rows) {
		ask_for_row(l, p.chunk_bytes);
		return;
	}
	const struct rv_hash found = shown_sums_hash(l->sums, l->roster->n_rows);
	if (rv_hash_equal(&found, &o->sum))
		average_judge(a, l);
	else
		average_conclude(a, l, AUDIT_WITHHELD, o->member, NULL);
}
