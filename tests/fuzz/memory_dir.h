/* memory_dir.h: a directory in memory, the process' own, for what reads several files or replaces
 * one. On a disk the making, syncing and removing of files takes most of an execution's time. */
#ifndef RV_TESTS_FUZZ_MEMORY_DIR_H
#define RV_TESTS_FUZZ_MEMORY_DIR_H

#include <stddef.h>

/* Made by the first call; removed, with what memory_dir_path has named, when the process ends. */
const char *memory_dir(void);
/* `name` (at most 31 bytes, of one of up to 8 files) in it, whether it exists or not. */
const char *memory_dir_path(const char *name);
/* Makes or replaces the file; returns its path. */
const char *memory_dir_put(const char *name, const void *data, size_t n);

#endif
