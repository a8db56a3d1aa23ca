/* `rivulet sweep` itself: cells trained side by side, a second sweep that runs nothing again, commands that make the same
 * runs elsewhere, a cell that fails, Ctrl-C. */
#include "tests/lab/lab_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_BYTES = 64 << 10, COMMAND_BYTES = 2048 };

static struct lab_fixture f;
static char output[OUTPUT_BYTES];

static int setup(void **state) {
	(void)state;
	lab_fixture_init(&f);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	lab_fixture_release(&f);
	return 0;
}

/* Tiny cells; %s: DIR/out. */
static void command_line(char *out, const char *more) {
	snprintf(out, COMMAND_BYTES,
			 "'%s' sweep --data %s/text --n-layer 1 --n-head 2 --n-embd 16 --context 16 --holdout-every 4 --batch 2 "
			 "--warmup-steps 2 --total-steps 12 --sync-every 3,6 --workers 1,2 --out %s/out %s",
			 RIVULET, f.dir, f.dir, more);
}

static int run_shell(const char *command) {
	FILE *p = popen(command, "r");
	assert_non_null(p);
	output[fread(output, 1, sizeof output - 1, p)] = '\0';
	int status = pclose(p);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int sweep(const char *more) {
	char command[COMMAND_BYTES];
	command_line(command, more);
	strncat(command, " 2>&1", sizeof command - strlen(command) - 1);
	return run_shell(command);
}

static int count(const char *needle) {
	int n = 0;
	for (const char *at = output; (at = strstr(at, needle)); at++)
		n++;
	return n;
}

static void read_summary(void) {
	char path[400];
	snprintf(path, sizeof path, "%s/out/summary.csv", f.dir);
	FILE *s = fopen(path, "r");
	assert_non_null(s);
	output[fread(output, 1, sizeof output - 1, s)] = '\0';
	(void)fclose(s);
}

static void test_cells_are_trained_once(void **state) {
	(void)state;
	char first[OUTPUT_BYTES];
	assert_int_equal(sweep(""), 0);
	assert_int_equal(count("\"event\":\"cell\""), 4);
	read_summary();
	assert_int_equal(count(",done,diloco,"), 4);
	assert_int_equal(count("\r\n"), 5);
	memcpy(first, output, sizeof first);
	assert_int_equal(sweep(""), 0);
	assert_int_equal(count("\"event\":\"cell\""), 0);
	read_summary();
	assert_string_equal(first, output);
}

/* What --print says makes the same files, and a sweep takes them. */
static void test_printed_commands_merge(void **state) {
	(void)state;
	char commands[OUTPUT_BYTES], path[COMMAND_BYTES];
	assert_int_equal(sweep("--codec int3,fp32"), 2);
	assert_int_equal(sweep("--print"), 0);
	assert_int_equal(count("rivulet train "), 4);
	memcpy(commands, output, sizeof commands);
	snprintf(path, sizeof path, "mkdir -p %s/bin && ln -sf '%s' %s/bin/rivulet", f.dir, RIVULET, f.dir);
	assert_int_equal(run_shell(path), 0);
	for (char *line = strtok(commands, "\n"); line; line = strtok(NULL, "\n")) {
		snprintf(path, sizeof path, "PATH=%s/bin:$PATH; %s", f.dir, line);
		assert_int_equal(run_shell(path), 0);
	}
	assert_int_equal(sweep("--print"), 0);
	assert_string_equal(output, "");
	assert_int_equal(sweep(""), 0);
	assert_int_equal(count("\"event\":\"cell\""), 0);
	read_summary();
	assert_int_equal(count(",done,"), 4);
	snprintf(path, sizeof path,
			 "'%s' report %s/out --out %s/out/report.html --csv %s/out/csv && cat %s/out/csv/runs.csv", RIVULET, f.dir,
			 f.dir, f.dir, f.dir);
	assert_int_equal(run_shell(path), 0);
	assert_int_equal(count("\"k=2 H=6\",\""), 1); /* what sets the cells apart */
	assert_int_equal(count(",done,"), 4);
}

/* In a report's names, what is off is not named; bytes of the lab are not called measured. */
static void test_names_in_its_report(void **state) {
	(void)state;
	char command[COMMAND_BYTES];
	assert_int_equal(sweep("--drop-sync 0,0.5"), 0);
	snprintf(command, sizeof command, "'%s' report %s/out --out %s/report.html", RIVULET, f.dir, f.dir);
	assert_int_equal(run_shell(command), 0);
	assert_int_equal(count("\nk=2 H=6 "), 1);
	assert_int_equal(count("\nk=2 drop-sync=0.5 H=6 "), 1);
	assert_int_equal(count("drop-sync=0 "), 0);
	assert_int_equal(count("\nsent: by formula"), 1);
}

static void test_workers_that_read_the_same_text_are_noticed(void **state) {
	(void)state;
	assert_int_equal(sweep("--data-shards 1"), 0);
	assert_int_equal(count("\"event\":\"shared_text\""), 1);
	assert_non_null(strstr(output, "--data-shards 2 gives each its own"));
}

static void test_a_cell_that_fails_does_not_stop_the_others(void **state) {
	(void)state;
	assert_int_equal(sweep("--lr 0.01,10 --clip 0 --warmup-steps 0 --seed 1 --codec fp32 --eps 1e-20 --outer-lr 10"),
					 1);
	assert_true(count("\"event\":\"cell_failed\"") >= 1);
	assert_non_null(strstr(output, "train.log says why"));
	read_summary();
	assert_true(count(",done,") >= 1);
	assert_true(count(",failed,") >= 1);
	assert_int_equal(count(",done,") + count(",failed,"), 8);
}

static void test_stopped_and_continued(void **state) {
	(void)state;
	char command[COMMAND_BYTES];
	command_line(command, "--rounds 100000");
	char *steps = strstr(command, "--total-steps 12");
	memset(steps, ' ', strlen("--total-steps 12"));
	char exec[COMMAND_BYTES + 8];
	snprintf(exec, sizeof exec, "exec %s", command);
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		execl("/bin/sh", "sh", "-c", exec, (char *)NULL);
		_exit(99);
	}
	close(ends[1]);
	/* A cell has begun when its metrics are there. */
	char path[COMMAND_BYTES];
	snprintf(path, sizeof path, "ls %s/out/*/metrics.jsonl >/dev/null 2>&1", f.dir);
	for (int i = 0; i < 600 && run_shell(path) != 0; i++)
		usleep(50000);
	assert_int_equal(kill(pid, SIGINT), 0);
	FILE *err = fdopen(ends[0], "r");
	output[fread(output, 1, sizeof output - 1, err)] = '\0';
	(void)fclose(err);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 130);
	assert_non_null(strstr(output, "the same command goes on"));
	snprintf(path, sizeof path, "ls %s/out/*/checkpoint.rvc >/dev/null 2>&1", f.dir);
	assert_int_equal(run_shell(path), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_cells_are_trained_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_printed_commands_merge, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names_in_its_report, setup, teardown),
		cmocka_unit_test_setup_teardown(test_workers_that_read_the_same_text_are_noticed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_cell_that_fails_does_not_stop_the_others, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stopped_and_continued, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
