/* of_replica.c: the participant's operations on a real replica, and the text for an unusable
 * one. */
#include "train/participant/participant.h"

#include <math.h>

/* ---- theta_local that is not finite, or too far away to be averaged ---- */

struct spoiled {
	size_t n, first; /* number of parameters that cannot be sent; index of the first */
	int n_tensors;
	const struct model_tensor *tensor; /* the tensor of the first */
};

/* Returns true if this parameter cannot be sent; NaN included. */
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

static void explain(struct replica *r, const struct run_config *run, const float *reference, struct rv_errtext *et) {
	const float *local = replica_theta(r);
	const struct spoiled s = find_spoiled(&replica_model(r)->layout, reference, local);
	if (s.n == 0)
		return;
	(void)rv_fail(et, RV_E_RANGE,
				  "%zu parameters in %d tensors are unusable, the first is %s[%zu] = %g (%g when the round began). If "
				  "every worker logs this, lr = %g is too high or clip is missing; if only this one does, its "
				  "processor, GPU or memory makes mistakes (heat, overclocking)",
				  s.n, s.n_tensors, s.tensor->name, s.first - s.tensor->offset, (double)local[s.first],
				  (double)reference[s.first], run->lr);
}

/* ---- the table ---- */

static enum rv_err step(struct replica *r, struct step_stats *out, struct rv_errtext *et) {
	return replica_step_over(r, NULL, 0, out, et);
}

const struct participant_ops participant_replica = {.theta = replica_theta,
													.set_part = replica_set_part,
													.get_part = replica_get_part,
													.shift = replica_shift_part,
													.lay_by = replica_lay_by,
													.laid_by = replica_laid_by,
													.set_anchor = replica_set_anchor,
													.set_step = replica_set_global_step,
													.step = step,
													.read = replica_read,
													.next = replica_next,
													.keep = replica_keep,
													.heal = replica_heal,
													.settle = replica_settle,
													.explain = explain,
													.encode = outer_device_encode,
													.apply = outer_device_apply,
													.unpin = outer_device_unpin};
