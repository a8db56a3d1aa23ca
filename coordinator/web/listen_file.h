/* listen_file.h: DIR/listen, one line HOST:PORT: where programs on this machine reach the
 * coordinator that serves DIR. */
#ifndef RV_COORDINATOR_LISTEN_FILE_H
#define RV_COORDINATOR_LISTEN_FILE_H

#include "base/err.h"
#include "net/address.h"

/* Reads the address. RV_E_NOTFOUND, RV_E_INVALID (no address), RV_E_RANGE, RV_E_IO. */
enum rv_err listen_file_read(const char *path, struct address *out, struct rv_errtext *et);
/* Removes the file of a killed coordinator, unless it is right: on a full disk there may be no room
 * for another. */
void listen_file_clean(const char *path, const struct address *right);
/* Writes the address atomically; a file with that content stays. RV_E_FULL, RV_E_IO. */
enum rv_err listen_file_write(const char *path, const struct address *at, struct rv_errtext *et);

#endif
