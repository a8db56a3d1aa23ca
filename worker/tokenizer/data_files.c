/* data_files.c: maps text files and reads across their borders. */
#include "worker/tokenizer/data_files.h"

#include "base/assert.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILES = 65536 };

/* O_NONBLOCK: a FIFO in the directory must not hold us up before fstat says what it is. */
static enum rv_err open_and_stat(const char *path, int *fd, struct stat *st, struct rv_errtext *et) {
	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (*fd < 0)
		return rv_fail_errno(et, errno, "training text %s: open", path);
	if (fstat(*fd, st) == 0)
		return RV_OK;
	enum rv_err e = rv_fail_errno(et, errno, "training text %s: fstat", path);
	close(*fd);
	return e;
}

static enum rv_err append_mapping(struct data_files *t, int fd, uint64_t bytes, const char *path,
								  struct rv_errtext *et) {
	if (t->n_files == MAX_FILES)
		return rv_fail(et, RV_E_RANGE, "training text %s: more than %d files; concatenate some", path, MAX_FILES);
	struct data_file *grown = realloc(t->files, (t->n_files + 1) * sizeof *grown);
	if (!grown)
		return rv_fail(et, RV_E_NOMEM, "training text %s: no memory for its entry", path);
	t->files = grown;
	void *at = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return rv_fail_errno(et, errno, "training text %s: mmap of %llu bytes", path, (unsigned long long)bytes);
	t->files[t->n_files++] = (struct data_file){.at = at, .begin = t->bytes, .bytes = bytes};
	t->bytes += bytes;
	return RV_OK;
}

/* Maps one directory entry; what is not a regular file with content is passed over. */
static enum rv_err append_entry(struct data_files *t, const char *path, struct rv_errtext *et) {
	int fd;
	struct stat st;
	RV_TRY(open_and_stat(path, &fd, &st, et));
	enum rv_err e = RV_OK;
	if (S_ISREG(st.st_mode) && st.st_size > 0)
		e = append_mapping(t, fd, (uint64_t)st.st_size, path, et);
	close(fd);
	return e;
}

static int by_bytes(const struct dirent **a, const struct dirent **b) {
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Sockets and devices are not even opened. */
static int may_be_text(const struct dirent *d) {
	return d->d_type == DT_REG || d->d_type == DT_LNK || d->d_type == DT_UNKNOWN;
}

static enum rv_err append_directory(struct data_files *t, const char *dir, struct rv_errtext *et) {
	struct dirent **names;
	int n = scandir(dir, &names, may_be_text, by_bytes);
	if (n < 0)
		return rv_fail_errno(et, errno, "training text %s: reading the directory", dir);
	enum rv_err e = RV_OK;
	for (int i = 0; i < n && e == RV_OK; i++) {
		char path[PATH_MAX];
		int len = snprintf(path, sizeof path, "%s/%s", dir, names[i]->d_name);
		if (len >= (int)sizeof path)
			e = rv_fail(et, RV_E_RANGE, "training text %.200s: the path is longer than %d bytes", path, PATH_MAX - 1);
		else
			e = append_entry(t, path, et);
	}
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return e;
}

enum rv_err data_files_init(struct data_files *t, const char *path, struct rv_errtext *et) {
	*t = (struct data_files){0};
	int fd;
	struct stat st;
	RV_TRY(open_and_stat(path, &fd, &st, et));
	enum rv_err e;
	if (S_ISDIR(st.st_mode))
		e = append_directory(t, path, et);
	else if (!S_ISREG(st.st_mode))
		e = rv_fail(et, RV_E_INVALID, "training text %s: neither a file nor a directory", path);
	else
		e = st.st_size > 0 ? append_mapping(t, fd, (uint64_t)st.st_size, path, et) : RV_OK;
	close(fd);
	if (e != RV_OK)
		data_files_release(t);
	return e;
}

void data_files_release(struct data_files *t) {
	for (size_t i = 0; i < t->n_files; i++)
		munmap((void *)(uintptr_t)t->files[i].at, t->files[i].bytes);
	free(t->files);
	*t = (struct data_files){0};
}

/* Index of the file that holds position `at`. */
static size_t file_of(const struct data_files *t, uint64_t at) {
	size_t lo = 0, hi = t->n_files;
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;
		if (t->files[mid].begin <= at)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

void data_files_read(const struct data_files *t, uint64_t begin, size_t n, uint8_t *out) {
	RV_ASSERT(begin <= t->bytes && n <= t->bytes - begin);
	for (size_t f = file_of(t, begin); n > 0; f++) {
		uint64_t from = begin - t->files[f].begin, left = t->files[f].bytes - from;
		size_t take = n < left ? n : (size_t)left;
		memcpy(out, t->files[f].at + from, take);
		out += take;
		begin += take;
		n -= take;
	}
}
