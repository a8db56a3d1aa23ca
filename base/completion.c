/* completion.c: what the printers for the shells share. See completion.h. */
#include "base/completion.h"

#include "base/completion_shells.h"
#include "base/option_value.h"

#include <string.h>

enum rv_err rv_completion_print(const struct rv_program *p, const char *shell, FILE *out, struct rv_errtext *et) {
	static const struct {
		const char *name;
		void (*print)(const struct rv_program *p, FILE *out);
	} shells[] = {{"bash", rv_completion_bash}, {"zsh", rv_completion_zsh}, {"fish", rv_completion_fish}};
	for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
		if (strcmp(shells[i].name, shell) == 0) {
			shells[i].print(p, out);
			return RV_OK;
		}
	}
	return rv_fail(et, RV_E_INVALID, "--completion %.60s: must be bash, zsh or fish", shell);
}

static struct rv_offer offer_of(const struct rv_option *o) {
	return (struct rv_offer){.name = o->name,
							 .help = o->help,
							 .choices = rv_option_has_choices(o) ? o->choices : NULL,
							 .takes_value = o->type != RV_OPT_BOOL,
							 .takes_file = o->type == RV_OPT_STRING || o->type == RV_OPT_LIST,
							 .is_bool = o->type == RV_OPT_BOOL};
}

void rv_completion_offers(const struct rv_command *c, void (*each)(void *ctx, const struct rv_offer *o), void *ctx) {
	static const struct rv_offer everywhere[] = {
		{.name = "config", .help = "Read options from a file first.", .takes_value = true, .takes_file = true},
		{.name = "check", .help = "Validate everything, start nothing."},
		{.name = "help", .help = "Print the options."},
		{.name = "version", .help = "Print the version."},
	};
	for (const struct rv_option *o = c->options; o && o->name; o++) {
		const struct rv_offer offer = offer_of(o);
		each(ctx, &offer);
	}
	if (c->presets) {
		const struct rv_offer preset = {
			.name = "preset", .help = "A named set of options.", .presets = c->presets, .takes_value = true};
		each(ctx, &preset);
	}
	for (size_t i = 0; i < sizeof everywhere / sizeof everywhere[0]; i++)
		each(ctx, &everywhere[i]);
}

bool rv_completion_has_commands(const struct rv_program *p) {
	for (const struct rv_command *c = p->commands; c->run; c++)
		if (c->name)
			return true;
	return false;
}

void rv_completion_print_choices(const struct rv_offer *o, const char *between, FILE *out) {
	for (const char *c = o->choices; c && *c; c++) {
		if (*c == '|')
			(void)fputs(between, out);
		else
			(void)fputc(*c, out);
	}
	for (const struct rv_preset *p = o->presets; p && p->name; p++)
		(void)fprintf(out, "%s%s", p == o->presets ? "" : between, p->name);
}

static bool ends_sentence(const char *at) {
	return at[0] == '.' && (at[1] == ' ' || at[1] == '\0' || at[1] == '\n');
}

void rv_completion_print_sentence(const char *text, const char *quoted, const char *apostrophe, FILE *out) {
	for (; *text && !ends_sentence(text); text++) {
		if (*text == '\'')
			(void)fputs(apostrophe, out);
		else if (*text == '\n')
			(void)fputc(' ', out);
		else
			(void)fprintf(out, "%s%c", strchr(quoted, *text) ? "\\" : "", *text);
	}
}

void rv_completion_print_function(const struct rv_program *p, FILE *out) {
	for (const char *c = p->name; *c; c++)
		(void)fputc(*c == '-' ? '_' : *c, out);
}
