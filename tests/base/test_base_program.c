/* The front end: exit statuses, --help, --version, --check, suggestions. Runs in children so that
 * their output can be read. */
#include "base/program.h"

#include "tests/base/demo_options.h"
#include "tests/common/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static enum rv_err check_demo(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct demo *d = opts;
	(void)args;
	return d->rounds == 13 ? rv_fail(et, RV_E_INVALID, "rounds = 13: bad luck") : RV_OK;
}

static enum rv_err run_demo(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	const struct demo *d = opts;
	(void)printf("ran %d %s\n", (int)d->rounds, args->n > 0 ? args->at[0] : "-");
	if (d->rounds == 1)
		return rv_fail(et, RV_E_FULL, "disk full");
	if (d->rounds == 4)
		return rv_fail(et, RV_E_CORRUPT, "tensor '\x1b[31mred\x7f'");
	if (d->rounds == 6)
		return rv_fail(et, RV_E_DIVERGED, "loss is infinite");
	if (d->rounds == 7)
		return rv_fail(et, RV_E_AUTH, "key refused");
	return d->rounds == 2 ? rv_fail(et, RV_E_CANCELLED, "stopped") : RV_OK;
}

static enum rv_err run_bare(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)opts;
	(void)args;
	(void)et;
	(void)printf("bare\n");
	return RV_OK;
}

static enum rv_err prepare_demo(void *opts, struct rv_errtext *et) {
	struct demo *d = opts;
	if (d->rounds == 14)
		return rv_fail(et, RV_E_NOTFOUND, "rounds = 14: no such file");
	if (d->rounds == 15)
		d->rounds = 16;
	return RV_OK;
}

/* Kept from an earlier start, where the command line names the link "kept". */
static enum rv_err recall_demo(void *opts, struct rv_errtext *et) {
	struct demo *d = opts;
	bool has_kept = strcmp(d->link, "kept") == 0;
	if (strcmp(d->link, "damaged") == 0)
		return rv_fail(et, RV_E_INVALID, "what was kept is damaged");
	rv_options_defaults(demo_options, d);
	return has_kept ? rv_options_set(demo_options, d, "rounds", "21", et) : RV_OK;
}

static const struct rv_preset presets[] = {{"short", "few rounds", "rounds = 3\n"}, {.name = NULL}};

static const struct rv_command commands[] = {
	{.name = "serve",
	 .synopsis = "[FILE]",
	 .args_max = 1,
	 .help = "Serves.",
	 .details = "Details of it.",
	 .options = demo_options,
	 .presets = presets,
	 .opts_bytes = sizeof(struct demo),
	 .prepare = prepare_demo,
	 .check = check_demo,
	 .run = run_demo},
	{.name = "status", .synopsis = "DIR", .args_min = 1, .args_max = 1, .help = "Shows.", .run = run_bare},
	{.run = NULL},
};
static const struct rv_program many = {"prog", "A program.", commands, "    prog serve", false};
static const struct rv_command single[] = {
	{.synopsis = "LINK",
	 .recall = recall_demo,
	 .args_min = 1,
	 .args_max = 1,
	 .help = "",
	 .options = demo_options,
	 .opts_bytes = sizeof(struct demo),
	 .run = run_demo},
	{.run = NULL},
};
static const struct rv_program one = {"tool", "A tool.", single, NULL, false};

static const struct rv_command named_and_not[] = {
	{.synopsis = "[LINK]",
	 .args_max = 1,
	 .help = "Trains.",
	 .options = demo_options,
	 .opts_bytes = sizeof(struct demo),
	 .run = run_demo},
	{.name = "status", .synopsis = "DIR", .args_min = 1, .args_max = 1, .help = "Shows.", .run = run_bare},
	{.run = NULL},
};
static const struct rv_program both = {"work", "A worker.", named_and_not, "    work a://b", false};

struct outcome {
	int status;
	char text[8192]; /* stdout and stderr */
};

static struct outcome run(const struct rv_program *p, const char *words) {
	struct outcome o = {0};
	char buffer[512], *argv[32];
	int argc = 0, fds[2];
	(void)snprintf(buffer, sizeof buffer, "%s %s", p->name, words);
	for (char *save, *w = strtok_r(buffer, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	assert_int_equal(pipe(fds), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)dup2(fds[1], STDOUT_FILENO);
		(void)dup2(fds[1], STDERR_FILENO);
		int status = rv_program_main(p, argc, argv);
		(void)fflush(stdout);
		_exit(status);
	}
	close(fds[1]);
	size_t n = 0;
	ssize_t k;
	while (n < sizeof o.text - 1 && (k = read(fds[0], o.text + n, sizeof o.text - 1 - n)) > 0)
		n += (size_t)k;
	close(fds[0]);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	o.status = WEXITSTATUS(status);
	return o;
}

static void expect(const struct rv_program *p, const char *words, int status, const char *text) {
	struct outcome o = run(p, words);
	if (o.status != status || !strstr(o.text, text))
		fail_msg("%s %s: status %d, want %d with \"%s\" in:\n%s", p->name, words, o.status, status, text, o.text);
}

static void what_was_kept_stands_between_defaults_and_command_line(void **state) {
	(void)state;
	expect(&one, "--link kept x", 0, "ran 21 x");
	expect(&one, "--link kept --rounds 5 x", 0, "ran 5 x");
	expect(&one, "--link l --rounds 5 x", 0, "ran 5 x");
	expect(&one, "--link kept x --check", 0, "rounds = 21");
	expect(&one, "--link damaged x", 2, "what was kept is damaged");
}

static void commands_run_and_report(void **state) {
	(void)state;
	expect(&many, "serve --link l --rounds 5 f", 0, "ran 5 f");
	expect(&many, "serve --link l", 0, "ran 30 -");
	expect(&many, "status d", 0, "bare");
	expect(&many, "serve --link l --rounds 1", 1, "prog: disk full");
	expect(&many, "serve --link l --rounds 4", 1, "tensor '?[31mred?'\n");
	expect(&many, "serve --link l --rounds 2", 130, "prog: stopped");
	expect(&many, "serve --link l --rounds 6", 3, "prog: loss is infinite");
	expect(&many, "serve --link l --rounds 7", 4, "prog: key refused");
	expect(&one, "--link l x", 0, "ran 30 x");
	expect(&many, "serve --link l --preset short", 0, "ran 3 -");
	expect(&many, "serve --link l --rounds 15", 0, "ran 16 -");
}

static void wrong_use_is_refused(void **state) {
	(void)state;
	expect(&many, "", 2, "Usage:");
	expect(&many, "sreve", 2, "sreve: unknown command; did you mean serve?");
	expect(&many, "frobnicate", 2, "unknown command; prog --help lists them");
	expect(&many, "help sreve", 2, "did you mean serve?");
	expect(&many, "serve", 2, "missing a required option: --link");
	expect(&many, "serve --link l a b", 2, "b: unexpected argument; usage: prog serve [options] [FILE]");
	expect(&many, "serve --link l --rounds 13", 2, "bad luck");
	expect(&many, "serve --round 3", 2, "did you mean --rounds?");
	expect(&many, "status", 2, "an argument is missing: prog status [options] DIR");
	expect(&many, "serve --link l --rounds 14", 2, "rounds = 14: no such file");
	expect(&one, "--preset short --link l x", 2, "--preset: unknown option");
	expect(&one, "--link l", 2, "an argument is missing: tool [options] LINK");
}

static void help_and_version(void **state) {
	(void)state;
	expect(&many, "--help", 0, "prog serve [options] [FILE]\n        Serves.");
	expect(&many, "help", 0, "Examples:\n    prog serve");
	expect(&many, "serve --help", 0, "Details of it.");
	expect(&many, "help serve", 0, "--chunk-bytes SIZE");
	expect(&many, "help serve", 0, "        short        few rounds\n");
	expect(&many, "help status", 0, "Usage: prog status [options] DIR");
	expect(&many, "--version", 0, "prog " RV_VERSION);
	expect(&one, "--help", 0, "Usage: tool [options] LINK\n\nA tool.\n");
	expect(&one, "--version", 0, "tool " RV_VERSION);
}

static void a_command_without_a_name_stands_beside_others(void **state) {
	(void)state;
	expect(&both, "a://b --link l", 0, "ran 30 a://b");
	expect(&both, "--link l --rounds 5", 0, "ran 5 -");
	expect(&both, "status d", 0, "bare");
	expect(&both, "statsu d", 2, "statsu: unknown command; did you mean status?");
	expect(&both, "", 2, "missing a required option: --link");
	expect(&both, "--help", 0, "Usage: work [options] [LINK]\n\nA worker.\n");
	expect(&both, "help", 0, "\nCommands:\n    work status [options] DIR\n        Shows.\n");
	expect(&both, "--help", 0, "\nExamples:\n    work a://b");
	expect(&both, "help status", 0, "Usage: work status [options] DIR");
}

static void packages_get_manual_and_completion(void **state) {
	(void)state;
	assert_int_equal(setenv("SOURCE_DATE_EPOCH", "86400", 1), 0);
	expect(&one, "--man", 0, ".TH \"TOOL\" 1 \"1970-01-02\"");
	expect(&many, "--man", 0, ".SS \"status\"");
	expect(&many, "--completion bash", 0, "complete -F _prog prog\n");
	expect(&many, "--completion tcsh", 2, "--completion tcsh: must be bash, zsh or fish");
	assert_null(strstr(run(&many, "--help").text, "--man"));
}

static void check_validates_without_running(void **state) {
	(void)state;
	expect(&many, "serve --check --link l --rounds 7", 0, "rounds = 7\n");
	assert_null(strstr(run(&many, "serve --check --link l").text, "ran"));
	expect(&many, "serve --check --link l --rounds 13", 2, "bad luck");
	expect(&many, "serve --check", 2, "--link");
	expect(&many, "serve --check --link l --rounds 15", 0, "rounds = 16\n");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_run_and_report),
		cmocka_unit_test(what_was_kept_stands_between_defaults_and_command_line),
		cmocka_unit_test(wrong_use_is_refused),
		cmocka_unit_test(help_and_version),
		cmocka_unit_test(check_validates_without_running),
		cmocka_unit_test(a_command_without_a_name_stands_beside_others),
		cmocka_unit_test(packages_get_manual_and_completion),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
