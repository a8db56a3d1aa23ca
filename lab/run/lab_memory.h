/* lab_memory.h: the memory of a run of the lab, as train/memory plans and checks it. */
#ifndef RV_LAB_LAB_MEMORY_H
#define RV_LAB_LAB_MEMORY_H

#include "lab/run/lab_run.h"
#include "train/memory/check.h"

/* Returns what to plan for. Borrows from `c`. mapped_bytes: dataset_mapped_bytes, or 0. */
struct memory_request lab_memory_request(const struct lab_config *c, uint64_t mapped_bytes);

#endif
