/* lab_memory.h: the memory plan of a run of the lab, before it begins. */
#ifndef RV_LAB_LAB_MEMORY_H
#define RV_LAB_LAB_MEMORY_H

#include "lab/run/lab_run.h"
#include "train/memory/check.h"

/* Plans the memory. mapped_bytes: dataset_mapped_bytes, or 0. The faults of memory_plan_make. */
enum rv_err lab_memory_plan(const struct lab_config *c, uint64_t mapped_bytes, struct memory_plan *out,
							struct rv_errtext *et);

/* Checks the plan against `room`: the faults and warnings of memory_check. */
enum rv_err lab_memory_check(const struct lab_config *c, const struct memory_room *room, enum memory_short choice,
							 struct rv_events *ev, struct rv_errtext *et);
/* Checks that a run fits: the faults of memory_fit. */
enum rv_err lab_memory_fit(const struct lab_config *c, const struct memory_room *room, struct rv_errtext *et);

#endif
