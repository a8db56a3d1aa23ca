/* run_config_idle.h: options of a run that have no effect because of others; they are reported, so
 * that nobody waits for an effect. */
#ifndef RV_BASE_RUN_CONFIG_IDLE_H
#define RV_BASE_RUN_CONFIG_IDLE_H

#include "base/run_config.h"

/* Memory for the settings that an option belongs to. */
struct idle_text {
	char text[384];
};
/* Returns NULL if option `name` has an effect in this run, or else the settings it belongs to
 * (perhaps in *room): "outer = adam or yogi". By the facts of the registries
 * (base/registries.h). */
const char *run_config_idle(const struct run_config *c, const char *name, struct idle_text *room);

/* Returns the same for any program's option; ctx is the caller's. */
typedef const char *rv_idle_of(const void *ctx, const char *name, struct idle_text *room);
/* Returns how many options have a value that is not the default, and no effect; writes them to
 * `what`, with the settings that they belong to. */
int rv_options_idle(const struct rv_option *table, const void *opts, const void *defaults, rv_idle_of *idle,
					const void *ctx, struct rv_errtext *what);
/* Returns the same for a run's options: to be called before run_config_resolve, which chooses
 * values. */
int run_config_idle_text(const struct run_config *c, struct rv_errtext *what);

#endif
