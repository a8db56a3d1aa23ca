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
	char range[160], text[2048];
	rv_option_range_text(o, range, sizeof range);
	const char *fallback = !o->fallback ? "required" : o->fallback[0] ? o->fallback : "none";
	int n = snprintf(text, sizeof text, "%s (%s%s", o->help, o->fallback ? "default: " : "", fallback);
	if (n > 0 && (size_t)n < sizeof text && rv_option_has_choices(o))
		n += snprintf(text + n, sizeof text - (size_t)n, "; one of %s", o->choices);
	if (n > 0 && (size_t)n < sizeof text)
		(void)snprintf(text + n, sizeof text - (size_t)n, "%s%s)", range[0] ? "; range: " : "", range);
	(void)fprintf(out, "    --%s%s%s\n", o->type == RV_OPT_BOOL ? "[no-]" : "", o->name, rv_option_placeholder(o));
	print_wrapped(text, out);
}

static bool same_group(const struct rv_option *a, const struct rv_option *b) {
	const char *ga = a->group ? a->group : "", *gb = b->group ? b->group : "";
	return strcmp(ga, gb) == 0;
}

static bool is_first_of_group(const struct rv_option *table, const struct rv_option *o) {
	for (const struct rv_option *p = table; p < o; p++) {
		if (same_group(p, o))
			return false;
	}
	return true;
}

void rv_options_help(const struct rv_option *table, FILE *out) {
	for (const struct rv_option *o = table; o->name; o++) {
		if (!is_first_of_group(table, o))
			continue;
		(void)fprintf(out, "\n%s:\n", o->group ? o->group : "Options");
		for (const struct rv_option *p = o; p->name; p++) {
			if (same_group(p, o))
				print_option(p, out);
		}
	}
}
