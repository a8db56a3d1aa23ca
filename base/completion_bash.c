/* completion_bash.c: for bash, with or without the package bash-completion. */
#include "base/completion_shells.h"

#include <string.h>

struct printing {
	const struct rv_command *command;
	FILE *out;
};

static void print_name(void *ctx, const struct rv_offer *o) {
	const struct printing *p = ctx;
	(void)fprintf(p->out, " --%s", o->name);
	if (o->is_bool)
		(void)fprintf(p->out, " --no-%s", o->name);
}

/* Prints the case of an option that takes a value: behind it a value is offered, not an option. */
static void print_value(void *ctx, const struct rv_offer *o) {
	const struct printing *p = ctx;
	if (!o->takes_value)
		return;
	(void)fprintf(p->out, "\t%s/--%s) ", p->command->name ? p->command->name : "", o->name);
	if (o->choices || o->presets) {
		(void)fputs("words='", p->out);
		rv_completion_print_choices(o, " ", p->out);
		(void)fputs("' ;;\n", p->out);
	} else {
		(void)fputs(o->takes_file ? "files=yes ;;\n" : "return ;;\n", p->out);
	}
}

/* Prints how the word before the cursor tells the command. */
static void print_command_search(const struct rv_program *p, FILE *out) {
	const char *between = "";
	(void)fputs("\tfor ((i = 1; i < COMP_CWORD; i++)); do\n\t\tcase ${COMP_WORDS[i]} in\n\t\t", out);
	for (const struct rv_command *c = p->commands; c->run; c++) {
		if (c->name) {
			(void)fprintf(out, "%s%s", between, c->name);
			between = " | ";
		}
	}
	(void)fputs(")\n\t\t\tcommand=${COMP_WORDS[i]}\n\t\t\tbreak\n\t\t\t;;\n\t\tesac\n\tdone\n", out);
}

static void print_words(const struct rv_program *p, FILE *out) {
	(void)fputs("\tcase $command in\n", out);
	for (const struct rv_command *c = p->commands; c->run; c++) {
		struct printing with = {c, out};
		(void)fprintf(out, "\t%s) words='", c->name ? c->name : "''");
		rv_completion_offers(c, print_name, &with);
		(void)fputs("' ;;\n", out);
	}
	(void)fputs("\tesac\n", out);
	if (!rv_completion_has_commands(p))
		return;
	(void)fputs("\t[ -n \"$command\" ] || words+='", out);
	for (const struct rv_command *c = p->commands; c->run; c++)
		if (c->name)
			(void)fprintf(out, " %s", c->name);
	(void)fputs(" --help --version'\n", out);
}

void rv_completion_bash(const struct rv_program *p, FILE *out) {
	(void)fprintf(out, "# bash completion for %s, made from its table of options\n_", p->name);
	rv_completion_print_function(p, out);
	(void)fputs("() {\n"
				"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command= words= files= i\n"
				"\t[ \"$cur\" != = ] || cur=\n"
				"\t[ \"$prev\" != = ] || prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
				"\tCOMPREPLY=()\n",
				out);
	if (rv_completion_has_commands(p))
		print_command_search(p, out);
	(void)fputs("\tcase $command/$prev in\n", out);
	for (const struct rv_command *c = p->commands; c->run; c++) {
		struct printing with = {c, out};
		rv_completion_offers(c, print_value, &with);
	}
	(void)fputs("\t*) files=also ;;\n\tesac\n\tif [ \"$files\" = also ]; then\n", out);
	print_words(p, out);
	(void)fputs("\t\t[ \"${cur:0:1}\" != - ] || files=\n"
				"\tfi\n"
				"\t[ -z \"$words\" ] || mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
				"\t[ -z \"$files\" ] || [ ${#COMPREPLY[@]} -gt 0 ] ||\n"
				"\t\t{ compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); }\n"
				"}\ncomplete -F _",
				out);
	rv_completion_print_function(p, out);
	(void)fprintf(out, " %s\n", p->name);
}
