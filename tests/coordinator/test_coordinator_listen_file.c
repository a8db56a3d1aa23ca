/* Where programs on this machine find the coordinator: written when it is news, and only then; and
 * once there is room. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/event.h"
#include "base/file.h"
#include "coordinator/web/listen_file.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"

static const struct address here = {.host = "127.0.0.1", .port = 7433}, there = {.host = "::1", .port = 7433};

static ino_t inode_of(const char *path) {
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void assert_says(const char *path, const struct address *at) {
	struct address got;
	assert_ok(listen_file_read(path, &got, &et));
	assert_string_equal(got.host, at->host);
	assert_int_equal(got.port, at->port);
}

static void test_what_is_right_stays(void **state) {
	(void)state;
	char dir[64], path[80];
	struct address got;
	struct rv_errtext et = {0};
	scratch_make(dir, sizeof dir);
	(void)snprintf(path, sizeof path, "%s/listen", dir);
	assert_int_equal(listen_file_read(path, &got, &et), RV_E_NOTFOUND);
	assert_int_equal(listen_file_write(path, &here, &et), RV_OK);
	assert_says(path, &here);
	ino_t first = inode_of(path);
	listen_file_clean(path, &here); /* as after a kill -9: a full disk has no room for another */
	assert_int_equal(listen_file_write(path, &here, &et), RV_OK);
	assert_int_equal(inode_of(path), first);
	assert_int_equal(listen_file_write(path, &there, &et), RV_OK);
	assert_says(path, &there);
	listen_file_clean(path, &here);
	assert_int_equal(scratch_count(dir), 0);
}

static void assert_said_once(const char *log) {
	uint8_t *text = NULL;
	size_t n = 0;
	assert_ok(rv_file_read(log, 4096, &text, &n, &et));
	const char *first = strstr((const char *)text, "\"listen_file\"");
	assert_non_null(first);
	assert_null(strstr(first + 1, "\"listen_file\""));
	free(text);
}

/* A directory that is not there stands for the disk without room. */
static void test_what_is_owed_is_written(void **state) {
	(void)state;
	enum { PAUSE_US = LISTEN_NOTICE_PAUSE_S * RV_US_PER_S };
	char dir[64], sub[80], path[96], log[80];
	scratch_make(dir, sizeof dir);
	(void)snprintf(sub, sizeof sub, "%s/run", dir);
	(void)snprintf(path, sizeof path, "%s/listen", sub);
	(void)snprintf(log, sizeof log, "%s/log", dir);
	struct listen_notice n = {.path = path, .at = here, .owed = true};
	const struct rv_events_config ec = {.out = stdout, .json = true, .level = RV_INFO, .log_path = log};
	assert_ok(rv_events_new(&ec, &n.events, &et));
	listen_notice_tick(&n, PAUSE_US);
	assert_true(n.owed);
	assert_int_equal(mkdir(sub, 0700), 0);
	listen_notice_tick(&n, 2 * PAUSE_US - 1);
	assert_true(n.owed);
	for (int i = 2; i < 5; i++) {
		listen_notice_tick(&n, i * PAUSE_US);
		assert_says(path, &here);
	}
	rv_events_free(n.events);
	assert_said_once(log);
	scratch_remove_only(sub, (const char *const[]){"listen", NULL});
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_right_stays),
		cmocka_unit_test(test_what_is_owed_is_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
