/* Signals arrive as reads; a second one is a second read; closing gives them their deadly meaning
 * back. */
#include "base/signals.h"
#include "tests/common/check.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void signals_are_read_not_handled(void **state) {
	(void)state;
	int fd;
	assert_ok(rv_signals_open(&fd, &et));
	assert_int_equal(rv_signals_take(fd), 0);
	assert_int_equal(kill(getpid(), SIGTERM), 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_int_equal(rv_signals_take(fd), SIGTERM);
	assert_int_equal(rv_signals_take(fd), 0);
	assert_int_equal(kill(getpid(), SIGINT), 0);
	assert_int_equal(rv_signals_take(fd), SIGINT);
	rv_signals_close(fd);
}

static void a_closed_pipe_is_an_error_not_a_death(void **state) {
	(void)state;
	int fd, fds[2];
	assert_int_equal(rv_signals_open(&fd, NULL), RV_OK);
	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	assert_int_equal(write(fds[1], "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	close(fds[1]);
	rv_signals_close(fd);
}

static void closing_restores_the_default(void **state) {
	(void)state;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		int fd;
		(void)signal(SIGTERM, SIG_DFL);
		if (rv_signals_open(&fd, NULL) != RV_OK)
			_exit(3);
		rv_signals_close(fd);
		(void)kill(getpid(), SIGTERM);
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signals_are_read_not_handled),
		cmocka_unit_test(a_closed_pipe_is_an_error_not_a_death),
		cmocka_unit_test(closing_restores_the_default),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
