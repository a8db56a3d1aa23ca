/* pace.h: how fast each worker is, by model, and what follows from it: how many inner steps it
 * takes in a round, who is in time for the averaging, and how long the round takes.
 *
 * Worker i takes cfg.step_ms / speed_i for an inner step. Its contribution is H_i steps: H, or with
 * Dynamic Local Updates (DyLU: Liu et al., Asynchronous Local-SGD, arXiv 2401.09135) in proportion
 * to its speed, so that all are done at about the same time:
 *     H_i = max(1, floor(H speed_i / max_j speed_j))
 * Real workers, which do not know each other's speeds, have run.round_ms instead: as many of H as
 * fit into it. The round closes as the coordinator closes it (quorum): when all are done, or
 * run.grace_ms after run.min_workers are. A worker not done by then is late, has taken the steps
 * that its speed allowed, and with late = keep goes on from there: its contribution to a later
 * round is these steps and those that are missing to H_i. The learning rate of step j of a
 * contribution is that of step j of the round that it is for, as for a real worker.
 *
 * Pure arithmetic: every call gives the same. */
#ifndef RV_LAB_PACE_H
#define RV_LAB_PACE_H

#include "lab/run/lab_run.h"

struct pace_round {
	uint64_t steps[LAB_MAX_WORKERS]; /* inner steps in this round, beside those kept */
	bool in_time[LAB_MAX_WORKERS];
	int n_in_time;
	double duration_ms; /* time until the round closes; averaging not included */
};

/* Computes the round's pace. kept_steps (c->workers): inner steps of each worker's unfinished
 * contribution, from rounds that it missed. */
void pace_of_round(const struct lab_config *c, const uint64_t *kept_steps, struct pace_round *out);

/* Parses "1:1:0.5" or "1,1,0.5": worker i has the value i modulo how many there are; "": all 1.
 * RV_E_INVALID; RV_E_RANGE: a value outside of [0.001, 1000], or more than LAB_MAX_WORKERS
 * values. */
enum rv_err pace_parse_speeds(const char *text, double speeds[LAB_MAX_WORKERS], struct rv_errtext *et);

#endif
