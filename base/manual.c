/* manual.c: see manual.h. */
#include "base/manual.h"

#include "base/option_value.h"
#include "base/version.h"

#include <ctype.h>
#include <string.h>

static const struct rv_option no_options[] = {{.name = NULL}};

/* Prints n bytes so that they are text to troff: a hyphen is the one of a terminal, a backslash is
 * itself, and a line never begins with a control character. */
static void print_text(const char *text, size_t n, FILE *out) {
	for (size_t i = 0; i < n; i++) {
		if ((i == 0 || text[i - 1] == '\n') && (text[i] == '.' || text[i] == '\''))
			(void)fputs("\\&", out);
		if (text[i] == '\\')
			(void)fputs("\\e", out);
		else if (text[i] == '-')
			(void)fputs("\\-", out);
		else
			(void)fputc(text[i], out);
	}
}

static void print_line(const char *text, FILE *out) {
	print_text(text, strlen(text), out);
	(void)fputc('\n', out);
}

/* Prints an argument of a macro: in quotes, with those inside doubled. */
static void print_argument(const char *text, FILE *out) {
	(void)fputc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			(void)fputc('"', out);
		print_text(text, 1, out);
	}
	(void)fputc('"', out);
}

static void print_heading(const char *macro, const char *text, FILE *out) {
	(void)fprintf(out, "%s ", macro);
	print_argument(text, out);
	(void)fputc('\n', out);
}

static bool is_example(const char *line) {
	return line[0] == ' ' || line[0] == '\t';
}

/* Prints lines for people: those that begin with a blank stay as they are, others flow; an empty
 * one ends a paragraph. */
static void print_paragraphs(const char *text, FILE *out) {
	bool as_is = false, ended = false;
	for (const char *line = text; *line;) {
		size_t n = strcspn(line, "\n");
		if (n > 0 && is_example(line) != as_is) {
			as_is = !as_is;
			(void)fputs(line == text ? ".nf\n" : as_is ? ".PP\n.nf\n" : ".fi\n.PP\n", out);
		} else if (n > 0 && ended) {
			(void)fputs(as_is ? "\n" : ".PP\n", out);
		}
		ended = n == 0;
		if (n > 0) {
			print_text(line, n, out);
			(void)fputc('\n', out);
		}
		line += n + (line[n] == '\n');
	}
	if (as_is)
		(void)fputs(".fi\n", out);
}

/* ---- options ---- */

static void print_option(const struct rv_option *o, FILE *out) {
	char facts[1024];
	const char *value = rv_option_placeholder(o);
	(void)fputs(".TP\n\\fB\\-\\-", out);
	(void)fputs(o->type == RV_OPT_BOOL ? "[no\\-]" : "", out);
	print_text(o->name, strlen(o->name), out);
	(void)fputs("\\fR", out);
	if (value[0]) {
		(void)fputs(" \\fI", out);
		print_text(value + 1, strlen(value + 1), out);
		(void)fputs("\\fR", out);
	}
	(void)fputc('\n', out);
	print_line(o->help, out);
	rv_option_facts_text(o, facts, sizeof facts);
	print_line(facts, out);
}

static void print_options(const struct rv_option *table, FILE *out) {
	for (const struct rv_option *o = table; o->name; o++) {
		if (!rv_option_begins_group(table, o))
			continue;
		(void)fputs(".PP\n.I ", out);
		print_argument(rv_option_group(o), out);
		(void)fputc('\n', out);
		for (const struct rv_option *p = o; p->name; p++)
			if (strcmp(rv_option_group(p), rv_option_group(o)) == 0)
				print_option(p, out);
	}
}

static void print_presets(const struct rv_preset *presets, FILE *out) {
	(void)fputs(
		".PP\n.I Presets\n.TP\n\\fB\\-\\-preset\\fR \\fINAME\\fR\n"
		"A named set of options, read before \\fB\\-\\-config\\fR; may be given several times. In its file: lines\n"
		"\\fBpreset = NAME\\fR.\n",
		out);
	for (const struct rv_preset *p = presets; p->name; p++) {
		(void)fputs(".RS\n.TP\n\\fB", out);
		print_text(p->name, strlen(p->name), out);
		(void)fputs("\\fR\n", out);
		print_line(p->help, out);
		(void)fputs(".RE\n", out);
	}
}

/* ---- commands ---- */

static void print_usage(const struct rv_program *p, const struct rv_command *c, FILE *out) {
	(void)fputs("\\fB", out);
	print_text(p->name, strlen(p->name), out);
	if (c->name) {
		(void)fputc(' ', out);
		print_text(c->name, strlen(c->name), out);
	}
	(void)fputs("\\fR [\\fIoptions\\fR]", out);
	if (c->synopsis[0]) {
		(void)fputs(" \\fI", out);
		print_text(c->synopsis, strlen(c->synopsis), out);
		(void)fputs("\\fR", out);
	}
	(void)fputc('\n', out);
}

static void print_command(const struct rv_program *p, const struct rv_command *c, FILE *out) {
	if (c->name)
		print_heading(".SS", c->name, out);
	else
		(void)fputs(".SH OPTIONS\n", out);
	print_usage(p, c, out);
	(void)fputs(".PP\n", out);
	print_line(c->help, out);
	if (c->details) {
		(void)fputs(".PP\n", out);
		print_paragraphs(c->details, out);
	}
	if (c->presets)
		print_presets(c->presets, out);
	print_options(c->options ? c->options : no_options, out);
}

static void print_commands(const struct rv_program *p, FILE *out) {
	bool headed = false;
	for (const struct rv_command *c = p->commands; c->run; c++)
		if (!c->name)
			print_command(p, c, out);
	for (const struct rv_command *c = p->commands; c->run; c++) {
		if (!c->name)
			continue;
		if (!headed)
			(void)fputs(".SH COMMANDS\n", out);
		headed = true;
		print_command(p, c, out);
	}
}

/* ---- the page ---- */

/* Prints the summary's first clause, without the program's name, as the index of manual pages shows
 * it. */
static void print_name(const struct rv_program *p, FILE *out) {
	const char *about = p->summary;
	size_t n = strlen(p->name);
	if (strncmp(about, p->name, n) == 0 && about[n] == ' ')
		about += n + 1;
	print_text(p->name, n, out);
	(void)fprintf(out, " \\- %c", tolower((unsigned char)about[0]));
	print_text(about + 1, strcspn(about + 1, ":.;\n"), out);
	(void)fputc('\n', out);
}

static void print_everywhere(FILE *out) {
	(void)fputs(".SH \"OPTIONS OF EVERY COMMAND\"\n"
				".TP\n\\fB\\-\\-config\\fR \\fIFILE\\fR\n"
				"Read options from \\fIFILE\\fR first: lines of \\fBname = value\\fR, \\fB#\\fR comments. The command\n"
				"line wins.\n"
				".TP\n\\fB\\-\\-check\\fR\n"
				"Validate everything, print the effective configuration, start nothing.\n"
				".TP\n\\fB\\-\\-help\\fR, \\fB\\-\\-version\\fR\n"
				"Print the options, or the version.\n",
				out);
}

static void print_exit_statuses(FILE *out) {
	static const struct {
		int status;
		const char *meaning;
	} all[] = {
		{RV_EXIT_OK, "It did what was asked."},
		{RV_EXIT_FAULT, "A fault; standard error has its text."},
		{RV_EXIT_USAGE, "The command line or a configuration is refused."},
		{RV_EXIT_DIVERGED, "The training has diverged."},
		{RV_EXIT_REFUSED, "Refused for good: a key or token is not accepted, and a restart would be refused again."},
		{RV_EXIT_CANCELLED, "Interrupted."},
	};
	(void)fputs(".SH \"EXIT STATUS\"\n", out);
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		(void)fprintf(out, ".TP\n\\fB%d\\fR\n", all[i].status);
		print_line(all[i].meaning, out);
	}
}

static void print_title(const struct rv_program *p, const char *date, FILE *out) {
	(void)fputs(".TH \"", out);
	for (const char *c = p->name; *c; c++)
		(void)fputc(toupper((unsigned char)*c), out);
	(void)fprintf(out, "\" 1 \"%s\" \"Rivulet %s\" \"User Commands\"\n", date, rv_version());
}

void rv_manual_print(const struct rv_program *p, const char *date, FILE *out) {
	print_title(p, date, out);
	(void)fputs(".SH NAME\n", out);
	print_name(p, out);
	(void)fputs(".SH SYNOPSIS\n", out);
	for (const struct rv_command *c = p->commands; c->run; c++) {
		print_usage(p, c, out);
		if (c[1].run)
			(void)fputs(".br\n", out);
	}
	(void)fputs(".SH DESCRIPTION\n", out);
	print_paragraphs(p->summary, out);
	print_commands(p, out);
	print_everywhere(out);
	print_exit_statuses(out);
	if (p->examples) {
		(void)fputs(".SH EXAMPLES\n", out);
		print_paragraphs(p->examples, out);
	}
}
