/* data_files.c: finds the files, maps them, reads across their boundaries. */
#include "train/text/tokenizer/data_files.h"

#include "base/assert.h"
#include "train/text/tokenizer/ranges.h"
#include "train/text/tokenizer/shard.h"
#include "train/text/tokenizer/text_check.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static enum rv_err make_room(struct data_files *d, const char *path, struct rv_errtext *et) {
	if (d->n_files == DATA_FILES_MAX)
		return rv_fail(et, RV_E_RANGE, "training data %s: more than %d files; concatenate some", path, DATA_FILES_MAX);
	if (d->n_files < d->cap)
		return RV_OK;
	size_t cap = d->cap * 2 + 8;
	struct mapped_file *files = realloc(d->files, cap * sizeof *files);
	if (files)
		d->files = files;
	uint64_t *begin = realloc(d->begin, cap * sizeof *begin);
	if (begin)
		d->begin = begin;
	if (!files || !begin)
		return rv_fail(et, RV_E_NOMEM, "training data %s: no memory for %zu files", path, cap);
	d->cap = cap;
	return RV_OK;
}

static enum rv_err append_file(struct data_files *d, const char *path, struct rv_errtext *et) {
	struct mapped_file m;
	RV_TRY(make_room(d, path, et));
	RV_TRY(mapped_file_open(&m, path, et));
	if (m.bytes == 0) {
		mapped_file_close(&m);
		return RV_OK;
	}
	d->begin[d->n_files] = d->bytes;
	d->files[d->n_files++] = m;
	d->bytes += m.bytes;
	return RV_OK;
}

/* Appends one of several entries, ignoring anything but regular files. */
static enum rv_err append_entry(struct data_files *d, const char *path, struct rv_errtext *et) {
	struct stat st;
	if (stat(path, &st) != 0)
		return rv_fail_errno(et, errno, "training data %s: stat", path);
	return S_ISREG(st.st_mode) ? append_file(d, path, et) : RV_OK;
}

static int by_bytes(const struct dirent **a, const struct dirent **b) {
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Returns 0 for sockets and devices, which are not even opened. */
static int may_be_regular(const struct dirent *d) {
	return d->d_type == DT_REG || d->d_type == DT_LNK || d->d_type == DT_UNKNOWN;
}

static enum rv_err append_name(struct data_files *d, const char *dir, const char *name, struct rv_errtext *et) {
	char path[PATH_MAX];
	int len = snprintf(path, sizeof path, "%s/%s", dir, name);
	if (len >= (int)sizeof path)
		return rv_fail(et, RV_E_RANGE, "training data %.200s: the path is longer than %d bytes", path, PATH_MAX - 1);
	return append_entry(d, path, et);
}

static enum rv_err append_directory(struct data_files *d, const char *dir, const char *names, struct rv_errtext *et) {
	struct dirent **entries;
	int n = scandir(dir, &entries, may_be_regular, by_bytes);
	if (n < 0)
		return rv_fail_errno(et, errno, "training data %s: reading the directory", dir);
	enum rv_err e = RV_OK;
	for (int i = 0; i < n; i++) {
		if (e == RV_OK && (!names || fnmatch(names, entries[i]->d_name, 0) == 0))
			e = append_name(d, dir, entries[i]->d_name, et);
		free(entries[i]);
	}
	free(entries);
	return e;
}

static int by_path(const void *a, const void *b) {
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Appends the matches of a pattern, sorted by bytes: glob(3) sorts by locale. */
static enum rv_err append_matches(struct data_files *d, const char *pattern, struct rv_errtext *et) {
	glob_t found = {0};
	int rc = glob(pattern, GLOB_NOSORT, NULL, &found);
	enum rv_err e = RV_OK;
	if (rc == 0 && found.gl_pathc > 1)
		qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_path);
	else if (rc == GLOB_NOMATCH)
		e = rv_fail(et, RV_E_NOTFOUND, "training data %s: no file has this name or matches this pattern", pattern);
	else if (rc != 0)
		e = rv_fail(et, rc == GLOB_NOSPACE ? RV_E_NOMEM : RV_E_IO, "training data %s: cannot look for files", pattern);
	for (size_t i = 0; e == RV_OK && i < found.gl_pathc; i++)
		e = append_entry(d, found.gl_pathv[i], et);
	globfree(&found);
	if (e == RV_OK && d->n_files == 0)
		e = rv_fail(et, RV_E_NOTFOUND, "training data %s: only directories or empty files match this pattern", pattern);
	return e;
}

static enum rv_err append_path(struct data_files *d, const char *path, const char *names, struct rv_errtext *et) {
	struct stat st;
	if (stat(path, &st) != 0) {
		if (errno == ENOENT && strpbrk(path, "*?["))
			return append_matches(d, path, et);
		return rv_fail_errno(et, errno, "training data %s: open", path);
	}
	if (S_ISDIR(st.st_mode))
		return append_directory(d, path, names, et);
	if (!S_ISREG(st.st_mode))
		return rv_fail(et, RV_E_INVALID, "training data %s: neither a file nor a directory", path);
	return append_file(d, path, et);
}

enum rv_err data_files_add(struct data_files *d, const char *path, const char *names, struct rv_errtext *et) {
	return append_path(d, path, names, et);
}

enum rv_err data_files_init(struct data_files *d, const char *path, const char *names, struct rv_errtext *et) {
	*d = (struct data_files){0};
	enum rv_err e = append_path(d, path, names, et);
	if (e != RV_OK)
		data_files_release(d);
	return e;
}

void data_files_release(struct data_files *d) {
	for (size_t i = 0; i < d->n_files; i++)
		mapped_file_close(&d->files[i]);
	free(d->files);
	free(d->begin);
	*d = (struct data_files){0};
}

enum rv_err data_files_read(const struct data_files *d, uint64_t begin, size_t n, uint8_t *out, struct rv_errtext *et) {
	RV_ASSERT(begin <= d->bytes && n <= d->bytes - begin);
	for (size_t f = range_holding(d->begin, d->n_files, begin); n > 0; f++) {
		uint64_t from = begin - d->begin[f], left = d->files[f].bytes - from;
		size_t take = n < left ? n : (size_t)left;
		RV_TRY(mapped_file_read(&d->files[f], from, take, out, et));
		out += take;
		begin += take;
		n -= take;
	}
	return RV_OK;
}

enum rv_err data_files_sort(const struct data_files *d, bool *tokens, struct rv_errtext *et) {
	*tokens = d->n_files > 0 && shard_recognise(&d->files[0]);
	for (size_t i = 1; i < d->n_files; i++) {
		const char *a = d->files[0].path, *b = d->files[i].path;
		if (shard_recognise(&d->files[i]) != *tokens)
			return rv_fail(et, RV_E_INVALID,
						   "training data: %s is a token file and %s is text: name the files of one sort, for example "
						   "with a pattern ('DIR/*.bin')",
						   *tokens ? a : b, *tokens ? b : a);
	}
	return RV_OK;
}

static enum rv_err check_text(const struct data_files *d, struct rv_errtext *et) {
	for (size_t i = 0; i < d->n_files; i++)
		RV_TRY(text_check(&d->files[i], et));
	return RV_OK;
}

enum rv_err data_files_are_tokens(const struct data_files *d, bool *tokens, struct rv_errtext *et) {
	RV_TRY(data_files_sort(d, tokens, et));
	return *tokens ? RV_OK : check_text(d, et);
}

enum rv_err data_files_init_text(struct data_files *d, const char *path, struct rv_errtext *et) {
	bool tokens;
	RV_TRY(data_files_init(d, path, NULL, et));
	enum rv_err e = data_files_are_tokens(d, &tokens, et);
	if (e == RV_OK && tokens)
		e = rv_fail(et, RV_E_INVALID, "training data %s: these are tokens already, not text", path);
	if (e != RV_OK)
		data_files_release(d);
	return e;
}

static enum rv_err hash_part(struct rv_hasher *h, const struct mapped_file *m, size_t from, size_t n,
							 struct rv_errtext *et) {
	uint8_t bytes[4096];
	RV_ASSERT(n <= sizeof bytes);
	RV_TRY(mapped_file_read(m, from, n, bytes, et));
	rv_hash_update(h, bytes, n);
	return RV_OK;
}

enum rv_err data_files_identity(const struct data_files *d, struct rv_hash *out, struct rv_errtext *et) {
	enum { SAMPLE_BYTES = 4096 };
	struct rv_hasher h = rv_hasher_of("rivulet data files");
	rv_hash_u64(&h, d->n_files);
	for (size_t i = 0; i < d->n_files; i++) {
		const struct mapped_file *m = &d->files[i];
		size_t n = m->bytes < SAMPLE_BYTES ? m->bytes : SAMPLE_BYTES;
		rv_hash_u64(&h, m->bytes);
		rv_hash_u64(&h, (uint64_t)m->mtime_ns);
		RV_TRY(hash_part(&h, m, 0, n, et));
		RV_TRY(hash_part(&h, m, m->bytes - n, n, et));
	}
	*out = rv_hash_final(&h);
	return RV_OK;
}
