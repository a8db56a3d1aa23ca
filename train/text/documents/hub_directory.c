/* hub_directory.c: lists a data set's files by their endings, then those of one split. */
#include "train/text/documents/hub_directory.h"

#include "base/file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 4, SPLITS_TEXT_BYTES = 200, README_MAX_BYTES = 1 << 20 };

/* ---- names ---- */

/* Endings of files with data, those that are refused later among them; packed ones may follow. */
static const char *const data_endings[] = {".parquet", ".jsonl", ".ndjson", ".json",    ".txt",
										   ".csv",     ".tsv",   ".arrow",  ".feather", ".text"};
static const char *const packed_endings[] = {".gz", ".zst", ".zstd", ".xz", ".bz2", ".lz4", ".zip"};
/* As datasets/data_files.py names them. */
static const char *const splits[] = {"train", "training", "validation", "valid", "val",
									 "dev",   "test",     "testing",    "eval",  "evaluation"};

static bool cut_ending(const char *name, size_t *n, const char *const *endings, size_t n_endings) {
	for (size_t i = 0; i < n_endings; i++) {
		size_t k = strlen(endings[i]);
		if (*n > k && strncasecmp(name + *n - k, endings[i], k) == 0) {
			*n -= k;
			return true;
		}
	}
	return false;
}

static bool is_data(const char *name) {
	size_t n = strlen(name);
	bool is_packed = cut_ending(name, &n, packed_endings, sizeof packed_endings / sizeof packed_endings[0]);
	bool is_known = cut_ending(name, &n, data_endings, sizeof data_endings / sizeof data_endings[0]);
	return name[0] != '.' && (is_known || is_packed) && strcmp(name, "dataset_infos.json") != 0 &&
		   strcmp(name, "dataset_info.json") != 0 && strcmp(name, "state.json") != 0;
}

/* Reports whether the name begins with this split. */
static bool is_of(const char *path, const char *split) {
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t n = strlen(split);
	return strncmp(name, split, n) == 0 && !isalnum((unsigned char)name[n]);
}

static const char *split_of(const char *path) {
	for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++)
		if (is_of(path, splits[i]))
			return splits[i];
	return "";
}

/* ---- a listing ---- */

struct listing {
	char **paths;
	size_t n, cap;
};

static void release(struct listing *l) {
	for (size_t i = 0; i < l->n; i++)
		free(l->paths[i]);
	free(l->paths);
}

static enum rv_err append(struct listing *l, const char *path, struct rv_errtext *et) {
	if (l->n == DATA_FILES_MAX)
		return rv_fail(et, RV_E_RANGE, "training data %.200s: more than %d files", path, DATA_FILES_MAX);
	if (l->n == l->cap) {
		size_t cap = l->cap * 2 + 16;
		char **paths = realloc(l->paths, cap * sizeof *paths);
		if (!paths)
			return rv_fail(et, RV_E_NOMEM, "no memory for %zu files", cap);
		l->paths = paths;
		l->cap = cap;
	}
	l->paths[l->n] = strdup(path);
	return l->paths[l->n++] ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory for a path");
}

static enum rv_err list(struct listing *l, const char *dir, int depth, struct rv_errtext *et);

static enum rv_err list_entry(struct listing *l, const char *dir, const char *name, int depth, struct rv_errtext *et) {
	char path[PATH_MAX];
	struct stat st;
	if (name[0] == '.' || snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
		return RV_OK;
	if (stat(path, &st) != 0)
		return rv_fail_errno(et, errno, "training data %.200s: stat", path);
	if (S_ISDIR(st.st_mode) && depth > 0)
		return list(l, path, depth - 1, et);
	return S_ISREG(st.st_mode) && is_data(name) ? append(l, path, et) : RV_OK;
}

static int by_bytes(const struct dirent **a, const struct dirent **b) {
	return strcmp((*a)->d_name, (*b)->d_name);
}

static enum rv_err list(struct listing *l, const char *dir, int depth, struct rv_errtext *et) {
	struct dirent **entries;
	int n = scandir(dir, &entries, NULL, by_bytes);
	if (n < 0)
		return rv_fail_errno(et, errno, "training data %.200s: reading the directory", dir);
	enum rv_err e = RV_OK;
	for (int i = 0; i < n; i++) {
		if (e == RV_OK)
			e = list_entry(l, dir, entries[i]->d_name, depth, et);
		free(entries[i]);
	}
	free(entries);
	return e;
}

/* ---- a data set ---- */

static bool has(const char *dir, const char *name, bool is_directory) {
	char path[PATH_MAX];
	struct stat st;
	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	return stat(path, &st) == 0 && (is_directory ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode));
}

static bool is_data_set(const char *dir) {
	return has(dir, "README.md", false) || has(dir, "dataset_infos.json", false) || has(dir, ".gitattributes", false) ||
		   has(dir, "data", true);
}

static enum rv_err refuse_saved(const char *dir, struct rv_errtext *et) {
	bool is_dict = has(dir, "dataset_dict.json", false);
	if (!is_dict && !has(dir, "state.json", false))
		return RV_OK;
	return rv_fail(et, RV_E_UNSUPPORTED,
				   "training data %.160s: datasets' save_to_disk wrote it (Arrow), which is not read; try: python3 -c "
				   "\"import datasets; datasets.load_from_disk('DIR')%s.to_parquet('FILE.parquet')\"",
				   dir, is_dict ? "['train']" : "");
}

/* Lists the splits that the files' names tell. */
static void put_splits(const struct listing *l, char out[static SPLITS_TEXT_BYTES]) {
	size_t used = 0;
	out[0] = '\0';
	for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
		bool found = false;
		for (size_t k = 0; k < l->n && !found; k++)
			found = split_of(l->paths[k]) == splits[i];
		if (found)
			used += (size_t)snprintf(out + used, SPLITS_TEXT_BYTES - used, "%s%s", used > 0 ? ", " : "", splits[i]);
	}
}

static enum rv_err refuse_split(const struct listing *l, const char *dir, const char *split, struct rv_errtext *et) {
	char found[SPLITS_TEXT_BYTES];
	put_splits(l, found);
	if (l->n == 0)
		return rv_fail(et, RV_E_NOTFOUND,
					   "training data %.160s: no Parquet, JSON Lines or text in it or in its data/; name a directory "
					   "below it, or the files",
					   dir);
	return rv_fail(et, RV_E_NOTFOUND,
				   "training data %.160s: no files of split '%.40s'; there %s%s: choose with --split", dir,
				   split[0] ? split : "train", found[0] ? "are " : "is no split in the names", found);
}

static enum rv_err add_split(struct data_files *d, const struct listing *l, const char *dir, const char *split,
							 struct rv_errtext *et) {
	size_t n_added = 0;
	bool has_splits = false;
	for (size_t i = 0; i < l->n; i++)
		has_splits = has_splits || split_of(l->paths[i])[0] != '\0';
	for (size_t i = 0; i < l->n; i++) {
		if (split[0] ? !is_of(l->paths[i], split) : has_splits && !is_of(l->paths[i], "train"))
			continue;
		RV_TRY(data_files_add(d, l->paths[i], NULL, et));
		n_added++;
	}
	return n_added > 0 ? RV_OK : refuse_split(l, dir, split, et);
}

void hub_license(const char *text, size_t n, char license[static HUB_LICENSE_BYTES]) {
	const char *end = text + n, *line = memchr(text, '\n', n);
	bool in_license = false;
	license[0] = '\0';
	if (n < 4 || strncmp(text, "---", 3) != 0 || !line)
		return;
	for (line++; line < end && license[0] == '\0' && strncmp(line, "---", 3) != 0;) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		stop = stop ? stop : end;
		const char *at = line;
		if (strncmp(line, "license:", 8) == 0) {
			in_license = true;
			at = line + 8;
		} else if (in_license && strncmp(line, "- ", 2) != 0 && strncmp(line, "  - ", 4) != 0) {
			return;
		}
		while (in_license && at < stop && (isspace((unsigned char)*at) || *at == '-' || *at == '"' || *at == '\''))
			at++;
		size_t k = (size_t)(stop - at);
		while (k > 0 && (isspace((unsigned char)at[k - 1]) || at[k - 1] == '"' || at[k - 1] == '\''))
			k--;
		if (in_license && k > 0 && k < HUB_LICENSE_BYTES)
			(void)snprintf(license, HUB_LICENSE_BYTES, "%.*s", (int)k, at);
		line = stop < end ? stop + 1 : end;
	}
}

static void read_license(const char *dir, char license[static HUB_LICENSE_BYTES]) {
	char path[PATH_MAX];
	uint8_t *text;
	size_t n;
	license[0] = '\0';
	(void)snprintf(path, sizeof path, "%s/README.md", dir);
	if (rv_file_read(path, README_MAX_BYTES, &text, &n, NULL) != RV_OK)
		return;
	hub_license((const char *)text, n, license);
	free(text);
}

enum rv_err hub_directory_add(struct data_files *d, const char *path, const char *split,
							  char license[static HUB_LICENSE_BYTES], struct rv_errtext *et) {
	struct stat st;
	char data[PATH_MAX];
	struct listing l = {0};
	license[0] = '\0';
	if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
		return data_files_add(d, path, NULL, et);
	RV_TRY(refuse_saved(path, et));
	if (!is_data_set(path) && !split[0])
		return data_files_add(d, path, NULL, et);
	read_license(path, license);
	(void)snprintf(data, sizeof data, "%s/data", path);
	bool is_below = has(path, "data", true);
	enum rv_err e = list(&l, is_below ? data : path, is_below ? DEPTH_MAX : 0, et);
	if (e == RV_OK)
		e = add_split(d, &l, path, split, et);
	release(&l);
	return e;
}
