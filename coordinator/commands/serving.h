/* serving.h: what a program that serves until a signal opens first: its log, and the signals that
 * end it; and its sandbox. */
#ifndef RV_COORDINATOR_COMMANDS_SERVING_H
#define RV_COORDINATOR_COMMANDS_SERVING_H

#include "base/err.h"
#include "base/event.h"
#include "base/os_sandbox.h"

struct serving {
	struct rv_events *events; /* text on a terminal, else JSON lines */
	int signal_fd;            /* readable once SIGINT or SIGTERM came */
};

/* Opens events and signals. `log`: a file for every event, or "". On a fault nothing is open.
 * RV_E_IO, RV_E_NOMEM. */
enum rv_err serving_open(const char *log, struct serving *out, struct rv_errtext *et);
void serving_close(struct serving *s);

/* Gives up all but these files, and what serving does not need (base/os_sandbox.h), and logs it.
 * RV_E_IO. */
enum rv_err serving_enter_sandbox(const struct os_sandbox_path *paths, int n, struct rv_events *ev,
								  struct rv_errtext *et);

#endif
