/* options.h: one table describes every option of a program; command line, config file, --help and
 * --check come from it.
 *
 * Names are the same in both places: `--silence-ms 4000` and `silence-ms = 4000`. The config file
 * is lines of `key = value`, `#` comments, UTF-8, at most 64 KiB. The command line wins over the
 * file, the file over the default. An unknown name is refused with the nearest known one ("did you
 * mean"); a value out of range is refused with the range. */
#ifndef RV_BASE_OPTIONS_H
#define RV_BASE_OPTIONS_H

#include "base/err.h"
#include "base/presets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum rv_option_type {
	RV_OPT_BOOL,
	RV_OPT_INT,
	RV_OPT_DOUBLE,
	RV_OPT_STRING,
	RV_OPT_ENUM,   /* one of `choices`, as text */
	RV_OPT_CHOICE, /* one of `choices`, as its place among them */
	RV_OPT_BYTES,
	RV_OPT_DURATION_MS,
	RV_OPT_RATE, /* bytes per second */
	RV_OPT_LIST  /* texts: each --NAME, or line of a config file, adds one */
};

struct rv_option {
	const char *name; /* "inner-lr" */
	/* BOOL: bool, DOUBLE: double, STRING/ENUM: char[cap], LIST: char[cap] with a newline between
	 * texts, CHOICE: int, else int64_t */
	enum rv_option_type type;
	size_t offset;        /* into the options struct */
	size_t cap;           /* STRING, ENUM, LIST: size of the char array */
	const char *fallback; /* default, as it would be written; NULL: required */
	/* Bounds of numbers, inclusive; both 0: unbounded. A RATE may also be 0: no limit. STRING: min
	 * 1 refuses an empty text. */
	double min, max;
	const char *choices; /* ENUM, CHOICE: "keep|discard" */
	const char *help;    /* one sentence; default, range and choices are appended by the help printer */
	const char *group;   /* heading in --help: "Model", "Network", ... */
};

/* Fills `opts` from the defaults; the table ends with name == NULL. Asserts that the table's own
 * defaults are valid. */
void rv_options_defaults(const struct rv_option *table, void *opts);
/* Sets one option from text. RV_E_INVALID (unknown name, with a suggestion; malformed value),
 * RV_E_RANGE. */
enum rv_err rv_options_set(const struct rv_option *table, void *opts, const char *name, const char *value,
						   struct rv_errtext *et);
/* Parses config text (NUL-terminated); errors name `source` and the line. Only keys of `table`; a
 * key twice is refused, but of a LIST. */
enum rv_err rv_options_parse_text(const struct rv_option *table, void *opts, const char *source, const char *text,
								  struct rv_errtext *et);
/* Parses a config file of at most 64 KiB, whose lines `preset = NAME`, up to 4 that set different
 * options, are read before its other lines (presets NULL: there are no such lines). RV_E_NOTFOUND,
 * RV_E_RANGE, RV_E_IO, and its text's errors. */
enum rv_err rv_options_parse_file(const struct rv_option *table, const struct rv_preset *presets, void *opts,
								  const char *path, struct rv_errtext *et);
/* Reads the text of a config file of at most 64 KiB, NUL-terminated; the caller frees *text. A byte
 * order mark becomes blanks. RV_E_NOTFOUND, RV_E_RANGE, RV_E_IO; RV_E_INVALID: it holds a NUL. */
enum rv_err rv_options_read_file(const char *path, char **text, struct rv_errtext *et);
/* Parses argv[1..]: `--name value`, `--name=value`, `--name` for bools (`--no-name` negates).
 * Wherever they are, each `--preset NAME` is read first (presets NULL: there is no such option),
 * then `--config FILE`, whose lines `preset = NAME`, wherever they stand, are read before its other
 * lines (RV_E_INVALID if a preset named before sets one of their options). Other arguments are
 * collected in `args` (RV_E_INVALID past `args_cap`); `--` ends the options. `--help`, `--version`
 * and `--check` are left to the program: rv_options_wants(). */
enum rv_err rv_options_parse_argv(const struct rv_option *table, const struct rv_preset *presets, void *opts, int argc,
								  char **argv, const char **args, int args_cap, int *n_args, struct rv_errtext *et);
/* Returns true if argv holds the flag ("--help") before any `--`. */
bool rv_options_wants(int argc, char **argv, const char *flag);
/* Returns RV_E_INVALID with the names of all required options that are still missing. */
enum rv_err rv_options_check_required(const struct rv_option *table, const void *opts, struct rv_errtext *et);
/* Writes the canonical text of all options, `key = value` a line in table order: parsed again it
 * gives the same struct, and a run's config hash covers its bytes. Returns the length needed (as
 * snprintf does). */
size_t rv_options_print(const struct rv_option *table, const void *opts, char *out, size_t cap);
/* Prints the options for --help. */
void rv_options_help(const struct rv_option *table, FILE *out);
/* Takes the next text of a LIST: copies it to `out`, cut to `cap` - 1 bytes, and moves *list behind
 * it. Returns false at the end. */
bool rv_list_next(const char **list, char *out, size_t cap);
/* Returns the nearest of `n` names within edit distance 3 (and less than half of `word`), or
 * NULL. */
const char *rv_nearest_name(const char *word, const char *const *names, int n);
/* Returns true if `name` is one of `names`, which end with NULL. */
bool rv_name_is_one_of(const char *name, const char *const *names);

#endif
