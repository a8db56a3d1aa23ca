/* token_cache_trim.c: removes entries, least recently used first. */
#include "train/text/token_cache_trim.h"

#include "base/file.h"
#include "train/text/tokenizer/tokenize_job.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENTRIES_MAX = 1024 };

struct cached {
	char path[PATH_MAX];
	uint64_t bytes;
	struct timespec used;
};

static bool is_ours(const char *name) {
	return fnmatch(TOKENIZE_SHARD_NAMES, name, 0) == 0 || fnmatch(TOKENIZE_TEMPORARY_NAMES, name, 0) == 0 ||
		   strcmp(name, TOKENIZE_STATE_NAME) == 0;
}

void token_cache_remove(const char *entry) {
	int lock;
	if (rv_dir_lock(entry, &lock, NULL) != RV_OK)
		return;
	DIR *dir = opendir(entry);
	for (struct dirent *d; dir && (d = readdir(dir));)
		if (is_ours(d->d_name))
			(void)unlinkat(dirfd(dir), d->d_name, 0);
	if (dir) {
		(void)unlinkat(dirfd(dir), "lock", 0);
		closedir(dir);
	}
	(void)rmdir(entry);
	rv_dir_unlock(lock);
}

/* Adds up the bytes of the entry's files; the time of its state's file is its last use. */
static void measure(struct cached *c) {
	DIR *dir = opendir(c->path);
	struct stat st;
	for (struct dirent *d; dir && (d = readdir(dir));) {
		if (!is_ours(d->d_name) || fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		c->bytes += (uint64_t)st.st_blocks * 512;
		if (strcmp(d->d_name, TOKENIZE_STATE_NAME) == 0)
			c->used = st.st_mtim;
	}
	if (dir)
		closedir(dir);
}

static bool used_before(const struct cached *a, const struct cached *b) {
	return a->used.tv_sec != b->used.tv_sec ? a->used.tv_sec < b->used.tv_sec : a->used.tv_nsec < b->used.tv_nsec;
}

static int by_use(const void *a, const void *b) {
	return used_before(a, b) ? -1 : used_before(b, a);
}

static size_t list_entries(const char *dir, struct cached *all, uint64_t *total_bytes) {
	size_t n = 0;
	DIR *d = opendir(dir);
	for (struct dirent *e; d && n < ENTRIES_MAX && (e = readdir(d));) {
		if (fnmatch(TOKEN_CACHE_PREFIX "*", e->d_name, 0) != 0)
			continue;
		all[n] = (struct cached){0};
		if (snprintf(all[n].path, sizeof all[n].path, "%s/%s", dir, e->d_name) >= (int)sizeof all[n].path)
			continue;
		measure(&all[n]);
		*total_bytes += all[n++].bytes;
	}
	if (d)
		closedir(d);
	return n;
}

void token_cache_trim(const char *dir, const char *keep, uint64_t max_bytes) {
	struct cached *all = malloc(ENTRIES_MAX * sizeof *all);
	uint64_t total_bytes = 0;
	size_t n = all ? list_entries(dir, all, &total_bytes) : 0;
	if (n > 1)
		qsort(all, n, sizeof *all, by_use);
	for (size_t i = 0; i < n && total_bytes > max_bytes; i++) {
		if (strcmp(all[i].path, keep) == 0)
			continue;
		token_cache_remove(all[i].path);
		total_bytes -= all[i].bytes;
	}
	free(all);
}
