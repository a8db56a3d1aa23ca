/* serve_text.h: where `serve` finds the run's text: the directory of --text, else the one that
 * `new-run` or an earlier --text named, else RUN_DIR/text. */
#ifndef RV_COORDINATOR_COMMANDS_SERVE_TEXT_H
#define RV_COORDINATOR_COMMANDS_SERVE_TEXT_H

#include "coordinator/commands/opened_run.h"
#include "coordinator/web/served_text.h"

/* Opens the text of a run, and keeps where it is; *out is NULL if the run has none. `given`:
 * --text, or "". A text that is not where it was is logged, and no fault: members have mirrors and
 * each other. RV_E_INVALID: --text holds another text, or the run has none; what served_text_open
 * returns for --text; faults of the store. */
enum rv_err serve_text_open(struct opened_run *r, const char *given, struct rv_events *events, struct served_text **out,
							struct rv_errtext *et);

#endif
