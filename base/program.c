/* program.c: subcommands, --help, --version, --check and exit statuses. */
#include "base/program.h"

#include "base/assert.h"
#include "base/completion.h"
#include "base/manual.h"
#include "base/os_secrets.h"
#include "base/version.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct rv_option no_options[] = {{.name = NULL}};

static const struct rv_option *options_of(const struct rv_command *c) {
	return c->options ? c->options : no_options;
}

static void print_usage(const struct rv_program *p, const struct rv_command *c, FILE *out) {
	(void)fprintf(out, "%s%s%s [options]%s%s\n", p->name, c->name ? " " : "", c->name ? c->name : "",
				  c->synopsis[0] ? " " : "", c->synopsis);
}

static void print_common(const struct rv_command *c, FILE *out) {
	if (c->presets) {
		(void)fputs("\nPresets:\n    --preset NAME\n        A named set of options, read before --config; may be given "
					"several times. In FILE: lines\n        `preset = NAME`.\n",
					out);
		rv_presets_help(c->presets, out);
	}
	(void)fputs("\nEverywhere:\n"
				"    --config FILE\n"
				"        Read options from FILE first: lines of `name = value`, `#` comments. The command line wins.\n"
				"    --check\n"
				"        Validate everything, print the effective configuration, start nothing.\n"
				"    --help, --version\n",
				out);
}

static bool has_named_commands(const struct rv_program *p) {
	for (const struct rv_command *c = p->commands; c->run; c++)
		if (c->name)
			return true;
	return false;
}

/* Lists the commands that have names. */
static void print_commands(const struct rv_program *p, const char *title, FILE *out) {
	(void)fprintf(out, "\n%s:\n", title);
	for (const struct rv_command *c = p->commands; c->run; c++) {
		if (!c->name)
			continue;
		(void)fputs("    ", out);
		print_usage(p, c, out);
		(void)fprintf(out, "        %s\n", c->help);
	}
	(void)fprintf(out, "\n`%s COMMAND --help` lists the options of a command.\n", p->name);
}

static void print_examples(const struct rv_program *p, FILE *out) {
	if (p->examples)
		(void)fprintf(out, "\nExamples:\n%s\n", p->examples);
}

static void print_command_help(const struct rv_program *p, const struct rv_command *c, FILE *out) {
	(void)fputs("Usage: ", out);
	print_usage(p, c, out);
	(void)fprintf(out, "\n%s\n", c->name ? c->help : p->summary);
	if (c->details)
		(void)fprintf(out, "\n%s\n", c->details);
	rv_options_help(options_of(c), out);
	print_common(c, out);
	if (!c->name && has_named_commands(p))
		print_commands(p, "Commands", out);
	if (!c->name)
		print_examples(p, out);
}

/* Returns the command without a name; NULL: every command has one. */
static const struct rv_command *default_command(const struct rv_program *p) {
	for (const struct rv_command *c = p->commands; c->run; c++)
		if (!c->name)
			return c;
	return NULL;
}

static void print_program_help(const struct rv_program *p, FILE *out) {
	const struct rv_command *c = default_command(p);
	if (c) {
		print_command_help(p, c, out);
		return;
	}
	(void)fprintf(out, "%s\n", p->summary);
	print_commands(p, "Usage", out);
	print_examples(p, out);
}

static const struct rv_command *find_command(const struct rv_program *p, const char *name, struct rv_errtext *et) {
	const char *names[32];
	int n = 0;
	for (const struct rv_command *c = p->commands; c->run; c++) {
		if (!c->name)
			continue;
		if (strcmp(c->name, name) == 0)
			return c;
		RV_ASSERT(n < 32);
		names[n++] = c->name;
	}
	const char *near = rv_nearest_name(name, names, n);
	if (near)
		(void)rv_fail(et, RV_E_INVALID, "%.60s: unknown command; did you mean %s?", name, near);
	else
		(void)rv_fail(et, RV_E_INVALID, "%.60s: unknown command; %s --help lists them", name, p->name);
	return NULL;
}

/* Prints without control characters: a text may quote a file or a peer, which must not control the
 * terminal. */
static void print_harmless(const char *text, FILE *out) {
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		bool control = (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
		(void)fputc(control ? '?' : c, out);
	}
}

static int refuse(const struct rv_program *p, const struct rv_errtext *et, int status) {
	(void)fflush(stdout);
	(void)fprintf(stderr, "%s: ", p->name);
	print_harmless(et->text[0] ? et->text : "failed without a reason", stderr);
	(void)fputc('\n', stderr);
	return status;
}

static enum rv_err check_arg_count(const struct rv_program *p, const struct rv_command *c, const struct rv_args *args,
								   struct rv_errtext *et) {
	const char *space = c->name ? " " : "", *name = c->name ? c->name : "";
	if (args->n < c->args_min)
		return rv_fail(et, RV_E_INVALID, "an argument is missing: %s%s%s [options] %s", p->name, space, name,
					   c->synopsis);
	if (args->n > c->args_max)
		return rv_fail(et, RV_E_INVALID, "%.100s: unexpected argument; usage: %s%s%s [options] %s",
					   args->at[c->args_max], p->name, space, name, c->synopsis);
	return RV_OK;
}

static enum rv_err parse(const struct rv_command *c, int argc, char **argv, void *opts, struct rv_args *args,
						 struct rv_errtext *et) {
	args->n = 0;
	return rv_options_parse_argv(options_of(c), c->presets, opts, argc, argv, args->at, RV_PROGRAM_ARGS_MAX, &args->n,
								 et);
}

/* Checks everything that can be refused before the command starts. */
static enum rv_err read_command_line(const struct rv_program *p, const struct rv_command *c, int argc, char **argv,
									 void *opts, struct rv_args *args, struct rv_errtext *et) {
	const struct rv_option *table = options_of(c);
	rv_options_defaults(table, opts);
	RV_TRY(parse(c, argc, argv, opts, args, et));
	if (c->recall) {
		RV_TRY(c->recall(opts, et));
		RV_TRY(parse(c, argc, argv, opts, args, et));
	}
	RV_TRY(check_arg_count(p, c, args, et));
	RV_TRY(rv_options_check_required(table, opts, et));
	if (c->prepare)
		RV_TRY(c->prepare(opts, et));
	return c->check ? c->check(opts, args, et) : RV_OK;
}

static int print_effective(const struct rv_program *p, const struct rv_command *c, const void *opts) {
	size_t n = rv_options_print(options_of(c), opts, NULL, 0);
	char *text = malloc(n + 1);
	if (!text)
		return refuse(p, &(struct rv_errtext){"no memory"}, RV_EXIT_FAULT);
	(void)rv_options_print(options_of(c), opts, text, n + 1);
	(void)printf("# %s%s%s: the configuration is valid\n%s", p->name, c->name ? " " : "", c->name ? c->name : "", text);
	free(text);
	if (c->explain)
		c->explain(opts, stdout);
	return RV_EXIT_OK;
}

static int status_of(enum rv_err e) {
	switch (e) {
	case RV_E_CANCELLED:
		return RV_EXIT_CANCELLED;
	case RV_E_DIVERGED:
		return RV_EXIT_DIVERGED;
	case RV_E_AUTH:
	case RV_E_OVER:
		return RV_EXIT_REFUSED;
	default:
		return RV_EXIT_FAULT;
	}
}

/* Runs a command; argv[0] is the program's or the command's name. */
static int run_command(const struct rv_program *p, const struct rv_command *c, int argc, char **argv) {
	struct rv_errtext et = {0};
	struct rv_args args = {.n = 0};
	if (rv_options_wants(argc, argv, "--help")) {
		print_command_help(p, c, stdout);
		return RV_EXIT_OK;
	}
	void *opts = calloc(1, c->opts_bytes ? c->opts_bytes : 1);
	if (!opts)
		return refuse(p, &(struct rv_errtext){"no memory"}, RV_EXIT_FAULT);
	int status = RV_EXIT_OK;
	enum rv_err e = read_command_line(p, c, argc, argv, opts, &args, &et);
	if (e != RV_OK) {
		status = refuse(p, &et, RV_EXIT_USAGE);
	} else if (!c->runs_on_check && rv_options_wants(argc, argv, "--check")) {
		e = c->check_files ? c->check_files(opts, &args, &et) : RV_OK;
		status = e == RV_OK ? print_effective(p, c, opts) : refuse(p, &et, RV_EXIT_FAULT);
	} else {
		e = c->run(opts, &args, &et);
		if (e != RV_OK)
			status = refuse(p, &et, status_of(e));
	}
	free(opts);
	return status;
}

/* Returns true if an argument can only be meant as a command's name: small letters and hyphens. */
static bool is_command_word(const char *arg) {
	size_t n = strspn(arg, "abcdefghijklmnopqrstuvwxyz-");
	return n > 0 && arg[n] == '\0' && arg[0] != '-';
}

static int run_subcommand(const struct rv_program *p, int argc, char **argv) {
	struct rv_errtext et = {0};
	bool help = argc > 1 && (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0);
	const struct rv_command *unnamed = default_command(p);
	if (unnamed && !help && (argc < 2 || !is_command_word(argv[1])))
		return run_command(p, unnamed, argc, argv);
	if (argc < 2 || (help && argc == 2)) {
		print_program_help(p, help ? stdout : stderr);
		return help ? RV_EXIT_OK : RV_EXIT_USAGE;
	}
	const struct rv_command *c = find_command(p, argv[help ? 2 : 1], &et);
	if (!c)
		return refuse(p, &et, RV_EXIT_USAGE);
	if (!help)
		return run_command(p, c, argc - 1, argv + 1);
	print_command_help(p, c, stdout);
	return RV_EXIT_OK;
}

/* Opens /dev/null for a closed stdin, stdout or stderr: else the next file would take its number,
 * and printing would write into it. */
static void open_standard_files(void) {
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", O_RDWR) != fd)
			abort();
}

/* Reports output that could not be written (a full disk) as a fault; a reader that closed the pipe
 * (EPIPE) is none. */
static int flush_output(const struct rv_program *p, int status) {
	errno = 0;
	bool lost = fflush(stdout) != 0 || ferror(stdout) != 0;
	if (!lost || errno == EPIPE || status != RV_EXIT_OK)
		return status;
	struct rv_errtext et = {0};
	(void)rv_fail_errno(&et, errno ? errno : EIO, "standard output: cannot write");
	return refuse(p, &et, RV_EXIT_FAULT);
}

/* Prints the manual page with the date of SOURCE_DATE_EPOCH, or with today's. */
static void print_manual(const struct rv_program *p) {
	const char *epoch = getenv("SOURCE_DATE_EPOCH");
	const time_t at = epoch ? (time_t)strtoll(epoch, NULL, 10) : time(NULL);
	char date[32] = "";
	struct tm utc;
	if (gmtime_r(&at, &utc))
		(void)strftime(date, sizeof date, "%Y-%m-%d", &utc);
	rv_manual_print(p, date, stdout);
}

/* Prints what only packages need, and --help does not mention: `--man` and `--completion SHELL`.
 * Returns false if the command line asks for neither. */
static bool prints_for_packages(const struct rv_program *p, int argc, char **argv, int *status) {
	struct rv_errtext et = {0};
	*status = RV_EXIT_OK;
	if (argc == 2 && strcmp(argv[1], "--man") == 0)
		print_manual(p);
	else if (argc == 3 && strcmp(argv[1], "--completion") == 0)
		*status = rv_completion_print(p, argv[2], stdout, &et) == RV_OK ? RV_EXIT_OK : refuse(p, &et, RV_EXIT_USAGE);
	else
		return false;
	return true;
}

int rv_program_main(const struct rv_program *p, int argc, char **argv) {
	int status;
	open_standard_files();
	if (p->holds_keys && !getenv("RIVULET_CORE_DUMPS"))
		os_secrets_keep();
	if (rv_options_wants(argc, argv, "--version")) {
		(void)printf("%s %s\n", p->name, rv_version());
		return RV_EXIT_OK;
	}
	RV_ASSERT(p->commands->run);
	if (!prints_for_packages(p, argc, argv, &status))
		status = has_named_commands(p) ? run_subcommand(p, argc, argv) : run_command(p, p->commands, argc, argv);
	return flush_output(p, status);
}
