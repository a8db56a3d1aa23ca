/* delayed.c: every outer step comes one whole round late (arXiv 2502.12996; outer/eager.h): the
 * baseline of eager updates. Real workers do it with updates = delayed. */
#include "lab/methods/methods.h"
#include "lab/methods/synchronous.h"

const struct lab_method lab_method_delayed = {.name = "delayed", .updates = UPDATES_DELAYED, SYNCHRONOUS_METHOD};
