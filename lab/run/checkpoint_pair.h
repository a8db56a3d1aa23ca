/* checkpoint_pair.h: a run's checkpoint in its directory, and the previous one, from which the run
 * continues if the newest is damaged. */
#ifndef RV_LAB_CHECKPOINT_PAIR_H
#define RV_LAB_CHECKPOINT_PAIR_H

#include "lab/run/lab_run.h"

#define LAB_CHECKPOINT_BEFORE_FILE  "checkpoint-before.rvc"
#define LAB_CHECKPOINT_DAMAGED_FILE "checkpoint-damaged.rvc"

/* Writes LAB_CHECKPOINT_FILE in `dir`; the previous one is kept as LAB_CHECKPOINT_BEFORE_FILE, if
 * the file system has hard links. At any moment a whole LAB_CHECKPOINT_FILE exists, once one did.
 * The faults of lab_run_save. */
enum rv_err checkpoint_pair_save(struct lab_run *r, const char *dir, struct rv_errtext *et);

/* Loads the checkpoint. *resumed: there was one. The previous one counts only if the newest exists
 * and is damaged: a user who removes LAB_CHECKPOINT_FILE wants to begin anew. Then it replaces the
 * newest, the damaged one is kept as LAB_CHECKPOINT_DAMAGED_FILE (replacing an earlier one), and
 * *damage reports that; otherwise *damage is empty. The faults of lab_run_load; a newest that
 * cannot be read now (RV_E_IO) stays in place; if both are damaged the text names both. */
enum rv_err checkpoint_pair_load(struct lab_run *r, const char *dir, bool *resumed, struct rv_errtext *damage,
								 struct rv_errtext *et);

#endif
