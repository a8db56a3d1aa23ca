/* listen_notice.h: keeps DIR/listen (coordinator/web/listen_file.h) while a run is served: on a
 * full disk the coordinator serves without it, and writes it once there is room. */
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
	bool owed;                /* it could not be written yet */
	int64_t tried_us;
};

/* Writes the file; path, at and events are set. A full disk is reported and is no fault; others are
 * those of listen_file_write. */
enum rv_err listen_notice_begin(struct listen_notice *n, int64_t now_us, struct rv_errtext *et);
/* Tries to write a missing file again, every LISTEN_NOTICE_PAUSE_S, and reports success once. */
void listen_notice_tick(struct listen_notice *n, int64_t now_us);

#endif
