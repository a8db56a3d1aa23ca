/* record_gap.h: whether a run's record tells of everything that its checkpoint has done. Lines are appended as the run
 * goes; a file that was cut, emptied or put back from an older copy has lost some, and a resumed run does not make them
 * again. */
#ifndef RV_LAB_RECORD_GAP_H
#define RV_LAB_RECORD_GAP_H

#include "lab/run/lab_run.h"

/* True: DIR/metrics.jsonl lacks rounds that DIR/checkpoint.rvc has done; *what says which. False too where no
 * checkpoint can be read: there is nothing to go on from. */
bool record_gap(const char *dir, struct rv_errtext *what);

/* Where there is a gap, DIR/checkpoint.rvc is removed, and the run begins anew: then *what says why; else it is empty.
 * A checkpoint of another run than `r` stays. What unlink fails with. */
enum rv_err record_gap_forget(const struct lab_run *r, const char *dir, struct rv_errtext *what, struct rv_errtext *et);

#endif
