/* sandbox.h: what a worker goes on to need of the system, and that it gives up the rest. */
#ifndef RV_WORKER_OPTIONS_SANDBOX_H
#define RV_WORKER_OPTIONS_SANDBOX_H

#include "base/os_sandbox.h"
#include "worker/options/options.h"

/* Gives up all files but the worker's directory (made if it is not there), its text, tokenizer,
 * weights and log file, those of the system, and of GPUs' libraries; and system calls that it does
 * not make (base/os_sandbox.h). `data` and `tokenizer`: as remembered in the directory, "" for
 * none. The process must have one thread. The faults of rv_dir_make and os_sandbox_enter. */
enum rv_err worker_sandbox_enter(const struct worker_options *o, const char *data, const char *tokenizer,
								 struct os_sandbox *out, struct rv_errtext *et);

#endif
