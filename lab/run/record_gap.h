/* record_gap.h: whether a run's record contains everything that its checkpoint has done. Lines are
 * appended as the run goes; a file that was cut, emptied or restored from an older copy lacks some,
 * and a resumed run does not write them again. */
#ifndef RV_LAB_RECORD_GAP_H
#define RV_LAB_RECORD_GAP_H

#include "lab/run/lab_run.h"

/* Returns true if DIR/metrics.jsonl lacks rounds that DIR/checkpoint.rvc has done; *what names
 * them. Also false if no checkpoint can be read. */
bool record_gap(const char *dir, struct rv_errtext *what);

/* Removes DIR/checkpoint.rvc if there is a gap, so that the run begins anew; *what then gives the
 * reason, else it is empty. A checkpoint of another run than `r` stays. The faults of unlink. */
enum rv_err record_gap_forget(const struct lab_run *r, const char *dir, struct rv_errtext *what, struct rv_errtext *et);

#endif
