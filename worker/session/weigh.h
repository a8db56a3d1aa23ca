/* weigh.h: the weighing of a member under way, shared by weigh.c (the command, its phases),
 * weigh_job.c (on a thread of its own) and weigh_results.c (what people and programs see).
 *
 *   IDLE, DONE, FAILED -- the command --> PREPARING   the state before the first round is made from
 *                                            |        the disk, and the committed means are read
 *                                         FETCHING    each round's contributions, oldest first, as
 *                                            |        members keep them for a few rounds only
 *                          +-- next round -- STEPPING the outer step with all, and without one
 *                          |                 |
 *                          +------------- MEASURING   held-out losses of both, a few sequences at a
 *                                            |        time, between this worker's own inner steps
 *                                           DONE
 *
 * FAILED from everywhere, with the reason; also when its person stops it. A round whose
 * contributions do not all come is left out, with the reason, and the others are weighed: each is
 * measured from the state that was committed before it. */
#ifndef RV_WORKER_SESSION_WEIGH_H
#define RV_WORKER_SESSION_WEIGH_H

#include "worker/audit/weighing.h"
#include "worker/session/internal.h"

#include <stdatomic.h>

enum { WEIGH_SEQUENCES = 256, WEIGH_ROUNDS = AUDITOR_ROUNDS };

enum weigh_phase {
	WEIGH_IDLE,
	WEIGH_PREPARING,
	WEIGH_FETCHING,
	WEIGH_STEPPING,
	WEIGH_MEASURING,
	WEIGH_DONE,
	WEIGH_FAILED
};

struct weigh_round {
	uint64_t round;
	struct auditor_roster roster;
	bool has_part;         /* the member's contribution is in it */
	struct rv_hash digest; /* the committed one */
	struct blob *committed;
	struct rv_hash *leaves; /* of its chunks */
	uint8_t *without;
	bool measured;
	struct weighed found;
	bool left_out; /* because of `why`; the member had part in it */
	struct rv_errtext why;
};

struct session_weigh {
	struct gather *gather;
	struct auditor_roster rosters[AUDITOR_ROUNDS]; /* seen in documents, by round mod AUDITOR_ROUNDS */
	struct donor_budget budget;                    /* in rounds: what members give a worker that weighs */
	struct jobs *jobs;                             /* NULL: nothing was weighed yet */
	atomic_bool stop;                              /* the job under way ends soon */
	bool stopped;                                  /* by its person */

	enum weigh_phase phase;
	uint64_t ticket; /* by which the command's sender knows it */
	uint32_t member;
	uint32_t silent[WEIGH_ROUNDS]; /* members that gave nothing, or something else than they had committed to */
	int n_silent;
	int n, at; /* of rounds */
	struct weigh_round rounds[WEIGH_ROUNDS];
	struct global_state with, without; /* before, then after the outer step */
	enum rv_err err;                   /* FAILED */
	struct rv_errtext why;

	struct job job; /* PREPARING, STEPPING */
	struct session *s;
	enum rv_err job_err;
	struct rv_errtext job_why;

	struct trainer_slice slice; /* MEASURING */
	bool asked;                 /* the trainer has it */
	bool measures_without;
	uint64_t done; /* sequences of the two that were measured */
	uint64_t all;  /* of each; 0: not known yet */
	double losses[2][WEIGH_SEQUENCES];
	int64_t asked_us, again_us, until_us;
};

/* Make the job: w->with becomes the state before the first round, and the rounds get their means;
 * the outer steps of round w->at. They set w->job_err. */
void weigh_prepare(struct job *j);
void weigh_step(struct job *j);
/* Frees what a weighing holds beside its results. */
void weigh_release(struct session_weigh *w);

/* Returns true if the round is to be measured. */
static inline bool weigh_counts(const struct weigh_round *r) {
	return r->has_part && !r->left_out;
}
/* Returns how many held-out sequences each measurement reads at most. */
uint64_t weigh_sequences(const struct session *s);

/* Logs what a round has shown, why it is left out, or why the weighing ended. */
void weigh_log_round(struct session *s, const struct weigh_round *r);
void weigh_log_left_out(struct session *s, const struct weigh_round *r);
void weigh_log_failed(struct session *s);

#endif
