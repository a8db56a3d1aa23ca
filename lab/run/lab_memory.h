/* lab_memory.h: the memory plan of a run of the lab, before it begins. */
#ifndef RV_LAB_LAB_MEMORY_H
#define RV_LAB_LAB_MEMORY_H

#include "lab/run/lab_run.h"
#include "train/memory/check.h"

/* mapped_bytes: dataset_mapped_bytes, or 0. What memory_plan_make refuses. */
enum rv_err lab_memory_plan(const struct lab_config *c, uint64_t mapped_bytes, struct memory_plan *out,
							struct rv_errtext *et);

/* What memory_check refuses and warns of. */
enum rv_err lab_memory_check(const struct lab_config *c, const struct memory_room *room, enum memory_short choice,
							 struct rv_events *ev, struct rv_errtext *et);
/* What memory_fit refuses. */
enum rv_err lab_memory_fit(const struct lab_config *c, const struct memory_room *room, struct rv_errtext *et);

#endif
