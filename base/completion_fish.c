/* completion_fish.c: for fish: one line an option. */
#include "base/completion_shells.h"

struct printing {
	const struct rv_program *program;
	const struct rv_command *command;
	FILE *out;
};

/* Prints a line's beginning: the program, and the command after which it holds. */
static void print_begin(const struct printing *p) {
	(void)fprintf(p->out, "complete -c %s", p->program->name);
	if (p->command->name)
		(void)fprintf(p->out, " -n '__fish_seen_subcommand_from %s'", p->command->name);
	else if (rv_completion_has_commands(p->program))
		(void)fputs(" -n __fish_use_subcommand", p->out);
}

static void print_about(const char *text, const char *before, FILE *out) {
	(void)fprintf(out, " -d '%s", before);
	rv_completion_print_sentence(text, "\\", "\\'", out);
	(void)fputs("'\n", out);
}

static void print_offer(void *ctx, const struct rv_offer *o) {
	const struct printing *p = ctx;
	print_begin(p);
	(void)fprintf(p->out, " -l %s", o->name);
	if (o->choices || o->presets) {
		(void)fputs(" -x -a '", p->out);
		rv_completion_print_choices(o, " ", p->out);
		(void)fputc('\'', p->out);
	} else if (o->takes_value) {
		(void)fputs(o->takes_file ? " -r -F" : " -x", p->out);
	}
	print_about(o->help, "", p->out);
	if (!o->is_bool)
		return;
	print_begin(p);
	(void)fprintf(p->out, " -l no-%s", o->name);
	print_about(o->help, "Not: ", p->out);
}

void rv_completion_fish(const struct rv_program *p, FILE *out) {
	(void)fprintf(out, "# fish completion for %s, made from its table of options\n", p->name);
	for (const struct rv_command *c = p->commands; c->run; c++) {
		if (c->name) {
			(void)fprintf(out, "complete -c %s -n __fish_use_subcommand -f -a %s", p->name, c->name);
			print_about(c->help, "", out);
		}
		struct printing with = {p, c, out};
		rv_completion_offers(c, print_offer, &with);
	}
}
