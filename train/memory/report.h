/* report.h: logs the memory that a process planned, and its peak. */
#ifndef RV_TRAIN_MEMORY_REPORT_H
#define RV_TRAIN_MEMORY_REPORT_H

#include "base/event.h"
#include "train/memory/plan.h"

/* Logs "memory", and with a GPU "device_memory" with the items of its workspace, at the start. */
void memory_report_plan(struct rv_events *ev, const struct memory_plan *p);
/* Logs "memory_peak", this process's peak resident set, with the plan, at the end. */
void memory_report_peak(struct rv_events *ev, const struct memory_plan *p);

#endif
