/* event.h: what a program reports as it runs: progress for people, one JSON line per event for
 * machines.
 *
 * On a terminal: a line of text per event and a redrawn progress line with rate and ETA. Otherwise:
 * one JSON object a line, {"t": seconds since 1970, "event": "round", ...}. The sink is an object,
 * made by main and handed down; there is no global logger. Thread-safe. */
#ifndef RV_BASE_EVENT_H
#define RV_BASE_EVENT_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum rv_level { RV_DEBUG, RV_INFO, RV_WARN, RV_ERROR };

struct rv_events; /* opaque */

struct rv_events_config {
	FILE *out;            /* borrowed */
	bool json;            /* normally: !isatty(fileno(out)) */
	enum rv_level level;  /* `out` does not get less severe events */
	const char *log_path; /* NULL, or a file that gets every event as JSON, whatever `out` shows */
};

/* Makes a sink; the caller frees it. RV_E_NOMEM; a log file that cannot be opened: RV_E_IO and kin,
 * which name it. */
enum rv_err rv_events_new(const struct rv_events_config *cfg, struct rv_events **out, struct rv_errtext *et);
void rv_events_free(struct rv_events *ev); /* flushes; NULL is fine */

/* A named value of an event. Strings are escaped; non-finite numbers become null. */
struct rv_field {
	const char *key;
	enum { RV_F_END, RV_F_INT, RV_F_DOUBLE, RV_F_STR, RV_F_BOOL } kind;
	int64_t i;
	double d;
	const char *s;
};
struct rv_field rv_field_int(const char *key, int64_t v);
struct rv_field rv_field_double(const char *key, double v);
struct rv_field rv_field_str(const char *key, const char *v);
struct rv_field rv_field_bool(const char *key, bool v);
#define RV_FIELDS(...) ((const struct rv_field[]){__VA_ARGS__, {.kind = RV_F_END}})
#define RV_NO_FIELDS   ((const struct rv_field[]){{.kind = RV_F_END}})

/* Emits one event. `fmt` is a printf format for the sentence that people read; `fields` come from
 * RV_FIELDS, at most 32. */
void rv_event(struct rv_events *ev, enum rv_level level, const char *name, const struct rv_field *fields,
			  const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Emits one event to the log and to JSON, but not as text for people, who read it as the last line
 * of a failing program. */
void rv_event_in_log(struct rv_events *ev, enum rv_level level, const char *name, const struct rv_field *fields,
					 const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Draws a progress line: "label [#####.....] 41% 1234/3000 unit  56.7 unit/s  ETA 0:31  note",
 * without the parts for which the terminal is too narrow (base/progress.h). Only on a terminal that
 * can redraw (base/terminal.h), nothing in JSON mode. Redrawn at most 10 times a second; the caller
 * passes the monotonic time. */
void rv_progress(struct rv_events *ev, int64_t now_us, const char *label, uint64_t done, uint64_t total,
				 const char *unit, const char *note);
void rv_progress_clear(struct rv_events *ev);

#endif
