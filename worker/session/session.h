/* session.h: one run of rivulet-worker, from the invite link to the end: joins, recovers, trains,
 * reduces, serves peers. */
#ifndef RV_WORKER_SESSION_SESSION_H
#define RV_WORKER_SESSION_SESSION_H

#include "worker/options/options.h"

/* Blocks until the run is done (RV_OK), the user asks to stop (RV_OK with the state saved; a second
 * signal returns RV_E_CANCELLED at once), or the worker cannot go on. `link` may be NULL if the
 * directory has it. `signals_fd`: base/signals.h. */
enum rv_err session_run(const struct worker_options *o, const char *link, int signals_fd, struct rv_errtext *et);

/* Checks that the run of which `o->dir` is a member, if it is one, can live with the settings.
 * RV_E_RANGE, RV_E_FULL, RV_E_NOMEM: it cannot; the faults of device_choose. */
enum rv_err session_check_kept(const struct worker_options *o, struct rv_errtext *et);

#endif
