/* run_audits.h: what a run needs so that its audits (audit-chunks, audit-training) can find
 * anything. */
#ifndef RV_BASE_RUN_AUDITS_H
#define RV_BASE_RUN_AUDITS_H

#include "base/run_config.h"

/* Participants of a round that can be audited: an author, or owner, and two that agree about it. */
enum { RUN_AUDITS_LEAST = 3, RUN_AUDITS_LEAST_IN_ROWS = 4 /* of a row whose sums and means are */ };

/* Checks a run that has not begun: RV_E_INVALID if nobody would ever audit what its configuration
 * says is audited, or rounds are allowed that are too small for it. `publishes`: the run's text
 * will be published, and data-hash is set then. */
enum rv_err run_audits_check(const struct run_config *c, bool publishes, struct rv_errtext *et);

/* Returns true if a round with so many participants is audited by nobody, or its averages are not,
 * in a run that audits these. Writes why, and what helps. */
bool run_audits_lack(const struct run_config *c, int participants, struct rv_errtext *why);

/* Returns how many snapshots a worker keeps at least: with audit-rollback the run may go back to
 * any round of the window, and without a state from before it nobody could follow. */
int64_t run_audits_least_snapshots(const struct run_config *c);

#endif
