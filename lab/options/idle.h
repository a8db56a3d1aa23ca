/* idle.h: options that a method, or a run of the lab, has no use for: they are said, and set no two cells of a
 * sweep apart.
 */
#ifndef RV_LAB_METHOD_IDLE_H
#define RV_LAB_METHOD_IDLE_H

#include "base/run_config_idle.h"
#include "lab/options/train_options.h"

/* What option `name` belongs to when the method has no use for it, whatever its value; NULL: it has, or there is no
 * such method. */
const char *method_idle(const char *method, const char *name);
/* The method gives this value to option `name` where nobody chose another: everybody's default, which it has done so
 * with. NULL: it does not, or the value is that default. */
const char *method_settles(const char *method, int workers, const char *name, const char *value);

/* The options of a run, as rv_options_idle asks about them. */
struct train_idle {
	const struct train_options *opts;
	struct run_config run; /* as the method has configured it */
};
void train_idle_init(struct train_idle *t, const struct train_options *o);
/* ctx: a struct train_idle. The same for what values have to do with it too: --outer average has no use for
 * outer-lr. */
const char *train_idle(const void *ctx, const char *name, struct idle_text *room);
/* How many options are chosen and have no effect; `what` says which. The options must have been checked. */
int train_idle_text(const struct train_options *o, struct rv_errtext *what);

#endif
