/* idle.c: see idle.h. */
#include "lab/options/idle.h"
#include "lab/methods/methods.h"

#include "base/option_value.h"
#include "base/run_config_idle.h"

#include <string.h>

static bool is_one_of(const char *name, const char *const *names) {
	for (; *names; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

static const char *idle_for(const struct lab_method *m, const char *name) {
	static const char *const outer_loop[] = {"outer",       "codec",     "mean-codec",  "outer-lr",    "outer-momentum",
											 "outer-beta2", "outer-eps", "outer-delay", "chunk-elems", "late",
											 "mix",         "updates",   "eager-share", "outer-clip",  "merge",
											 "trim-share",  NULL};
	static const char *const weights[] = {"weight-by-tokens", NULL}, *const feedback[] = {"error-feedback", NULL};
	static const char *const inner[] = {"beta1", "beta2", "eps", "clip", "muon-momentum", NULL};
	static const char *const fixed[] = {"outer", "outer-lr", NULL};
	const bool demo = m == &lab_method_demo, outer_gradients = m->averages && !m->codec;
	if (!outer_gradients && (is_one_of(name, outer_loop) || is_one_of(name, weights)))
		return "the outer loop, of --method diloco and its kind";
	if (!m->averages && is_one_of(name, feedback))
		return "the outer loop, of --method diloco and its kind, and to --method demo";
	if (demo && is_one_of(name, inner))
		return "an inner optimizer, and method demo has none";
	if (m == &lab_method_easgd && is_one_of(name, fixed))
		return "other methods: easgd's centre moves by (1 - mix) x workers";
	return NULL;
}

const char *method_idle(const char *method, const char *name) {
	const struct lab_method *m = lab_method_find(method);
	return m ? idle_for(m, name) : NULL;
}

const char *method_settles(const char *method, int workers, const char *name, const char *value) {
	struct lab_config c = {.method = lab_method_find(method), .workers = workers};
	struct run_config usual;
	char settled[RV_OPTION_TEXT_BYTES], otherwise[RV_OPTION_TEXT_BYTES];
	if (!c.method || !c.method->configure)
		return NULL;
	run_config_defaults(&c.run);
	usual = c.run;
	c.method->configure(&c);
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

const char *train_idle(const void *ctx, const char *name) {
	const struct train_idle *t = ctx;
	const bool trims = merge_facts[t->run.merge].least > 1; /* it asks for a number of workers */
	const bool quorum = (strcmp(name, "min-workers") == 0 && !trims) || strcmp(name, "grace-ms") == 0;
	const bool on_time = t->opts->drop_sync <= 0 && !t->opts->speeds[0];
	const char *belongs = method_idle(t->opts->method, name);
	if (belongs)
		return belongs;
	if (on_time && strcmp(name, "late") == 0)
		return "--drop-sync and --speeds, which make workers miss a round";
	if (!t->opts->speeds[0] && (quorum || strcmp(name, "step-ms") == 0))
		return "--speeds";
	return run_config_idle(&t->run, name);
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
