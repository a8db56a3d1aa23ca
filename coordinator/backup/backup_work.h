/* backup_work.h: where a backup is made: a directory `.rivulet-backup-XXXXXX` (mode 0700) beside the file that it
 * becomes, as the run's own disk may be full. What is in it holds the run's secret key. Its maker holds a lock on it
 * (flock) for as long as it lives, so that what a killed one left is known, and removed, by the next. */
#ifndef RV_COORDINATOR_BACKUP_WORK_H
#define RV_COORDINATOR_BACKUP_WORK_H

#include "base/err.h"
#include "coordinator/store/run_dir.h"

enum { BACKUP_WORK_BYTES = RUN_PATH_BYTES + 32 };

struct backup_work {
	int fd;
	char target[RUN_PATH_BYTES], dir[BACKUP_WORK_BYTES];
	char copy[BACKUP_WORK_BYTES + 8], sealed[BACKUP_WORK_BYTES + 8]; /* names in it, for its owner to make */
};

/* Removes what killed backups of this user left beside `target`, and makes a directory of its own there. RV_E_RANGE,
 * RV_E_NOTFOUND, RV_E_FULL, RV_E_IO: nothing is to be ended. */
enum rv_err backup_work_begin(const char *target, struct backup_work *w, struct rv_errtext *et);
/* `sealed`, which is durable, takes the name of the target, durably and atomically. RV_E_IO. */
enum rv_err backup_work_publish(const struct backup_work *w, struct rv_errtext *et);
/* Removes the directory with all that is in it. */
void backup_work_end(struct backup_work *w);

#endif
