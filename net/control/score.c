/* score.c: see score.h. */
#include "net/control/score.h"

#include <math.h>

static const struct layout piece[] = {LAYOUT_FIELD(PLAIN, struct lease_piece, begin),
									  LAYOUT_FIELD(PLAIN, struct lease_piece, count), LAYOUT_LAST};

const struct layout layout_score_order[] = {
	LAYOUT_FIELD(PLAIN, struct score_order, round),     LAYOUT_FIELD(PLAIN, struct score_order, member),
	LAYOUT_FIELD(PLAIN, struct score_order, n_chunks),  LAYOUT_FIELD(PLAIN, struct score_order, share),
	LAYOUT_FIELD(PLAIN, struct score_order, codec),     LAYOUT_FIELD(PLAIN, struct score_order, part),
	LAYOUT_FIELD(PLAIN, struct score_order, root),      LAYOUT_COUNTED(struct score_order, pieces, n_pieces, piece),
	LAYOUT_FIELD(BOOL, struct score_order, repeat),     LAYOUT_FIELD(PLAIN, struct score_order, inner_begin),
	LAYOUT_FIELD(PLAIN, struct score_order, inner_end), LAYOUT_LAST,
};

const struct layout layout_score_result[] = {
	LAYOUT_FIELD(PLAIN, struct score_result, round),   LAYOUT_FIELD(PLAIN, struct score_result, member),
	LAYOUT_FIELD(PLAIN, struct score_result, verdict), LAYOUT_FIELD(PLAIN, struct score_result, gain),
	LAYOUT_FIELD(PLAIN, struct score_result, own),     LAYOUT_LAST,
};

/* Return why it is impossible; NULL: it is not. */
static const char *order_invalid(const struct score_order *o, uint64_t open_round) {
	if (o->round >= open_round)
		return "a round that is not committed";
	if (o->member == NET_NO_MEMBER || o->part > NET_MAX_PART)
		return "no member, or a part that is none";
	if (o->n_chunks < 1 || o->n_chunks > NET_MAX_CHUNKS)
		return "a number of chunks past the limits";
	if (o->share < 1 || o->share > SCORE_SHARE_ONE)
		return "a share of the mean past the limits";
	for (int i = 0; i < o->n_pieces; i++)
		if (o->pieces[i].count == 0 || o->pieces[i].begin > LEASE_MAX_POSITION - o->pieces[i].count)
			return "a piece without sequences, or past 2^62";
	if (o->repeat == rv_hash_is_zero(&o->inner_begin) || o->repeat == rv_hash_is_zero(&o->inner_end))
		return "steps to repeat without an inner state, or one without them";
	return o->n_pieces < 1 ? "no sequences" : NULL;
}

static const char *result_invalid(const struct score_result *r) {
	if (r->verdict < SCORE_MEASURED || r->verdict >= SCORE_VERDICTS)
		return "an unknown verdict";
	if (r->member == NET_NO_MEMBER)
		return "no member";
	if (!isfinite(r->gain) || !isfinite(r->own))
		return "a gain is not finite";
	if (r->verdict == SCORE_REPEATED && (r->gain < 0 || r->own < 0))
		return "a negative distance";
	return !score_has_looked(r) && (r->gain != 0 || r->own != 0) ? "gains that were not measured" : NULL;
}

enum rv_err score_orders_check(const struct score_order *orders, int n, uint64_t open_round, struct rv_errtext *et) {
	for (int i = 0; i < n; i++) {
		const char *why = order_invalid(&orders[i], open_round);
		if (why)
			return rv_fail(et, RV_E_INVALID, "scores[%d]: %s", i, why);
	}
	return RV_OK;
}

enum rv_err score_results_check(const struct score_result *results, int n, struct rv_errtext *et) {
	for (int i = 0; i < n; i++) {
		const char *why = result_invalid(&results[i]);
		if (why)
			return rv_fail(et, RV_E_INVALID, "scores[%d]: %s", i, why);
	}
	return RV_OK;
}
