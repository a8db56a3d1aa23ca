/* release.c: see release.h. */
#include "worker/update/release.h"

#include "base/clean_text.h"
#include "base/file.h"
#include "net/download.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUMS_BYTES_MAX = 1 << 20, URL_BYTES = 1024, HEX_BYTES = 64, NUMBER_MAX = 999999 };
#define SUMS      "SHA256SUMS"
#define SIGNATURE "SHA256SUMS.minisig"

/* ---- versions ---- */

/* Reads digits, and moves *at behind them. */
static bool take_number(const char **at, int *out) {
	int n = 0, digits = 0;
	for (; isdigit((unsigned char)**at) && n <= NUMBER_MAX; (*at)++, digits++)
		n = 10 * n + (**at - '0');
	*out = n;
	return digits > 0 && n <= NUMBER_MAX;
}

static bool take_point(const char **at) {
	return *(*at)++ == '.';
}

bool release_version_parse(const char *text, struct release_version *out) {
	static const char name[] = "rivulet ";
	if (strncmp(text, name, sizeof name - 1) == 0)
		text += sizeof name - 1;
	return take_number(&text, &out->major) && take_point(&text) && take_number(&text, &out->minor) &&
		   take_point(&text) && take_number(&text, &out->patch) && (*text == '\0' || *text == '+');
}

int release_version_compare(const struct release_version *a, const struct release_version *b) {
	if (a->major != b->major)
		return a->major - b->major;
	return a->minor != b->minor ? a->minor - b->minor : a->patch - b->patch;
}

/* ---- the feed ---- */

/* Fetches one file of the feed; the caller frees *text, which is NULL after a fault. */
static enum rv_err fetch_text(const char *feed, const char *name, const char *dir, size_t max_bytes, char **text,
							  struct rv_errtext *et) {
	const struct download_config cfg = {.cache_dir = dir, .max_bytes = max_bytes};
	char url[URL_BYTES], path[DOWNLOAD_PATH_BYTES];
	size_t n = strlen(feed);
	const bool has_slash = n > 0 && feed[n - 1] == '/';
	const int length = snprintf(url, sizeof url, "%s%s%s", feed, has_slash ? "" : "/", name);
	if (length < 0 || (size_t)length >= sizeof url)
		return rv_fail(et, RV_E_INVALID, "the feed's address has more than %d bytes", URL_BYTES - 1);
	*text = NULL;
	RV_TRY(download(&cfg, url, path, et));
	enum rv_err e = rv_file_read(path, max_bytes, (uint8_t **)text, &n, et);
	if (e == RV_OK && strlen(*text) != n) {
		free(*text);
		e = rv_fail(et, RV_E_INVALID, "%.200s: not a text", url);
	}
	if (e != RV_OK)
		*text = NULL;
	return e;
}

static enum rv_err check(const struct rv_minisign_public *key, const char *signature, struct release *r,
						 struct rv_errtext *et) {
	RV_TRY(rv_minisign_verify(key, r->sums, strlen(r->sums), signature, r->comment, et));
	clean_text(r->comment);
	if (release_version_parse(r->comment, &r->version))
		return RV_OK;
	return rv_fail(et, RV_E_CORRUPT, "the trusted comment \"%.100s\" is not: rivulet VERSION", r->comment);
}

static enum rv_err fetch_in(const char *dir, const char *feed, const struct rv_minisign_public *key, struct release *r,
							struct rv_errtext *et) {
	char *signature;
	RV_TRY(fetch_text(feed, SUMS, dir, SUMS_BYTES_MAX, &r->sums, et));
	enum rv_err e = fetch_text(feed, SIGNATURE, dir, RV_MINISIGN_TEXT_BYTES, &signature, et);
	if (e == RV_OK) {
		e = check(key, signature, r, et);
		free(signature);
	}
	if (e != RV_OK)
		release_free(r);
	return e;
}

/* Removes a directory of files, whole ones and parts. */
static void remove_directory(const char *path) {
	DIR *d = opendir(path);
	for (const struct dirent *f; d && (f = readdir(d)) != NULL;)
		if (f->d_name[0] != '.')
			(void)unlinkat(dirfd(d), f->d_name, 0);
	if (d)
		(void)closedir(d);
	(void)rmdir(path);
}

enum rv_err release_fetch(const char *feed, const struct rv_minisign_public *key, struct release *out,
						  struct rv_errtext *et) {
	const char *parent = getenv("TMPDIR");
	char dir[DOWNLOAD_PATH_BYTES / 2];
	*out = (struct release){.sums = NULL};
	const int n = snprintf(dir, sizeof dir, "%s/rivulet-update.XXXXXX", parent && parent[0] ? parent : "/tmp");
	if (n < 0 || (size_t)n >= sizeof dir)
		return rv_fail(et, RV_E_RANGE, "TMPDIR is too long");
	if (!mkdtemp(dir))
		return rv_fail_errno(et, errno, "%s", dir);
	enum rv_err e = fetch_in(dir, feed, key, out, et);
	remove_directory(dir);
	return e;
}

void release_free(struct release *r) {
	free(r->sums);
	r->sums = NULL;
}

/* Reads a line of sha256sum, "HEX  NAME", with a name that is safe to show. */
static bool parse_line(const char *line, size_t n, struct release_file *out) {
	if (n < HEX_BYTES + 3 || n - HEX_BYTES - 2 >= RELEASE_NAME_BYTES || line[HEX_BYTES] != ' ')
		return false;
	for (size_t i = 0; i < HEX_BYTES; i++)
		if (!isxdigit((unsigned char)line[i]))
			return false;
	memcpy(out->sha256, line, HEX_BYTES);
	out->sha256[HEX_BYTES] = '\0';
	memcpy(out->name, line + HEX_BYTES + 2, n - HEX_BYTES - 2);
	out->name[n - HEX_BYTES - 2] = '\0';
	clean_text(out->name);
	return true;
}

bool release_next_file(const char **at, const char *prefix, struct release_file *out) {
	while (**at) {
		const size_t n = strcspn(*at, "\n");
		const bool found = parse_line(*at, n, out) && strncmp(out->name, prefix, strlen(prefix)) == 0;
		*at += n + ((*at)[n] == '\n');
		if (found)
			return true;
	}
	return false;
}
