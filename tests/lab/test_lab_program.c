/* The program `rivulet` itself: exit statuses, refusals, and Ctrl-C in the middle of a run that
 * then goes on to the same state as one that was left alone. */
#include "tests/lab/lab_fixture.h"

#include "lab/run/run_record.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct lab_fixture f;
static char text[300];
static const char program_version[] = "rivulet " RV_VERSION;

static int setup(void **state) {
	(void)state;
	lab_fixture_init(&f);
	snprintf(text, sizeof text, "%s/text", f.dir);
	return 0;
}

static void remove_run(const char *name) {
	static const char *const files[] = {
		"checkpoint.rvc", "checkpoint-before.rvc",  "metrics.jsonl",  "model.safetensors",     "run.conf",
		"lock",           "generation_config.json", "tokenizer.json", "tokenizer_config.json", "config.json"};
	char path[400];
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		snprintf(path, sizeof path, "%s/%s/%s", f.dir, name, files[i]);
		unlink(path);
	}
}

static int teardown(void **state) {
	(void)state;
	remove_run("a");
	remove_run("b");
	lab_fixture_release(&f);
	return 0;
}

struct child {
	pid_t pid;
	FILE *out; /* its stdout and stderr */
};

static struct child start(const char *const *args) {
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	struct child c = {.pid = fork()};
	assert_true(c.pid >= 0);
	if (c.pid == 0) {
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		execv(RIVULET, (char *const *)(uintptr_t)args);
		_exit(99);
	}
	close(ends[1]);
	c.out = fdopen(ends[0], "r");
	assert_non_null(c.out);
	return c;
}

/* Reads until a line holds `needle` (kept in `line`), or to the end. */
static bool read_until(struct child *c, const char *needle, char *line, int cap) {
	while (fgets(line, cap, c->out))
		if (strstr(line, needle))
			return true;
	return false;
}

static int finish(struct child *c) {
	char rest[4096];
	while (fread(rest, 1, sizeof rest, c->out) > 0) {
	}
	(void)fclose(c->out);
	int status;
	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Runs to the end; the first line with `needle` must be there. */
static void check(const char *const *args, int status, const char *needle) {
	char line[2048];
	struct child c = start(args);
	bool found = read_until(&c, needle, line, sizeof line);
	assert_int_equal(finish(&c), status);
	if (!found)
		fail_msg("'%s %s': nothing says \"%s\"", args[0], args[1] ? args[1] : "", needle);
}

#define ARGS(...) ((const char *const[]){"rivulet", __VA_ARGS__, NULL})

static void test_front_end(void **state) {
	(void)state;
	check(ARGS("--help"), 0, "rivulet train");
	check(ARGS("--version"), 0, program_version);
	check(ARGS("train", "--help"), 0, "--steps-per-round");
	check(ARGS("report", "--help"), 0, "--out");
	check(ARGS("tarin"), 2, "did you mean train?");
	check(ARGS("train"), 2, "data");
	check(ARGS("train", "--data", text, "--outer-mometum", "1"), 2, "did you mean --outer-momentum?");
	check(ARGS("train", "--data", text, "--workers", "65"), 2, "64");
	check(ARGS("train", "--data", "/nonexistent/t"), 2, "/nonexistent/t");
	check(ARGS("sample", "/nonexistent/w"), 1, "/nonexistent/w");
	check(ARGS("eval", "/nonexistent/w", "--data", text), 1, "/nonexistent/w");
	check(ARGS("report", "/nonexistent/w"), 1, "metrics.jsonl");
}

#define TRAIN(out, ...)                                                                                                \
	ARGS("train", "--data", text, "--out", out, "--n-layer", "1", "--n-embd", "16", "--n-head", "2", "--context",      \
		 "16", "--batch", "2", "--holdout-every", "4", "--rounds", "40", "--save-every", "7", "--workers", "3",        \
		 ##__VA_ARGS__)

static void test_check_starts_nothing(void **state) {
	(void)state;
	char out[300];
	snprintf(out, sizeof out, "%s/a", f.dir);
	check(TRAIN(out, "--check"), 0, "n-embd = 16");
	assert_int_not_equal(access(out, F_OK), 0);
}

/* The most that the options allow: more than 100 TB. What is refused in a given room:
 * test_lab_sweep_grid.c. */
static void test_what_cannot_fit_is_refused(void **state) {
	(void)state;
	char out[300];
	snprintf(out, sizeof out, "%s/a", f.dir);
	check(TRAIN(out, "--n-layer", "20", "--n-embd", "16384", "--workers", "64"), 1, "training needs ");
	assert_int_not_equal(access(out, F_OK), 0);
}

/* The "state" event's whole line without its time. */
static void train_to_end(const char *out, char state_line[256]) {
	char line[2048];
	struct child c = start(TRAIN(out));
	assert_true(read_until(&c, "\"event\":\"state\"", line, sizeof line));
	assert_int_equal(finish(&c), 0);
	snprintf(state_line, 256, "%s", strstr(line, "\"state\":\""));
}

static void test_interrupted_is_straight(void **state) {
	(void)state;
	char a[300], b[300], line[2048], straight[256], resumed[256];
	snprintf(a, sizeof a, "%s/a", f.dir);
	snprintf(b, sizeof b, "%s/b", f.dir);
	train_to_end(a, straight);
	struct child c = start(TRAIN(b));
	assert_true(read_until(&c, "\"event\":\"round\"", line, sizeof line));
	assert_int_equal(kill(c.pid, SIGINT), 0);
	bool stopped = read_until(&c, "the same command continues it", line, sizeof line);
	assert_int_equal(finish(&c), stopped ? 130 : 0); /* 0: it was done before the signal arrived */
	check(TRAIN(b, "--lr", "0.5", "--seed", "9"), 1, "there, 0.5 here; ");
	train_to_end(b, resumed);
	assert_string_equal(straight, resumed);
	check(ARGS("sample", b, "--tokens", "5", "--prompt", "the river", "--threads", "1"), 0, "the river");
	check(ARGS("eval", b, "--data", text, "--threads", "1"), 0, "bits_per_byte");
	assert_int_equal(setenv("RIVULET_CUDA_PLUGIN", "/nonexistent/plugin.so", 1), 0); /* why there is no GPU is said */
	check(ARGS("sample", b, "--tokens", "5", "--prompt", "the river", "--threads", "1"), 0, "on the CPU: ");
	check(ARGS("eval", b, "--data", text, "--threads", "1"), 0, "on the CPU: ");
	assert_int_equal(unsetenv("RIVULET_CUDA_PLUGIN"), 0);
}

/* Cuts the file's last line off; returns `wall_us` of the last line of a round. */
static long long cut_last_line(const char *path) {
	char bytes[1 << 17];
	FILE *file = fopen(path, "r+");
	assert_non_null(file);
	size_t n = fread(bytes, 1, sizeof bytes - 1, file);
	assert_true(n > 1 && n < sizeof bytes - 1);
	bytes[n - 1] = '\0';
	const char *end = strrchr(bytes, '\n') + 1, *round = NULL;
	assert_non_null(strstr(end, "\"kind\":\"end\""));
	for (const char *at = bytes; (at = strstr(at, "\"kind\":\"round\"")); at++)
		round = at;
	assert_non_null(round);
	assert_int_equal(ftruncate(fileno(file), end - bytes), 0);
	(void)fclose(file);
	return strtoll(strstr(round, "\"wall_us\":") + strlen("\"wall_us\":"), NULL, 10);
}

/* What the record says of itself: the text by its content, the program as --version has it; its
 * curve ends in its loss. */
static void test_the_record_says_of_what(void **state) {
	(void)state;
	char out[300], path[400], line[2048], sum[2048];
	struct run_record r;
	snprintf(out, sizeof out, "%s/a", f.dir);
	snprintf(path, sizeof path, "%s/metrics.jsonl", out);
	check(TRAIN(out, "--eval-tokens=100"), 0, "\"event\":\"done\"");
	assert_int_equal(run_record_read(path, &r, NULL), RV_OK);
	struct child c = start(ARGS("--version"));
	assert_true(read_until(&c, r.program, line, sizeof line));
	assert_int_equal(strcspn(line, "\n"), strlen(r.program));
	assert_int_equal(finish(&c), 0);
	char command[400];
	snprintf(command, sizeof command, "sha256sum < %s", text);
	FILE *p = popen(command, "r"); /* NOLINT: a fixed command and a path of this test's */
	assert_non_null(p);
	assert_non_null(fgets(sum, sizeof sum, p));
	assert_int_equal(pclose(p), 0);
	assert_int_equal(strncmp(r.data, "sha256:", 7), 0);
	assert_int_equal(strncmp(r.data + 7, sum, 64), 0);
	assert_true(r.n_evals > 0 && r.evals[r.n_evals - 1].loss == r.final_loss);
	assert_true(r.eval_tokens > 0 && r.eval_tokens <= 100 && r.heldout_tokens > r.eval_tokens);
	run_record_release(&r);
	remove_run("a");
}

/* Killed when all was done but the last line: that then has what the first process has measured,
 * and its time. */
static void test_killed_before_the_last_line(void **state) {
	(void)state;
	char out[300], path[400];
	struct run_record whole, again;
	snprintf(out, sizeof out, "%s/a", f.dir);
	snprintf(path, sizeof path, "%s/metrics.jsonl", out);
	const char *const *args = TRAIN(out, "--eval-replicas=true");
	check(args, 0, "\"event\":\"done\"");
	assert_int_equal(run_record_read(path, &whole, NULL), RV_OK);
	long long wall_us = cut_last_line(path);
	check(args, 0, "\"event\":\"resumed\"");
	assert_int_equal(run_record_read(path, &again, NULL), RV_OK);
	assert_true(again.ended && again.average_loss > 0 && again.replica_loss > 0);
	assert_true(again.average_loss == whole.average_loss && again.replica_loss == whole.replica_loss);
	assert_true(again.final_loss == whole.final_loss);
	assert_true(again.wall_s * 1e6 + 0.5 >= (double)wall_us);
	run_record_release(&whole);
	run_record_release(&again);
	remove_run("a");
}

/* Where it happened is said once to people and once to machines, in words; it is so every time. */
static void test_diverged(void **state) {
	(void)state;
	char out[300], path[400], line[2048];
	snprintf(out, sizeof out, "%s/a", f.dir);
	const char *const *args = TRAIN(out, "--lr", "10", "--clip", "0", "--warmup-steps", "0", "--codec", "fp32", "--eps",
									"1e-20", "--outer-lr", "10", "--outer-beta2", "0.5");
	struct child c = start(args);
	assert_true(read_until(&c, "\"event\":\"no_effect\"", line, sizeof line));
	assert_non_null(strstr(line, "outer-beta2 = 0.5 has no effect here"));
	assert_true(read_until(&c, "\"event\":\"diverged\"", line, sizeof line));
	assert_non_null(strstr(line, "\"worker\":"));
	assert_null(strstr(line, "nan"));
	assert_true(read_until(&c, "rivulet: diverged in round ", line, sizeof line));
	assert_null(strstr(line, "nan"));
	assert_int_equal(finish(&c), 3);
	snprintf(path, sizeof path, "%s/metrics.jsonl", out);
	struct run_record r;
	assert_int_equal(run_record_read(path, &r, NULL), RV_OK);
	assert_true(r.diverged_round > 0);
	assert_in_range(r.diverged_round, (uint64_t)r.n_rounds,
					(uint64_t)r.n_rounds + 1); /* after its outer step, or before */
	run_record_release(&r);
	check(args, 3, "\"event\":\"diverged\"");
	remove_run("a");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_front_end),
		cmocka_unit_test(test_check_starts_nothing),
		cmocka_unit_test(test_what_cannot_fit_is_refused),
		cmocka_unit_test(test_diverged),
		cmocka_unit_test(test_the_record_says_of_what),
		cmocka_unit_test(test_killed_before_the_last_line),
		cmocka_unit_test(test_interrupted_is_straight),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
