/* kept_source.c: see kept_source.h. */
#include "worker/audit/kept_source.h"

static void idle(void *ctx) {
	const struct kept_source *k = ctx;
	kept_contributions_forget(k->contributions);
	if (k->states)
		kept_states_forget(k->states);
	if (k->sums)
		kept_sums_forget(k->sums);
}

static bool may_look(void *ctx, int64_t now_us, const struct frame_fetch *what) {
	(void)ctx, (void)now_us, (void)what;
	return true; /* a budget bounds how much is read: donor_config.least_bytes */
}

static int64_t ready_us(void *ctx) {
	(void)ctx;
	return INT64_MIN;
}

static bool find(void *ctx, int64_t now_us, struct frame_piece *out) {
	const struct kept_source *k = ctx;
	size_t bytes = 0;
	(void)now_us;
	if (out->of.kind == FRAME_FETCH_SUM)
		out->data = k->sums ? kept_sums_piece(k->sums, out->of.round, out->of.index, &bytes) : NULL;
	else if (out->of.kind != FRAME_FETCH_INNER)
		out->data = kept_contributions_piece(k->contributions, out->of.round, out->of.index, &bytes);
	else
		out->data = k->states ? kept_states_piece(k->states, out->of.round, out->of.index, &bytes) : NULL;
	if (!out->data || bytes > NET_MAX_PIECE_BYTES)
		return false;
	out->total = (uint32_t)bytes;
	return true;
}

struct donor_source kept_source_of(struct kept_source *k) {
	return (struct donor_source){.ctx = k, .may_look = may_look, .ready_us = ready_us, .find = find, .idle = idle};
}
