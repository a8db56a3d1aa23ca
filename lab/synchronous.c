/* synchronous.c: see synchronous.h. */
#include "lab/synchronous.h"

#include "base/clock.h"
#include "lab/averaging.h"
#include "worker/train/adopt.h"

#include <stdlib.h>
#include <string.h>

/* A worker that missed the round: as a real one that comes late (run.late). `old`: theta before the outer step. */
static void adopt_late(struct lab_run *r, int i, const float *old) {
	if (strcmp(r->cfg.run.late, "keep") == 0) {
		replica_shift_theta(r->replicas[i], old, r->global.theta);
		r->kept_tokens[i] += r->sums[i].tokens;
	} else {
		replica_set_theta(r->replicas[i], r->global.theta);
		r->kept_tokens[i] = 0;
	}
}

/* The outer step of round r->global.round, with r->reduced. */
static enum rv_err step_and_adopt(struct lab_run *r, const bool *takes_part, struct rv_errtext *et) {
	size_t bytes = r->global.cfg.n * sizeof(float);
	uint64_t round = r->global.round;
	float *old = r->cfg.drop_sync > 0 ? malloc(bytes) : NULL;
	if (r->cfg.drop_sync > 0 && !old)
		return rv_fail(et, RV_E_NOMEM, "no memory to keep %zu parameters over an outer step", r->global.cfg.n);
	if (old)
		memcpy(old, r->global.theta, bytes);
	struct rv_hash digest = global_digest(&r->global, round, r->reduced);
	enum rv_err e = global_apply(&r->global, r->reduced, &digest, et);
	for (int i = 0; e == RV_OK && i < r->n_replicas; i++) {
		if (takes_part[i]) {
			adopt_round(r->replicas[i], &r->global, round, (float)r->cfg.run.mix);
			r->kept_tokens[i] = 0;
		} else {
			adopt_late(r, i, old);
		}
	}
	free(old);
	return e;
}

/* What the round before has left under way is applied where its overlap ends. */
static enum rv_err end_overlap(struct lab_run *r, struct rv_errtext *et) {
	bool all[LAB_MAX_WORKERS];
	uint64_t begin = r->rounds_done * (uint64_t)r->cfg.run.steps_per_round;
	if (r->global.round == r->rounds_done)
		return RV_OK;
	RV_TRY(averaging_train_to(r, begin + (uint64_t)r->cfg.run.overlap_steps, et));
	for (int i = 0; i < r->n_replicas; i++)
		all[i] = true; /* overlap and drop_sync exclude each other */
	return step_and_adopt(r, all, et);
}

enum rv_err synchronous_round(struct lab_run *r, struct lab_round *out, struct rv_errtext *et) {
	bool takes_part[LAB_MAX_WORKERS];
	RV_TRY(end_overlap(r, et));
	RV_TRY(averaging_train_to(r, (r->rounds_done + 1) * (uint64_t)r->cfg.run.steps_per_round, et));
	RV_TRY(averaging_encode(r, out, et));
	int64_t started_us = rv_clock_monotonic_us();
	out->participants = averaging_participants(&r->cfg, r->rounds_done, takes_part);
	RV_TRY(averaging_reduce(r, takes_part, et));
	out->bytes = averaging_bytes(r, out->participants);
	bool last = r->rounds_done + 1 == (uint64_t)r->cfg.run.rounds;
	if (r->cfg.run.overlap_steps == 0 || last)
		RV_TRY(step_and_adopt(r, takes_part, et));
	out->reduce_us = rv_clock_monotonic_us() - started_us;
	return RV_OK;
}
