/* test_worker_allowed_file.c: a pause and the counts of bytes outlive a process; a damaged file is
 * named and costs the counts only. And what leaving a run removes, and what it keeps. */
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "worker/join/forget_run.h"
#include "worker/session/allowed_file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[256];

static int setup(void **state) {
	(void)state;
	scratch_make(dir, sizeof dir);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	scratch_remove(dir);
	return 0;
}

static void write_file(const char *name, const char *text) {
	char path[400];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static bool exists(const char *name) {
	char path[400];
	struct stat st;
	snprintf(path, sizeof path, "%s/%s", dir, name);
	return lstat(path, &st) == 0;
}

static void make_dir(const char *name) {
	char path[400];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void test_what_is_kept(void **state) {
	(void)state;
	const struct allow_kept kept = {.year = 2026,
									.month = 11,
									.day = 28,
									.counted_s = 1795879986,
									.day_bytes = 123456789012,
									.month_bytes = 1234567890123,
									.paused_until_s = ALLOW_FOREVER};
	struct allow_kept read;
	assert_int_equal(allowed_file_read(dir, &read, NULL), RV_OK); /* there is none */
	assert_int_equal(read.year, 0);
	assert_int_equal(allowed_file_write(dir, &kept, NULL), RV_OK);
	assert_int_equal(allowed_file_read(dir, &read, NULL), RV_OK);
	assert_int_equal(read.year, kept.year);
	assert_int_equal(read.month, kept.month);
	assert_int_equal(read.day, kept.day);
	assert_int_equal(read.counted_s, kept.counted_s);
	assert_int_equal(read.day_bytes, kept.day_bytes);
	assert_int_equal(read.month_bytes, kept.month_bytes);
	assert_int_equal(read.paused_until_s, kept.paused_until_s);
}

static void test_damage(void **state) {
	(void)state;
	static const char *const damaged[] = {"",
										  "{}",
										  "[1]",
										  "{\"year\": 2026",
										  "{\"year\":2026,\"month\":13,\"day\":1,\"counted_at\":0,\"bytes_today\":0,"
										  "\"bytes_this_month\":0,\"paused_until\":0}",
										  "{\"year\":2026,\"month\":1,\"day\":1,\"counted_at\":0,\"bytes_today\":-1,"
										  "\"bytes_this_month\":0,\"paused_until\":0}",
										  "{\"year\":2026,\"month\":1,\"day\":1,\"counted_at\":0,\"bytes_today\":1.5,"
										  "\"bytes_this_month\":0,\"paused_until\":0}"};
	for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
		struct allow_kept read = {.year = 1};
		struct rv_errtext et = {0};
		write_file(ALLOWED_FILE, damaged[i]);
		assert_int_equal(allowed_file_read(dir, &read, &et), RV_E_CORRUPT);
		assert_non_null(strstr(et.text, ALLOWED_FILE));
		assert_true(read.year == 0 && read.day_bytes == 0 && read.paused_until_s == 0);
	}
}

#define TEXT "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static void test_leaving(void **state) {
	(void)state;
	static const char *const goes[] = {"run.conf",
									   "run.link",
									   "member.conf",
									   "identity.key",
									   "terms.conf",
									   "replica.rvp",
									   "snapshot-4.rvs",
									   "log-4.rvl",
									   "snapshot-8.part",
									   "log-3.rvl.damaged",
									   "inner-3.rvi",
									   "contribution-3.rvc",
									   "inner-4.rvi.tmp-a1B2c3"};
	static const char *const stays[] = {"worker.conf", "metrics.jsonl", "model.safetensors", "allowed.json",
										"my.rvs.txt",  "film.part",     "car.damaged"};
	for (size_t i = 0; i < sizeof goes / sizeof goes[0]; i++)
		write_file(goes[i], "x");
	for (size_t i = 0; i < sizeof stays / sizeof stays[0]; i++)
		write_file(stays[i], "x");
	make_dir("data");
	make_dir("data/" TEXT);
	write_file("data/" TEXT "/shard-0", "x");
	make_dir("given-up-1");
	write_file("given-up-1/snapshot-9.rvs", "x");
	char outside[300], link[300];
	snprintf(outside, sizeof outside, "%s/worker.conf", dir);
	snprintf(link, sizeof link, "%s/data/" TEXT "/link", dir);
	assert_int_equal(symlink(outside, link), 0);
	assert_int_equal(forget_run(dir, NULL), RV_OK);
	for (size_t i = 0; i < sizeof goes / sizeof goes[0]; i++)
		assert_false(exists(goes[i]));
	assert_false(exists("data") || exists("given-up-1"));
	for (size_t i = 0; i < sizeof stays / sizeof stays[0]; i++)
		assert_true(exists(stays[i]));
	assert_int_equal(forget_run(dir, NULL), RV_OK); /* once more */
	assert_int_equal(forget_run("/nowhere/at/all", NULL), RV_E_NOTFOUND);
}

/* Somebody may have started it in a directory with a `data` of the person's. */
static void test_leaving_keeps_what_is_not_the_workers(void **state) {
	(void)state;
	make_dir("data");
	make_dir("data/" TEXT);
	write_file("data/" TEXT "/shard-000000.bin", "x");
	make_dir("data/books");
	write_file("data/books/thesis.txt", "x");
	make_dir("given-up-hopes");
	struct rv_errtext et = {0};
	assert_int_equal(forget_run_check(dir, &et), RV_E_NOTFOUND);
	assert_non_null(strstr(et.text, "is not a worker's directory"));
	write_file("identity.key", "x");
	write_file("allowed.json", "x");
	assert_int_equal(forget_run_check(dir, &et), RV_OK);
	assert_int_equal(forget_run(dir, &et), RV_OK);
	assert_false(exists("identity.key") || exists("data/" TEXT));
	assert_true(exists("data/books/thesis.txt") && exists("given-up-hopes"));
	assert_int_equal(forget_run_check(dir, &et), RV_OK); /* once more, if it was cut short */
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leaving, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leaving_keeps_what_is_not_the_workers, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
