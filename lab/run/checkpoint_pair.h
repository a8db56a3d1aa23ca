/* checkpoint_pair.h: a run's checkpoint in its directory, and the one before it, from which the run goes on when the
 * newest is damaged.
 */
#ifndef RV_LAB_CHECKPOINT_PAIR_H
#define RV_LAB_CHECKPOINT_PAIR_H

#include "lab/run/lab_run.h"

#define LAB_CHECKPOINT_BEFORE_FILE  "checkpoint-before.rvc"
#define LAB_CHECKPOINT_DAMAGED_FILE "checkpoint-damaged.rvc"

/* LAB_CHECKPOINT_FILE in `dir`; what that was is kept as LAB_CHECKPOINT_BEFORE_FILE, where the file system has hard
 * links. At any moment a whole LAB_CHECKPOINT_FILE is there, once one was. What lab_run_save refuses. */
enum rv_err checkpoint_pair_save(struct lab_run *r, const char *dir, struct rv_errtext *et);

/* *resumed: there was one. Whoever removes LAB_CHECKPOINT_FILE wants to begin anew: the one before it counts only when
 * the newest is there, and damaged. Then it takes its place, the damaged one is kept as LAB_CHECKPOINT_DAMAGED_FILE (in
 * the place of an earlier one), and *damage says so; otherwise *damage is empty. What lab_run_load refuses; a newest
 * that cannot be read now (RV_E_IO) stays where it is; of two damaged ones the text names both. */
enum rv_err checkpoint_pair_load(struct lab_run *r, const char *dir, bool *resumed, struct rv_errtext *damage,
								 struct rv_errtext *et);

#endif
