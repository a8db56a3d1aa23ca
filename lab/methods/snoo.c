/* snoo.c: SNOO, step-K Nesterov outer optimizer (arXiv 2510.15830): Lookahead whose slow step has
 * momentum, that is DiLoCo of one worker. With mu = outer-momentum and alpha = outer-lr, every H
 * steps:
 *     d = theta - theta_fast;  b <- mu b + d;  theta <- theta - alpha (d + mu b) */
#include "lab/methods/methods.h"
#include "lab/methods/synchronous.h"

const struct lab_method lab_method_snoo = {
	.name = "snoo", .alone = true, .prescribes_outer = true, .prescribed_outer = OUTER_nesterov, SYNCHRONOUS_METHOD};
