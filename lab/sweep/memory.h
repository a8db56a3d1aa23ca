/* memory.h: what the process of a sweep's cell will take, before it is started. */
#ifndef RV_LAB_SWEEP_MEMORY_H
#define RV_LAB_SWEEP_MEMORY_H

#include "lab/sweep/grid.h"
#include "train/memory/fit.h"

#include <stddef.h>

/* Bytes of the host; 0: no plan can be made, and the cell will say why. */
size_t sweep_cell_memory(const struct sweep_cell *c);
/* Whether it fits with nothing beside it: RV_E_NOMEM, with what would, unless its short-of-memory is "warn". A GPU's
 * memory is left to the cell, for asking would take of it: room->device is SIZE_MAX. */
enum rv_err sweep_cell_fit(const struct sweep_cell *c, const struct memory_room *room, struct rv_errtext *et);

#endif
