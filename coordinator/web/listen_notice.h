/* listen_notice.h: keeps DIR/listen (coordinator/web/listen_file.h) while a run is served: on a full disk the coordinator
 * serves without it, and writes it once there is room. */
#ifndef RV_COORDINATOR_LISTEN_NOTICE_H
#define RV_COORDINATOR_LISTEN_NOTICE_H

#include "base/event.h"
#include "net/address.h"

#include <stdbool.h>
#include <stdint.h>

enum { LISTEN_NOTICE_PAUSE_S = 10 };

struct listen_notice {
	const char *path; /* borrowed */
	struct address at;
	struct rv_events *events; /* borrowed */
	bool owed;                /* there was no room for it */
	int64_t tried_us;
};

/* path, at and events are set. A full disk is told and is no fault; others are those of listen_file_write. */
enum rv_err listen_notice_begin(struct listen_notice *n, int64_t now_us, struct rv_errtext *et);
/* Tries again what is owed, every LISTEN_NOTICE_PAUSE_S; tells once that it is there. */
void listen_notice_tick(struct listen_notice *n, int64_t now_us);

#endif
