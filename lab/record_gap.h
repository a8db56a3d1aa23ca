/* record_gap.h: whether a run's record tells of everything that its checkpoint has done. Lines are appended as the run
 * goes; a file that was cut, emptied or put back from an older copy has lost some, and a resumed run does not make them
 * again. */
#ifndef RV_LAB_RECORD_GAP_H
#define RV_LAB_RECORD_GAP_H

#include "base/err.h"

#include <stdbool.h>

/* True: DIR/metrics.jsonl lacks rounds that DIR/checkpoint.rvc has done; *what says which. False too where no
 * checkpoint can be read: there is nothing to go on from. */
bool record_gap(const char *dir, struct rv_errtext *what);

#endif
