/* console.h: what a command that takes long has: a sink of events, which draws its progress, and
 * the signals that stop it. */
#ifndef RV_LAB_CONSOLE_H
#define RV_LAB_CONSOLE_H

#include "base/event.h"

struct console {
	struct rv_events *events; /* NULL: not open */
	int signals;              /* base/signals.h */
};

/* Opens a sink on `out`: text on a terminal, JSON lines otherwise. RV_E_NOMEM. */
enum rv_err console_events(FILE *out, struct rv_events **events, struct rv_errtext *et);
/* Opens both; close *c even after a fault. The faults of rv_signals_open, RV_E_NOMEM. */
enum rv_err console_open(struct console *c, FILE *out, struct rv_errtext *et);
void console_close(struct console *c);
/* Draws the progress line; returns false if a signal has come. */
bool console_progress(struct console *c, const char *label, uint64_t done, uint64_t total, const char *unit,
					  const char *note);

#endif
