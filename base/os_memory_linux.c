/* os_memory_linux.c: /proc/meminfo and the limits of cgroups; madvise(2), mmap(2),
 * process_vm_readv(2). */
#include "base/os_memory.h"

#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

/* A cgroup version's file names for a resource; `cache` lists lines of `stat` with memory that the
 * kernel reclaims when short, including pages of files read more than once. */
struct cgroup_files {
	const char *mount, *limit, *usage, *stat, *cache[4];
};
static const struct cgroup_files memory_v1 = {.mount = "/sys/fs/cgroup/memory",
											  .limit = "memory.limit_in_bytes",
											  .usage = "memory.usage_in_bytes",
											  .stat = "memory.stat",
											  .cache = {"total_inactive_file", "total_active_file"}},
								 memory_v2 = {.mount = "/sys/fs/cgroup",
											  .limit = "memory.max",
											  .usage = "memory.current",
											  .stat = "memory.stat",
											  .cache = {"inactive_file", "active_file", "slab_reclaimable"}},
								 swap_v2 = {.mount = "/sys/fs/cgroup",
											.limit = "memory.swap.max",
											.usage = "memory.swap.current",
											.stat = "memory.stat"};
/* A resource: its line in meminfo, its limits. */
struct supply {
	const char *key;
	const struct cgroup_files *v1, *v2; /* NULL: no limit */
};
static const struct supply memory = {"MemAvailable:", &memory_v1, &memory_v2},
						   swap = {.key = "SwapFree:", .v2 = &swap_v2};

/* Reads the number behind `key` in a file of lines "key number", or at its start for key "".
 * Returns false if there is none, or "max". */
static bool read_number(const char *path, const char *key, uint64_t *out) {
	FILE *f = fopen(path, "re");
	char line[256];
	bool found = false;
	const size_t n = strlen(key);
	while (f && !found && fgets(line, sizeof line, f))
		found = strncmp(line, key, n) == 0 && sscanf(line + n, " %" SCNu64, out) == 1;
	if (f)
		(void)fclose(f);
	return found;
}

static size_t smaller(size_t a, uint64_t b) {
	return b < a ? (size_t)b : a;
}

/* Returns the bytes that one group leaves. */
static size_t room_in(const struct cgroup_files *v, const char *dir) {
	char path[PATH_MAX + 64];
	uint64_t limit, usage;
	(void)snprintf(path, sizeof path, "%s/%s", dir, v->limit);
	if (!read_number(path, "", &limit))
		return SIZE_MAX;
	(void)snprintf(path, sizeof path, "%s/%s", dir, v->usage);
	if (!read_number(path, "", &usage))
		return SIZE_MAX;
	(void)snprintf(path, sizeof path, "%s/%s", dir, v->stat);
	for (const char *const *key = v->cache; *key; key++) {
		uint64_t cache = 0;
		(void)read_number(path, *key, &cache);
		usage -= cache < usage ? cache : usage;
	}
	return usage < limit ? smaller(SIZE_MAX, limit - usage) : 0;
}

/* Returns the least that the group and its parents leave. In a container the path may be the
 * host's: then only the mount itself is found, which is the container's group. */
static size_t room_from(const struct cgroup_files *v, const char *root, const char *group) {
	char dir[PATH_MAX];
	size_t room = SIZE_MAX;
	if (!v)
		return SIZE_MAX;
	const size_t mount = (size_t)snprintf(dir, sizeof dir, "%s%s", root, v->mount);
	if (mount >= sizeof dir || mount + strlen(group) >= sizeof dir)
		return SIZE_MAX;
	(void)snprintf(dir + mount, sizeof dir - mount, "%s", group);
	for (;;) {
		room = smaller(room, room_in(v, dir));
		char *slash = strrchr(dir + mount, '/');
		if (!slash)
			return room;
		*slash = '\0';
	}
}

/* Reports whether `name` is in a list like "cpu,memory". */
static bool has_controller(const char *list, const char *name) {
	const size_t n = strlen(name);
	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (strncmp(at, name, n) == 0 && (at[n] == '\0' || at[n] == ','))
			return true;
	return false;
}

/* Returns the room of a line "4:memory:/group" (version 1) or "0::/group" (version 2). */
static size_t room_of_line(const struct supply *s, const char *root, char *line) {
	line[strcspn(line, "\n")] = '\0';
	char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!group)
		return SIZE_MAX;
	*group++ = '\0';
	if (controllers[1] == '\0')
		return room_from(s->v2, root, group);
	return has_controller(controllers + 1, "memory") ? room_from(s->v1, root, group) : SIZE_MAX;
}

/* Returns the free bytes, or SIZE_MAX if the system does not report them. */
static size_t available(const struct supply *s, const char *root) {
	char path[PATH_MAX], line[PATH_MAX];
	uint64_t kib;
	size_t room = SIZE_MAX;
	(void)snprintf(path, sizeof path, "%s/proc/meminfo", root);
	if (read_number(path, s->key, &kib))
		room = smaller(room, kib * 1024);
	(void)snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f))
		room = smaller(room, room_of_line(s, root, line));
	if (f)
		(void)fclose(f);
	return room;
}

size_t os_memory_available(const char *root) {
	return available(&memory, root);
}

size_t os_swap_available(const char *root) {
	const size_t room = available(&swap, root);
	return room == SIZE_MAX ? 0 : room;
}

/* ru_maxrss is in KiB here, and in bytes on other systems. */
size_t os_memory_peak(void) {
	struct rusage used;
	return getrusage(RUSAGE_SELF, &used) == 0 && used.ru_maxrss > 0 ? (size_t)used.ru_maxrss * 1024 : 0;
}

void os_memory_prefer_large_pages(void *p, size_t bytes) {
	(void)madvise(p, bytes, MADV_HUGEPAGE);
}

void os_memory_return_blocks(size_t bytes) {
#ifdef __GLIBC__
	(void)mallopt(M_MMAP_THRESHOLD, bytes < INT_MAX ? (int)bytes : INT_MAX);
#else
	(void)bytes;
#endif
}

void os_memory_give_back(void) {
#ifdef __GLIBC__
	(void)malloc_trim(0);
#endif
}

void *os_memory_map_lazily(size_t bytes) {
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

ssize_t os_memory_read(void *out, const void *from, size_t n) {
	const struct iovec here = {out, n}, there = {(void *)(uintptr_t)from, n};
	return process_vm_readv(getpid(), &here, 1, &there, 1, 0);
}
