/* replay_without.c: see replay_without.h. */
#include "lab/worker_files/replay_without.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum rv_err replay_without_check(const struct run_config *run, struct rv_errtext *et) {
	if (run->mean_feedback > 0)
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "--without: with mean-feedback a mean depends on earlier ones, and cannot be made again without "
					   "a member");
	return RV_OK;
}

/* Copies the shared state; the caller releases it. */
static enum rv_err copy_state(const struct global_state *from, struct global_state *out, struct rv_errtext *et) {
	RV_TRY(global_init(out, &from->cfg, from->theta, et));
	for (int k = 0; k < global_states(&from->cfg); k++)
		memcpy(out->state[k], from->state[k], from->cfg.n * sizeof(float));
	out->round = from->round;
	out->chain = from->chain;
	return RV_OK;
}

/* Sets *loss to the held-out loss after an outer step with r->reduced. */
static enum rv_err loss_after(struct lab_run *r, double *loss, struct rv_errtext *et) {
	struct global_state g;
	const struct rv_hash digest = global_digest(&r->global, r->global.round, r->reduced);
	RV_TRY(copy_state(&r->global, &g, et));
	enum rv_err e = global_apply(&g, r->reduced, &digest, et);
	if (e == RV_OK)
		e = replica_eval(r->replicas[0], g.theta, 0, loss, et);
	global_release(&g);
	return e;
}

static enum rv_err loss_without(struct lab_run *r, const struct averaging_given *given, int place, double *loss,
								struct rv_errtext *et) {
	struct averaging_given others = {.n = 0};
	for (int i = 0; i < given->n; i++) {
		if (i == place)
			continue;
		others.vectors[others.n] = given->vectors[i];
		others.weights[others.n] = given->weights[i];
		others.forms[others.n++] = given->forms[i];
	}
	const struct merge_layout layout = {.n_rows = 1, .length = {others.n}};
	RV_TRY(averaging_reduce_given(r, &layout, &others, et));
	return loss_after(r, loss, et);
}

enum rv_err replay_without(struct lab_run *r, const struct averaging_given *given, int place,
						   struct replay_without *out, struct rv_errtext *et) {
	const size_t bytes = global_max_payload_bytes(&r->global.cfg);
	RV_ASSERT(place >= 0 && place < given->n && given->n > 1);
	RV_TRY(loss_after(r, &out->with, et));
	uint8_t *reduced = malloc(bytes);
	if (!reduced)
		return rv_fail(et, RV_E_NOMEM, "no memory for a mean");
	memcpy(reduced, r->reduced, bytes);
	const enum rv_err e = loss_without(r, given, place, &out->without, et);
	memcpy(r->reduced, reduced, bytes);
	free(reduced);
	return e;
}
