/* report_bounds.c: see report_bounds.h. */
#include "coordinator/service/report_bounds.h"

#include "base/capped.h"

#include <inttypes.h>
#include <string.h>

void report_bounds_tokens(const struct run_config *run, struct core_config *out) {
	uint64_t step = (uint64_t)run->batch * (uint64_t)run->grad_accum * (uint64_t)run->context;
	bool keeps = run->late == RUN_LATE_KEEP;
	out->round_tokens = rv_mul_capped(step, (uint64_t)run->steps_per_round);
	const bool rests = run->slow_members == SLOW_SKIP || run->slow_members == SLOW_PART;
	int64_t missed_steps = run_config_overlap(run) + (rests ? run->steps_per_round : 0);
	out->missed_tokens = keeps ? rv_mul_capped(step, (uint64_t)missed_steps) : 0;
}

enum rv_err report_bounds_check(const struct run_config *run, const struct report *rep, struct rv_errtext *et) {
	if (rep->round <= (uint64_t)run->rounds)
		return RV_OK;
	return rv_fail(et, RV_E_RANGE, "report: round = %" PRIu64 ": this run has %" PRId64 " rounds", rep->round,
				   run->rounds);
}

static void lower(uint64_t *count) {
	if (*count > REPORT_MOST_COUNT)
		*count = REPORT_MOST_COUNT;
}

/* Lowers a value; the decoder refuses NaN and infinities. */
static void lower_real(float *value, float most) {
	*value = *value < 0 ? 0 : *value < most ? *value : most;
}

void report_bounds_apply(struct report *rep) {
	lower_real(&rep->loss, REPORT_MOST_LOSS);
	lower_real(&rep->heldout_loss, REPORT_MOST_LOSS);
	lower_real(&rep->tokens_per_s, REPORT_MOST_TOKENS_PER_S);
	lower(&rep->tx_bytes);
	lower(&rep->rx_bytes);
	lower(&rep->compute_us);
	lower(&rep->reduce_us);
	lower(&rep->inner_step);
	lower(&rep->up_bytes_per_s);
	lower(&rep->down_bytes_per_s);
	lower(&rep->text_mirror_bytes);
	lower(&rep->text_member_bytes);
	lower(&rep->text_coordinator_bytes);
	lower(&rep->text_stall_us);
}
