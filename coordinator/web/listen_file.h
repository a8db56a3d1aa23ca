/* listen_file.h: DIR/listen, one line HOST:PORT: where programs on this machine reach the
 * coordinator that serves DIR. On a full disk it serves without the file, and writes it once there
 * is room. */
#ifndef RV_COORDINATOR_LISTEN_FILE_H
#define RV_COORDINATOR_LISTEN_FILE_H

#include "base/event.h"
#include "net/address.h"

#include <stdbool.h>
#include <stdint.h>

/* Reads the address. RV_E_NOTFOUND, RV_E_INVALID (no address), RV_E_RANGE, RV_E_IO. */
enum rv_err listen_file_read(const char *path, struct address *out, struct rv_errtext *et);
/* Removes the file of a killed coordinator, unless it is right: on a full disk there may be no room
 * for another. */
void listen_file_clean(const char *path, const struct address *right);
/* Writes the address atomically; a file with that content stays. RV_E_FULL, RV_E_IO. */
enum rv_err listen_file_write(const char *path, const struct address *at, struct rv_errtext *et);

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
