/* report_bounds.h: limits of a report in a run of this configuration. A member writes its reports
 * itself, so every number in them is a claim: impossible protocol values are refused, and values
 * that are only shown to people are bounded, so that no sum or record of them can overflow. */
#ifndef RV_COORDINATOR_REPORT_BOUNDS_H
#define RV_COORDINATOR_REPORT_BOUNDS_H

#include "base/run_config.h"
#include "coordinator/core/core.h"
#include "net/control/control.h"

#define REPORT_MOST_LOSS         1e6f                /* nats per token */
#define REPORT_MOST_TOKENS_PER_S 1e9f                /* no machine comes near */
#define REPORT_MOST_COUNT        (UINT64_C(1) << 53) /* bytes, microseconds, steps: exact as a double */

/* Fills in round_tokens and missed_tokens: the most tokens that a contribution of this run can
 * stand for. */
void report_bounds_tokens(const struct run_config *run, struct core_config *out);
/* Refuses a report of a round that the run does not have: RV_E_RANGE. */
enum rv_err report_bounds_check(const struct run_config *run, const struct report *rep, struct rv_errtext *et);
/* Lowers the values that are shown to people to possible ones. */
void report_bounds_apply(struct report *rep);

#endif
