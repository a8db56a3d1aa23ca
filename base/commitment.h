/* commitment.h: binds a member to its contribution before it sees another one's: the root of a
 * Merkle tree (merkle.h) over its encoded chunks, for each codec by which it may be sent. */
#ifndef RV_BASE_COMMITMENT_H
#define RV_BASE_COMMITMENT_H

#include "base/merkle.h"
#include "base/slow_lines.h"

enum { COMMITMENT_MAX = 1 + SLOW_LINES_STEPS };

struct commitment_root {
	uint8_t codec; /* its id; 0: the run's */
	struct rv_hash root;
};
struct commitment {
	uint8_t n; /* 0: there is no contribution */
	struct commitment_root roots[COMMITMENT_MAX];
	/* In a run with audit-repeat: roots over the state of its inner optimizer (train/inner_state.h)
	 * with which the steps of this contribution ended, and began, if they can be repeated from
	 * that. Else zero. */
	struct rv_hash inner_end, inner_begin;
};

/* Returns the root for a codec, borrowed; NULL: there is none. */
const struct rv_hash *commitment_find(const struct commitment *c, uint8_t codec);
bool commitment_equal(const struct commitment *a, const struct commitment *b);

#endif
