/* eager.c: eager updates (Kale et al., arXiv 2502.12996; outer/eager.h): the all-reduce of a round
 * hides behind all inner steps of the next one, and workers go on from their own share of the outer
 * step that is under way: --eager-share, 1 / workers if it is 0. Real workers do it with
 * updates = eager. */
#include "lab/methods/methods.h"
#include "lab/methods/preset.h"
#include "lab/methods/synchronous.h"

static void configure(struct lab_config *c) {
	preset_updates(c, UPDATES_EAGER);
	if (c->run.eager_share == 0)
		c->run.eager_share = 1.0 / c->workers;
}

static enum rv_err check(const struct run_config *c, int workers, struct rv_errtext *et) {
	(void)workers;
	return preset_check_updates("eager", c, UPDATES_EAGER, et);
}

const struct lab_method lab_method_eager = {
	.name = "eager", .configure = configure, .check = check, SYNCHRONOUS_METHOD};
