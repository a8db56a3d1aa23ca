/* run_config_idle.h: options of a run that nothing looks at, because of others: they are said, so that nobody waits for
 * an effect.
 */
#ifndef RV_BASE_RUN_CONFIG_IDLE_H
#define RV_BASE_RUN_CONFIG_IDLE_H

#include "base/run_config.h"

/* Memory for what an option belongs to. */
struct idle_text {
	char text[384];
};
/* Returns what option `name` belongs to, as in "outer = adam or yogi", where this run makes no use of it (perhaps in
 * *room); NULL: it does. By the facts of the registries (base/registries.h). */
const char *run_config_idle(const struct run_config *c, const char *name, struct idle_text *room);

/* The same, of any program's options; ctx is the caller's. */
typedef const char *rv_idle_of(const void *ctx, const char *name, struct idle_text *room);
/* How many options have a value that is not the default, and no effect; `what` says which, and what they belong to. */
int rv_options_idle(const struct rv_option *table, const void *opts, const void *defaults, rv_idle_of *idle,
					const void *ctx, struct rv_errtext *what);
/* That, of a run: before run_config_resolve, which chooses values. */
int run_config_idle_text(const struct run_config *c, struct rv_errtext *what);

#endif
