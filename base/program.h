/* program.h: the front end that the programs share, so that their main.c is a table: subcommands,
 * --help, --version, --check, option parsing, the error line and the exit status.
 *
 *     int main(int argc, char **argv) { return rv_program_main(&program, argc, argv); }
 *
 * `PROG --help` lists the commands, `PROG COMMAND --help` and `PROG help COMMAND` its options. A
 * first argument of small letters and hyphens is a command's name; with another one, or none, the
 * command without a name runs, if the program has one.
 * `--check` parses and validates everything, prints the effective configuration (it parses back)
 * and starts nothing. `PROG --man` prints the manual page and `PROG --completion SHELL` what bash,
 * zsh or fish offer at the Tab key: packages have both from there. */
#ifndef RV_BASE_PROGRAM_H
#define RV_BASE_PROGRAM_H

#include "base/options.h"

#include <stdio.h>

/* RV_EXIT_REFUSED: a key or token is not accepted; a restart would be refused again, or harm
 * another member. */
enum {
	RV_EXIT_OK = 0,
	RV_EXIT_FAULT = 1,
	RV_EXIT_USAGE = 2,
	RV_EXIT_DIVERGED = 3,
	RV_EXIT_REFUSED = 4,
	RV_EXIT_CANCELLED = 130
};

enum { RV_PROGRAM_ARGS_MAX = 1024 };

/* Arguments of the command line that are not options. Borrows from argv. */
struct rv_args {
	const char *at[RV_PROGRAM_ARGS_MAX];
	int n;
};

struct rv_command {
	/* "serve"; NULL: the command that runs if the first argument names none. At most one is so. */
	const char *name;
	const char *synopsis; /* its arguments as the usage line shows them: "LINK", "FILE..."; "" for none */
	int args_min, args_max;
	const char *help;                /* one sentence */
	const char *details;             /* NULL, or text printed below it in the command's own --help */
	const struct rv_option *options; /* NULL: none */
	const struct rv_preset *presets; /* of --preset; NULL: none */
	size_t opts_bytes;               /* size of the options struct */
	bool runs_on_check;              /* --check runs this command as well: it only prints something */
	/* Replaces `opts` (the defaults and this command line) by the defaults and the options that an
	 * earlier start kept; presets, --config and the command line are then read again over them.
	 * Also run by --check. NULL: nothing is kept. */
	enum rv_err (*recall)(void *opts, struct rv_errtext *et);
	/* Completes the options from files that they name; before `check`, also run by --check. NULL:
	 * nothing. */
	enum rv_err (*prepare)(void *opts, struct rv_errtext *et);
	/* Checks rules over several options; also run by --check. NULL: nothing. */
	enum rv_err (*check)(const void *opts, const struct rv_args *args, struct rv_errtext *et);
	/* Checks the files and directories that a start would use, for --check; reads only. NULL:
	 * nothing. */
	enum rv_err (*check_files)(const void *opts, const struct rv_args *args, struct rv_errtext *et);
	/* Prints facts derived from the options: comment lines ("# ...") that --check prints below
	 * them. NULL: nothing. */
	void (*explain)(const void *opts, FILE *out);
	/* Runs the command. RV_OK: exit status 0; RV_E_CANCELLED: 130; RV_E_DIVERGED: 3; RV_E_AUTH: 4;
	 * other faults: 1, with the text on stderr. */
	enum rv_err (*run)(void *opts, const struct rv_args *args, struct rv_errtext *et);
};

struct rv_program {
	const char *name;                  /* "rivulet-worker" */
	const char *summary;               /* one sentence: what it is for */
	const struct rv_command *commands; /* ended by run == NULL */
	const char *examples;              /* NULL, or lines at the end of --help */
	/* It reads secret keys: no core dumps, and no other process may read its memory. The variable
	 * RIVULET_CORE_DUMPS=1 allows both, for debugging. */
	bool holds_keys;
};

/* Does all of main(). Returns the exit status; 2 for a command line or configuration that is
 * refused. */
int rv_program_main(const struct rv_program *p, int argc, char **argv);

#endif
