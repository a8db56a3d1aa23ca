/* allowed_file.h: DIR/allowed.json: what a worker's person wants now, and the bytes of the day and
 * the month (struct allow_kept), so that a restart neither forgets a pause nor gives a day
 * twice. */
#ifndef RV_WORKER_SESSION_ALLOWED_FILE_H
#define RV_WORKER_SESSION_ALLOWED_FILE_H

#include "worker/allow/allow.h"

#define ALLOWED_FILE "allowed.json"

/* Reads it; without a file *out is zeroed, and RV_OK returned. RV_E_CORRUPT: it is no such file,
 * and *out is zeroed; RV_E_IO. */
enum rv_err allowed_file_read(const char *dir, struct allow_kept *out, struct rv_errtext *et);
/* Replaces it, durably. RV_E_FULL, RV_E_IO, RV_E_NOMEM. */
enum rv_err allowed_file_write(const char *dir, const struct allow_kept *kept, struct rv_errtext *et);

#endif
