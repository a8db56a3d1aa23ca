/* session.h: one run of rivulet-worker, from the invite link to the end: joins, recovers, trains, reduces, serves
 * peers.
 *
 * Blocks until the run is done (RV_OK), the user asks to stop (RV_OK: state saved; a second signal: RV_E_CANCELLED at
 * once), or something makes going on impossible. `signals_fd`: base/signals.h.
 */
#ifndef RV_WORKER_SESSION_SESSION_H
#define RV_WORKER_SESSION_SESSION_H

#include "worker/options/options.h"

/* `link` may be NULL when the directory knows it. */
enum rv_err session_run(const struct worker_options *o, const char *link, int signals_fd, struct rv_errtext *et);

#endif
