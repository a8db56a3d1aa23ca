/* available.h: the memory that this process may still take. */
#ifndef RV_TRAIN_MEMORY_AVAILABLE_H
#define RV_TRAIN_MEMORY_AVAILABLE_H

#include <stddef.h>

/* Returns bytes: the kernel's MemAvailable, limited by what this process's cgroups leave, where
 * page cache and other reclaimable memory count as free. Returns SIZE_MAX if the system does not
 * report it. `root` is "" but in tests, which have proc/ and sys/fs/cgroup/ below it. */
size_t memory_available(const char *root);
/* Returns bytes of free swap (SwapFree), limited by cgroups of version 2 (unknown for version 1); 0
 * if there is none, or the system does not report it. */
size_t swap_available(const char *root);

#endif
