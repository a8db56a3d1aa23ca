/* forget_run.h: removes from a worker's directory what only its run needed: the membership with its
 * key and link, what was agreed to, the state, the text that it fetched. Settings, metrics, logs
 * and exported weights stay. */
#ifndef RV_WORKER_JOIN_FORGET_RUN_H
#define RV_WORKER_JOIN_FORGET_RUN_H

#include "base/err.h"

/* Checks that a worker was started in the directory. RV_E_NOTFOUND names one that is another's. */
enum rv_err forget_run_check(const char *dir, struct rv_errtext *et);

/* Removes it, the membership first: a removal that is cut short leaves a directory that is not a
 * member's. The caller holds the directory's lock. RV_E_NOTFOUND: there is no such directory;
 * RV_E_IO names what could not be removed. */
enum rv_err forget_run(const char *dir, struct rv_errtext *et);

#endif
