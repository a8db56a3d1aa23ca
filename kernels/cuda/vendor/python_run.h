/* python_run.h: asking a Python where its packages are, by running it. */
#ifndef RV_CUDA_VENDOR_PYTHON_RUN_H
#define RV_CUDA_VENDOR_PYTHON_RUN_H

#include "kernels/cuda/vendor/places.h"

/* Adds the folders of the interpreter's sys.path whose names end in "-packages". It is run without a shell, in a process
 * group of its own, and the group is killed after timeout_ms; what it printed until then counts. An interpreter that
 * fails adds nothing. */
void python_ask(struct place_list *out, const char *interpreter, int timeout_ms);

#endif
