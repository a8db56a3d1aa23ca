/* report_bounds.h: what a report may say in a run of this configuration. A member writes its reports itself, so every
 * number in them is a claim: what cannot be is refused, and what is only shown to people is bounded, so that no sum or
 * record of it can fail. */
#ifndef RV_COORDINATOR_REPORT_BOUNDS_H
#define RV_COORDINATOR_REPORT_BOUNDS_H

#include "base/run_config.h"
#include "coordinator/core/core.h"
#include "net/control/control.h"

#define REPORT_MOST_LOSS         1e6f                /* nats per token */
#define REPORT_MOST_TOKENS_PER_S 1e9f                /* no machine comes near */
#define REPORT_MOST_COUNT        (UINT64_C(1) << 53) /* bytes, microseconds, steps: exact as a double */

/* Fills in round_tokens and missed_tokens: how many tokens a contribution of this run can stand for. */
void report_bounds_tokens(const struct run_config *run, struct core_config *out);
/* RV_E_RANGE: it speaks of a round that the run does not have. */
enum rv_err report_bounds_check(const struct run_config *run, const struct report *rep, struct rv_errtext *et);
/* Lowers what the report says for people to what can be. */
void report_bounds_apply(struct report *rep);

#endif
