/* Files: whole or not there, also when the disk is full; limits; directories and their locks. */
#include "base/file.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[64];

static int make_place(void **state) {
	(void)state;
	scratch_make(dir, sizeof dir);
	return 0;
}

static int remove_place(void **state) {
	(void)state;
	scratch_remove(dir);
	return 0;
}

static const char *at(void **state, const char *name, char out[256]) {
	(void)state;
	(void)snprintf(out, 256, "%s/%s", dir, name);
	return out;
}

static void what_was_written_is_read(void **state) {
	static const size_t sizes[] = {0, 1, 3, 4095, 4096, 4097, 1000003};
	char path[256];
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		uint8_t *data = malloc(sizes[i] + 1), *back;
		size_t n;
		assert_non_null(data);
		for (size_t k = 0; k < sizes[i]; k++)
			data[k] = (uint8_t)(k * 13);
		struct rv_errtext et = {0};
		assert_int_equal(rv_file_write_atomic(at(state, "f", path), data, sizes[i], 0640, &et), RV_OK);
		assert_int_equal(rv_file_read(path, sizes[i], &back, &n, &et), RV_OK);
		assert_int_equal(n, sizes[i]);
		assert_memory_equal(back, data, n);
		assert_int_equal(back[n], 0);
		free(back);
		free(data);
	}
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_int_equal(scratch_count(dir), 1);
}

static void reading_names_what_is_wrong(void **state) {
	char path[256];
	uint8_t *data;
	size_t n;
	struct rv_errtext et = {0};
	assert_int_equal(rv_file_read(at(state, "none", path), 10, &data, &n, &et), RV_E_NOTFOUND);
	assert_non_null(strstr(et.text, path));
	assert_null(data);
	assert_int_equal(rv_file_write_atomic(at(state, "f", path), "12345678901", 11, 0600, NULL), RV_OK);
	assert_int_equal(rv_file_read(path, 10, &data, &n, &et), RV_E_RANGE);
	assert_non_null(strstr(et.text, "11 bytes, the limit is 10"));
	assert_null(data);
	assert_int_equal(rv_file_read(dir, 10, &data, &n, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "not a regular file"));
	assert_int_equal(rv_file_read("/dev/zero", 10, &data, &n, &et), RV_E_INVALID);
}

static void writing_names_what_is_wrong(void **state) {
	char path[256], longer[700];
	struct rv_errtext et = {0};
	assert_int_equal(rv_file_write_atomic(at(state, "no/dir/f", path), "x", 1, 0600, &et), RV_E_NOTFOUND);
	assert_non_null(strstr(et.text, path));
	memset(longer, 'a', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	assert_int_equal(rv_file_write_atomic(longer, "x", 1, 0600, &et), RV_E_RANGE);
	assert_int_equal(rv_dir_make(at(state, "d", path), 0700, NULL), RV_OK);
	assert_int_equal(rv_file_write_atomic(path, "x", 1, 0600, &et), RV_E_IO); /* rename onto a directory */
	assert_int_equal(scratch_count(dir), 1);
}

/* In a child with a file-size limit: what a full disk does, at a byte of our choosing. */
static int write_with_limit(const char *path, size_t limit, size_t n) {
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct rlimit r = {.rlim_cur = limit, .rlim_max = limit};
		struct rv_errtext et = {0};
		char *data = calloc(1, n);
		(void)signal(SIGXFSZ, SIG_IGN);
		if (!data || setrlimit(RLIMIT_FSIZE, &r) != 0)
			_exit(100);
		enum rv_err e = rv_file_write_atomic(path, data, n, 0600, &et);
		free(data);
		_exit(e == RV_OK || strstr(et.text, path) ? (int)e : 101);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void a_full_disk_leaves_the_old_file(void **state) {
	static const size_t limits[] = {0, 1, 4096, 99999};
	char path[256];
	uint8_t *back;
	size_t n;
	assert_int_equal(rv_file_write_atomic(at(state, "f", path), "old", 3, 0600, NULL), RV_OK);
	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		assert_int_equal(write_with_limit(path, limits[i], 100000), RV_E_FULL);
		assert_int_equal(rv_file_read(path, 100, &back, &n, NULL), RV_OK);
		assert_int_equal(n, 3);
		assert_memory_equal(back, "old", 3);
		free(back);
		assert_int_equal(scratch_count(dir), 1);
	}
	assert_int_equal(write_with_limit(path, 100000, 100000), RV_OK);
}

static void pieces_are_committed_or_abandoned(void **state) {
	char path[256];
	struct rv_file_writer w;
	uint8_t *back;
	size_t n;
	assert_int_equal(rv_file_writer_begin(&w, at(state, "f", path), 0600, NULL), RV_OK);
	assert_int_equal(rv_file_writer_write(&w, "ab", 2, NULL), RV_OK);
	assert_int_equal(rv_file_writer_write(&w, "", 0, NULL), RV_OK);
	assert_int_equal(rv_file_read(path, 10, &back, &n, NULL), RV_E_NOTFOUND);
	assert_int_equal(rv_file_writer_write(&w, "c", 1, NULL), RV_OK);
	assert_int_equal(rv_file_writer_commit(&w, NULL), RV_OK);
	assert_int_equal(rv_file_read(path, 10, &back, &n, NULL), RV_OK);
	assert_string_equal((char *)back, "abc");
	free(back);
	assert_int_equal(rv_file_writer_begin(&w, path, 0600, NULL), RV_OK);
	assert_int_equal(rv_file_writer_write(&w, "other", 5, NULL), RV_OK);
	rv_file_writer_abandon(&w);
	rv_file_writer_abandon(&w); /* twice is fine */
	assert_int_equal(scratch_count(dir), 1);
	assert_int_equal(rv_file_read(path, 10, &back, &n, NULL), RV_OK);
	assert_string_equal((char *)back, "abc");
	free(back);
}

static void a_path_without_a_slash_is_in_the_working_directory(void **state) {
	(void)state;
	char cwd[512];
	assert_non_null(getcwd(cwd, sizeof cwd));
	assert_int_equal(chdir(dir), 0);
	enum rv_err e = rv_file_write_atomic("plain", "x", 1, 0600, NULL);
	assert_int_equal(chdir(cwd), 0);
	assert_int_equal(e, RV_OK);
	assert_int_equal(scratch_count(dir), 1);
}

static void directories_are_made_with_their_parents(void **state) {
	char path[256];
	struct rv_errtext et = {0};
	struct stat st;
	assert_int_equal(rv_dir_make(at(state, "a/b//c/", path), 0700, &et), RV_OK);
	assert_true(stat(path, &st) == 0 && S_ISDIR(st.st_mode));
	assert_int_equal(rv_dir_make(path, 0700, &et), RV_OK);
	assert_int_equal(rv_dir_make("/", 0700, &et), RV_OK);
	assert_int_equal(rv_dir_make("", 0700, &et), RV_E_INVALID);
	assert_int_equal(rv_file_write_atomic(at(state, "file", path), "", 0, 0600, &et), RV_OK);
	assert_int_equal(rv_dir_make(path, 0700, &et), RV_E_IO);
	assert_non_null(strstr(et.text, "not a directory"));
	assert_int_equal(rv_dir_make(at(state, "file/below", path), 0700, &et), RV_E_IO);
}

static void a_lock_names_its_holder(void **state) {
	(void)state;
	char pid[32];
	struct rv_errtext et = {0};
	int fd, second;
	assert_int_equal(rv_dir_lock(dir, &fd, &et), RV_OK);
	assert_int_equal(rv_dir_lock(dir, &second, &et), RV_E_BUSY);
	assert_int_equal(second, -1);
	(void)snprintf(pid, sizeof pid, "process %ld", (long)getpid());
	assert_non_null(strstr(et.text, pid));
	assert_non_null(strstr(et.text, dir));
	rv_dir_unlock(fd);
	assert_int_equal(rv_dir_lock(dir, &fd, &et), RV_OK);
	rv_dir_unlock(fd);
	rv_dir_unlock(-1);
	assert_int_equal(rv_dir_lock("/nonexistent-directory", &fd, &et), RV_E_NOTFOUND);
}

static void a_dead_holder_frees_the_lock(void **state) {
	(void)state;
	int fd, held[2];
	char c;
	assert_int_equal(pipe(held), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		enum rv_err e = rv_dir_lock(dir, &fd, NULL);
		(void)!write(held[1], e == RV_OK ? "y" : "n", 1);
		(void)pause();
		_exit(0);
	}
	assert_int_equal(read(held[0], &c, 1), 1);
	assert_int_equal(c, 'y');
	assert_int_equal(rv_dir_lock(dir, &fd, NULL), RV_E_BUSY);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(rv_dir_lock(dir, &fd, NULL), RV_OK);
	rv_dir_unlock(fd);
	close(held[0]);
	close(held[1]);
}

#define IN_A_PLACE(f) cmocka_unit_test_setup_teardown(f, make_place, remove_place)

int main(void) {
	const struct CMUnitTest tests[] = {
		IN_A_PLACE(what_was_written_is_read),
		IN_A_PLACE(reading_names_what_is_wrong),
		IN_A_PLACE(writing_names_what_is_wrong),
		IN_A_PLACE(a_full_disk_leaves_the_old_file),
		IN_A_PLACE(pieces_are_committed_or_abandoned),
		IN_A_PLACE(a_path_without_a_slash_is_in_the_working_directory),
		IN_A_PLACE(directories_are_made_with_their_parents),
		IN_A_PLACE(a_lock_names_its_holder),
		IN_A_PLACE(a_dead_holder_frees_the_lock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
