/* idle.h: options without an effect in a method or a run of the lab: they are reported, and do not
 * distinguish cells of a sweep. */
#ifndef RV_LAB_METHOD_IDLE_H
#define RV_LAB_METHOD_IDLE_H

#include "base/run_config_idle.h"
#include "lab/options/train_options.h"

/* Returns what option `name` belongs to if the method (NULL: none that is known) ignores it,
 * whatever its value; NULL if it has an effect. */
const char *method_idle(const struct lab_method *m, const char *name);
/* Returns the general default of option `name` if `value` is what the method sets in its place;
 * else NULL. */
const char *method_settles(const struct lab_method *m, int workers, const char *name, const char *value);

/* The options of a run, for rv_options_idle. */
struct train_idle {
	const struct train_options *opts;
	struct run_config run; /* as the method has configured it */
};
void train_idle_init(struct train_idle *t, const struct train_options *o);
/* Returns the same as method_idle, also for effects of other values: with --outer average, outer-lr
 * has none. ctx: a struct train_idle. */
const char *train_idle(const void *ctx, const char *name, struct idle_text *room);
/* Returns how many options are chosen and have no effect; writes them to `what`. The options must
 * have been checked. */
int train_idle_text(const struct train_options *o, struct rv_errtext *what);

#endif
