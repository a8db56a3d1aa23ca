/* A failed assertion says where and aborts; one that holds evaluates its condition once. */
#include "base/assert.h"
#include "tests/common/check.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void failure_names_the_place_and_aborts(void **state) {
	(void)state;
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)signal(SIGABRT, SIG_DFL);
		(void)dup2(fds[1], STDERR_FILENO);
		RV_ASSERT(1 + 1 == 3);
		_exit(0);
	}
	close(fds[1]);
	char text[512] = {0};
	size_t n = 0;
	ssize_t k;
	while (n < sizeof text - 1 && (k = read(fds[0], text + n, sizeof text - 1 - n)) > 0)
		n += (size_t)k;
	close(fds[0]);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	assert_non_null(strstr(text, "test_base_assert.c:"));
	assert_non_null(strstr(text, "failure_names_the_place_and_aborts"));
	assert_non_null(strstr(text, "1 + 1 == 3"));
}

static void a_true_condition_is_evaluated_once(void **state) {
	(void)state;
	int n = 0;
	RV_ASSERT(++n == 1);
	assert_int_equal(n, 1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failure_names_the_place_and_aborts),
		cmocka_unit_test(a_true_condition_is_evaluated_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
