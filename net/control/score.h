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

enum { SCORE_PIECES = 4, SCORE_SHARE_ONE = 65536 };

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
};

enum score_verdict {
	SCORE_MEASURED = 1,
	SCORE_WITHHELD,  /* it gave nothing, or bytes that are not what it has committed to */
	SCORE_UNABLE,    /* this worker lacks what it needs itself */
	SCORE_UNREACHED, /* no link to it when patience was over */
	SCORE_CUT,       /* links to it came up, and each ended when it was asked */
	SCORE_VERDICTS
};
struct score_result {
	uint64_t round;
	uint32_t member;
	uint8_t verdict; /* enum score_verdict */
	float gain, own; /* MEASURED: fall of the loss along its contribution (at most), the auditor's (at least); else 0 */
};

extern const struct layout layout_score_order[], layout_score_result[];

/* Returns true if the measured gain is too small for honest work. */
static inline bool score_is_low(const struct score_result *r) {
	return r->gain < SCORE_LIMIT * r->own;
}

/* Check lists that were read. RV_E_INVALID names the entry. */
enum rv_err score_orders_check(const struct score_order *orders, int n, uint64_t open_round, struct rv_errtext *et);
enum rv_err score_results_check(const struct score_result *results, int n, struct rv_errtext *et);

#endif
