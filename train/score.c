/* score.c: see score.h. */
#include "train/score.h"

/* Sets *out to the mean loss of the replica's weights. */
static enum rv_err loss_of(struct replica *r, const struct score_text *text, float *gradient, double *out,
						   struct rv_errtext *et) {
	double sum = 0;
	replica_read(r, text->reading, text->next);
	for (int i = 0; i < text->steps; i++) {
		struct step_stats stats;
		RV_TRY(replica_gradient(r, gradient, &stats, et));
		sum += (double)stats.loss;
	}
	*out = sum / text->steps;
	return RV_OK;
}

enum rv_err score_contribution(struct replica *r, const float *theta, const float *delta, float share,
							   const struct score_text *text, float *scratch, struct score *out,
							   struct rv_errtext *et) {
	const size_t n = replica_n_params(r);
	float *moved = scratch, *gradient = scratch + n;
	replica_set_theta(r, theta);
	RV_TRY(loss_of(r, text, gradient, &out->before, et));
	for (size_t i = 0; i < n; i++)
		moved[i] = theta[i] - share * delta[i];
	replica_set_theta(r, moved);
	return loss_of(r, text, gradient, &out->after, et);
}
