/* spoiled.c: theta_local is of no use to a round: not finite, or too far away to be averaged. What is said of
 * it, and the way back: theta takes its place. */
#include "worker/trainer/internal.h"

#include <inttypes.h>
#include <math.h>

struct spoiled {
	size_t n, first; /* parameters that cannot be given */
	int n_tensors;
	const struct model_tensor *tensor; /* of the first */
};

/* The opposite of what can be sent, NaN included. */
static bool is_spoiled(float theta, float local) {
	return !(fabsf(theta - local) <= GLOBAL_SENT_MAX);
}

static struct spoiled find_spoiled(const struct model_layout *l, const float *theta, const float *local) {
	struct spoiled s = {0};
	for (int t = 0; t < l->n_tensors; t++) {
		const struct model_tensor *tensor = &l->tensors[t];
		size_t before = s.n;
		for (size_t i = tensor->offset; i < tensor->offset + tensor->elems; i++) {
			if (!is_spoiled(theta[i], local[i]))
				continue;
			if (s.n++ > 0)
				continue;
			s.first = i;
			s.tensor = tensor;
		}
		s.n_tensors += s.n > before;
	}
	return s;
}

/* Keeps the text where no parameter is to blame. */
static void describe(struct trainer *t, struct rv_errtext *et) {
	const struct global_state from = eager_view(&t->eager, &t->global);
	const float *theta = from.theta, *local = replica_theta(t->replica);
	const struct spoiled s = find_spoiled(&replica_model(t->replica)->layout, theta, local);
	if (s.n == 0)
		return;
	(void)rv_fail(
		et, RV_E_RANGE,
		"%zu parameters in %d tensors are of no use, the first is %s[%zu] = %g (%g when the round began). Where "
		"every worker says so, lr = %g is too high or clip is missing; where this one alone does, its "
		"processor, GPU or memory makes mistakes (heat, overclocking)",
		s.n, s.n_tensors, s.tensor->name, s.first - s.tensor->offset, (double)local[s.first], (double)theta[s.first],
		t->run.lr);
}

void trainer_spoiled(struct trainer *t, struct rv_errtext *et) {
	trainer_settle(t);
	describe(t, et);
	trainer_start_over(t);
	replica_heal(t->replica);
	trainer_begin_round(t, t->global.round, TRAINER_DISCARD);
}
