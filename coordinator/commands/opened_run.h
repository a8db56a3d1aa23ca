/* opened_run.h: a run whose directory this process holds: locked, its key read, its store replayed
 * into a service. */
#ifndef RV_COORDINATOR_OPENED_RUN_H
#define RV_COORDINATOR_OPENED_RUN_H

#include "coordinator/service/service.h"
#include "coordinator/store/run_dir.h"
#include "coordinator/store/run_keys.h"

struct opened_run {
	struct run_dir dir;
	int lock;
	struct run_keys keys;
	struct store *store;
	struct service *service;
	char config[NET_MAX_CONFIG_BYTES];
};

/* The relays that documents list. */
struct run_relays {
	uint8_t n;
	bool has_own; /* the first one is the coordinator's: its key, filled in here, is the serving key */
	struct relay_ref at[NET_MAX_RELAYS];
};

/* Opens a run. `relays` NULL: none. RV_E_BUSY: another process holds it, after trying for
 * `patience_ms`; RV_E_NOTFOUND (no run), RV_E_AUTH, RV_E_CORRUPT, and the store's. `advertise`
 * NULL: that of the last `serve`. With `events` (to serve) a full disk is reported and is no
 * fault. */
enum rv_err opened_run_open(const struct run_dir *dir, int64_t patience_ms, const struct address *advertise,
							const struct run_relays *relays, struct rv_events *events, struct opened_run *out,
							struct rv_errtext *et);
/* Closes a run; harmless on a zeroed struct. */
void opened_run_close(struct opened_run *r);

#endif
