/* participant.h: what one worker does with its replica in a round, and what it must remember of it.
 * One object for the worker's trainer thread, the lab, replay and the simulator.
 *
 *     begin, step ...    H inner steps move theta_local (after a late adoption: the missing ones)
 *     encode             the outer gradient, with the earlier residual, becomes p->encoded
 *     begin, step ...    steps of the next round, ahead, while this one is reduced (overlap-steps;
 *                        with updates = delayed or eager all H, and the first of them gives the
 *                        contribution away: outer/eager.h)
 *     apply, or commit   the round is committed with this contribution in its mean (ADOPT), or
 *     and adopt          without it (KEEP, DISCARD: the run's `late`)
 *
 * Besides: start_over (a state was installed), spoiled (theta_local is unusable), resume (another
 * process goes on from a saved replica). At every moment:
 * - theta_local contains `steps_done` steps of the contribution to `round` and `ahead` steps of the
 *   next one. A step is in one contribution.
 * - The residual (outer/contribution.h) becomes what the encoding left when the round is committed
 *   with it. A discarded contribution leaves the residual as it was.
 * - The same calls give the same bits: all arithmetic is elementwise, in one order.
 *
 * `struct replica` is opaque here, and reached through a table of operations: the simulator defines
 * a tiny one. No I/O, no clock; participant_init and, for KEEP, participant_apply allocate.
 *
 * Ownership: borrows the operations, the replica, the run and every `g`. Threads: one at a time;
 * participants may share a global_state that does not change meanwhile (participant_adopt uses its
 * scratch: one after the other). */
#ifndef RV_TRAIN_PARTICIPANT_H
#define RV_TRAIN_PARTICIPANT_H

#include "outer/contribution.h"
#include "outer/eager.h"
#include "outer/global.h"
#include "train/outer_device.h"
#include "train/participant/progress.h"
#include "train/replica.h"

#include <stdbool.h>

/* The functions of the same names in train/replica.h and train/outer_device.h, and a few more. */
struct participant_ops {
	const float *(*theta)(struct replica *r);
	void (*set_part)(struct replica *r, size_t at, size_t n, const float *values);
	void (*get_part)(struct replica *r, size_t at, size_t n, float *values);
	void (*shift)(struct replica *r, size_t at, size_t n, const float *from, const float *to);
	void (*lay_by)(struct replica *r, const float *values);
	void (*laid_by)(struct replica *r, size_t at, size_t n, float *values);
	void (*set_anchor)(struct replica *r, const float *theta);
	void (*set_step)(struct replica *r, uint64_t global_step);
	enum rv_err (*step)(struct replica *r, struct step_stats *out, struct rv_errtext *et);
	void (*read)(struct replica *r, const struct reading *reading, uint64_t next);
	uint64_t (*next)(const struct replica *r);
	void (*keep)(struct replica *r, float *vector); /* adds a vector to save with the replica */
	bool (*heal)(struct replica *r);
	void (*settle)(struct replica *r); /* waits until no copy of the replica is being made */
	/* Writes into *et which parameters cannot be sent, measured from `reference`; keeps *et if all
	 * can. */
	void (*explain)(struct replica *r, const struct run_config *run, const float *reference, struct rv_errtext *et);
	/* The outer gradient and the outer step, on the device that has the weights. */
	enum rv_err (*encode)(struct outer_device *d, struct replica *r, const struct global_state *g, uint8_t *out,
						  struct rv_errtext *et);
	enum rv_err (*apply)(struct outer_device *d, struct replica *r, struct global_state *g, const uint8_t *reduced,
						 const struct rv_hash *digest, struct rv_errtext *et);
	void (*unpin)(struct outer_device *d);
};
/* The operations on a real replica. */
extern const struct participant_ops participant_replica;

/* Callers may read the fields; only participant_* write them. */
struct participant {
	const struct participant_ops *ops;
	struct replica *replica;
	const struct run_config *run;
	struct contribution contribution;
	struct eager eager;
	struct outer_device device;
	struct contribution_form form; /* in which it was sent */
	uint8_t *encoded;              /* the contribution to `round`, from its encoding on; global_max_sent_bytes */
	uint64_t round;                /* the round of the contribution: the next to be reduced */
	uint64_t steps_done, tokens;   /* in the contribution to `round` */
	uint64_t ahead, ahead_tokens;  /* steps and tokens of the next one */
	uint64_t first, sequences;     /* numbers of the contribution's sequences: participant_progress */
	uint64_t ahead_sequences;      /* of the next one: they follow those */
	bool gave_away;                /* the contribution to `round` was taken out of theta_local */
};

/* Initializes a participant of `run`, without any step: theta_local must be g->theta. RV_E_NOMEM;
 * *p may be released then. */
enum rv_err participant_init(struct participant *p, const struct participant_ops *ops, struct replica *replica,
							 const struct run_config *run, const struct global_state *g, struct rv_errtext *et);
/* Frees what *p owns; call it before the replica and g are freed. A zero *p is fine. */
void participant_release(struct participant *p);

/* Below, `g` is the shared state of p->round (or a view: only theta, round and cfg are read) unless
 * a function states otherwise. */

/* Returns the reference of the outer gradient under way, (n): theta, or a start of its own
 * (outer/eager.h). */
const float *participant_reference(const struct participant *p, const struct global_state *g);
/* Sets what it reads from now on: what its member holds of the text. The next step goes on behind
 * the sequences that theta_local contains; if it contains none, at the first of `reading`. Without
 * a call the replica reads its shard. */
void participant_read(struct participant *p, const struct reading *reading);
/* Prepares for inner steps of `round` (p->round, or the one after it: ahead): sets the learning
 * rate and the proximal term of the next step. */
void participant_begin(struct participant *p, const struct global_state *g, uint64_t round);
/* Takes the encoded contribution to p->round out of theta_local if outer steps come late (else does
 * nothing): theta_local becomes the start of the next round's steps. participant_step calls it when
 * it is due. */
void participant_give_away(struct participant *p, const struct global_state *g);
/* Makes one inner step of `round`, as begun, and counts it; with late updates, gives the
 * contribution away before the first step ahead. Faults as replica_step_over; only sequences are
 * counted then. */
enum rv_err participant_step(struct participant *p, const struct global_state *g, uint64_t round,
							 struct step_stats *out, struct rv_errtext *et);
/* Encodes the contribution to p->round into p->encoded, before any step ahead. RV_E_RANGE: it is
 * not finite, or too large to be averaged; the caller then calls participant_spoiled. */
enum rv_err participant_encode(struct participant *p, const struct global_state *g, struct rv_errtext *et);

/* Says how the contribution is sent, as the roster has it. Each encoding makes it the plain
 * form. */
void participant_send_as(struct participant *p, const struct contribution_form *form);
/* Makes the residual what the encoding left, and the form: p->round is committed with this
 * contribution, or is certain to be. */
void participant_commit(struct participant *p, const struct global_state *g);
/* The effect of an outer step on theta_local. */
enum participant_adopt {
	/* The contribution is in the mean, and participant_commit was called: theta_local follows theta
	 * (participant_mix); steps ahead begin the next contribution. */
	PARTICIPANT_ADOPT,
	/* It is not: progress stays, moved by theta's movement, and steps ahead join it. If the
	 * contribution was given away, only the steps ahead are left. With slow-members = skip or part
	 * a complete contribution grows by the steps of the next round. */
	PARTICIPANT_KEEP,
	PARTICIPANT_DISCARD /* it is not: theta_local becomes theta; steps ahead are lost, too */
};
/* Moves theta_local and p->round on after the outer step of p->round. `g`: the state after it;
 * `before` (n): theta before it, NULL: laid by in the replica (only read for KEEP). Returns
 * true if a new contribution begins, false if the one under way goes on. */
bool participant_adopt(struct participant *p, struct global_state *g, const float *before, enum participant_adopt how);
/* Makes the outer step of p->round on *g, which no other participant uses, commits (ADOPT) and
 * adopts it. `digest`: the committed one. *begins: what participant_adopt returns. RV_E_CORRUPT:
 * `reduced` has another digest, or global_apply refuses it; nothing has changed
 * then. */
enum rv_err participant_apply(struct participant *p, struct global_state *g, const uint8_t *reduced,
							  const struct rv_hash *digest, enum participant_adopt how, bool *begins,
							  struct rv_errtext *et);
/* Mixes the parameters that `round` exchanged: theta_local <- mix theta_local + (1 - mix) theta
 * (Streaming DiLoCo, arXiv 2501.18512, equation 4). mix 0: they become theta, to the bit; mix 1:
 * they stay. The other parameters stay. Uses g->scratch. A part of participant_adopt. */
void participant_mix(struct participant *p, struct global_state *g, uint64_t round);

/* Starts over from `g`, any state of the run: theta_local becomes its theta, the residual and the
 * start of its own are forgotten, no step of g->round is done. The inner optimizer stays. */
void participant_start_over(struct participant *p, const struct global_state *g);
/* Starts over after a fault: *et, the reason, then names the parameters, and moments that are NaN
 * or infinite are reset. */
void participant_spoiled(struct participant *p, const struct global_state *g, struct rv_errtext *et);
/* Goes on with a replica that this process has loaded. `exact`: it was saved in the very state `g`,
 * with this progress, without steps ahead; a complete contribution is encoded again if there is a
 * residual. Otherwise it starts over. */
void participant_resume(struct participant *p, const struct global_state *g, bool exact,
						const struct participant_progress *saved);
/* Returns what theta_local contains. */
struct participant_progress participant_progress(const struct participant *p);
/* Returns true if the replica, saved now, can be resumed: steps ahead cannot
 * (docs/decisions/0019). */
bool participant_can_be_saved(const struct participant *p);

#endif
