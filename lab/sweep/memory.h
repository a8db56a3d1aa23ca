/* memory.h: the memory of a cell's process, before it is started. */
#ifndef RV_LAB_SWEEP_MEMORY_H
#define RV_LAB_SWEEP_MEMORY_H

#include "lab/sweep/grid.h"
#include "train/memory/fit.h"

#include <stddef.h>

/* Returns bytes of the host's memory; 0: no plan can be made, and the cell will report why. */
size_t sweep_cell_memory(const struct sweep_cell *c);
/* Checks that the cell fits alone: RV_E_NOMEM, with the remedy, unless its short-of-memory is
 * "warn". A GPU's memory is checked by the cell only, as asking for it would use some: room->device
 * is SIZE_MAX. */
enum rv_err sweep_cell_fit(const struct sweep_cell *c, const struct memory_room *room, struct rv_errtext *et);

#endif
