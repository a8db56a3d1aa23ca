/* run_audits.h: what a run needs so that its audits (audit-chunks, audit-training) can find
 * anything. */
#ifndef RV_BASE_RUN_AUDITS_H
#define RV_BASE_RUN_AUDITS_H

#include "base/run_config.h"

/* Participants of a round that can be audited: an author, or owner, and two that agree about it. */
enum { RUN_AUDITS_LEAST = 3 };

/* Checks a run that has not begun: RV_E_INVALID if nobody would ever audit what its configuration
 * says is audited, or rounds are allowed that are too small for it. `publishes`: the run's text
 * will be published, and data-hash is set then. */
enum rv_err run_audits_check(const struct run_config *c, bool publishes, struct rv_errtext *et);

/* Returns true if a round with so many participants is audited by nobody, in a run with audits.
 * Writes why, and what helps. */
bool run_audits_lack(const struct run_config *c, int participants, struct rv_errtext *why);

#endif
