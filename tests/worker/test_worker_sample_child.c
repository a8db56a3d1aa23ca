/* sample_child.h: a program that writes, is slow, fails, or takes too much. The programs are
 * scripts that stand in for `rivulet`. */
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "worker/local/sample_child.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static char dir[SCRATCH_PATH];

static struct sample_plan plan_of(const char *script) {
	struct sample_plan plan = {.memory_bytes = (int64_t)64 << 20};
	char text[1024];
	const int n = snprintf(text, sizeof text, "#!/bin/bash\n%s\n", script);
	scratch_write(dir, "program", text, (size_t)n);
	(void)snprintf(plan.program, sizeof plan.program, "%s/program", dir);
	(void)snprintf(plan.dir, sizeof plan.dir, "%s", dir);
	assert_int_equal(chmod(plan.program, 0755), 0);
	return plan;
}

static struct local_answer run(const char *script, const char *prompt) {
	const struct sample_plan plan = plan_of(script);
	struct sample_child *c;
	struct local_answer a;
	assert_ok(sample_child_start(&plan, prompt, &c, &et));
	do {
		struct pollfd p = {.fd = sample_child_fd(c), .events = POLLIN};
		assert_int_equal(poll(&p, 1, 60000), 1);
	} while (sample_child_read(c));
	sample_child_end(c, false, &a);
	return a;
}

static void test_the_prompt_is_left_out(void **state) {
	(void)state;
	struct local_answer a =
		run("for a in \"$@\"; do case $a in --prompt=*) printf '%s' \"${a#--prompt=}\";; esac; done; "
			"printf ' upon\\na \\033[2J\\377time'",
			"Once; $(touch x) 'quoted'");
	assert_true(a.ok);
	assert_string_equal(a.text, " upon\na ?[2J?time");
}

static void test_it_has_the_lowest_priority(void **state) {
	(void)state;
	struct local_answer a = run("printf '%s ' $(nice) $(ulimit -d) $(chrt -p $$ | grep -c SCHED_IDLE)", "x");
	assert_true(a.ok);
	assert_string_equal(a.text, "19 65536 1 ");
}

static void test_a_fault_is_told(void **state) {
	(void)state;
	struct local_answer a = run("echo 'rivulet: no such tokenizer' >&2; exit 1", "x");
	assert_false(a.ok);
	assert_non_null(strstr(a.text, "no such tokenizer"));
	a = run("exit 1", "x");
	assert_false(a.ok);
	assert_non_null(strstr(a.text, "memory"));
}

static void test_what_never_ends_is_ended(void **state) {
	(void)state;
	struct local_answer a = run("while true; do echo more; done", "x"); /* until the text is full */
	assert_true(strlen(a.text) < LOCAL_TEXT_BYTES);
	const struct sample_plan plan = plan_of("sleep 1000");
	struct sample_child *c;
	assert_ok(sample_child_start(&plan, "x", &c, &et));
	sample_child_end(c, true, &a);
	assert_false(a.ok);
	assert_non_null(strstr(a.text, "not enough"));
}

static void test_a_long_prompt_is_refused(void **state) {
	(void)state;
	const struct sample_plan plan = plan_of("true");
	struct sample_child *c;
	struct rv_errtext why;
	char prompt[SAMPLE_PROMPT_BYTES + 1];
	memset(prompt, 'x', sizeof prompt);
	prompt[SAMPLE_PROMPT_BYTES] = '\0';
	assert_int_equal(sample_child_start(&plan, prompt, &c, &why), RV_E_RANGE);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_prompt_is_left_out), cmocka_unit_test(test_it_has_the_lowest_priority),
		cmocka_unit_test(test_a_fault_is_told), cmocka_unit_test(test_what_never_ends_is_ended),
		cmocka_unit_test(test_a_long_prompt_is_refused)};
	scratch_make(dir, sizeof dir);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
