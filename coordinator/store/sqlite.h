/* sqlite.h: the store that ships: one SQLite file, DIR/store.db.
 *
 * One connection, WAL, locking_mode=EXCLUSIVE, synchronous=FULL, no mmap: what is appended has been
 * fsynced. Tables `members`, `tokens` and `commits` are there for people (sqlite3 DIR/store.db) and
 * change in the same transaction as the records. Every call but `copy` blocks for at most one
 * fsync. */
#ifndef RV_COORDINATOR_STORE_SQLITE_H
#define RV_COORDINATOR_STORE_SQLITE_H

#include "coordinator/store/store.h"

/* Makes the file of a new run: whole or not there. RV_E_BUSY: there is one already; RV_E_RANGE,
 * RV_E_FULL, RV_E_IO. */
enum rv_err sqlite_store_create(const char *path, const uint8_t run_id[NET_RUN_ID_BYTES], const char *config,
								struct rv_errtext *et);
/* Opens a store, for store_close(). RV_E_NOTFOUND; RV_E_BUSY: another process has it; RV_E_CORRUPT;
 * RV_E_UNSUPPORTED: of a later version; RV_E_FULL, RV_E_IO, RV_E_NOMEM. */
enum rv_err sqlite_store_open(const char *path, struct store **out, struct rv_errtext *et);

#endif
