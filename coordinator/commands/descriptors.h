/* descriptors.h: how many connections the limit of open files leaves room for (RLIMIT_NOFILE). */
#ifndef RV_COORDINATOR_COMMANDS_DESCRIPTORS_H
#define RV_COORDINATOR_COMMANDS_DESCRIPTORS_H

#include "base/err.h"

#include <stdbool.h>

enum {
	DESCRIPTORS_MAX_CONNECTIONS = 16384, /* four for each member that may be here */
	DESCRIPTORS_LEAST_CONNECTIONS = 8,
	DESCRIPTORS_DEFAULT_CONNECTIONS = 4096,
	DESCRIPTORS_OF_RELAY = 2048, /* its stations, links and strangers (net/limits.h) */
	DESCRIPTORS_OTHER = 64       /* the store, logs, signals, timers */
};

/* Checks a choice: 0, or DESCRIPTORS_LEAST_CONNECTIONS at least. RV_E_RANGE. */
enum rv_err descriptors_check(int wanted, struct rv_errtext *et);
/* Raises this process's soft limit, as far as the hard one goes, so that `wanted` connections fit
 * beside the coordinator's other files, and those of its relay if it has one. *got: how many fit.
 * wanted 0: as many as fit, DESCRIPTORS_DEFAULT_CONNECTIONS at most. RV_E_RANGE: fewer than wanted
 * fit, or fewer than DESCRIPTORS_LEAST_CONNECTIONS. */
enum rv_err descriptors_reserve(int wanted, bool relay, int *got, struct rv_errtext *et);

#endif
