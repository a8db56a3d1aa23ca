/* fedprox.c: FedProx (Li et al., arXiv 1812.06127, algorithm 2): FedAvg whose inner loss has a
 * proximal term, so that a worker stays near the theta that it started the round from:
 *     h(theta_i) = f(theta_i) + prox_mu / 2 |theta_i - theta|^2
 * The replica computes the term (replica_set_anchor). Real workers do it with outer = average and
 * prox-mu. */
#include "lab/methods/methods.h"
#include "lab/methods/synchronous.h"

static enum rv_err check(const struct run_config *c, int workers, struct rv_errtext *et) {
	(void)workers;
	if (c->prox_mu > 0)
		return RV_OK;
	return rv_fail(et, RV_E_INVALID,
				   "method fedprox with prox-mu = 0 is fedavg: give --prox-mu (the paper tries 0.001 to 1)");
}

const struct lab_method lab_method_fedprox = {
	.name = "fedprox", .prescribes_outer = true, .prescribed_outer = OUTER_average, .check = check, SYNCHRONOUS_METHOD};
