/* available.h: how much memory a process of this user may still take here. */
#ifndef RV_TRAIN_MEMORY_AVAILABLE_H
#define RV_TRAIN_MEMORY_AVAILABLE_H

#include <stddef.h>

/* Bytes: what the kernel calls available (MemAvailable), and no more than the cgroups that this process is in leave,
 * their page cache and what else the kernel takes back counted as free. SIZE_MAX: the system does not say. `root`: ""
 * for this machine; tests have others, with proc/ and sys/fs/cgroup/ below it. */
size_t memory_available(const char *root);
/* Bytes of swap that are free beside it (SwapFree), and no more than the cgroups of version 2 leave (of version 1 it is
 * not known). 0: there is none, or the system does not say. */
size_t swap_available(const char *root);

#endif
