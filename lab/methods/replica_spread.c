/* replica_spread.c: sums over parameters in double, value by value, so that no vector but the mean
 * is ever held. */
#include "lab/methods/replica_spread.h"

#include <math.h>
#include <stdlib.h>

/* Returns the squared norm of theta - theta_local of replica i. */
static double squared_norm(struct lab_run *r, int i) {
	const float *theta = participant_reference(&r->participants[i], &r->global), *local = replica_theta(r->replicas[i]);
	double sum = 0;
	for (size_t k = 0; k < r->global.cfg.n; k++) {
		double d = (double)theta[k] - (double)local[k];
		sum += d * d;
	}
	return sum;
}

/* Returns the mean cosine over pairs of k vectors: (|sum of the unit vectors|^2 - k)
 * / (k (k - 1)). */
static double mean_cosine(struct lab_run *r, const double *norm) {
	const float *theta[LAB_MAX_WORKERS], *local[LAB_MAX_WORKERS];
	int k = r->n_replicas;
	double sum = 0;
	for (int i = 0; i < k; i++) {
		theta[i] = participant_reference(&r->participants[i], &r->global);
		local[i] = replica_theta(r->replicas[i]);
	}
	for (size_t at = 0; at < r->global.cfg.n; at++) {
		double unit = 0;
		for (int i = 0; i < k; i++)
			unit += ((double)theta[i][at] - (double)local[i][at]) / norm[i];
		sum += unit * unit;
	}
	return (sum - k) / ((double)k * (k - 1));
}

static void measure_deltas(struct lab_run *r, struct lab_round *out) {
	double norm[LAB_MAX_WORKERS];
	bool all_moved = true;
	for (int i = 0; i < r->n_replicas; i++) {
		norm[i] = sqrt(squared_norm(r, i));
		out->delta_norm += norm[i] / r->n_replicas;
		all_moved = all_moved && norm[i] > 0;
	}
	if (r->n_replicas > 1 && all_moved)
		out->delta_cosine = mean_cosine(r, norm);
}

static enum rv_err eval_mean(struct lab_run *r, struct rv_errtext *et) {
	size_t n = r->global.cfg.n;
	float *mean = malloc(n * sizeof *mean);
	if (!mean)
		return rv_fail(et, RV_E_NOMEM, "no memory for the mean of the replicas' %zu parameters", n);
	for (size_t at = 0; at < n; at++)
		mean[at] = 0;
	for (int i = 0; i < r->n_replicas; i++) {
		const float *local = replica_theta(r->replicas[i]);
		for (size_t at = 0; at < n; at++)
			mean[at] += local[at] / (float)r->n_replicas;
	}
	enum rv_err e = replica_eval(r->replicas[0], mean, r->cfg.eval_tokens, &r->average_loss, et);
	free(mean);
	return e;
}

enum rv_err replica_spread_measure(struct lab_run *r, struct lab_round *out, struct rv_errtext *et) {
	measure_deltas(r, out);
	if (!r->cfg.eval_replicas || r->rounds_done + 1 < (uint64_t)r->cfg.run.rounds)
		return RV_OK;
	RV_TRY(replica_eval(r->replicas[0], NULL, r->cfg.eval_tokens, &r->replica_loss, et));
	return eval_mean(r, et);
}
