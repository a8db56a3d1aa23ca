/* run_audits.c: see run_audits.h. */
#include "base/run_audits.h"

#include "base/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

/* Returns the first setting that keeps steps from being repeated. */
static const char *what_prevents_repeating(const struct run_config *c) {
	if (c->audit_training == 0)
		return "audit-training = 0";
	if (c->fragments != 1)
		return "fragments";
	if (run_config_overlap(c) > 0)
		return "overlap-steps or late updates";
	if (c->mix != 0)
		return "mix";
	if (c->prox_mu != 0)
		return "prox-mu";
	return c->error_feedback != 0 ? "error-feedback" : "slow-members";
}

static enum rv_err check_repeat(const struct run_config *c, struct rv_errtext *et) {
	const char *what = what_prevents_repeating(c);
	if (c->audit_repeat == 0 || (c->audit_training > 0 && run_config_can_repeat(c)))
		return RV_OK;
	return rv_fail(et, RV_E_INVALID,
				   "audit-repeat = %g with %s: a round's steps do not follow there from what members commit to; %s, or "
				   "audit-repeat = 0",
				   c->audit_repeat, what,
				   strcmp(what, "slow-members") == 0
					   ? "slow-members = wait, where all wait for the slowest line (preset "
						 "strangers has skip)"
					   : "leave that out");
}

/* A member that brings its own text is not scored: nobody knows what it should have read. */
static enum rv_err check_own_text(const struct run_config *c, struct rv_errtext *et) {
	if (c->audit_training == 0 || c->data == RUN_DATA_PUBLISHED)
		return RV_OK;
	return rv_fail(
		et, RV_E_INVALID,
		"audit-training = %g with data-from = own: a member that brings its own text is not scored; data-from "
		"= published, or audit-training = 0",
		c->audit_training);
}

/* Returns true if a roster of so many has a row in which training is audited. */
static bool scores_a_row(const struct run_config *c, int participants) {
	const int n_rows = rows_choose(participants, (int)c->row_size);
	return rows_length(participants, n_rows, 0) >= RUN_AUDITS_LEAST;
}

/* Returns true if all its rows have enough members for audits of averages: three convict there. */
static bool audits_a_row(const struct run_config *c, int participants) {
	const int n_rows = rows_choose(participants, (int)c->row_size);
	return rows_length(participants, n_rows, n_rows - 1) >= RUN_AUDITS_LEAST_IN_ROWS;
}

/* Rounds of the least number of workers are audited, in rows, too. */
static enum rv_err check_rows(const struct run_config *c, struct rv_errtext *et) {
	if (c->min_workers <= c->row_size)
		return RV_OK;
	if (c->audit_chunks > 0 && !audits_a_row(c, (int)c->min_workers))
		return rv_fail(et, RV_E_INVALID,
					   "audit-chunks with min-workers = %" PRId64 " and row-size = %" PRId64
					   ": averages of rows of fewer than %d workers are audited by nobody; raise row-size, lower "
					   "min-workers, or audit-chunks = 0",
					   c->min_workers, c->row_size, RUN_AUDITS_LEAST_IN_ROWS);
	if (c->audit_training > 0 && !scores_a_row(c, (int)c->min_workers))
		return rv_fail(et, RV_E_INVALID,
					   "audit-training with min-workers = %" PRId64 " and row-size = %" PRId64
					   ": rows of fewer than %d workers are audited by nobody; raise row-size",
					   c->min_workers, c->row_size, RUN_AUDITS_LEAST);
	return RV_OK;
}

enum rv_err run_audits_check(const struct run_config *c, bool publishes, struct rv_errtext *et) {
	RV_TRY(check_chunks(c, et));
	RV_TRY(check_training(c, publishes, et));
	RV_TRY(check_own_text(c, et));
	RV_TRY(check_repeat(c, et));
	const char *key = c->audit_training > 0 ? "audit-training" : "audit-chunks";
	if (c->audit_training == 0 && c->audit_chunks == 0)
		return RV_OK;
	if (c->min_workers < RUN_AUDITS_LEAST)
		return rv_fail(et, RV_E_INVALID,
					   "%s with min-workers = %" PRId64
					   ": a round of fewer than %d workers is audited by nobody, and accusations and deaths can leave "
					   "so few; set min-workers to more than half of the workers that you expect, at least %d",
					   key, c->min_workers, RUN_AUDITS_LEAST, RUN_AUDITS_LEAST);
	return check_rows(c, et);
}

bool run_audits_lack(const struct run_config *c, int participants, struct rv_errtext *why) {
	if (!run_config_keeps_contributions(c))
		return false;
	const bool rows = participants > c->row_size;
	if (rows && run_config_is_audited(c) && !audits_a_row(c, participants))
		(void)snprintf(why->text, sizeof why->text,
					   "%d workers take part in rows of fewer than %d: nobody audits their averages. In the next run "
					   "raise row-size, which is %" PRId64,
					   participants, RUN_AUDITS_LEAST_IN_ROWS, c->row_size);
	else if (rows && run_config_is_scored(c) && !scores_a_row(c, participants))
		(void)snprintf(why->text, sizeof why->text,
					   "%d workers take part in rows of fewer than %d: nobody audits them. In the next run raise "
					   "row-size, which is %" PRId64,
					   participants, RUN_AUDITS_LEAST, c->row_size);
	else if (participants < RUN_AUDITS_LEAST)
		(void)snprintf(why->text, sizeof why->text,
					   "%d workers take part: nobody audits a round of fewer than %d. Invite more; in the next run set "
					   "min-workers to more than half of those that you expect",
					   participants, RUN_AUDITS_LEAST);
	else
		return false;
	return true;
}

int64_t run_audits_least_snapshots(const struct run_config *c) {
	if (!c->audit_rollback || c->audit_chunks == 0)
		return 1;
	return 1 + (c->audit_window + c->snapshot_every - 1) / c->snapshot_every;
}
