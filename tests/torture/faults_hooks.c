/* faults_hooks.c: what libraries allocate and ask of the operating system, through the hooks that
 * they have. */
#include "tests/torture/faults.h"
#include "tests/torture/faults_hit.h"

#include "base/assert.h"

#include <fcntl.h>
#include <jansson.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The linker sends this file's own calls of malloc and so on to faults_wrap.c too: they fail
 * there. */
static void *hooked_malloc(size_t n) {
	return malloc(n);
}

static void hooked_free(void *p) {
	free(p);
}

void faults_hook_jansson(void) {
	json_set_alloc_funcs(hooked_malloc, hooked_free);
}

/* ---- SQLite ---- */

static sqlite3_mem_methods real_memory;

static void *sqlite_malloc(int n) {
	return faults_hit((const void *)(uintptr_t)sqlite_malloc) ? NULL : real_memory.xMalloc(n);
}

static void *sqlite_realloc(void *p, int n) {
	return faults_hit((const void *)(uintptr_t)sqlite_realloc) ? NULL : real_memory.xRealloc(p, n);
}

static int sqlite_open(const char *path, int flags, int mode) {
	return open(path, flags, mode);
}

static ssize_t sqlite_pread(int fd, void *p, size_t n, off_t at) {
	return pread(fd, p, n, at);
}

static ssize_t sqlite_pwrite(int fd, const void *p, size_t n, off_t at) {
	return pwrite(fd, p, n, at);
}

static int sqlite_ftruncate(int fd, off_t n) {
	return ftruncate(fd, n);
}

static int sqlite_fstat(int fd, struct stat *st) {
	return fstat(fd, st);
}

#define SYSTEM_CALL(f) ((sqlite3_syscall_ptr)(uintptr_t)(f))

void faults_hook_sqlite(void) {
	static const struct {
		const char *name;
		sqlite3_syscall_ptr call;
	} calls[] = {{"open", SYSTEM_CALL(sqlite_open)},       {"pread", SYSTEM_CALL(sqlite_pread)},
				 {"pread64", SYSTEM_CALL(sqlite_pread)},   {"pwrite", SYSTEM_CALL(sqlite_pwrite)},
				 {"pwrite64", SYSTEM_CALL(sqlite_pwrite)}, {"ftruncate", SYSTEM_CALL(sqlite_ftruncate)},
				 {"fstat", SYSTEM_CALL(sqlite_fstat)}};
	RV_ASSERT(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory) == SQLITE_OK);
	sqlite3_mem_methods memory = real_memory;
	memory.xMalloc = sqlite_malloc;
	memory.xRealloc = sqlite_realloc;
	RV_ASSERT(sqlite3_config(SQLITE_CONFIG_MALLOC, &memory) == SQLITE_OK);
	RV_ASSERT(sqlite3_initialize() == SQLITE_OK);
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		int rc = vfs->xSetSystemCall(vfs, calls[i].name, calls[i].call);
		RV_ASSERT(rc == SQLITE_OK || rc == SQLITE_NOTFOUND);
	}
}
