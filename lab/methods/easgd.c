/* easgd.c: elastic averaging SGD, synchronous (Zhang, Choromanska, LeCun, arXiv 1412.6651,
 * equations 5 and 6), every H steps: with the centre c and rho = 1 - mix (mix is the share of
 * itself that a replica keeps),
 *     theta_i <- theta_i - rho (theta_i - c)        c <- c + rho sum_i (theta_i - c)
 * c is the run's theta, and sum_i (theta_i - c) is -k times the mean outer gradient: an outer sgd
 * of learning rate k rho. The paper keeps k rho below 1. */
#include "lab/methods/averaging.h"
#include "lab/methods/methods.h"

#include "base/clock.h"

#include <stdio.h>

static void configure(struct lab_config *c) {
	c->run.outer = OUTER_sgd;
	c->run.outer_lr = (1 - c->run.mix) * c->workers;
}

static enum rv_err check(const struct run_config *c, int workers, struct rv_errtext *et) {
	double elastic = (1 - c->mix) * workers;
	if (elastic <= 1)
		return RV_OK;
	return rv_fail(et, RV_E_RANGE, "easgd: (1 - mix) x workers = %g must be at most 1: mix = %g or more", elastic,
				   1 - 1 / (double)workers);
}

/* Both movements start from the same centre: the replicas move before it does. */
static enum rv_err easgd_round(struct lab_run *r, struct lab_round *out, struct rv_errtext *et) {
	bool all[LAB_MAX_WORKERS];
	RV_TRY(averaging_train_to(r, (r->rounds_done + 1) * (uint64_t)r->cfg.run.steps_per_round, et));
	RV_TRY(averaging_encode(r, out, et));
	int64_t started_us = rv_clock_monotonic_us();
	for (int i = 0; i < r->n_replicas; i++)
		all[i] = true;
	out->participants = r->n_replicas;
	RV_TRY(averaging_reduce(r, all, et));
	for (int i = 0; i < r->n_replicas; i++)
		(void)participant_adopt(&r->participants[i], &r->global, NULL, PARTICIPANT_ADOPT);
	RV_TRY(averaging_step(r, et));
	out->reduce_us = rv_clock_monotonic_us() - started_us;
	out->bytes = averaging_bytes(r, r->n_replicas);
	return RV_OK;
}

static const char *const of_outer_optimizers[] = {"outer", "outer-lr", NULL};
static const struct method_idle idle_outer = {of_outer_optimizers,
											  "other methods: easgd's centre moves by (1 - mix) x workers"};

const struct lab_method lab_method_easgd = {
	.name = "easgd",
	AVERAGING_METHOD,
	.idle = {&idle_outer},
	.configure = configure,
	.check = check,
	.round = easgd_round,
};
