/* mean_residual.h: what encoding the means of chunks lost, kept by their owner and added to the
 * next means of the same chunks (outer/feedback.h). beta = run_config.mean_feedback; 0: nothing is
 * kept.
 *
 * A sparse mean sends few of its values; without a residual the others are lost, with it they are
 * sent later. The residual of a chunk is where its mean was encoded: at its owner, who is known to
 * all by the ownership map of the attempt. So that everybody who knows the maps can compute the
 * same bits, one rule says which residual a mean has:
 *
 *     The mean of chunk c in round r has what the encoding of c lost in the last round before r
 *     that exchanged c, in the attempt that was committed, if the same member owned c in both and
 *     still has it. Otherwise it has none: the residual is lost.
 *
 * An owner loses it if it took no part in that round or fetched its result, installed a snapshot,
 * or restarted without the file (worker/state/means_recovery.h). Then its trace says so.
 *
 * Two attempts at a round may come to the same bytes with other owners, so that the bytes do not
 * prove which one was committed. The document of the next round that exchanges the same chunks
 * names it: mean_residual_prove().
 *
 * Attempts: mean_residual_begin() forgets what an earlier attempt at the round left, and e changes
 * only in mean_residual_commit(): an attempt that fails consumes nothing.
 *
 * Memory: two vectors of n floats, of which only the pages of owned chunks are touched. One thread
 * at a time. */
#ifndef RV_OUTER_MEAN_RESIDUAL_H
#define RV_OUTER_MEAN_RESIDUAL_H

#include "outer/global.h"

/* Callers may read the fields. `holds` and `made` are by chunk of the whole vector. */
struct mean_residual {
	float beta;                   /* 0: off, and the pointers are NULL */
	float *kept;                  /* e (n), of the chunks in `holds` */
	float *left;                  /* e' (n), of the chunks in `made` */
	bool *holds;                  /* (n_chunks) */
	bool *made;                   /* (n_chunks) in attempt `attempt` at `round` */
	uint64_t round;               /* of `made` */
	uint32_t attempt;             /* 0: none was begun since the last commit */
	uint32_t from[FRAGMENTS_MAX]; /* by fragment: the attempt that left `kept` in its last round */
};

/* Sets e = 0 and holds nothing. RV_E_NOMEM; *m is then zero, and may be released. */
enum rv_err mean_residual_init(struct mean_residual *m, const struct run_config *run, const struct global_config *g,
							   struct rv_errtext *et);
void mean_residual_release(struct mean_residual *m);
bool mean_residual_is_on(const struct mean_residual *m);

/* Begins an attempt (from 1) at a round: what an earlier one left is forgotten, not what the very
 * same one did (it was loaded: the vote of an earlier process). */
void mean_residual_begin(struct mean_residual *m, const struct global_config *g, uint64_t round, uint32_t attempt);
/* Returns what encodes the mean of chunk i of the attempt's round: *room, filled, whose `left` the
 * encoding must fill; NULL if it is off. May be called again for the same chunk. */
const struct feedback *mean_residual_of(struct mean_residual *m, const struct global_config *g, uint32_t i,
										struct feedback *room);
/* Sets e = e' of the chunks whose means were made in that attempt: `round` is committed with its
 * result. Another attempt than the last one begun (0: the result was fetched): all of the chunks
 * that the round exchanged are lost. */
void mean_residual_commit(struct mean_residual *m, const struct global_config *g, uint64_t round, uint32_t attempt);
/* Forgets what the attempt under way left. */
void mean_residual_drop(struct mean_residual *m, const struct global_config *g);
/* Loses the residual of the chunks that `round` exchanges, unless it is of the attempt `former`:
 * the one that was committed in the last round before it that exchanged them (0: not known). */
void mean_residual_prove(struct mean_residual *m, const struct global_config *g, uint64_t round, uint32_t former);
/* Loses the residual of chunk i of `round`: another member owns it now. */
void mean_residual_lose(struct mean_residual *m, const struct global_config *g, uint64_t round, uint32_t i);
/* Loses all of it. */
void mean_residual_forget(struct mean_residual *m, const struct global_config *g);
/* Returns true if it holds a chunk that `round` exchanges. */
bool mean_residual_holds(const struct mean_residual *m, const struct global_config *g, uint64_t round);

/* The form of what an attempt left, as bytes, little-endian: u64 round, u32 attempt, u32 chunks;
 * for each its number in the round's vector (u32), ascending; then its values. */
enum { MEAN_RESIDUAL_HEAD_BYTES = 16 };
size_t mean_residual_saved_bytes(const struct mean_residual *m, const struct global_config *g);
/* Returns the most that any attempt at any round can be: a bound for files. */
size_t mean_residual_max_bytes(const struct global_config *g);
void mean_residual_save(const struct mean_residual *m, const struct global_config *g, uint8_t *out);
/* Takes over what another process of this owner left, as if begun and made here. RV_E_CORRUPT: it
 * cannot be that of a round of this run; nothing is made then. */
enum rv_err mean_residual_load(struct mean_residual *m, const struct global_config *g, const uint8_t *in, size_t n,
							   struct rv_errtext *et);

#endif
