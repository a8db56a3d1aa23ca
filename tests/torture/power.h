/* power.h: the machine loses power at the N-th thing that a program does to its disk: the real
 * code, over real files, and what a disk may make of them. kill -9 does not show it: what a dead
 * process has written is in the page cache.
 *
 * Everything that changes a file (write, pwrite, ftruncate, rename, unlink, fsync, ours and
 * SQLite's: power_calls.c) is counted. At the one that is asked for, the directory becomes what it
 * may be after the power is back: of a file, each sector that was written since its last fsync is
 * there or is as it was; a name that came, went or changed since the last fsync of the directory
 * did so or did not. In one of three trials nothing of it is there, in one all.
 *
 * Of a directory in it nothing is lost, and what was moved there may also be back where it was. */
#ifndef TESTS_TORTURE_POWER_H
#define TESTS_TORTURE_POWER_H

#include <stdbool.h>
#include <stdint.h>

/* One trial, in a process of its own: `run`, which may tell `acknowledged` (memory that both see)
 * what it was promised, and which the power goes off in before its `cut_at`-th (1: the first)
 * change of the disk. What is in `dir` at the start is durable. False: it ended before there were
 * so many. Its asserts fail the test. */
struct power_trial {
	const char *dir;
	long cut_at;
	uint64_t seed; /* of what the disk makes of it */
	void (*run)(void *ctx, void *acknowledged);
	void *ctx;
	void *acknowledged;
};
bool power_cut_in(const struct power_trial *t);
/* For `acknowledged`, zeroed; until the program ends. */
void *power_shared(unsigned long bytes);

/* Of the process that a trial is in; power_calls.c asks. */
void power_changes(void);  /* about to change the disk */
void power_synced(int fd); /* this file, or directory, is durable as it is now */

#endif
