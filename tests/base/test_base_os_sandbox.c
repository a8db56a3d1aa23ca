/* os_sandbox.h and os_secrets.h from inside: what a process may still do, what is refused, and that
 * it leaves no core dump. Where the system has no Landlock or no seccomp, what needs it is skipped
 * aloud. */
#include "base/os_sandbox.h"
#include "base/os_secrets.h"

#include "tests/common/check.h"
#include "tests/common/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_BYTES = 400, NOT_HERE = 77 };

static char inside[PATH_BYTES], outside[PATH_BYTES], given[PATH_BYTES + 8], other[PATH_BYTES + 8];

/* Ends the child with a text if the condition does not hold. */
#define MUST(c)                                                                                                        \
	do {                                                                                                               \
		if (!(c)) {                                                                                                    \
			(void)fprintf(stderr, "line %d: %s: %s\n", __LINE__, #c, strerror(errno));                                 \
			_exit(1);                                                                                                  \
		}                                                                                                              \
	} while (0)

static int setup(void **state) {
	(void)state;
	scratch_make(inside, sizeof inside);
	scratch_make(outside, sizeof outside);
	snprintf(given, sizeof given, "%s/given", outside);
	snprintf(other, sizeof other, "%s/other", outside);
	scratch_write(outside, "given", "1", 1);
	scratch_write(outside, "other", "2", 1);
	return 0;
}

static struct os_sandbox enter(bool programs) {
	const struct os_sandbox_path paths[] = {{inside, OS_SANDBOX_READ | OS_SANDBOX_WRITE},
											{given, OS_SANDBOX_READ},
											{"", OS_SANDBOX_READ},
											{"/no/such/path", OS_SANDBOX_WRITE}};
	const struct os_sandbox_needs needs = {paths, 4, programs};
	struct os_sandbox got;
	struct rv_errtext et = {0};
	if (os_sandbox_enter(&needs, &got, &et) != RV_OK) {
		(void)fprintf(stderr, "%s\n", et.text);
		_exit(1);
	}
	return got;
}

/* Runs `body` in a child. */
static void in_a_child(void (*body)(void)) {
	int status;
	(void)fflush(NULL);
	const pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NOT_HERE) {
		print_message("skipped: this system does not have it\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static bool refused(long result, int error) {
	return result < 0 && errno == error;
}

/* ---- files ---- */

static void rename_below(const char *dir) {
	char a[PATH_BYTES + 16], b[PATH_BYTES + 16];
	snprintf(a, sizeof a, "%s/sub", dir);
	MUST(mkdir(a, 0700) == 0);
	snprintf(a, sizeof a, "%s/new", dir);
	const int fd = open(a, O_CREAT | O_RDWR, 0600);
	MUST(fd >= 0 && write(fd, "12", 2) == 2 && ftruncate(fd, 1) == 0 && close(fd) == 0);
	snprintf(b, sizeof b, "%s/sub/moved", dir);
	MUST(rename(a, b) == 0 && unlink(b) == 0);
	snprintf(a, sizeof a, "%s/sub", dir);
	MUST(rmdir(a) == 0);
}

static void files(void) {
	char path[PATH_BYTES + 16], here[PATH_BYTES];
	const struct os_sandbox got = enter(true);
	if (!got.files)
		_exit(NOT_HERE);
	rename_below(inside);
	MUST(open(given, O_RDONLY) >= 0);
	MUST(open("/etc/passwd", O_RDONLY) >= 0 && open("/proc/self/status", O_RDONLY) >= 0);
	MUST(open("/dev/null", O_RDWR) >= 0 && open("/dev/urandom", O_RDONLY) >= 0);
	MUST(readlink("/proc/self/exe", here, sizeof here) > 0);
	MUST(refused(open(other, O_RDONLY), EACCES));
	MUST(refused(open(given, O_WRONLY), EACCES));
	MUST(refused(open(outside, O_RDONLY | O_DIRECTORY), EACCES));
	snprintf(path, sizeof path, "%s/made", outside);
	MUST(refused(open(path, O_CREAT | O_WRONLY, 0600), EACCES));
	MUST(refused(unlink(other), EACCES) && refused(mkdir(path, 0700), EACCES));
	MUST(refused(open("/usr/lib/rivulet-test", O_CREAT | O_WRONLY, 0600), EACCES));
	snprintf(path, sizeof path, "%s/link", inside);
	MUST(symlink(other, path) == 0 && refused(open(path, O_RDONLY), EACCES));
	const int root = open("/proc/1/environ", O_RDONLY); /* of another process: tracing is refused with it */
	MUST(root < 0 && (errno == EACCES || errno == EPERM));
}

static void test_only_the_files_that_are_named(void **state) {
	(void)state;
	in_a_child(files);
}

/* ---- programs ---- */

static int run(const char *program) {
	int status;
	const pid_t pid = fork();
	MUST(pid >= 0);
	if (pid == 0) {
		(void)execl(program, program, (char *)NULL);
		_exit(errno);
	}
	MUST(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void copy_program(const char *from, const char *to) {
	char buffer[65536];
	const int in = open(from, O_RDONLY), out = open(to, O_CREAT | O_WRONLY, 0700);
	MUST(in >= 0 && out >= 0);
	for (ssize_t n; (n = read(in, buffer, sizeof buffer)) > 0;)
		MUST(write(out, buffer, (size_t)n) == n);
	MUST(close(in) == 0 && close(out) == 0);
}

static void programs(void) {
	char path[PATH_BYTES + 16];
	const struct os_sandbox got = enter(true);
	if (!got.files)
		_exit(NOT_HERE);
	MUST(run("/bin/true") == 0);
	snprintf(path, sizeof path, "%s/program", inside);
	copy_program("/bin/true", path);
	MUST(run(path) == EACCES); /* what it can write it cannot run */
}

static void no_programs(void) {
	const struct os_sandbox got = enter(false);
	if (!got.calls)
		_exit(NOT_HERE);
	MUST(run("/bin/true") == EPERM);
}

static void test_what_it_writes_it_cannot_run(void **state) {
	(void)state;
	in_a_child(programs);
}

static void test_no_programs_if_none_are_needed(void **state) {
	(void)state;
	in_a_child(no_programs);
}

/* ---- calls ---- */

static void *nothing(void *arg) {
	return arg;
}

static void calls(void) {
	pthread_t thread;
	const struct os_sandbox got = enter(true);
	if (!got.calls)
		_exit(NOT_HERE);
	MUST(pthread_create(&thread, NULL, nothing, NULL) == 0 && pthread_join(thread, NULL) == 0);
	MUST(socket(AF_INET, SOCK_STREAM, 0) >= 0 && socket(AF_INET6, SOCK_DGRAM, 0) >= 0);
	MUST(socket(AF_UNIX, SOCK_STREAM, 0) >= 0 && socket(AF_NETLINK, SOCK_RAW, 0) >= 0);
	MUST(refused(socket(AF_PACKET, SOCK_RAW, 0), EAFNOSUPPORT) && refused(socket(38, SOCK_SEQPACKET, 0), EAFNOSUPPORT));
	MUST(refused(ptrace(PTRACE_TRACEME, 0, NULL, NULL), EPERM));
	MUST(refused(syscall(SYS_unshare, 0x10000000), EPERM) &&
		 refused(syscall(SYS_clone, 0x10000000 | SIGCHLD, 0, 0, 0, 0), EPERM));
	MUST(refused(syscall(435, NULL, 0), ENOSYS) && refused(syscall(425, 1, NULL), EPERM));
	MUST(refused(syscall(SYS_bpf, 0, NULL, 0), EPERM) && refused(syscall(SYS_keyctl, 0, 0, 0, 0, 0), EPERM));
	MUST(refused(syscall(SYS_mount, NULL, NULL, NULL, 0, NULL), EPERM) &&
		 refused(syscall(SYS_perf_event_open, NULL, 0, 0, 0, 0), EPERM));
	MUST(refused(ioctl(0, TIOCSTI, "x"), EPERM));
	MUST(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
}

static void test_calls_that_attack_are_refused(void **state) {
	(void)state;
	in_a_child(calls);
}

/* ---- secrets ---- */

static void secrets(void) {
	struct rlimit core;
	int status;
	const struct rlimit all = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
	(void)setrlimit(RLIMIT_CORE, &all);
	os_secrets_keep();
#ifndef __SANITIZE_ADDRESS__
	MUST(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
#endif
	MUST(getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_cur == 0 && core.rlim_max == 0);
	const int own = open("/proc/self/maps", O_RDONLY);
	MUST(own >= 0 && open("/proc/self/fd", O_RDONLY | O_DIRECTORY) >= 0);
	const pid_t pid = fork();
	MUST(pid >= 0);
	if (pid == 0)
		abort();
	MUST(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && !WCOREDUMP(status));
}

static void test_secrets_stay_in_memory(void **state) {
	(void)state;
	in_a_child(secrets);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_the_files_that_are_named),  cmocka_unit_test(test_what_it_writes_it_cannot_run),
		cmocka_unit_test(test_no_programs_if_none_are_needed), cmocka_unit_test(test_calls_that_attack_are_refused),
		cmocka_unit_test(test_secrets_stay_in_memory),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
