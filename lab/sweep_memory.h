/* sweep_memory.h: what the process of a sweep's cell will take, before it is started. */
#ifndef RV_LAB_SWEEP_MEMORY_H
#define RV_LAB_SWEEP_MEMORY_H

#include "lab/sweep_grid.h"

#include <stddef.h>

/* Bytes of the host; 0: no plan can be made, and the cell will say why. */
size_t sweep_cell_memory(const struct sweep_cell *c);
/* Whether it fits into `host_bytes` with nothing beside it: RV_E_NOMEM, with what would. A GPU's memory is left to the
 * cell, for asking would take of it. */
enum rv_err sweep_cell_fit(const struct sweep_cell *c, size_t host_bytes, struct rv_errtext *et);

#endif
