/* `rivulet sweep` itself: cells trained side by side, a second sweep that runs nothing again,
 * commands that make the same runs elsewhere, a cell that fails, Ctrl-C. */
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
			 "--warmup-steps 2 --total-steps 12 --sync-every 3,6 --workers 1,2 --eval-tokens 64 --out %s/out %s",
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

/* Of a cell of several workers that is done, everything is known but what does not apply. */
static void every_column_is_filled(void) {
	char header[COMMAND_BYTES], row[COMMAND_BYTES];
	const char *line = strstr(output, ",done,diloco,2,");
	assert_non_null(line);
	while (line[-1] != '\n')
		line--;
	snprintf(header, sizeof header, "%.*s", (int)strcspn(output, "\r"), output);
	snprintf(row, sizeof row, "%.*s", (int)strcspn(line, "\r"), line);
	char *names = header, *values = row, *name;
	int n = 0;
	for (; (name = strsep(&names, ",")); n++) {
		const char *value = strsep(&values, ",");
		bool may_be_empty = strcmp(name, "section") == 0 || strcmp(name, "diverged_round") == 0;
		if (!value || (!value[0] && !may_be_empty))
			fail_msg("%s is empty", name);
	}
	assert_int_equal(n, 27);
}

/* A cell that began while others run must not be refused for what they take. */
static void what_fits_is_the_sweeps_to_say(void) {
	char command[COMMAND_BYTES], summary[OUTPUT_BYTES];
	memcpy(summary, output, sizeof summary);
	snprintf(command, sizeof command, "cat %s/out/*/run.conf", f.dir);
	assert_int_equal(run_shell(command), 0);
	assert_int_equal(count("short-of-memory = warn\n"), 4);
	snprintf(command, sizeof command, "cat %s/out/*/sweep.json", f.dir);
	assert_int_equal(run_shell(command), 0);
	assert_int_equal(count(" \"data\": \"sha256:"), 4);
	assert_int_equal(count(" \"program\": \"rivulet " RV_VERSION), 4);
	memcpy(output, summary, sizeof output);
}

static void test_cells_are_trained_once(void **state) {
	(void)state;
	char first[OUTPUT_BYTES];
	assert_int_equal(sweep(""), 0);
	assert_int_equal(count("\"event\":\"cell\""), 4);
	read_summary();
	assert_int_equal(count(",done,diloco,"), 4);
	assert_int_equal(count("\r\n"), 5);
	every_column_is_filled();
	what_fits_is_the_sweeps_to_say();
	memcpy(first, output, sizeof first);
	assert_int_equal(sweep(""), 0);
	assert_int_equal(count("\"event\":\"cell\""), 0);
	read_summary();
	assert_string_equal(first, output);
}

/* What --print says makes the same files, whatever directory it is said in, and a sweep takes
 * them. */
static void test_printed_commands_merge(void **state) {
	(void)state;
	char commands[OUTPUT_BYTES], command[COMMAND_BYTES], path[COMMAND_BYTES + 300];
	assert_int_equal(sweep("--codec int3,fp32"), 2);
	command_line(command, "--print --data text --out out");
	snprintf(path, sizeof path, "cd %s && %s", f.dir, command);
	assert_int_equal(run_shell(path), 0);
	assert_int_equal(count("rivulet train "), 4);
	memcpy(commands, output, sizeof commands);
	for (char *line = strtok(commands, "\n"); line; line = strtok(NULL, "\n")) {
		snprintf(path, sizeof path, "cd / && %s", line);
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
	assert_int_equal(sweep("--method diloco,sparseloco --codec int8,fp32 --sync-every 3"), 0);
	assert_int_equal(run_shell(command), 0);
	assert_true(count("\nsparseloco sgd topk64 k=2 ") + count("\nsparseloco topk64 k=2 ") >=
				1); /* what it chose for int8 */
}

static void test_workers_that_read_the_same_text_are_noticed(void **state) {
	(void)state;
	assert_int_equal(sweep("--data-shards 1"), 0);
	assert_int_equal(count("\"event\":\"shared_text\""), 1);
	assert_non_null(strstr(output, "--data-shards 2 gives each its own"));
}

/* That a learning rate is too high is a result: it is recorded, not tried again, and shown. */
static void test_cells_that_diverge_are_results(void **state) {
	(void)state;
	static const char lists[] =
		"--lr 0.01,10 --clip 0 --warmup-steps 0 --seed 1 --codec fp32 --eps 1e-20 --outer-lr 10";
	char command[COMMAND_BYTES], print[COMMAND_BYTES];
	assert_int_equal(sweep(lists), 0);
	assert_true(count("\"event\":\"cell_diverged\"") >= 1);
	read_summary();
	assert_true(count(",done,") >= 1);
	assert_true(count(",diverged,") >= 1);
	assert_int_equal(count(",done,") + count(",diverged,"), 8);
	assert_int_equal(count("nan"), 0);
	assert_int_equal(sweep(lists), 0);
	assert_int_equal(count("\"event\":\"cell"), 0);
	snprintf(print, sizeof print, "--print %s", lists);
	assert_int_equal(sweep(print), 0);
	assert_string_equal(output, "");
	snprintf(command, sizeof command,
			 "'%s' report %s/out --out %s/report.html && grep -o -e '✕ at the top: ' -e '<td class=\"text\">in round ' "
			 "%s/report.html",
			 RIVULET, f.dir, f.dir, f.dir);
	assert_int_equal(run_shell(command), 0);
	assert_true(count(": diverged in round ") >= 1);
	assert_true(count("✕ at the top: ") >= 1);
	assert_true(count("<td class=\"text\">in round ") >= 1);
}

/* Names of the cells, from what --print says. */
static void first_cell(const char *more, char path[400]) {
	char print[COMMAND_BYTES];
	snprintf(print, sizeof print, "--print %s", more);
	assert_int_equal(sweep(print), 0);
	const char *at = strstr(output, " --out=");
	assert_non_null(at);
	at += strlen(" --out=");
	snprintf(path, 400, "%.*s", (int)strcspn(at, " \n"), at);
}

static void test_a_cell_that_fails_does_not_stop_the_others(void **state) {
	(void)state;
	char path[400], command[COMMAND_BYTES];
	first_cell("", path);
	snprintf(command, sizeof command, "mkdir -p %s/metrics.jsonl", path);
	assert_int_equal(run_shell(command), 0);
	assert_int_equal(sweep(""), 1);
	assert_int_equal(count("\"event\":\"cell_failed\""), 1);
	assert_non_null(strstr(output, "failed with status 1: rivulet: "));
	assert_non_null(strstr(output, "metrics.jsonl"));
	assert_non_null(strstr(output, ": see "));
	read_summary();
	assert_int_equal(count(",done,"), 3);
	assert_int_equal(count(",failed,"), 1);
}

/* What no machine has memory for, more than 100 TB, is left out before anything starts; the others
 * are trained. */
static void test_a_cell_that_cannot_fit_is_left_out(void **state) {
	(void)state;
	assert_int_equal(sweep("--sync-every 6 --workers 64 --n-layer 20 --n-embd 8,16384"), 1);
	assert_int_equal(count("\"event\":\"cell_too_large\""), 1);
	assert_int_equal(count("\"event\":\"cell\""), 1);
	assert_int_equal(count("\"event\":\"cell_failed\""), 0);
	assert_non_null(strstr(output, "left out: training needs "));
	assert_non_null(strstr(output, "1 of 2 cells do not fit into this machine's memory"));
	read_summary();
	assert_int_equal(count(",done,"), 1);
	assert_int_equal(count(",failed,"), 1);
}

/* Here by a checkpoint that is larger than a file may be. */
static void test_a_cell_that_dies_of_a_signal_says_so(void **state) {
	(void)state;
	char command[COMMAND_BYTES], limited[COMMAND_BYTES + 32];
	command_line(command, "--sync-every 6 --workers 1 --n-embd 128 2>&1");
	snprintf(limited, sizeof limited, "ulimit -f 64; exec %s", command);
	assert_int_equal(run_shell(limited), 1);
	assert_int_equal(count("\"event\":\"cell_failed\""), 1);
	assert_non_null(strstr(output, "was killed by signal "));
	assert_non_null(strstr(output, "its last line: "));
}

/* What a sweep finds in its directory and does not know, what has no effect in it, and what it need
 * not train twice. */
static void test_notices(void **state) {
	(void)state;
	assert_int_equal(sweep(""), 0);
	assert_int_equal(sweep("--method ddp,diloco --codec int8,fp32 --outer-beta2 0.5"), 0);
	assert_non_null(
		strstr(output, "6 combinations differ from cells in options only that have no effect on their results"));
	assert_int_equal(count("\"event\":\"no_effect\""), 1);
	assert_non_null(strstr(output, "outer-beta2 = 0.5 has no effect here"));
	assert_null(strstr(output, "codec = "));
	assert_int_equal(count("\"event\":\"cell\""), 6); /* what has no effect names no cell: four are there */
	assert_int_equal(sweep("--lr 0.5"), 0);
	assert_non_null(strstr(output, "10 runs in "));
}

/* Two that would write into the same directory. */
static void test_one_at_a_time(void **state) {
	(void)state;
	char command[COMMAND_BYTES];
	snprintf(command, sizeof command, "mkdir -p %s/out && exec 9>%s/out/lock && flock 9 && : ", f.dir, f.dir);
	char both[2 * COMMAND_BYTES], line[COMMAND_BYTES];
	command_line(line, "");
	snprintf(both, sizeof both, "%s && %s 2>&1", command, line);
	assert_int_equal(run_shell(both), 1);
	assert_non_null(strstr(output, "in use by process"));
}

/* The summary but for the wall time (wall_s), into `output`. */
static void read_results(void) {
	char command[COMMAND_BYTES];
	snprintf(command, sizeof command, "cut -d, -f1-20,22- %s/out/summary.csv", f.dir);
	assert_int_equal(run_shell(command), 0);
}

/* A printed command may be kept, and given again and again (a job that is requeued): it trains anew
 * where the record has a gap, and goes on where it has none. A checkpoint of another run stays. */
static void a_kept_command_goes_on(const char *line) {
	char command[COMMAND_BYTES];
	snprintf(command, sizeof command, "%s --seed 4321 2>&1", line);
	assert_int_not_equal(run_shell(command), 0);
	assert_int_equal(count("belongs to a run with another configuration"), 1);
	assert_int_equal(run_shell(line), 0);
	assert_int_equal(count("\"event\":\"anew\""), 1);
	assert_int_equal(count("\"event\":\"resumed\""), 0);
	assert_int_equal(run_shell(line), 0);
	assert_int_equal(count("\"event\":\"anew\""), 0);
	assert_int_equal(count("\"event\":\"resumed\""), 1);
}

/* What was done of a cell counts only as far as its record tells of it: with lines that are lost
 * from its end, its middle, or altogether, it is trained again, and comes to the same. */
static void test_a_record_with_a_gap_is_made_again(void **state) {
	(void)state;
	static const char cut[] = "cd %s/out && set -- */metrics.jsonl && sed -i 3,99d \"$1\" && : >\"$2\" && "
							  "sed -i '/\"round\",\"round\":1,/d' \"$3\"";
	char before[OUTPUT_BYTES], command[COMMAND_BYTES];
	assert_int_equal(sweep(""), 0);
	read_results();
	assert_int_equal(count(",done,"), 4);
	memcpy(before, output, sizeof before);
	snprintf(command, sizeof command, cut, f.dir);
	assert_int_equal(run_shell(command), 0);
	assert_int_equal(sweep("--print"), 0);
	assert_int_equal(count("rivulet train "), 3);
	snprintf(command, sizeof command, "%.*s", (int)strcspn(output, "\n"), output);
	a_kept_command_goes_on(command);
	assert_int_equal(sweep(""), 0);
	assert_int_equal(count("\"event\":\"cell_again\""), 2);
	assert_int_equal(count("\"event\":\"cell\""), 2);
	read_results();
	assert_string_equal(before, output);
	snprintf(command, sizeof command,
			 "cd %s/out && set -- */sweep.json && cp $1 ../good && echo '{{' >$1 && cp $1 ../bad", f.dir);
	assert_int_equal(run_shell(command), 0);
	assert_int_equal(sweep(""), 0); /* nor is it done without what says which cell it is */
	assert_int_equal(count("\"event\":\"cell\""), 0);
	snprintf(command, sizeof command, "cd %s/out && set -- */sweep.json && cmp $1 ../good && ! cmp -s $1 ../bad",
			 f.dir);
	assert_int_equal(run_shell(command), 0);
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
	bool begun = false;
	for (int i = 0; i < 4000 && !(begun = run_shell(path) == 0); i++)
		usleep(50000);
	assert_true(begun);
	assert_int_equal(kill(pid, SIGINT), 0);
	FILE *err = fdopen(ends[0], "r");
	output[fread(output, 1, sizeof output - 1, err)] = '\0';
	(void)fclose(err);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 130);
	assert_non_null(strstr(output, "the same command continues"));
	snprintf(path, sizeof path, "ls %s/out/*/checkpoint.rvc >/dev/null 2>&1", f.dir);
	assert_int_equal(run_shell(path), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_cells_are_trained_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_printed_commands_merge, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names_in_its_report, setup, teardown),
		cmocka_unit_test_setup_teardown(test_workers_that_read_the_same_text_are_noticed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cells_that_diverge_are_results, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_cell_that_fails_does_not_stop_the_others, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_cell_that_cannot_fit_is_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_cell_that_dies_of_a_signal_says_so, setup, teardown),
		cmocka_unit_test_setup_teardown(test_notices, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_at_a_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_record_with_a_gap_is_made_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stopped_and_continued, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
