/* failpoint.h: named places where a test makes a real program die, freeze or fail.
 *
 *     RV_FAILPOINT("persist.done");                      nothing, or what the environment asked for there
 *     RV_TRY(RV_FAILPOINT_FAULT("encode.after", et));    the same, or a fault of the operating system
 *     e = RV_FAILPOINT_FILE(path, "before-fsync", et);   that of point "log.before-fsync" where path is DIR/log-7.rvl
 *
 * Without RV_FAILPOINTS (every program that is installed) these are nothing, and no name of a point is in the binary; a
 * test looks. With it the environment says what happens where:
 *
 *     RIVULET_FAILPOINT=NAME[@HIT]=ACTION    the HIT-th time (1: the first) that NAME is reached, once:
 *         kill       SIGKILL to itself       stop    SIGSTOP to itself       exit     _exit(70)
 *         delay:MS   sleeps                  EIO, ENOSPC, ...: the last two return it; the first takes it for exit
 *
 * A JSON line {"event": "failpoint", "name": NAME} is on stdout before it happens. A name that is not in
 * base/failpoints.def, or an action that is none, ends the program with a message: a point that is misspelt would never
 * be reached. Any thread. */
#ifndef RV_BASE_FAILPOINT_H
#define RV_BASE_FAILPOINT_H

#include "base/err.h"

/* All points, in the order of base/failpoints.def. */
struct rv_failpoint_info {
	const char *name;
	const char *program; /* "worker", "coordinator" */
	const char *what;    /* what has just happened, or is about to */
};

#ifdef RV_FAILPOINTS
extern const struct rv_failpoint_info rv_failpoints[]; /* ended by name == NULL */
void rv_failpoint(const char *name);
/* The point KIND.`step`, where KIND is what the name of the file begins with; files that are no point are nothing. */
enum rv_err rv_failpoint_file(const char *path, const char *step, struct rv_errtext *et);
enum rv_err rv_failpoint_fault(const char *name, struct rv_errtext *et);
#define RV_FAILPOINT(name)                rv_failpoint(name)
#define RV_FAILPOINT_FILE(path, step, et) rv_failpoint_file(path, step, et)
#define RV_FAILPOINT_FAULT(name, et)      rv_failpoint_fault(name, et)
#else
#define RV_FAILPOINT(name)                ((void)0)
#define RV_FAILPOINT_FILE(path, step, et) RV_OK
#define RV_FAILPOINT_FAULT(name, et)      RV_OK
#endif

#endif
