/* eager.c: eager updates (Kale et al., arXiv 2502.12996; outer/eager.h): the all-reduce of a round
 * hides behind all inner steps of the next one, and workers go on from their own share of the outer
 * step that is under way: --eager-share, 1 / workers if it is 0. Real workers do it with
 * updates = eager. */
#include "lab/methods/methods.h"
#include "lab/methods/synchronous.h"

static void configure(struct lab_config *c) {
	if (c->run.eager_share == 0)
		c->run.eager_share = 1.0 / c->workers;
}

const struct lab_method lab_method_eager = {
	.name = "eager", .updates = UPDATES_EAGER, .configure = configure, SYNCHRONOUS_METHOD};
