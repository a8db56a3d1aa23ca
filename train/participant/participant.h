/* participant.h: what one worker does with its replica in a round, and what it must remember of it. One object for the
 * worker's trainer thread, the lab, replay and the simulator.
 *
 *     begin, step ...    H inner steps move theta_local (after a late adoption: those that are missing)
 *     encode             the outer gradient, with the residual of earlier rounds, becomes p->encoded
 *     begin, step ...    of the next round, ahead, while this one is reduced (overlap-steps; with updates = delayed or
 *                        eager all H, and the first of them gives the contribution away: outer/eager.h)
 *     apply, or commit   the round is committed with this contribution in its mean (ADOPT), or without it (KEEP,
 *     and adopt          DISCARD: the run's `late`)
 *
 * Besides: start_over (a state was installed), spoiled (theta_local cannot be used), resume (another process goes on
 * from a replica that was saved). At every moment:
 * - theta_local contains `steps_done` steps of the contribution to `round` and `ahead` steps of the next one. A step is
 *   in one contribution.
 * - The residual (outer/contribution.h) becomes what the encoding left when the round is committed with it. A
 *   contribution that is given up leaves the residual as it was.
 * - The same calls give the same bits: all arithmetic is elementwise, in one order.
 *
 * `struct replica` is opaque here, and reached through a table of operations: the simulator defines a tiny one. No I/O,
 * no clock; memory is taken by participant_init and, for KEEP, by participant_apply.
 *
 * Ownership: borrows the operations, the replica, the run and every `g`. Threads: one at a time; participants may share
 * a global_state that nobody changes meanwhile (participant_adopt uses its scratch: one after the other).
 */
#ifndef RV_TRAIN_PARTICIPANT_H
#define RV_TRAIN_PARTICIPANT_H

#include "outer/contribution.h"
#include "outer/eager.h"
#include "outer/global.h"
#include "train/outer_device.h"
#include "train/replica.h"

#include <stdbool.h>

/* As the functions of train/replica.h and train/outer_device.h of such names. */
struct participant_ops {
	const float *(*theta)(struct replica *r);
	void (*set_part)(struct replica *r, size_t at, size_t n, const float *values);
	void (*get_part)(struct replica *r, size_t at, size_t n, float *values);
	void (*shift)(struct replica *r, const float *from, const float *to);
	void (*set_anchor)(struct replica *r, const float *theta);
	void (*set_step)(struct replica *r, uint64_t global_step);
	enum rv_err (*step)(struct replica *r, struct step_stats *out, struct rv_errtext *et);
	void (*keep)(struct replica *r, float *vector); /* a vector that is saved with the replica */
	bool (*heal)(struct replica *r);
	void (*settle)(struct replica *r); /* waits until no copy is being made of what is about to change */
	/* Replaces *et by which parameters cannot be sent, measured from `reference`; keeps it where all can. */
	void (*explain)(struct replica *r, const struct run_config *run, const float *reference, struct rv_errtext *et);
	/* The outer gradient and the outer step, by whatever device has the weights. */
	enum rv_err (*encode)(struct outer_device *d, struct replica *r, const struct global_state *g, uint8_t *out,
						  struct rv_errtext *et);
	enum rv_err (*apply)(struct outer_device *d, struct replica *r, struct global_state *g, const uint8_t *reduced,
						 const struct rv_hash *digest, struct rv_errtext *et);
	void (*unpin)(struct outer_device *d);
};
/* Of a real replica. */
extern const struct participant_ops participant_replica;

/* Open to its users for reading. */
struct participant {
	const struct participant_ops *ops;
	struct replica *replica;
	const struct run_config *run;
	struct contribution contribution;
	struct eager eager;
	struct outer_device device;
	uint8_t *encoded; /* the contribution to `round`, from its encoding on; global_max_sent_bytes */
	uint64_t round;   /* the round that theta_local works on: the next one to be reduced, of the state it began from */
	uint64_t steps_done, tokens;  /* of the contribution to it */
	uint64_t ahead, ahead_tokens; /* of the next one */
	bool gave_away;
};

/* A participant of `run`, whose theta_local is g->theta: nothing is done. RV_E_NOMEM; releasing
 * *p is fine then. */
enum rv_err participant_init(struct participant *p, const struct participant_ops *ops, struct replica *replica,
							 const struct run_config *run, const struct global_state *g, struct rv_errtext *et);
void participant_release(struct participant *p); /* before its replica and before g; a zero one is fine */

/* In all that follows `g` is the shared state of p->round (a view of it will do; only theta, round and cfg are read),
 * except where it says otherwise. */

/* Returns what the outer gradient under way is measured from, (n): theta, or a start of its own (outer/eager.h). */
const float *participant_reference(const struct participant *p, const struct global_state *g);
/* Prepares for inner steps of `round`: p->round, or the one after it: ahead. The learning rate and the proximal term
 * are then those of the step that comes next. */
void participant_begin(struct participant *p, const struct global_state *g, uint64_t round);
/* Gives the contribution to p->round away where outer steps come late: theta_local is then where the steps of the next
 * round begin. It is encoded, and nothing that is saved from now on has it. participant_step does it when it is due. */
void participant_give_away(struct participant *p, const struct global_state *g);
/* Makes one inner step of `round`, as begun, and counts it; before the first one ahead of late updates it gives the
 * contribution away. Faults as replica_step_over; nothing is counted then. */
enum rv_err participant_step(struct participant *p, const struct global_state *g, uint64_t round,
							 struct step_stats *out, struct rv_errtext *et);
/* Encodes the contribution to p->round into p->encoded. No step ahead has been made. RV_E_RANGE: it is not finite, or
 * too large to be averaged: participant_spoiled comes next. */
enum rv_err participant_encode(struct participant *p, const struct global_state *g, struct rv_errtext *et);

/* p->round is committed with this contribution, or will be for certain: the residual becomes what the encoding left. */
void participant_commit(struct participant *p, const struct global_state *g);
/* What becomes of theta_local in an outer step. */
enum participant_adopt {
	PARTICIPANT_ADOPT,  /* our contribution is in the mean, and participant_commit was called: theta_local follows theta
						 * (participant_mix); steps ahead are the next contribution's */
	PARTICIPANT_KEEP,   /* it is not: progress stays, moved by theta's movement, and steps ahead join it. Where the
						 * contribution was given away only the steps ahead are left */
	PARTICIPANT_DISCARD /* it is not: theta_local is theta, all of it; steps ahead are lost, too */
};
/* After the outer step of p->round: g is the state that follows, `before` (n) theta before it (only read for KEEP).
 * p->round is the next one then. Returns whether a new contribution begins (else the one under way goes on). */
bool participant_adopt(struct participant *p, struct global_state *g, const float *before, enum participant_adopt how);
/* Makes the outer step of p->round on *g, whose only participant here this is, commits and adopts it. `digest` is that of
 * `reduced`. RV_E_CORRUPT: another one than the committed, or what global_apply refuses; RV_E_NOMEM. Nothing has
 * changed then. *begins as participant_adopt returns. */
enum rv_err participant_apply(struct participant *p, struct global_state *g, const uint8_t *reduced,
							  const struct rv_hash *digest, enum participant_adopt how, bool *begins,
							  struct rv_errtext *et);
/* Of what `round` exchanged: theta_local <- mix theta_local + (1 - mix) theta (Streaming DiLoCo, arXiv 2501.18512,
 * equation 4). mix 0: theta_local is theta there, to the bit; mix 1: it stays as it is. What the round did not exchange
 * is not touched. Uses g->scratch. A part of participant_adopt. */
void participant_mix(struct participant *p, struct global_state *g, uint64_t round);

/* g is any state of the run: theta_local becomes its theta, the residual and the start of its own are forgotten, no
 * step of g->round is done. The inner optimizer stays. */
void participant_start_over(struct participant *p, const struct global_state *g);
/* The same after a fault: *et, which says why, says which parameters, and moments that are not finite begin anew. */
void participant_spoiled(struct participant *p, const struct global_state *g, struct rv_errtext *et);
/* Another process has loaded the replica. `exact`: it was saved in g's very state, after these steps: it goes on, and
 * what was encoded then is encoded again, for what it leaves. Else it starts over. */
void participant_resume(struct participant *p, const struct global_state *g, bool exact, uint64_t steps_done,
						uint64_t tokens);
/* Returns whether the replica, saved now, can be resumed: steps ahead cannot (docs/decisions/0019). */
bool participant_can_be_saved(const struct participant *p);

#endif
