/* failpoint.h: named places where a test makes a real program die, freeze or fail.
 *
 *     RV_FAILPOINT("persist.done");                      nothing, or the planned action
 *     RV_TRY(RV_FAILPOINT_FAULT("encode.after", et));    the same, or a fault of the system
 *     e = RV_FAILPOINT_FILE(path, "before-fsync", et);   point log.before-fsync for DIR/log-7.rvl
 *
 * Without RV_FAILPOINTS (every program that is installed) these are nothing, and no name of a point
 * is in the binary; a test checks that. With it the environment chooses point and action:
 *
 *     RIVULET_FAILPOINT=NAME[@HIT]=ACTION    once, at the HIT-th time (1: first) at NAME:
 *         kill       SIGKILL to itself       stop    SIGSTOP to itself       exit     _exit(70)
 *         delay:MS   sleeps                  EIO, ENOSPC, ...: as a fault; plain points exit
 *
 * A JSON line {"event": "failpoint", "name": NAME} is on stdout before it happens. A name that is
 * not in base/failpoints.def, or an unknown action, ends the program with a message: a misspelt
 * point would never be reached. Any thread. */
#ifndef RV_BASE_FAILPOINT_H
#define RV_BASE_FAILPOINT_H

#include "base/err.h"

/* A failpoint: a line of base/failpoints.def. */
struct rv_failpoint_info {
	const char *name;
	const char *program; /* "worker", "coordinator" */
	const char *what;    /* what has just happened, or is about to happen */
};

#ifdef RV_FAILPOINTS
extern const struct rv_failpoint_info rv_failpoints[]; /* ended by name == NULL */
/* Acts out the plan if it names this point. */
void rv_failpoint(const char *name);
/* Returns the planned fault of the point KIND.`step`, where the file's name begins with KIND; RV_OK
 * for files without points. */
enum rv_err rv_failpoint_file(const char *path, const char *step, struct rv_errtext *et);
/* Returns the planned fault of the point `name`, or RV_OK. */
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
