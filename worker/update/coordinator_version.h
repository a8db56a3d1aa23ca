/* coordinator_version.h: which version the coordinator of a worker's run is of. */
#ifndef RV_WORKER_UPDATE_COORDINATOR_VERSION_H
#define RV_WORKER_UPDATE_COORDINATOR_VERSION_H

#include "base/err.h"

#include <stdbool.h>

enum { SOFTWARE_BYTES = 64 };

/* Returns true if the worker of this directory has joined a run. */
bool has_joined(const char *dir);
/* Asks the coordinator of that run for its public status, and sets `out` to its software, such as
 * "rivulet 0.1.0+0123456789ab", safe to show. Blocks up to 30 s. The faults of membership_load()
 * and http_client_poll(); RV_E_PROTOCOL: the answer has none. */
enum rv_err coordinator_version(const char *dir, char out[SOFTWARE_BYTES], struct rv_errtext *et);

#endif
