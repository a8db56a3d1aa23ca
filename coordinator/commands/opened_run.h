/* opened_run.h: a run whose directory is ours: locked, its key read, its store replayed into a service. */
#ifndef RV_COORDINATOR_OPENED_RUN_H
#define RV_COORDINATOR_OPENED_RUN_H

#include "coordinator/service/service.h"
#include "coordinator/store/run_dir.h"

struct opened_run {
	struct run_dir dir;
	int lock;
	struct identity key;
	struct store *store;
	struct service *service;
	char config[NET_MAX_CONFIG_BYTES];
};

/* RV_E_BUSY: another process has it; `patience_ms`: how long to try. `advertise` NULL: the one of the last `serve`.
 * RV_E_NOTFOUND (no run), RV_E_AUTH, RV_E_CORRUPT, ... With `events` (to be served) a full disk is told, and no fault.
 */
enum rv_err opened_run_open(const struct run_dir *dir, int64_t patience_ms, const struct address *advertise,
							struct rv_events *events, struct opened_run *out, struct rv_errtext *et);
/* Harmless on a zeroed struct. */
void opened_run_close(struct opened_run *r);

#endif
