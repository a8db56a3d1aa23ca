/* run_dir.h: the directory of a run, as the coordinator keeps it.
 *
 *   run.key       the run's Ed25519 seed, mode 0600: whoever reads it is the operator
 *   store.db      store.h
 *   listen        host:port where the running coordinator is reached from this machine; made by `serve`, atomically
 *   rounds.jsonl  a line per committed round
 *   lock          held by whoever uses the directory
 *   store.db.replaced  what the last `restore` took the place of (coordinator/backup/backup.h)
 *   store.db.new  what a killed `new-run` left: the next one makes it anew
 */
#ifndef RV_COORDINATOR_RUN_DIR_H
#define RV_COORDINATOR_RUN_DIR_H

#include "base/err.h"

enum { RUN_DIR_BYTES = 400, RUN_PATH_BYTES = 440 };

struct run_dir {
	char dir[RUN_DIR_BYTES];
	char key[RUN_PATH_BYTES], store[RUN_PATH_BYTES], listen[RUN_PATH_BYTES], rounds[RUN_PATH_BYTES];
};

/* Only makes the names. RV_E_RANGE: too long. */
enum rv_err run_dir_of(const char *dir, struct run_dir *out, struct rv_errtext *et);
/* The same, and checks that there is a run. RV_E_NOTFOUND says what is missing and how a run is made. */
enum rv_err run_dir_find(const char *dir, struct run_dir *out, struct rv_errtext *et);

#endif
