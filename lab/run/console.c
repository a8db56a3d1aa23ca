/* console.c: see console.h. */
#include "lab/run/console.h"

#include "base/clock.h"
#include "base/signals.h"

#include <unistd.h>

enum rv_err console_events(FILE *out, struct rv_events **events, struct rv_errtext *et) {
	return rv_events_new(&(struct rv_events_config){.out = out, .json = !isatty(fileno(out)), .level = RV_INFO}, events,
						 et);
}

enum rv_err console_open(struct console *c, FILE *out, struct rv_errtext *et) {
	*c = (struct console){.signals = -1};
	RV_TRY(rv_signals_open(&c->signals, et));
	return console_events(out, &c->events, et);
}

void console_close(struct console *c) {
	rv_events_free(c->events);
	if (c->signals >= 0)
		rv_signals_close(c->signals);
	*c = (struct console){.signals = -1};
}

bool console_progress(struct console *c, const char *label, uint64_t done, uint64_t total, const char *unit,
					  const char *note) {
	rv_progress(c->events, rv_clock_monotonic_us(), label, done, total, unit, note);
	return rv_signals_take(c->signals) == 0;
}
