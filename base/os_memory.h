/* os_memory.h: the memory of this machine that this process has, may take, and asks for in special
 * ways. Any thread. */
#ifndef RV_BASE_OS_MEMORY_H
#define RV_BASE_OS_MEMORY_H

#include <stddef.h>
#include <sys/types.h>

/* Returns bytes that this process may still take: what the system calls available, limited by what
 * containers leave (Linux: MemAvailable, cgroups), where page cache and other reclaimable memory
 * count as free. Returns SIZE_MAX if the system does not report it. `root` is "" but in tests,
 * which have proc/ and sys/fs/cgroup/ below it. */
size_t os_memory_available(const char *root);
/* Returns bytes of free swap, limited by cgroups of version 2 (unknown for version 1); 0 if there
 * is none, or the system does not report it. */
size_t os_swap_available(const char *root);
/* Returns the largest resident size that this process has had, in bytes; 0: unknown. */
size_t os_memory_peak(void);
/* Asks for large pages for [p, p + bytes): a hint, which the system may ignore. */
void os_memory_prefer_large_pages(void *p, size_t bytes);
/* Has the heap return blocks of at least this size to the system as soon as they are freed, from
 * now on, whatever was freed before; where it can do that. */
void os_memory_return_blocks(size_t bytes);
/* Gives free memory of the heap back to the system, where that takes asking. */
void os_memory_give_back(void);
/* Returns `bytes` of zeros, which take memory only where they are written; NULL: no address space.
 * munmap(2) gives them back. */
void *os_memory_map_lazily(size_t bytes);
/* Copies `n` bytes from this process's own memory, of which some may be of a mapped file that
 * became shorter. Returns how many were copied, perhaps fewer, or -1 with errno: EFAULT where
 * memcpy would raise SIGBUS; ENOSYS or EPERM: forbidden (a sandbox), always. */
ssize_t os_memory_read(void *out, const void *from, size_t n);

#endif
