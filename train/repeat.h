/* repeat.h: the steps of another member's round, made again from the weights with which the round
 * began, the inner state that its author has committed to, and the text that it read; and how far
 * what comes out is from what the author sent
 * (docs/decisions/0106-training-is-repeated-from-a-committed-inner-state.md).
 *
 * A replica that trains a round of its own gives its place for some steps at a time. */
#ifndef RV_TRAIN_REPEAT_H
#define RV_TRAIN_REPEAT_H

#include "outer/global.h"
#include "train/inner_state.h"

#include <stdatomic.h>

enum { REPEAT_PIECES = 16 };
/* Larger distances, and those of what is not finite. */
#define REPEAT_FAR 1e6

struct repeat_job {
	uint64_t round, steps;  /* that its author made */
	bool begun;             /* repeat_begin was called */
	atomic_bool dropped;    /* set by any thread: nobody wants the results, no further step is made */
	bool sane;              /* its inner state may be one of training (inner_state_is_sane) */
	float *before;          /* (n) the weights with which it began */
	const uint8_t *encoded; /* the author's contribution, all chunks by global_sent() */
	/* Some pieces of its inner state at the end, INNER_PIECE_BYTES apart. */
	int n_pieces;
	uint32_t pieces[REPEAT_PIECES];
	const uint8_t *ends;
	/* The state of the repeated training between two calls. At first: theta as `before`, the
	 * author's inner state at the begin, no step. */
	struct inner_other state;
	uint64_t done; /* steps */
	/* Results: |a - b| / |b| of the contribution as its codec leaves it, and of the moments in
	 * these pieces, the larger one of both; at most REPEAT_FAR. */
	double contribution, inner;
};

/* Sets job->state to the begin, from what is there: inner, text, room. */
void repeat_begin(const struct replica *r, struct repeat_job *job, const struct reading *text);
/* Makes steps until all are made, job->dropped is set, or `stops`, asked before each one with the
 * number that this call has made, returns true. The replica is as before afterwards. RV_E_RANGE: no
 * training begins from the author's inner state, as its number of updates is impossible, or its
 * moments are, and lead to a loss or gradient that is not finite; RV_E_UNSUPPORTED: only this
 * worker's arithmetic comes to one; what else replica_step returns. */
enum rv_err repeat_steps(struct replica *r, struct repeat_job *job, bool (*stops)(void *ctx, uint64_t made), void *ctx,
						 struct rv_errtext *et);
/* Sets the results: all steps are made. RV_E_NOMEM. */
enum rv_err repeat_judge(const struct global_config *g, struct repeat_job *job, struct rv_errtext *et);

#endif
