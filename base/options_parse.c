/* options_parse.c: options from config text, from presets, from a config file and from the command
 * line. */
#include "base/file.h"
#include "base/option_value.h"
#include "base/options.h"

#include <stdlib.h>
#include <string.h>

enum { CONFIG_FILE_BYTES_MAX = 64 * 1024, NAME_BYTES_MAX = 64 };

static bool is_blank(char c) {
	return c == ' ' || c == '\t' || c == '\r';
}

/* One logical line of a config file, cut at blanks and comment. */
struct line {
	char name[NAME_BYTES_MAX];
	char value[RV_OPTION_TEXT_BYTES];
};

/* Reads a quoted value: \" and \\ are the only escapes; only a comment may follow the closing
 * quote. */
static enum rv_err read_quoted(const char *at, const char *end, char *out, struct rv_errtext *et) {
	size_t n = 0;
	for (at++; at < end && *at != '"'; at++) {
		if (*at == '\\') {
			at++;
			if (at == end || (*at != '"' && *at != '\\'))
				return rv_fail(et, RV_E_INVALID, "in a quoted value, a backslash stands before \" or \\ only");
		}
		if (n + 1 >= RV_OPTION_TEXT_BYTES)
			return rv_fail(et, RV_E_RANGE, "value is longer than %d bytes", RV_OPTION_TEXT_BYTES - 1);
		out[n++] = *at;
	}
	out[n] = '\0';
	if (at == end)
		return rv_fail(et, RV_E_INVALID, "the closing quote is missing");
	for (at++; at < end && is_blank(*at);)
		at++;
	if (at < end && *at != '#')
		return rv_fail(et, RV_E_INVALID, "text after the closing quote");
	return RV_OK;
}

/* Reads a bare value: it ends before a `#` that follows a blank (so that links may hold one),
 * without blanks around it. */
static enum rv_err read_bare(const char *at, const char *end, char *out, struct rv_errtext *et) {
	const char *stop = at;
	while (stop < end && !(*stop == '#' && (stop == at || is_blank(stop[-1]))))
		stop++;
	while (stop > at && is_blank(stop[-1]))
		stop--;
	if (stop - at >= RV_OPTION_TEXT_BYTES)
		return rv_fail(et, RV_E_RANGE, "value is longer than %d bytes", RV_OPTION_TEXT_BYTES - 1);
	memcpy(out, at, (size_t)(stop - at));
	out[stop - at] = '\0';
	return RV_OK;
}

/* Splits [at, end); name[0] is NUL for a line without content. */
static enum rv_err read_line(const char *at, const char *end, struct line *line, struct rv_errtext *et) {
	line->name[0] = '\0';
	while (at < end && is_blank(*at))
		at++;
	if (at == end || *at == '#')
		return RV_OK;
	const char *equals = memchr(at, '=', (size_t)(end - at));
	if (!equals)
		return rv_fail(et, RV_E_INVALID, "\"%.*s\": a line is `key = value` or a `#` comment",
					   (int)(end - at < 60 ? end - at : 60), at);
	const char *stop = equals;
	while (stop > at && is_blank(stop[-1]))
		stop--;
	if (stop == at)
		return rv_fail(et, RV_E_INVALID, "the name before `=` is missing");
	if (stop - at >= NAME_BYTES_MAX)
		return rv_fail(et, RV_E_INVALID, "%.60s...: unknown option; --help lists all of them", at);
	memcpy(line->name, at, (size_t)(stop - at));
	line->name[stop - at] = '\0';
	for (at = equals + 1; at < end && is_blank(*at);)
		at++;
	bool quoted = at < end && *at == '"';
	return quoted ? read_quoted(at, end, line->value, et) : read_bare(at, end, line->value, et);
}

static enum rv_err set_once(const struct rv_option *table, void *opts, const struct line *line, int line_no,
							int first_line[RV_OPTIONS_MAX], struct rv_errtext *et) {
	int i = rv_options_find(table, "", line->name, NULL, et);
	if (i < 0)
		return RV_E_INVALID;
	if (first_line[i] && table[i].type != RV_OPT_LIST)
		return rv_fail(et, RV_E_INVALID, "%s is set twice, first on line %d", line->name, first_line[i]);
	first_line[i] = line_no;
	return rv_option_value_parse(&table[i], opts, line->value, et);
}

/* The options and presets that a config text may name. */
struct vocabulary {
	const struct rv_option *table;
	const struct rv_preset *presets; /* or NULL */
};

static bool names_preset(const struct vocabulary *known, const struct line *line) {
	return known->presets && strcmp(line->name, "preset") == 0;
}

/* Calls `take` for each line that has content. */
static enum rv_err each_line(const char *source, const char *text,
							 enum rv_err (*take)(void *ctx, const struct line *line, int line_no,
												 struct rv_errtext *et),
							 void *ctx, struct rv_errtext *et) {
	int line_no = 0;
	for (const char *at = text; *at;) {
		const char *end = at + strcspn(at, "\n");
		struct line line;
		line_no++;
		enum rv_err e = read_line(at, end, &line, et);
		if (e == RV_OK && line.name[0])
			e = take(ctx, &line, line_no, et);
		if (e != RV_OK)
			return rv_fail_context(et, e, "%s:%d", source, line_no);
		at = *end ? end + 1 : end;
	}
	return RV_OK;
}

struct settings {
	const struct vocabulary *known;
	void *opts;
	int first_line[RV_OPTIONS_MAX];
};

static enum rv_err take_setting(void *ctx, const struct line *line, int line_no, struct rv_errtext *et) {
	struct settings *s = ctx;
	if (names_preset(s->known, line))
		return RV_OK; /* it was read before all other lines */
	return set_once(s->known->table, s->opts, line, line_no, s->first_line, et);
}

enum rv_err rv_options_parse_text(const struct rv_option *table, void *opts, const char *source, const char *text,
								  struct rv_errtext *et) {
	const struct vocabulary known = {table, NULL};
	struct settings s = {.known = &known, .opts = opts};
	return each_line(source, text, take_setting, &s, et);
}

enum { NAMED_PRESETS_MAX = 4 };

/* The presets that command line and file have named so far. */
struct named_presets {
	const struct rv_preset *of[NAMED_PRESETS_MAX];
	int n;
};

static enum rv_err name_preset(struct named_presets *named, const struct vocabulary *known, const char *name,
							   struct rv_errtext *et) {
	const struct rv_preset *preset;
	RV_TRY(rv_preset_find(known->presets, name, &preset, et));
	if (named->n == NAMED_PRESETS_MAX)
		return rv_fail(et, RV_E_INVALID, "preset %s: at most %d presets may be named", preset->name, NAMED_PRESETS_MAX);
	named->of[named->n++] = preset;
	return RV_OK;
}

struct preset_lines {
	const struct vocabulary *known;
	struct named_presets *named;
	void *opts;
};

static enum rv_err take_preset(void *ctx, const struct line *line, int line_no, struct rv_errtext *et) {
	struct preset_lines *p = ctx;
	(void)line_no;
	if (!names_preset(p->known, line))
		return RV_OK;
	RV_TRY(name_preset(p->named, p->known, line->value, et));
	const struct rv_preset *last = p->named->of[p->named->n - 1];
	for (int i = 0; i < p->named->n - 1; i++)
		RV_TRY(rv_presets_agree(p->named->of[i], last, et));
	return rv_options_parse_text(p->known->table, p->opts, last->name, last->text, et);
}

/* Applies the presets that the text names, then its other lines, wherever those lines are. `named`:
 * the presets of the command line. */
static enum rv_err parse_with_presets(const struct vocabulary *known, struct named_presets *named, void *opts,
									  const char *source, const char *text, struct rv_errtext *et) {
	struct preset_lines lines = {known, named, opts};
	struct settings s = {.known = known, .opts = opts};
	RV_TRY(each_line(source, text, take_preset, &lines, et));
	return each_line(source, text, take_setting, &s, et);
}

enum rv_err rv_options_read_file(const char *path, char **text, struct rv_errtext *et) {
	static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8, with which some editors begin every file */
	size_t n;
	enum rv_err e = rv_file_read(path, CONFIG_FILE_BYTES_MAX, (uint8_t **)text, &n, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "config file");
	if (strlen(*text) != n) {
		free(*text);
		return rv_fail(et, RV_E_INVALID, "%s: not a text file (holds a NUL byte)", path);
	}
	if (strncmp(*text, mark, sizeof mark - 1) == 0)
		memset(*text, ' ', sizeof mark - 1);
	return RV_OK;
}

static enum rv_err parse_file(const struct vocabulary *known, struct named_presets *named, void *opts, const char *path,
							  struct rv_errtext *et) {
	char *text;
	RV_TRY(rv_options_read_file(path, &text, et));
	enum rv_err e = parse_with_presets(known, named, opts, path, text, et);
	free(text);
	return e;
}

enum rv_err rv_options_parse_file(const struct rv_option *table, const struct rv_preset *presets, void *opts,
								  const char *path, struct rv_errtext *et) {
	const struct vocabulary known = {table, presets};
	struct named_presets named = {.n = 0};
	return parse_file(&known, &named, opts, path, et);
}

bool rv_options_wants(int argc, char **argv, const char *flag) {
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], flag) == 0)
			return true;
	}
	return false;
}

/* Options of a command line that are not in the table. */
enum { CONFIG = -1, PRESET = -2 };

/* One `--name...` of the command line, taken apart. */
struct argument {
	char name[NAME_BYTES_MAX];
	const char *value; /* NULL: none */
	int option;        /* index into the table; CONFIG, PRESET */
	int n_argv;        /* 1, or 2 when the value is the next argument */
};

static bool is_program_flag(const char *arg) {
	return strcmp(arg, "--help") == 0 || strcmp(arg, "--version") == 0 || strcmp(arg, "--check") == 0;
}

/* Returns the index of the bool that a `no-` name negates; -1 if it is none. */
static int find_negated(const struct rv_option *table, const char *name) {
	if (strncmp(name, "no-", 3) != 0)
		return -1;
	int i = rv_options_find(table, "--", name + 3, NULL, NULL);
	return i >= 0 && table[i].type == RV_OPT_BOOL ? i : -1;
}

static enum rv_err take_value(struct argument *a, int left, char **argv, const char *wanted, struct rv_errtext *et) {
	if (a->value)
		return RV_OK;
	if (left < 2)
		return rv_fail(et, RV_E_INVALID, "--%s: needs a value: %s", a->name, wanted);
	if (strncmp(argv[1], "--", 2) == 0)
		return rv_fail(et, RV_E_INVALID, "--%s: needs a value: %s (write --%s=%.60s if that is the value)", a->name,
					   wanted, a->name, argv[1]);
	a->value = argv[1];
	a->n_argv = 2;
	return RV_OK;
}

/* Parses argv[0] (which starts with `--`); `left` counts it and the arguments after it. */
static enum rv_err read_argument(const struct vocabulary *known, int left, char **argv, struct argument *a,
								 struct rv_errtext *et) {
	const struct rv_option *table = known->table;
	const char *text = argv[0] + 2;
	size_t n = strcspn(text, "=");
	if (n >= sizeof a->name)
		return rv_fail(et, RV_E_INVALID, "%.60s...: unknown option; --help lists all of them", argv[0]);
	memcpy(a->name, text, n);
	a->name[n] = '\0';
	a->value = text[n] ? text + n + 1 : NULL;
	a->n_argv = 1;
	a->option = CONFIG;
	if (strcmp(a->name, "config") == 0)
		return take_value(a, left, argv, "the path of a config file", et);
	a->option = PRESET;
	if (known->presets && strcmp(a->name, "preset") == 0)
		return take_value(a, left, argv, "the name of a preset", et);
	int negated = a->value ? -1 : find_negated(table, a->name);
	if (negated >= 0) {
		a->option = negated;
		a->value = "no";
		return RV_OK;
	}
	static const char *const others[] = {"config", "check", "help", "version", "preset", NULL};
	static const char *const others_without_presets[] = {"config", "check", "help", "version", NULL};
	a->option = rv_options_find(table, "--", a->name, known->presets ? others : others_without_presets, et);
	if (a->option < 0)
		return RV_E_INVALID;
	const struct rv_option *o = &table[a->option];
	if (o->type != RV_OPT_BOOL)
		return take_value(a, left, argv, rv_option_type_text(o), et);
	if (!a->value)
		a->value = "yes";
	return RV_OK;
}

/* The passes over argv, each of which overrides the one before. */
enum pass { PASS_PRESET, PASS_CONFIG, PASS_REST, N_PASSES };

static enum pass pass_of(const struct argument *a) {
	return a->option == PRESET ? PASS_PRESET : a->option == CONFIG ? PASS_CONFIG : PASS_REST;
}

/* The results of the passes: positional arguments, and presets. */
struct collected {
	struct named_presets presets;
	const char **args;
	int cap, n;
};

static enum rv_err take_positional(struct collected *c, const char *arg, struct rv_errtext *et) {
	if (c->n >= c->cap)
		return rv_fail(et, RV_E_INVALID, "%.100s: unexpected argument (at most %d)", arg, c->cap);
	c->args[c->n++] = arg;
	return RV_OK;
}

static bool is_option_like(const char *arg) {
	return arg[0] == '-' && arg[1] != '\0';
}

static enum rv_err apply_argument(const struct vocabulary *known, void *opts, enum pass pass, const struct argument *a,
								  struct collected *read, struct rv_errtext *et) {
	if (pass_of(a) != pass)
		return RV_OK;
	if (pass == PASS_CONFIG)
		return parse_file(known, &read->presets, opts, a->value, et);
	if (pass == PASS_PRESET) {
		RV_TRY(name_preset(&read->presets, known, a->value, et));
		const struct rv_preset *last = read->presets.of[read->presets.n - 1];
		return rv_options_parse_text(known->table, opts, last->name, last->text, et);
	}
	enum rv_err e = rv_option_value_parse(&known->table[a->option], opts, a->value, et);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "command line");
}

static enum rv_err run_pass(const struct vocabulary *known, void *opts, int argc, char **argv, enum pass pass,
							struct collected *read, struct rv_errtext *et) {
	int i = 1;
	while (i < argc && strcmp(argv[i], "--") != 0) {
		struct argument a = {.n_argv = 1};
		if (is_program_flag(argv[i])) {
			i++;
			continue;
		}
		if (strncmp(argv[i], "--", 2) == 0) {
			RV_TRY(read_argument(known, argc - i, argv + i, &a, et));
			RV_TRY(apply_argument(known, opts, pass, &a, read, et));
		} else if (is_option_like(argv[i])) {
			return rv_fail(et, RV_E_INVALID, "%.100s: options are written --name; --help lists all of them", argv[i]);
		} else if (pass == PASS_REST) {
			RV_TRY(take_positional(read, argv[i], et));
		}
		i += a.n_argv;
	}
	for (i++; i < argc && pass == PASS_REST; i++)
		RV_TRY(take_positional(read, argv[i], et));
	return RV_OK;
}

enum rv_err rv_options_parse_argv(const struct rv_option *table, const struct rv_preset *presets, void *opts, int argc,
								  char **argv, const char **args, int args_cap, int *n_args, struct rv_errtext *et) {
	const struct vocabulary known = {table, presets};
	struct collected read = {.args = args, .cap = args_cap};
	enum rv_err e = RV_OK;
	for (enum pass pass = PASS_PRESET; e == RV_OK && pass < N_PASSES; pass++)
		e = run_pass(&known, opts, argc, argv, pass, &read, et);
	if (n_args)
		*n_args = read.n;
	return e;
}
