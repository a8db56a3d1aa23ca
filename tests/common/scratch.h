/* scratch.h: temporary directories of tests, below $TMPDIR (/tmp without it). All are removed when
 * the process that made them ends: by a return from main(), exit() or abort(), so after a test that
 * failed too. With RIVULET_KEEP in the environment they stay. Any fault fails the test. */
#ifndef RV_TESTS_COMMON_SCRATCH_H
#define RV_TESTS_COMMON_SCRATCH_H

#include <stddef.h>

/* SCRATCH_MAX: directories of one process at a time. */
enum { SCRATCH_MAX = 64, SCRATCH_PATH = 512 };

/* Makes a directory and writes its path to `out`. */
void scratch_make(char *out, size_t cap);
/* Makes one in memory (/dev/shm): for trials in such numbers that a disk would be felt. */
void scratch_make_in_memory(char *out, size_t cap);
/* Removes a directory, of scratch_make() or any other, with all that is in it. */
void scratch_remove(const char *dir);
/* Removes all that is in it. */
void scratch_empty(const char *dir);
/* Removes a directory that may hold the files of `names` (NULL-terminated) and nothing else. */
void scratch_remove_only(const char *dir, const char *const *names);
/* Returns how many names are in it. */
int scratch_count(const char *dir);

/* Writes DIR/NAME, whole. */
void scratch_write(const char *dir, const char *name, const void *bytes, size_t n);
/* Returns the bytes of a file with a NUL behind them, for free(); NULL if it cannot be opened. `n`
 * (NULL: not wanted) gets their number. */
char *scratch_read(const char *path, size_t *n);
/* Flips the lowest bit of byte `at` of a file; negative: counted from its end. */
void scratch_flip(const char *path, long at);

#endif
