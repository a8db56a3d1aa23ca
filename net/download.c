/* download.c: resumed, verified, cached downloads through libcurl (net/download.h). */
#include "net/download.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/hex.h"
#include "net/ca_file.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	URL_MAX_BYTES = 2048,
	SHA256_BYTES = crypto_hash_sha256_BYTES,
	DEFAULT_STALL_MS = 30000,
	DEFAULT_ATTEMPTS = 5,
	MIN_SPEED_BYTES_PER_S = 1024,
	MAX_REDIRECTS = 5,
	PROGRESS_US = 100 * 1000,
	HASH_BUFFER_BYTES = 1 << 18
};
static const uint64_t default_max_bytes = UINT64_C(64) << 30;

struct source {
	char url[URL_MAX_BYTES]; /* without fragment */
	bool has_hash;
	uint8_t sha256[SHA256_BYTES];
};

struct transfer {
	const struct download_config *cfg;
	const struct source *src;
	uint64_t max_bytes;
	int64_t stall_ms;
	char path[DOWNLOAD_PATH_BYTES], part[DOWNLOAD_PATH_BYTES + 8];
	int fd;
	CURL *easy;
	uint64_t start_bytes; /* of the part when this attempt began */
	uint64_t done_bytes;
	bool checked_status, too_long, cancelled;
	int write_errno;
	int64_t progress_us;
	char curl_text[CURL_ERROR_SIZE];
};

/* ---- the source ---- */

static bool has_scheme(const char *source, const char *scheme) {
	return strncasecmp(source, scheme, strlen(scheme)) == 0;
}

bool download_is_remote(const char *source) {
	return has_scheme(source, "http://") || has_scheme(source, "https://");
}

static enum rv_err parse_remote(const char *text, struct source *out, struct rv_errtext *et) {
	static const char key[] = "sha256=";
	const char *hash = strchr(text, '#');
	size_t n = hash != NULL ? (size_t)(hash - text) : strlen(text);
	if (n >= sizeof out->url)
		return rv_fail(et, RV_E_INVALID, "URL of %zu bytes, at most %zu", n, sizeof out->url - 1);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] >= 0x7f)
			return rv_fail(et, RV_E_INVALID, "URL: byte 0x%02x must be written as %%%02X", (unsigned char)text[i],
						   (unsigned char)text[i]);
	memcpy(out->url, text, n);
	out->url[n] = '\0';
	out->has_hash = hash != NULL;
	if (hash != NULL &&
		(strncmp(hash + 1, key, sizeof key - 1) != 0 || !rv_hex_decode(hash + sizeof key, out->sha256, SHA256_BYTES)))
		return rv_fail(et, RV_E_INVALID, "%.200s: behind '#' must stand sha256= and %d hex digits", text,
					   2 * SHA256_BYTES);
	if (hash == NULL && !has_scheme(text, "https://"))
		return rv_fail(et, RV_E_INVALID,
					   "%.200s: plain http can be changed on the way: append #sha256=HEX, or use https", text);
	return RV_OK;
}

/* A file URL: empty host or "localhost", absolute path. Everything else that is not remote is a
 * path. */
static enum rv_err local_path(const char *source, char path[DOWNLOAD_PATH_BYTES], struct rv_errtext *et) {
	const char *at = source;
	if (has_scheme(source, "file://")) {
		at += strlen("file://");
		if (has_scheme(at, "localhost/"))
			at += strlen("localhost");
		if (at[0] != '/' || strpbrk(at, "#%?") != NULL)
			return rv_fail(et, RV_E_INVALID, "%.200s: a file URL is file:///absolute/path, unquoted", source);
	} else if (strstr(source, "://") != NULL) {
		return rv_fail(et, RV_E_INVALID, "%.200s: only https, http, file and paths can be read", source);
	}
	if (strlen(at) >= DOWNLOAD_PATH_BYTES)
		return rv_fail(et, RV_E_INVALID, "path of %zu bytes, at most %d", strlen(at), DOWNLOAD_PATH_BYTES - 1);
	memcpy(path, at, strlen(at) + 1);
	return access(path, R_OK) == 0 ? RV_OK : rv_fail_errno(et, errno, "%s", path);
}

/* ---- one transfer ---- */

/* The server may answer a Range request with the whole file (200): then the part starts anew. */
static bool check_status(struct transfer *t) {
	long status = 0;
	t->checked_status = true;
	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	if (t->start_bytes == 0 || status != 200)
		return true;
	t->start_bytes = t->done_bytes = 0;
	if (ftruncate(t->fd, 0) == 0 && lseek(t->fd, 0, SEEK_SET) == 0)
		return true;
	t->write_errno = errno;
	return false;
}

static size_t take_bytes(char *data, size_t size, size_t n, void *ctx) {
	struct transfer *t = ctx;
	size_t bytes = size * n;
	if (!t->checked_status && !check_status(t))
		return CURL_WRITEFUNC_ERROR;
	if (bytes > t->max_bytes - t->done_bytes) {
		t->too_long = true;
		return CURL_WRITEFUNC_ERROR;
	}
	if (!rv_write_all(t->fd, data, bytes)) {
		t->write_errno = errno;
		return CURL_WRITEFUNC_ERROR;
	}
	t->done_bytes += bytes;
	return bytes;
}

static int show_progress(void *ctx, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now) {
	struct transfer *t = ctx;
	(void)now;
	(void)up_total;
	(void)up_now;
	int64_t us = rv_clock_monotonic_us();
	if (t->cfg->progress == NULL || us - t->progress_us < PROGRESS_US)
		return 0;
	t->progress_us = us;
	uint64_t all = total > 0 ? t->start_bytes + (uint64_t)total : 0;
	t->cancelled = !t->cfg->progress(t->cfg->ctx, t->done_bytes, all);
	return t->cancelled ? 1 : 0;
}

static void set_options(struct transfer *t) {
	CURL *c = t->easy;
	curl_easy_setopt(c, CURLOPT_URL, t->src->url);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)ca_file_use(c);
	/* Without a hash the content is only as good as TLS: a redirect must not leave it. */
	curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, t->src->has_hash ? "http,https" : "https");
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(c, CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
	curl_easy_setopt(c, CURLOPT_FAILONERROR, 1L);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "rivulet/" RV_VERSION);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)t->stall_ms);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, (long)MIN_SPEED_BYTES_PER_S);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)((t->stall_ms + 999) / 1000));
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_bytes);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, show_progress);
	curl_easy_setopt(c, CURLOPT_XFERINFODATA, t);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, t->curl_text);
	/* Not RESUME_FROM, which fails where a server has no ranges and sends the whole file. */
	char range[32];
	snprintf(range, sizeof range, "%llu-", (unsigned long long)t->start_bytes);
	if (t->start_bytes > 0)
		curl_easy_setopt(c, CURLOPT_RANGE, range);
}

static enum rv_err explain(const struct transfer *t, CURLcode rc, struct rv_errtext *et) {
	const char *url = t->src->url, *text = t->curl_text[0] != '\0' ? t->curl_text : curl_easy_strerror(rc);
	if (t->cancelled)
		return rv_fail(et, RV_E_CANCELLED, "%.200s: stopped; what is there will be used next time", url);
	if (t->too_long)
		return rv_fail(et, RV_E_RANGE, "%.200s: longer than %llu bytes", url, (unsigned long long)t->max_bytes);
	if (t->write_errno != 0)
		return rv_fail_errno(et, t->write_errno, "%s", t->part);
	switch (rc) {
	case CURLE_HTTP_RETURNED_ERROR:
		return rv_fail(et, RV_E_NOTFOUND, "%.200s: %s", url, text);
	case CURLE_COULDNT_RESOLVE_HOST:
		return rv_fail(et, RV_E_NOTFOUND, "%.200s: the host's name is not known (%s)", url, text);
	case CURLE_OPERATION_TIMEDOUT:
		return rv_fail(et, RV_E_TIMEOUT, "%.200s: %s", url, text);
	case CURLE_PEER_FAILED_VERIFICATION:
		return rv_fail(et, RV_E_AUTH, "%.200s: %s", url, text);
	case CURLE_SSL_CACERT_BADFILE:
		return rv_fail(et, RV_E_AUTH, "%.200s: no authorities to check the server by (install ca-certificates): %s",
					   url, text);
	default:
		return rv_fail(et, RV_E_CLOSED, "%.200s: %s", url, text);
	}
}

/* One request for what is still missing. */
static enum rv_err attempt(struct transfer *t, bool *complete, struct rv_errtext *et) {
	t->start_bytes = t->done_bytes;
	t->checked_status = false;
	t->curl_text[0] = '\0';
	t->easy = curl_easy_init();
	if (t->easy == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for a download");
	set_options(t);
	long status = 0;
	CURLcode rc = curl_easy_perform(t->easy);
	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(t->easy);
	t->easy = NULL;
	/* 416: nothing lies behind what we have; the hash says whether that is all of it. */
	*complete = rc == CURLE_OK || (status == 416 && t->start_bytes > 0);
	return *complete ? RV_OK : explain(t, rc, et);
}

/* Worth another try at once: the line was cut. Without a hash nobody could tell whether both halves
 * are of one file. */
static bool may_resume(const struct transfer *t, enum rv_err e) {
	return t->src->has_hash && (e == RV_E_CLOSED || e == RV_E_TIMEOUT) && t->done_bytes > t->start_bytes;
}

static enum rv_err fetch_all(struct transfer *t, struct rv_errtext *et) {
	int attempts = t->cfg->attempts > 0 ? t->cfg->attempts : DEFAULT_ATTEMPTS;
	bool complete = false;
	enum rv_err e = RV_OK;
	for (int i = 0; i < attempts && !complete; i++) {
		e = attempt(t, &complete, et);
		if (e != RV_OK && !may_resume(t, e))
			return e;
	}
	return e;
}

/* ---- the cache ---- */

static enum rv_err hash_file(int fd, const char *name, uint8_t out[SHA256_BYTES], struct rv_errtext *et) {
	crypto_hash_sha256_state st;
	uint8_t *buffer = malloc(HASH_BUFFER_BYTES);
	if (buffer == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory to hash %s", name);
	crypto_hash_sha256_init(&st);
	enum rv_err e = lseek(fd, 0, SEEK_SET) == 0 ? RV_OK : rv_fail_errno(et, errno, "%s", name);
	while (e == RV_OK) {
		ssize_t n = read(fd, buffer, HASH_BUFFER_BYTES);
		if (n < 0)
			e = rv_fail_errno(et, errno, "%s", name);
		if (n <= 0)
			break;
		crypto_hash_sha256_update(&st, buffer, (unsigned long long)n);
	}
	crypto_hash_sha256_final(&st, out);
	free(buffer);
	return e;
}

static enum rv_err verify(const struct transfer *t, struct rv_errtext *et) {
	uint8_t got[SHA256_BYTES];
	char got_hex[2 * SHA256_BYTES + 1], want_hex[2 * SHA256_BYTES + 1];
	if (!t->src->has_hash)
		return RV_OK;
	RV_TRY(hash_file(t->fd, t->part, got, et));
	if (memcmp(got, t->src->sha256, SHA256_BYTES) == 0)
		return RV_OK;
	rv_hex_encode(got, SHA256_BYTES, got_hex);
	rv_hex_encode(t->src->sha256, SHA256_BYTES, want_hex);
	unlink(t->part);
	return rv_fail(et, RV_E_CORRUPT,
				   "%.120s: %llu bytes with SHA-256 %s, must be %s: the file at that address is another", t->src->url,
				   (unsigned long long)t->done_bytes, got_hex, want_hex);
}

/* The rename gives the name only to bytes that are on the disk. */
static enum rv_err publish(struct transfer *t, struct rv_errtext *et) {
	if (fsync(t->fd) != 0 || rename(t->part, t->path) != 0)
		return rv_fail_errno(et, errno, "%s", t->path);
	return RV_OK;
}

/* Opens the part where an earlier call left it. Without a hash its bytes may be of another file:
 * start anew. */
static enum rv_err open_part(struct transfer *t, struct rv_errtext *et) {
	struct stat st;
	int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (t->src->has_hash ? 0 : O_TRUNC);
	t->fd = open(t->part, flags, 0644);
	if (t->fd < 0 || fstat(t->fd, &st) != 0 || lseek(t->fd, 0, SEEK_END) < 0)
		return rv_fail_errno(et, errno, "%s", t->part);
	t->done_bytes = (uint64_t)st.st_size;
	if (t->done_bytes <= t->max_bytes)
		return RV_OK;
	return rv_fail(et, RV_E_RANGE, "%s: %llu bytes already, at most %llu", t->part, (unsigned long long)t->done_bytes,
				   (unsigned long long)t->max_bytes);
}

static void name_in_cache(const struct source *src, char out[2 * SHA256_BYTES + 16]) {
	char hex[2 * SHA256_BYTES + 1];
	uint8_t of_url[SHA256_BYTES];
	crypto_hash_sha256(of_url, (const uint8_t *)src->url, strlen(src->url));
	rv_hex_encode(src->has_hash ? src->sha256 : of_url, SHA256_BYTES, hex);
	snprintf(out, 2 * SHA256_BYTES + 16, "%s-%s", src->has_hash ? "sha256" : "url", hex);
}

static enum rv_err transfer_paths(struct transfer *t, struct rv_errtext *et) {
	char name[2 * SHA256_BYTES + 16];
	name_in_cache(t->src, name);
	int n = snprintf(t->path, sizeof t->path, "%s/%s", t->cfg->cache_dir, name);
	if (n < 0 || (size_t)n >= sizeof t->path)
		return rv_fail(et, RV_E_INVALID, "cache directory %.100s...: its path is too long", t->cfg->cache_dir);
	snprintf(t->part, sizeof t->part, "%s.part", t->path);
	return rv_dir_make(t->cfg->cache_dir, 0755, et);
}

static enum rv_err fetch_into_cache(struct transfer *t, struct rv_errtext *et) {
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return rv_fail(et, RV_E_UNSUPPORTED, "libcurl does not start");
	enum rv_err e = open_part(t, et);
	if (e == RV_OK)
		e = fetch_all(t, et);
	if (e == RV_OK)
		e = verify(t, et);
	if (e == RV_OK)
		e = publish(t, et);
	if (e == RV_E_RANGE)
		unlink(t->part);
	if (t->fd >= 0)
		close(t->fd);
	curl_global_cleanup();
	return e;
}

enum rv_err download(const struct download_config *cfg, const char *source, char path[DOWNLOAD_PATH_BYTES],
					 struct rv_errtext *et) {
	if (!download_is_remote(source))
		return local_path(source, path, et);
	struct source src = {0};
	RV_TRY(parse_remote(source, &src, et));
	struct transfer t = {.cfg = cfg, .src = &src, .fd = -1};
	t.max_bytes = cfg->max_bytes > 0 ? cfg->max_bytes : default_max_bytes;
	t.stall_ms = cfg->stall_ms > 0 ? cfg->stall_ms : DEFAULT_STALL_MS;
	RV_TRY(transfer_paths(&t, et));
	if (access(t.path, R_OK) != 0)
		RV_TRY(fetch_into_cache(&t, et));
	memcpy(path, t.path, sizeof t.path);
	return RV_OK;
}
