/* idle.c: see idle.h. */
#include "lab/options/idle.h"
#include "lab/methods/methods.h"
#include "lab/methods/preset.h"

#include "base/option_value.h"
#include "base/run_config_idle.h"

#include <string.h>

const char *method_idle(const struct lab_method *m, const char *name) {
	for (int i = 0; m && i < METHOD_MAX_IDLE && m->idle[i]; i++)
		if (rv_name_is_one_of(name, m->idle[i]->names))
			return m->idle[i]->belongs;
	return NULL;
}

const char *method_settles(const struct lab_method *m, int workers, const char *name, const char *value) {
	struct lab_config c = {.method = m, .workers = workers};
	struct run_config usual;
	char settled[RV_OPTION_TEXT_BYTES], otherwise[RV_OPTION_TEXT_BYTES];
	if (!m)
		return NULL;
	run_config_defaults(&c.run);
	usual = c.run;
	method_configure(&c);
	for (const struct rv_option *o = run_config_options; o->name; o++) {
		if (strcmp(o->name, name) != 0)
			continue;
		rv_option_value_print(o, &c.run, settled);
		rv_option_value_print(o, &usual, otherwise); /* o->fallback may be written differently: true for yes */
		return strcmp(settled, value) == 0 && strcmp(otherwise, value) != 0 ? o->fallback : NULL;
	}
	return NULL;
}

void train_idle_init(struct train_idle *t, const struct train_options *o) {
	t->opts = o;
	t->run = train_options_resolve(o).run;
}

const char *train_idle(const void *ctx, const char *name, struct idle_text *room) {
	const struct train_idle *t = ctx;
	const bool trims = merge_least[t->run.merge] > 1; /* it needs a number of workers */
	const bool quorum = (strcmp(name, "min-workers") == 0 && !trims) || strcmp(name, "grace-ms") == 0;
	const bool on_time = t->opts->drop_sync <= 0 && !t->opts->speeds[0] && !t->opts->lines[0];
	const char *belongs = method_idle(lab_methods[t->opts->method], name);
	if (belongs)
		return belongs;
	if (on_time && strcmp(name, "late") == 0)
		return "--drop-sync, --speeds and --lines, which make workers miss a round";
	if (t->run.mean_feedback <= 0 && strcmp(name, "move-owners") == 0)
		return "--mean-feedback";
	if (!t->opts->lines[0] && strcmp(name, "slow-members") == 0)
		return "--lines";
	if (!t->opts->speeds[0] && (quorum || strcmp(name, "step-ms") == 0))
		return "--speeds";
	return run_config_idle(&t->run, name, room);
}

int train_idle_text(const struct train_options *o, struct rv_errtext *what) {
	struct rv_option table[TRAIN_OPTIONS_MAX];
	struct train_options usual = {.run = {.seed = 0}};
	struct train_idle t;
	train_options_table(table, TRAIN_OPTIONS_MAX);
	rv_options_defaults(table, &usual);
	train_idle_init(&t, o);
	return rv_options_idle(table, o, &usual, train_idle, &t, what);
}
