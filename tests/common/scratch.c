/* scratch.c: see scratch.h. */
#include "tests/common/scratch.h"
#include "tests/common/check.h"

#include <dirent.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN_DIRS = 16 };

/* What this process has made and not removed; "": free. A child that it forks owns nothing. */
static struct {
	pid_t owner;
	char dirs[SCRATCH_MAX][SCRATCH_PATH];
} made;

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at) {
	(void)st, (void)type, (void)at;
	return remove(path);
}

static int remove_below(const char *path, const struct stat *st, int type, struct FTW *at) {
	(void)st, (void)type;
	return at->level > 0 ? remove(path) : 0;
}

static void remove_all(void) {
	if (getpid() != made.owner || getenv("RIVULET_KEEP"))
		return;
	for (int i = 0; i < SCRATCH_MAX; i++)
		if (made.dirs[i][0])
			(void)nftw(made.dirs[i], remove_entry, OPEN_DIRS, FTW_DEPTH | FTW_PHYS);
}

/* A failed RV_ASSERT comes here before it ends the process. */
static void on_abort(int number) {
	(void)number;
	remove_all();
}

static char *free_entry(void) {
	if (made.owner != getpid()) {
		memset(&made, 0, sizeof made);
		made.owner = getpid();
		assert_int_equal(atexit(remove_all), 0);
		assert_true(signal(SIGABRT, on_abort) != SIG_ERR);
	}
	for (int i = 0; i < SCRATCH_MAX; i++)
		if (!made.dirs[i][0])
			return made.dirs[i];
	fail_msg("more than %d temporary directories at a time", SCRATCH_MAX);
	return NULL;
}

static void make_below(const char *parent, char *out, size_t cap) {
	char *entry = free_entry(), path[SCRATCH_PATH];
	const int n = snprintf(path, sizeof path, "%s/rv-test-XXXXXX", parent);
	if (n >= (int)sizeof path || (size_t)n >= cap)
		fail_msg("%s: this path is too long for a temporary directory; set TMPDIR to a shorter one", parent);
	if (!mkdtemp(path))
		fail_msg("%s: no directory can be made there", parent);
	memcpy(entry, path, (size_t)n + 1);
	memcpy(out, path, (size_t)n + 1);
}

void scratch_make(char *out, size_t cap) {
	const char *parent = getenv("TMPDIR");
	make_below(parent && *parent ? parent : "/tmp", out, cap);
}

void scratch_make_in_memory(char *out, size_t cap) {
	make_below("/dev/shm", out, cap);
}

void scratch_remove(const char *dir) {
	for (int i = 0; i < SCRATCH_MAX; i++)
		if (strcmp(made.dirs[i], dir) == 0) {
			if (getenv("RIVULET_KEEP"))
				return;
			made.dirs[i][0] = '\0';
		}
	assert_int_equal(nftw(dir, remove_entry, OPEN_DIRS, FTW_DEPTH | FTW_PHYS), 0);
}

void scratch_empty(const char *dir) {
	assert_int_equal(nftw(dir, remove_below, OPEN_DIRS, FTW_DEPTH | FTW_PHYS), 0);
}

static bool is_listed(const char *name, const char *const *names) {
	for (; *names; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

void scratch_remove_only(const char *dir, const char *const *names) {
	DIR *d = opendir(dir);
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		if (!is_listed(e->d_name, names))
			fail_msg("%s was left behind in %s", e->d_name, dir);
	(void)closedir(d);
	scratch_remove(dir);
}

int scratch_count(const char *dir) {
	int n = -2; /* . and .. */
	DIR *d = opendir(dir);
	assert_non_null(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

void scratch_write(const char *dir, const char *name, const void *bytes, size_t n) {
	char path[SCRATCH_PATH];
	assert_in_range(snprintf(path, sizeof path, "%s/%s", dir, name), 1, sizeof path - 1);
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

char *scratch_read(const char *path, size_t *n) {
	FILE *f = fopen(path, "rb");
	if (!f)
		return NULL;
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	const long bytes = ftell(f);
	rewind(f);
	char *text = malloc((size_t)bytes + 1);
	assert_non_null(text);
	const size_t got = fread(text, 1, (size_t)bytes, f); /* a log may have grown since */
	text[got] = '\0';
	if (n)
		*n = got;
	(void)fclose(f);
	return text;
}

void scratch_flip(const char *path, long at) {
	const int whence = at < 0 ? SEEK_END : SEEK_SET;
	FILE *f = fopen(path, "r+b");
	assert_non_null(f);
	assert_int_equal(fseek(f, at, whence), 0);
	const int byte = fgetc(f);
	assert_int_not_equal(byte, EOF);
	assert_int_equal(fseek(f, at, whence), 0);
	assert_int_equal(fputc(byte ^ 1, f), byte ^ 1);
	assert_int_equal(fclose(f), 0);
}
