/* The ways in which an invite link comes to a worker without being shown to others. */
#include "worker/options/link.h"

#include "tests/common/check.h"
#include "tests/common/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[SCRATCH_PATH], path[SCRATCH_PATH + 8], link_text[INVITE_MAX_BYTES];
static struct worker_options o;
static struct rv_errtext et;
static struct worker_link found;

static int setup(void **state) {
	(void)state;
	struct invite invite = {.coordinator = {.host = "host.example", .port = 7433}, .has_token = true};
	memset(invite.run_id, 1, sizeof invite.run_id);
	memset(invite.key, 2, sizeof invite.key);
	memset(invite.token, 3, sizeof invite.token);
	invite_format(&invite, link_text);
	scratch_make(dir, sizeof dir);
	snprintf(path, sizeof path, "%s/link", dir);
	return 0;
}

static enum rv_err find(const char *argument, const char *file) {
	static char copy[INVITE_MAX_BYTES + 64];
	struct rv_args args = {.n = argument != NULL};
	snprintf(copy, sizeof copy, "%s", argument ? argument : "");
	args.at[0] = copy;
	snprintf(o.link_file, sizeof o.link_file, "%s", file);
	enum rv_err e = worker_link_check(&o, &args, &et);
	if (e == RV_OK)
		e = worker_link_find(&o, &args, &found, &et);
	if (e == RV_OK && argument && strcmp(argument, "-") != 0)
		assert_null(strstr(copy, strstr(link_text, "t=") + 2)); /* what `ps` reads */
	return e;
}

static void put(const char *text) {
	scratch_write(dir, "link", text, strlen(text));
}

static void test_the_argument_is_hidden(void **state) {
	(void)state;
	assert_int_equal(find(link_text, ""), RV_OK);
	assert_string_equal(found.text, link_text);
	assert_int_equal(find(NULL, ""), RV_OK);
	assert_string_equal(found.text, "");
}

static void test_a_file(void **state) {
	(void)state;
	char text[INVITE_MAX_BYTES + 64];
	snprintf(text, sizeof text, "%s \r\nwhat follows\n", link_text);
	put(text);
	assert_int_equal(find(NULL, path), RV_OK);
	assert_string_equal(found.text, link_text);
	put(link_text);
	assert_int_equal(find(NULL, path), RV_OK);
	assert_string_equal(found.text, link_text);
	put("\n");
	assert_int_equal(find(NULL, path), RV_E_INVALID);
	assert_non_null(strstr(et.text, "empty"));
	put("rivulet://nonsense\n");
	assert_int_equal(find(NULL, path), RV_E_INVALID);
	memset(text, 'x', sizeof text);
	scratch_write(dir, "link", text, sizeof text);
	assert_int_equal(find(NULL, path), RV_E_INVALID);
	assert_int_equal(find(NULL, "/no/such/file"), RV_E_NOTFOUND);
	assert_int_equal(find(link_text, path), RV_E_INVALID);
	assert_non_null(strstr(et.text, "give one of them"));
}

/* The next line is left for the question whether to join. */
static void test_the_standard_input(void **state) {
	(void)state;
	int fds[2];
	char rest[8] = "";
	const int kept = dup(STDIN_FILENO);
	for (int as_file = 0; as_file < 2; as_file++) {
		assert_int_equal(pipe(fds), 0);
		assert_true(write(fds[1], link_text, strlen(link_text)) > 0 && write(fds[1], "\ny\n", 3) == 3);
		assert_int_equal(dup2(fds[0], STDIN_FILENO), STDIN_FILENO);
		assert_int_equal(as_file ? find(NULL, "-") : find("-", ""), RV_OK);
		assert_string_equal(found.text, link_text);
		assert_int_equal(read(STDIN_FILENO, rest, sizeof rest), 2);
		assert_memory_equal(rest, "y\n", 2);
		(void)close(fds[0]);
		(void)close(fds[1]);
	}
	(void)dup2(kept, STDIN_FILENO);
	(void)close(kept);
}

/* Programs that the worker starts do not get it. */
static void test_the_environment(void **state) {
	(void)state;
	const struct rv_args none = {.n = 0};
	assert_int_equal(setenv(WORKER_LINK_VARIABLE, link_text, 1), 0);
	o.link_file[0] = '\0';
	assert_true(worker_link_is_given(&o, &none));
	assert_int_equal(find(NULL, ""), RV_OK);
	assert_string_equal(found.text, link_text);
	assert_null(getenv(WORKER_LINK_VARIABLE));
	assert_false(worker_link_is_given(&o, &none));
	assert_int_equal(setenv(WORKER_LINK_VARIABLE, "rivulet://", 1), 0);
	assert_int_equal(find(NULL, ""), RV_E_INVALID);
	assert_non_null(strstr(et.text, "$" WORKER_LINK_VARIABLE));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_argument_is_hidden),
		cmocka_unit_test(test_a_file),
		cmocka_unit_test(test_the_standard_input),
		cmocka_unit_test(test_the_environment),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
