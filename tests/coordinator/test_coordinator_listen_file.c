/* Where programs on this machine find the coordinator: written when it is news, and only then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "coordinator/listen_file.h"

static const struct address here = {.host = "127.0.0.1", .port = 7433}, there = {.host = "::1", .port = 7433};

static ino_t inode_of(const char *path) {
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void assert_says(const char *path, const struct address *at) {
	struct address got;
	struct rv_errtext et = {0};
	assert_int_equal(listen_file_read(path, &got, &et), RV_OK);
	assert_string_equal(got.host, at->host);
	assert_int_equal(got.port, at->port);
}

static void test_what_is_right_stays(void **state) {
	(void)state;
	char dir[] = "/tmp/rivulet-listen-XXXXXX", path[64];
	struct address got;
	struct rv_errtext et = {0};
	assert_non_null(mkdtemp(dir));
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
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(rmdir(dir), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_right_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
