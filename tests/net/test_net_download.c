/* Downloads: verified, cached, resumed after a cut, refused when wrong. */
#include "net/download.h"
#include "web_server.h"

#include "base/file.h"
#include "base/hex.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"

#include <ftw.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_BYTES = 300000 };
static uint8_t file[FILE_BYTES], other_file[FILE_BYTES];

struct scene {
	char dir[64];
	struct web_server server;
	char hex[65];
	atomic_int requests, ranged;
	_Atomic size_t cut; /* the next replies end after so many bytes */
	atomic_bool ignore_range, serve_other;
	char path[DOWNLOAD_PATH_BYTES];
	struct rv_errtext et;
	int progress_calls;
	bool stop;
};

static void handle(void *ctx, const struct web_request *rq, struct web_reply *reply) {
	struct scene *s = ctx;
	s->requests++;
	s->ranged += rq->range_start > 0;
	if (strcmp(rq->path, "/file") != 0) {
		reply->status = 404;
		return;
	}
	if (rq->range_start >= FILE_BYTES) {
		reply->status = 416;
		return;
	}
	size_t from = s->ignore_range ? 0 : (size_t)rq->range_start;
	reply->status = from > 0 ? 206 : 200;
	static _Thread_local char range[96];
	if (from > 0) {
		snprintf(range, sizeof range, "Content-Range: bytes %zu-%d/%d\r\n", from, FILE_BYTES - 1, FILE_BYTES);
		reply->headers = range;
	}
	reply->body = (s->serve_other ? other_file : file) + from;
	reply->body_bytes = FILE_BYTES - from;
	reply->cut_after = s->cut;
}

static void scene_init(struct scene *s) {
	memset(s, 0, sizeof *s);
	scratch_make(s->dir, sizeof s->dir);
	uint8_t digest[crypto_hash_sha256_BYTES];
	crypto_hash_sha256(digest, file, FILE_BYTES);
	rv_hex_encode(digest, sizeof digest, s->hex);
	web_start(&s->server, NULL, handle, s);
}

static void scene_release(struct scene *s) {
	web_stop(&s->server);
	scratch_remove(s->dir);
}

static bool progress(void *ctx, uint64_t done_bytes, uint64_t total_bytes) {
	struct scene *s = ctx;
	s->progress_calls++;
	assert_true(total_bytes == 0 || (total_bytes == FILE_BYTES && done_bytes <= total_bytes));
	return !s->stop;
}

static enum rv_err get(struct scene *s, const char *path, const char *hex, uint64_t max_bytes, int attempts) {
	char source[512], cache[128];
	snprintf(cache, sizeof cache, "%s/cache", s->dir);
	struct download_config cfg = {
		.cache_dir = cache, .max_bytes = max_bytes, .attempts = attempts, .progress = progress, .ctx = s};
	snprintf(source, sizeof source, "http://127.0.0.1:%u%s#sha256=%s", s->server.port, path, hex);
	return download(&cfg, source, s->path, &s->et);
}

static void assert_whole_file(const char *path) {
	uint8_t *data;
	size_t n;
	assert_int_equal(rv_file_read(path, FILE_BYTES, &data, &n, NULL), RV_OK);
	assert_int_equal(n, FILE_BYTES);
	assert_memory_equal(data, file, FILE_BYTES);
	free(data);
}

static bool part_exists(struct scene *s, struct stat *st) {
	char part[256];
	snprintf(part, sizeof part, "%s/cache/sha256-%s.part", s->dir, s->hex);
	return stat(part, st) == 0;
}

/* ---- tests ---- */

static void fetched_once_then_cached(void **state) {
	(void)state;
	struct scene s;
	struct stat st;
	scene_init(&s);
	assert_int_equal(get(&s, "/file", s.hex, 0, 0), RV_OK);
	assert_whole_file(s.path);
	assert_int_equal(s.requests, 1);
	s.path[0] = '\0';
	assert_int_equal(get(&s, "/file", s.hex, 0, 0), RV_OK);
	assert_whole_file(s.path);
	assert_int_equal(s.requests, 1);
	assert_false(part_exists(&s, &st));
	scene_release(&s);
}

/* Each reply is cut after 70,000 bytes: one call puts the file together from five of them. */
static void cut_transfer_is_resumed_at_once(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	s.cut = 70000;
	assert_int_equal(get(&s, "/file", s.hex, 0, 0), RV_OK);
	assert_whole_file(s.path);
	assert_int_equal(s.requests, 5);
	assert_int_equal(s.ranged, 4);
	scene_release(&s);
}

static void part_is_used_by_a_later_call(void **state) {
	(void)state;
	struct scene s;
	struct stat st;
	scene_init(&s);
	s.cut = 100000;
	assert_int_equal(get(&s, "/file", s.hex, 0, 1), RV_E_CLOSED);
	assert_true(part_exists(&s, &st));
	assert_int_equal(st.st_size, 100000);
	s.cut = 0;
	assert_int_equal(get(&s, "/file", s.hex, 0, 1), RV_OK);
	assert_whole_file(s.path);
	assert_int_equal(s.ranged, 1);
	scene_release(&s);
}

static void server_without_ranges(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	s.cut = 100000;
	assert_int_equal(get(&s, "/file", s.hex, 0, 1), RV_E_CLOSED);
	s.cut = 0;
	s.ignore_range = true;
	assert_int_equal(get(&s, "/file", s.hex, 0, 1), RV_OK);
	assert_whole_file(s.path);
	scene_release(&s);
}

/* All bytes were there when the last call ended without its rename. */
static void complete_part_is_accepted(void **state) {
	(void)state;
	struct scene s;
	char part[256], cache[128];
	scene_init(&s);
	snprintf(cache, sizeof cache, "%s/cache", s.dir);
	snprintf(part, sizeof part, "%s/sha256-%s.part", cache, s.hex);
	assert_int_equal(mkdir(cache, 0755), 0);
	assert_int_equal(rv_file_write_atomic(part, file, FILE_BYTES, 0644, NULL), RV_OK);
	assert_int_equal(get(&s, "/file", s.hex, 0, 1), RV_OK);
	assert_whole_file(s.path);
	scene_release(&s);
}

static void wrong_hash_is_refused_and_not_kept(void **state) {
	(void)state;
	struct scene s;
	struct stat st;
	scene_init(&s);
	char right[65];
	memcpy(right, s.hex, sizeof right);
	s.hex[5] = s.hex[5] == '0' ? '1' : '0';
	assert_int_equal(get(&s, "/file", s.hex, 0, 0), RV_E_CORRUPT);
	assert_non_null(strstr(s.et.text, right));
	assert_non_null(strstr(s.et.text, s.hex));
	assert_false(part_exists(&s, &st));
	scene_release(&s);
}

/* A part that is wrong costs one more call, never a wrong file. */
static void wrong_part_is_thrown_away(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	s.cut = 1000;
	s.serve_other = true;
	assert_int_equal(get(&s, "/file", s.hex, 0, 1), RV_E_CLOSED);
	s.serve_other = false;
	s.cut = 0;
	assert_int_equal(get(&s, "/file", s.hex, 0, 1), RV_E_CORRUPT);
	assert_int_equal(get(&s, "/file", s.hex, 0, 1), RV_OK);
	assert_whole_file(s.path);
	scene_release(&s);
}

static void limits_and_statuses(void **state) {
	(void)state;
	struct scene s;
	struct stat st;
	scene_init(&s);
	assert_int_equal(get(&s, "/file", s.hex, FILE_BYTES - 1, 0), RV_E_RANGE);
	assert_non_null(strstr(s.et.text, "longer than 299999 bytes"));
	assert_false(part_exists(&s, &st));
	assert_int_equal(get(&s, "/file", s.hex, FILE_BYTES, 0), RV_OK);
	assert_int_equal(get(&s, "/missing", "00000000000000000000000000000000000000000000000000000000000000ff", 0, 0),
					 RV_E_NOTFOUND);
	assert_non_null(strstr(s.et.text, "404"));
	web_stop(&s.server);
	assert_int_equal(get(&s, "/file", "00000000000000000000000000000000000000000000000000000000000000ff", 0, 0),
					 RV_E_CLOSED);
	web_start(&s.server, NULL, handle, &s);
	scene_release(&s);
}

static void user_may_stop_it(void **state) {
	(void)state;
	struct scene s;
	scene_init(&s);
	s.stop = true;
	assert_int_equal(get(&s, "/file", s.hex, 0, 0), RV_E_CANCELLED);
	assert_int_equal(s.progress_calls, 1);
	s.stop = false;
	assert_int_equal(get(&s, "/file", s.hex, 0, 0), RV_OK);
	scene_release(&s);
}

/* Without a hash TLS has to vouch for the content: a server that no authority knows is refused. */
static void untrusted_https_is_refused(void **state) {
	(void)state;
	struct scene s;
	static const uint8_t seed[IDENTITY_SEED_BYTES] = {4};
	struct identity id;
	char source[128];
	scene_init(&s);
	web_stop(&s.server);
	identity_of_seed(seed, &id);
	web_start(&s.server, &id, handle, &s);
	snprintf(source, sizeof source, "https://127.0.0.1:%u/file", s.server.port);
	struct download_config cfg = {.cache_dir = s.dir};
	assert_int_equal(download(&cfg, source, s.path, &s.et), RV_E_AUTH);
	assert_int_equal(s.requests, 0);
	scene_release(&s);
}

static void sources(void **state) {
	(void)state;
	static const struct {
		const char *source;
		enum rv_err err;
		const char *words;
	} bad[] = {
		{"http://host/file", RV_E_INVALID, "append #sha256="},
		{"http://host/file#md5=00", RV_E_INVALID, "must stand sha256="},
		{"https://host/file#sha256=12", RV_E_INVALID, "64 hex digits"},
		{"https://host/a file", RV_E_INVALID, "%20"},
		{"ftp://host/file", RV_E_INVALID, "only https, http, file and paths"},
		{"file://host/file", RV_E_INVALID, "file:///absolute/path"},
		{"file:///nonexistent/file", RV_E_NOTFOUND, "/nonexistent/file"},
		{"/nonexistent/file", RV_E_NOTFOUND, "/nonexistent/file"},
	};
	struct download_config cfg = {.cache_dir = "/nonexistent/cache"};
	char path[DOWNLOAD_PATH_BYTES];
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct rv_errtext et = {0};
		assert_int_equal(download(&cfg, bad[i].source, path, &et), bad[i].err);
		if (strstr(et.text, bad[i].words) == NULL)
			fail_msg("%s: %s", bad[i].source, et.text);
	}
	assert_int_equal(download(&cfg, "file:///proc/self/status", path, NULL), RV_OK);
	assert_string_equal(path, "/proc/self/status");
	assert_int_equal(download(&cfg, "/proc/self/status", path, NULL), RV_OK);
	assert_string_equal(path, "/proc/self/status");
	assert_true(download_is_remote("HTTPS://x/") && !download_is_remote("file:///x") && !download_is_remote("x"));
}

int main(void) {
	for (size_t i = 0; i < FILE_BYTES; i++)
		file[i] = (uint8_t)(i * 193 + (i >> 9));
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fetched_once_then_cached),
		cmocka_unit_test(cut_transfer_is_resumed_at_once),
		cmocka_unit_test(part_is_used_by_a_later_call),
		cmocka_unit_test(server_without_ranges),
		cmocka_unit_test(complete_part_is_accepted),
		cmocka_unit_test(wrong_hash_is_refused_and_not_kept),
		cmocka_unit_test(wrong_part_is_thrown_away),
		cmocka_unit_test(limits_and_statuses),
		cmocka_unit_test(user_may_stop_it),
		cmocka_unit_test(untrusted_https_is_refused),
		cmocka_unit_test(sources),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
