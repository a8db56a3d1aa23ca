/* score.h: audits of training, as documents order them and reports answer them
 * (coordinator/core/scores.c, worker/audit/auditor.h).
 *
 * After a commit the coordinator draws a participant and, for it, another one: the *auditor*. It
 * fetches the whole contribution of the first, checks it against its contribution root, and
 * measures by how much a step along it lowers the loss on sequences that were leased to its author;
 * and the same of its own contribution to that round on its own sequences (train/score.h). */
#ifndef RV_NET_CONTROL_SCORE_H
#define RV_NET_CONTROL_SCORE_H

#include "base/err.h"
#include "base/hash.h"
#include "base/leases.h"
#include "net/control/layout.h"
#include "net/limits.h"

#include <stdint.h>

/* Below this share of the auditor's own gain a contribution is in doubt: between what honest work
 * and forgeries give (docs/benchmarks.md, "Audits"). */
#define SCORE_LIMIT 0.5f

/* Above either of these distances steps were not those of the member: honest work of any kernel and
 * dtype is within them (docs/benchmarks.md). */
#define SCORE_REPEAT_LIMIT       0.15f
#define SCORE_REPEAT_INNER_LIMIT 0.3f

enum { SCORE_PIECES = 4, SCORE_SHARE_ONE = 65536 };
enum {
	SCORE_LEAST_BYTES_PER_S = 32768, /* an author gives its contribution at this rate or faster */
	/* Seconds for which an inner state may take its owner's line, at the rate that it reports; one
	 * that takes longer is not repeated. */
	SCORE_REPEAT_LINE_S = 120,
	/* Seconds beside an auditor's patience and exchanges within which all that a repeat needs is to
	 * be there: the line carries other things, and what three auditors ask for. */
	SCORE_REPEAT_MOST_S = 4 * SCORE_REPEAT_LINE_S
};

/* A task for the receiver of a document. */
struct score_order {
	uint64_t round;      /* committed */
	uint32_t member;     /* whose contribution */
	uint32_t n_chunks;   /* of the round's vector: leaves of the root's tree */
	uint32_t share;      /* of the mean that it had, of SCORE_SHARE_ONE; from 1 */
	uint8_t codec, part; /* as in member_ref */
	struct rv_hash root; /* that it has committed to */
	uint8_t n_pieces;    /* from 1: sequences that were leased to it, and are scored */
	struct lease_piece pieces[SCORE_PIECES];
	/* Its steps are repeated: `pieces` are all that it read, and these the roots over its inner
	 * state before and after them (struct commitment). */
	bool repeat;
	struct rv_hash inner_begin, inner_end;
};

enum score_verdict {
	SCORE_MEASURED = 1,
	SCORE_WITHHELD,  /* it gave nothing, or bytes that are not what it has committed to */
	SCORE_UNABLE,    /* this worker lacks what it needs itself, or a relay may have kept it */
	SCORE_UNREACHED, /* no link to it when patience was over */
	SCORE_CUT,       /* links to it came up, and each ended when it was asked */
	SCORE_REPEATED,  /* its steps were made again */
	SCORE_SLOW,      /* it gave what a repeat needs more slowly than its line can */
	SCORE_VERDICTS
};
struct score_result {
	uint64_t round;
	uint32_t member;
	uint8_t verdict; /* enum score_verdict */
	/* MEASURED: fall of the loss along its contribution (at most), and the auditor's (at least).
	 * REPEATED: how far its contribution, and its inner state at the end, are from those that the
	 * auditor comes to: |a - b| / |b|. Else 0. */
	float gain, own;
};

extern const struct layout layout_score_order[], layout_score_result[];

/* Returns true if the auditor has looked at the training itself. */
static inline bool score_has_looked(const struct score_result *r) {
	return r->verdict == SCORE_MEASURED || r->verdict == SCORE_REPEATED;
}
/* Returns true if a line of that rate (bytes per second; 0: no limit is known) carries an inner
 * state in time. */
static inline bool score_line_carries(uint64_t inner_bytes, uint64_t rate) {
	return rate == 0 || inner_bytes / rate < SCORE_REPEAT_LINE_S;
}
/* Returns true if the verdict is one that an auditor can come to with this order. */
static inline bool score_fits(const struct score_order *o, enum score_verdict verdict) {
	if (verdict == SCORE_REPEATED || verdict == SCORE_SLOW)
		return o->repeat;
	return verdict != SCORE_MEASURED || !o->repeat;
}
/* Returns true if the measured gain is too small for honest work, or what comes out of the repeated
 * steps too far from what was sent. */
static inline bool score_is_low(const struct score_result *r) {
	if (r->verdict == SCORE_REPEATED)
		return r->gain > SCORE_REPEAT_LIMIT || r->own > SCORE_REPEAT_INNER_LIMIT;
	return r->gain < SCORE_LIMIT * r->own;
}

/* Check lists that were read. RV_E_INVALID names the entry. */
enum rv_err score_orders_check(const struct score_order *orders, int n, uint64_t open_round, struct rv_errtext *et);
enum rv_err score_results_check(const struct score_result *results, int n, struct rv_errtext *et);

#endif
