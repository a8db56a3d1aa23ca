/* score.h: what a contribution is worth: by how much the loss on given sequences falls along it,
 * from a step behind the weights to a step ahead of them. (Gauntlet, arXiv 2505.21684, takes the
 * step ahead alone. With both, curvature cancels, and a score a round later is as good:
 * docs/benchmarks.md.) Zeros, noise, a stale or a flipped contribution score as what they are, on
 * any hardware, without the inner state of their author. Forward passes only.
 *
 * The loss on the sequences that were leased to the author falls most by honest work; on others it
 * falls by work on any text of the run. A gain counts relative to that of work that is known to be
 * honest: an auditor's own in the same round, on the sequences that it was leased. */
#ifndef RV_TRAIN_SCORE_H
#define RV_TRAIN_SCORE_H

#include "outer/global.h"
#include "train/replica.h"

/* The fall of the loss between two weights, nats per token: its mean over the sequences, and the
 * standard error of that mean. */
struct score {
	double gain, error;
};

enum { SCORE_MAX_SEQUENCES = 256 };
/* Stream numbers [next, next + n) of `reading`, which has them; n from 1 to
 * SCORE_MAX_SEQUENCES. */
struct score_text {
	const struct reading *reading;
	uint64_t next, n;
};

/* Measures the fall from `behind` to `ahead`; the replica keeps its weights, step and cursor.
 * RV_E_RANGE: a loss is not finite; what replica_loss_on returns. */
enum rv_err score_measure(struct replica *r, const float *ahead, const float *behind, const struct score_text *text,
						  struct score *out, struct rv_errtext *et);

/* A contribution as it was sent to `round`. */
struct score_sent {
	uint64_t round;
	uint32_t member;
	uint8_t codec, part;    /* as in member_ref: it has every part-th chunk (base/slow_lines.h) */
	const uint8_t *encoded; /* these chunks, one after the other */
	bool whole;             /* `encoded` has all chunks; those only count */
};

/* Returns the bytes of all of them. */
size_t score_sent_bytes(const struct global_config *g, const struct score_sent *s);
/* Writes theta - share * contribution to `moved` (n); share may be negative. RV_E_CORRUPT: a chunk
 * cannot be decoded; RV_E_NOMEM: no room for a chunk of floats. */
enum rv_err score_move(const struct global_config *g, const struct score_sent *s, float share, const float *theta,
					   float *moved, struct rv_errtext *et);

/* The work of an auditor: the gains of another one's contribution and of its own to the same round,
 * each on the sequences that its author has read, by steps of equal length along the same chunks:
 * a newcomer, or one that trained fewer steps, contributes less, and no worse. */
struct score_job {
	struct score_sent theirs, own; /* own.part and own.member are those of `theirs` */
	float share;
	struct reading their_text, own_text;  /* all sequences of the first, as many of the second */
	struct score theirs_found, own_found; /* results */
};
/* Sets the results. RV_E_NOMEM: n floats; else what score_measure and score_move return. */
enum rv_err score_run(struct replica *r, const struct global_config *g, const float *theta, struct score_job *job,
					  struct rv_errtext *et);

#endif
