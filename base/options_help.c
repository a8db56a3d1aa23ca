/* options_help.c: --help from the table: groups, wrapped sentences, defaults, ranges, choices. */
#include "base/option_value.h"
#include "base/options.h"

#include <string.h>

enum { HELP_WIDTH = 96, HELP_INDENT = 8 };

static void print_wrapped(const char *text, FILE *out) {
	int column = 0;
	while (*text) {
		size_t n = strcspn(text, " ");
		if (column == 0 || column + 1 + (int)n > HELP_WIDTH) {
			(void)fprintf(out, "%s%*s", column ? "\n" : "", HELP_INDENT, "");
			column = HELP_INDENT;
		} else {
			(void)fputc(' ', out);
			column++;
		}
		(void)fwrite(text, 1, n, out);
		column += (int)n;
		text += n;
		while (*text == ' ')
			text++;
	}
	(void)fputc('\n', out);
}

static void print_option(const struct rv_option *o, FILE *out) {
	char facts[1024], text[2048];
	rv_option_facts_text(o, facts, sizeof facts);
	(void)snprintf(text, sizeof text, "%s %s", o->help, facts);
	(void)fprintf(out, "    --%s%s%s\n", o->type == RV_OPT_BOOL ? "[no-]" : "", o->name, rv_option_placeholder(o));
	print_wrapped(text, out);
}

void rv_options_help(const struct rv_option *table, FILE *out) {
	for (const struct rv_option *o = table; o->name; o++) {
		if (!rv_option_begins_group(table, o))
			continue;
		(void)fprintf(out, "\n%s:\n", rv_option_group(o));
		for (const struct rv_option *p = o; p->name; p++) {
			if (strcmp(rv_option_group(p), rv_option_group(o)) == 0)
				print_option(p, out);
		}
	}
}
