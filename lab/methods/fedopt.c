/* fedopt.c: FedOpt (Reddi et al., Adaptive Federated Optimization, arXiv 2003.00295, algorithm 2):
 * the mean outer gradient is the gradient of an adaptive optimizer (outer/optimizer.h has the
 * formulas): outer = adam (the default here), yogi or adagrad. Real workers do it with the same
 * outer. */
#include "lab/methods/methods.h"
#include "lab/methods/preset.h"
#include "lab/methods/synchronous.h"

#define LARGEST_LR 0.1 /* each parameter moves by about the learning rate in a round */

static bool is_adaptive(int outer) {
	return outer_facts[outer].facts & OUTER_ADAPTIVE;
}

static void configure(struct lab_config *c) {
	if (!is_adaptive(c->run.outer))
		c->run.outer = OUTER_adam;
}

static enum rv_err check(const struct run_config *c, int workers, struct rv_errtext *et) {
	(void)workers;
	if (!is_adaptive(c->outer))
		RV_TRY(method_check_outer(&lab_method_fedopt, c, OUTER_adam, et));
	if (c->outer_lr > LARGEST_LR)
		return rv_fail(et, RV_E_RANGE,
					   "method fedopt with outer-lr = %g: %s moves every parameter by about that much in a round; give "
					   "--outer-lr 0.001 to 0.01",
					   c->outer_lr, outer_facts[is_adaptive(c->outer) ? c->outer : OUTER_adam].name);
	return RV_OK;
}

const struct lab_method lab_method_fedopt = {
	.name = "fedopt", .configure = configure, .check = check, SYNCHRONOUS_METHOD};
