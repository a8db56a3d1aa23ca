/* completion_shells.h: one printer a shell, and what they share. Internal to completion.h. */
#ifndef RV_BASE_COMPLETION_SHELLS_H
#define RV_BASE_COMPLETION_SHELLS_H

#include "base/program.h"

#include <stdio.h>

void rv_completion_bash(const struct rv_program *p, FILE *out);
void rv_completion_zsh(const struct rv_program *p, FILE *out);
void rv_completion_fish(const struct rv_program *p, FILE *out);

/* An option of a command, or one that every command has. */
struct rv_offer {
	const char *name;                /* without the dashes */
	const char *help;                /* its first sentence is offered */
	const char *choices;             /* "a|b", or NULL */
	const struct rv_preset *presets; /* whose names are its choices, or NULL */
	bool takes_value;
	bool takes_file; /* any text: a path may be meant */
	bool is_bool;    /* --no-NAME is one, too */
};

/* Calls `each` for every option that the command takes: those of its table, --preset, and those of
 * every command. */
void rv_completion_offers(const struct rv_command *c, void (*each)(void *ctx, const struct rv_offer *o), void *ctx);
/* Returns true if the program has commands with names. */
bool rv_completion_has_commands(const struct rv_program *p);
/* Prints the choices of an option, with `between` between them; nothing if it has none. */
void rv_completion_print_choices(const struct rv_offer *o, const char *between, FILE *out);
/* Prints the first sentence, without its full stop, each byte of `quoted` behind a backslash and
 * each apostrophe as `apostrophe`. */
void rv_completion_print_sentence(const char *text, const char *quoted, const char *apostrophe, FILE *out);
/* Prints the program's name as a shell function may be called: rivulet_worker. */
void rv_completion_print_function(const struct rv_program *p, FILE *out);

#endif
