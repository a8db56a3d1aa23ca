/* run_audits.c: see run_audits.h. */
#include "base/run_audits.h"

#include <inttypes.h>
#include <stdio.h>

static enum rv_err check_chunks(const struct run_config *c, struct rv_errtext *et) {
	if (c->audit_chunks == 0 || run_config_is_audited(c))
		return RV_OK;
	return rv_fail(et, RV_E_INVALID,
				   "audit-chunks = %" PRId64 " with %s: a mean needs more than its contributions there, so nobody can "
				   "merge them again; %s, or audit-chunks = 0",
				   c->audit_chunks, c->mean_feedback > 0 ? "mean-feedback" : "merge = centered",
				   c->mean_feedback > 0 ? "mean-feedback = 0" : "another merge, as clipped");
}

static enum rv_err check_training(const struct run_config *c, bool publishes, struct rv_errtext *et) {
	if (c->audit_training == 0 || publishes || run_config_is_scored(c))
		return RV_OK;
	return rv_fail(et, RV_E_INVALID,
				   "audit-training = %g without data-hash: where members bring their own text nobody knows what one "
				   "should have read; publish the text (--data), or audit-training = 0",
				   c->audit_training);
}

enum rv_err run_audits_check(const struct run_config *c, bool publishes, struct rv_errtext *et) {
	RV_TRY(check_chunks(c, et));
	RV_TRY(check_training(c, publishes, et));
	const char *key = c->audit_training > 0 ? "audit-training" : "audit-chunks";
	if (c->audit_training == 0 && c->audit_chunks == 0)
		return RV_OK;
	if (c->min_workers < RUN_AUDITS_LEAST)
		return rv_fail(et, RV_E_INVALID,
					   "%s with min-workers = %" PRId64
					   ": a round of fewer than %d workers is audited by nobody, and accusations and deaths can leave "
					   "so few; set min-workers to more than half of the workers that you expect, at least %d",
					   key, c->min_workers, RUN_AUDITS_LEAST, RUN_AUDITS_LEAST);
	if (c->min_workers > c->row_size)
		return rv_fail(et, RV_E_INVALID,
					   "%s with min-workers = %" PRId64 " and row-size = %" PRId64
					   ": rounds of more workers than row-size are audited by nobody; raise row-size, or lower "
					   "min-workers",
					   key, c->min_workers, c->row_size);
	return RV_OK;
}

bool run_audits_lack(const struct run_config *c, int participants, struct rv_errtext *why) {
	if (!run_config_keeps_contributions(c))
		return false;
	if (participants > c->row_size)
		(void)snprintf(
			why->text, sizeof why->text,
			"%d workers take part, more than row-size = %" PRId64
			": nobody audits such a round. In the next run raise row-size (64 at most), or have fewer workers",
			participants, c->row_size);
	else if (participants < RUN_AUDITS_LEAST)
		(void)snprintf(why->text, sizeof why->text,
					   "%d workers take part: nobody audits a round of fewer than %d. Invite more; in the next run set "
					   "min-workers to more than half of those that you expect",
					   participants, RUN_AUDITS_LEAST);
	else
		return false;
	return true;
}
