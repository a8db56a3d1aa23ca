/* lookahead.c: Lookahead (Zhang et al., arXiv 1907.08610, algorithm 1): one worker whose slow
 * weights follow the fast ones every H steps, which start again from them. With alpha = outer-lr:
 *     theta <- theta + alpha (theta_fast - theta)
 * This is an outer sgd; alpha = 0 freezes theta, alpha = 1 is plain training. If it is not given,
 * alpha is the paper's 0.5. */
#include "lab/methods/methods.h"
#include "lab/methods/synchronous.h"

#define USUAL_ALPHA 0.5

static void configure(struct lab_config *c) {
	if (c->run.outer_lr == RUN_CONFIG_AUTO)
		c->run.outer_lr = USUAL_ALPHA;
}

const struct lab_method lab_method_lookahead = {.name = "lookahead",
												.alone = true,
												.prescribes_outer = true,
												.prescribed_outer = OUTER_sgd,
												.configure = configure,
												SYNCHRONOUS_METHOD};
