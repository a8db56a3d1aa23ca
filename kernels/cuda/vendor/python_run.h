/* python_run.h: finding a Python's packages by running it. */
#ifndef RV_CUDA_VENDOR_PYTHON_RUN_H
#define RV_CUDA_VENDOR_PYTHON_RUN_H

#include "kernels/cuda/vendor/places.h"

/* Adds the folders of the interpreter's sys.path whose names end in "-packages". Runs it without a
 * shell, in its own process group, and kills the group after timeout_ms; its output until then
 * counts. An interpreter that fails adds nothing. */
void python_ask(struct place_list *out, const char *interpreter, int timeout_ms);

#endif
