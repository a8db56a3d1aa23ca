/* report.h: the memory that a process said it would take, and what it took, as events. */
#ifndef RV_TRAIN_MEMORY_REPORT_H
#define RV_TRAIN_MEMORY_REPORT_H

#include "base/event.h"
#include "train/memory/plan.h"

/* "memory", and where a GPU computes "device_memory", with what its workspace is for: at the start. */
void memory_report_plan(struct rv_events *ev, const struct memory_plan *p);
/* "memory_peak": this process's peak resident set beside the plan, at the end. */
void memory_report_peak(struct rv_events *ev, const struct memory_plan *p);

#endif
