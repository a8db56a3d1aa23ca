/* completion_zsh.c: for zsh: arguments of _arguments. */
#include "base/completion_shells.h"

#include <string.h>

/* Inside '...[...]' a bracket, a colon and a backslash stand behind a backslash. */
static void print_sentence(const char *text, FILE *out) {
	rv_completion_print_sentence(text, "[]:\\", "'\\''", out);
}

static void print_offer(void *ctx, const struct rv_offer *o) {
	FILE *out = ctx;
	(void)fprintf(out, "\t\t'--%s[", o->name);
	print_sentence(o->help, out);
	(void)fputc(']', out);
	if (o->choices || o->presets) {
		(void)fprintf(out, ":%s:(", o->name);
		rv_completion_print_choices(o, " ", out);
		(void)fputc(')', out);
	} else if (o->takes_value) {
		(void)fprintf(out, ":%s:%s", o->name, o->takes_file ? "_files" : " ");
	}
	(void)fputs("' \\\n", out);
	if (!o->is_bool)
		return;
	(void)fprintf(out, "\t\t'--no-%s[Not\\: ", o->name);
	print_sentence(o->help, out);
	(void)fputs("]' \\\n", out);
}

static void print_function(const struct rv_program *p, const struct rv_command *c, FILE *out) {
	(void)fputc('_', out);
	rv_completion_print_function(p, out);
	(void)fprintf(out, "-%s() {\n\t_arguments \\\n", c->name ? c->name : "");
	rv_completion_offers(c, print_offer, out);
	(void)fputs("\t\t'*:file:_files'\n}\n\n", out);
}

static void print_chooser(const struct rv_program *p, FILE *out) {
	(void)fputs("\tlocal -a commands=(\n", out);
	for (const struct rv_command *c = p->commands; c->run; c++) {
		if (!c->name)
			continue;
		(void)fprintf(out, "\t\t'%s:", c->name);
		print_sentence(c->help, out);
		(void)fputs("'\n", out);
	}
	(void)fputs("\t)\n\tif ((CURRENT == 2)); then\n\t\t_describe command commands\n\telif ((${+functions[_", out);
	rv_completion_print_function(p, out);
	(void)fputs("-$words[2]]})) && [[ -n $words[2] ]]; then\n\t\tlocal name=$words[2]\n\t\tshift "
				"words\n\t\t((CURRENT--))\n\t\t_",
				out);
	rv_completion_print_function(p, out);
	(void)fputs("-$name\n\t\treturn\n\tfi\n", out);
}

static bool has_command_without_name(const struct rv_program *p) {
	for (const struct rv_command *c = p->commands; c->run; c++)
		if (!c->name)
			return true;
	return false;
}

void rv_completion_zsh(const struct rv_program *p, FILE *out) {
	(void)fprintf(out, "#compdef %s\n# Made from the table of options of %s.\n\n", p->name, p->name);
	for (const struct rv_command *c = p->commands; c->run; c++)
		print_function(p, c, out);
	(void)fputc('_', out);
	rv_completion_print_function(p, out);
	(void)fputs("() {\n", out);
	if (rv_completion_has_commands(p))
		print_chooser(p, out);
	if (has_command_without_name(p)) {
		(void)fputs("\t_", out);
		rv_completion_print_function(p, out);
		(void)fputs("-\n", out);
	}
	(void)fputs("}\n\n_", out);
	rv_completion_print_function(p, out);
	(void)fputs(" \"$@\"\n", out);
}
