/* test_lab_http_request.c: what a request to `rivulet data serve` asks for. */
#include "lab/data/http_request.h"
#include "tests/common/check.h"

#include <stdio.h>
#include <string.h>

/* 80 bytes that fit a pattern, but for their number. */
#define ZEROS     "0000000000"
#define LONG_NAME "shard-" ZEROS ZEROS ZEROS ZEROS ZEROS ZEROS ZEROS ".bin"

static struct http_request_head ask(const char *line, const char *headers) {
	char head[600];
	int n = snprintf(head, sizeof head, "%s\r\n%s\r\n", line, headers);
	assert_int_equal(http_head_length(head, (size_t)n), n);
	assert_int_equal(http_head_length(head, (size_t)n - 1), 0);
	return http_request_of(head, (size_t)n);
}

static void names_are_those_of_a_published_text(void **state) {
	(void)state;
	static const char *const good[] = {"manifest.json",        "tokenizer.json",    "tokenizer.tiktoken",
									   "shard-000000.bin",     "shard-1048575.bin", "index-0-000000.hashes",
									   "index-2-000001.hashes"};
	static const char *const bad[] = {"../manifest.json",
									  "lock",
									  "publish.log",
									  "tokens.json",
									  "shard-1.bin",
									  ".",
									  "shard-000000.bin/",
									  "shard-000000.bin.tmp-abcdef",
									  "shard-000000/../x.bin",
									  "%2e%2e/manifest.json",
									  LONG_NAME,
									  "index-0-000000.hashes\t",
									  ""};
	char line[200];
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		snprintf(line, sizeof line, "GET /%s HTTP/1.1", good[i]);
		const struct http_request_head q = ask(line, "Host: a\r\n");
		assert_int_equal(q.fault, HTTP_OK);
		assert_string_equal(q.name, good[i]);
		assert_true(q.keeps_alive && q.wants_body && !q.range.is_given);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		snprintf(line, sizeof line, "GET /%s HTTP/1.1", bad[i]);
		if (ask(line, "").fault != HTTP_NOT_FOUND)
			fail_msg("%s is served", line);
	}
}

static void other_requests_are_refused(void **state) {
	(void)state;
	assert_int_equal(ask("POST /manifest.json HTTP/1.1", "").fault, HTTP_NOT_ALLOWED);
	assert_int_equal(ask("GET /manifest.json", "").fault, HTTP_BAD_REQUEST);
	assert_int_equal(ask("GET /manifest.json HTTP/2.0", "").fault, HTTP_BAD_REQUEST);
	assert_int_equal(ask("GET /manifest.json HTTP/1.1", "no colon\r\n").fault, HTTP_BAD_REQUEST);
	assert_int_equal(ask("GET /manifest.json HTTP/1.1", "Content-Length : 5\r\n").fault, HTTP_BAD_REQUEST);
	assert_int_equal(ask("GET /manifest.json HTTP/1.1", "A: b\r\n folded: c\r\n").fault, HTTP_BAD_REQUEST);
	assert_int_equal(ask("GET /manifest.json HTTP/1.1", ": b\r\n").fault, HTTP_BAD_REQUEST);
	assert_int_equal(ask("GET /manifest.json HTTP/1.1", "Content-Length: 5\r\n").fault, HTTP_BAD_REQUEST);
	assert_int_equal(ask("GET /manifest.json HTTP/1.1", "Transfer-Encoding: chunked\r\n").fault, HTTP_BAD_REQUEST);
	assert_int_equal(ask("GET manifest.json HTTP/1.1", "").fault, HTTP_NOT_FOUND);
	assert_false(ask("GET /manifest.json HTTP/1.0", "").keeps_alive);
	assert_false(ask("GET /manifest.json HTTP/1.1", "connection: Close\r\n").keeps_alive);
	assert_false(ask("HEAD /manifest.json?v=1 HTTP/1.1", "").wants_body);
}

static void ranges_are_cut_to_the_file(void **state) {
	(void)state;
	static const struct {
		const char *header;
		int status;
		uint64_t first, n; /* of a file of 100 bytes */
	} cases[] = {
		{"Range: bytes=0-0\r\n", HTTP_PARTIAL, 0, 1},
		{"range:bytes=10-19 \r\n", HTTP_PARTIAL, 10, 10},
		{"Range: bytes=90-\r\n", HTTP_PARTIAL, 90, 10},
		{"Range: bytes=90-900\r\n", HTTP_PARTIAL, 90, 10},
		{"Range: bytes=-7\r\n", HTTP_PARTIAL, 93, 7},
		{"Range: bytes=-700\r\n", HTTP_PARTIAL, 0, 100},
		{"Range: bytes=100-\r\n", HTTP_NOT_SATISFIABLE, 0, 0},
		{"Range: bytes=-0\r\n", HTTP_NOT_SATISFIABLE, 0, 0},
		{"Range: bytes=9-5\r\n", HTTP_OK, 0, 100}, /* no range: RFC 9110, 14.1.1 */
		{"Range: bytes=1-2,5-6\r\n", HTTP_OK, 0, 100},
		{"Range: bytes=99999999999999999999-\r\n", HTTP_OK, 0, 100},
		{"Range: lines=1-2\r\n", HTTP_OK, 0, 100},
		{"Range: bytes=1-2\r\nIf-Range: \"x\"\r\n", HTTP_OK, 0, 100},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct http_request_head q = ask("GET /manifest.json HTTP/1.1", cases[i].header);
		uint64_t first, n;
		int status = http_range_cut(&q.range, 100, &first, &n);
		if (status != cases[i].status ||
			(status != HTTP_NOT_SATISFIABLE && (first != cases[i].first || n != cases[i].n)))
			fail_msg("%s: %d, %d bytes from %d", cases[i].header, status, (int)n, (int)first);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_those_of_a_published_text),
		cmocka_unit_test(other_requests_are_refused),
		cmocka_unit_test(ranges_are_cut_to_the_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
