/* snoo.c: SNOO, step-K Nesterov outer optimizer (arXiv 2510.15830): Lookahead whose slow step has
 * momentum, that is DiLoCo of one worker. With mu = outer-momentum and alpha = outer-lr, every H
 * steps:
 *     d = theta - theta_fast;  b <- mu b + d;  theta <- theta - alpha (d + mu b) */
#include "lab/methods/methods.h"
#include "lab/methods/preset.h"
#include "lab/methods/synchronous.h"

static enum rv_err check(const struct run_config *c, int workers, struct rv_errtext *et) {
	RV_TRY(preset_check_alone("snoo", workers, et));
	return preset_check_outer("snoo", c, OUTER_nesterov, et);
}

const struct lab_method lab_method_snoo = {.name = "snoo", .check = check, SYNCHRONOUS_METHOD};
