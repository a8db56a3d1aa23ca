/* os_sandbox.h: gives up, for good, what the process does not need: files of the user, and system
 * calls that serve to attack the system. Programs that it starts are held to the same. */
#ifndef RV_BASE_OS_SANDBOX_H
#define RV_BASE_OS_SANDBOX_H

#include "base/err.h"

#include <stdbool.h>

enum os_sandbox_access {
	OS_SANDBOX_READ = 1,   /* files, and lists of directories */
	OS_SANDBOX_WRITE = 2,  /* files; in a directory also to make, rename and remove them */
	OS_SANDBOX_EXECUTE = 4 /* programs */
};

/* A file, or a directory with all below it. */
struct os_sandbox_path {
	const char *path; /* "" or one that does not exist: skipped */
	unsigned access;  /* enum os_sandbox_access, or-ed */
};

/* The needs of a program from then on. */
struct os_sandbox_needs {
	const struct os_sandbox_path *paths;
	int n;
	bool programs; /* starts other programs */
};

/* The parts that the system enforces. */
struct os_sandbox {
	bool files, calls;
	struct rv_errtext why_not; /* the first that it does not, and why; "" if it enforces both */
};

/* Enters the sandbox. The process keeps the files of `needs`, and what programs need of the system:
 * programs and libraries, settings, devices, and what it tells of itself (Linux: /usr, /etc, /dev,
 * /proc, /sys and the like). The system refuses with EPERM or EACCES: all other files; to start
 * programs, if it needs none, and in any case those that it may write; to trace processes and to
 * read their memory; mounts, namespaces, modules, keyrings, io_uring and the like; sockets but
 * those of the internet, of this machine and of its network settings. The process must have one
 * thread. RV_E_IO: a part failed that the system has; the process may then be in the other
 * part. */
enum rv_err os_sandbox_enter(const struct os_sandbox_needs *needs, struct os_sandbox *out, struct rv_errtext *et);

#endif
